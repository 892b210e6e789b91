package report

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
)

// quarter is a quarter of an hour in microseconds. Each row of the grain
// "quarter" covers one such slot.
const quarter = int64(15 * time.Minute / time.Microsecond)

// filter restricts a query to a team, a tool or a person. An empty id does not
// restrict.
type filter struct{ teamID, toolID, personID string }

// filterOf returns the filter of a query. ok is false if no person has the
// e-mail address in the query.
func filterOf(ctx context.Context, tx *sqldb.Tx, q Query) (f filter, ok bool, err error) {
	f = filter{teamID: q.TeamID, toolID: q.ToolID}
	if q.Email == "" {
		return f, true, nil
	}
	f.personID, err = personBy(ctx, tx, strings.ToLower(q.Email))
	if errors.Is(err, sqldb.ErrNoRows) {
		return f, false, nil
	}
	return f, err == nil, err
}

// plan describes the rows from which a report is computed.
type plan struct {
	companyID string
	filter
	flows  bool   // the rows are those of report_flow, and flows instead of runs
	grain  string // of report_sum; "" if flows is set
	pieces []piece
}

// source is the kind of rows from which a piece of a plan is read: daily
// totals, totals per quarter of an hour, or single runs.
type source int

const (
	ofDays source = iota
	ofQuarters
	ofRuns
)

// piece is a part of the report's period that is read from one source. The
// pieces of a plan do not overlap.
type piece struct {
	of          source
	from, until int64 // slots, or moments if the source is ofRuns; until is exclusive
	day         int64 // the day of the piece; not set for ofDays
}

func planFor(ctx context.Context, tx *sqldb.Tx, q Query, by []Dimension) (plan, error) {
	f, ok, err := filterOf(ctx, tx, q)
	if err != nil || !ok {
		return plan{}, err
	}
	loc, err := Zone(ctx, tx, q.CompanyID)
	if err != nil {
		return plan{}, err
	}
	// Most queries end at the current time. No run has ended after such a
	// period, so the totals of the whole last day can be used, and the day need
	// not be split.
	open := q.Until.IsZero()
	if !open {
		since, err := endedSince(ctx, tx, q.CompanyID, toMicroseconds(q.Until))
		if err != nil {
			return plan{}, err
		}
		open = !since
	}
	p := plan{companyID: q.CompanyID, filter: f, flows: slices.Contains(by, Flow)}
	if !p.flows {
		p.grain = grainFor(by, f)
	}
	p.pieces = splitPieces(q.From, q.Until, open, loc, p.grain == "day")
	return p, nil
}

// grainFor returns the coarsest grain (level of detail) of report_sum that has
// all dimensions to group or filter by, which do not include Flow.
func grainFor(by []Dimension, f filter) string {
	var needed []Dimension
	for _, d := range Dimensions[1:] {
		wanted := slices.Contains(by, d)
		switch d {
		case Team:
			wanted = wanted || f.teamID != ""
		case Person:
			wanted = wanted || f.personID != ""
		case Tool:
			wanted = wanted || f.toolID != ""
		case Day, Plugin, Credential, Flow: // no filter exists for these dimensions
		}
		if wanted {
			needed = append(needed, d)
		}
	}
	switch len(needed) {
	case 0:
		return "day"
	case 1:
		return string(needed[0])
	}
	return "all"
}

// splitPieces splits a period into whole days and the partial days at its ends.
// The caller sets open if no run has ended after the period, and quarters if
// totals per quarter of an hour can be used for partial days.
func splitPieces(from, until time.Time, open bool, loc *time.Location, quarters bool) (all []piece) {
	begin := max(toMicroseconds(from), 0)
	end := toMicroseconds(until)
	if !until.IsZero() && begin >= end {
		return nil
	}
	first := dayOf(begin, loc)
	if begin > 0 && begin > dayStart(first, loc) { // no run ended before 1970
		next := dayStart(first+1, loc)
		if !open && end <= next {
			return splitPartialDay(begin, end, first, quarters)
		}
		all = splitPartialDay(begin, next, first, quarters)
		first = dayOf(next, loc)
	}
	if open {
		return append(all, piece{of: ofDays, from: first, until: math.MaxInt64})
	}
	last := dayOf(end, loc)
	if first < last {
		all = append(all, piece{of: ofDays, from: first, until: last})
	}
	if start := dayStart(last, loc); start < end {
		all = append(all, splitPartialDay(start, end, last, quarters)...)
	}
	return all
}

// splitPartialDay splits a part of a day into whole quarters of an hour, if
// quarters is set, and the times before and after them, for which single runs
// are read.
func splitPartialDay(from, until, day int64, quarters bool) (all []piece) {
	runs := func(from, until int64) {
		if from < until {
			all = append(all, piece{of: ofRuns, from: from, until: until, day: day})
		}
	}
	first := floorDiv(from+quarter-1, quarter)
	last := floorDiv(until, quarter)
	if !quarters || first >= last {
		runs(from, until)
		return all
	}
	runs(from, first*quarter)
	all = append(all, piece{of: ofQuarters, from: first, until: last, day: day})
	runs(last*quarter, until)
	return all
}

// toMicroseconds converts t to microseconds since 1970, rounded up, because the
// times of runs are stored in microseconds.
func toMicroseconds(t time.Time) int64 {
	m := t.UnixMicro()
	if time.UnixMicro(m).Before(t) {
		m++
	}
	return m
}
