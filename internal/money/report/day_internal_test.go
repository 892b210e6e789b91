package report

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata"
)

// TestDays walks through times at which clocks changed, and compares what is
// computed with what a calendar shows.
func TestDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, zone, around string
		want               []string // days that begin, by UTC
	}{
		{"nothing special", "UTC", "2026-11-15", []string{"2026-11-14T00:00:00Z", "2026-11-15T00:00:00Z", "2026-11-16T00:00:00Z", "2026-11-17T00:00:00Z"}},
		{"an hour less", "Europe/Paris", "2026-03-29", []string{"2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z"}},
		{"an hour more", "America/New_York", "2026-11-01", []string{"2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-11-03T05:00:00Z"}},
		{"no midnight", "America/Sao_Paulo", "2018-11-04", []string{"2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z", "2018-11-06T02:00:00Z"}},
		{"the hour before midnight again", "America/Sao_Paulo", "2019-02-17", []string{"2019-02-16T02:00:00Z", "2019-02-17T03:00:00Z", "2019-02-18T03:00:00Z", "2019-02-19T03:00:00Z"}},
		{"midnight again", "America/Havana", "2026-11-01", []string{"2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-11-03T05:00:00Z"}},
		{"an evening after the new day has begun", "America/St_Johns", "2010-11-07", []string{"2010-11-06T02:30:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z", "2010-11-09T03:30:00Z"}},
		{"a day that there was not", "Pacific/Apia", "2011-12-30", []string{"2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"}},
		{"an odd offset", "Asia/Kathmandu", "2026-11-15", []string{"2026-11-13T18:15:00Z", "2026-11-14T18:15:00Z", "2026-11-15T18:15:00Z", "2026-11-16T18:15:00Z"}},
	} {
		loc, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		around, err := dayNamed(c.around)
		if err != nil || dayName(around) != c.around {
			t.Fatal(err, dayName(around))
		}
		var got []string
		for d := around - 1; d <= around+2; d++ {
			got = append(got, time.UnixMicro(dayStart(d, loc)).UTC().Format(time.RFC3339))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: days begin at %v, want %v", c.name, got, c.want)
		}
		// Every moment lies in the day that began last.
		from, until := dayStart(around-2, loc), dayStart(around+3, loc)
		step := 13 * int64(time.Minute/time.Microsecond)
		parts := clockStretches(from, until, loc)
		for m := from; m < until; m += step {
			for _, m := range []int64{m, m - 1} {
				d := dayOf(m, loc)
				if dayStart(d, loc) > m || dayStart(d+1, loc) <= m {
					t.Fatalf("%s: %v lies in %s", c.name, time.UnixMicro(m).UTC(), dayName(d))
				}
				if m < from {
					continue
				}
				i := slices.IndexFunc(parts, func(s stretch) bool { return m < s.until })
				if s := max(floorDiv(m+parts[i].offset, day), parts[i].first); s != d {
					t.Fatalf("%s: %v lies in %s by its stretch, want %s", c.name, time.UnixMicro(m).UTC(), dayName(s), dayName(d))
				}
			}
		}
	}
}

// TestMonths: October 2023 had no midnight at its beginning in Asunción.
func TestMonths(t *testing.T) {
	t.Parallel()
	loc, err := time.LoadLocation("America/Asuncion")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2023, 10, 1, 4, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]time.Time{begin: begin, begin.AddDate(0, 0, 20): begin, begin.Add(-1): time.Date(2023, 9, 1, 4, 0, 0, 0, time.UTC)} {
		if got := MonthStart(at, loc); !got.Equal(want) {
			t.Errorf("the month of %v begins at %v, want %v", at, got, want)
		}
	}
}

// TestPieces cuts times and puts them together again.
func TestPieces(t *testing.T) {
	t.Parallel()
	loc, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		t.Helper()
		m, err := time.ParseInLocation("2006-01-02 15:04:05.999999", text, loc)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		name        string
		from, until time.Time
		open        bool
		quarters    bool
		want        []source
	}{
		{"all", time.Time{}, time.Time{}, true, true, []source{ofDays}},
		{"whole days", at("2026-10-01 00:00:00"), at("2026-11-10 00:00:00"), false, true, []source{ofDays}},
		{"with nothing later", at("2026-10-01 00:00:00"), at("2026-11-15 12:00:01"), true, true, []source{ofDays}},
		{"with something later", at("2026-10-01 00:00:00"), at("2026-11-15 12:00:00"), false, true, []source{ofDays, ofQuarters}},
		{"with something later, not by day", at("2026-10-01 00:00:00"), at("2026-11-15 12:00:00"), false, false, []source{ofDays, ofRuns}},
		{"whole quarters", at("2026-10-01 00:15:00"), at("2026-11-10 00:30:00"), false, true, []source{ofQuarters, ofDays, ofQuarters}},
		{"parts of quarters", at("2026-10-01 00:15:00.000001"), at("2026-11-10 00:30:00.000001"), false, true, []source{ofRuns, ofQuarters, ofDays, ofQuarters, ofRuns}},
		{"within a day", at("2026-11-01 00:20:00"), at("2026-11-01 05:20:00"), false, true, []source{ofRuns, ofQuarters, ofRuns}},
		{"within a quarter", at("2026-11-01 00:20:00"), at("2026-11-01 00:21:00"), false, true, []source{ofRuns}},
		{"nothing", at("2026-11-01 00:20:00"), at("2026-11-01 00:20:00"), false, true, nil},
		{"backwards", at("2026-11-02 00:20:00"), at("2026-11-01 00:20:00"), false, true, nil},
		{"backwards with nothing later", at("2027-11-02 00:20:00"), at("2027-11-01 00:20:00"), true, true, nil},
	} {
		var got []source
		all := splitPieces(c.from, c.until, c.open, loc, c.quarters)
		next := c.from.UnixMicro()
		if next < 0 {
			next = dayStart(dayOf(0, loc), loc)
		}
		for _, p := range all {
			got = append(got, p.of)
			from, until := p.from, p.until
			switch p.of {
			case ofDays:
				if from = dayStart(from, loc); until < 1e6 {
					until = dayStart(until, loc)
				}
			case ofQuarters:
				from, until = from*quarter, until*quarter
			}
			if from != next || until <= from || p.of != ofDays && (dayOf(from, loc) != p.day || dayOf(until-1, loc) != p.day) {
				t.Errorf("%s: %+v", c.name, all)
			}
			next = until
		}
		if !slices.Equal(got, c.want) || len(all) > 0 && !c.open && next != c.until.UnixMicro() {
			t.Errorf("%s: %+v, want %v", c.name, all, c.want)
		}
	}
}
