package reports

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"time"

	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

const (
	// csvPage is the number of rows read in one transaction.
	csvPage = 1000
	// csvPageTimeout is the time that a client may take to receive csvPage
	// rows.
	csvPageTimeout = time.Minute
)

// contentCSV is the Content-Type of CSV files, with the parameters of RFC 4180
// section 3.
var contentCSV = []string{"text/csv; charset=utf-8; header=present"}

// sendCSV responds with a report as one CSV file. It reads and sends one page
// at a time, until next returns fewer than csvPage rows. Each page is read in
// its own transaction, so that a slow client keeps no transaction open. Before
// each page except the first, the caller is authorized again. An error after
// the first page aborts the connection, so that the client does not mistake a
// partial file for the whole.
func (h *Handler) sendCSV(w http.ResponseWriter, r *http.Request, q *query, columns []string, next func(context.Context) ([][]string, error)) error {
	ctx := r.Context()
	isHead := r.Method == http.MethodHead
	var rows [][]string
	var err error
	if isHead {
		err = h.Reports.ResolvePeriod(ctx, &q.Request)
	} else {
		rows, err = next(ctx)
	}
	if err != nil {
		return err
	}

	header := w.Header()
	header["Content-Type"] = contentCSV
	rest.VaryByCaller(header)
	header.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s-%s.csv"`, q.name, q.From.Format(time.DateOnly), q.Until.Format(time.DateOnly)))
	w.WriteHeader(http.StatusOK)
	if isHead {
		return nil
	}

	out := httpd.NewDeadlineWriter(w, h.Now, csvPageTimeout)
	conn := http.NewResponseController(w)
	page := [][]string{columns}
	for {
		if err := writeRows(out, conn, append(page, rows...)); err != nil {
			return err
		}
		if len(rows) < csvPage {
			return nil
		}
		if err := rest.CallOf(r).Reauthorize(ctx); err != nil {
			return err
		}
		if rows, err = next(ctx); err != nil {
			return err
		}
		page = nil
	}
}

// writeRows sends rows to the client as CSV, without buffering.
func writeRows(w io.Writer, conn *http.ResponseController, rows [][]string) error {
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

// escapeFormula prefixes a string with an apostrophe if a spreadsheet would
// run it as a formula. Names in reports come from untrusted people.
func escapeFormula(text string) string {
	if text == "" {
		return ""
	}
	switch text[0] {
	case '=', '+', '-', '@', '\t', '\r':
		return "'" + text
	}
	return text
}
