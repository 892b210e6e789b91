package board_test

import (
	"testing"

	"atelier/internal/board"
)

func TestChecksSeeWhatIsWrong(t *testing.T) {
	each(t, func(w world) {
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
			`UPDATE board SET person_id = '` + bertID + `'`:                           "somebody's own board is made by them",
			`UPDATE board SET nodes = 2`:                                              "a board knows how many nodes it has",
			`UPDATE board SET forgotten = 5`:                                          "a board forgets only what has happened",
			`UPDATE board SET forgotten = -1`:                                         "a board forgets only what has happened",
			`UPDATE board_node SET revision = 5` + one:                                "a node changed at a revision of its board",
			`UPDATE board_node SET revision = 1` + one:                                "a node changed at a revision of its board",
			`UPDATE board_node SET text = 'x'` + other:                                "a deleted node holds nothing",
			`UPDATE board_node SET ref = 'x'` + other:                                 "a deleted node holds nothing",
			`UPDATE board_node SET ref = 'x'` + one:                                   "a text refers to nothing, every other node to something",
			`UPDATE board_node SET kind = 'UPLOAD_REF'` + one:                         "a text refers to nothing, every other node to something",
			`UPDATE board_node SET width = -1` + one:                                  "a node is no larger and no farther than it may be",
			`UPDATE board_node SET x = 2e9` + one:                                     "a node is no larger and no farther than it may be",
			`UPDATE board_node SET z = 2000000000` + one:                              "a node is no larger and no farther than it may be",
			`UPDATE board_node SET kind = 'UPLOAD_REF', ref = '` + upload + `'` + one: "a node refers to nothing of another account",
			`UPDATE board_node SET kind = 'GENERATION', ref = '` + runID + `'` + one:  "a node refers to nothing of another account",
			`UPDATE board_node SET kind = 'LIBRARY_REF', ref = '` + item + `'` + one:  "a node refers to nothing of another account",
		} {
			if found := w.Damage(board.Checks, damage); len(found) != 1 || !found[want] {
				w.Errorf("%s\nfound %v, want %q", damage, found, want)
			}
		}
	})
}
