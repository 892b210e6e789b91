package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/web/api"
	"atelier/internal/web/api/sessions"
	"atelier/internal/web/api/wire"
)

const studioRoute = "/api/v2/auth/session/token"

// startSession starts a browser session of a person and returns its id and
// cookie.
func (s *service) startSession(personID string) (id, cookie string) {
	s.t.Helper()
	err := s.site.DB.Write(s.t.Context(), func(tx *sqldb.Tx) error {
		started, value, err := session.Start(s.t.Context(), tx, session.Session{PersonID: personID, Provider: "password", Agent: "Firefox"}, time.Hour)
		id = started.ID
		cookie = value
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id, session.CookieName(true) + "=" + cookie
}

// webToken requests a web token with a session cookie.
func (s *service) webToken(cookie string) wire.WebToken {
	s.t.Helper()
	got := s.by("").sendRequest("POST", studioRoute, "Cookie", cookie, "X-Atelier-Studio", "1", "Authorization", "")
	got.checkStatus(s.t, "a web token", 200, "")
	var token wire.WebToken
	if err := json.Unmarshal(got.body, &token); err != nil {
		s.t.Fatal(err)
	}
	return token
}

func TestWebTokenActsForItsSession(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		const email = "anna@example.com"
		anna := getJSON[wire.Identity](s, "/api/v2/me").User.UID
		firm := s.site.Company("Firm", company.EnterprisePlan)
		team := s.site.Team(firm, "Team", "member", email)
		role := company.TeamRole{Name: "member", Permissions: []company.Permission{company.Generate}}
		if _, err := s.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), team, role); err != nil {
			t.Fatal(err)
		}
		id, cookie := s.startSession(anna)

		token := s.webToken(cookie)
		if token.UID != anna || token.ExpiresIn < 590 || token.ExpiresIn > 600 || token.ExpiresAt-time.Now().Unix() > 600 {
			t.Fatalf("token of %s, %d s, until %d", token.UID, token.ExpiresIn, token.ExpiresAt)
		}
		web := s.by(token.IDToken)
		web.sendRequest("GET", "/api/v2/generations?team_id="+team).checkStatus(t, "a team whose role allows no apps", 200, "")
		web.sendRequest("GET", "/api/v2/me", "X-Device-Id", id).checkStatus(t, "a web token with X-Device-Id", 401, "UNAUTHENTICATED")
		web.sendRequest("POST", "/api/v2/access-tokens").checkStatus(t, "a lasting secret", 403, "FORBIDDEN")

		for _, d := range getJSON[wire.DeviceList](web, "/api/v2/devices").Data {
			if d.Kind == "BROWSER" && (d.ID != id || !d.Current || d.Name != "Firefox") {
				t.Errorf("browser in the list: %+v", d)
			}
		}

		// Another tab gets a token of the same session. Both end with it.
		second := s.by(s.webToken(cookie).IDToken)
		second.sendRequest("DELETE", "/api/v2/sessions/"+id).checkStatus(t, "signing the browser out", 204, "")
		web.sendRequest("GET", "/api/v2/me").checkStatus(t, "the token of an ended session", 401, "UNAUTHENTICATED")
		s.by("").sendRequest("POST", studioRoute, "Cookie", cookie, "X-Atelier-Studio", "1").checkStatus(t, "an ended session", 401, "UNAUTHENTICATED")
	})
}

func TestWebTokenReadsReportsThatAreRefusedToApps(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		const email = "anna@example.com"
		anna := getJSON[wire.Identity](s, "/api/v2/me").User.UID
		firm := s.site.Company("Firm", company.EnterprisePlan)
		s.site.Admit(firm, email, company.ViewCompanyReports)
		_, cookie := s.startSession(anna)
		strict := s.with(func(p *api.Parts) {
			gate := *p.Gate
			gate.RefuseOAuthReports = true
			p.Gate = &gate
		}, nil)

		path := "/api/v2/reports/usage?company_id=" + firm
		strict.by(s.webToken(cookie).IDToken).sendRequest("GET", path).checkStatus(t, "the studio", 200, "")
		strict.by(s.site.Device(anna, "blender").Tokens.ID).sendRequest("GET", path).checkStatus(t, "an app", 403, "FORBIDDEN")
	})
}

func TestWebTokenIsForPagesOfTheServiceOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		anna := getJSON[wire.Identity](s, "/api/v2/me").User.UID
		_, cookie := s.startSession(anna)
		bare := s.by("")
		for _, c := range []struct {
			name   string
			header []string
			status int
			code   string
		}{
			{"no cookie", []string{"X-Atelier-Studio", "1"}, 401, "UNAUTHENTICATED"},
			{"a cookie nobody made", []string{"X-Atelier-Studio", "1", "Cookie", session.CookieName(true) + "=x"}, 401, "UNAUTHENTICATED"},
			{"no header", []string{"Cookie", cookie}, 403, "FORBIDDEN"},
			{"another site", []string{"X-Atelier-Studio", "1", "Cookie", cookie, "Sec-Fetch-Site", "cross-site"}, 403, "FORBIDDEN"},
			{"another host of the domain", []string{"X-Atelier-Studio", "1", "Cookie", cookie, "Sec-Fetch-Site", "same-site"}, 403, "FORBIDDEN"},
			{"another origin in an old browser", []string{"X-Atelier-Studio", "1", "Cookie", cookie, "Origin", "https://evil.example"}, 403, "FORBIDDEN"},
			{"the same origin", []string{"X-Atelier-Studio", "1", "Cookie", cookie, "Sec-Fetch-Site", "same-origin"}, 200, ""},
		} {
			bare.sendRequest("POST", studioRoute, c.header...).checkStatus(t, c.name, c.status, c.code)
		}

		bare.sendRequest("GET", "/api/v2/me", "Cookie", cookie).checkStatus(t, "the cookie elsewhere", 401, "UNAUTHENTICATED")

		_, busy := s.startSession(anna)
		now := time.Now()
		still := s.with(func(p *api.Parts) { p.Now = func() time.Time { return now } }, nil) // a slow machine earns no tokens back
		for range sessions.TokensPerMinute {
			still.webToken(busy)
		}
		still.by("").sendRequest("POST", studioRoute, "Cookie", busy, "X-Atelier-Studio", "1").checkStatus(t, "too many tokens", http.StatusTooManyRequests, "RATE_LIMITED")
		still.webToken(cookie) // other sessions are not affected
	})
}
