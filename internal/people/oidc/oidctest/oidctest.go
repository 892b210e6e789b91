// Package oidctest runs a real OpenID provider for tests.
//
// The provider is oidc-provider, a certified implementation for Node.js. On
// first use it is installed in the user's cache directory, in the version from
// the lock file of test/oidcserver. It is started once per test binary and ends
// with it. If it cannot be installed, its tests are skipped, or fail if the
// environment variable CI is set. ATELIER_TEST_OIDC=skip always skips them.
package oidctest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"atelier/internal/testkit/servers"
)

// Server is a provider with one registered client. It accepts every login name,
// and uses it as the subject and the e-mail address of the person. The address is
// verified unless it starts with "unverified-".
type Server struct {
	Issuer, ClientID, ClientSecret string

	redirect, control string
}

// Start starts a provider for the duration of the test. The provider redirects
// browsers to redirectURL after a sign-in.
func Start(t testing.TB, redirectURL string) *Server {
	t.Helper()
	base := servers.Need(t, "OpenID provider", "ATELIER_TEST_OIDC", startServer)
	body, err := json.Marshal(map[string]any{"redirect_uris": []string{redirectURL}})
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		ID           string `json:"id"`
		Issuer       string `json:"issuer"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if err := json.Unmarshal(control(t, "POST", base+"/providers", body), &made); err != nil {
		t.Fatalf("OpenID provider for tests: %v", err)
	}
	s := &Server{
		Issuer:       made.Issuer,
		ClientID:     made.ClientID,
		ClientSecret: made.ClientSecret,
		redirect:     redirectURL,
		control:      base + "/providers/" + made.ID,
	}
	t.Cleanup(func() { control(t, "DELETE", s.control, nil) })
	return s
}

// Stop makes the provider unreachable until Resume is called. The provider
// keeps its state.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	control(t, "POST", s.control+"/down", nil)
}

// Resume makes the provider reachable again after Stop.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	control(t, "POST", s.control+"/up", nil)
}

// Revoke revokes all grants of a login name at the provider.
func (s *Server) Revoke(t testing.TB, login string) {
	t.Helper()
	control(t, "POST", s.control+"/revoke?account="+url.QueryEscape(login), nil)
}

// control sends a request to the control server and returns the response body.
// It also works in cleanup functions, after the end of the test.
func control(t testing.TB, method, address string, body []byte) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("OpenID provider for tests: %v", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("OpenID provider for tests: %s: %s, %v", answer.Status, text, err)
	}
	return text
}

// SignIn signs in on the provider's pages as a person who has no session at the
// provider. It returns the URL of the provider's last redirect, without opening
// it.
func (s *Server) SignIn(t testing.TB, authorizeURL, login string) (callbackURL string) {
	t.Helper()
	v := s.visit(t, authorizeURL)
	for range 5 {
		if v.back != "" {
			return v.back
		}
		v.submit(t, login)
	}
	t.Fatalf("%s did not send %s back", s.Issuer, login)
	return ""
}

// Refuse is SignIn for a person who cancels the sign-in on the first page.
func (s *Server) Refuse(t testing.TB, authorizeURL string) (callbackURL string) {
	t.Helper()
	v := s.visit(t, authorizeURL)
	if v.page == nil {
		t.Fatalf("%s has no page to turn around at", s.Issuer)
	}
	for n := range v.page.Descendants() {
		if to := attribute(n, "href"); n.Data == "a" && strings.HasSuffix(to, "/abort") {
			v.open(t, "GET", to, nil)
			return v.back
		}
	}
	t.Fatalf("%s has no way to turn around", s.Issuer)
	return ""
}

// visitor is the browser of a person on the provider's pages.
type visitor struct {
	client http.Client
	at     *url.URL
	page   *html.Node
	back   string // URL of the last redirect of the sign-in; empty before it
}

var errBack = errors.New("sent back")

func (s *Server) visit(t testing.TB, address string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{}
	v.client = http.Client{Jar: jar, Timeout: 20 * time.Second, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), s.redirect) {
			v.back = r.URL.String()
			return errBack
		}
		if len(via) > 10 {
			return errors.New("too many redirects")
		}
		return nil
	}}
	v.open(t, "GET", address, nil)
	return v
}

// open requests a page and follows redirects, except the final one to the
// client.
func (v *visitor) open(t testing.TB, method, address string, form url.Values) {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if v.at != nil {
		to = v.at.ResolveReference(to)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, to.String(), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := v.client.Do(r)
	if errors.Is(err, errBack) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s = %s: %s, %v", to.Redacted(), answer.Status, text, err)
	}
	v.at = answer.Request.URL
	if v.page, err = html.Parse(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

// submit fills in the form on the current page with the login name and sends
// it.
func (v *visitor) submit(t testing.TB, login string) {
	t.Helper()
	action := ""
	fields := url.Values{}
	for n := range v.page.Descendants() {
		switch n.Data {
		case "form":
			action = attribute(n, "action")
		case "input":
			name := attribute(n, "name")
			value := attribute(n, "value")
			switch name {
			case "login":
				value = login
			case "password":
				value = "any"
			}
			fields.Set(name, value)
		}
	}
	if action == "" {
		t.Fatalf("%s has no form", v.at)
	}
	v.open(t, "POST", action, fields)
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
