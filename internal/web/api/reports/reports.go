// Package reports serves /api/v2/reports: the usage of a company, as pages of
// JSON or as one CSV file.
package reports

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/cursor"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/library"
	"atelier/internal/money/report"
	"atelier/internal/people/person"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for reports.
type Handler struct {
	Reports *report.Service
	Catalog *catalog.Catalog
	Library *library.Library // provides the storage limit of accounts
	Pages   rest.Pager
	Now     func() time.Time
}

// Routes returns the routes of the reports.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/reports/usage", access.Reporting, h.reportUsage),
		rest.NewRoute("GET /api/v2/reports/runs", access.Reporting, h.reportRuns),
	}
}

// reportUsage serves GET /api/v2/reports/usage: it returns the totals of a
// company's runs, grouped by the dimensions in group_by.
func (h *Handler) reportUsage(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	by := readGroups(call.Params)
	q, err := h.readQuery(call, "usage", len(report.Row{}.SortKeys(by)), "group_by")
	if err != nil {
		return err
	}

	if q.isCSV {
		var after []string
		return h.sendCSV(w, r, q, usageColumns(by), func(ctx context.Context) ([][]string, error) {
			rows, err := h.Reports.ReadUsageRows(ctx, &q.Request, by, after, csvPage)
			if err != nil || len(rows) == 0 {
				return nil, err
			}
			after = rows[len(rows)-1].SortKeys(by)
			tools, err := h.Catalog.ToolNames(ctx, usageTools(rows))
			if err != nil {
				return nil, err
			}
			return usageCells(rows, by, tools), nil
		})
	}

	page, err := h.Reports.ReadUsage(r.Context(), &q.Request, by, q.after, q.limit+1)
	if err != nil {
		return err
	}
	rows, hasMore, next := cutPage(h.Pages.Cursors, q, page.Rows, func(r report.Row) []string { return r.SortKeys(by) })
	tools, err := h.Catalog.ToolNames(r.Context(), usageTools(rows))
	if err != nil {
		return err
	}
	answer := wire.UsageReport{
		Data:       asUsageRows(rows, by, tools),
		HasMore:    hasMore,
		NextCursor: next,
		Totals:     asCount(page.Totals),
		TimeZone:   q.Zone,
		StartUtc:   q.From,
		EndUtc:     q.Until,
	}
	if q.after == nil {
		answer.Storage = asStorageReport(page.Storage, h.Library.Storage.Account)
	}
	return rest.ReplyCompressed(w, r, answer)
}

// reportRuns serves GET /api/v2/reports/runs: it returns the runs of a
// company, the most recently ended first.
func (h *Handler) reportRuns(w http.ResponseWriter, r *http.Request) error {
	q, err := h.readQuery(rest.CallOf(r), "runs", 2)
	if err != nil {
		return err
	}

	if q.isCSV {
		var after *report.Cursor
		return h.sendCSV(w, r, q, runColumns, func(ctx context.Context) ([][]string, error) {
			rows, err := h.Reports.ReadRunRows(ctx, &q.Request, after, csvPage)
			if err != nil || len(rows) == 0 {
				return nil, err
			}
			last := rows[len(rows)-1]
			after = &report.Cursor{Finished: last.Finished, ID: last.ID}
			tools, err := h.Catalog.ToolNames(ctx, runTools(rows))
			if err != nil {
				return nil, err
			}
			return runCells(rows, tools), nil
		})
	}

	var after *report.Cursor
	if q.after != nil {
		at, err := rest.ParseMicros(q.after[0])
		if err != nil {
			return err
		}
		after = &report.Cursor{Finished: at, ID: q.after[1]}
	}
	page, err := h.Reports.ReadRuns(r.Context(), &q.Request, after, q.limit+1)
	if err != nil {
		return err
	}
	rows, hasMore, next := cutPage(h.Pages.Cursors, q, page.Rows, func(r report.Run) []string { return []string{rest.Micros(r.Finished), r.ID} })
	tools, err := h.Catalog.ToolNames(r.Context(), runTools(rows))
	if err != nil {
		return err
	}
	return rest.ReplyCompressed(w, r, wire.RunReport{
		Data:       asRunRows(rows, tools),
		HasMore:    hasMore,
		NextCursor: next,
		Totals:     asCount(page.Totals),
		TimeZone:   q.Zone,
		StartUtc:   q.From,
		EndUtc:     q.Until,
	})
}

// query has the parameters of a report request.
type query struct {
	report.Request
	name  string // name of the report
	isCSV bool
	limit int
	scope string   // scope to which cursors are bound
	after []string // sort key of the last row of the previous page; nil on the first page
}

// readQuery reads the parameters that all reports have. keys is the number of
// sort keys in a cursor. A cursor is valid only for the same person, company
// and filters. filters are the names of the filters that only this report has.
func (h *Handler) readQuery(call *rest.Call, name string, keys int, filters ...string) (*query, error) {
	p := call.Params
	q := &query{name: name, limit: h.Pages.DefaultSize}
	q.Query = report.Query{
		CompanyID: call.Principal.CompanyID,
		From:      readTime(p, "start_utc"),
		Until:     readTime(p, "end_utc"),
		TeamID:    p.ReadText("team_id"),
		ToolID:    p.ReadID("tool_id"),
		Email:     p.ReadText("email"),
	}
	if q.Email != "" && person.CheckEmail(q.Email) != nil {
		p.AddProblem("email", "This is not an e-mail address.")
	}
	switch p.ReadText("format") {
	case "", "json":
	case "csv":
		q.isCSV = true
	default:
		p.AddProblem("format", "Must be json or csv.")
	}
	if p.Err() == nil {
		if problem := report.PeriodProblem(q.From, q.Until); problem != "" {
			p.AddProblem("end_utc", problem)
		}
	}
	var sealed string
	if !q.isCSV {
		q.limit = p.ReadLimit(h.Pages.DefaultSize, h.Pages.MaxSize)
		sealed = p.ReadText("cursor")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}

	scope := []string{"report " + name, call.Principal.PersonID, q.CompanyID}
	for _, name := range append(filters, "start_utc", "end_utc", "team_id", "tool_id", "email") {
		scope = append(scope, p.Values.Get(name))
	}
	q.scope = cursor.Scope(scope...)
	if sealed == "" {
		return q, nil
	}
	return q, q.openCursor(h.Pages.Cursors, sealed, keys)
}

// openCursor continues a report from a cursor. The cursor contains the period
// of the first page, so that a period without a start or an end is the same on
// all pages.
func (q *query) openCursor(cursors cursor.Sealer, sealed string, keys int) error {
	all, err := cursors.Open(q.scope, sealed, 3+keys)
	if err != nil {
		return err
	}
	if q.From, err = rest.ParseMicros(all[0]); err != nil {
		return err
	}
	if q.Until, err = rest.ParseMicros(all[1]); err != nil {
		return err
	}
	q.Zone = all[2]
	q.after = all[3:]
	return nil
}

// cutPage removes the row after the end of the page, which was read only to
// find out whether a next page exists. next is the cursor of the next page, or
// nil on the last page.
func cutPage[T any](cursors cursor.Sealer, q *query, rows []T, keys func(T) []string) (page []T, hasMore bool, next *string) {
	if len(rows) <= q.limit {
		return rows, false, nil
	}
	rows = rows[:q.limit]
	period := []string{rest.Micros(q.From), rest.Micros(q.Until), q.Zone}
	sealed := cursors.SealKey(q.scope, slices.Concat(period, keys(rows[q.limit-1]))...)
	return rows, true, &sealed
}

// readTime reads a parameter that is a time or a date. A date means the start
// of that day in UTC. It returns the zero time if the parameter is absent.
func readTime(p *rest.Params, name string) time.Time {
	text := p.ReadText(name)
	if text == "" {
		return time.Time{}
	}

	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	at = at.UTC().Truncate(time.Microsecond)
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		p.AddProblem(name, "Must be a time such as 2026-11-15T09:30:00Z, or a day such as 2026-11-15.")
		return time.Time{}
	}
	return at
}

// readGroups reads the parameter group_by: the dimensions to group by. The
// default is day.
func readGroups(p *rest.Params) []report.Dimension {
	text := p.ReadText("group_by")
	if text == "" {
		return []report.Dimension{report.Day}
	}

	var by []report.Dimension
	for word := range strings.SplitSeq(text, ",") {
		d := report.Dimension(word)
		if !slices.Contains(report.Dimensions, d) || slices.Contains(by, d) {
			p.AddProblem("group_by", "Must be a list of day, team, person, tool, plugin, credential and flow, separated by commas, each at most once.")
			return []report.Dimension{report.Day}
		}
		by = append(by, d)
	}
	if problem := report.GroupProblem(by); problem != "" {
		p.AddProblem("group_by", problem)
	}
	return by
}
