package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/run/node"
	"atelier/internal/run/run"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/api"
	"atelier/internal/web/api/operator"
	"atelier/internal/web/api/wire"
)

// operatorFixture is the API with an operator, who is signed in with a browser.
type operatorFixture struct {
	*runFixture
	operator *service // with a web token of the operator
	uid      string   // of the operator
}

// eachOperatorFixture runs fn on both databases.
func eachOperatorFixture(t *testing.T, fn func(t *testing.T, m *operatorFixture)) {
	t.Helper()
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		operators := principal.NewOperators([]string{"Olga@Example.com"})
		m.site.Gate.Operators = operators
		m.site.Accounts.Profiles.Operators = operators
		m.site.Accounts.Settings.Operators = operators
		o := &operatorFixture{runFixture: m, uid: m.site.Person("olga@example.com")}
		o.operator = m.with(func(*api.Parts) {}, nil) // after the operators were named
		o.operator.token = o.webToken(o.uid)
		fn(t, o)
	})
}

// webToken signs a person in with a browser and returns a token of the session.
func (m *operatorFixture) webToken(personID string) (token string) {
	m.t.Helper()
	ctx := m.t.Context()
	err := m.db.Write(ctx, func(tx *sqldb.Tx) error {
		s, _, err := session.Start(ctx, tx, session.Session{PersonID: personID, Provider: "password"}, time.Hour)
		if err != nil {
			return err
		}
		token, _, err = m.site.Tokens.SignToken(ctx, tx, idtoken.Claims{PersonID: personID, SessionID: s.ID})
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return token
}

// operatorAs returns the operator's service with another token.
func (m *operatorFixture) operatorAs(token string) *service {
	s := *m.operator
	s.token = token
	return &s
}

// audited returns the audit entries with an act, newest first.
func (m *operatorFixture) audited(act audit.Act) (records []audit.Record) {
	m.t.Helper()
	err := m.db.Read(m.t.Context(), func(tx *sqldb.Tx) (err error) {
		records, err = audit.List(m.t.Context(), tx, audit.Filter{Acts: []audit.Act{act}, Limit: 100})
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return records
}

// balanceOf returns the balance of a person.
func (m *operatorFixture) balanceOf(email string) wire.Balance {
	m.t.Helper()
	people := getJSON[wire.OperatorPersonList](m.operator, "/api/v2/operator/people?q="+url.QueryEscape(email)).Data
	if len(people) != 1 {
		m.t.Fatalf("people = %+v, want one with the address %s", people, email)
	}
	return people[0].Balance
}

// operatorPaths are the routes for operators that only read.
var operatorPaths = []string{"status", "runs", "people", "companies", "settings"}

// TestOperatorsAreNamedAndVerified holds all routes for operators against
// everybody else. The matrix has further credentials.
func TestOperatorsAreNamedAndVerified(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		set := func(query string) {
			t.Helper()
			m.exec(query, m.uid)
		}
		check := func(what string, s *service, want outcome) {
			t.Helper()
			for _, path := range operatorPaths {
				a := s.sendRequest("GET", "/api/v2/operator/"+path)
				got := outcome{status: a.StatusCode}
				if a.StatusCode >= 400 {
					e := a.readError(t)
					got.code = string(e.Code)
					got.reason, _ = e.Details["reason"].(string)
				}
				if got != want {
					t.Errorf("%s: %s = %v, want %v", what, path, got, want)
				}
			}
		}
		checkMe := func(what string, s *service, want bool) {
			t.Helper()
			if got := getJSON[wire.Identity](s, "/api/v2/me").Operator; got != want {
				t.Errorf("%s: operator = %t in /me, want %t", what, got, want)
			}
		}

		check("an operator in a browser", m.operator, fine)
		checkMe("an operator in a browser", m.operator, true)
		device := m.operatorAs(m.site.Device(m.uid, "blender").Tokens.ID)
		check("an operator's app", device, fine)
		checkMe("an operator's app", device, true)

		_, secret := m.site.Token("olga@example.com", "")
		token := m.operatorAs(secret)
		check("an operator's access token", token, wrongKind)
		checkMe("an operator's access token", token, false)

		bert := m.operatorAs(m.webToken(m.site.Person("bert@example.com")))
		check("somebody else", bert, noOperator)
		checkMe("somebody else", bert, false)

		set(`UPDATE person SET email_verified = FALSE WHERE id = $1`)
		check("an unverified address", m.operator, noOperator)
		checkMe("an unverified address", m.operator, false)
		set(`UPDATE person SET email_verified = TRUE WHERE id = $1`)

		set(`UPDATE person SET email = 'other@example.com', email_key = 'other@example.com' WHERE id = $1`)
		check("another address", m.operator, noOperator)
		checkMe("another address", m.operator, false)
		set(`UPDATE person SET email = 'olga@example.com', email_key = 'olga@example.com' WHERE id = $1`)

		check("the address again", m.operator, fine)
		set(`UPDATE person SET suspended = TRUE WHERE id = $1`)
		check("suspended, in a browser", m.operator, noCredential)
		check("suspended, on a device", device, noCredential)
	})
}

// TestOperatorsWithoutSetting: nobody is an operator unless somebody is named.
func TestOperatorsWithoutSetting(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		m.site.Gate.Operators = principal.NewOperators(nil)
		for _, path := range operatorPaths {
			m.operator.sendRequest("GET", "/api/v2/operator/"+path).checkStatus(t, path, 403, "FORBIDDEN")
		}
	})
}

func TestOperatorStatus(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		m.run("", m.body("one", steps(`[{"hang":true}]`)))
		m.exec(`UPDATE run SET created = created - 60000000`) // a minute ago
		m.run("", m.body("one", steps(`[{"hang":true}]`)))
		silent := ids.New()
		m.exec(`INSERT INTO node (id, version, roles, engines, started, seen) VALUES ($1, '1', 'api', '[]', 1, $2), ('gone', '1', 'api', '[]', 1, 1)`,
			silent, sqldb.At(m.db.Now().Add(-2*node.LiveFor)))

		status := getJSON[wire.OperatorStatus](m.operator, "/api/v2/operator/status")
		if status.Waiting != 2 || status.Running != 0 || len(status.Nodes) != 1 || status.Nodes[0].ID != silent || status.Nodes[0].Live {
			t.Errorf("status before a worker starts = %+v, want two waiting runs and one silent node", status)
		}
		script := engineNamed(t, status, "script")
		if script.Health != wire.OperatorHealthUnserved || script.Waiting != 2 || script.OldestWaitSeconds == nil || *script.OldestWaitSeconds < 60 ||
			script.MedianWaitSeconds == nil || *script.MedianWaitSeconds > *script.OldestWaitSeconds || len(script.Tools) == 0 {
			t.Errorf("engine before a worker starts = %+v", script)
		}
		if string(status.Database) != m.db.Dialect.Name || status.Storage.Kind != wire.Folder || status.Storage.State != "ok" || status.Version == "" {
			t.Errorf("status = %+v", status)
		}

		m.work()
		reporter := &node.Reporter{
			DB:      m.db,
			Log:     slog.New(slog.DiscardHandler),
			Node:    node.Node{ID: m.runner.WorkerID(), Version: "2.1.0", Roles: []string{"api", "worker"}, Started: m.db.Now()},
			Engines: m.runner.Engines,
		}
		watch.Until(t, "both runs are running", func() bool {
			if err := reporter.ReportNow(t.Context()); err != nil {
				t.Fatal(err)
			}
			status = getJSON[wire.OperatorStatus](m.operator, "/api/v2/operator/status")
			return status.Running == 2 && len(status.Nodes) == 2 && status.Nodes[0].Engines[0].Running == 2
		})
		worker := status.Nodes[0]
		if !worker.Live || worker.ID != m.runner.WorkerID() || worker.Version != "2.1.0" || !slices.Equal(worker.Roles, []string{"api", "worker"}) {
			t.Errorf("node = %+v", worker)
		}
		script = engineNamed(t, status, "script")
		if script.Health != wire.OperatorHealthAvailable || script.Nodes != 1 || script.Capacity != 4 || script.Running != 2 || script.Waiting != 0 ||
			script.OldestWaitSeconds != nil || script.MedianWaitSeconds != nil || script.LastError != nil {
			t.Errorf("engine of a worker = %+v", script)
		}

		failed := m.done("", m.body("one", steps(`[{"fail":{"code":"ENGINE_FAILED","message":"the secret prompt"}}]`)))
		err := m.db.Write(t.Context(), func(tx *sqldb.Tx) error { return run.ReportUnavailable(t.Context(), tx, "script", "w") })
		if err != nil {
			t.Fatal(err)
		}
		if err := reporter.ReportNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		a := m.operator.sendRequest("GET", "/api/v2/operator/status")
		script = engineNamed(t, decodeAnswer[wire.OperatorStatus](t, a), "script")
		if script.Health != wire.OperatorHealthUnavailable || script.UnavailableSince == nil || script.LastError == nil || script.LastError.Code != "ENGINE_FAILED" ||
			script.LastError.Message != nil || script.LastError.NodeID != worker.ID {
			t.Errorf("engine after run %s failed = %+v", failed.RequestID, script)
		}
		if strings.Contains(string(a.body), "secret prompt") {
			t.Errorf("the status repeats the message of a run: %s", a.body)
		}
	})
}

func engineNamed(t *testing.T, s wire.OperatorStatus, name string) wire.OperatorEngine {
	t.Helper()
	i := slices.IndexFunc(s.Engines, func(e wire.OperatorEngine) bool { return e.Name == name })
	if i < 0 {
		t.Fatalf("engines = %+v, want %s", s.Engines, name)
	}
	return s.Engines[i]
}

// pageRuns returns the work of everybody, read in pages of two. check is called
// with each page.
func (m *operatorFixture) pageRuns(t *testing.T, check func(a answer)) (all []wire.OperatorRun) {
	t.Helper()
	for path := "/api/v2/operator/runs?limit=2"; ; {
		a := m.operator.sendRequest("GET", path).checkStatus(t, path, 200, "")
		check(a)
		page := decodeAnswer[wire.OperatorRunList](t, a)
		all = append(all, page.Data...)
		if !page.HasMore {
			return all
		}
		path = "/api/v2/operator/runs?limit=2&cursor=" + *page.NextCursor
	}
}

func requestIDs(runs []wire.OperatorRun) (all []string) {
	for _, r := range runs {
		all = append(all, r.RequestID)
	}
	return all
}

// TestOperatorRunsOfOneMoment pages through waiting and running runs that were
// all created at the same time: each is listed once, ordered by id.
func TestOperatorRunsOfOneMoment(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		var want []string
		for range 6 {
			want = append(want, m.runFixture.run("", m.body("one", steps(`[{"hang":true}]`))))
		}
		slices.Sort(want)
		m.exec(`UPDATE run SET created = 1000000`)
		for i, id := range want {
			if i%2 == 1 {
				m.exec(`UPDATE run SET stage = 'running' WHERE id = $1`, id)
			}
		}

		got := m.pageRuns(t, func(answer) {})
		if order := requestIDs(got); !slices.Equal(order, want) {
			t.Fatalf("runs = %v, want %v", order, want)
		}
		if got[0].Status != "waiting" || got[1].Status != "running" {
			t.Errorf("states = %s, %s, want waiting, running", got[0].Status, got[1].Status)
		}
	})
}

// TestOperatorRunsShowNoContent lists the work of everybody and looks for what
// people entered.
func TestOperatorRunsShowNoContent(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		const marker = "a purple giraffe"
		body := m.body("one", `,"inputs":{"prompt":"`+marker+`","script":"[{\"progress\":0.25},{\"hang\":true}]"},"metadata":{"note":"`+marker+`"}`)
		m.site.Person("bert@example.com")
		team, tokens := m.team("Motion", "bert@example.com")
		var want []string
		for range 3 {
			want = append(want, m.runFixture.run("", body))
		}
		want = append(want, m.as(tokens[0]).run("?team_id="+team, body))

		got := m.pageRuns(t, func(a answer) {
			if strings.Contains(string(a.body), "giraffe") {
				t.Errorf("the list of work shows what people make: %s", a.body)
			}
		})
		if order := requestIDs(got); !slices.Equal(order, want) {
			t.Fatalf("runs = %v, want %v", order, want)
		}
		first := got[0]
		if first.Status != "waiting" || first.Email != "anna@example.com" || first.Account.Kind != "PERSONAL" || first.Account.Name != "anna@example.com" || first.ToolName == nil ||
			*first.ToolName != "one" || first.Engine != "script" || first.Started != nil || first.NodeID != nil || first.Attempts != 0 || first.TokensHeld != 3 {
			t.Errorf("first run = %+v", first)
		}
		last := got[3]
		if last.Email != "bert@example.com" || last.Account.ID != team || last.Account.Kind != "TEAM" || last.Account.Name != "Motion" || last.Account.CompanyName == nil || *last.Account.CompanyName != "Motion" {
			t.Errorf("run of a team = %+v", last)
		}

		m.work()
		var running []wire.OperatorRun
		watch.Until(t, "all runs are running", func() bool {
			running = getJSON[wire.OperatorRunList](m.operator, "/api/v2/operator/runs?status=running").Data
			return len(running) == 4 && !slices.ContainsFunc(running, func(r wire.OperatorRun) bool { return r.Progress == nil })
		})
		if r := running[0]; r.Status != "running" || r.Started == nil || r.NodeID == nil || *r.NodeID != m.runner.WorkerID() || r.Attempts != 1 || *r.Progress != 0.25 {
			t.Errorf("running = %+v", r)
		}
		if waiting := getJSON[wire.OperatorRunList](m.operator, "/api/v2/operator/runs?status=waiting").Data; len(waiting) != 0 {
			t.Errorf("waiting = %+v", waiting)
		}
		for _, query := range []string{"status=succeeded", "limit=0", "cursor=x"} {
			m.operator.sendRequest("GET", "/api/v2/operator/runs?"+query).checkStatus(t, query, 400, "INVALID_REQUEST")
		}
	})
}

// TestOperatorCancelGivesTokensBackOnce cancels a waiting and a running run of
// somebody else, each twice and at the same time.
func TestOperatorCancelGivesTokensBackOnce(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		before := m.balanceOf("anna@example.com")
		waiting := m.run("", m.body("one", steps(`[{"hang":true}]`)))
		if held := m.balanceOf("anna@example.com"); held.Tokens != before.Tokens-3 || held.Held != 3 {
			t.Fatalf("balance with a waiting run = %+v, before %+v", held, before)
		}
		path := "/api/v2/operator/runs/" + waiting + "/cancel"
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if a := m.operator.sendRequest("POST", path); a.StatusCode != 202 && a.StatusCode != 200 {
					t.Errorf("cancel = %d %s", a.StatusCode, a.body)
				}
			})
		}
		group.Wait()
		again := decodeAnswer[wire.OperatorRun](t, m.operator.sendRequest("POST", path).checkStatus(t, "cancel again", 200, ""))
		if again.Status != "cancelled" || again.TokensHeld != 0 {
			t.Errorf("cancelled = %+v", again)
		}

		m.work()
		running := m.run("", m.body("one", steps(`[{"hang":true}]`)))
		watch.Until(t, "the run is running", func() bool {
			return len(getJSON[wire.OperatorRunList](m.operator, "/api/v2/operator/runs?status=running").Data) == 1
		})
		m.operator.sendRequest("POST", "/api/v2/operator/runs/"+running+"/cancel").checkStatus(t, "cancel a running run", 202, "")
		if ended := m.finish("", running); ended.Status != "cancelled" || ended.TokensCharged != 0 {
			t.Errorf("cancelled run = %+v", ended)
		}

		if after := m.balanceOf("anna@example.com"); after != before {
			t.Errorf("balance = %+v, want %+v", after, before)
		}
		records := m.audited(audit.RunCancelled)
		if len(records) != 2 || records[0].Details["run"] != running || records[1].Details["run"] != waiting || records[0].ActorID != m.uid || records[0].PersonID == m.uid {
			t.Errorf("audit = %+v, want one entry for each run", records)
		}
		m.operator.sendRequest("POST", "/api/v2/operator/runs/0198c0de-aaaa-7bbb-8ccc-0123456789ab/cancel").checkStatus(t, "no such run", 404, "NOT_FOUND")
		m.operator.sendRequest("POST", "/api/v2/operator/runs/x/cancel").checkStatus(t, "no id", 404, "NOT_FOUND")
		m.checkInvariants()
	})
}

// grantTokens requests a grant with an idempotency key.
func (m *operatorFixture) grantTokens(key, accountID string, tokens int64, reason string) answer {
	m.t.Helper()
	body, err := json.Marshal(wire.OperatorGrantRequest{AccountID: accountID, Tokens: tokens, Reason: reason})
	if err != nil {
		m.t.Fatal(err)
	}
	var header []string
	if key != "" {
		header = []string{"Idempotency-Key", key}
	}
	return m.operator.send("POST", "/api/v2/operator/grants", "application/json", strings.NewReader(string(body)), header...)
}

func TestOperatorGrantsAreNotDoubled(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		anna := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		before := m.balanceOf("anna@example.com").Tokens
		var group sync.WaitGroup
		var mu sync.Mutex
		seen := map[string]int{}
		fresh := 0
		for range 16 {
			group.Go(func() {
				a := m.grantTokens("one", anna, 50, "goodwill")
				mu.Lock()
				defer mu.Unlock()
				if a.StatusCode != 201 {
					t.Errorf("grant = %d %s", a.StatusCode, a.body)
				}
				seen[string(a.body)]++
				if a.Header.Get("Idempotent-Replayed") == "" {
					fresh++
				}
			})
		}
		group.Wait()
		if len(seen) != 1 || fresh != 1 {
			t.Errorf("responses = %v, %d of them fresh, want the same response 16 times and one grant", seen, fresh)
		}
		if got := m.balanceOf("anna@example.com").Tokens; got != before+50 {
			t.Errorf("balance = %d, want %d", got, before+50)
		}
		records := m.audited(audit.TokensGranted)
		if r := records[0]; len(records) != 2 || r.ActorID != m.uid || r.PersonID != anna || r.Details["tokens"] != "50" || r.Details["note"] != "goodwill" {
			t.Errorf("audit = %+v, want the grant of the fixture and this one", records)
		}
		newest := getJSON[wire.LedgerList](m.service, "/api/v2/ledger?limit=1").Data[0]
		grant := decodeAnswer[wire.OperatorGrant](t, m.grantTokens("one", anna, 50, "goodwill"))
		if newest.ID != grant.ID || newest.Kind != "grant" || newest.Tokens != 50 || newest.Note == nil || *newest.Note != "goodwill" {
			t.Errorf("newest entry of the ledger = %+v, want the grant %+v", newest, grant)
		}
		if grant.Account.Name != "anna@example.com" || grant.Account.Kind != "PERSONAL" || grant.Balance != before+50 || grant.Tokens != 50 || grant.Reason != "goodwill" {
			t.Errorf("grant = %+v", grant)
		}

		m.grantTokens("one", anna, 51, "goodwill").checkStatus(t, "the key with another amount", 409, "IDEMPOTENCY_KEY_CONFLICT")
		m.grantTokens("one", anna, 50, "other").checkStatus(t, "the key with another reason", 409, "IDEMPOTENCY_KEY_CONFLICT")
		m.grantTokens("one", m.uid, 50, "goodwill").checkStatus(t, "the key with another account", 409, "IDEMPOTENCY_KEY_CONFLICT")
		m.grantTokens("", anna, 50, "goodwill").checkStatus(t, "no key", 400, "INVALID_REQUEST")
		m.grantTokens("two", anna, 0, "goodwill").checkStatus(t, "no tokens", 400, "INVALID_REQUEST")
		m.grantTokens("two", anna, 2_000_000_000_000, "goodwill").checkStatus(t, "too many tokens", 400, "INVALID_REQUEST")
		m.grantTokens("two", anna, 50, " ").checkStatus(t, "no reason", 400, "INVALID_REQUEST")
		m.grantTokens("two", anna, -before-51, "goodwill").checkStatus(t, "more back than there is", 402, "INSUFFICIENT_BALANCE")
		for _, id := range []string{ids.New(), "", "x", "system:grants", m.site.Company("Studio", company.TeamPlan)} {
			m.grantTokens("two", id, 50, "goodwill").checkStatus(t, "account "+id, 404, "NOT_FOUND")
		}
		if got := m.balanceOf("anna@example.com").Tokens; got != before+50 {
			t.Errorf("balance after refused grants = %d, want %d", got, before+50)
		}
		m.grantTokens("two", anna, -50, "taken back").checkStatus(t, "a key of refused requests", 201, "")

		team := m.site.Team(m.site.Company("Studio", company.TeamPlan), "Motion", "member")
		ofTeam := decodeAnswer[wire.OperatorGrant](t, m.grantTokens("three", team, 7, "start").checkStatus(t, "a grant to a team", 201, ""))
		if ofTeam.Account.Kind != "TEAM" || ofTeam.Account.Name != "Motion" || ofTeam.Balance != 7 {
			t.Errorf("grant to a team = %+v", ofTeam)
		}
		m.checkInvariants()
	})
}

func TestOperatorPeopleAndCompanies(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		for _, email := range []string{"Carl@fox.example", "dora_x@fox.example", "doraxx@fox.example"} {
			m.site.Person(email)
		}
		m.exec(`UPDATE person SET suspended = TRUE WHERE email_key = 'carl@fox.example'`)
		deleted := m.site.Person("gone@example.com")
		err := m.db.Write(t.Context(), func(tx *sqldb.Tx) error { return person.Erase(t.Context(), tx, deleted) })
		if err != nil {
			t.Fatal(err)
		}
		m.run("", m.body("one", ""))

		var emails []string
		byEmail := map[string]wire.OperatorPerson{}
		for path := "/api/v2/operator/people?limit=2"; ; {
			page := getJSON[wire.OperatorPersonList](m.operator, path)
			for _, p := range page.Data {
				emails = append(emails, p.Email)
				byEmail[p.Email] = p
			}
			if !page.HasMore {
				break
			}
			path = "/api/v2/operator/people?limit=2&cursor=" + *page.NextCursor
		}
		if want := []string{"anna@example.com", "Carl@fox.example", "dora_x@fox.example", "doraxx@fox.example", "olga@example.com"}; !slices.Equal(emails, want) {
			t.Errorf("people = %v, want %v", emails, want)
		}
		if p := byEmail["anna@example.com"]; p.Balance.Tokens != 997 || p.Balance.Held != 3 || p.Runs != 1 || p.LastSeen == nil || p.Operator || p.Suspended || !p.EmailVerified {
			t.Errorf("Anna = %+v", p)
		}
		if p := byEmail["Carl@fox.example"]; !p.Suspended || p.Runs != 0 || p.LastSeen != nil {
			t.Errorf("Carl = %+v", p)
		}
		if p := byEmail["olga@example.com"]; !p.Operator {
			t.Errorf("Olga = %+v", p)
		}
		for q, want := range map[string]int{"FOX": 3, "a_x": 1, "%": 0, "!": 0, "nobody": 0, "": 5} {
			if found := getJSON[wire.OperatorPersonList](m.operator, "/api/v2/operator/people?q="+url.QueryEscape(q)).Data; len(found) != want {
				t.Errorf("q=%s finds %+v, want %d", q, found, want)
			}
		}
		m.operator.sendRequest("GET", "/api/v2/operator/people?q="+strings.Repeat("x", 201)).checkStatus(t, "a long text", 400, "INVALID_REQUEST")

		fox := m.site.Company("Fox Studio", company.EnterprisePlan)
		m.site.Team(fox, "Motion", "member", "anna@example.com")
		m.grant("", m.site.Team(fox, "Art", "member"), 40)
		m.site.Company("Owl", company.TeamPlan)
		var names []string
		for path := "/api/v2/operator/companies?limit=1"; ; {
			page := getJSON[wire.OperatorCompanyList](m.operator, path)
			for _, c := range page.Data {
				names = append(names, c.Name)
			}
			if !page.HasMore {
				break
			}
			path = "/api/v2/operator/companies?limit=1&cursor=" + *page.NextCursor
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"Fox Studio", "Owl"}) {
			t.Errorf("companies = %v", names)
		}
		found := getJSON[wire.OperatorCompanyList](m.operator, "/api/v2/operator/companies?q=fox%20s").Data
		if len(found) != 1 {
			t.Fatalf("companies = %+v, want one", found)
		}
		c := found[0]
		if c.ID != fox || c.Plan != "ENTERPRISE" || c.TimeZone != "UTC" || c.Members != 1 || c.TeamCount != 2 || len(c.Teams) != 2 || c.Teams[0].Name != "Art" || c.Teams[0].Balance.Tokens != 40 || c.Runs != 0 || c.LastRun != nil {
			t.Errorf("company = %+v", c)
		}
	})
}

// TestOperatorSettingsHideSecrets: a secret's value is left out even if it is
// handed over unmasked. That every secret is marked as one is held by the tests
// of the command line.
func TestOperatorSettingsHideSecrets(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		s := m.operator.with(func(p *api.Parts) {
			p.Installation.Settings = []operator.Setting{
				{Name: "smtp.password", Value: "hunter2", Source: "environment", Help: "x", Secret: true, IsSet: true},
				{Name: "oidc.client_secret", Source: "default", Secret: true},
				{Name: "limits.active_runs", Value: "10", Source: "file", Help: "y", IsSet: true},
			}
		}, nil)
		a := s.sendRequest("GET", "/api/v2/operator/settings").checkStatus(t, "settings", 200, "")
		if strings.Contains(string(a.body), "hunter2") {
			t.Errorf("settings show a secret: %s", a.body)
		}
		all := decodeAnswer[wire.OperatorSettingList](t, a).Data
		if len(all) != 3 {
			t.Fatalf("settings = %+v", all)
		}
		if p := all[0]; p.Value != nil || !p.Secret || !p.IsSet || p.Source != "environment" {
			t.Errorf("a secret that is set = %+v", p)
		}
		if p := all[1]; p.Value != nil || !p.Secret || p.IsSet {
			t.Errorf("a secret that is not set = %+v", p)
		}
		if p := all[2]; p.Value == nil || *p.Value != "10" || p.Secret || p.Source != "file" || p.Description != "y" {
			t.Errorf("a plain setting = %+v", p)
		}
	})
}

// checkInvariants fails the test if the database violates an invariant of the
// ledger or of runs.
func (s *service) checkInvariants() {
	s.t.Helper()
	found, err := s.db.VerifyChecks(context.WithoutCancel(s.t.Context()), slices.Concat(ledger.Checks, run.Checks))
	if err != nil || len(found) != 0 {
		s.t.Errorf("checks = %v, %v", found, err)
	}
}
