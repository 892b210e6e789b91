package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// MaxYears is the maximum length of the period of a report, in years.
const MaxYears = 10

// errZoneChanged is returned for a later page of a report if the company's time
// zone has changed since the first page, because the days are then different.
var errZoneChanged = fault.New(fault.Invalid, "The time zone of this company was changed. Start again at the first page.").On("cursor")

// Service reads reports, each page in a transaction of its own.
type Service struct{ DB *sqldb.DB }

// Request is a report that is read page by page. Reading the first page sets
// the period and the time zone, so that they are the same for all pages.
type Request struct {
	// Query selects the runs. A zero From means the start of the current month,
	// and a zero Until means now.
	Query
	// Zone is the time zone that was used for the earlier pages. It is ""
	// before the first page.
	Zone string
}

// UsagePage is a page of a report whose rows are groups of runs.
type UsagePage struct {
	Rows   []Row
	Totals Count
	// Storage is the storage that the teams currently use. It is set only on
	// the first page.
	Storage []TeamStorage
}

// RunPage is a page of a report whose rows are single runs.
type RunPage struct {
	Rows   []Run
	Totals Count
}

// PeriodProblem returns the reason why a period is invalid, or "" if it is
// valid. A period in which one of the times is zero is always valid.
func PeriodProblem(from, until time.Time) string {
	switch {
	case from.IsZero() || until.IsZero():
	case !from.Before(until):
		return "Must be after start_utc. Without start_utc the period starts at the beginning of the month, without end_utc it ends now."
	case until.After(from.AddDate(MaxYears, 0, 0)):
		return fmt.Sprintf("Must be within %d years of start_utc.", MaxYears)
	}
	return ""
}

// GroupProblem returns the reason why a report cannot be grouped by the given
// dimensions, or "" if it can.
func GroupProblem(by []Dimension) string {
	if !slices.Contains(by, Flow) {
		return ""
	}
	for _, d := range []Dimension{Tool, Plugin, Credential} {
		if slices.Contains(by, d) {
			return fmt.Sprintf("A report by flow cannot also be by %s. Combine flow with day, team and person.", d)
		}
	}
	return ""
}

// ResolvePeriod sets the time zone of a request, and its period if the period
// is omitted.
func (s *Service) ResolvePeriod(ctx context.Context, r *Request) error {
	return s.readPage(ctx, r, func(*sqldb.Tx) error { return nil })
}

// ReadUsage returns the totals of a report and at most limit of its rows,
// starting after the row with the sort keys after.
func (s *Service) ReadUsage(ctx context.Context, r *Request, by []Dimension, after []string, limit int) (UsagePage, error) {
	var page UsagePage
	err := s.readPage(ctx, r, func(tx *sqldb.Tx) error {
		page = UsagePage{}
		var err error
		if page.Totals, err = Total(ctx, tx, r.Query, by); err != nil {
			return err
		}
		if page.Rows, err = Usage(ctx, tx, r.Query, by, after, limit); err != nil || after != nil {
			return err
		}
		page.Storage, err = Storage(ctx, tx, r.CompanyID, r.TeamID)
		return err
	})
	return page, err
}

// ReadUsageRows returns at most limit rows of a report, starting after the row
// with the sort keys after.
func (s *Service) ReadUsageRows(ctx context.Context, r *Request, by []Dimension, after []string, limit int) ([]Row, error) {
	var rows []Row
	err := s.readPage(ctx, r, func(tx *sqldb.Tx) error {
		var err error
		rows, err = Usage(ctx, tx, r.Query, by, after, limit)
		return err
	})
	return rows, err
}

// ReadRuns returns the totals of a report and at most limit of its runs,
// starting after the given position.
func (s *Service) ReadRuns(ctx context.Context, r *Request, after *Cursor, limit int) (RunPage, error) {
	var page RunPage
	err := s.readPage(ctx, r, func(tx *sqldb.Tx) error {
		page = RunPage{}
		var err error
		if page.Totals, err = Total(ctx, tx, r.Query, nil); err != nil {
			return err
		}
		page.Rows, err = Runs(ctx, tx, r.Query, after, limit)
		return err
	})
	return page, err
}

// ReadRunRows returns at most limit runs of a report, starting after the given
// position.
func (s *Service) ReadRunRows(ctx context.Context, r *Request, after *Cursor, limit int) ([]Run, error) {
	var rows []Run
	err := s.readPage(ctx, r, func(tx *sqldb.Tx) error {
		var err error
		rows, err = Runs(ctx, tx, r.Query, after, limit)
		return err
	})
	return rows, err
}

// readPage calls fillIn on the request and then the function do, in one read
// transaction, which may see the database of a few seconds ago.
func (s *Service) readPage(ctx context.Context, r *Request, do func(*sqldb.Tx) error) error {
	return s.DB.ReadStale(sqldb.WithReusedPlans(ctx), func(tx *sqldb.Tx) error {
		if err := r.fillIn(ctx, tx); err != nil {
			return err
		}
		return do(tx)
	})
}

// fillIn sets the time zone of a request. It sets an omitted start to the start
// of the current month, and an omitted end to the current time.
func (r *Request) fillIn(ctx context.Context, tx *sqldb.Tx) error {
	zone, err := Zone(ctx, tx, r.CompanyID)
	if err != nil {
		return err
	}
	if r.Zone != "" && r.Zone != zone.String() {
		return errZoneChanged
	}
	r.Zone = zone.String()

	now := tx.Now.UTC().Truncate(time.Microsecond)
	if r.From.IsZero() {
		r.From = MonthStart(now, zone)
	}
	if r.Until.IsZero() {
		r.Until = now.Add(time.Microsecond) // prevents an empty period if the month begins at this moment
	}
	if problem := PeriodProblem(r.From, r.Until); problem != "" {
		return fault.New(fault.Invalid, "Some parameters are not valid.").Field("end_utc", problem)
	}
	return nil
}
