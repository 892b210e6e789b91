package report

import "time"

const day = int64(24 * time.Hour / time.Microsecond)

// dayOf is the day, since 1970, that a moment lies in by a clock. Moments are
// microseconds since 1970 in UTC.
//
// Days follow one another: where a clock is put back over midnight, the evening
// that comes again belongs to the new day.
func dayOf(moment int64, loc *time.Location) int64 {
	t := time.UnixMicro(moment).In(loc)
	d := calendarDay(t)
	if start, _ := t.ZoneBounds(); !start.IsZero() {
		d = max(d, calendarDay(start.Add(-time.Microsecond).In(loc)))
	}
	return d
}

// calendarDay is the day that a calendar shows.
func calendarDay(t time.Time) int64 {
	y, m, d := t.Date()
	return floorDiv(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).UnixMicro(), day)
}

// dayStart is the first moment of a day, or of the next that there is: clocks
// have left out midnights, and whole days.
func dayStart(d int64, loc *time.Location) int64 {
	// No clock is further from UTC than this.
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

// dayName is a day as people write it.
func dayName(d int64) string { return time.UnixMicro(d * day).UTC().Format(time.DateOnly) }

// dayNamed is the day with a name.
func dayNamed(name string) (int64, error) {
	t, err := time.Parse(time.DateOnly, name)
	return floorDiv(t.UnixMicro(), day), err
}

// monthOf is the calendar month that a moment lies in by a clock: its name, its
// first day and the one after its last.
func monthOf(t time.Time, loc *time.Location) (name string, first, end int64) {
	y, m, _ := time.UnixMicro(dayOf(t.UnixMicro(), loc) * day).UTC().Date()
	begin := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	return begin.Format("2006-01"), calendarDay(begin), calendarDay(begin.AddDate(0, 1, 0))
}

// stretch is a time in which a clock does not change.
type stretch struct {
	until  int64 // the moment after it
	offset int64 // microseconds ahead of UTC
	first  int64 // no moment of it lies in an earlier day
}

// clockStretches cover the time from a moment to another.
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
