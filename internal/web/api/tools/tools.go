// Package tools serves the API endpoints for the catalog: tools, tool tags,
// kits and their pictures.
package tools

import (
	"net/http"
	"strconv"

	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
	"atelier/internal/run/generation"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
)

// Handler serves the API endpoints for the catalog.
type Handler struct {
	Catalog    *catalog.Catalog
	Blobs      blob.Store
	Files      *blob.Verifier
	Compressed *rest.GzipCache
	Pages      rest.Pager
	BaseURL    string

	encoded pageCache
}

// Routes returns the routes of the operations on the catalog.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/tools", access.Catalog, h.listTools),
		rest.NewRoute("GET /api/v2/tools/{tool_id}", access.Catalog, h.getTool),
		rest.NewRoute("GET /api/v2/tool-tags", access.Catalog, h.listToolTags),
		rest.NewRoute("GET /api/v2/kits", access.Catalog, h.listKits),
		rest.NewRoute("GET /catalog/{picture}", access.Open, h.getPicture),
	}
}

// listTools serves GET /api/v2/tools: it lists the tools that the account can
// see.
func (h *Handler) listTools(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	p := call.Params
	audience := generation.AudienceOf(call.Principal)
	limit := p.ReadLimit(h.Pages.DefaultSize, h.Pages.MaxSize)
	tag := p.ReadID("tool_tag")
	sealed := p.ReadText("cursor")
	if err := p.Err(); err != nil {
		return err
	}

	scope := func() string {
		return cursor.Scope("tools", call.Principal.PersonID, audience.CompanyID, audience.TeamID, tag)
	}
	var after *catalog.SortKey
	if sealed != "" {
		var err error
		if after, err = h.openCursor(scope(), sealed); err != nil {
			return err
		}
	}
	view, err := h.Catalog.ViewOf(r.Context(), audience, call.Principal.AccountID)
	if err != nil {
		return err
	}
	page, err := h.encodedPage(view, tag, after, limit)
	if err != nil {
		return err
	}

	if page.last == nil {
		h.Compressed.SendTagged(w, r, page.tag, page.body, nil)
		return nil
	}
	next := h.Pages.Cursors.SealKey(scope(), strconv.FormatInt(page.last.Position, 10), page.last.Name, page.last.ID)
	h.Compressed.SendTagged(w, r, page.tag, page.body, []byte(next+`"}`))
	return nil
}

// openCursor returns the sort key of the last tool on the previous page.
func (h *Handler) openCursor(scope, sealed string) (*catalog.SortKey, error) {
	part, err := h.Pages.Cursors.Open(scope, sealed, 3)
	if err != nil {
		return nil, err
	}
	position, err := strconv.ParseInt(part[0], 10, 64)
	if err != nil {
		return nil, err
	}
	return &catalog.SortKey{Position: position, Name: part[1], ID: part[2]}, nil
}

// viewFor returns the part of the catalog that the request's account can see,
// without saved flows. It is for routes whose only parameter is the account.
func (h *Handler) viewFor(r *http.Request) (*catalog.View, error) {
	call := rest.CallOf(r)
	return h.Catalog.CurrentSnapshot().ViewFor(generation.AudienceOf(call.Principal)), call.Params.Err()
}

// getTool serves GET /api/v2/tools/{tool_id}: it returns a tool with its input
// form. The path has the tool's ID or its slug.
func (h *Handler) getTool(w http.ResponseWriter, r *http.Request) error {
	view, err := h.viewFor(r)
	if err != nil {
		return err
	}
	name := r.PathValue("tool_id")
	t, ok := view.ToolByName(name)
	if !ok {
		p := rest.CallOf(r).Principal
		if view, err = h.Catalog.ViewOf(r.Context(), generation.AudienceOf(p), p.AccountID); err != nil {
			return err
		}
		t, ok = view.ToolByName(name)
	}
	if !ok {
		return fault.New(fault.NotFound, "There is no such tool.")
	}
	return h.Compressed.ReplyTagged(w, r, h.asDetail(view, t))
}

// listToolTags serves GET /api/v2/tool-tags: it lists the tags of the tools
// that the account can see.
func (h *Handler) listToolTags(w http.ResponseWriter, r *http.Request) error {
	view, err := h.viewFor(r)
	if err != nil {
		return err
	}
	return h.Compressed.ReplyTagged(w, r, asTagList(view.PublicTags()))
}

// listKits serves GET /api/v2/kits: it lists the kits that the account can
// see.
func (h *Handler) listKits(w http.ResponseWriter, r *http.Request) error {
	view, err := h.viewFor(r)
	if err != nil {
		return err
	}
	return h.Compressed.ReplyTagged(w, r, h.asKitList(view))
}
