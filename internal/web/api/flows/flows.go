// Package flows serves /api/v2/flows: the flows that people save.
package flows

import (
	"net/http"

	"atelier/internal/run/savedflow"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for saved flows.
type Handler struct {
	Flows *savedflow.Service
	JSON  rest.JSONLimits
}

// Routes returns the routes of the operations on saved flows.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/flows", access.ForAccount, h.listFlows),
		rest.NewRoute("POST /api/v2/flows", access.ForAccount, h.createFlow),
		rest.NewRoute("POST /api/v2/flows/check", access.ForAccount, h.checkFlow),
		rest.NewRoute("POST /api/v2/flows/draft", access.ForAccount, h.draftFlow),
		rest.NewRoute("GET /api/v2/flows/{flow_id}", access.ForAccount, h.getFlow),
		rest.NewRoute("PUT /api/v2/flows/{flow_id}", access.ForAccount, h.changeFlow),
		rest.NewRoute("DELETE /api/v2/flows/{flow_id}", access.ForAccount, h.deleteFlow),
		rest.NewRoute("GET /api/v2/flows/{flow_id}/versions", access.ForAccount, h.listVersions),
	}
}

// readBody returns the account and the JSON body of a request.
func readBody[T any](h *Handler, w http.ResponseWriter, r *http.Request) (call *rest.Call, body T, err error) {
	call = rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return nil, body, err
	}
	body, err = rest.Decode[T](w, r, h.JSON)
	return call, body, err
}

// listFlows serves GET /api/v2/flows: it lists the flows that the account can
// use, oldest first.
func (h *Handler) listFlows(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	all, err := h.Flows.List(r.Context(), call.Principal)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.FlowList{Data: rest.Convert(all, asSummary)})
}

// createFlow serves POST /api/v2/flows: it saves a new flow.
func (h *Handler) createFlow(w http.ResponseWriter, r *http.Request) error {
	call, body, err := readBody[wire.FlowDraft](h, w, r)
	if err != nil {
		return err
	}
	f, err := h.Flows.Create(r.Context(), call.Principal, readDraft(body))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusCreated, asFlow(f))
}

// checkFlow serves POST /api/v2/flows/check: it reports the problems and the
// price of a flow that is not saved.
func (h *Handler) checkFlow(w http.ResponseWriter, r *http.Request) error {
	call, body, err := readBody[wire.FlowDraft](h, w, r)
	if err != nil {
		return err
	}
	c, err := h.Flows.Check(r.Context(), call.Principal, readDraft(body))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asCheck(c))
}

// draftFlow serves POST /api/v2/flows/draft: it makes a flow of the runs that
// led to a result.
func (h *Handler) draftFlow(w http.ResponseWriter, r *http.Request) error {
	call, body, err := readBody[wire.FlowOrigin](h, w, r)
	if err != nil {
		return err
	}
	d, err := h.Flows.FromResult(r.Context(), call.Principal, body.LibraryID)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asDraft(d))
}

// getFlow serves GET /api/v2/flows/{flow_id}: it returns a flow with its steps.
func (h *Handler) getFlow(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	f, err := h.Flows.Get(r.Context(), call.Principal, r.PathValue("flow_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asFlow(f))
}

// changeFlow serves PUT /api/v2/flows/{flow_id}: it saves a new version.
func (h *Handler) changeFlow(w http.ResponseWriter, r *http.Request) error {
	call, body, err := readBody[wire.FlowChange](h, w, r)
	if err != nil {
		return err
	}
	draft := readDraft(wire.FlowDraft{
		Name:        body.Name,
		Description: body.Description,
		Fields:      body.Fields,
		Steps:       body.Steps,
		Results:     body.Results,
		Shared:      body.Shared,
	})
	f, err := h.Flows.Update(r.Context(), call.Principal, r.PathValue("flow_id"), body.Version, draft)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asFlow(f))
}

// deleteFlow serves DELETE /api/v2/flows/{flow_id}: it deletes a flow.
func (h *Handler) deleteFlow(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	if err := h.Flows.Delete(r.Context(), call.Principal, r.PathValue("flow_id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listVersions serves GET /api/v2/flows/{flow_id}/versions: it lists the
// versions of a flow, newest first.
func (h *Handler) listVersions(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	versions, err := h.Flows.Versions(r.Context(), call.Principal, r.PathValue("flow_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.FlowVersionList{Data: rest.Convert(versions, asVersion)})
}
