package api

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/web/httpd"
)

const (
	// tableRows is how many rows of a file are read at once. The next are asked
	// for when these were taken.
	tableRows = 1000
	// tableTime is how long a client may take for so many.
	tableTime = time.Minute
)

// contentCSV says what RFC 4180 section 3 can say.
var contentCSV = []string{"text/csv; charset=utf-8; header=present"}

// sendTable writes a report as one file, page by page; next gives no rows after
// the last. Each page is read in a transaction of its own, so that no reader
// can hold one for long, and before each but the first it is asked whether the
// caller still may, and whether the company's days are still the same. Whatever
// goes wrong after the beginning breaks the connection off: a file that ends
// must be whole.
func (s *Server) sendTable(w http.ResponseWriter, r *http.Request, q *reportQuery, columns []string, next func(context.Context, *sqldb.Tx) ([][]string, error)) error {
	ctx := r.Context()
	var rows [][]string
	read := func(tx *sqldb.Tx) (err error) {
		if _, err := q.settle(ctx, tx); err != nil || r.Method == http.MethodHead {
			return err
		}
		rows, err = next(ctx, tx)
		return err
	}
	if err := s.DB.Read(ctx, read); err != nil {
		return err
	}
	h := w.Header()
	h["Content-Type"] = contentCSV
	addVary(h, varies)
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s-%s.csv"`, q.name, q.From.Format(time.DateOnly), q.Until.Format(time.DateOnly)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	out := httpd.Patient(w, s.Now, tableTime)
	conn := http.NewResponseController(w)
	page := [][]string{columns}
	for {
		if err := sendRows(out, conn, append(page, rows...)); err != nil {
			return err
		}
		if len(rows) < tableRows {
			return nil
		}
		if err := callOf(r).reauthorize(ctx); err != nil {
			return err
		}
		if err := s.DB.Read(ctx, read); err != nil {
			return err
		}
		page = nil
	}
}

// sendRows writes rows to the client.
func sendRows(w io.Writer, conn *http.ResponseController, rows [][]string) error {
	var b bytes.Buffer
	lines := csv.NewWriter(&b)
	lines.UseCRLF = true
	if err := lines.WriteAll(rows); err != nil {
		return fmt.Errorf("encode rows: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return err
	}
	return conn.Flush()
}

// cell makes a text fit for a table: one that a spreadsheet would take for a
// formula gets an apostrophe before it. Names come from strangers.
func cell(text string) string {
	if text == "" {
		return ""
	}
	switch text[0] {
	case '=', '+', '-', '@', '\t', '\r':
		return "'" + text
	}
	return text
}
