package main

import (
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/sanitize"
	"atelier/internal/cli/term"
)

// rowsPerRequest is the largest page that the service returns.
const rowsPerRequest = 100

// remoteList is a list of the service, which is read and printed one page at a
// time.
type remoteList[T any] struct {
	columns []string // headers of the table
	// read returns a page of at most limit items that come after a cursor, and
	// the cursor of the next page.
	read func(cursor string, limit int64) ([]T, *string, error)
	// cells returns the table cells of an item.
	cells func(T) []string
}

// printPages reads and prints the pages that the flags select. As JSON the list
// is {"data": [...], "next_cursor": ...}.
func (l remoteList[T]) printPages(p *program, asJSON bool, f pageFlags) error {
	left := defaultRows
	switch {
	case f.Limit != nil && *f.Limit < 1:
		return usageError{errors.New("--limit must be above 0")}
	case f.Limit != nil:
		left = *f.Limit
	}
	out := p.openList(asJSON, "data", l.columns)
	out.width = p.tableWidth()
	cursor := f.Cursor
	for {
		limit := rowsPerRequest
		if !f.All {
			limit = min(limit, left)
		}
		items, next, err := l.read(cursor, int64(limit))
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := out.addRow(item, cleanCells(l.cells(item))); err != nil {
				return err
			}
		}
		left -= len(items)
		more := next != nil && *next != ""
		if more {
			cursor = *next
		}
		if more && (f.All || left > 0) {
			continue
		}
		if out.count == 0 && !asJSON && term.IsTerminal(p.stdout) {
			_, err := fmt.Fprintln(p.stderr, "The list is empty.")
			return err
		}
		return out.finishList(more, cursor)
	}
}

// maxCell is the maximum number of characters of a table cell.
const maxCell = 64

// cleanCells removes control characters from texts of the service, which must
// not move the cursor, and shortens long ones.
func cleanCells(cells []string) []string {
	for i, text := range cells {
		cells[i] = sanitize.Line(text, maxCell)
	}
	return cells
}

// showTime formats a time for tables.
func showTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// showOptionalTime formats a time that may be missing.
func showOptionalTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return showTime(*t)
}

// showOptional returns the text, or a hyphen if it is missing.
func showOptional(text *string) string {
	if text == nil || *text == "" {
		return "-"
	}
	return *text
}
