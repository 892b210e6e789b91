// Package report sums up the usage of companies.
//
//	run ends ──Add──▶ report_sum   one row in each grain, in the same transaction
//	                     │
//	     whole days ─────┤ the coarsest grain that has the requested dimensions
//	     parts of a day ─┤ the grain quarter, or the runs themselves
//	                     ▼
//	                   Usage, Total
//
// A run counts when it ends, as in the ledger. Days are days in the company's
// time zone; a new time zone recounts all rows (SetZone). A transaction that
// adds a run has a shared lock on the company's row of report_zone, so that no
// recount runs meanwhile.
package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// EndedRun is a run that has just ended.
type EndedRun struct {
	CompanyID, TeamID, PersonID, ToolID string
	Plugin                              string
	Credential, CredentialID            string
	Status                              string // succeeded, failed or cancelled
	Results                             int64
	TokensCharged, AllowanceUsed        int64
	Started                             time.Time // zero: it never started
	Finished                            time.Time
}

// Count is a sum over runs.
type Count struct {
	Runs, Succeeded, Failed, Cancelled int64
	Results                            int64
	TokensCharged, AllowanceUsed       int64
	Took                               time.Duration // whole milliseconds
}

// Dimension is a criterion to group by.
type Dimension string

// The dimensions.
const (
	Day        Dimension = "day"
	Team       Dimension = "team"
	Person     Dimension = "person"
	Tool       Dimension = "tool"
	Plugin     Dimension = "plugin"
	Credential Dimension = "credential"
)

// Dimensions lists all dimensions.
var Dimensions = []Dimension{Day, Team, Person, Tool, Plugin, Credential}

// Query selects runs of a company. Empty fields select all.
type Query struct {
	CompanyID   string
	From, Until time.Time // by the end of the run; Until is exclusive
	TeamID      string
	ToolID      string
	Email       string // of the person, case-insensitive
}

// Row is the sum of a group. Only the fields of the requested dimensions are
// set.
type Row struct {
	Day                      string // 2026-11-15, by the company's clock
	TeamID, TeamName         string
	PersonID, Email          string // no address for a deleted person
	ToolID                   string
	Plugin                   string
	Credential, CredentialID string
	CredentialName           string // of an access token, or the kind of a device's plugin; empty: it was deleted
	Count
}

// Run is one run that has ended.
type Run struct {
	ID                         string
	Status, ErrorCode          string
	TeamID, TeamName           string
	PersonID, Email            string // no address for a deleted person
	ToolID, Plugin             string
	Credential, CredentialID   string
	CredentialName             string
	Asked, Results             int64
	TokensCharged              int64
	AllowanceUsed              int64
	Created, Started, Finished time.Time // Started is zero if the run never started
}

// Cursor is the position at which a page of runs ended.
type Cursor struct {
	Finished time.Time
	ID       string
}

// Add counts a run that has just ended, in the transaction that ends it. Rows
// are locked in one order, the busiest last.
func Add(ctx context.Context, tx *sqldb.Tx, e EndedRun) error {
	loc, err := shareZone(ctx, tx, e.CompanyID)
	if err != nil {
		return fmt.Errorf("time zone of company %s: %w", e.CompanyID, err)
	}
	return addCounts(ctx, tx, e, dayOf(e.Finished.UnixMicro(), loc))
}

// Usage returns at most limit rows after the row with these keys, grouped and
// sorted by the dimensions in their order.
func Usage(ctx context.Context, tx *sqldb.Tx, q Query, by []Dimension, after []string, limit int) ([]Row, error) {
	if len(by) == 0 {
		return nil, errors.New("report usage: no dimension to group by")
	}
	p, err := planFor(ctx, tx, q, by)
	if err != nil || len(p.pieces) == 0 {
		return nil, err
	}
	return listUsage(ctx, tx, p, by, after, limit)
}

// SortKeys returns the sort keys of a row, for the next page.
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
		}
	}
	return keys
}

// Total returns the sum over all runs of a query.
func Total(ctx context.Context, tx *sqldb.Tx, q Query) (Count, error) {
	p, err := planFor(ctx, tx, q, nil)
	if err != nil || len(p.pieces) == 0 {
		return Count{}, err
	}
	return sumTotal(ctx, tx, p)
}

// Runs returns at most limit runs after a position; runs that ended last come
// first.
func Runs(ctx context.Context, tx *sqldb.Tx, q Query, after *Cursor, limit int) ([]Run, error) {
	f, ok, err := filterOf(ctx, tx, q)
	if err != nil || !ok {
		return nil, err
	}
	return listRuns(ctx, tx, q, f, after, limit)
}

// Spent returns the tokens that a team was charged in the calendar month of a
// time in the company's time zone, and that month, as in 2026-11. Additions of
// tx count.
func Spent(ctx context.Context, tx *sqldb.Tx, companyID, teamID string, at time.Time) (month string, tokens int64, err error) {
	loc, err := Zone(ctx, tx, companyID)
	if err != nil {
		return "", 0, err
	}
	month, first, end := monthOf(at, loc)
	tokens, err = sumCharged(ctx, tx, companyID, teamID, first, end)
	return month, tokens, err
}

// MonthStart returns when the calendar month of a time began in a time zone.
func MonthStart(at time.Time, loc *time.Location) time.Time {
	_, first, _ := monthOf(at, loc)
	return time.UnixMicro(dayStart(first, loc)).UTC()
}

// Zone returns the time zone of a company.
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

// SetZone sets the time zone of a company, by its IANA name, and recounts all
// its days.
func SetZone(ctx context.Context, tx *sqldb.Tx, companyID, name string) error {
	// Names of the time zone database begin with a capital; others are files
	// beside it, such as localtime and time zones with leap seconds.
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

// Recount recounts all runs of a company, quarters and days, for programs that
// insert runs into the database themselves.
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

// Lock keeps other transactions from adding to a company's sums until tx ends.
// A transaction that also locks the company must lock it first.
func Lock(ctx context.Context, tx *sqldb.Tx, companyID string) error {
	_, err := lockZone(ctx, tx, companyID)
	return err
}

// shareZone returns the time zone of a company and keeps it from changing until
// the transaction ends.
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

// lockZone returns the name of a company's time zone, and keeps other
// transactions from adding to its sums.
func lockZone(ctx context.Context, tx *sqldb.Tx, companyID string) (string, error) {
	if err := insertZone(ctx, tx, companyID); err != nil {
		return "", err
	}
	return zoneName(ctx, tx, companyID, tx.Dialect.ForUpdate)
}
