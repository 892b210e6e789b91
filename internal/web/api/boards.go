package api

import (
	"net/http"
	"strconv"
	"strings"

	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/board"
	"atelier/internal/people/company"
	"atelier/internal/web/access"
	"atelier/internal/web/api/wire"
)

// boardRoutes are those about boards.
func (s *Server) boardRoutes() []route {
	return []route{
		{"GET", prefix + "/boards", access.ForAccount, s.listBoards},
		{"POST", prefix + "/boards", access.ForAccount, s.createBoard},
		{"GET", prefix + "/boards/{board_id}", access.ForAccount, s.getBoard},
		{"PATCH", prefix + "/boards/{board_id}", access.ForAccount, s.renameBoard},
		{"DELETE", prefix + "/boards/{board_id}", access.ForAccount, s.deleteBoard},
		{"POST", prefix + "/boards/{board_id}/restore", access.ForAccount, s.restoreBoard},
		{"POST", prefix + "/boards/{board_id}/nodes", access.ForAccount, s.addNode},
		{"PATCH", prefix + "/boards/{board_id}/nodes", access.ForAccount, s.changeNodes},
		{"PATCH", prefix + "/boards/{board_id}/nodes/{node_id}", access.ForAccount, s.changeNode},
		{"DELETE", prefix + "/boards/{board_id}/nodes/{node_id}", access.ForAccount, s.deleteNode},
		{"GET", prefix + "/boards/{board_id}/events", access.ForAccount, s.streamBoard},
	}
}

// nodePage is how many nodes a page of a board has at the most.
const nodePage = 1000

// boardCall is what a request about boards is made of.
type boardCall struct {
	*call
	viewer board.Viewer
	id     string // of the board
	match  board.Match
}

func boardCallOf(r *http.Request) (boardCall, error) {
	c := callOf(r)
	b := boardCall{call: c, id: r.PathValue("board_id"), viewer: board.Viewer{
		PersonID: c.caller.PersonID, AccountID: c.caller.AccountID, Manager: c.caller.May(company.ManageTeam),
	}}
	var err error
	if b.match, err = ifMatch(r.Header); err != nil {
		return b, err
	}
	return b, c.params.failed()
}

// ifMatch reads the header of that name (RFC 9110 section 13.1.1). Tags that we
// did not make, and weak ones, match nothing.
func ifMatch(h http.Header) (board.Match, error) {
	lines, given := h["If-Match"]
	if !given {
		return board.Match{}, nil
	}
	refuse := fault.New(fault.Invalid, "The If-Match header is not valid.").Field("If-Match", `Must be * or a list of entity tags, such as "12".`)
	text := strings.Trim(strings.Join(lines, ","), " \t")
	if text == "*" {
		return board.Match{}, nil // what is not there is not found anyway
	}
	m := board.Match{Strict: true}
	for tags := 0; ; {
		text = strings.TrimLeft(text, " \t,") // empty members of a list mean nothing
		if text == "" {
			if tags == 0 {
				return board.Match{}, refuse
			}
			return m, nil
		}
		tag, rest, ok := entityTag(text)
		if rest = strings.TrimLeft(rest, " \t"); !ok || rest != "" && rest[0] != ',' || tags == maxTags {
			return board.Match{}, refuse
		}
		if n, err := strconv.ParseInt(tag, 10, 64); err == nil && revisionTag(n) == `"`+tag+`"` {
			m.Revisions = append(m.Revisions, n)
		}
		text = rest
		tags++
	}
}

// maxTags is how many tags a header may name.
const maxTags = 100

// entityTag takes a tag off the front of a list. What a weak one has between
// its quotes is as good as nothing.
func entityTag(text string) (tag, rest string, ok bool) {
	text, weak := strings.CutPrefix(text, "W/")
	if text, ok = strings.CutPrefix(text, `"`); !ok {
		return "", "", false
	}
	if tag, rest, ok = strings.Cut(text, `"`); !ok {
		return "", "", false
	}
	for i := range len(tag) {
		if c := tag[i]; c <= ' ' || c == 0x7f {
			return "", "", false
		}
	}
	if weak {
		tag = ""
	}
	return tag, rest, true
}

func revisionTag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// tagged says at which revision the board is with this answer.
func tagged(w http.ResponseWriter, revision int64) {
	w.Header()["Etag"] = []string{revisionTag(revision)}
}

func (s *Server) listBoards(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	trash := c.params.yesNo("deleted")
	deleted := trash != nil && *trash
	pg, err := s.page(c.params, cursor.Scope("boards", c.caller.PersonID, c.caller.AccountID, strconv.FormatBool(deleted)))
	if err != nil {
		return err
	}
	after, err := pg.boardPlace()
	if err != nil {
		return err
	}
	all, err := s.Boards.List(r.Context(), c.viewer, deleted, after, pg.limit+1)
	if err != nil {
		return err
	}
	all, more, next := cut(s, pg, all, func(b board.Board) (string, string) { return micros(b.Created), b.ID })
	list := wire.BoardList{Data: make([]wire.BoardSummary, 0, len(all)), HasMore: more, NextCursor: next}
	for _, b := range all {
		list.Data = append(list.Data, asSummary(b))
	}
	return reply(w, http.StatusOK, list)
}

// boardPlace is where the page before ended, in lists of boards and nodes.
func (l listing) boardPlace() (*board.Place, error) {
	if l.after == nil {
		return nil, nil
	}
	at, err := l.time()
	return &board.Place{Created: at, ID: l.after[1]}, err
}

func (s *Server) createBoard(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	d, err := decode[wire.BoardDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	b, err := s.Boards.Create(r.Context(), c.viewer, d.Name)
	if err != nil {
		return err
	}
	return s.replyBoard(w, http.StatusCreated, c, b, board.Page{})
}

// scope is that of cursors within a board.
func (c boardCall) scope(boardID string) string {
	return cursor.Scope("board", c.caller.PersonID, c.caller.AccountID, boardID)
}

// replyBoard answers with a board and a page of its nodes.
func (s *Server) replyBoard(w http.ResponseWriter, status int, c boardCall, b board.Board, p board.Page) error {
	var next *string
	if p.More {
		last := p.Nodes[len(p.Nodes)-1]
		sealed := s.Cursors.Seal(c.scope(b.ID), micros(last.Created), last.ID)
		next = &sealed
	}
	tagged(w, b.Revision)
	return reply(w, status, s.asBoard(b, p.Nodes, next, c.caller.PersonID))
}

func (s *Server) getBoard(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	pg, err := s.pageOf(c.params, c.scope(c.id), nodePage, nodePage)
	if err != nil {
		return err
	}
	after, err := pg.boardPlace()
	if err != nil {
		return err
	}
	b, p, err := s.Boards.Get(r.Context(), c.viewer, c.id, after, pg.limit)
	if err != nil {
		return err
	}
	return s.replyBoard(w, http.StatusOK, c, b, p)
}

func (s *Server) renameBoard(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	d, err := decode[wire.BoardDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	b, p, err := s.Boards.Rename(r.Context(), c.viewer, c.id, c.match, d.Name, nodePage)
	if err != nil {
		return err
	}
	return s.replyBoard(w, http.StatusOK, c, b, p)
}

func (s *Server) deleteBoard(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	if err := s.Boards.Delete(r.Context(), c.viewer, c.id, c.match); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) restoreBoard(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	b, p, err := s.Boards.Restore(r.Context(), c.viewer, c.id, nodePage)
	if err != nil {
		return err
	}
	return s.replyBoard(w, http.StatusOK, c, b, p)
}

func (s *Server) addNode(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	d, err := decode[wire.NodeDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	n, err := s.Boards.Add(r.Context(), c.viewer, c.id, c.match, draftNode(d))
	if err != nil {
		return err
	}
	tagged(w, n.Revision)
	return reply(w, http.StatusCreated, s.asNode(n, c.caller.PersonID))
}

func (s *Server) changeNodes(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	d, err := decode[wire.NodeChanges](w, r, s.Limits)
	if err != nil {
		return err
	}
	changed, err := s.Boards.Change(r.Context(), c.viewer, c.id, c.match, asChanges(d))
	if err != nil {
		return err
	}
	tagged(w, changed.Revision)
	return reply(w, http.StatusOK, wire.NodesChanged{
		Revision: changed.Revision, Created: s.asNodes(changed.Created, c.caller.PersonID), Updated: s.asNodes(changed.Updated, c.caller.PersonID),
		Deleted: append([]string{}, changed.Deleted...),
	})
}

func (s *Server) changeNode(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	d, err := decode[wire.NodeChange](w, r, s.Limits)
	if err != nil {
		return err
	}
	n, err := s.Boards.Set(r.Context(), c.viewer, c.id, c.match, board.Update{ID: r.PathValue("node_id"), Change: asChange(d)})
	if err != nil {
		return err
	}
	tagged(w, n.Revision)
	return reply(w, http.StatusOK, s.asNode(n, c.caller.PersonID))
}

func (s *Server) deleteNode(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	revision, err := s.Boards.Remove(r.Context(), c.viewer, c.id, c.match, r.PathValue("node_id"))
	if err != nil {
		return err
	}
	tagged(w, revision)
	return done(w)
}
