package pages_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"atelier/internal/people/device"
	"atelier/internal/people/oauthclient"
	"atelier/internal/people/session"
)

const appVerifier = "a-code-verifier-with-at-least-43-characters.0"

// appLink registers an app, and returns its id and the address with which it
// opens the browser. change changes the parameters.
func (s *site) appLink(redirect string, change func(url.Values)) (id, link string) {
	s.t.Helper()
	app, err := s.accounts.Apps.Register(s.t.Context(), oauthclient.Registration{Name: "Some <App>", RedirectURIs: []string{redirect}}, session.Client{Address: "198.51.100.7"})
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(appVerifier))
	query := url.Values{
		"response_type":         {"code"},
		"client_id":             {app.ID},
		"redirect_uri":          {redirect},
		"state":                 {"a state"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
	}
	if change != nil {
		change(query)
	}
	return app.ID, "/oauth/authorize?" + query.Encode()
}

// answered returns where the answer leads, and its parameters.
func (a *answer) answered() (string, url.Values) {
	a.t.Helper()
	u, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.status != 303 {
		a.t.Fatalf("answer = %d %v, %v", a.status, a.header, err)
	}
	query := u.Query()
	u.RawQuery = ""
	return u.String(), query
}

func TestAllowAnApp(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		out := s.browser()
		id, link := s.appLink("https://app.example/callback?x=1", nil)
		out.get(link).leads("/signin?next=" + url.QueryEscape(link))
		out.submit("/signin?next="+url.QueryEscape(link), "/signin", "email", "anna@studio.example", "password", password).leads(link)
		page := out.get(link).want(200, "Allow Some <App> to act for you?", "app.example", "anna@studio.example", "Apps choose their names themselves.")
		if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' https://app.example;") {
			t.Errorf("policy = %s", policy)
		}
		if n := s.count("device_grant"); n != 0 {
			t.Errorf("an opened page makes %d codes", n)
		}

		address, answer := out.send(page, "/oauth/authorize", "verdict", "refuse").answered()
		if address != "https://app.example/callback" || answer.Get("x") != "1" || answer.Get("error") != "access_denied" || answer.Get("state") != "a state" || answer.Has("code") {
			t.Errorf("refused: %s %v", address, answer)
		}
		address, answer = out.send(page, "/oauth/authorize", "verdict", "approve").answered()
		if address != "https://app.example/callback" || answer.Get("x") != "1" || answer.Get("state") != "a state" || answer.Get("iss") != "https://api.atelier.example" || answer.Has("error") {
			t.Errorf("allowed: %s %v", address, answer)
		}
		tokens, err := s.accounts.Devices.ExchangeCode(t.Context(), device.CodeClaim{Code: answer.Get("code"), ClientID: id, RedirectURI: "https://app.example/callback?x=1", Verifier: appVerifier}, session.Client{Address: "198.51.100.7"})
		if err != nil || tokens.ID == "" {
			t.Fatal(tokens, err)
		}
		out.get("/devices").want(200, "Some <App>", "some-app")
		if got := s.only("device"); got == "" || anna.ID == "" {
			t.Error("there is no device")
		}
	})
}

// TestWrongAppRequests: the browser is never sent away for a request that is not
// valid, and nothing is allowed.
func TestWrongAppRequests(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.signedIn(s.person("anna@studio.example"))
		_, good := s.appLink("https://app.example/callback", nil)
		page := b.get(good).want(200)
		for what, change := range map[string]func(url.Values){
			"an unknown app":               func(q url.Values) { q.Set("client_id", "nothing") },
			"no app":                       func(q url.Values) { q.Del("client_id") },
			"another address":              func(q url.Values) { q.Set("redirect_uri", "https://evil.example/callback") },
			"a longer address":             func(q url.Values) { q.Set("redirect_uri", "https://app.example/callback/x") },
			"no address":                   func(q url.Values) { q.Del("redirect_uri") },
			"two addresses":                func(q url.Values) { q.Add("redirect_uri", "https://app.example/callback") },
			"a token instead of a code":    func(q url.Values) { q.Set("response_type", "token") },
			"no challenge":                 func(q url.Values) { q.Del("code_challenge") },
			"a challenge that is no hash":  func(q url.Values) { q.Set("code_challenge", "short") },
			"a challenge that is plain":    func(q url.Values) { q.Set("code_challenge_method", "plain") },
			"another service":              func(q url.Values) { q.Set("resource", "https://elsewhere.example/mcp") },
			"a state that is far too long": func(q url.Values) { q.Set("state", strings.Repeat("x", 3000)) },
		} {
			_, link := s.appLink("https://app.example/callback", change)
			for _, a := range []*answer{b.get(link), b.send(page, "/oauth/authorize", "verdict", "approve", "request", strings.TrimPrefix(link, "/oauth/authorize?"))} {
				if a.status != 400 && a.status != 404 || a.header.Get("Location") != "" {
					t.Errorf("%s = %d to %q", what, a.status, a.header.Get("Location"))
				}
			}
		}
		if n := s.count("device_grant"); n != 0 {
			t.Errorf("%d codes were made", n)
		}
	})
}
