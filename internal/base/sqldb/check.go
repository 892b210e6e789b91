package sqldb

import (
	"context"
	"time"
)

// Check is an invariant of the stored data that SQL can check. For each stored
// row that violates the invariant, Query returns a row with one text column
// that describes the violation.
type Check struct {
	Name  string
	Query string
}

// Violation is a row that violates the invariant of a Check.
type Violation struct {
	Check string
	Row   string
}

// verifyLimit is the maximum total time of all checks.
const verifyLimit = time.Hour

// VerifyChecks runs the checks on one consistent snapshot and returns the
// violations. It writes nothing.
func (db *DB) VerifyChecks(ctx context.Context, checks []Check) ([]Violation, error) {
	var found []Violation
	ctx = WithLimit(ctx, verifyLimit)
	err := db.Read(ctx, func(tx *Tx) error {
		found = nil
		for _, c := range checks {
			err := tx.EachRow(ctx, c.Query, nil, func(row Scanner) error {
				v := Violation{Check: c.Name}
				if err := row.Scan(&v.Row); err != nil {
					return err
				}
				found = append(found, v)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}
