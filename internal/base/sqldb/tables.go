package sqldb

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// Kind is the type of a column, as the migrations declare it.
type Kind string

// The kinds of columns that the migrations use.
const (
	KindText    Kind = "text"
	KindInteger Kind = "bigint"
	KindBoolean Kind = "boolean"
	KindFloat   Kind = "double precision"
)

// TableColumn is a column of a Table.
type TableColumn struct {
	Name string
	Kind Kind
}

// Table describes a table that has the same columns on both databases.
type Table struct {
	Name    string
	Columns []TableColumn // ordered by name
	Key     []TableColumn // columns of the primary key, in the order of the key
}

// ownTables are tables whose rows another database cannot use: those of the
// migrations and of the queue. The package queue lists and adds jobs on either
// database.
var ownTables = []string{"goose_db_version", "job", "job_every"}

// isOwnTable reports whether a table belongs to one database only.
func isOwnTable(name string) bool {
	return slices.Contains(ownTables, name) || name == MoveTable ||
		strings.HasPrefix(name, "river_") || strings.HasPrefix(name, "sqlite_") || strings.HasPrefix(name, "_litestream_")
}

// filledBy names the tables that a trigger fills, and the tables that have the
// trigger.
var filledBy = map[string]string{"ledger_day": "ledger_entry"}

// The queries that describe the schema. A row of the first is a table, a
// column, its type, and its place in the primary key or 0. A row of the second
// is a table and a table that it references.
const (
	columnsSQLite = `
		SELECT t.name, c.name, lower(c.type), c.pk
		FROM sqlite_master AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table' ORDER BY t.name, c.name`
	referencesSQLite = `
		SELECT DISTINCT t.name, f."table" FROM sqlite_master AS t, pragma_foreign_key_list(t.name) AS f WHERE t.type = 'table'`
	columnsPostgres = `
		SELECT c.table_name::text, c.column_name::text, c.data_type::text, coalesce(k.ordinal_position, 0)::bigint
		FROM information_schema.columns AS c
		JOIN pg_tables AS t ON t.schemaname = c.table_schema AND t.tablename = c.table_name
		LEFT JOIN information_schema.table_constraints AS p
			ON p.table_schema = c.table_schema AND p.table_name = c.table_name AND p.constraint_type = 'PRIMARY KEY'
		LEFT JOIN information_schema.key_column_usage AS k
			ON k.constraint_schema = p.constraint_schema AND k.constraint_name = p.constraint_name AND k.table_name = p.table_name AND k.column_name = c.column_name
		WHERE c.table_schema = current_schema() ORDER BY c.table_name, c.column_name`
	referencesPostgres = `
		SELECT DISTINCT a.relname::text, b.relname::text FROM pg_constraint AS f
		JOIN pg_class AS a ON a.oid = f.conrelid JOIN pg_class AS b ON b.oid = f.confrelid
		WHERE f.contype = 'f' AND f.connamespace = current_schema()::regnamespace`
)

// Tables returns the tables that both databases have, in an order in which they
// can be filled: a table follows the tables that it references.
func (db *DB) Tables(ctx context.Context) (ordered []Table, err error) {
	columns := columnsSQLite
	references := referencesSQLite
	if db.pool != nil {
		columns = columnsPostgres
		references = referencesPostgres
	}
	var found []Table
	needs := map[string][]string{}
	err = db.Read(ctx, func(tx *Tx) error {
		if found, err = readTables(ctx, tx, columns); err != nil {
			return err
		}
		return tx.EachRow(ctx, references, nil, func(row Scanner) error {
			var from, to string
			err := row.Scan(&from, &to)
			if from != to {
				needs[from] = append(needs[from], to)
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	for filled, by := range filledBy {
		needs[filled] = append(needs[filled], by)
	}
	return orderTables(found, needs)
}

func readTables(ctx context.Context, tx *Tx, columns string) (found []Table, err error) {
	places := map[string]map[int64]TableColumn{} // columns of the primary key, by table and place
	err = tx.EachRow(ctx, columns, nil, func(row Scanner) error {
		var table string
		var c TableColumn
		var place int64
		if err := row.Scan(&table, &c.Name, &c.Kind, &place); err != nil || isOwnTable(table) {
			return err
		}
		switch c.Kind {
		case KindText, KindInteger, KindBoolean, KindFloat:
		default:
			return fmt.Errorf("the column %s of the table %s has the unknown type %q", c.Name, table, c.Kind)
		}
		if len(found) == 0 || found[len(found)-1].Name != table {
			found = append(found, Table{Name: table})
			places[table] = map[int64]TableColumn{}
		}
		last := &found[len(found)-1]
		last.Columns = append(last.Columns, c)
		if place > 0 {
			places[table][place] = c
		}
		return nil
	})
	for i := range found {
		key := places[found[i].Name]
		for place := range int64(len(key)) {
			found[i].Key = append(found[i].Key, key[place+1])
		}
		if len(key) == 0 && err == nil {
			err = fmt.Errorf("the table %s has no primary key", found[i].Name)
		}
	}
	return found, err
}

// orderTables sorts tables so that each follows the tables that it needs.
func orderTables(tables []Table, needs map[string][]string) (ordered []Table, err error) {
	slices.SortFunc(tables, func(a, b Table) int { return strings.Compare(a.Name, b.Name) })
	placed := map[string]bool{}
	for len(ordered) < len(tables) {
		before := len(ordered)
		for _, t := range tables {
			ready := !slices.ContainsFunc(needs[t.Name], func(need string) bool { return !placed[need] })
			if ready && !placed[t.Name] {
				placed[t.Name] = true
				ordered = append(ordered, t)
			}
		}
		if len(ordered) == before {
			return nil, errors.New("the tables reference each other in a circle")
		}
	}
	return ordered, nil
}

// TableRow has the values of a row in the order of Table.Columns. A value is
// nil, a string, an int64, a bool or a float64.
type TableRow []any

// KeyOf returns the values of the primary key of a row.
func (t Table) KeyOf(row TableRow) []any {
	key := make([]any, len(t.Key))
	for i, k := range t.Key {
		key[i] = row[slices.Index(t.Columns, k)]
	}
	return key
}

// columnList returns the quoted names of the columns, separated by commas.
func columnList(columns []TableColumn) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = quoteName(c.Name)
	}
	return strings.Join(names, ", ")
}

func quoteName(name string) string { return pgx.Identifier{name}.Sanitize() }

// ReadRows returns up to limit rows in the order of the primary key. If after
// is not nil, it returns only rows with a greater key.
func (tx *Tx) ReadRows(ctx context.Context, t Table, after []any, limit int) ([]TableRow, error) {
	var args Args
	key := columnList(t.Key)
	query := `SELECT ` + columnList(t.Columns) + ` FROM ` + quoteName(t.Name)
	if after != nil {
		places := make([]string, len(after))
		for i, value := range after {
			places[i] = args.Add(value)
		}
		query += ` WHERE (` + key + `) > (` + strings.Join(places, ", ") + `)`
	}
	query += ` ORDER BY ` + key + ` LIMIT ` + args.Add(int64(limit))
	rows := make([]TableRow, 0, limit)
	err := tx.EachRow(ctx, query, args, func(row Scanner) error {
		one, err := t.scanRow(row)
		rows = append(rows, one)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the table %s: %w", t.Name, err)
	}
	return rows, nil
}

// scanRow reads all columns of a row and converts them to the types of
// TableRow.
func (t Table) scanRow(from Scanner) (TableRow, error) {
	row := make(TableRow, len(t.Columns))
	into := make([]any, len(row))
	for i := range row {
		into[i] = &row[i]
	}
	if err := from.Scan(into...); err != nil {
		return nil, err
	}
	for i, c := range t.Columns {
		value, ok := c.Kind.convert(row[i])
		if !ok {
			return nil, fmt.Errorf("the column %s has a value of the type %T, not %s", c.Name, row[i], c.Kind)
		}
		row[i] = value
	}
	return row, nil
}

// convert returns the value in the type of the kind. SQLite keeps booleans as
// numbers, and whole numbers in a column of floating-point numbers may be
// integers.
func (k Kind) convert(value any) (any, bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case string:
		return v, k == KindText
	case bool:
		return v, k == KindBoolean
	case float64:
		return v, k == KindFloat
	case int64:
		switch k {
		case KindInteger:
			return v, true
		case KindFloat:
			return float64(v), true
		case KindBoolean:
			return v != 0, v == 0 || v == 1
		case KindText:
		}
	}
	return nil, false
}

// InsertRows inserts rows that ReadRows returned. It returns an error if a row
// has text that PostgreSQL cannot store.
func (tx *Tx) InsertRows(ctx context.Context, t Table, rows []TableRow) (err error) {
	if tx.pgx != nil {
		err = tx.copyRows(ctx, t, rows)
	} else {
		err = tx.insertRows(ctx, t, rows)
	}
	if err != nil {
		return fmt.Errorf("fill the table %s: %w", t.Name, err)
	}
	return nil
}

// copyRows inserts rows with PostgreSQL's COPY, which needs much less time than
// INSERT.
func (tx *Tx) copyRows(ctx context.Context, t Table, rows []TableRow) error {
	for _, row := range rows {
		for i, value := range row {
			if text, ok := value.(string); ok && (strings.ContainsRune(text, 0) || !utf8.ValidString(text)) {
				return fmt.Errorf("the column %s of the row %v has text that is not UTF-8 or has a zero byte, which PostgreSQL cannot store", t.Columns[i].Name, t.KeyOf(row))
			}
		}
	}
	if err := tx.Flush(ctx); err != nil {
		return err
	}
	tx.traceStatement(`COPY `+t.Name, nil)
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	_, err := tx.pgx.CopyFrom(ctx, pgx.Identifier{t.Name}, names, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return rows[i], nil }))
	return err
}

// insertAtOnce is the number of rows that one INSERT on SQLite adds.
const insertAtOnce = 16

func (tx *Tx) insertRows(ctx context.Context, t Table, rows []TableRow) error {
	one := insertStatement(t, 1)
	many := insertStatement(t, insertAtOnce)
	for len(rows) > 0 {
		query := one
		n := 1
		if len(rows) >= insertAtOnce {
			query = many
			n = insertAtOnce
		}
		if _, err := tx.Exec(ctx, query, slices.Concat(rows[:n]...)...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// insertStatement returns the statement that inserts n rows.
func insertStatement(t Table, n int) string {
	var args Args
	lines := make([]string, n)
	for i := range lines {
		places := make([]string, len(t.Columns))
		for j := range places {
			places[j] = args.Add(nil)
		}
		lines[i] = `(` + strings.Join(places, ", ") + `)`
	}
	return `INSERT INTO ` + quoteName(t.Name) + ` (` + columnList(t.Columns) + `) VALUES ` + strings.Join(lines, ", ")
}

// ClearTable deletes all rows of a table, if it has any.
func (tx *Tx) ClearTable(ctx context.Context, t Table) error {
	// The append-only tables refuse a DELETE even if they have no rows.
	filled, err := Exists(ctx, tx, `SELECT 1 FROM `+quoteName(t.Name))
	if err != nil || !filled {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM `+quoteName(t.Name))
	return err
}

// TableDigest identifies the content of a table. It does not depend on the
// order of the rows or on the kind of database.
type TableDigest struct {
	Rows int64
	Sum  [4]uint64 // sum of the SHA-256 hashes of all rows, as one number modulo 2^256, lowest part first
}

// DigestTable reads all rows of a table and returns their digest.
func (tx *Tx) DigestTable(ctx context.Context, t Table) (d TableDigest, err error) {
	var encoded []byte
	err = tx.EachRow(ctx, `SELECT `+columnList(t.Columns)+` FROM `+quoteName(t.Name), nil, func(from Scanner) error {
		row, err := t.scanRow(from)
		if err != nil {
			return err
		}
		encoded = appendRow(encoded[:0], row)
		d.add(sha256.Sum256(encoded))
		return nil
	})
	if err != nil {
		return d, fmt.Errorf("read the table %s: %w", t.Name, err)
	}
	return d, nil
}

func (d *TableDigest) add(hash [sha256.Size]byte) {
	d.Rows++
	var carry uint64
	for i := range d.Sum {
		d.Sum[i], carry = bits.Add64(d.Sum[i], binary.LittleEndian.Uint64(hash[8*i:]), carry)
	}
}

// String returns the sum in hexadecimal.
func (d TableDigest) String() string {
	return fmt.Sprintf("%016x%016x%016x%016x", d.Sum[3], d.Sum[2], d.Sum[1], d.Sum[0])
}

// appendRow appends an encoding of the row that differs for different rows:
// each value is preceded by its type, and a text also by its length.
func appendRow(b []byte, row TableRow) []byte {
	for _, value := range row {
		switch v := value.(type) {
		case nil:
			b = append(b, 'n')
		case string:
			b = binary.AppendUvarint(append(b, 't'), uint64(len(v)))
			b = append(b, v...)
		case int64:
			b = binary.LittleEndian.AppendUint64(append(b, 'i'), uint64(v))
		case float64:
			b = binary.LittleEndian.AppendUint64(append(b, 'f'), math.Float64bits(v))
		case bool:
			b = append(b, 'b', 0)
			if v {
				b[len(b)-1] = 1
			}
		}
	}
	return b
}

// HasTables reports whether the database has any table, of any program.
func (db *DB) HasTables(ctx context.Context) (bool, error) {
	query := `SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema())`
	if db.lite != nil {
		query = `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table')`
	}
	return One[bool](ctx, db, query)
}

// analyzeLimit is the maximum time of Analyze.
const analyzeLimit = time.Hour

// Analyze updates the query planner's statistics of all tables. It is for a
// database that was filled at once.
func (db *DB) Analyze(ctx context.Context) error {
	ctx = WithLimit(ctx, analyzeLimit)
	return db.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, `ANALYZE`)
		return err
	})
}
