package report

import "time"

const day = int64(24 * time.Hour / time.Microsecond)

// dayOf returns the calendar day of a moment in a time zone, as a number of
// days since 1970-01-01. A moment is a number of microseconds since 1970 in
// UTC.
//
// A later moment never has an earlier day: if clocks are set back over
// midnight, the repeated hour before midnight belongs to the new day.
func dayOf(moment int64, loc *time.Location) int64 {
	t := time.UnixMicro(moment).In(loc)
	d := calendarDay(t)
	if start, _ := t.ZoneBounds(); !start.IsZero() {
		d = max(d, calendarDay(start.Add(-time.Microsecond).In(loc)))
	}
	return d
}

// calendarDay returns the calendar day of t in t's time zone, as a number of
// days since 1970-01-01.
func calendarDay(t time.Time) int64 {
	y, m, d := t.Date()
	return floorDiv(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).UnixMicro(), day)
}

// dayStart returns the first moment of a day. If the time zone skipped the day,
// dayStart returns the first moment of the next day.
func dayStart(d int64, loc *time.Location) int64 {
	// far is larger than the UTC offset of any time zone, in microseconds.
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

// dayName formats a day in the form 2026-11-15.
func dayName(d int64) string { return time.UnixMicro(d * day).UTC().Format(time.DateOnly) }

// dayNamed parses a day in the form 2026-11-15.
func dayNamed(name string) (int64, error) {
	t, err := time.Parse(time.DateOnly, name)
	return floorDiv(t.UnixMicro(), day), err
}

// monthOf returns the calendar month of t in a time zone: its name in the form
// 2026-11, its first day and the first day of the next month.
func monthOf(t time.Time, loc *time.Location) (name string, first, end int64) {
	y, m, _ := time.UnixMicro(dayOf(t.UnixMicro(), loc) * day).UTC().Date()
	begin := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	return begin.Format("2006-01"), calendarDay(begin), calendarDay(begin.AddDate(0, 1, 0))
}

// stretch is a period in which the UTC offset of a time zone does not change.
type stretch struct {
	until  int64 // first moment after the period
	offset int64 // UTC offset in microseconds, positive to the east
	first  int64 // earliest day of any moment in the period
}

// clockStretches divides the time from one moment to another, inclusive, into
// periods with a constant UTC offset.
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

// floorDiv returns a / b, rounded down instead of towards zero. b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
