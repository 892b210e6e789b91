package board

import (
	"context"
	"slices"
	"strings"

	"atelier/internal/base/sqldb"
)

// presence is a row of the table board_presence.
type presence struct {
	boardID  string
	personID string
	stream   string // "" for the row with the cursor and the selection
	node     string // the process that serves the stream; "" without a stream
	cursor   *Point
	selected []string
}

func putPresence(ctx context.Context, tx *sqldb.Tx, p presence) error {
	var x, y *float64
	if p.cursor != nil {
		x = &p.cursor.X
		y = &p.cursor.Y
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO board_presence (board_id, person_id, stream, node, x, y, selected, until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (board_id, person_id, stream) DO UPDATE SET x = excluded.x, y = excluded.y, selected = excluded.selected, until = excluded.until`,
		p.boardID, p.personID, p.stream, p.node, x, y, strings.Join(p.selected, ","), sqldb.At(tx.Now.Add(presenceLifetime)))
	return err
}

func deleteStream(ctx context.Context, tx *sqldb.Tx, boardID, personID, stream string) error {
	_, err := tx.Exec(ctx, `DELETE FROM board_presence WHERE board_id = $1 AND person_id = $2 AND stream = $3`, boardID, personID, stream)
	return err
}

// deleteCursorWithoutStream deletes the cursor and the selection of a person
// who has no open stream of the board.
func deleteCursorWithoutStream(ctx context.Context, tx *sqldb.Tx, boardID, personID string) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM board_presence WHERE board_id = $1 AND person_id = $2 AND stream = ''
			AND NOT EXISTS (SELECT 1 FROM board_presence o WHERE o.board_id = $1 AND o.person_id = $2 AND o.stream <> '' AND o.until > $3)`,
		boardID, personID, sqldb.At(tx.Now))
	return err
}

func extendStreams(ctx context.Context, tx *sqldb.Tx, node string) error {
	_, err := tx.Exec(ctx, `UPDATE board_presence SET until = $2 WHERE node = $1`, node, sqldb.At(tx.Now.Add(presenceLifetime)))
	return err
}

func deleteExpired(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM board_presence WHERE until < $1`, sqldb.At(tx.Now.Add(-presenceLifetime)))
	return err
}

// listViewers returns at most maxViewers viewers of each board, by board id and
// sorted by the ids of the people.
func listViewers(ctx context.Context, tx *sqldb.Tx, boardIDs []string) (map[string][]ViewerState, error) {
	in, args := sqldb.In(boardIDs, sqldb.At(tx.Now))
	all := map[string][]ViewerState{}
	err := tx.EachRow(ctx, `
		SELECT v.board_id, v.person_id, p.email, v.x, v.y, v.selected FROM board_presence v JOIN person p ON p.id = v.person_id
		WHERE v.until > $1 AND p.deleted IS NULL AND v.board_id IN `+in+` ORDER BY v.board_id, v.person_id, v.stream`, args, func(row sqldb.Scanner) error {
		var boardID, email, selected string
		var one ViewerState
		var x, y *float64
		if err := row.Scan(&boardID, &one.PersonID, &email, &x, &y, &selected); err != nil {
			return err
		}

		// The row with the cursor precedes the rows of the person's streams.
		seen := all[boardID]
		isSeen := slices.ContainsFunc(seen, func(v ViewerState) bool { return v.PersonID == one.PersonID })
		if isSeen || len(seen) == maxViewers {
			return nil
		}
		one.Name = nameFrom(email)
		if x != nil && y != nil {
			one.Cursor = &Point{X: *x, Y: *y}
		}
		if selected != "" {
			one.Selected = strings.Split(selected, ",")
		}
		all[boardID] = append(seen, one)
		return nil
	})
	return all, err
}
