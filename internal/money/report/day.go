package report

import "time"

const day = int64(24 * time.Hour / time.Microsecond)

// dayOf returns the day since 1970 of a moment in a time zone. Moments are
// microseconds since 1970 in UTC.
//
// Days never go backwards: if a clock is set back over midnight, the repeated
// evening belongs to the new day.
func dayOf(moment int64, loc *time.Location) int64 {
	t := time.UnixMicro(moment).In(loc)
	d := calendarDay(t)
	if start, _ := t.ZoneBounds(); !start.IsZero() {
		d = max(d, calendarDay(start.Add(-time.Microsecond).In(loc)))
	}
	return d
}

// calendarDay returns the calendar day of a time.
func calendarDay(t time.Time) int64 {
	y, m, d := t.Date()
	return floorDiv(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).UnixMicro(), day)
}

// dayStart returns the first moment of a day, or of the next existing day: time
// zones have skipped midnights and whole days.
func dayStart(d int64, loc *time.Location) int64 {
	// far is more than the offset of every time zone from UTC.
	const far = 26 * int64(time.Hour/time.Microsecond)
	before := d*day - far
	after := d*day + far
	for before+1 < after {
		if mid := before + (after-before)/2; dayOf(mid, loc) < d {
			before = mid
		} else {
			after = mid
		}
	}
	return after
}

// dayName returns a day in the form 2026-11-15.
func dayName(d int64) string { return time.UnixMicro(d * day).UTC().Format(time.DateOnly) }

// dayNamed parses the form of dayName.
func dayNamed(name string) (int64, error) {
	t, err := time.Parse(time.DateOnly, name)
	return floorDiv(t.UnixMicro(), day), err
}

// monthOf returns the calendar month of a time in a time zone: its name, its
// first day and the day after its last.
func monthOf(t time.Time, loc *time.Location) (name string, first, end int64) {
	y, m, _ := time.UnixMicro(dayOf(t.UnixMicro(), loc) * day).UTC().Date()
	begin := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	return begin.Format("2006-01"), calendarDay(begin), calendarDay(begin.AddDate(0, 1, 0))
}

// stretch is a span of time in which the offset of a time zone does not change.
type stretch struct {
	until  int64 // the first moment after the stretch
	offset int64 // microseconds ahead of UTC
	first  int64 // no moment of the stretch belongs to an earlier day
}

// clockStretches returns the stretches between two moments.
func clockStretches(from, until int64, loc *time.Location) (all []stretch) {
	for from <= until {
		t := time.UnixMicro(from).In(loc)
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		s := stretch{until: until + 1, offset: int64(offset) * int64(time.Second/time.Microsecond), first: dayOf(from, loc)}
		if !end.IsZero() {
			s.until = min(s.until, end.UnixMicro())
		}
		all = append(all, s)
		from = s.until
	}
	return all
}

// floorDiv divides and rounds down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
