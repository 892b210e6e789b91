package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/notify/mail/mailtest"
	"atelier/test/visitor"
)

// vault keeps every secret that a test came across.
type vault struct {
	t       *testing.T
	secrets map[string]string // what it is, by value
}

// keep keeps a secret and gives it back.
func (v *vault) keep(what, secret string) string {
	v.t.Helper()
	if len(secret) < 8 {
		v.t.Fatalf("%s is %q, which is too short to look for", what, secret)
	}
	v.secrets[secret] = what
	return secret
}

// tokens keeps what a device was given.
func (v *vault) tokens(in visitor.SignedIn) visitor.SignedIn {
	v.keep("an ID token", in.Tokens.IDToken)
	v.keep("a refresh token", in.Tokens.RefreshToken)
	return in
}

// search fails the test for every secret that text has.
func (v *vault) search(where, text string) {
	v.t.Helper()
	for secret, what := range v.secrets {
		for _, form := range []string{secret, url.QueryEscape(secret)} {
			if strings.Contains(text, form) {
				v.t.Errorf("%s holds %s", where, what)
				break
			}
		}
	}
}

// link takes the secret out of the next mail.
func (v *vault) link(mails *mailtest.Server, subject string) (address string) {
	v.t.Helper()
	m := mails.Next(v.t)
	if m.Subject != subject {
		v.t.Fatalf("mail %q, want %q", m.Subject, subject)
	}
	found := regexp.MustCompile(`http\S+token=(\w+)`).FindStringSubmatch(m.Text)
	if found == nil {
		v.t.Fatalf("no link in %s", m.Text)
	}
	v.keep("the link of "+subject, found[1])
	return found[0]
}

// signInApp signs an app in with the authorization code flow.
func (v *vault) signInApp(n *node, anna *visitor.Visitor) {
	v.t.Helper()
	answers := make(chan url.Values, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { answers <- r.URL.Query() }))
	defer server.Close()
	redirect := server.URL + "/callback"
	app := n.call("POST", "/oauth/register", `{"client_name": "App", "redirect_uris": ["`+redirect+`"]}`).want(v.t, 201)["client_id"].(string)
	verifier := v.keep("a code verifier", "verifier-verifier-verifier-verifier-verifier-1")
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"response_type": {"code"}, "client_id": {app}, "redirect_uri": {redirect}, "state": {v.keep("a state", "state-of-the-app-4711")},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	p, err := anna.Open("/oauth/authorize?" + query.Encode())
	if err == nil {
		_, err = anna.Send(p, "/oauth/authorize", url.Values{"verdict": {"approve"}})
	}
	if err != nil {
		v.t.Fatal(err)
	}
	code := v.keep("an authorization code", (<-answers).Get("code"))
	exchange := func(form url.Values) (access, refresh string) {
		v.t.Helper()
		form.Set("client_id", app)
		res, err := http.PostForm(n.url+"/oauth/token", form)
		if err != nil {
			v.t.Fatal(err)
		}
		defer res.Body.Close()
		var got struct {
			Access  string `json:"access_token"`
			Refresh string `json:"refresh_token"`
		}
		if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != 200 {
			v.t.Fatalf("token = %d %v", res.StatusCode, err)
		}
		return v.keep("an access token of an app", got.Access), v.keep("a refresh token of an app", got.Refresh)
	}
	_, refresh := exchange(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect}, "code_verifier": {verifier}})
	access, _ := exchange(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}})
	n.get("/api/v2/me", bearer(access)...).want(v.t, 200)
}

// TestNoSecretIsKept goes through everything that makes a secret, with the most
// talkative log there is, and then looks for each of them in all that is left
// behind.
func TestNoSecretIsKept(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		v := &vault{t, map[string]string{}}
		mails := mailtest.Start(t, mailtest.Options{})
		mailPassword := v.keep("the mail server's password", "mail-password-7F3a")
		s.env = append(s.env, "ATELIER_LOG_LEVEL=debug", "ATELIER_TOKENS_REFRESH_ROTATE_AFTER=0s", "ATELIER_DEVICE_INTERVAL=1s",
			"ATELIER_SMTP_ADDRESS="+mails.Address, "ATELIER_SMTP_FROM=atelier@studio.example", "ATELIER_SMTP_TLS=none", "ATELIER_SMTP_PASSWORD="+mailPassword)
		n := s.serve()
		anna := visitor.New(n.url)
		first, second := v.keep("a password", "first horse battery"), v.keep("a new password", "second horse battery")
		if err := anna.SignUp("anna@example.com", first); err != nil {
			t.Fatal(err)
		}
		cookies := func() {
			for _, c := range anna.Cookies() {
				v.keep("a cookie", c)
			}
		}
		cookies()
		send := func(path, action string, values url.Values) visitor.Page {
			t.Helper()
			p, err := anna.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if p, err = anna.Send(p, action, values); err != nil || p.Status != 200 {
				t.Fatalf("%s = %d %v %s", path, p.Status, err, p.HTML)
			}
			return p
		}
		send(v.link(mails, "Verify your address"), "/verify", nil)
		send("/forgot", "/forgot", url.Values{"email": {"anna@example.com"}})
		send(v.link(mails, "Choose a new password"), "/reset", url.Values{"password": {second}})
		if m := mails.Next(t); m.Subject != "Your password was changed" {
			t.Errorf("mail = %s", m.Subject)
		}
		if err := anna.SignIn("anna@example.com", second); err != nil {
			t.Fatal(err)
		}
		cookies()

		codes, err := anna.Start("blender")
		if err != nil {
			t.Fatal(err)
		}
		v.keep("a device code", codes.DeviceCode)
		v.keep("a user code", codes.UserCode)
		v.keep("a user code", strings.ReplaceAll(codes.UserCode, "-", ""))
		n.get("/api/v2/auth/device/poll?device_code=" + codes.DeviceCode)
		if err := anna.Decide(codes.VerificationURL, true); err != nil {
			t.Fatal(err)
		}
		in, err := anna.Poll(codes.DeviceCode)
		if err != nil {
			t.Fatal(err)
		}
		v.tokens(in)
		drop := v.link(mails, "A new device was signed in")
		refreshed := n.call("POST", "/api/v2/auth/token/refresh", `{"refresh_token": "`+in.Tokens.RefreshToken+`"}`).want(t, 200)
		v.keep("a second refresh token", refreshed["refresh_token"].(string))
		n.token = v.keep("a second ID token", refreshed["id_token"].(string))

		made := n.call("POST", "/api/v2/access-tokens", `{"name": "script"}`).want(t, 201)
		v.keep("a personal token", made["token"].(string))
		again := n.call("POST", "/api/v2/access-tokens/"+made["id"].(string)+"/regenerate", "").want(t, 200)
		v.keep("a regenerated token", again["token"].(string))
		n.get("/api/v2/me", bearer(again["token"].(string))...).want(t, 200)
		page := send("/tokens", "/tokens", url.Values{"name": {"from the page"}})
		v.keep("a token of the page", regexp.MustCompile(`atl_p_\w{49}`).FindString(page.HTML))

		company := s.do("admin", "company", "create", "--name", "Studio", "--plan", "TEAM")["id"].(string)
		team := s.do("admin", "team", "create", "--company", company, "--name", "Look")["id"].(string)
		s.do("admin", "company", "add", "--company", company, "--email", "anna@example.com", "--permission", "MANAGE_MEMBERS", "--permission", "MANAGE_TEAMS", "--permission", "MANAGE_API_TOKENS")
		v.keep("a company token", s.do("admin", "token", "create", "--email", "anna@example.com", "--name", "c", "--company", company)["token"].(string))
		if m := mails.Next(t); !strings.Contains(m.Subject, "access token") {
			t.Errorf("mail = %s", m.Subject)
		}
		invitation := n.call("POST", "/api/v2/companies/"+company+"/invitations", `{"team_id": "`+team+`"}`).want(t, 201)
		v.keep("an invitation", mustParse(t, invitation["url"].(string)).Query().Get("token"))
		n.call("POST", "/api/v2/companies/"+company+"/invitations", `{"email": "bert@example.com"}`).want(t, 201)
		bert := mails.Next(t)
		v.keep("a mailed invitation", regexp.MustCompile(`token=(\w+)`).FindStringSubmatch(bert.Text)[1])
		for _, kind := range []string{"verify", "reset"} {
			v.keep("a link for the operator", mustParse(t, s.do("admin", "person", "link", "--email", "anna@example.com", "--kind", kind)["url"].(string)).Query().Get("token"))
		}
		v.signInApp(n, anna)
		s.do("keys", "rotate")
		send(drop, "/drop", nil)

		// Secrets in wrong places, and wrong secrets.
		for _, secret := range slices.Sorted(maps.Keys(v.secrets)) {
			n.get("/api/v2/tools?cursor="+url.QueryEscape(secret), bearer(secret)...)
			n.get("/api/v2/tools", "X-Device-Id", url.QueryEscape(secret))
			anna.Open("/device?code=" + url.QueryEscape(secret))
		}
		n.stop()
		s.check()

		v.search("the log", n.stderr.String())
		if s.database != "" {
			v.search("the dump", dbtest.Dump(t, s.database))
		}
		files := 0
		s.eachFile(func(name string, content []byte) {
			files++
			v.search(name, string(content))
		})
		if files == 0 {
			t.Error("no file was searched")
		}
		t.Logf("%d secrets were looked for in the log, the database and %d files", len(v.secrets), files)
		if len(v.secrets) < 20 {
			t.Error(fmt.Sprint("too few secrets: ", len(v.secrets)))
		}
	})
}
