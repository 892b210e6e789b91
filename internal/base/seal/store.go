// Package seal stores keyed hashes (seals) of rows. They reveal changes by an
// attacker who has access to the database but not to the installation's secret.
//
// A sealed table has a column seal. The package that owns the table declares a
// Table with the columns that the seal covers, and renews the seal whenever it
// writes them: in the same statement with SealOf if speed matters, otherwise
// with RenewSeals or ChangeRows. VerifySeals reports the rows with a wrong
// seal. It cannot detect deleted rows; other checks do.
package seal

import (
	"context"
	"crypto/hmac"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/base/sqldb"
)

// Table describes a database table whose rows are sealed.
type Table struct {
	Name string
	// Key are the columns of the primary key. All must have the type TEXT.
	Key []string
	// Columns are the other columns that the seal covers.
	Columns []string
	// Booleans are the names in Columns that have the type BOOLEAN. As text, a
	// boolean is 1 or 0 on SQLite, and true or false on PostgreSQL. A seal with
	// either form is valid, because a row may come from the other database (see
	// package move).
	Booleans []string
}

// SealOf returns the seal of a row. values are the values of Key and then of
// Columns: integers in decimal, NULL as "".
func (t Table) SealOf(tx *sqldb.Tx, values ...string) string {
	if len(values) != len(t.Key)+len(t.Columns) {
		panic("seal: " + t.Name + ": wrong number of values")
	}
	return tx.SealTexts(append([]string{t.Name}, values...)...)
}

// row is a row of a sealed table.
type row struct {
	values []string // values of the key columns, then of the other sealed columns
	seal   string
}

// eachRow calls found with each row that matches the SQL condition where.
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

// RenewSeals renews the seals of the rows that match the SQL condition where.
// It is for callers that have just written all sealed columns; a caller that
// wrote only some of them must use ChangeRows.
func (t Table) RenewSeals(ctx context.Context, tx *sqldb.Tx, where string, args ...any) error {
	_, err := t.renewSeals(ctx, tx, nil, where, args)
	return err
}

// beginRows is the maximum number of rows that BeginSeals loads into memory at
// once.
const beginRows = 20_000

// BeginSeals seals the rows that have no seal and returns their number. It is
// for rows that were stored before seals were introduced.
func (t Table) BeginSeals(ctx context.Context, tx *sqldb.Tx) (n int, err error) {
	for {
		sealed, err := t.renewSeals(ctx, tx, nil, `seal = '' LIMIT `+strconv.Itoa(beginRows), nil)
		n += sealed
		if err != nil || sealed < beginRows {
			return n, err
		}
	}
}

// ChangeRows calls write, which changes the rows that match the SQL condition
// where, and renews their seals. The condition must match the same rows before
// and after. A row whose seal was already wrong keeps its wrong seal, so that a
// forged row does not become valid.
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
	if hmac.Equal([]byte(r.seal), []byte(t.SealOf(tx, r.values...))) {
		return true
	}
	return len(t.Booleans) > 0 && hmac.Equal([]byte(r.seal), []byte(t.SealOf(tx, t.otherForm(r.values)...)))
}

// otherBoolean maps the text of a boolean on one database to that on the other.
var otherBoolean = map[string]string{"1": "true", "0": "false", "true": "1", "false": "0"}

// otherForm returns the values with booleans as the other database writes them.
func (t Table) otherForm(values []string) []string {
	other := slices.Clone(values)
	for i, name := range t.Columns {
		at := len(t.Key) + i
		if text, ok := otherBoolean[values[at]]; ok && slices.Contains(t.Booleans, name) {
			other[at] = text
		}
	}
	return other
}

func (t Table) rowName(r row) string { return t.Name + " " + strings.Join(r.values[:len(t.Key)], " ") }

// renewSeals renews the seals of the rows that match the SQL condition where,
// except the rows in broken, and returns the number of renewed seals.
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

// VerifySeals calls report for every row whose seal is missing or wrong.
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
