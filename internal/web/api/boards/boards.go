// Package boards serves /api/v2/boards: boards, their nodes and their events.
package boards

import (
	"net/http"
	"strconv"

	"atelier/internal/base/cursor"
	"atelier/internal/base/throttle"
	"atelier/internal/board"
	"atelier/internal/file/library"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for boards.
type Handler struct {
	Boards  *board.Boards
	Links   library.URLSigner
	Streams *rest.Streams
	Moves   *throttle.Buckets // rate limits of presence, by person
	Pages   rest.Pager
	JSON    rest.JSONLimits
}

// Routes returns the routes of the operations on boards.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/boards", access.ForAccount, h.listBoards),
		rest.NewRoute("POST /api/v2/boards", access.ForAccount, h.createBoard),
		rest.NewRoute("GET /api/v2/boards/{board_id}", access.ForAccount, h.getBoard),
		rest.NewRoute("PATCH /api/v2/boards/{board_id}", access.ForAccount, h.renameBoard),
		rest.NewRoute("DELETE /api/v2/boards/{board_id}", access.ForAccount, h.deleteBoard),
		rest.NewRoute("POST /api/v2/boards/{board_id}/restore", access.ForAccount, h.restoreBoard),
		rest.NewRoute("PUT /api/v2/boards/{board_id}/presence", access.ForAccount, h.setPresence),
		rest.NewRoute("POST /api/v2/boards/{board_id}/nodes", access.ForAccount, h.addNode),
		rest.NewRoute("PATCH /api/v2/boards/{board_id}/nodes", access.ForAccount, h.changeNodes),
		rest.NewRoute("PATCH /api/v2/boards/{board_id}/nodes/{node_id}", access.ForAccount, h.changeNode),
		rest.NewRoute("DELETE /api/v2/boards/{board_id}/nodes/{node_id}", access.ForAccount, h.deleteNode),
		rest.NewRoute("GET /api/v2/boards/{board_id}/events", access.ForAccount, h.streamBoard),
	}
}

// nodePage is the maximum number of nodes that one response about a board
// contains.
const nodePage = 1000

// boardCall is a request about boards, with the board id in its path and its
// If-Match header.
type boardCall struct {
	*rest.Call
	boardID string
	match   board.Match
}

func readBoardCall(r *http.Request) (boardCall, error) {
	call := rest.CallOf(r)
	c := boardCall{
		Call:    call,
		boardID: r.PathValue("board_id"),
	}
	var err error
	if c.match, err = parseIfMatch(r.Header); err != nil {
		return c, err
	}
	return c, call.Params.Err()
}

// nodeScope returns the scope to which cursors of a board's nodes are bound.
func (c boardCall) nodeScope(boardID string) string {
	return cursor.Scope("board", c.Principal.PersonID, c.Principal.AccountID, boardID)
}

// pageEnd returns the cursor of the last item of the previous page of boards
// or nodes. It returns nil for the first page.
func pageEnd(page rest.Page) (*board.Cursor, error) {
	if page.After == nil {
		return nil, nil
	}
	at, err := page.AfterTime()
	return &board.Cursor{Created: at, ID: page.After[1]}, err
}

// listBoards serves GET /api/v2/boards: it lists the boards of an account,
// newest first.
func (h *Handler) listBoards(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	deleted := rest.ValueOrZero(call.Params.ReadBool("deleted"))
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("boards", call.Principal.PersonID, call.Principal.AccountID, strconv.FormatBool(deleted)))
	if err != nil {
		return err
	}
	after, err := pageEnd(page)
	if err != nil {
		return err
	}

	all, err := h.Boards.ListBoards(r.Context(), call.Principal, deleted, after, page.Limit+1)
	if err != nil {
		return err
	}
	all, hasMore, next := rest.Cut(page, all, func(b board.Board) (string, string) { return rest.Micros(b.Created), b.ID })
	return rest.Reply(w, http.StatusOK, wire.BoardList{Data: rest.Convert(all, asSummary), HasMore: hasMore, NextCursor: next})
}

// createBoard serves POST /api/v2/boards: it creates a board.
func (h *Handler) createBoard(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	d, err := rest.Decode[wire.BoardDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	b, err := h.Boards.CreateBoard(r.Context(), call.Principal, d.Name)
	if err != nil {
		return err
	}
	return h.replyBoard(w, http.StatusCreated, call, b, board.Page{})
}

// replyBoard responds with a board and a page of its nodes.
func (h *Handler) replyBoard(w http.ResponseWriter, status int, call boardCall, b board.Board, p board.Page) error {
	var next *string
	if p.More {
		last := p.Nodes[len(p.Nodes)-1]
		sealed := h.Pages.Cursors.SealKey(call.nodeScope(b.ID), rest.Micros(last.Created), last.ID)
		next = &sealed
	}
	setRevision(w, b.Revision)
	return rest.Reply(w, status, h.asBoard(b, p.Nodes, next, call.Principal.PersonID))
}

// getBoard serves GET /api/v2/boards/{board_id}: it returns a board with a
// page of its nodes.
func (h *Handler) getBoard(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	page, err := h.Pages.WithSize(nodePage).ReadPage(call.Params, call.nodeScope(call.boardID))
	if err != nil {
		return err
	}
	after, err := pageEnd(page)
	if err != nil {
		return err
	}

	b, p, err := h.Boards.GetBoard(r.Context(), call.Principal, call.boardID, after, page.Limit)
	if err != nil {
		return err
	}
	return h.replyBoard(w, http.StatusOK, call, b, p)
}

// renameBoard serves PATCH /api/v2/boards/{board_id}: it renames a board.
func (h *Handler) renameBoard(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	d, err := rest.Decode[wire.BoardDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	b, p, err := h.Boards.RenameBoard(r.Context(), call.Principal, call.boardID, call.match, d.Name, nodePage)
	if err != nil {
		return err
	}
	return h.replyBoard(w, http.StatusOK, call, b, p)
}

// deleteBoard serves DELETE /api/v2/boards/{board_id}: it moves a board to the
// trash.
func (h *Handler) deleteBoard(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	if err := h.Boards.DeleteBoard(r.Context(), call.Principal, call.boardID, call.match); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// restoreBoard serves POST /api/v2/boards/{board_id}/restore: it restores a
// board from the trash.
func (h *Handler) restoreBoard(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	b, p, err := h.Boards.RestoreBoard(r.Context(), call.Principal, call.boardID, nodePage)
	if err != nil {
		return err
	}
	return h.replyBoard(w, http.StatusOK, call, b, p)
}
