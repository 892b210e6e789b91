package scim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/account/accounttest"
	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/web/httpd"
	"atelier/internal/web/scim"
)

// fixture is an installation with the company Fox, which owns fox.example and has
// its identity provider connected.
type fixture struct {
	*testing.T
	site  *accounttest.Site
	url   string
	fox   string
	token string // SCIM token of Fox
	clock *atomic.Int64
}

func each(t *testing.T, fn func(w *fixture)) {
	t.Helper()
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fn(open(t, engine, 0))
		})
	}
}

func open(t *testing.T, engine string, perMinute int) *fixture {
	t.Helper()
	w := &fixture{T: t, clock: new(atomic.Int64)}
	w.clock.Store(time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC).UnixMicro())
	now := func() time.Time { return time.UnixMicro(w.clock.Load()).UTC() }
	db := dbtest.OpenAt(t, dbtest.URL(t, engine), now)
	w.site = accounttest.New(t, db, accounttest.Options{Now: now})
	server := httptest.NewUnstartedServer(nil)
	w.url = "http://" + server.Listener.Addr().String()
	edge := scim.New(scim.Parts{Provisioning: w.site.Provisioning, BaseURL: w.url, RequestsPerMinute: perMinute, Now: now})
	server.Config.Handler = httpd.New(edge, httpd.Options{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now, DatabaseBudget: time.Minute})
	server.Start()
	t.Cleanup(server.Close)
	w.fox, w.token = w.connected("Fox", "fox.example")
	t.Cleanup(func() {
		checks := slices.Concat(company.Checks, credential.Checks, audit.Checks, person.Checks)
		if v, err := db.VerifyChecks(context.Background(), checks); err != nil || len(v) != 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
	})
	return w
}

func (w *fixture) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// connected creates a company that owns a domain and has its identity provider
// connected.
func (w *fixture) connected(name, domain string) (id, token string) {
	w.Helper()
	id = w.site.Company(name, company.EnterprisePlan)
	_, err := w.site.Companies.Domains.AddDomain(w.Context(), principal.Operator(), id, domain, "", "")
	w.ok(err)
	_, err = w.site.Companies.Domains.VerifyDomain(w.Context(), principal.Operator(), id, domain, true)
	w.ok(err)
	_, token, err = w.site.Companies.SCIMConnections.ConnectProvider(w.Context(), principal.Operator(), id)
	w.ok(err)
	return id, token
}

// answer is a response.
type answer struct {
	*fixture
	what   string
	status int
	header http.Header
	text   string
	body   map[string]any
}

// as sends a request with a token; the body is JSON.
func (w *fixture) as(token, method, path, body string) answer {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.url+"/scim/v2"+path, strings.NewReader(body))
	w.ok(err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/scim+json")
	}
	return w.send(r)
}

func (w *fixture) send(r *http.Request) answer {
	w.Helper()
	res, err := http.DefaultClient.Do(r)
	w.ok(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	w.ok(err)
	a := answer{fixture: w, what: r.Method + " " + r.URL.Path + "?" + r.URL.RawQuery, status: res.StatusCode, header: res.Header, text: string(text)}
	if len(text) > 0 {
		d := json.NewDecoder(bytes.NewReader(text))
		w.ok(d.Decode(&a.body))
		if kind := res.Header.Get("Content-Type"); kind != "application/scim+json" {
			w.Errorf("%s has the type %s", a.what, kind)
		}
	}
	return a
}

// do sends a request as Fox's identity provider and requires this status.
func (w *fixture) do(want int, method, path, body string) answer {
	w.Helper()
	a := w.as(w.token, method, path, body)
	a.want(want, "")
	return a
}

// want requires this status, and for an error this scimType in an error body of
// the protocol.
func (a answer) want(status int, scimType string) {
	a.Helper()
	if a.status != status {
		a.Fatalf("%s = %d %s, want %d", a.what, a.status, a.text, status)
	}
	if status < 400 {
		return
	}
	got, _ := a.body["scimType"].(string)
	if a.body["status"] != fmt.Sprint(status) || fmt.Sprint(a.body["schemas"]) != "[urn:ietf:params:scim:api:messages:2.0:Error]" || a.body["detail"] == "" {
		a.Errorf("%s = %s", a.what, a.text)
	}
	if scimType != "" && got != scimType {
		a.Errorf("%s = %s, want %s", a.what, a.text, scimType)
	}
}

// at returns the value at a path of the body, such as name.givenName or
// emails.0.value.
func (a answer) at(path string) any { return at(a.body, path) }

func at(v any, path string) any {
	for name := range strings.SplitSeq(path, "|") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			n := int(name[0] - '0')
			if n >= len(in) {
				return nil
			}
			v = in[n]
		default:
			return nil
		}
	}
	return v
}

// has requires values at paths.
func (a answer) has(want map[string]any) {
	a.Helper()
	for path, v := range want {
		if got := a.at(path); fmt.Sprint(got) != fmt.Sprint(v) {
			a.Errorf("%s: %s = %v, want %v in %s", a.what, path, got, v, a.text)
		}
	}
}

func (a answer) id() string { return fmt.Sprint(a.body["id"]) }

// user creates a user of Fox and returns their id.
func (w *fixture) user(name string) string {
	w.Helper()
	return w.do(201, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"`+name+`"}`).id()
}

// patch sends a PATCH request as Fox's identity provider.
func (w *fixture) patch(want int, path, operations string) answer {
	w.Helper()
	return w.do(want, "PATCH", path, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":`+operations+`}`)
}

// acts returns the audit records after a record, as text.
func (w *fixture) acts(since int64) (all []string) {
	w.Helper()
	w.ok(w.site.DB.Read(w.Context(), func(tx *sqldb.Tx) error {
		all = nil
		records, err := audit.List(w.Context(), tx, audit.Filter{Limit: 1000})
		for _, r := range slices.Backward(records) {
			if r.Seq <= since {
				continue
			}
			all = append(all, string(r.Act))
			if r.ActorID != "" || r.CompanyID != w.fox || r.Details["by"] != "scim" || r.Address != "127.0.0.1" {
				w.Errorf("record = %+v", r)
			}
		}
		return err
	}))
	return all
}

func (w *fixture) seq() (n int64) {
	w.Helper()
	w.ok(w.site.DB.QueryRow(w.Context(), `SELECT coalesce(max(seq), 0) FROM audit`).Scan(&n))
	return n
}

// roles returns the roles of a company's members by address.
func (w *fixture) roles(companyID string) map[string]string {
	w.Helper()
	all, err := w.site.Companies.Members.ListMembers(w.Context(), principal.Operator(), companyID, company.Key{}, 10000)
	w.ok(err)
	roles := map[string]string{}
	for _, m := range all {
		roles[m.Email] = m.Role
	}
	return roles
}

// execute changes the database without the packages that own the tables.
func execute(ctx context.Context, query string, args ...any) func(*sqldb.Tx) error {
	return func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	}
}
