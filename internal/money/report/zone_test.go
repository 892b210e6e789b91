package report_test

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/report"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

func TestZones(t *testing.T) {
	eachFixture(t, time.Date(2026, 11, 15, 23, 30, 0, 0, time.UTC), func(w fixture) {
		companyID := w.Company()
		zone := func() string {
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) {
				loc, err := report.Zone(w.Context(), tx, companyID)
				return loc.String(), err
			})
		}
		if got := zone(); got != "UTC" {
			w.Errorf("zone = %s, want UTC", got)
		}
		w.setZone(companyID, "Europe/Paris")
		for _, name := range []string{"", "Local", "localtime", "Nowhere/City", "../etc/passwd", "Europe/../Europe/Paris", "posix/Europe/Paris", "+01:00"} {
			err := w.Try(func(tx *sqldb.Tx) error { return report.SetZone(w.Context(), tx, companyID, name) })
			if !fault.Is(err, fault.Invalid) {
				w.Errorf("%q: %v", name, err)
			}
		}
		if got := zone(); got != "Europe/Paris" {
			w.Errorf("zone = %s, want Europe/Paris", got)
		}
		who := generationtest.In(w.Person(0), w.TeamOf(companyID, 10))
		w.begin(who, "cost", "", 1)
		w.succeed(w.Claim("worker"), 1)
		for _, c := range []struct{ zone, day string }{{"Europe/Paris", "2026-11-16"}, {"America/New_York", "2026-11-15"}, {"America/New_York", "2026-11-15"}, {"UTC", "2026-11-15"}} {
			w.setZone(companyID, c.zone)
			rows := w.usage(report.Query{CompanyID: companyID}, []report.Dimension{report.Day}, 10)
			if len(rows) != 1 || rows[0].Day != c.day || rows[0].Runs != 1 {
				w.Errorf("%s: %+v, want %s", c.zone, rows, c.day)
			}
		}
	})
}

// TestEndingWhileTheClockChanges has many end runs of a company whose clock is
// changed again and again.
func TestEndingWhileTheClockChanges(t *testing.T) {
	eachFixture(t, time.Date(2026, 11, 15, 22, 0, 0, 0, time.UTC), func(w fixture) {
		const workers, each = 16, 6
		companyID := w.Company()
		teams := []string{w.TeamOf(companyID, 1000), w.TeamOf(companyID, 1000)}
		var running []run.Run
		for i := range workers * each {
			w.begin(generationtest.In(w.Person(0), teams[i%2]), "cost", "", 1)
			running = append(running, w.Claim("worker"))
		}
		var done atomic.Int64
		dbtest.Together(workers+1, func(i int) {
			if i == workers {
				for n := 0; done.Load() < workers; n++ {
					w.setZone(companyID, []string{"Asia/Kathmandu", "America/New_York", "UTC"}[n%3])
				}
				return
			}
			defer done.Add(1)
			for _, r := range running[i*each : (i+1)*each] {
				w.Pass(time.Minute)
				w.succeed(r, 1)
			}
		})
		w.setZone(companyID, "Europe/Paris")
		loc, err := time.LoadLocation("Europe/Paris")
		w.OK(err)
		want, _ := count(w.ended(), report.Query{CompanyID: companyID}, []report.Dimension{report.Day}, loc)
		if got := w.usage(report.Query{CompanyID: companyID}, []report.Dimension{report.Day}, 10); !slices.Equal(got, want) {
			w.Errorf("%+v, want %+v", got, want)
		}
	})
}

// TestAddingAtOnce adds to the same and to other rows at once. Nobody waits in a
// circle: the database would have one try again.
func TestAddingAtOnce(t *testing.T) {
	eachFixture(t, time.Date(2026, 11, 15, 22, 0, 0, 0, time.UTC), func(w fixture) {
		const workers, each = 16, 20
		companyID := w.Company()
		var tries, flows atomic.Int64
		dbtest.Together(workers+1, func(i int) {
			if i == workers {
				for n := range each {
					w.setZone(companyID, []string{"Asia/Kathmandu", "America/New_York"}[n%2])
				}
				return
			}
			rnd := rand.New(rand.NewPCG(7, uint64(i)))
			for range each {
				some := func() string { return string(rune('a' + rnd.IntN(2))) }
				e := report.EndedRun{
					CompanyID: companyID, TeamID: some(), PersonID: some(), ToolID: some(), Plugin: some(), Credential: some(), CredentialID: some(),
					Status: "failed", Finished: w.Now().Add(time.Duration(rnd.IntN(3)) * 24 * time.Hour),
				}
				if rnd.IntN(2) == 0 {
					e.Flow = &report.FlowTotals{}
					flows.Add(1)
				}
				w.Do(func(tx *sqldb.Tx) error {
					tries.Add(1)
					return report.Add(w.Context(), tx, e)
				})
			}
		})
		if tries.Load() != workers*each {
			w.Errorf("%d tries for %d runs", tries.Load(), workers*each)
		}
		if n := w.Count(`SELECT CAST(sum(runs) AS BIGINT) FROM report_sum WHERE grain = 'quarter'`); n != workers*each {
			w.Errorf("%d runs, want %d", n, workers*each)
		}
		// Each change of the clock counts the flows anew, and there are none.
		if n := w.Count(`SELECT CAST(coalesce(sum(runs), 0) AS BIGINT) FROM report_flow`); n > flows.Load() {
			w.Errorf("%d flows, want at most %d", n, flows.Load())
		}
		w.Exec(`DELETE FROM report_sum`) // there are no runs
		w.Exec(`DELETE FROM report_flow`)
	})
}

// TestChecksSeeWhatIsWrong breaks each rule and looks for its name.
func TestChecksSeeWhatIsWrong(t *testing.T) {
	eachFixture(t, time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC), func(w fixture) {
		companyID := w.Company()
		other := w.Company()
		teamID := w.TeamOf(companyID, 100)
		w.begin(generationtest.In(w.Person(0), teamID), "many", "", 4)
		r := w.Claim("worker")
		w.Pass(time.Second)
		w.succeed(r, 3)
		w.begin(generationtest.In(w.Person(0), teamID), "many", "", 4)
		const finest, quarters, coarser = "the finest totals match the runs", "the totals of quarter hours match the runs", "the coarser totals match the finest"
		const grain, ends, team = "a total has only the keys of its grain", "a total counts runs, each with one final state", "a run has the company of its team"
		for _, c := range []struct {
			damage string
			want   []string
		}{
			{`UPDATE report_sum SET tokens_charged = tokens_charged + 1`, []string{finest, quarters}},
			{`UPDATE report_sum SET results = results + 1 WHERE grain = 'quarter'`, []string{quarters}},
			{`UPDATE report_sum SET slot = slot + 1 WHERE grain = 'quarter'`, []string{quarters}},
			{`DELETE FROM report_sum WHERE grain = 'quarter'`, []string{quarters}},
			{`UPDATE report_sum SET took_ms = took_ms + 1 WHERE grain = 'tool'`, []string{coarser}},
			{`UPDATE report_sum SET allowance_used = allowance_used + 1 WHERE grain = 'person'`, []string{coarser}},
			{`UPDATE report_sum SET slot = slot + 1 WHERE grain = 'plugin'`, []string{coarser}},
			{`UPDATE report_sum SET credential_id = 'x' WHERE grain = 'credential'`, []string{coarser}},
			{`DELETE FROM report_sum WHERE grain = 'day'`, []string{coarser}},
			{`DELETE FROM report_sum`, []string{finest, quarters}},
			{`UPDATE report_sum SET team_id = 'x' WHERE grain = 'quarter'`, []string{grain}},
			{`UPDATE report_sum SET person_id = 'x' WHERE grain = 'day'`, []string{coarser, grain}},
			{`UPDATE report_sum SET succeeded = 0, failed = 1`, []string{finest, quarters}},
			{`UPDATE report_sum SET succeeded = 0 WHERE grain = 'team'`, []string{coarser, ends}},
			{`UPDATE run SET company_id = '` + other + `' WHERE status = 'pending'`, []string{team}},
		} {
			found := w.Damage(report.Checks, c.damage)
			for _, name := range c.want {
				if !found[name] {
					w.Errorf("%s: not found by %q", c.damage, name)
				}
			}
			if len(found) != len(c.want) {
				w.Errorf("%s: found %v, want %q", c.damage, found, c.want)
			}
		}
	})
}
