// Package report sums up what companies use.
//
//	run ends ──Add──▶ report_sum   one row in each grain, in the same transaction
//	                     │
//	     whole days ─────┤ the grain that tells what is asked for, and no more
//	     parts of a day ─┤ the grain quarter, or the runs themselves
//	                     ▼
//	                   Usage, Total
//
// A run counts when it ends, as the ledger does. A day is one by the company's
// clock; another clock has all its rows counted anew (SetZone). Whoever adds a
// run holds the company's row of report_zone, so that nobody counts anew
// meanwhile.
package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// Ended is a run that has just ended.
type Ended struct {
	CompanyID, TeamID, PersonID, ToolID string
	Plugin                              string
	Credential, CredentialID            string
	Status                              string // succeeded, failed or cancelled
	Results                             int64
	TokensCharged, AllowanceUsed        int64
	Started                             time.Time // zero: it never did
	Finished                            time.Time
}

// Count is a sum over runs.
type Count struct {
	Runs, Succeeded, Failed, Cancelled int64
	Results                            int64
	TokensCharged, AllowanceUsed       int64
	Took                               time.Duration // whole milliseconds
}

// Dimension is something to group by.
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

// Dimensions lists them all.
var Dimensions = []Dimension{Day, Team, Person, Tool, Plugin, Credential}

// Query says which runs of a company are meant. Empty parts mean all.
type Query struct {
	CompanyID   string
	From, Until time.Time // finished from, and before
	TeamID      string
	ToolID      string
	Email       string // of the person, in any case
}

// Row is the sum of a group. Only what it was grouped by is filled in.
type Row struct {
	Day                      string // 2026-11-15, by the company's clock
	TeamID, TeamName         string
	PersonID, Email          string // no address for a deleted person
	ToolID                   string
	Plugin                   string
	Credential, CredentialID string
	CredentialName           string // of an access token, or the kind of a device's plugin; "" where it is no more
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
	Created, Started, Finished time.Time // Started is zero where it never did
}

// Place is where a page of runs ended.
type Place struct {
	Finished time.Time
	ID       string
}

// Add counts a run that has just ended, in the transaction that ends it. Where
// several rows are locked they are locked in one order, the busiest last.
func Add(ctx context.Context, tx *sqldb.Tx, e Ended) error {
	loc, err := shareZone(ctx, tx, e.CompanyID)
	if err != nil {
		return fmt.Errorf("clock of company %s: %w", e.CompanyID, err)
	}
	return addCounts(ctx, tx, e, dayOf(e.Finished.UnixMicro(), loc))
}

// Usage gives at most limit rows, grouped by the dimensions in their order, and
// sorted likewise: those after the row with these keys, or the first.
func Usage(ctx context.Context, tx *sqldb.Tx, q Query, by []Dimension, after []string, limit int) ([]Row, error) {
	if len(by) == 0 {
		return nil, errors.New("report usage: grouped by nothing")
	}
	p, err := planFor(ctx, tx, q, by)
	if err != nil || len(p.pieces) == 0 {
		return nil, err
	}
	return listUsage(ctx, tx, p, by, after, limit)
}

// Keys are what a row is sorted by, for the page that comes after it.
func (r Row) Keys(by []Dimension) []string {
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

// Total sums up all that a query means.
func Total(ctx context.Context, tx *sqldb.Tx, q Query) (Count, error) {
	p, err := planFor(ctx, tx, q, nil)
	if err != nil || len(p.pieces) == 0 {
		return Count{}, err
	}
	return sumTotal(ctx, tx, p)
}

// Runs gives at most limit runs, those that ended last first: those after a
// place, or the first.
func Runs(ctx context.Context, tx *sqldb.Tx, q Query, after *Place, limit int) ([]Run, error) {
	f, ok, err := filterOf(ctx, tx, q)
	if err != nil || !ok {
		return nil, err
	}
	return listRuns(ctx, tx, q, f, after, limit)
}

// Spent is what a team was charged in the calendar month that a moment lies in by
// the company's clock, and that month, as in 2026-11. What tx has added counts.
func Spent(ctx context.Context, tx *sqldb.Tx, companyID, teamID string, at time.Time) (month string, tokens int64, err error) {
	loc, err := Zone(ctx, tx, companyID)
	if err != nil {
		return "", 0, err
	}
	month, first, end := monthOf(at, loc)
	tokens, err = sumCharged(ctx, tx, companyID, teamID, first, end)
	return month, tokens, err
}

// MonthStart is when the calendar month that a moment lies in began by a clock.
func MonthStart(at time.Time, loc *time.Location) time.Time {
	_, first, _ := monthOf(at, loc)
	return time.UnixMicro(dayStart(first, loc)).UTC()
}

// Zone is the clock of a company.
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

// SetZone gives a company another clock, by its IANA name, and counts all its
// days anew.
func SetZone(ctx context.Context, tx *sqldb.Tx, companyID, name string) error {
	// Names of the database begin with a capital; others are files beside it, as
	// localtime and those with leap seconds are.
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

var errZone = fault.New(fault.Invalid, "That is no time zone; one is Europe/Paris.").On("time_zone")

// Recount counts all runs of a company anew, quarters as well as days: for those
// who put runs into the database themselves.
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

// Lock keeps everybody from adding to a company's sums until tx ends. Who locks
// the company as well does so before.
func Lock(ctx context.Context, tx *sqldb.Tx, companyID string) error {
	_, err := lockZone(ctx, tx, companyID)
	return err
}

// shareZone gives the clock of a company, which stays until the transaction ends.
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

// lockZone gives the name of a company's clock, and keeps everybody from adding
// to its sums.
func lockZone(ctx context.Context, tx *sqldb.Tx, companyID string) (string, error) {
	if err := insertZone(ctx, tx, companyID); err != nil {
		return "", err
	}
	return zoneName(ctx, tx, companyID, tx.Dialect.ForUpdate)
}
