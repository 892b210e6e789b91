package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/cursor"
	"atelier/internal/file/library"
	"atelier/internal/web/api/wire"
)

func (s *Server) listLibrary(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	p := c.params
	v := viewerOf(c)
	f := library.Filter{
		Shape:      p.one("aspect_ratio"),
		Resolution: p.one("resolution"),
		Favorited:  p.yesNo("favorited"),
		From:       p.moment("start_utc"),
		Until:      p.moment("end_utc"),
	}
	f.ToolIDs = s.toolsFor(p)
	scope := []string{"library", c.caller.PersonID, strings.Join(slices.Sorted(slices.Values(v.AccountIDs)), ",")}
	for _, name := range []string{"tool_id", "aspect_ratio", "resolution", "model_family_tool_tag_id", "media_tool_tag_id", "favorited", "start_utc", "end_utc"} {
		scope = append(scope, p.values.Get(name))
	}
	pg, err := s.page(p, cursor.Scope(scope...))
	if err != nil {
		return err
	}
	after, err := pg.place()
	if err != nil {
		return err
	}
	all, err := s.Library.List(r.Context(), v, f, after, pg.limit+1)
	if err != nil {
		return err
	}
	all, more, next := cut(s, pg, all, func(i library.Item) (string, string) { return micros(i.Created), i.ResultID })
	list := wire.LibraryList{Data: make([]wire.LibraryItem, 0, len(all)), HasMore: more, NextCursor: next}
	for _, i := range all {
		list.Data = append(list.Data, s.asItem(i, c.caller.PersonID))
	}
	return reply(w, http.StatusOK, list)
}

// toolsFor are the tools that the filters leave, nil for all.
func (s *Server) toolsFor(p *params) []string {
	var left []string
	narrow := func(ids []string) {
		if left == nil {
			left = append([]string{}, ids...)
			return
		}
		left = slices.DeleteFunc(left, func(id string) bool { return !slices.Contains(ids, id) })
	}
	if id := p.id("tool_id"); id != "" {
		narrow([]string{id})
	}
	for _, name := range []string{"model_family_tool_tag_id", "media_tool_tag_id"} {
		if tag := p.id(name); tag != "" {
			narrow(s.Catalog.Snapshot().Tagged(tag))
		}
	}
	return left
}

// yesNo reads a parameter that is true or false, nil for neither.
func (p *params) yesNo(name string) *bool {
	switch text := p.one(name); text {
	case "":
		return nil
	case "true", "false":
		yes := text == "true"
		return &yes
	}
	p.problem(name, "Must be true or false.")
	return nil
}

// moment reads a parameter that is a time, the zero time for none.
func (p *params) moment(name string) time.Time {
	text := p.one(name)
	if text == "" {
		return time.Time{}
	}
	at, err := parseTime(text)
	if err != nil {
		p.problem(name, "Must be a time such as 2026-11-15T09:30:00Z.")
	}
	return at
}

// Nothing that is kept is older than earliest or newer than latest.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// parseTime reads a time as RFC 3339 has it. Times beyond earliest and latest
// are read as these, so that none of them is the zero time, which stands for no
// time, and all of them fit into the database.
func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text)) // section 5.6: t and z may be lower case
	switch {
	case err != nil:
		return time.Time{}, err
	case at.Before(earliest):
		return earliest, nil
	case at.After(latest):
		return latest, nil
	}
	return at, nil
}

func (s *Server) asItem(i library.Item, viewerID string) wire.LibraryItem {
	return wire.LibraryItem{
		ID:              i.ID,
		Type:            wire.Medium(i.Type),
		MimeType:        i.MimeType,
		URL:             s.Links.URL(library.OfResult, i.ResultID, library.Whole, viewerID, i.Names.Whole),
		ThumbURL:        link(s.Links, library.OfResult, i.ResultID, library.Thumb, viewerID, i.Names),
		ToolID:          i.ToolID,
		TeamID:          orNull(i.TeamID),
		RequestID:       i.RequestID,
		Created:         moment(i.Created),
		Width:           countOrNull(int64(i.Width)),
		Height:          countOrNull(int64(i.Height)),
		DurationSeconds: playing(i.Duration),
		SizeBytes:       i.Size,
		Favorited:       i.Favorited,
		Prompt:          orNull(i.Prompt),
		Note:            orNull(i.Note),
	}
}

func (s *Server) getLibraryItem(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	if err := c.params.failed(); err != nil {
		return err
	}
	i, err := s.Library.Get(r.Context(), viewerOf(c), r.PathValue("library_id"))
	if err != nil {
		return err
	}
	one := s.asItem(i, c.caller.PersonID)
	return reply(w, http.StatusOK, wire.LibraryItemDetail{
		ID:              one.ID,
		Type:            one.Type,
		MimeType:        one.MimeType,
		URL:             one.URL,
		ThumbURL:        one.ThumbURL,
		ToolID:          one.ToolID,
		TeamID:          one.TeamID,
		RequestID:       one.RequestID,
		Created:         one.Created,
		Width:           one.Width,
		Height:          one.Height,
		DurationSeconds: one.DurationSeconds,
		SizeBytes:       one.SizeBytes,
		Favorited:       one.Favorited,
		Prompt:          one.Prompt,
		Note:            one.Note,
		Inputs:          json.RawMessage(i.Inputs),
	})
}

func (s *Server) deleteLibraryItem(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	if err := c.params.failed(); err != nil {
		return err
	}
	if err := s.Library.Delete(r.Context(), viewerOf(c), r.PathValue("library_id")); err != nil {
		return err
	}
	s.ended.forget()
	return done(w)
}

func (s *Server) addFavorite(w http.ResponseWriter, r *http.Request) error {
	return s.favorite(w, r, true)
}

func (s *Server) removeFavorite(w http.ResponseWriter, r *http.Request) error {
	return s.favorite(w, r, false)
}

func (s *Server) favorite(w http.ResponseWriter, r *http.Request, on bool) error {
	c := callOf(r)
	if err := c.params.failed(); err != nil {
		return err
	}
	if err := s.Library.SetFavorite(r.Context(), viewerOf(c), r.PathValue("library_id"), on); err != nil {
		return err
	}
	return done(w)
}
