package openai

import (
	"net/http"
	"slices"
	"strconv"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/openaimap"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/rest"
)

// model is a model of the interface: a tool, or another name of a tool.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	// These are not part of the OpenAI API.
	Name        string               `json:"name"`
	Description string               `json:"description,omitempty"`
	Endpoints   []openaimap.Endpoint `json:"endpoints"`
}

type modelList struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

// listModels serves GET /v1/models: it lists the tools that the caller may use.
func (h *Handler) listModels(w http.ResponseWriter, r *http.Request) error {
	view, err := h.viewOf(r)
	if err != nil {
		return err
	}
	list := modelList{Object: "list", Data: []model{}}
	for _, t := range view.Tools {
		for _, name := range append([]string{t.Slug}, t.OpenAI.Models...) {
			list.Data = append(list.Data, asModel(t, name))
		}
	}
	return rest.Reply(w, http.StatusOK, list)
}

// getModel serves GET /v1/models/{model}.
func (h *Handler) getModel(w http.ResponseWriter, r *http.Request) error {
	view, err := h.viewOf(r)
	if err != nil {
		return err
	}
	name := r.PathValue("model")
	t, ok := findModel(view, name)
	if !ok {
		return notFoundModel(name)
	}
	return rest.Reply(w, http.StatusOK, asModel(t, name))
}

// viewOf returns the tools that the caller may use.
func (h *Handler) viewOf(r *http.Request) (*catalog.View, error) {
	p := rest.PrincipalOf(r)
	return h.Catalog.ViewOf(r.Context(), generation.AudienceOf(p), p.AccountID)
}

func asModel(t *catalog.Tool, name string) model {
	m := model{
		ID:          name,
		Object:      "model",
		Created:     t.Created.Unix(),
		OwnedBy:     "atelier",
		Name:        t.Name,
		Description: t.Description,
		Endpoints:   []openaimap.Endpoint{},
	}
	for _, one := range openaimap.All(t) {
		m.Endpoints = append(m.Endpoints, one.Endpoint)
	}
	return m
}

// findModel returns the tool with the given slug, id or further name.
func findModel(view *catalog.View, name string) (*catalog.Tool, bool) {
	if t, ok := view.ToolByName(name); ok {
		return t, true
	}
	i := slices.IndexFunc(view.Tools, func(t *catalog.Tool) bool { return slices.Contains(t.OpenAI.Models, name) })
	if i < 0 {
		return nil, false
	}
	return view.Tools[i], true
}

// chooseModel returns the way in which an endpoint calls the named model.
// Without a name it is the first model in the list of tools that the endpoint
// can call.
func chooseModel(view *catalog.View, e openaimap.Endpoint, name string) (*openaimap.Mapping, error) {
	if name != "" {
		t, ok := findModel(view, name)
		if !ok {
			return nil, notFoundModel(name)
		}
		m, err := openaimap.New(t, e)
		if err != nil {
			return nil, fault.New(fault.Invalid, "The model "+strconv.Quote(name)+" cannot be called through "+string(e)+": "+err.Error()+".").On("model")
		}
		return m, nil
	}
	for _, t := range view.Tools {
		if m, err := openaimap.New(t, e); err == nil {
			return m, nil
		}
	}
	return nil, fault.New(fault.Invalid, "You have access to no model that can be called through "+string(e)+".").On("model")
}
