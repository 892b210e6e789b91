package report_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/asset"
	"atelier/internal/file/ingest"
	"atelier/internal/money/report"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

// fixture is an installation in which companies run tools.
type fixture struct {
	*generationtest.Installation
}

// eachFixture runs fn in a fixture that begins at a moment, on each kind of database.
func eachFixture(t *testing.T, begin time.Time, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, generationtest.Checks, func(d dbtest.Fixture) {
		d.Pass(begin.Sub(d.Now()))
		fn(fixture{generationtest.New(d, func(s *generation.Settings) { generationtest.Unlimited(s); s.MonthlyAllowance = 100 })})
	})
}

// begin creates a run of a tool that makes at most n results.
func (w fixture) begin(who principal.Principal, slug, plugin string, n int64) run.Run {
	w.Helper()
	d := w.Draft(who, slug)
	d.Plugin = plugin
	if slug == "many" {
		d.NumResults = &n
	}
	return w.Create(d)
}

// succeed ends a run with n results, whose files do not exist.
func (w fixture) succeed(r run.Run, n int) {
	w.Helper()
	e := generation.Outcome{State: run.Succeeded, Took: time.Second}
	for range n {
		id := ids.New()
		e.Results = append(e.Results, generation.StoredResult{StoredFile: ingest.StoredFile{Asset: asset.Asset{
			ID: id, Type: "IMG", MimeType: "image/png", Size: 1, SHA256: ids.Hash(id), Width: 8, Height: 8, Blob: ingest.Key(id, "", "png"),
		}}})
	}
	w.OK(w.Runs.EndRun(w.Context(), r, e))
}

func (w fixture) fail(r run.Run) {
	w.Helper()
	w.OK(w.Runs.EndRun(w.Context(), r, generation.Outcome{State: run.Failed, ErrorCode: "ENGINE_FAILED", ErrorText: "It broke."}))
}

func (w fixture) cancel(r run.Run) {
	w.Helper()
	w.OK(w.Runs.EndRun(w.Context(), r, generation.Outcome{State: run.Cancelled}))
}

func (w fixture) setZone(companyID, zone string) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) error { return report.SetZone(w.Context(), tx, companyID, zone) })
}

// usage returns all rows of a report, in pages of a size.
func (w fixture) usage(q report.Query, by []report.Dimension, page int) (all []report.Row) {
	w.Helper()
	w.OK(w.DB.Read(w.Context(), func(tx *sqldb.Tx) error {
		all = nil
		for {
			var after []string
			if len(all) > 0 {
				after = all[len(all)-1].SortKeys(by)
			}
			some, err := report.Usage(w.Context(), tx, q, by, after, page)
			all = append(all, some...)
			if err != nil || len(some) < page {
				return err
			}
		}
	}))
	return all
}

func (w fixture) total(q report.Query, by ...report.Dimension) (c report.Count) {
	w.Helper()
	w.OK(w.DB.Read(w.Context(), func(tx *sqldb.Tx) (err error) { c, err = report.Total(w.Context(), tx, q, by); return err }))
	return c
}

// runs returns all runs of a report, in pages of a size.
func (w fixture) runs(q report.Query, page int) (all []report.Run) {
	w.Helper()
	w.OK(w.DB.Read(w.Context(), func(tx *sqldb.Tx) error {
		all = nil
		for {
			var after *report.Cursor
			if len(all) > 0 {
				last := all[len(all)-1]
				after = &report.Cursor{Finished: last.Finished, ID: last.ID}
			}
			some, err := report.Runs(w.Context(), tx, q, after, page)
			all = append(all, some...)
			if err != nil || len(some) < page {
				return err
			}
		}
	}))
	return all
}

// ended reads all runs that have ended, without the help of the package.
func (w fixture) ended() (all []report.EndedRun) {
	w.Helper()
	w.OK(w.DB.Read(w.Context(), func(tx *sqldb.Tx) (err error) {
		all, err = sqldb.All(w.Context(), tx, `
			SELECT coalesce(company_id, ''), coalesce(team_id, ''), person_id, tool_id, plugin, credential, credential_id, status, tokens_charged, allowance_used, started, finished,
				(SELECT count(*) FROM result s WHERE s.run_id = run.id) FROM run WHERE status <> 'pending'`, nil, func(row sqldb.Scanner) (e report.EndedRun, err error) {
			var started, finished sqldb.Time
			err = row.Scan(&e.CompanyID, &e.TeamID, &e.PersonID, &e.ToolID, &e.Plugin, &e.Credential, &e.CredentialID, &e.Status, &e.TokensCharged, &e.AllowanceUsed,
				&started, &finished, &e.Results)
			e.Started, e.Finished = started.Time, finished.Time
			return e, err
		})
		return err
	}))
	return all
}

// plus adds a run to a sum.
func plus(c report.Count, e report.EndedRun) report.Count {
	c.Runs++
	switch e.Status {
	case "succeeded":
		c.Succeeded++
	case "failed":
		c.Failed++
	case "cancelled":
		c.Cancelled++
	}
	c.Results += e.Results
	c.TokensCharged += e.TokensCharged
	c.AllowanceUsed += e.AllowanceUsed
	if !e.Started.IsZero() {
		c.Took += e.Finished.Sub(e.Started).Truncate(time.Millisecond)
	}
	return c
}

// matches reports whether a query selects a run.
func matches(q report.Query, e report.EndedRun) bool {
	return e.CompanyID == q.CompanyID && !e.Finished.Before(q.From) && (q.Until.IsZero() || e.Finished.Before(q.Until)) &&
		(q.TeamID == "" || q.TeamID == e.TeamID) && (q.ToolID == "" || q.ToolID == e.ToolID) && (q.Email == "" || q.Email == e.PersonID+"@example.com")
}

// count sums up the runs that a query selects, group by group, in the order of
// the keys.
func count(all []report.EndedRun, q report.Query, by []report.Dimension, loc *time.Location) (rows []report.Row, total report.Count) {
	groups := map[string]report.Row{}
	for _, e := range all {
		if !matches(q, e) {
			continue
		}
		total = plus(total, e)
		var r report.Row
		for _, d := range by {
			switch d {
			case report.Day:
				r.Day = e.Finished.In(loc).Format(time.DateOnly)
			case report.Team:
				r.TeamID, r.TeamName = e.TeamID, "Team"
			case report.Person:
				r.PersonID, r.Email = e.PersonID, e.PersonID+"@example.com"
			case report.Tool:
				r.ToolID = e.ToolID
			case report.Plugin:
				r.Plugin = e.Plugin
			case report.Credential:
				r.Credential, r.CredentialID, r.CredentialName = e.Credential, e.CredentialID, credentials[e.CredentialID]
			case report.Flow:
				r.FlowID = e.ToolID
			}
		}
		key := fmt.Sprintf("%q", r.SortKeys(by))
		was, ok := groups[key]
		if !ok {
			was = r
		}
		was.Count = plus(was.Count, e)
		groups[key] = was
	}
	for _, r := range groups {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b report.Row) int { return slices.Compare(a.SortKeys(by), b.SortKeys(by)) })
	return rows, total
}

// credentials are the credentials of runs, with their names in reports.
var credentials = map[string]string{"laptop": "blender", "desk": "", "ci": "Build server", "forgotten": ""}

// caller returns a principal: a person in a team with a random credential.
func (w fixture) caller(rnd *rand.Rand, personID, teamID string) principal.Principal {
	who := generationtest.In(personID, teamID)
	if teamID == "" {
		who = generationtest.Own(personID)
	}
	switch rnd.IntN(4) {
	case 0:
		who.Credential = principal.Credential{Kind: principal.IDToken, ID: "laptop"}
	case 1:
		who.Credential = principal.Credential{Kind: principal.IDToken, ID: "desk"}
	case 2:
		who.Credential = principal.Credential{Kind: principal.PersonalToken, ID: "ci"}
	default:
		who.Credential = principal.Credential{Kind: principal.CompanyToken, ID: "forgotten"}
	}
	return who
}

// issue creates the credentials that still exist.
func (w fixture) issue(personID string) {
	w.Helper()
	for id, kind := range map[string]string{"laptop": "blender", "desk": ""} {
		w.Exec(`INSERT INTO device (id, person_id, plugin_kind, agent, address, provider, created, last_used, revoked_why) VALUES ($1, $2, $3, '', '', '', 1, 1, '')`, id, personID, kind)
	}
	w.Exec(`INSERT INTO access_token (id, person_id, name, hash, hint, created) VALUES ('ci', $1, 'Build server', 'h', '', 1)`, personID)
}
