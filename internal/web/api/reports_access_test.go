package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/base/ids"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/web/api"
	"atelier/internal/web/httpd"
)

// How requests for reports end that are refused.
const (
	welcome     = ""
	unknown     = "UNAUTHENTICATED"
	otherKind   = "FORBIDDEN credential"
	ofOthers    = "FORBIDDEN company"
	otherPlan   = "FORBIDDEN plan"
	otherRole   = "FORBIDDEN permission"
	badCompany  = "INVALID_REQUEST company_id"
	rowsOfCells = 7 * 6
)

// TestReportCells is the table of who may read reports. Anna is in the company,
// whose plan and whose role for her change, and in a second one, with an
// Enterprise plan, where she may read reports.
func TestReportCells(t *testing.T) {
	cells := []struct {
		credential, company           string
		teamPlan, teamPlanMay, ep, in string // TEAM without and with the permission, ENTERPRISE likewise
	}{
		{"none", "own", unknown, unknown, unknown, unknown},
		{"none", "other", unknown, unknown, unknown, unknown},
		{"none", "none", unknown, unknown, unknown, unknown},
		{"none", "empty", unknown, unknown, unknown, unknown},
		{"none", "unknown", unknown, unknown, unknown, unknown},
		{"none", "malformed", unknown, unknown, unknown, unknown},
		{"none", "twice", unknown, unknown, unknown, unknown},

		{"ID token", "own", otherPlan, otherPlan, otherRole, welcome},
		{"ID token", "other", ofOthers, ofOthers, ofOthers, ofOthers},
		{"ID token", "none", ofOthers, ofOthers, ofOthers, ofOthers},
		{"ID token", "empty", ofOthers, ofOthers, ofOthers, ofOthers},
		{"ID token", "unknown", ofOthers, ofOthers, ofOthers, ofOthers},
		{"ID token", "malformed", badCompany, badCompany, badCompany, badCompany},
		{"ID token", "twice", badCompany, badCompany, badCompany, badCompany},

		{"refused ID token", "own", otherKind, otherKind, otherKind, otherKind},
		{"refused ID token", "other", otherKind, otherKind, otherKind, otherKind},
		{"refused ID token", "none", otherKind, otherKind, otherKind, otherKind},
		{"refused ID token", "empty", otherKind, otherKind, otherKind, otherKind},
		{"refused ID token", "unknown", otherKind, otherKind, otherKind, otherKind},
		{"refused ID token", "malformed", otherKind, otherKind, otherKind, otherKind},
		{"refused ID token", "twice", otherKind, otherKind, otherKind, otherKind},

		{"personal token", "own", otherKind, otherKind, otherKind, otherKind},
		{"personal token", "other", otherKind, otherKind, otherKind, otherKind},
		{"personal token", "none", otherKind, otherKind, otherKind, otherKind},
		{"personal token", "empty", otherKind, otherKind, otherKind, otherKind},
		{"personal token", "unknown", otherKind, otherKind, otherKind, otherKind},
		{"personal token", "malformed", otherKind, otherKind, otherKind, otherKind},
		{"personal token", "twice", otherKind, otherKind, otherKind, otherKind},

		{"company token", "own", otherPlan, otherPlan, otherRole, welcome},
		{"company token", "other", ofOthers, ofOthers, ofOthers, ofOthers},
		{"company token", "none", otherPlan, otherPlan, otherRole, welcome},
		{"company token", "empty", otherPlan, otherPlan, otherRole, welcome},
		{"company token", "unknown", ofOthers, ofOthers, ofOthers, ofOthers},
		{"company token", "malformed", badCompany, badCompany, badCompany, badCompany},
		{"company token", "twice", badCompany, badCompany, badCompany, badCompany},

		{"second company's token", "own", ofOthers, ofOthers, ofOthers, ofOthers},
		{"second company's token", "other", ofOthers, ofOthers, ofOthers, ofOthers},
		{"second company's token", "none", welcome, welcome, welcome, welcome}, // it reports on the second
		{"second company's token", "empty", welcome, welcome, welcome, welcome},
		{"second company's token", "unknown", ofOthers, ofOthers, ofOthers, ofOthers},
		{"second company's token", "malformed", badCompany, badCompany, badCompany, badCompany},
		{"second company's token", "twice", badCompany, badCompany, badCompany, badCompany},
	}
	if len(cells) != rowsOfCells {
		t.Fatalf("the table has %d rows, want %d", len(cells), rowsOfCells)
	}
	reports(t, func(t *testing.T, b *reportFixture) {
		second, foreign := b.site.Company("Second", company.EnterprisePlan), b.site.Company("Foreign", company.EnterprisePlan)
		b.site.Admit(second, annasEmail, company.ViewCompanyReports)
		b.site.Admit(foreign, "bert@example.com", company.ViewCompanyReports)
		live := b.site.Device(b.people["anna"], "houdini").Tokens.ID
		_, personal := b.site.Token(annasEmail, "")
		_, seconds := b.site.Token(annasEmail, second)
		strict := b.with(func(p *api.Parts) {
			gate := *p.Gate
			gate.RefuseOAuthReports = true
			p.Gate = &gate
		}, nil)
		callers := map[string]*service{
			"none": b.by("x"), "ID token": b.by(live), "refused ID token": strict.by(live), "personal token": b.by(personal),
			"company token": b.service, "second company's token": b.by(seconds),
		}
		companies := map[string]string{
			"own": "company_id=" + b.company, "other": "company_id=" + foreign, "none": "", "empty": "company_id=", "unknown": "company_id=" + ids.New(),
			"malformed": "company_id=a-b", "twice": "company_id=" + b.company + "&company_id=" + ids.New(),
		}
		bodies := map[string]string{} // of refusals, by the cell but for whether the company exists
		for setting := range 4 {
			onPlan := []company.Plan{company.TeamPlan, company.EnterprisePlan}[setting/2]
			b.exec(`UPDATE company SET plan = $1 WHERE id = $2`, string(onPlan), b.company)
			b.may(setting%2 == 1)
			for _, c := range cells {
				want := []string{c.teamPlan, c.teamPlanMay, c.ep, c.in}[setting]
				for _, path := range bothReports {
					for _, format := range []string{"json", "csv"} {
						a := callers[c.credential].sendRequest("GET", path+"?format="+format+"&"+companies[c.company])
						got := ""
						if a.StatusCode != 200 {
							e := a.readError(t)
							got = string(e.Code)
							if reason, ok := e.Details["reason"].(string); ok {
								got += " " + reason
							}
							if strings.Contains(string(a.body), `"path":"company_id"`) {
								got += " company_id"
							}
							body := strings.Replace(string(a.body), e.TraceID, "", 1)
							if c.company == "other" || c.company == "unknown" {
								if first, seen := bodies[c.credential]; !seen {
									bodies[c.credential] = body
								} else if first != body {
									t.Errorf("%s for %s answers %s, elsewhere %s", c.credential, c.company, body, first)
								}
							}
						}
						if got != want {
							t.Errorf("%s, company %s, plan %s, permission %v: %s as %s = %d %.200s, want %q", c.credential, c.company, onPlan, setting%2 == 1, path, format, a.StatusCode, a.body, want)
						}
					}
				}
			}
		}
	})
}

// with serves the same installation with other parts. hook, if any, sits
// between the API and the connection.
func (s *service) with(change func(*api.Parts), hook func(http.ResponseWriter) http.ResponseWriter) *service {
	s.t.Helper()
	p := s.parts
	change(&p)
	h, err := api.New(p)
	if err != nil {
		s.t.Fatal(err)
	}
	outer := http.Handler(httpd.New(h, httpd.Options{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Health: &httpd.Health{Now: time.Now}, Now: time.Now, DatabaseBudget: time.Minute}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hook != nil {
			w = hook(w)
		}
		outer.ServeHTTP(w, r)
	}))
	s.t.Cleanup(server.Close)
	other := *s
	other.url = server.URL
	return &other
}

func TestReportsEndWithThePermission(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		b.ran(someRuns()...)
		for _, path := range bothReports {
			page := getJSON[struct {
				NextCursor string `json:"next_cursor"`
			}](b.service, path+"?limit=2&"+inNovember)
			next := path + "?limit=2&" + inNovember + "&cursor=" + page.NextCursor
			b.may(false)
			if a := b.sendRequest("GET", next).checkStatus(t, "the next page of "+path, 403, "FORBIDDEN"); a.readError(t).Details["reason"] != "permission" {
				t.Errorf("reason = %s", a.body)
			}
			for elsewhere, want := range map[string]int{
				"/api/v2/me": 200, "/api/v2/tools": 200, "/api/v2/tools?team_id=" + b.teams[0]: 200, "/api/v2/generations?team_id=" + b.teams[0]: 200,
				"/api/v2/generate/" + uuid.NewString() + "?team_id=" + b.teams[0]: 404,
			} {
				if a := b.sendRequest("GET", elsewhere); a.StatusCode != want {
					t.Errorf("without the permission %s = %d, want %d", elsewhere, a.StatusCode, want)
				}
			}
			b.send("POST", "/api/v2/generate/preview-cost?team_id="+b.teams[0], "application/json", strings.NewReader(`{}`)).checkStatus(t, "a preview", 400, "INVALID_REQUEST")
			b.may(true)
			b.sendRequest("GET", next).checkStatus(t, "the next page with the permission again", 200, "")
		}
	})
}

// flushed calls a function after the first part of an answer has left.
type flushed struct {
	http.ResponseWriter
	once *sync.Once
	then func()
}

func (f flushed) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f flushed) FlushError() error {
	err := http.NewResponseController(f.ResponseWriter).Flush()
	f.once.Do(f.then)
	return err
}

// TestTablesBreakOff takes the permission away while a file is on its way, or
// changes the company's clock, by which the rest would be of other days.
func TestTablesBreakOff(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		var runs []past
		for i := range 1100 {
			runs = append(runs, past{person: "anna", plugin: fmt.Sprint("plugin ", i), tokens: 1, finished: november(1+i%20, i%24)})
		}
		b.ran(runs...)
		_, totals := b.rows(bothReports[0], inNovember+"&group_by=team", 10)
		if totals["runs"] != 1100.0 {
			t.Fatalf("totals = %v", totals)
		}
		for path, query := range map[string]string{bothReports[0]: inNovember + "&group_by=plugin", bothReports[1]: inNovember} {
			lines := b.table(path, query)
			seen := map[string]bool{}
			for _, line := range lines {
				seen[strings.Join(line, "\x00")] = true
			}
			if len(lines) != 1101 || len(seen) != 1101 {
				t.Errorf("%s has %d lines, %d of them different, want 1101", path, len(lines), len(seen))
			}
			for what, then := range map[string]func(){"without the permission": func() { b.may(false) }, "with another clock": func() { b.zone("Asia/Tokyo") }} {
				once := &sync.Once{}
				hooked := b.with(func(*api.Parts) {}, func(w http.ResponseWriter) http.ResponseWriter { return flushed{w, once, then} })
				a, err := hooked.tryFetch("GET", hooked.url+path+"?format=csv&"+query, "Authorization", "Bearer "+b.token)
				if !errors.Is(err, io.ErrUnexpectedEOF) || a.Response == nil || a.StatusCode != 200 || bytes.Count(a.body, []byte("\r\n")) != 1001 {
					t.Errorf("%s %s after the first page: %d lines, %v, want 1001 and broken off", path, what, bytes.Count(a.body, []byte("\r\n")), err)
				}
				b.may(true)
				b.zone("UTC")
			}
		}
	})
}

// reading is a call for a report, and whether it was let in.
type reading struct {
	began, ended time.Time
	in           bool
}

// setting is a change of the permission.
type setting struct {
	began, ended time.Time
	to           bool
}

// linear tells whether the readings can be put between the settings, of which
// the first was before all. Each gets the earliest setting that it can have
// seen and that nobody before it proves to be over.
func linear(readings []reading, settings []setting) bool {
	slices.SortFunc(readings, func(a, b reading) int { return a.began.Compare(b.began) })
	saw := make([]int, len(readings))
	for i, r := range readings {
		least := 0
		for j := range i {
			if readings[j].ended.Before(r.began) {
				least = max(least, saw[j])
			}
		}
		saw[i] = -1
		for v := least; v < len(settings); v++ {
			over := v+1 < len(settings) && settings[v+1].ended.Before(r.began)
			if settings[v].to == r.in && !over && settings[v].began.Before(r.ended) {
				saw[i] = v
				break
			}
		}
		if saw[i] < 0 {
			return false
		}
	}
	return true
}

func TestLinear(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return november(1, 0).Add(time.Duration(ms) * time.Millisecond) }
	settings := []setting{{at(0), at(1), true}, {at(10), at(20), false}, {at(50), at(60), true}}
	for _, x := range []struct {
		name     string
		readings []reading
		want     bool
	}{
		{"before", []reading{{at(2), at(3), true}}, true},
		{"refused before", []reading{{at(2), at(3), false}}, false},
		{"either, meanwhile", []reading{{at(12), at(15), true}, {at(16), at(18), false}}, true},
		{"back again, meanwhile", []reading{{at(12), at(14), false}, {at(16), at(18), true}}, false},
		{"let in after", []reading{{at(21), at(30), true}}, false},
		{"refused after", []reading{{at(21), at(30), false}}, true},
		{"over all of it", []reading{{at(21), at(55), true}, {at(22), at(70), false}}, true},
	} {
		if got := linear(x.readings, settings); got != x.want {
			t.Errorf("%s = %v, want %v", x.name, got, x.want)
		}
	}
}

// TestPermissionUnderCalls gives and takes the permission during hundreds of
// calls: each answer must fit the role at a moment between request and answer.
func TestPermissionUnderCalls(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		const readers, calls = 4, 100
		began := time.Now()
		b.may(true)
		settings := []setting{{began, time.Now(), true}}
		var mu sync.Mutex
		var readings []reading
		var group sync.WaitGroup
		for n := range readers {
			group.Go(func() {
				for range calls {
					r := reading{began: time.Now()}
					a := b.sendRequest("GET", bothReports[n%2]+"?"+inNovember)
					r.ended, r.in = time.Now(), a.StatusCode == 200
					if !r.in && (a.StatusCode != 403 || a.readError(t).Details["reason"] != "permission") {
						t.Errorf("%d %s", a.StatusCode, a.body)
					}
					mu.Lock()
					readings = append(readings, r)
					mu.Unlock()
				}
			})
		}
		done := make(chan struct{})
		go func() { group.Wait(); close(done) }()
		for to := false; ; to = !to {
			one := setting{began: time.Now(), to: to}
			b.may(to)
			one.ended = time.Now()
			settings = append(settings, one)
			select {
			case <-done:
			default:
				continue
			}
			break
		}
		let := 0
		for _, r := range readings {
			if r.in {
				let++
			}
		}
		if let == 0 || let == len(readings) {
			t.Errorf("%d of %d were let in over %d changes, want some", let, len(readings), len(settings))
		}
		if !linear(readings, settings) {
			t.Errorf("%d answers do not fit %d changes", len(readings), len(settings))
		}
	})
}

func TestRemovedMembersTokenIsDead(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		live := b.by(b.site.Device(b.people["anna"], "blender").Tokens.ID)
		if err := b.site.Companies.Members.RemoveMemberByEmail(t.Context(), principal.Operator(), b.company, annasEmail); err != nil {
			t.Fatal(err)
		}
		for _, path := range bothReports {
			b.sendRequest("GET", path).checkStatus(t, "a company token of a former member", 401, "UNAUTHENTICATED")
			a := live.sendRequest("GET", path+"?company_id="+b.company).checkStatus(t, "an ID token of a former member", 403, "FORBIDDEN")
			if reason := a.readError(t).Details["reason"]; reason != "company" {
				t.Errorf("reason = %v, want company", reason)
			}
		}
	})
}
