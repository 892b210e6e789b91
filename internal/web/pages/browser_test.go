package pages_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
	"atelier/internal/web/pages"
	"atelier/internal/web/studio"
)

// browser is a person's browser, with cookies.
type browser struct {
	*site
	client *http.Client
	agent  string
	header http.Header // sent with every request
}

func (s *site) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return &browser{site: s, agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", header: http.Header{}, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// signedIn returns a browser with a session of the person. It does not use the
// form, which is slow.
func (s *site) signedIn(p person.Person) *browser {
	s.t.Helper()
	b := s.browser()
	var cookie string
	s.write(func(ctx context.Context, tx *sqldb.Tx) (err error) {
		_, cookie, err = session.Start(ctx, tx, session.Session{PersonID: p.ID, Provider: person.Password, Agent: b.agent, Address: "203.0.113.9"}, 24*time.Hour)
		return err
	})
	b.plant(sessionCookie, cookie)
	return b
}

const (
	sessionCookie = "atelier_session"
	formCookie    = "atelier_form"
)

func (b *browser) plant(name, value string) {
	u, _ := url.Parse(b.url)
	b.client.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

func (b *browser) cookie(name string) string {
	u, _ := url.Parse(b.url)
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// answer is a response.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
	doc    *html.Node
}

func (b *browser) do(method, path, contentType, body string) *answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("User-Agent", b.agent)
	for name, values := range b.header {
		req.Header[name] = values
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	page := text
	if res.Header.Get("Content-Type") == "application/zip" {
		page = nil
	}
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		b.t.Fatal(err)
	}
	a := &answer{b.t, res.StatusCode, res.Header, string(text), doc}
	if !isFile(path, res.StatusCode) && (len(text) == 0 || page != nil) {
		a.inspect(path)
	}
	return a
}

// isFile reports whether a response is a file, not a page of this package: a
// static file, or the studio.
func isFile(path string, status int) bool {
	path, _, _ = strings.Cut(path, "?")
	isStudio := studio.IsPage(path) || slices.Contains(studio.FilePatterns, path) || strings.HasPrefix(path, "/assets/") || strings.HasPrefix(path, "/icons/")
	return pages.IsFile(path) || isStudio && (status < 300 || status == http.StatusNotModified)
}

// fill returns the path of a route with values for its parameters.
func fill(path, companyID string) string {
	path = strings.ReplaceAll(path, "{company_id}", companyID)
	return regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x")
}

func (b *browser) get(path string) *answer {
	b.t.Helper()
	return b.do("GET", path, "", "")
}

const formType = "application/x-www-form-urlencoded"

func (b *browser) post(path string, form url.Values) *answer {
	b.t.Helper()
	return b.do("POST", path, formType, form.Encode())
}

// submit opens a page, fills in its form with this action and sends it. values
// are pairs of name and value.
func (b *browser) submit(page, action string, values ...string) *answer {
	b.t.Helper()
	return b.send(b.get(page), action, values...)
}

// send fills in a form of an open page and sends it.
func (b *browser) send(a *answer, action string, values ...string) *answer {
	b.t.Helper()
	form := a.form(action)
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	return b.post(action, form)
}

// signIn signs in through the form.
func (b *browser) signIn(email, password string) *answer {
	b.t.Helper()
	return b.submit("/signin", "/signin", "email", email, "password", password)
}

// form returns the initial values of the first form with this action.
func (a *answer) form(action string) url.Values {
	a.t.Helper()
	for f := range a.all("form") {
		if attr(f, "action") == action && attr(f, "method") == "post" {
			values := url.Values{}
			for n := range f.Descendants() {
				if n.Data == "input" && attr(n, "name") != "" {
					values.Set(attr(n, "name"), attr(n, "value"))
				}
			}
			return values
		}
	}
	a.t.Fatalf("no form to %s in %d %s", action, a.status, a.body)
	return nil
}

// all returns the elements with a tag.
func (a *answer) all(tag string) func(func(*html.Node) bool) {
	return func(yield func(*html.Node) bool) {
		for n := range a.doc.Descendants() {
			if n.Type == html.ElementNode && n.Data == tag && !yield(n) {
				return
			}
		}
	}
}

// text returns the visible text of the page.
func (a *answer) text() string {
	var b strings.Builder
	for n := range a.doc.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// element finds an element by id.
func (a *answer) element(id string) *html.Node {
	a.t.Helper()
	for n := range a.doc.Descendants() {
		if n.Type == html.ElementNode && attr(n, "id") == id {
			return n
		}
	}
	a.t.Fatalf("nothing has the id %s in %s", id, a.body)
	return nil
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// want checks the status and that the page contains the texts.
func (a *answer) want(status int, says ...string) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status = %d, want %d: %s %s", a.status, status, a.header.Get("Location"), a.body)
	}
	for _, s := range says {
		if !strings.Contains(a.text(), s) {
			a.t.Errorf("the page does not say %q: %s", s, a.text())
		}
	}
	return a
}

// leads checks that the response redirects the browser to an address.
func (a *answer) leads(to string) {
	a.t.Helper()
	if a.status != http.StatusSeeOther || a.header.Get("Location") != to {
		a.t.Fatalf("answer = %d to %q, want 303 to %q: %s", a.status, a.header.Get("Location"), to, a.body)
	}
}

// alerts returns the texts of the alerts on the page.
func (a *answer) alerts() (all []string) {
	for n := range a.doc.Descendants() {
		if n.Type == html.ElementNode && attr(n, "role") == "alert" {
			var b strings.Builder
			for m := range n.Descendants() {
				if m.Type == html.TextNode {
					b.WriteString(m.Data)
				}
			}
			all = append(all, strings.Join(strings.Fields(b.String()), " "))
		}
	}
	return all
}

// signinToken returns the CSRF token of a form for people who are signed in.
func signinToken(b *browser, path string) string {
	return pages.Token(b.key, b.cookie(sessionCookie), path)
}
