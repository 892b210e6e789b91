package sqldb_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// TestTablesAreAlike compares the tables, columns, types and keys of the two
// databases: rows can be copied from one to the other only if these are equal.
func TestTablesAreAlike(t *testing.T) {
	t.Parallel()
	var found [][]sqldb.Table
	for _, engine := range dbtest.Engines {
		tables, err := dbtest.Open(t, dbtest.URL(t, engine)).Tables(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, tables)
		names := map[string]int{}
		for i, table := range tables {
			names[table.Name] = i
		}
		for _, pair := range [][2]string{{"person", "run"}, {"run", "idempotency"}, {"ledger_entry", "ledger_day"}, {"team_role", "team_member"}} {
			before, okBefore := names[pair[0]]
			after, okAfter := names[pair[1]]
			if !okBefore || !okAfter || before > after {
				t.Errorf("%s: %s is number %d and %s is number %d", engine, pair[0], before, pair[1], after)
			}
		}
		for _, own := range []string{"job", "river_job", "goose_db_version"} {
			if _, ok := names[own]; ok {
				t.Errorf("%s: the table %s is listed", engine, own)
			}
		}
	}
	if !reflect.DeepEqual(found[0], found[1]) {
		t.Errorf("the tables differ:\n%v\n%v", found[0], found[1])
	}
}

// oddTable is a table for every kind of column.
const oddTable = `CREATE TABLE odd (part BIGINT NOT NULL, name TEXT NOT NULL, b BOOLEAN, f DOUBLE PRECISION, n BIGINT, t TEXT, PRIMARY KEY (name, part))`

// oddRows has the values that are likely to change on the way from one database
// to another.
func oddRows() (rows []sqldb.TableRow) {
	add := func(b, f, n, text any) {
		// The columns are ordered by name: b, f, n, name, part, t.
		rows = append(rows, sqldb.TableRow{b, f, n, fmt.Sprintf("name %c", 'A'+len(rows)%26), int64(len(rows)), text})
	}
	add(nil, nil, nil, nil)
	add(true, 0.1, int64(math.MaxInt64), "")
	add(false, -0.5, int64(math.MinInt64), "ä 漢字 🙂 \\ ' \" \t\n")
	add(true, 3.0, int64(0), "NULL")
	add(false, math.MaxFloat64, int64(-1), `\N`)
	add(false, math.SmallestNonzeroFloat64, int64(1), "\ufeff\u200b")
	for i := range 30 {
		add(i%2 == 0, float64(i)/3, int64(i), strings.Repeat("x", i*100))
	}
	return rows
}

func openOdd(t *testing.T, engine string) (*sqldb.DB, sqldb.Table) {
	t.Helper()
	db := dbtest.Open(t, dbtest.Bare(t, engine))
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec(t.Context(), oddTable)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tables, err := db.Tables(t.Context())
	if err != nil || len(tables) != 1 {
		t.Fatalf("tables = %v, %v", tables, err)
	}
	return db, tables[0]
}

func insertAll(t *testing.T, db *sqldb.DB, table sqldb.Table, rows []sqldb.TableRow) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return tx.InsertRows(t.Context(), table, rows) }); err != nil {
		t.Fatal(err)
	}
}

func digest(t *testing.T, db *sqldb.DB, table sqldb.Table) (d sqldb.TableDigest) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *sqldb.Tx) (err error) { d, err = tx.DigestTable(t.Context(), table); return err })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRowsKeepTheirValues copies rows between all pairs of databases, page by
// page, and compares values and digests.
func TestRowsKeepTheirValues(t *testing.T) {
	t.Parallel()
	for _, from := range dbtest.Engines {
		for _, to := range dbtest.Engines {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				source, table := openOdd(t, from)
				target, same := openOdd(t, to)
				if !reflect.DeepEqual(table, same) {
					t.Fatalf("tables = %v and %v", table, same)
				}
				want := oddRows()
				insertAll(t, source, table, want)
				var copied []sqldb.TableRow
				var after []any
				for {
					var page []sqldb.TableRow
					err := source.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
						page, err = tx.ReadRows(t.Context(), table, after, 7)
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					if len(page) == 0 {
						break
					}
					insertAll(t, target, table, page)
					copied = append(copied, page...)
					after = table.KeyOf(page[len(page)-1])
				}
				slices.SortFunc(copied, func(a, b sqldb.TableRow) int { return int(a[4].(int64) - b[4].(int64)) })
				if !reflect.DeepEqual(copied, want) {
					t.Errorf("copied\n%v\nwant\n%v", copied, want)
				}
				if a, b := digest(t, source, table), digest(t, target, table); a != b || a.Rows != int64(len(want)) {
					t.Errorf("digests of %d and %d rows: %v and %v", a.Rows, b.Rows, a, b)
				}
			})
		}
	}
}

// TestDigestNoticesEveryChange changes one value at a time, and swaps values
// between rows and columns.
func TestDigestNoticesEveryChange(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db, table := openOdd(t, engine)
			insertAll(t, db, table, oddRows())
			seen := map[sqldb.TableDigest]string{digest(t, db, table): "nothing"}
			for _, change := range []string{
				`UPDATE odd SET b = TRUE WHERE part = 2`,
				`UPDATE odd SET f = NULL WHERE part = 1`,
				`UPDATE odd SET n = 2 WHERE part = 5`,
				`UPDATE odd SET t = NULL WHERE t = ''`,
				`UPDATE odd SET t = 'null' WHERE part = 3`,
				`UPDATE odd SET n = CASE part WHEN 8 THEN 28 ELSE 2 END WHERE part IN (8, 34)`,
				`DELETE FROM odd WHERE part = 20`,
			} {
				err := db.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := tx.Exec(t.Context(), change); return err })
				if err != nil {
					t.Fatal(err)
				}
				d := digest(t, db, table)
				if before, ok := seen[d]; ok {
					t.Errorf("the digest after %q is that after %q", change, before)
				}
				seen[d] = change
			}
		})
	}
}

func TestTextThatPostgresCannotStore(t *testing.T) {
	t.Parallel()
	db, table := openOdd(t, "postgres")
	for _, text := range []string{"a\x00b", "\xff"} {
		row := sqldb.TableRow{nil, nil, nil, "one", int64(1), text}
		err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return tx.InsertRows(t.Context(), table, []sqldb.TableRow{row}) })
		if err == nil || !strings.Contains(err.Error(), "the column t of the row [one 1]") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestHalfMovedDatabase opens a database that is the target of a move.
func TestHalfMovedDatabase(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), `CREATE TABLE `+sqldb.MoveTable+` (name TEXT PRIMARY KEY)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Migrate(t.Context()); !errors.Is(err, sqldb.ErrUnfinishedMove) {
			t.Errorf("migrate: %v", err)
		}
		if err := db.CheckMigrated(t.Context()); !errors.Is(err, sqldb.ErrUnfinishedMove) {
			t.Errorf("check: %v", err)
		}
		if err := db.MigrateMoveTarget(t.Context()); err != nil {
			t.Errorf("migrate for the move: %v", err)
		}
	})
}
