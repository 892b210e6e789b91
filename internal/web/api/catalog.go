package api

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
	"atelier/internal/run/generation"
)

func (s *Server) listTools(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	p := c.params
	audience := generation.AudienceOf(c.caller)
	limit := p.limit(s.Limits.ToolsPageDefault, s.Limits.PageSize)
	tag := p.id("tool_tag")
	sealed := p.one("cursor")
	if err := p.failed(); err != nil {
		return err
	}
	scope := func() string {
		return cursor.Scope("tools", c.caller.PersonID, audience.CompanyID, audience.TeamID, tag)
	}
	var after *catalog.Key
	var err error
	if sealed != "" {
		if after, err = s.openToolKey(scope(), sealed); err != nil {
			return err
		}
	}
	page, err := s.pages.get(s, audience, tag, after, limit)
	if err != nil {
		return err
	}
	if page.last == nil {
		s.sendTagged(w, r, page.tag, page.body, nil)
		return nil
	}
	next := s.Cursors.Seal(scope(), strconv.FormatInt(page.last.Position, 10), page.last.Name, page.last.ID)
	s.sendTagged(w, r, page.tag, page.body, []byte(next+`"}`))
	return nil
}

func (s *Server) openToolKey(scope, sealed string) (*catalog.Key, error) {
	part, err := s.Cursors.Open(scope, sealed, 3)
	if err != nil {
		return nil, err
	}
	position, err := strconv.ParseInt(part[0], 10, 64)
	if err != nil {
		return nil, err
	}
	return &catalog.Key{Position: position, Name: part[1], ID: part[2]}, nil
}

// viewFor gives the catalog as the request's account sees it, for routes whose
// only parameter is the account.
func (s *Server) viewFor(r *http.Request) (*catalog.View, error) {
	c := callOf(r)
	return s.Catalog.Snapshot().View(generation.AudienceOf(c.caller)), c.params.failed()
}

func (s *Server) getTool(w http.ResponseWriter, r *http.Request) error {
	view, err := s.viewFor(r)
	if err != nil {
		return err
	}
	t, ok := view.Tool(r.PathValue("tool_id"))
	if !ok {
		return fault.New(fault.NotFound, "There is no such tool.")
	}
	return s.replyTagged(w, r, s.asDetail(view, t))
}

func (s *Server) listToolTags(w http.ResponseWriter, r *http.Request) error {
	view, err := s.viewFor(r)
	if err != nil {
		return err
	}
	return s.replyTagged(w, r, asTagList(view.Tags()))
}

func (s *Server) listKits(w http.ResponseWriter, r *http.Request) error {
	view, err := s.viewFor(r)
	if err != nil {
		return err
	}
	return s.replyTagged(w, r, s.asKitList(view))
}

// getPicture serves the pictures of the catalog. They are named by their
// content, so they never change.
func (s *Server) getPicture(w http.ResponseWriter, r *http.Request) error {
	missing := fault.New(fault.NotFound, "There is no such picture.")
	name, isPNG := strings.CutSuffix(r.PathValue("picture"), ".png")
	if !isPNG || len(name) != 64 || strings.Trim(name, "0123456789abcdef") != "" {
		return missing
	}
	key := catalog.AssetKey(catalog.Asset(name))
	info, err := s.Blobs.Stat(r.Context(), key)
	if errors.Is(err, blob.ErrNotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	body, err := s.files.Open(r.Context(), blob.File{Key: key, Size: info.Size, SHA256: name}, 0, info.Size)
	if errors.Is(err, blob.ErrNotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	defer body.Close()
	picture, err := io.ReadAll(body) // before the answer begins, and no more than a manifest may bring
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "image/png")
	h.Set("Content-Length", strconv.FormatInt(info.Size, 10))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // plugins show them in their own pages
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, err = w.Write(picture)
	return err
}
