package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"atelier/internal/base/sqldb"
	"atelier/internal/cli/term"
)

// pageFlags are the flags that select a page of a list. Lists are paginated
// because an installation may have a million people.
type pageFlags struct {
	Limit  *int   `help:"Maximum number of rows (default: 100)." placeholder:"N" xor:"part"`
	Cursor string `help:"Continue after this cursor, printed with the previous page." placeholder:"CURSOR"`
	All    bool   `help:"Print all rows." xor:"part"`
}

const (
	defaultRows = 100
	rowsPerRead = 500 // number of rows that --all reads in one transaction
)

// pagedList is a list that is read and printed one page at a time.
type pagedList[T any] struct {
	name    string   // name of the list in the JSON object
	columns []string // headers of the table
	// read returns at most limit rows that come after a cursor.
	read func(ctx context.Context, tx *sqldb.Tx, cursor string, limit int) ([]T, error)
	// cursorOf returns the cursor of a row, after which the next page begins.
	cursorOf func(T) string
	// cells returns the table cells of a row.
	cells func(T) []string
}

// printPages reads and prints the pages that the flags select.
func (l pagedList[T]) printPages(ctx context.Context, p *program, db *sqldb.DB, asJSON bool, f pageFlags) error {
	limit := defaultRows
	switch {
	case f.All:
		limit = rowsPerRead
	case f.Limit != nil && *f.Limit < 1:
		return usageError{errors.New("--limit must be above 0")}
	case f.Limit != nil:
		limit = *f.Limit
	}
	out := p.openList(asJSON, l.name, l.columns)
	cursor := f.Cursor
	for {
		var rows []T
		err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
			rows, err = l.read(ctx, tx, cursor, limit+1) // the extra row shows whether another page follows
			return err
		})
		if err != nil {
			return err
		}
		more := len(rows) > limit
		rows = rows[:min(len(rows), limit)]
		for _, row := range rows {
			if err := out.addRow(row, l.cells(row)); err != nil {
				return err
			}
		}
		if more {
			cursor = l.cursorOf(rows[len(rows)-1])
		}
		if !more || !f.All {
			return out.finishList(more, cursor)
		}
	}
}

// listWriter prints a list of any length: as one JSON object, or as a table in
// parts of at most rowsPerRead rows with one header.
type listWriter struct {
	out    streams
	asJSON bool
	name   string
	width  int  // maximum width of the table
	hasIDs bool // the last column has ids
	count  int
	cells  [][]string // rows that are not printed yet
}

func (s streams) openList(asJSON bool, name string, header []string) *listWriter {
	return &listWriter{
		out:    s,
		asJSON: asJSON,
		name:   name,
		width:  math.MaxInt,
		hasIDs: endsWithID(header),
		cells:  [][]string{header},
	}
}

// addRow adds a row to the list. Table rows are printed in batches.
func (w *listWriter) addRow(row any, cells []string) error {
	w.count++
	if !w.asJSON {
		w.cells = append(w.cells, cells)
		if w.count%rowsPerRead == 0 {
			return w.writeRows()
		}
		return nil
	}
	before := ","
	if w.count == 1 {
		before = w.openObject()
	}
	text, err := marshalRow(row)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.out.stdout, "%s%s", before, text)
	return err
}

func (w *listWriter) openObject() string { return fmt.Sprintf("{%q:[", w.name) }

func (w *listWriter) writeRows() error {
	cells := w.cells
	w.cells = nil
	_, err := io.WriteString(w.out.stdout, term.FormatTable(cells, w.width, w.hasIDs))
	return err
}

// finishList ends the list and prints the cursor of the next page if more is
// true.
func (w *listWriter) finishList(more bool, cursor string) error {
	if !w.asJSON {
		if err := w.writeRows(); err != nil || !more {
			return err
		}
		_, err := fmt.Fprintf(w.out.stderr, "There are more rows: continue with --cursor %q, or list all with --all.\n", cursor)
		return err
	}
	before := ""
	if w.count == 0 {
		before = w.openObject()
	}
	var next *string
	if more {
		next = &cursor
	}
	text, err := marshalRow(next)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.out.stdout, "%s],\"next_cursor\":%s}\n", before, text)
	return err
}

// marshalRow is like json.Marshal, but does not escape HTML characters.
func marshalRow(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
