package scim_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/access"
)

func TestAuthentication(t *testing.T) {
	each(t, func(w *fixture) {
		w.site.Person("anna@fox.example")
		_, personal := w.site.Token("anna@fox.example", "")
		_, ofCompany := w.site.Token("anna@fox.example", w.fox)
		device := w.site.Device(w.site.Person("bert@fox.example"), "blender")
		other := byte('0')
		if w.token[len(w.token)-1] == '0' {
			other = '1'
		}
		for name, token := range map[string]string{
			"nothing": "", "nonsense": "nonsense", "the prefix": "atl_s_", "a personal token": personal, "a company token": ofCompany, "an ID token": device.Tokens.ID,
			"a wrong checksum": w.token[:len(w.token)-1] + string(other), "more than it": w.token + "0", "less than it": w.token[:len(w.token)-1],
			"a token that nobody has": "atl_s_" + strings.Repeat("0", 43) + "1aBcDe",
		} {
			for _, path := range []string{"/Users", "/ServiceProviderConfig", "/nowhere"} {
				a := w.as(token, "GET", path, "")
				a.want(401, "")
				if a.header.Get("WWW-Authenticate") != "Bearer" {
					w.Errorf("%s at %s: %v", name, path, a.header)
				}
			}
		}
		r, err := http.NewRequestWithContext(w.Context(), "GET", w.url+"/scim/v2/Users", nil)
		w.ok(err)
		r.Header["Authorization"] = []string{"bearer " + w.token}
		w.send(r).want(200, "")
		r.Header["Authorization"] = []string{"Bearer " + w.token, "Bearer " + w.token}
		w.send(r).want(401, "")
		// The token is no credential for anything else.
		_, err = w.site.Gate.Admit(w.Context(), access.Identity, access.Presented{Authorization: []string{"Bearer " + w.token}, Address: "192.0.2.1"})
		if !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.TokenInvalid) {
			w.Errorf("the token at the API: %v", err)
		}
		if len(w.token) != 55 || !strings.HasPrefix(w.token, "atl_s_") {
			w.Errorf("token = %s", w.token)
		}
	})
}

func TestDisconnecting(t *testing.T) {
	each(t, func(w *fixture) {
		connections := w.site.Companies.SCIMConnections
		w.do(200, "GET", "/Users", "")
		exec := func(query string, args ...any) {
			w.Helper()
			w.ok(w.site.DB.Write(w.Context(), execute(w.Context(), query, args...)))
		}
		exec(`UPDATE company SET plan = 'TEAM' WHERE id = $1`, w.fox)
		a := w.as(w.token, "POST", "/Users", `{"userName":"anna@fox.example"}`)
		a.want(403, "")
		if !strings.Contains(a.text, "ENTERPRISE") || len(w.roles(w.fox)) != 0 {
			w.Errorf("without the plan: %s, %v", a.text, w.roles(w.fox))
		}
		boss := principal.Principal{PersonID: w.site.Person("boss@home.example")}
		w.site.Admit(w.fox, "boss@home.example", company.CompanyPermissions...)
		for name, err := range map[string]error{
			"look": second(connections.GetConnection(w.Context(), boss, w.fox)), "connect": third(connections.ConnectProvider(w.Context(), boss, w.fox)),
			"the operator": third(connections.ConnectProvider(w.Context(), principal.Operator(), w.fox)),
		} {
			if f, ok := err.(*fault.Error); !ok || f.Code != fault.Forbidden || f.Details["reason"] != "plan" {
				w.Errorf("%s without the plan: %v", name, err)
			}
		}
		exec(`UPDATE company SET plan = 'ENTERPRISE' WHERE id = $1`, w.fox)
		w.do(200, "GET", "/Users", "")

		before := w.seq()
		made, fresh, err := connections.ConnectProvider(w.Context(), boss, w.fox)
		w.ok(err)
		w.as(w.token, "GET", "/Users", "").want(401, "")
		w.token = fresh
		w.do(200, "GET", "/Users", "")
		if made.Hint != fresh[len(fresh)-4:] || made.MadeBy != boss.PersonID || !made.LastUsed.IsZero() {
			w.Errorf("made = %+v", made)
		}
		used := func() time.Time {
			t, err := connections.GetConnection(w.Context(), boss, w.fox)
			w.ok(err)
			return t.LastUsed
		}
		first := used()
		w.clock.Add((59 * time.Second).Microseconds())
		w.do(200, "GET", "/Users", "")
		if got := used(); first.IsZero() || !got.Equal(first) {
			w.Errorf("last used = %v, then %v within a minute", first, got)
		}
		w.clock.Add(time.Second.Microseconds())
		w.do(200, "GET", "/Users", "")
		if got := used(); !got.After(first) {
			w.Errorf("last used = %v after a minute, was %v", got, first)
		}
		w.ok(connections.DisconnectProvider(w.Context(), boss, w.fox))
		w.as(w.token, "GET", "/Users", "").want(401, "")
		if err := connections.DisconnectProvider(w.Context(), boss, w.fox); !fault.Is(err, fault.NotFound) {
			w.Errorf("once more: %v", err)
		}
		if err := second(connections.GetConnection(w.Context(), boss, w.fox)); !fault.Is(err, fault.NotFound) {
			w.Errorf("looking: %v", err)
		}
		if got := w.seq() - before; got != 2 {
			w.Errorf("%d records, want 2", got)
		}
		// An identity provider can remove members with more permissions than the admin who connects it.
		w.site.Admit(w.fox, "boss@home.example", company.ManageMembers)
		if f, ok := third(connections.ConnectProvider(w.Context(), boss, w.fox)).(*fault.Error); !ok || f.Details["reason"] != "permission" {
			w.Errorf("connect with MANAGE_MEMBERS alone: %v", f)
		}
		clerk := principal.Principal{PersonID: w.site.Person("clerk@home.example")}
		w.site.Admit(w.fox, "clerk@home.example", company.ManageTeams, company.ManageBilling)
		for name, err := range map[string]error{
			"look": second(connections.GetConnection(w.Context(), clerk, w.fox)), "connect": third(connections.ConnectProvider(w.Context(), clerk, w.fox)), "disconnect": connections.DisconnectProvider(w.Context(), clerk, w.fox),
		} {
			if f, ok := err.(*fault.Error); !ok || f.Code != fault.Forbidden || f.Details["reason"] != "permission" {
				w.Errorf("%s without the permission: %v", name, err)
			}
		}
	})
}

func TestATokenRevokedWhileTheBodyArrives(t *testing.T) {
	each(t, func(w *fixture) {
		for name, end := range map[string]func(){
			"another token": func() {
				_, w.token, _ = w.site.Companies.SCIMConnections.ConnectProvider(w.Context(), principal.Operator(), w.fox)
			},
			"no plan": func() {
				w.ok(w.site.DB.Write(w.Context(), execute(w.Context(), `UPDATE company SET plan = 'TEAM' WHERE id = $1`, w.fox)))
			},
		} {
			w.ok(w.site.DB.Write(w.Context(), execute(w.Context(), `UPDATE scim_token SET last_used = NULL`)))
			body, more := io.Pipe()
			r, err := http.NewRequestWithContext(w.Context(), "POST", w.url+"/scim/v2/Users", body)
			w.ok(err)
			r.Header.Set("Authorization", "Bearer "+w.token)
			r.Header.Set("Content-Type", "application/scim+json")
			got := make(chan answer, 1)
			go func() { got <- w.send(r) }()
			_, err = io.WriteString(more, `{"userName":`)
			w.ok(err)
			watch.Until(t, "the identity provider to be authenticated", func() (in bool) {
				w.ok(w.site.DB.QueryRow(w.Context(), `SELECT last_used IS NOT NULL FROM scim_token WHERE company_id = $1`, w.fox).Scan(&in))
				return in
			})
			end()
			_, err = io.WriteString(more, `"anna@fox.example"}`)
			w.ok(err)
			w.ok(more.Close())
			if a := <-got; a.status != 401 && a.status != 403 || len(w.roles(w.fox)) != 0 {
				w.Errorf("%s: %d %s, members %v", name, a.status, a.text, w.roles(w.fox))
			}
			w.ok(w.site.DB.Write(w.Context(), execute(w.Context(), `UPDATE company SET plan = 'ENTERPRISE' WHERE id = $1`, w.fox)))
		}
	})
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

func TestThrottle(t *testing.T) {
	t.Parallel()
	w := open(t, dbtest.Engines[0], 3)
	_, theirs := w.connected("Hound", "hound.example")
	for range 3 {
		w.do(200, "GET", "/ServiceProviderConfig", "")
		w.as("nonsense", "GET", "/Users", "").want(401, "")
	}
	a := w.as(w.token, "GET", "/Users", "")
	a.want(429, "")
	if a.header.Get("Retry-After") == "" {
		w.Errorf("headers = %v", a.header)
	}
	w.as("nonsense", "GET", "/Users", "").want(429, "")
	w.as(theirs, "GET", "/Users", "").want(200, "")
	w.clock.Add(time.Minute.Microseconds())
	w.do(200, "GET", "/Users", "")
}
