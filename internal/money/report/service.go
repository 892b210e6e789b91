package report

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// MaxYears bounds the period of a report.
const MaxYears = 10

// errZoneChanged refuses to continue a report after the company changed its
// time zone: the earlier pages have other days.
var errZoneChanged = fault.New(fault.Invalid, "The time zone of this company was changed. Begin again at the first page.").On("cursor")

// Service reads reports, each page in a transaction of its own.
type Service struct{ DB *sqldb.DB }

// Request is a report that is read page by page. Reading a page fills in the
// period and the time zone, so that all pages have the same.
type Request struct {
	// Query selects the runs. A zero From means the start of this month, a zero
	// Until means now.
	Query
	// Zone is the time zone that earlier pages were counted in, "" on the first
	// page.
	Zone string
}

// UsagePage is a page of grouped sums.
type UsagePage struct {
	Rows   []Row
	Totals Count
	// Storage is the storage that the teams use now. Only the first page has
	// it.
	Storage []TeamStorage
}

// RunPage is a page of runs.
type RunPage struct {
	Rows   []Run
	Totals Count
}

// PeriodProblem returns the problem with a period, or "". A zero time is not
// checked.
func PeriodProblem(from, until time.Time) string {
	switch {
	case from.IsZero() || until.IsZero():
	case !from.Before(until):
		return "Must be after start_utc. The defaults are now, and the beginning of the month for start_utc."
	case until.After(from.AddDate(MaxYears, 0, 0)):
		return fmt.Sprintf("Must be within %d years of start_utc.", MaxYears)
	}
	return ""
}

// ResolvePeriod fills in the period and the time zone of a request.
func (s *Service) ResolvePeriod(ctx context.Context, r *Request) error {
	return s.readPage(ctx, r, func(*sqldb.Tx) error { return nil })
}

// ReadUsage returns at most limit sums after the row with these keys, with totals.
func (s *Service) ReadUsage(ctx context.Context, r *Request, by []Dimension, after []string, limit int) (UsagePage, error) {
	var page UsagePage
	err := s.readPage(ctx, r, func(tx *sqldb.Tx) error {
		page = UsagePage{}
		var err error
		if page.Totals, err = Total(ctx, tx, r.Query); err != nil {
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

// ReadUsageRows returns at most limit sums after the row with these keys.
func (s *Service) ReadUsageRows(ctx context.Context, r *Request, by []Dimension, after []string, limit int) ([]Row, error) {
	var rows []Row
	err := s.readPage(ctx, r, func(tx *sqldb.Tx) error {
		var err error
		rows, err = Usage(ctx, tx, r.Query, by, after, limit)
		return err
	})
	return rows, err
}

// ReadRuns returns at most limit runs after a place, with totals.
func (s *Service) ReadRuns(ctx context.Context, r *Request, after *Cursor, limit int) (RunPage, error) {
	var page RunPage
	err := s.readPage(ctx, r, func(tx *sqldb.Tx) error {
		page = RunPage{}
		var err error
		if page.Totals, err = Total(ctx, tx, r.Query); err != nil {
			return err
		}
		page.Rows, err = Runs(ctx, tx, r.Query, after, limit)
		return err
	})
	return page, err
}

// ReadRunRows returns at most limit runs after a place.
func (s *Service) ReadRunRows(ctx context.Context, r *Request, after *Cursor, limit int) ([]Run, error) {
	var rows []Run
	err := s.readPage(ctx, r, func(tx *sqldb.Tx) error {
		var err error
		rows, err = Runs(ctx, tx, r.Query, after, limit)
		return err
	})
	return rows, err
}

// readPage resolves the request and calls do in one read transaction.
func (s *Service) readPage(ctx context.Context, r *Request, do func(*sqldb.Tx) error) error {
	return s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		if err := r.fillIn(ctx, tx); err != nil {
			return err
		}
		return do(tx)
	})
}

// fillIn fills in an omitted period: this month until now.
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
		r.Until = now.Add(time.Microsecond) // a month that begins now is not empty
	}
	if problem := PeriodProblem(r.From, r.Until); problem != "" {
		return fault.New(fault.Invalid, "Some parameters are not valid.").Field("end_utc", problem)
	}
	return nil
}
