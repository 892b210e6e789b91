package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/report"
	"atelier/internal/people/person"
	"atelier/internal/web/access"
	"atelier/internal/web/api/wire"
)

// maxYears is how long a time one report can be about.
const maxYears = 10

// reportRoutes are those about what companies use.
func (s *Server) reportRoutes() []route {
	return []route{
		{"GET", prefix + "/reports/usage", access.Reporting, s.reportUsage},
		{"GET", prefix + "/reports/runs", access.Reporting, s.reportRuns},
	}
}

func (s *Server) reportUsage(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	by := c.params.groups()
	q, err := s.reportQuery(c, "usage", len(report.Row{}.Keys(by)), "group_by")
	if err != nil {
		return err
	}
	if q.csv {
		after := []string(nil)
		return s.sendTable(w, r, q, usageColumns(by), func(ctx context.Context, tx *sqldb.Tx) ([][]string, error) {
			rows, err := report.Usage(ctx, tx, q.Query, by, after, tableRows)
			if err != nil || len(rows) == 0 {
				return nil, err
			}
			after = rows[len(rows)-1].Keys(by)
			return usageCells(rows, by, s.Catalog.Snapshot()), nil
		})
	}
	page := wire.UsageReport{}
	err = s.DB.Read(r.Context(), func(tx *sqldb.Tx) error {
		zone, totals, err := q.begin(r.Context(), tx)
		if err != nil {
			return err
		}
		rows, err := report.Usage(r.Context(), tx, q.Query, by, q.after, q.limit+1)
		if err != nil {
			return err
		}
		rows, more, next := reportPage(s, q, rows, func(r report.Row) []string { return r.Keys(by) })
		page = wire.UsageReport{
			Data:       asUsageRows(rows, by, s.Catalog.Snapshot()),
			HasMore:    more,
			NextCursor: next,
			Totals:     asCount(totals),
			TimeZone:   zone.String(),
			StartUtc:   q.From,
			EndUtc:     q.Until,
		}
		if q.after != nil {
			return nil
		}
		stored, err := report.Storage(r.Context(), tx, q.CompanyID, q.TeamID)
		page.Storage = s.asStorageReport(stored)
		return err
	})
	if err != nil {
		return err
	}
	return replyCompressed(w, r, page)
}

func (s *Server) reportRuns(w http.ResponseWriter, r *http.Request) error {
	q, err := s.reportQuery(callOf(r), "runs", 2)
	if err != nil {
		return err
	}
	if q.csv {
		var after *report.Place
		return s.sendTable(w, r, q, runColumns, func(ctx context.Context, tx *sqldb.Tx) ([][]string, error) {
			rows, err := report.Runs(ctx, tx, q.Query, after, tableRows)
			if err != nil || len(rows) == 0 {
				return nil, err
			}
			last := rows[len(rows)-1]
			after = &report.Place{Finished: last.Finished, ID: last.ID}
			return runCells(rows, s.Catalog.Snapshot()), nil
		})
	}
	var after *report.Place
	if q.after != nil {
		at, err := microsOf(q.after[0])
		if err != nil {
			return err
		}
		after = &report.Place{Finished: at, ID: q.after[1]}
	}
	page := wire.RunReport{}
	err = s.DB.Read(r.Context(), func(tx *sqldb.Tx) error {
		zone, totals, err := q.begin(r.Context(), tx)
		if err != nil {
			return err
		}
		rows, err := report.Runs(r.Context(), tx, q.Query, after, q.limit+1)
		if err != nil {
			return err
		}
		rows, more, next := reportPage(s, q, rows, func(r report.Run) []string { return []string{micros(r.Finished), r.ID} })
		page = wire.RunReport{
			Data:       asRunRows(rows, s.Catalog.Snapshot()),
			HasMore:    more,
			NextCursor: next,
			Totals:     asCount(totals),
			TimeZone:   zone.String(),
			StartUtc:   q.From,
			EndUtc:     q.Until,
		}
		return nil
	})
	if err != nil {
		return err
	}
	return replyCompressed(w, r, page)
}

// reportQuery is what a request for a report asks for.
type reportQuery struct {
	report.Query
	name  string // of the report
	csv   bool
	limit int
	scope string
	// zone is the clock that the page before was counted by, "" on the first.
	zone string
	// after is where the page before ended, nil on the first.
	after []string
}

// reportQuery reads the parameters that reports share. Cursors hold so many
// keys, and are bound to the person, the company and the filters, of which the
// report may have more.
func (s *Server) reportQuery(c *call, name string, keys int, filters ...string) (*reportQuery, error) {
	p := c.params
	q := &reportQuery{name: name, limit: s.Limits.PageDefault}
	q.Query = report.Query{
		CompanyID: c.caller.CompanyID,
		From:      p.instant("start_utc"),
		Until:     p.instant("end_utc"),
		TeamID:    p.one("team_id"),
		ToolID:    p.id("tool_id"),
		Email:     p.one("email"),
	}
	if q.Email != "" && person.CheckEmail(q.Email) != nil {
		p.problem("email", "This is not a mail address.")
	}
	switch p.one("format") {
	case "", "json":
	case "csv":
		q.csv = true
	default:
		p.problem("format", "Must be json or csv.")
	}
	if p.err == nil {
		p.span(q.From, q.Until)
	}
	var sealed string
	if !q.csv {
		q.limit = p.limit(s.Limits.PageDefault, s.Limits.PageSize)
		sealed = p.one("cursor")
	}
	if err := p.failed(); err != nil {
		return nil, err
	}
	scope := []string{"report " + name, c.caller.PersonID, q.CompanyID}
	for _, name := range append(filters, "start_utc", "end_utc", "team_id", "tool_id", "email") {
		scope = append(scope, p.values.Get(name))
	}
	q.scope = cursor.Scope(scope...)
	if sealed == "" {
		return q, nil
	}
	return q, q.resume(s, sealed, keys)
}

// resume opens a cursor. It holds the time that the first page was about, so
// that one without an end, or without a beginning, is the same on all pages.
func (q *reportQuery) resume(s *Server, sealed string, keys int) error {
	all, err := s.Cursors.Open(q.scope, sealed, 3+keys)
	if err != nil {
		return err
	}
	if q.From, err = microsOf(all[0]); err != nil {
		return err
	}
	if q.Until, err = microsOf(all[1]); err != nil {
		return err
	}
	q.zone = all[2]
	q.after = all[3:]
	return nil
}

// begin fills in the time where it was left out, and sums up all that is asked
// for.
func (q *reportQuery) begin(ctx context.Context, tx *sqldb.Tx) (*time.Location, report.Count, error) {
	zone, err := q.settle(ctx, tx)
	if err != nil {
		return nil, report.Count{}, err
	}
	totals, err := report.Total(ctx, tx, q.Query)
	return zone, totals, err
}

// errClock is for a report of which some was read by another clock: its days
// were others.
var errClock = fault.New(fault.Invalid, "The time zone of this company was changed. Begin again at the first page.").On("cursor")

// settle fills in the time where it was left out: this month until now.
func (q *reportQuery) settle(ctx context.Context, tx *sqldb.Tx) (*time.Location, error) {
	zone, err := report.Zone(ctx, tx, q.CompanyID)
	if err != nil {
		return nil, err
	}
	if q.zone != "" && q.zone != zone.String() {
		return nil, errClock
	}
	q.zone = zone.String()
	now := tx.Now.UTC().Truncate(time.Microsecond)
	if q.From.IsZero() {
		q.From = report.MonthStart(now, zone)
	}
	if q.Until.IsZero() {
		q.Until = now.Add(time.Microsecond) // a month that begins now is not empty
	}
	p := &params{}
	p.span(q.From, q.Until)
	return zone, p.failed()
}

// span refuses times between which no report can be. One that was left out is
// not looked at.
func (p *params) span(from, until time.Time) {
	switch {
	case from.IsZero() || until.IsZero():
	case !from.Before(until):
		p.problem("end_utc", "Must be after start_utc; left out, they are now and the beginning of the month.")
	case until.After(from.AddDate(maxYears, 0, 0)):
		p.problem("end_utc", fmt.Sprintf("Must be within %d years of start_utc.", maxYears))
	}
}

// instant reads a parameter that is a time, or a day for its beginning in UTC;
// the zero time for none.
func (p *params) instant(name string) time.Time {
	text := p.one(name)
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	at = at.UTC().Truncate(time.Microsecond)
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		p.problem(name, "Must be a time such as 2026-11-15T09:30:00Z, or a day such as 2026-11-15.")
		return time.Time{}
	}
	return at
}

// groups reads group_by.
func (p *params) groups() []report.Dimension {
	text := p.one("group_by")
	if text == "" {
		return []report.Dimension{report.Day}
	}
	var by []report.Dimension
	for word := range strings.SplitSeq(text, ",") {
		d := report.Dimension(word)
		if !slices.Contains(report.Dimensions, d) || slices.Contains(by, d) {
			p.problem("group_by", "Must be some of day, team, person, tool, plugin and credential between commas, none of them twice.")
			return []report.Dimension{report.Day}
		}
		by = append(by, d)
	}
	return by
}

// reportPage takes the page off rows that were read one longer, and makes the
// cursor of the next.
func reportPage[T any](s *Server, q *reportQuery, rows []T, keys func(T) []string) (page []T, more bool, next *string) {
	if len(rows) <= q.limit {
		return rows, false, nil
	}
	rows = rows[:q.limit]
	sealed := s.Cursors.Seal(q.scope, slices.Concat([]string{micros(q.From), micros(q.Until), q.zone}, keys(rows[q.limit-1]))...)
	return rows, true, &sealed
}
