// Package generations serves /api/v2/generate and /api/v2/generations: creating,
// pricing, reading, cancelling, listing and following runs.
package generations

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"atelier/internal/base/cursor"
	"atelier/internal/base/pubsub"
	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/access"
	"atelier/internal/web/api/newrun"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for runs.
type Handler struct {
	Runs    *generation.Service
	Hub     *pubsub.Hub // notifies of changes of runs
	NewRuns *newrun.Receiver
	Links   library.URLSigner
	Ended   *EndedCache
	Streams *rest.Streams
	Pages   rest.Pager
	JSON    rest.JSONLimits
	BaseURL string
}

// Routes returns the routes of the operations on runs.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("POST /api/v2/generate", access.Generating, h.createGeneration),
		rest.NewRoute("POST /api/v2/generate/preview-cost", access.Pricing, h.previewCost),
		rest.NewRoute("GET /api/v2/generate/{request_id}", access.ForAccount, h.getGeneration),
		rest.NewRoute("POST /api/v2/generate/{request_id}/cancel", access.ForAccount, h.cancelGeneration),
		rest.NewRoute("GET /api/v2/generate/{request_id}/events", access.ForAccount, h.streamGeneration),
		rest.NewRoute("GET /api/v2/generations", access.ForAccount, h.listGenerations),
	}
}

// RunCall returns the Call of a request and the run id in its path.
func RunCall(r *http.Request) (*rest.Call, string, error) {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return nil, "", err
	}

	id := r.PathValue("request_id")
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return nil, "", run.ErrNotFound
	}
	return call, id, nil
}

// getGeneration serves GET /api/v2/generate/{request_id}: it returns a run.
func (h *Handler) getGeneration(w http.ResponseWriter, r *http.Request) error {
	call, id, err := RunCall(r)
	if err != nil {
		return err
	}

	withInputs := readInclude(call.Params)
	if err := call.Params.Err(); err != nil {
		return err
	}

	key := cacheKey{
		runID:      id,
		accountID:  call.Principal.AccountID,
		viewerID:   call.Principal.PersonID,
		withInputs: withInputs,
	}
	second := h.Links.Now().Unix()
	body := h.Ended.findBody(key, second)
	if body == nil {
		rec, err := h.Runs.PollRun(r.Context(), call.Principal, id)
		if err != nil {
			return err
		}
		if !rec.State.IsEnded() {
			return h.replyRun(w, http.StatusOK, call, rec, withInputs)
		}
		body, err = json.Marshal(h.asRun(call, rec, withInputs))
		if err != nil {
			return fmt.Errorf("encode response: %w", err)
		}
		h.Ended.keepBody(key, second, body)
	}

	rest.VaryByCaller(w.Header())
	rest.Send(w, http.StatusOK, body)
	return nil
}

// readInclude reads the parameter include and reports whether the response
// should contain the inputs of runs.
func readInclude(p *rest.Params) bool {
	include := wire.GenerationInclude(p.ReadText("include"))
	if include != "" && !include.Valid() {
		p.AddProblem("include", "Must be inputs.")
	}
	return include != ""
}

// replyRun responds with a run, and its inputs if withInputs is true. Unless
// the run has ended, Retry-After says when to request it again.
func (h *Handler) replyRun(w http.ResponseWriter, status int, call *rest.Call, rec generation.Record, withInputs bool) error {
	answer := h.asRun(call, rec, withInputs)
	if !rec.State.IsEnded() {
		w.Header().Set("Retry-After", strconv.FormatInt(answer.RetryAfterSeconds, 10))
	}
	return rest.Reply(w, status, answer)
}

// asRun converts a run to its API representation for the caller, with the
// run's inputs if withInputs is true.
func (h *Handler) asRun(call *rest.Call, rec generation.Record, withInputs bool) generation.RunJSON {
	one := rec.RunJSON(h.Links, call.Principal.PersonID)
	if withInputs {
		one.Inputs = json.RawMessage(rec.Inputs)
	}
	return one
}

// cancelGeneration serves POST /api/v2/generate/{request_id}/cancel: it
// cancels a run.
func (h *Handler) cancelGeneration(w http.ResponseWriter, r *http.Request) error {
	call, id, err := RunCall(r)
	if err != nil {
		return err
	}
	rec, hadEnded, err := h.Runs.CancelRun(r.Context(), call.Principal, id)
	if err != nil {
		return err
	}

	status := http.StatusAccepted
	if hadEnded {
		status = http.StatusOK
	}
	return h.replyRun(w, status, call, rec, false)
}

// listGenerations serves GET /api/v2/generations: it lists the runs of an
// account, newest first.
func (h *Handler) listGenerations(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	filter := run.Filter{Status: call.Params.ReadText("status"), ToolID: call.Params.ReadID("tool_id")}
	if filter.Status != "" && !wire.GenerationStatus(filter.Status).Valid() {
		call.Params.AddProblem("status", "Must be one of pending, succeeded, failed and cancelled.")
	}
	withInputs := readInclude(call.Params)
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("generations", call.Principal.PersonID, call.Principal.AccountID, filter.Status, filter.ToolID))
	if err != nil {
		return err
	}
	var after *run.Cursor
	if page.After != nil {
		at, err := page.AfterTime()
		if err != nil {
			return err
		}
		after = &run.Cursor{Created: at, ID: page.After[1]}
	}

	records, err := h.Runs.ListRuns(r.Context(), call.Principal.AccountID, filter, after, page.Limit+1)
	if err != nil {
		return err
	}
	records, hasMore, next := rest.Cut(page, records, func(rec generation.Record) (string, string) { return rest.Micros(rec.Created), rec.ID })
	return rest.Reply(w, http.StatusOK, generationList{
		Data: rest.Convert(records, func(rec generation.Record) generation.RunJSON {
			return h.asRun(call, rec, withInputs)
		}),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// generationList is the schema GenerationList of the OpenAPI document.
type generationList struct {
	Data       []generation.RunJSON `json:"data"`
	HasMore    bool                 `json:"has_more"`
	NextCursor *string              `json:"next_cursor"`
}
