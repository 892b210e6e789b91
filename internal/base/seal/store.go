// Package seal keeps keyed hashes of rows that somebody with access to the
// database, but without the installation's secret, could gain by changing.
//
// A table that is sealed has a column seal. Its package says in a Table which
// columns the seal covers, and renews it whenever it writes them: in the same
// statement with Of, where runs pass by, and else with Renew or Change. Verify names the
// rows whose seal does not fit. A row that is deleted takes its seal along: of
// those that must stay, other checks tell.
package seal

import (
	"context"
	"crypto/hmac"
	"fmt"
	"strconv"
	"strings"

	"atelier/internal/base/sqldb"
)

// Table is a table whose rows are sealed.
type Table struct {
	Name string
	// Key are the columns that name a row, all of them texts.
	Key []string
	// Columns are what the seal covers besides.
	Columns []string
}

// Of gives the seal of a row whose key and columns have these values, in the
// order of the table: whole numbers in decimal, nothing as "".
func (t Table) Of(tx *sqldb.Tx, values ...string) string {
	if len(values) != len(t.Key)+len(t.Columns) {
		panic("seal: " + t.Name + " has other columns")
	}
	return tx.Seal(append([]string{t.Name}, values...)...)
}

// row is a row of a sealed table.
type row struct {
	values []string // the key, then the columns
	seal   string
}

// eachRow reads those where a condition holds.
func (t Table) eachRow(ctx context.Context, tx *sqldb.Tx, where string, args []any, found func(row) error) error {
	names := append(append([]string{}, t.Key...), t.Columns...)
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = `coalesce(CAST(` + name + ` AS TEXT), '')`
	}
	query := `SELECT ` + strings.Join(texts, `, `) + `, seal FROM ` + t.Name + ` WHERE ` + where
	return tx.Each(ctx, query, args, func(s sqldb.Scanner) error {
		r := row{values: make([]string, len(names))}
		places := make([]any, 0, len(names)+1)
		for i := range r.values {
			places = append(places, &r.values[i])
		}
		if err := s.Scan(append(places, &r.seal)...); err != nil {
			return err
		}
		return found(r)
	})
}

// Renew seals the rows where a condition holds as they are now. Callers have
// just written all that the seal covers: where a part of it stays as it was, they
// use Change.
func (t Table) Renew(ctx context.Context, tx *sqldb.Tx, where string, args ...any) error {
	_, err := t.renewSeals(ctx, tx, nil, where, args)
	return err
}

// beginRows is how many rows Begin holds in memory at once.
const beginRows = 20_000

// Begin seals the rows that have no seal, and says how many they were. It is for
// what was stored before there were seals.
func (t Table) Begin(ctx context.Context, tx *sqldb.Tx) (n int, err error) {
	for {
		sealed, err := t.renewSeals(ctx, tx, nil, `seal = '' LIMIT `+strconv.Itoa(beginRows), nil)
		n += sealed
		if err != nil || sealed < beginRows {
			return n, err
		}
	}
}

// Change has write change the rows where a condition holds, before and after,
// and seals them anew. A row whose seal did not fit before keeps it: what
// somebody put there is not sealed with what we change.
func (t Table) Change(ctx context.Context, tx *sqldb.Tx, where string, args []any, write func() error) error {
	broken := map[string]bool{}
	err := t.eachRow(ctx, tx, where, args, func(r row) error {
		if !t.sealFits(tx, r) {
			broken[t.rowName(r)] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("seal %s: %w", t.Name, err)
	}
	if err := write(); err != nil {
		return err
	}
	_, err = t.renewSeals(ctx, tx, broken, where, args)
	return err
}

func (t Table) sealFits(tx *sqldb.Tx, r row) bool {
	return hmac.Equal([]byte(r.seal), []byte(t.Of(tx, r.values...)))
}

func (t Table) rowName(r row) string { return t.Name + " " + strings.Join(r.values[:len(t.Key)], " ") }

// renewSeals seals the rows where a condition holds, except those that are broken, and
// says how many.
func (t Table) renewSeals(ctx context.Context, tx *sqldb.Tx, broken map[string]bool, where string, args []any) (int, error) {
	var all []row
	err := t.eachRow(ctx, tx, where, args, func(r row) error {
		if !broken[t.rowName(r)] {
			all = append(all, r)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("seal %s: %w", t.Name, err)
	}
	for _, r := range all {
		var args sqldb.Args
		update := `UPDATE ` + t.Name + ` SET seal = ` + args.Add(t.Of(tx, r.values...)) + ` WHERE TRUE`
		for i, name := range t.Key {
			update += ` AND ` + name + ` = ` + args.Add(r.values[i])
		}
		if _, err := tx.Exec(ctx, update, args...); err != nil {
			return 0, fmt.Errorf("seal %s: %w", t.Name, err)
		}
	}
	return len(all), nil
}

// Verify tells of every row that has no seal, or one that does not fit.
func (t Table) Verify(ctx context.Context, tx *sqldb.Tx, tell func(problem string)) error {
	err := t.eachRow(ctx, tx, `TRUE`, nil, func(r row) error {
		switch {
		case r.seal == "":
			tell(t.rowName(r) + " has no seal")
		case !t.sealFits(tx, r):
			tell(t.rowName(r) + " is not as it was sealed")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify the seals of %s: %w", t.Name, err)
	}
	return nil
}
