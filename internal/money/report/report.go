// Package report sums up the usage of companies.
//
//	run ends ──Add──▶ report_sum   one row in each grain, in the same transaction
//	                     │
//	     whole days ─────┤ the coarsest grain that has the requested dimensions
//	     parts of a day ─┤ the grain quarter, or the runs themselves
//	                     ▼
//	                   Usage, Total
//
//	flow ends ──Add──▶ report_flow  one row, in addition
//
// A grain is a level of detail: for example, the grain "team" has one row for
// each day and team, and the grain "quarter" has one row for each quarter of an
// hour. A run counts at the time when it ends, as in the ledger. Days are
// calendar days in the company's time zone. If the time zone changes, SetZone
// recomputes all daily rows. A transaction that adds a run takes a shared lock
// on the company's row of report_zone, so that no recomputation runs at the
// same time.
//
// A flow and each of its steps are runs of their own in report_sum; the steps
// are charged. Reports by flow are a second view of the same usage: they count
// the flows that clients started, each with the cost of all its steps. They are
// computed from report_flow, and never added to the other totals.
package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// EndedRun contains the properties of an ended run that reports use.
type EndedRun struct {
	CompanyID, TeamID, PersonID, ToolID string
	Plugin                              string
	Credential, CredentialID            string
	Status                              string // succeeded, failed or cancelled
	Results                             int64
	TokensCharged, AllowanceUsed        int64
	Started                             time.Time // zero if the run never started
	Finished                            time.Time
	Flow                                *FlowTotals // nil if the run is no flow, or is a step of one
}

// FlowTotals contains the totals over a flow and its steps. Steps that the flow
// took over from an earlier run cost nothing.
type FlowTotals struct {
	Results                      int64     // results that the flow delivered
	TokensCharged, AllowanceUsed int64     // of all steps
	Started                      time.Time // start of the first step; zero if none started
}

// Count contains totals over a set of runs.
type Count struct {
	Runs, Succeeded, Failed, Cancelled int64
	Results                            int64
	TokensCharged, AllowanceUsed       int64
	Took                               time.Duration // total of the times from start to end, in whole milliseconds
}

// Dimension is a property of runs by which reports can be grouped.
type Dimension string

// The dimensions of reports.
const (
	Day        Dimension = "day"
	Team       Dimension = "team"
	Person     Dimension = "person"
	Tool       Dimension = "tool"
	Plugin     Dimension = "plugin"
	Credential Dimension = "credential"
	Flow       Dimension = "flow" // only flows that clients started, each with the cost of its steps
)

// Dimensions lists all dimensions. Day is the first.
var Dimensions = []Dimension{Day, Team, Person, Tool, Plugin, Credential, Flow}

// Query selects ended runs of a company. A field that is empty does not
// restrict the selection.
type Query struct {
	CompanyID   string
	From, Until time.Time // period in which the run ended; Until is exclusive
	TeamID      string
	ToolID      string // a flow in reports by flow
	Email       string // e-mail address of the person, case-insensitive
}

// Row contains the totals of one group of runs. Only the fields of the
// requested dimensions are set.
type Row struct {
	Day                      string // such as 2026-11-15, in the company's time zone
	TeamID, TeamName         string
	PersonID, Email          string // Email is empty for a deleted person
	ToolID                   string
	Plugin                   string
	Credential, CredentialID string
	CredentialName           string // name of the access token, or plugin kind of the device; empty if it was deleted
	FlowID                   string // tool of the flow
	Count
}

// Run is one ended run in a report.
type Run struct {
	ID                         string
	Status, ErrorCode          string
	TeamID, TeamName           string
	PersonID, Email            string // Email is empty for a deleted person
	ToolID, Plugin             string
	Credential, CredentialID   string
	CredentialName             string
	Asked, Results             int64
	TokensCharged              int64
	AllowanceUsed              int64
	Created, Started, Finished time.Time // Started is zero if the run never started
}

// Cursor is the position of the last run of a page.
type Cursor struct {
	Finished time.Time
	ID       string
}

// Add adds a run that has just ended to the totals, in the transaction that
// ends the run. All transactions lock the row of report_flow, and then the rows
// of report_sum in the same order, with the most contended rows last.
func Add(ctx context.Context, tx *sqldb.Tx, e EndedRun) error {
	loc, err := shareZone(ctx, tx, e.CompanyID)
	if err != nil {
		return fmt.Errorf("time zone of company %s: %w", e.CompanyID, err)
	}
	day := dayOf(e.Finished.UnixMicro(), loc)
	if e.Flow != nil {
		if err := addFlow(ctx, tx, e, day); err != nil {
			return err
		}
	}
	return addCounts(ctx, tx, e, day)
}

// Usage returns the totals of a query, grouped and sorted by the given
// dimensions. It returns at most limit rows, starting after the row with the
// sort keys after.
func Usage(ctx context.Context, tx *sqldb.Tx, q Query, by []Dimension, after []string, limit int) ([]Row, error) {
	if len(by) == 0 {
		return nil, errors.New("report usage: no dimension to group by")
	}
	if problem := GroupProblem(by); problem != "" {
		return nil, fmt.Errorf("report usage by %v: %s", by, problem)
	}
	p, err := planFor(ctx, tx, q, by)
	if err != nil || len(p.pieces) == 0 {
		return nil, err
	}
	return listUsage(ctx, tx, p, by, after, limit)
}

// SortKeys returns the values by which the row is sorted. Usage accepts them as
// the position after which a page begins.
func (r Row) SortKeys(by []Dimension) []string {
	var keys []string
	for _, d := range by {
		switch d {
		case Day:
			keys = append(keys, r.Day)
		case Team:
			keys = append(keys, r.TeamID)
		case Person:
			keys = append(keys, r.PersonID)
		case Tool:
			keys = append(keys, r.ToolID)
		case Plugin:
			keys = append(keys, r.Plugin)
		case Credential:
			keys = append(keys, r.Credential, r.CredentialID)
		case Flow:
			keys = append(keys, r.FlowID)
		}
	}
	return keys
}

// Total returns the totals over all runs that a query selects. If the report is
// grouped by flow, they are the totals over all flows.
func Total(ctx context.Context, tx *sqldb.Tx, q Query, by []Dimension) (Count, error) {
	p, err := planFor(ctx, tx, q, slices.DeleteFunc(slices.Clone(by), func(d Dimension) bool { return d != Flow }))
	if err != nil || len(p.pieces) == 0 {
		return Count{}, err
	}
	return sumTotal(ctx, tx, p)
}

// Runs returns at most limit runs that a query selects, most recently ended
// first, starting after the given position.
func Runs(ctx context.Context, tx *sqldb.Tx, q Query, after *Cursor, limit int) ([]Run, error) {
	f, ok, err := filterOf(ctx, tx, q)
	if err != nil || !ok {
		return nil, err
	}
	return listRuns(ctx, tx, q, f, after, limit)
}

// Spent returns the number of tokens that a team was charged in the calendar
// month that contains at, and the month in the form 2026-11. The company's time
// zone determines the month. Runs that were added in the same transaction are
// included.
func Spent(ctx context.Context, tx *sqldb.Tx, companyID, teamID string, at time.Time) (month string, tokens int64, err error) {
	loc, err := Zone(ctx, tx, companyID)
	if err != nil {
		return "", 0, err
	}
	month, first, end := monthOf(at, loc)
	tokens, err = sumCharged(ctx, tx, companyID, teamID, first, end)
	return month, tokens, err
}

// MonthStart returns the start of the calendar month that contains the time at,
// in the given time zone.
func MonthStart(at time.Time, loc *time.Location) time.Time {
	_, first, _ := monthOf(at, loc)
	return time.UnixMicro(dayStart(first, loc)).UTC()
}

// Zone returns the time zone of a company, which is UTC by default.
func Zone(ctx context.Context, tx *sqldb.Tx, companyID string) (*time.Location, error) {
	name, err := zoneName(ctx, tx, companyID, "")
	if errors.Is(err, sqldb.ErrNoRows) {
		return time.UTC, nil
	}
	if err != nil {
		return nil, err
	}
	return time.LoadLocation(name)
}

// SetZone sets the time zone of a company by its IANA name, and recomputes the
// company's daily totals.
func SetZone(ctx context.Context, tx *sqldb.Tx, companyID, name string) error {
	// Names in the time zone database begin with a capital letter. Its
	// directory also contains other files, such as localtime and time zones
	// with leap seconds.
	if name == "" || name == "Local" || name[0] < 'A' || name[0] > 'Z' {
		return errZone
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return errZone
	}
	was, err := lockZone(ctx, tx, companyID)
	if err != nil || was == name {
		return err
	}
	if err := setZone(ctx, tx, companyID, name); err != nil {
		return err
	}
	return recountDays(ctx, tx, companyID, loc)
}

var errZone = fault.New(fault.Invalid, "This is not a time zone. Use an IANA name such as Europe/Paris.").On("time_zone")

// Recount recomputes all totals of a company from its runs. It is for programs
// that insert runs into the database directly.
func Recount(ctx context.Context, tx *sqldb.Tx, companyID string) error {
	name, err := lockZone(ctx, tx, companyID)
	if err != nil {
		return err
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return err
	}
	if err := recountQuarters(ctx, tx, companyID); err != nil {
		return err
	}
	return recountDays(ctx, tx, companyID, loc)
}

// Lock prevents other transactions from adding runs to a company's totals until
// tx ends. A transaction that also locks the company's row must do so before it
// calls Lock.
func Lock(ctx context.Context, tx *sqldb.Tx, companyID string) error {
	_, err := lockZone(ctx, tx, companyID)
	return err
}

// shareZone returns the time zone of a company, and takes a shared lock that
// prevents changes of the time zone until the transaction ends.
func shareZone(ctx context.Context, tx *sqldb.Tx, companyID string) (*time.Location, error) {
	name, err := zoneName(ctx, tx, companyID, tx.Dialect.ForShare)
	if errors.Is(err, sqldb.ErrNoRows) {
		if err := insertZone(ctx, tx, companyID); err != nil {
			return nil, err
		}
		name, err = zoneName(ctx, tx, companyID, tx.Dialect.ForShare)
	}
	if err != nil {
		return nil, err
	}
	return time.LoadLocation(name)
}

// lockZone returns the name of a company's time zone, and prevents other
// transactions from adding runs to the company's totals until tx ends.
func lockZone(ctx context.Context, tx *sqldb.Tx, companyID string) (string, error) {
	if err := insertZone(ctx, tx, companyID); err != nil {
		return "", err
	}
	return zoneName(ctx, tx, companyID, tx.Dialect.ForUpdate)
}
