package boards

import (
	"net/http"

	"atelier/internal/board"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// MovesPerMinute is the maximum number of cursor positions that a person can
// send in a minute.
const MovesPerMinute = 600

// setPresence serves PUT /api/v2/boards/{board_id}/presence: it shows the
// caller to the other viewers of a board.
func (h *Handler) setPresence(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	if err := rest.CheckRate(h.Moves, call.Principal.PersonID); err != nil {
		return err
	}
	d, err := rest.Decode[wire.PresenceDraft](w, r, h.JSON)
	if err != nil {
		return err
	}

	var cursor *board.Point
	if d.Cursor != nil {
		cursor = &board.Point{X: d.Cursor.X, Y: d.Cursor.Y}
	}
	if err := h.Boards.ShowViewer(r.Context(), call.Principal, call.boardID, cursor, rest.ValueOrZero(d.Selected)); err != nil {
		return err
	}
	return rest.NoContent(w)
}
