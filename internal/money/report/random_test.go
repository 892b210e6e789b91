package report_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/report"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

// TestReportsEqualTheLedger ends 2,000 random runs, and compares reports of all
// kinds with the ledger and with sums over the runs.
func TestReportsEqualTheLedger(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	// In São Paulo the clock had no midnight on 4 November 2018, and two on 17
	// February 2019.
	eachFixture(t, time.Date(2018, 11, 2, 20, 11, 3, 456789000, time.UTC), func(w fixture) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		companyID, other := w.Company(), w.Company()
		w.setZone(companyID, "America/Sao_Paulo")
		teams := []string{w.TeamOf(companyID, 1_000_000), w.TeamOf(companyID, 1_000_000), w.TeamOf(companyID, 1_000_000), w.TeamOf(other, 1_000_000)}
		var people []string
		for range 5 {
			people = append(people, w.Person(1_000_000))
		}
		w.issue(people[0])
		w.live(rnd, teams, people, 2000)

		all := w.ended()
		q := report.Query{CompanyID: companyID}
		total := w.total(q)
		paid := w.Count(`
			SELECT CAST(-sum(e.amount) AS BIGINT) FROM ledger_entry e JOIN ledger_transaction x ON x.id = e.transaction_id
			WHERE x.kind = 'settle' AND e.account_id IN (SELECT id FROM team WHERE company_id = $1)`, companyID)
		if len(all) != 2000 || total.Runs < 1000 || total.Failed < 50 || total.Cancelled < 50 || total.AllowanceUsed < 100 || total.TokensCharged != paid {
			w.Fatalf("%d runs, the ledger charged %d, the report says %+v", len(all), paid, total)
		}
		for _, zone := range []string{"", "Asia/Kathmandu", "Pacific/Apia", "Africa/Monrovia", "UTC", "America/Sao_Paulo"} {
			if zone != "" {
				w.setZone(companyID, zone)
			}
			w.compare(rnd, all, q, teams, people)
		}
		if v, err := w.DB.VerifyChecks(w.Context(), report.Checks); err != nil || len(v) > 0 {
			w.Errorf("checks = %v, %v", v, err)
		}
	})
}

// live has so many runs begin and end, over some days of two months.
func (w fixture) live(rnd *rand.Rand, teams, people []string, n int) {
	w.Helper()
	slugs := []string{"free", "cost", "many", "many", "quick"}
	plugins := []string{"", "blender", "photoshop"}
	queued := map[string]run.Run{}
	var running []run.Run
	for begun, ended := 0, 0; ended < n; {
		switch rnd.IntN(20) {
		case 0: // to the second of a quarter
			w.Pass(w.Now().Truncate(15 * time.Minute).Add(15 * time.Minute).Sub(w.Now()))
		case 1, 2:
			w.Pass(time.Duration(rnd.Int64N(int64(20 * time.Minute))))
		default:
			w.Pass(time.Duration(rnd.Int64N(int64(3 * time.Minute))))
		}
		switch dice := rnd.IntN(10); {
		case begun < n && (len(queued)+len(running) == 0 || dice < 4 && len(queued)+len(running) < 30):
			if begun == n/2 {
				w.Pass(time.Date(2019, 2, 16, 1, 0, 0, 0, time.UTC).Sub(w.Now()))
			}
			team := teams[rnd.IntN(len(teams))]
			if rnd.IntN(12) == 0 {
				team = ""
			}
			who := w.caller(rnd, people[rnd.IntN(len(people))], team)
			r := w.begin(who, slugs[rnd.IntN(len(slugs))], plugins[rnd.IntN(len(plugins))], 1+rnd.Int64N(8))
			queued[r.ID] = r
			begun++
		case len(queued) > 0 && (dice < 7 || len(running) == 0):
			if rnd.IntN(10) == 0 {
				for _, r := range queued { // some one of them
					w.cancel(r)
					delete(queued, r.ID)
					ended++
					break
				}
				continue
			}
			r := w.Claim("worker")
			delete(queued, r.ID)
			running = append(running, r)
		case len(running) > 0:
			i := rnd.IntN(len(running))
			r := running[i]
			running = slices.Delete(running, i, i+1)
			switch rnd.IntN(8) {
			case 0:
				w.fail(r)
			case 1:
				w.cancel(r)
			default:
				w.succeed(r, 1+rnd.IntN(int(r.NumResults)))
			}
			ended++
		}
	}
}

// compare holds reports of all kinds against sums over the runs.
func (w fixture) compare(rnd *rand.Rand, all []report.EndedRun, q report.Query, teams, people []string) {
	w.Helper()
	loc := w.zone(q.CompanyID)
	w.compareGroups(rnd, all, q, ofRuns, report.Query{TeamID: teams[rnd.IntN(len(teams))], ToolID: w.Tool("many").ID, Email: people[rnd.IntN(len(people))] + "@example.com"})
	for _, teamID := range teams[:3] {
		month := w.Now().In(loc).Format("2006-01")
		var want int64
		for _, e := range all {
			if e.TeamID == teamID && e.Finished.In(loc).Format("2006-01") == month {
				want += e.TokensCharged
			}
		}
		w.Do(func(tx *sqldb.Tx) error {
			name, tokens, err := report.Spent(w.Context(), tx, q.CompanyID, teamID, tx.Now)
			if name != month || tokens != want || tokens == 0 {
				w.Errorf("%v: spent %d in %s, want %d in %s", loc, tokens, name, want, month)
			}
			return err
		})
	}
}

// ofRuns are the dimensions of reports on runs, ofFlows those of reports on flows.
var (
	ofRuns  = []report.Dimension{report.Day, report.Team, report.Person, report.Tool, report.Plugin, report.Credential}
	ofFlows = []report.Dimension{report.Flow, report.Day, report.Team, report.Person}
)

// zone returns the time zone of a company.
func (w fixture) zone(companyID string) *time.Location {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (*time.Location, error) { return report.Zone(w.Context(), tx, companyID) })
}

// compareGroups holds reports by some of the given dimensions against sums over
// the runs, of the whole company and of random periods and filters. If the
// dimensions are those of flows, the runs are flows.
func (w fixture) compareGroups(rnd *rand.Rand, all []report.EndedRun, q report.Query, dimensions []report.Dimension, filters report.Query) {
	w.Helper()
	loc := w.zone(q.CompanyID)
	isFlow := dimensions[0] == report.Flow
	same := func(q report.Query, by []report.Dimension, page int) {
		w.Helper()
		if isFlow && !slices.Contains(by, report.Flow) {
			by = append(by, report.Flow)
		}
		want, total := count(all, q, by, loc)
		if got := w.total(q, by...); got != total {
			w.Errorf("%v: the total by %v of %+v = %+v, want %+v", loc, by, q, got, total)
		}
		if got := w.usage(q, by, page); !slices.Equal(got, want) {
			w.Errorf("%v: by %v of %+v\n%v\nwant\n%v", loc, by, q, got, want)
		}
	}
	for _, d := range dimensions {
		same(q, []report.Dimension{d}, 1000)
		same(q, []report.Dimension{d}, 2)
	}
	same(q, dimensions, 100)
	for range 20 {
		q := q
		from, until := w.moment(rnd, all, loc), w.moment(rnd, all, loc)
		if until.Before(from) {
			from, until = until, from
		}
		if q.From, q.Until = from, until; rnd.IntN(8) == 0 {
			q.Until = time.Time{}
		}
		if rnd.IntN(6) == 0 {
			q.TeamID = filters.TeamID
		}
		if rnd.IntN(6) == 0 {
			q.ToolID = filters.ToolID
		}
		if rnd.IntN(6) == 0 {
			q.Email = filters.Email
		}
		by := slices.Clone(dimensions)
		rnd.Shuffle(len(by), func(i, k int) { by[i], by[k] = by[k], by[i] })
		by = by[:1+rnd.IntN(3)]
		if rnd.IntN(3) == 0 {
			by = []report.Dimension{report.Day}
		}
		same(q, by, 50)
	}
}

// moment is one in which reports can go wrong: near a run, a quarter, a midnight
// or now, and to the nanosecond.
func (w fixture) moment(rnd *rand.Rand, all []report.EndedRun, loc *time.Location) time.Time {
	t := all[rnd.IntN(len(all))].Finished
	switch rnd.IntN(6) {
	case 0:
		t = t.Truncate(15 * time.Minute)
	case 1:
		y, m, d := t.In(loc).Date()
		t = time.Date(y, m, d, 0, 0, 0, 0, loc)
	case 2:
		t = w.Now()
	case 3:
		t = t.Add(time.Duration(rnd.Int64N(int64(24 * time.Hour))))
	}
	return t.Add([]time.Duration{0, 0, -time.Microsecond, time.Microsecond, 1, -1}[rnd.IntN(6)])
}

// TestRunsOfACompany pages through the runs and compares them with the rows.
func TestRunsOfACompany(t *testing.T) {
	eachFixture(t, time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC), func(w fixture) {
		rnd := rand.New(rand.NewPCG(1, 2))
		companyID := w.Company()
		teams := []string{w.TeamOf(companyID, 1000), w.TeamOf(w.Company(), 1000)}
		anna, bert := w.Person(0), w.Person(0)
		w.issue(anna)
		for i := range 12 { // several at one moment
			who := w.caller(rnd, []string{anna, bert}[i%2], teams[i/6])
			w.begin(who, "many", "blender", 3)
			r := w.Claim("worker")
			switch i % 4 {
			case 0, 1:
				w.Pass(time.Second)
				w.succeed(r, 2)
			case 2:
				w.fail(r)
			case 3:
				w.cancel(r)
			}
		}
		laptop := generationtest.In(anna, teams[0])
		laptop.Credential = principal.Credential{Kind: principal.IDToken, ID: "laptop"}
		r := w.begin(laptop, "free", "", 1)
		w.begin(laptop, "free", "", 1)
		w.cancel(r)
		w.Exec(`UPDATE person SET deleted = 1 WHERE id = $1`, bert)
		all := w.runs(report.Query{CompanyID: companyID}, 3)
		if len(all) != 7 {
			w.Fatalf("%d runs: %+v", len(all), all)
		}
		for i, one := range all {
			if i > 0 && (one.Finished.After(all[i-1].Finished) || one.Finished.Equal(all[i-1].Finished) && one.ID >= all[i-1].ID) {
				w.Errorf("%s comes after %s", one.ID, all[i-1].ID)
			}
			r := w.Run(one.ID)
			want := report.Run{
				ID: r.ID, Status: r.State.PublicStatus(), ErrorCode: r.ErrorCode, TeamID: teams[0], TeamName: "Team", PersonID: r.PersonID, Email: anna + "@example.com",
				ToolID: r.ToolID, Plugin: r.Plugin, Credential: r.Credential, CredentialID: r.CredentialID, CredentialName: credentials[r.CredentialID],
				Asked: r.NumResults, TokensCharged: r.TokensCharged, AllowanceUsed: r.AllowanceUsed, Created: r.Created, Started: r.Started, Finished: r.Finished,
			}
			if r.PersonID == bert {
				want.Email = ""
			}
			if r.State == run.Succeeded {
				want.Results = 2
			}
			if one != want {
				w.Errorf("run\n%+v\nwant\n%+v", one, want)
			}
		}
		for _, c := range []struct {
			name string
			q    report.Query
			want int
		}{
			{"of a person", report.Query{Email: anna + "@EXAMPLE.com"}, 4},
			{"of a deleted person", report.Query{Email: bert + "@example.com"}, 0},
			{"of nobody", report.Query{Email: "nobody@example.com"}, 0},
			{"of a team", report.Query{TeamID: teams[0]}, 7},
			{"of another's team", report.Query{TeamID: teams[1]}, 0},
			{"of a tool", report.Query{ToolID: w.Tool("free").ID}, 1},
			{"from then", report.Query{From: all[6].Finished}, 7},
			{"from later", report.Query{From: all[6].Finished.Add(1)}, 6},
			{"before then", report.Query{Until: all[6].Finished}, 0},
		} {
			c.q.CompanyID = companyID
			if got := len(w.runs(c.q, 2)); got != c.want {
				w.Errorf("%s: %d runs, want %d", c.name, got, c.want)
			}
			if got := w.total(c.q); got.Runs != int64(c.want) {
				w.Errorf("%s: a total of %d runs, want %d", c.name, got.Runs, c.want)
			}
		}
		for _, row := range w.usage(report.Query{CompanyID: companyID}, []report.Dimension{report.Person}, 10) {
			if (row.Email == "") != (row.PersonID == bert) {
				w.Errorf("row %+v", row)
			}
		}
	})
}
