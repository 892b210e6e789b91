package board_test

import (
	"testing"

	"atelier/internal/board"
)

func TestChecksSeeWhatIsWrong(t *testing.T) {
	each(t, func(w fixture) {
		annaID, bertID := w.Person(0), w.Person(0)
		anna := own(annaID)
		b := w.board(anna)
		item, runID := w.result(bertID)
		upload := w.Upload(bertID, bertID, onePNG)
		node := w.add(anna, b.ID, text("x"))
		gone := w.add(anna, b.ID, text("y"))
		_, err := w.boards.RemoveNode(w.Context(), anna, b.ID, board.Match{}, gone.ID)
		w.OK(err)
		one, other := ` WHERE id = '`+node.ID+`'`, ` WHERE id = '`+gone.ID+`'`
		for damage, want := range map[string]string{
			`UPDATE board SET account_id = 'x', person_id = person_id`:                "a board belongs to a person or a team",
			`UPDATE board SET person_id = '` + bertID + `'`:                           "a personal board was created by its owner",
			`UPDATE board SET nodes = 2`:                                              "a board has the right number of nodes",
			`UPDATE board SET forgotten = 5`:                                          "the oldest revision that a board remembers exists",
			`UPDATE board SET forgotten = -1`:                                         "the oldest revision that a board remembers exists",
			`UPDATE board_node SET revision = 5` + one:                                "the revision of a node is a revision of its board",
			`UPDATE board_node SET revision = 1` + one:                                "the revision of a node is a revision of its board",
			`UPDATE board_node SET text = 'x'` + other:                                "a deleted node has no content",
			`UPDATE board_node SET ref = 'x'` + other:                                 "a deleted node has no content",
			`UPDATE board_node SET ref = 'x'` + one:                                   "a text node has no reference, every other node has one",
			`UPDATE board_node SET kind = 'UPLOAD_REF'` + one:                         "a text node has no reference, every other node has one",
			`UPDATE board_node SET width = -1` + one:                                  "the size, position and text of a node are within the limits",
			`UPDATE board_node SET x = 2e9` + one:                                     "the size, position and text of a node are within the limits",
			`UPDATE board_node SET z = 2000000000` + one:                              "the size, position and text of a node are within the limits",
			`UPDATE board_node SET kind = 'UPLOAD_REF', ref = '` + upload + `'` + one: "a node refers only to items of its own account",
			`UPDATE board_node SET kind = 'GENERATION', ref = '` + runID + `'` + one:  "a node refers only to items of its own account",
			`UPDATE board_node SET kind = 'LIBRARY_REF', ref = '` + item + `'` + one:  "a node refers only to items of its own account",
		} {
			if found := w.Damage(board.Checks, damage); len(found) != 1 || !found[want] {
				w.Errorf("%s\nfound %v, want %q", damage, found, want)
			}
		}
	})
}
