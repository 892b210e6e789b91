// Package seal stores keyed hashes (seals) of rows, so that changes by an
// attacker with access to the database, but without the installation's secret,
// are found.
//
// A sealed table has a column seal. Its package declares a Table with the
// columns that the seal covers, and renews the seal whenever it writes them: in
// the same statement with SealOf if speed matters, otherwise with RenewSeals or
// ChangeRows. VerifySeals reports the rows with a wrong seal. It cannot find
// deleted rows; other checks do.
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
	// Key are the columns of the primary key, all of type TEXT.
	Key []string
	// Columns are the other columns that the seal covers.
	Columns []string
}

// SealOf returns the seal of a row with these values of Key and Columns, in that
// order: integers in decimal, NULL as "".
func (t Table) SealOf(tx *sqldb.Tx, values ...string) string {
	if len(values) != len(t.Key)+len(t.Columns) {
		panic("seal: " + t.Name + ": wrong number of values")
	}
	return tx.SealTexts(append([]string{t.Name}, values...)...)
}

// row is a row of a sealed table.
type row struct {
	values []string // the key, then the columns
	seal   string
}

// eachRow calls found with the rows that match a condition.
func (t Table) eachRow(ctx context.Context, tx *sqldb.Tx, where string, args []any, found func(row) error) error {
	names := append(append([]string{}, t.Key...), t.Columns...)
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = `coalesce(CAST(` + name + ` AS TEXT), '')`
	}
	query := `SELECT ` + strings.Join(texts, `, `) + `, seal FROM ` + t.Name + ` WHERE ` + where
	return tx.EachRow(ctx, query, args, func(s sqldb.Scanner) error {
		r := row{values: make([]string, len(names))}
		columns := make([]any, 0, len(names)+1)
		for i := range r.values {
			columns = append(columns, &r.values[i])
		}
		if err := s.Scan(append(columns, &r.seal)...); err != nil {
			return err
		}
		return found(r)
	})
}

// RenewSeals seals the rows that match a condition. The caller must have written
// all sealed columns; a caller that wrote only some of them uses ChangeRows.
func (t Table) RenewSeals(ctx context.Context, tx *sqldb.Tx, where string, args ...any) error {
	_, err := t.renewSeals(ctx, tx, nil, where, args)
	return err
}

// beginRows is the number of rows that BeginSeals holds in memory at once.
const beginRows = 20_000

// BeginSeals seals the rows without a seal and returns their number. It is for rows
// that were stored before seals were introduced.
func (t Table) BeginSeals(ctx context.Context, tx *sqldb.Tx) (n int, err error) {
	for {
		sealed, err := t.renewSeals(ctx, tx, nil, `seal = '' LIMIT `+strconv.Itoa(beginRows), nil)
		n += sealed
		if err != nil || sealed < beginRows {
			return n, err
		}
	}
}

// ChangeRows calls write, which changes the rows that match a condition, and renews
// their seals. The condition must match before and after. A row with a wrong seal
// keeps it, so that a forged row is not sealed together with the change.
func (t Table) ChangeRows(ctx context.Context, tx *sqldb.Tx, where string, args []any, write func() error) error {
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
	return hmac.Equal([]byte(r.seal), []byte(t.SealOf(tx, r.values...)))
}

func (t Table) rowName(r row) string { return t.Name + " " + strings.Join(r.values[:len(t.Key)], " ") }

// renewSeals seals the rows that match a condition, except broken rows, and
// returns the number of sealed rows.
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
		update := `UPDATE ` + t.Name + ` SET seal = ` + args.Add(t.SealOf(tx, r.values...)) + ` WHERE TRUE`
		for i, name := range t.Key {
			update += ` AND ` + name + ` = ` + args.Add(r.values[i])
		}
		if _, err := tx.Exec(ctx, update, args...); err != nil {
			return 0, fmt.Errorf("seal %s: %w", t.Name, err)
		}
	}
	return len(all), nil
}

// VerifySeals reports every row without a seal or with a wrong one.
func (t Table) VerifySeals(ctx context.Context, tx *sqldb.Tx, report func(problem string)) error {
	err := t.eachRow(ctx, tx, `TRUE`, nil, func(r row) error {
		switch {
		case r.seal == "":
			report(t.rowName(r) + " has no seal")
		case !t.sealFits(tx, r):
			report(t.rowName(r) + " does not match its seal")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify the seals of %s: %w", t.Name, err)
	}
	return nil
}
