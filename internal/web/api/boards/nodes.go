package boards

import (
	"net/http"

	"atelier/internal/board"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// addNode serves POST /api/v2/boards/{board_id}/nodes: it adds a node to a
// board.
func (h *Handler) addNode(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	d, err := rest.Decode[wire.NodeDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	n, err := h.Boards.AddNode(r.Context(), call.Principal, call.boardID, call.match, toDraft(d))
	if err != nil {
		return err
	}
	setRevision(w, n.Revision)
	return rest.Reply(w, http.StatusCreated, h.asNode(n, call.Principal.PersonID))
}

// changeNodes serves PATCH /api/v2/boards/{board_id}/nodes: it creates,
// changes and deletes nodes in one revision.
func (h *Handler) changeNodes(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	d, err := rest.Decode[wire.NodeChanges](w, r, h.JSON)
	if err != nil {
		return err
	}
	changed, err := h.Boards.ChangeNodes(r.Context(), call.Principal, call.boardID, call.match, toChanges(d))
	if err != nil {
		return err
	}
	setRevision(w, changed.Revision)
	return rest.Reply(w, http.StatusOK, wire.NodeChangesResult{
		Revision: changed.Revision,
		Created:  h.asNodes(changed.Created, call.Principal.PersonID),
		Updated:  h.asNodes(changed.Updated, call.Principal.PersonID),
		Deleted:  rest.ListOrEmpty(changed.Deleted),
	})
}

// changeNode serves PATCH /api/v2/boards/{board_id}/nodes/{node_id}: it
// changes a node.
func (h *Handler) changeNode(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	d, err := rest.Decode[wire.NodeChange](w, r, h.JSON)
	if err != nil {
		return err
	}
	update := board.Update{ID: r.PathValue("node_id"), Change: toChange(d)}
	n, err := h.Boards.SetNode(r.Context(), call.Principal, call.boardID, call.match, update)
	if err != nil {
		return err
	}
	setRevision(w, n.Revision)
	return rest.Reply(w, http.StatusOK, h.asNode(n, call.Principal.PersonID))
}

// deleteNode serves DELETE /api/v2/boards/{board_id}/nodes/{node_id}: it
// deletes a node.
func (h *Handler) deleteNode(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	revision, err := h.Boards.RemoveNode(r.Context(), call.Principal, call.boardID, call.match, r.PathValue("node_id"))
	if err != nil {
		return err
	}
	setRevision(w, revision)
	return rest.NoContent(w)
}
