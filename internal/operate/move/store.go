package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"atelier/internal/base/sqldb"
)

// The names of the rows of sqldb.MoveTable. The row of a table is stateTable
// followed by its name.
const (
	stateSource = "source" // identity of the source
	stateJobs   = "jobs"   // "done" after the jobs were copied
	stateFiles  = "files"  // "begun" after the file store was found empty
	stateTable  = "table/" // tableState as JSON
)

// createState creates the table with the progress, and so marks the database as
// the target of a move.
func createState(ctx context.Context, db *sqldb.DB, identity string) error {
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(ctx, `CREATE TABLE `+sqldb.MoveTable+` (name TEXT PRIMARY KEY, value TEXT NOT NULL)`); err != nil {
			return fmt.Errorf("mark the target: %w", err)
		}
		return changeState(ctx, tx, stateSource, "", identity)
	})
}

func dropState(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `DROP TABLE `+sqldb.MoveTable)
	return err
}

// readState returns the value of a row, or "" if there is none.
func readState(ctx context.Context, db *sqldb.DB, name string) (string, error) {
	value, _, err := sqldb.Find[string](ctx, db, `SELECT value FROM `+sqldb.MoveTable+` WHERE name = $1`, name)
	if err != nil {
		return "", fmt.Errorf("read the progress of the move: %w", err)
	}
	return value, nil
}

// changeState replaces a value that readState returned. It returns an error if
// another process has changed the value since.
func changeState(ctx context.Context, tx *sqldb.Tx, name, from, to string) error {
	query := `UPDATE ` + sqldb.MoveTable + ` SET value = $2 WHERE name = $1 AND value = $3`
	args := []any{name, to, from}
	if from == "" {
		query = `INSERT INTO ` + sqldb.MoveTable + ` (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`
		args = args[:2]
	}
	changed, err := sqldb.Changed(ctx, tx, query, args...)
	if err != nil {
		return fmt.Errorf("store the progress of the move: %w", err)
	}
	if !changed {
		return errTwoMoves
	}
	return nil
}

// tableState is the progress of one table.
type tableState struct {
	Begun bool     `json:"begun"`
	Done  bool     `json:"done"`
	Rows  int64    `json:"rows"`
	After []string `json:"after,omitempty"` // the primary key of the newest row; all columns are text or whole numbers

	after []any  // After as column values
	text  string // the stored form
}

func readTableState(ctx context.Context, db *sqldb.DB, t sqldb.Table) (s tableState, err error) {
	if s.text, err = readState(ctx, db, stateTable+t.Name); err != nil || s.text == "" {
		return s, err
	}
	if err := json.Unmarshal([]byte(s.text), &s); err != nil {
		return s, fmt.Errorf("decode the progress of the table %s: %w", t.Name, err)
	}
	if len(s.After) == 0 {
		return s, nil
	}
	if len(s.After) != len(t.Key) {
		return s, errors.New("the progress of the move has a key of another table")
	}
	for i, text := range s.After {
		var value any = text
		if t.Key[i].Kind == sqldb.KindInteger {
			if value, err = strconv.ParseInt(text, 10, 64); err != nil {
				return s, fmt.Errorf("decode the progress of the table %s: %w", t.Name, err)
			}
		}
		s.after = append(s.after, value)
	}
	return s, nil
}

// advance returns the progress after the given rows.
func (s tableState) advance(t sqldb.Table, rows []sqldb.TableRow) tableState {
	next := tableState{Begun: true, Rows: s.Rows + int64(len(rows)), After: s.After, after: s.after}
	if len(rows) > 0 {
		next.after = t.KeyOf(rows[len(rows)-1])
		next.After = make([]string, len(next.after))
		for i, value := range next.after {
			next.After[i] = fmt.Sprint(value)
		}
	}
	return next
}

// changeTableState stores the progress of a table.
func changeTableState(ctx context.Context, tx *sqldb.Tx, t sqldb.Table, from tableState, to *tableState) error {
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	to.text = string(text)
	return changeState(ctx, tx, stateTable+t.Name, from.text, to.text)
}
