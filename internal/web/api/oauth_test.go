package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"atelier/internal/account"
	"atelier/internal/account/applogin"
	"atelier/internal/web/api"
)

const (
	oauthVerifier = "a-code-verifier-with-at-least-43-characters.0"
	oauthRedirect = "http://127.0.0.1/callback"
)

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// oauthError is an error in the form of OAuth.
type oauthError struct {
	Error       string
	Description string `json:"error_description"`
}

type oauthTokens struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int64  `json:"expires_in"`
	Refresh   string `json:"refresh_token"`
	Scope     string
}

// register registers an app and returns its id.
func (s *service) register(name string) string {
	s.t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{oauthRedirect}, "token_endpoint_auth_method": "none", "logo_uri": "https://example.com/x.png"})
	a := s.send("POST", "/oauth/register", "application/json", strings.NewReader(string(body)))
	got := decodeAnswer[struct {
		ID string `json:"client_id"`
	}](s.t, a)
	if a.StatusCode != 201 || got.ID == "" {
		s.t.Fatalf("register = %d %s", a.StatusCode, a.body)
	}
	return got.ID
}

// allow has a person allow an app, and returns the code.
func (s *service) allow(email, clientID, redirect string) string {
	s.t.Helper()
	in := s.site.Session(email)
	r := applogin.Request{ClientID: clientID, RedirectURI: redirect, ResponseType: "code", Challenge: challengeOf(oauthVerifier), ChallengeMethod: "S256"}
	app, err := s.site.Accounts.Apps.OpenRequest(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	code, err := s.site.Accounts.Apps.Approve(s.t.Context(), in.Principal("192.0.2.7"), app, r)
	if err != nil {
		s.t.Fatal(err)
	}
	return code
}

// token sends a form to an endpoint.
func (s *service) oauthForm(endpoint string, pairs ...string) answer {
	s.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return s.send("POST", "/oauth/"+endpoint, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

func (s *service) exchange(code, clientID, redirect, verifier string) answer {
	s.t.Helper()
	return s.oauthForm("token", "grant_type", "authorization_code", "code", code, "client_id", clientID, "redirect_uri", redirect, "code_verifier", verifier, "resource", "https://atelier.example/mcp")
}

// checkOAuthError fails the test unless the answer is this error.
func (a answer) checkOAuthError(t *testing.T, what, code string) {
	t.Helper()
	e := decodeAnswer[oauthError](t, a)
	if a.StatusCode != 400 || e.Error != code || e.Description == "" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s = %d %s, want %s", what, a.StatusCode, a.body, code)
	}
}

// signInApp signs a person in to an app.
func (s *service) signInApp(email string) (clientID string, t oauthTokens) {
	s.t.Helper()
	clientID = s.register("Some App")
	a := s.exchange(s.allow(email, clientID, oauthRedirect), clientID, oauthRedirect, oauthVerifier)
	if a.StatusCode != 200 {
		s.t.Fatalf("exchange = %d %s", a.StatusCode, a.body)
	}
	return clientID, decodeAnswer[oauthTokens](s.t, a)
}

// using returns the service with another token.
func (s *service) using(token string) *service {
	other := *s
	other.token = token
	return &other
}

func TestOAuthMetadata(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		server := getJSON[map[string]any](s, "/.well-known/oauth-authorization-server")
		for name, want := range map[string]string{
			"issuer":                 "https://atelier.example",
			"authorization_endpoint": "https://atelier.example/oauth/authorize",
			"token_endpoint":         "https://atelier.example/oauth/token",
			"registration_endpoint":  "https://atelier.example/oauth/register",
			"revocation_endpoint":    "https://atelier.example/oauth/revoke",
		} {
			if server[name] != want {
				t.Errorf("%s = %v, want %s", name, server[name], want)
			}
		}
		for path, want := range map[string]string{"": "https://atelier.example", "/mcp": "https://atelier.example/mcp", "/api/v2": "https://atelier.example/api/v2"} {
			resource := getJSON[map[string]any](s, "/.well-known/oauth-protected-resource"+path)
			if resource["resource"] != want || fmt.Sprint(resource["authorization_servers"]) != "[https://atelier.example]" {
				t.Errorf("%s = %v", path, resource)
			}
		}
		if a := s.sendRequest("GET", "/.well-known/oauth-protected-resource/elsewhere"); a.StatusCode != 404 {
			t.Errorf("the metadata of nothing = %d", a.StatusCode)
		}
		closed := s.with(func(p *api.Parts) { p.OAuth = &api.OAuth{} }, nil)
		if a := closed.send("POST", "/oauth/register", "application/json", strings.NewReader(`{}`)); a.StatusCode != 404 {
			t.Errorf("registration where it is off = %d", a.StatusCode)
		}
		if got := getJSON[map[string]any](closed, "/.well-known/oauth-authorization-server"); got["registration_endpoint"] != nil {
			t.Errorf("metadata = %v", got)
		}
	})
}

func TestOAuthTokens(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		clientID, in := s.signInApp("anna@example.com")
		if in.Type != "Bearer" || in.ExpiresIn < 3500 || in.ExpiresIn > 3600 || in.Scope != "api" || in.Refresh == "" {
			t.Errorf("tokens = %+v", in)
		}
		app := s.using(in.Access)
		if a := app.sendRequest("GET", "/api/v2/me"); a.StatusCode != 200 || !strings.Contains(string(a.body), "anna@example.com") {
			t.Errorf("me = %d %s", a.StatusCode, a.body)
		}
		// It is a device of the person.
		own := s.using(s.site.Device(s.site.Session("anna@example.com").PersonID, "").Tokens.ID)
		devices := getJSON[struct {
			Data []struct {
				Name       string
				PluginKind *string `json:"plugin_kind"`
			}
		}](own, "/api/v2/devices").Data
		if text := fmt.Sprint(devices); !strings.Contains(text, "Some App") {
			t.Errorf("devices = %s", text)
		}
		// It cannot manage people and credentials.
		for _, one := range []string{"GET /api/v2/devices", "POST /api/v2/auth/sign-out-everywhere", "GET /api/v2/access-tokens", "POST /api/v2/access-tokens", "DELETE /api/v2/me", "GET /api/v2/operator/installation"} {
			method, path, _ := strings.Cut(one, " ")
			if a := app.send(method, path, "application/json", strings.NewReader("{}")); a.StatusCode != 403 && a.StatusCode != 404 {
				t.Errorf("%s = %d %s", one, a.StatusCode, a.body)
			}
		}

		refresh := func(clientID, token string) answer {
			return s.oauthForm("token", "grant_type", "refresh_token", "client_id", clientID, "refresh_token", token)
		}
		next := decodeAnswer[oauthTokens](t, refresh(clientID, in.Refresh))
		if a := s.using(next.Access).sendRequest("GET", "/api/v2/me"); a.StatusCode != 200 {
			t.Errorf("me with the next token = %d", a.StatusCode)
		}
		refresh(s.register("Other"), in.Refresh).checkOAuthError(t, "the refresh token of another app", "invalid_grant")
		refresh(clientID, "atl_r_nothing").checkOAuthError(t, "an unknown refresh token", "invalid_grant")
		refresh("", in.Refresh).checkOAuthError(t, "no app", "invalid_grant")
		login := s.site.Device(s.site.Session("anna@example.com").PersonID, "")
		refresh(clientID, login.Tokens.Refresh).checkOAuthError(t, "the refresh token of a device", "invalid_grant")

		// Another app cannot sign it out, it itself can.
		for _, token := range []string{in.Refresh, in.Access} {
			clientID, in := s.signInApp("anna@example.com")
			if token == in.Access {
				t.Fatal("the same token")
			}
			for _, one := range []string{in.Refresh, in.Access, "nothing", login.Tokens.Refresh, login.Tokens.ID} {
				if a := s.oauthForm("revoke", "client_id", "other", "token", one); a.StatusCode != 200 {
					t.Errorf("revoke by another app = %d %s", a.StatusCode, a.body)
				}
			}
			for _, alive := range []string{in.Access, login.Tokens.ID} {
				if a := s.using(alive).sendRequest("GET", "/api/v2/me"); a.StatusCode != 200 {
					t.Errorf("me after another app wanted to revoke = %d", a.StatusCode)
				}
			}
			used := in.Refresh
			if strings.HasPrefix(token, "ey") {
				used = in.Access
			}
			s.oauthForm("revoke", "client_id", clientID, "token", used)
			out := s.using(in.Access)
			for what, a := range map[string]answer{
				"/api/v2": out.sendRequest("GET", "/api/v2/me"),
				"/v1":     out.sendRequest("GET", "/v1/models"),
				"/mcp":    out.send("POST", "/mcp", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)),
			} {
				if a.StatusCode != 401 {
					t.Errorf("%s after the app was signed out = %d", what, a.StatusCode)
				}
			}
			refresh(clientID, in.Refresh).checkOAuthError(t, "refresh after the app was signed out", "invalid_grant")
		}
	})
}

func TestOAuthCodes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		clientID := s.register("Some App")
		other := s.register("Other App")
		code := s.allow("anna@example.com", clientID, oauthRedirect)
		for what, a := range map[string]answer{
			"an unknown code":          s.exchange("atl_c_nothing", clientID, oauthRedirect, oauthVerifier),
			"the code of another app":  s.exchange(code, other, oauthRedirect, oauthVerifier),
			"another address":          s.exchange(code, clientID, "http://127.0.0.1:8000/callback", oauthVerifier),
			"another verifier":         s.exchange(code, clientID, oauthRedirect, strings.Replace(oauthVerifier, "a", "b", 1)),
			"no verifier":              s.exchange(code, clientID, oauthRedirect, ""),
			"a verifier that is short": s.exchange(code, clientID, oauthRedirect, "short"),
		} {
			a.checkOAuthError(t, what, "invalid_grant")
		}
		// A code is no device code: the other way to tokens knows no PKCE.
		if a := s.send("POST", "/api/v2/auth/device/poll", "application/json", strings.NewReader(`{"device_code":"`+code+`"}`)); a.StatusCode == 200 {
			t.Errorf("poll with a code = %s", a.body)
		}
		if a := s.send("POST", "/api/v2/auth/device/poll", "application/json", strings.NewReader(`{"device_code":"`+strings.Replace(code, "atl_c_", "atl_d_", 1)+`"}`)); a.StatusCode == 200 {
			t.Errorf("poll with a code = %s", a.body)
		}

		// Many exchange the code at once: one gets tokens.
		var mu sync.Mutex
		var got []string
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				a := s.exchange(code, clientID, oauthRedirect, oauthVerifier)
				mu.Lock()
				defer mu.Unlock()
				if a.StatusCode == 200 {
					got = append(got, decodeAnswer[oauthTokens](t, a).Access)
				}
			})
		}
		group.Wait()
		if len(got) != 1 {
			t.Fatalf("%d requests got tokens for one code", len(got))
		}
		me := func() int { return s.using(got[0]).sendRequest("GET", "/api/v2/me").StatusCode }
		if me() != 200 {
			t.Errorf("me = %d", me())
		}
		// Whoever presents it long after that has stolen it.
		s.exec(`UPDATE device_grant SET claimed = claimed - 11000000 WHERE client_id = $1`, clientID)
		s.exchange(code, clientID, oauthRedirect, "wrong-"+oauthVerifier).checkOAuthError(t, "a used code without its verifier", "invalid_grant")
		if me() != 200 {
			t.Error("who does not have the verifier signs the app out")
		}
		s.exchange(code, clientID, oauthRedirect, oauthVerifier).checkOAuthError(t, "a used code", "invalid_grant")
		if me() != 401 {
			t.Errorf("me after the code was used again = %d", me())
		}

		code = s.allow("anna@example.com", clientID, "http://127.0.0.1:54321/callback") // another port of the same machine
		s.exec(`UPDATE device_grant SET expires = expires - 61000000 WHERE client_id = $1`, clientID)
		s.exchange(code, clientID, "http://127.0.0.1:54321/callback", oauthVerifier).checkOAuthError(t, "an expired code", "invalid_grant")

		code = s.allow("anna@example.com", clientID, oauthRedirect)
		in := s.site.Session("anna@example.com")
		if err := s.site.Accounts.SignIn.SignOutEverywhere(t.Context(), in.Principal("192.0.2.7"), in.PersonID); err != nil {
			t.Fatal(err)
		}
		s.exchange(code, clientID, oauthRedirect, oauthVerifier).checkOAuthError(t, "a code after the person has signed out everywhere", "invalid_grant")
	})
}

func TestOAuthRefusals(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		for body, code := range map[string]string{
			`{`:                                  "invalid_client_metadata",
			`[]`:                                 "invalid_client_metadata",
			`{}`:                                 "invalid_redirect_uri",
			`{"redirect_uris":[]}`:               "invalid_redirect_uri",
			`{"redirect_uris":"x"}`:              "invalid_client_metadata",
			`{"redirect_uris":["/callback"]}`:    "invalid_redirect_uri",
			`{"redirect_uris":["javascript:x"]}`: "invalid_redirect_uri",
			`{"redirect_uris":["http://example.com/"]}`:                                   "invalid_redirect_uri",
			`{"redirect_uris":["https://example.com/#x"]}`:                                "invalid_redirect_uri",
			`{"redirect_uris":["https://a@example.com/"]}`:                                "invalid_redirect_uri",
			`{"redirect_uris":["https://example.com/"],"client_uri":"javascript:x"}`:      "invalid_client_metadata",
			`{"redirect_uris":["https://example.com/"],"grant_types":["password"]}`:       "invalid_client_metadata",
			`{"redirect_uris":[` + strings.Repeat(`"https://a/",`, 10) + `"https://a/"]}`: "invalid_redirect_uri",
		} {
			s.send("POST", "/oauth/register", "application/json", strings.NewReader(body)).checkOAuthError(t, body, code)
		}
		if a := s.send("POST", "/oauth/register", "application/json", strings.NewReader(`{"redirect_uris":["`+strings.Repeat("x", 40<<10)+`"]}`)); a.StatusCode != 413 {
			t.Errorf("a large registration = %d", a.StatusCode)
		}
		s.send("POST", "/oauth/register", "text/plain", strings.NewReader(`{}`)).checkOAuthError(t, "a registration that is no JSON", "invalid_client_metadata")
		s.oauthForm("token").checkOAuthError(t, "no grant type", "invalid_request")
		s.oauthForm("token", "grant_type", "password").checkOAuthError(t, "another grant type", "unsupported_grant_type")
		s.oauthForm("token", "grant_type", "refresh_token", "grant_type", "refresh_token").checkOAuthError(t, "a repeated parameter", "invalid_request")
		s.oauthForm("token", "grant_type", "refresh_token", "resource", "https://elsewhere.example").checkOAuthError(t, "another service", "invalid_target")
		s.oauthForm("revoke").checkOAuthError(t, "no token", "invalid_request")
		s.send("POST", "/oauth/token", "application/json", strings.NewReader(`{}`)).checkOAuthError(t, "a token request that is no form", "invalid_request")
	})
}

// TestRegistrationFlood: apps that nobody allows do not pile up.
func TestRegistrationFlood(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		used := s.register("Used")
		s.allow("anna@example.com", used, oauthRedirect)
		var refused answer
		for range 40 {
			a := s.send("POST", "/oauth/register", "application/json", strings.NewReader(`{"redirect_uris":["https://example.com/"]}`))
			if a.StatusCode != 201 {
				refused = a
				break
			}
		}
		if refused.Response == nil || refused.StatusCode != 429 || refused.Header.Get("Retry-After") == "" || decodeAnswer[oauthError](t, refused).Error != "temporarily_unavailable" {
			t.Fatalf("many registrations are not refused: %+v %s", refused.Response, refused.body)
		}
		s.exec(`UPDATE oauth_client SET created = created - 691200000000`) // 8 days
		if err := account.DeleteExpired(t.Context(), s.db, s.site.Devices, s.site.Tokens); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM oauth_client`).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d apps are left, %v; want the one that somebody has allowed", n, err)
		}
	})
}
