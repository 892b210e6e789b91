// Package library serves /api/v2/library: the results of runs.
package library

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/base/cursor"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/library"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for the library.
type Handler struct {
	Library *library.Library
	Catalog *catalog.Catalog
	Links   library.URLSigner
	Pages   rest.Pager
	// Changed is called after a result has been deleted or restored.
	Changed func()
}

// Routes returns the routes of the operations on the library.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/library", access.ForAccounts, h.listLibrary),
		rest.NewRoute("GET /api/v2/library/marks", access.ForAccounts, h.listMarks),
		rest.NewRoute("GET /api/v2/library/{library_id}", access.ForAccount, h.getItem),
		rest.NewRoute("DELETE /api/v2/library/{library_id}", access.ForAccount, h.deleteItem),
		rest.NewRoute("POST /api/v2/library/{library_id}/restore", access.ForAccount, h.restoreItem),
		rest.NewRoute("PUT /api/v2/library/{library_id}/favorite", access.ForAccount, h.addFavorite),
		rest.NewRoute("DELETE /api/v2/library/{library_id}/favorite", access.ForAccount, h.removeFavorite),
	}
}

// scopeParams are the query parameters that a cursor of the library is bound
// to: it is valid only for the same filters.
var scopeParams = []string{
	"q", "type", "tool_id", "aspect_ratio", "resolution", "model_family_tool_tag_id", "media_tool_tag_id", "favorited", "start_utc", "end_utc", "flow_request_id",
}

// readFilter reads the filters and the order of a list of results. It also
// returns the scope of the list's cursors.
func (h *Handler) readFilter(call *rest.Call) (filter library.Filter, scope string) {
	p := call.Params
	filter = library.Filter{
		Search:      p.ReadText("q"),
		Type:        rest.ReadMedium(p),
		AspectRatio: p.ReadText("aspect_ratio"),
		Resolution:  p.ReadText("resolution"),
		FlowID:      p.ReadUUID("flow_request_id"),
		Favorited:   p.ReadBool("favorited"),
		From:        p.ReadTime("start_utc"),
		Until:       p.ReadTime("end_utc"),
	}
	filter.ToolIDs = h.readTools(p)
	switch order := wire.LibrarySort(p.ReadText("sort")); order {
	case "", wire.Newest:
	case wire.Oldest:
		filter.OldestFirst = true
	default:
		p.AddProblem("sort", "Must be newest or oldest.")
	}

	var accountIDs []string
	for _, account := range call.Principal.Accounts() {
		accountIDs = append(accountIDs, account.AccountID)
	}
	parts := []string{"library", call.Principal.PersonID, strings.Join(slices.Sorted(slices.Values(accountIDs)), ","), strconv.FormatBool(filter.OldestFirst)}
	for _, name := range scopeParams {
		parts = append(parts, p.Values.Get(name))
	}
	return filter, cursor.Scope(parts...)
}

// listLibrary serves GET /api/v2/library: it lists the results of one or more
// accounts.
func (h *Handler) listLibrary(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	filter, scope := h.readFilter(call)
	page, err := h.Pages.ReadPage(call.Params, scope)
	if err != nil {
		return err
	}
	after, err := rest.LibraryCursor(page)
	if err != nil {
		return err
	}

	items, err := h.Library.ListItems(r.Context(), call.Principal, filter, after, page.Limit+1)
	if err != nil {
		return err
	}
	items, hasMore, next := rest.Cut(page, items, func(i library.Item) (string, string) {
		return cursorKey(library.Cursor{Created: i.Created, ID: i.ResultID})
	})
	return rest.Reply(w, http.StatusOK, wire.LibraryList{
		Data:       rest.Convert(items, func(i library.Item) wire.LibraryItem { return h.asItem(i, call.Principal.PersonID) }),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// cursorKey returns the sort key of a position in a list of results.
func cursorKey(c library.Cursor) (created, id string) { return rest.Micros(c.Created), c.ID }

// The numbers of results from one place to the next in a list of places.
const (
	defaultEvery = 100
	minEvery     = 20
	maxEvery     = 1000
)

// listMarks serves GET /api/v2/library/marks: it counts the results in a list
// and returns cursors of places in it.
func (h *Handler) listMarks(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	filter, scope := h.readFilter(call)
	every := call.Params.ReadNumber("every", defaultEvery, minEvery, maxEvery)
	if err := call.Params.Err(); err != nil {
		return err
	}

	total, marks, err := h.Library.ListMarks(r.Context(), call.Principal, filter, int64(every))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.LibraryMarks{
		Total: total,
		Marks: rest.Convert(marks, func(m library.Mark) wire.LibraryMark {
			mark := wire.LibraryMark{Index: m.Index, Created: rest.Moment(m.Created)}
			if m.After != nil {
				created, id := cursorKey(*m.After)
				sealed := h.Pages.Cursors.SealKey(scope, created, id)
				mark.Cursor = &sealed
			}
			return mark
		}),
	})
}

// readTools returns the ids of the tools that match the filters by tool and
// tag. It returns nil if there is no such filter.
func (h *Handler) readTools(p *rest.Params) []string {
	var left []string
	narrow := func(ids []string) {
		if left == nil {
			left = append([]string{}, ids...)
			return
		}
		left = slices.DeleteFunc(left, func(id string) bool { return !slices.Contains(ids, id) })
	}

	if id := p.ReadID("tool_id"); id != "" {
		narrow([]string{id})
	}
	for _, name := range []string{"model_family_tool_tag_id", "media_tool_tag_id"} {
		if tag := p.ReadID(name); tag != "" {
			narrow(h.Catalog.CurrentSnapshot().TaggedToolIDs(tag))
		}
	}
	return left
}

// getItem serves GET /api/v2/library/{library_id}: it returns a result with
// the inputs of its run.
func (h *Handler) getItem(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	i, err := h.Library.GetItem(r.Context(), call.Principal, r.PathValue("library_id"))
	if err != nil {
		return err
	}

	one := h.asItem(i, call.Principal.PersonID)
	return rest.Reply(w, http.StatusOK, wire.LibraryItemDetail{
		ID:              one.ID,
		Flow:            one.Flow,
		Type:            one.Type,
		MimeType:        one.MimeType,
		URL:             one.URL,
		ThumbURL:        one.ThumbURL,
		PreviewURL:      one.PreviewURL,
		Blurhash:        one.Blurhash,
		ToolID:          one.ToolID,
		TeamID:          one.TeamID,
		RequestID:       one.RequestID,
		Created:         one.Created,
		Width:           one.Width,
		Height:          one.Height,
		DurationSeconds: one.DurationSeconds,
		SizeBytes:       one.SizeBytes,
		Sha256:          one.Sha256,
		Favorited:       one.Favorited,
		Prompt:          one.Prompt,
		Note:            one.Note,
		Inputs:          json.RawMessage(i.Inputs),
	})
}

// deleteItem serves DELETE /api/v2/library/{library_id}: it deletes a result.
func (h *Handler) deleteItem(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	if err := h.Library.DeleteItem(r.Context(), call.Principal, r.PathValue("library_id")); err != nil {
		return err
	}
	h.Changed()
	return rest.NoContent(w)
}

// restoreItem serves POST /api/v2/library/{library_id}/restore: it restores a
// deleted result.
func (h *Handler) restoreItem(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	i, err := h.Library.RestoreItem(r.Context(), call.Principal, r.PathValue("library_id"))
	if err != nil {
		return err
	}
	h.Changed()
	return rest.Reply(w, http.StatusOK, h.asItem(i, call.Principal.PersonID))
}

// addFavorite serves PUT /api/v2/library/{library_id}/favorite: it marks a
// result as a favorite.
func (h *Handler) addFavorite(w http.ResponseWriter, r *http.Request) error {
	return h.setFavorite(w, r, true)
}

// removeFavorite serves DELETE /api/v2/library/{library_id}/favorite: it
// removes a result from the favorites.
func (h *Handler) removeFavorite(w http.ResponseWriter, r *http.Request) error {
	return h.setFavorite(w, r, false)
}

func (h *Handler) setFavorite(w http.ResponseWriter, r *http.Request, isFavorite bool) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	if err := h.Library.SetFavorite(r.Context(), call.Principal, r.PathValue("library_id"), isFavorite); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// asItem converts a result to its API representation, with URLs signed for the
// viewer.
func (h *Handler) asItem(i library.Item, viewerID string) wire.LibraryItem {
	return wire.LibraryItem{
		ID:              i.ID,
		Type:            wire.Medium(i.Type),
		MimeType:        i.MimeType,
		URL:             h.Links.SignURL(library.KindResult, i.ResultID, library.VariantFile, viewerID, i.Names.File),
		ThumbURL:        rest.MediaURL(h.Links, library.KindResult, i.ResultID, library.VariantThumb, viewerID, i.Names),
		PreviewURL:      rest.MediaURL(h.Links, library.KindResult, i.ResultID, library.VariantPreview, viewerID, i.Names),
		Blurhash:        rest.TextOrNull(i.Blurhash),
		ToolID:          i.ToolID,
		TeamID:          rest.TextOrNull(i.TeamID),
		RequestID:       i.RequestID,
		Created:         rest.Moment(i.Created),
		Width:           rest.NumberOrNull(int64(i.Width)),
		Height:          rest.NumberOrNull(int64(i.Height)),
		DurationSeconds: rest.SecondsOrNull(i.Duration),
		SizeBytes:       i.Size,
		Sha256:          i.SHA256,
		Favorited:       i.Favorited,
		Prompt:          rest.TextOrNull(i.Prompt),
		Note:            rest.TextOrNull(i.Note),
		Flow:            flowOf(i),
	}
}

// flowOf returns the step of a flow that made a result, or nil.
func flowOf(i library.Item) *wire.LibraryItemFlow {
	if i.FlowID == "" {
		return nil
	}
	return &wire.LibraryItemFlow{RequestID: i.FlowID, Step: i.Step, Intermediate: i.Intermediate}
}
