package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// begin starts the sign-in of a device with a name for itself, from an address
// of its own.
func (n *node) begin(agent string) (verification, poll string) {
	n.t.Helper()
	starts++
	start := n.call("POST", "/api/v2/auth/device/start", `{"plugin_kind": "blender"}`,
		"User-Agent", agent, "X-Forwarded-For", fmt.Sprintf("10.2.%d.%d", starts/250, starts%250)).want(n.t, 200)
	return start["verification_url"].(string), "/api/v2/auth/device/poll?device_code=" + start["device_code"].(string)
}

// starts numbers the devices of the tests in this file, which take turns.
var starts int

// window opens a browser and signs a new person up in it.
func window(t *testing.T, n *node, email string) *browser.Browser {
	t.Helper()
	b := browser.Open(t)
	b.NoScript()
	b.Goto(n.url + "/signup")
	enter(b, email)
	if b.URL() != n.url+"/" {
		t.Fatalf("sign-up led to %s: %s", b.URL(), b.Text())
	}
	return b
}

func enter(b *browser.Browser, email string) {
	b.Fill("[name=email]", email)
	b.Fill("[name=password]", password)
	b.Click("button.main")
}

// TestApprovalPage goes with real people through a real browser, which runs no
// scripts.
func TestApprovalPage(t *testing.T) {
	s := newSite(t)
	s.env = append(s.env, "ATELIER_HTTP_TRUSTED_PROXIES=127.0.0.0/8", "ATELIER_DEVICE_INTERVAL=1s")
	n := s.serve()

	t.Run("sign up, compare, approve", func(t *testing.T) {
		page, poll := n.begin("Blender/4.2 (the shop's)")
		b := browser.Open(t)
		b.NoScript()
		b.Width(390)
		b.Goto(page + "&intent=signup")
		if !strings.Contains(b.Text(), "Sign up") {
			t.Fatalf("page = %s", b.Text())
		}
		enter(b, "anna@example.com")
		text, u := b.Text(), mustParse(t, page)
		for _, want := range []string{u.Query().Get("code"), "blender", "Blender/4.2 (the shop's)", "10.2.", "ago", "anna@example.com", "Do you see this code on your device?"} {
			if !strings.Contains(text, want) && !(want == "ago" && strings.Contains(text, "just now")) {
				t.Errorf("the approval page does not say %q: %s", want, text)
			}
		}
		if wide := b.Eval("document.documentElement.scrollWidth > window.innerWidth"); wide != "false" {
			t.Error("the page is wider than a phone")
		}
		b.Click("[value=approve]")
		if !strings.Contains(b.Text(), "Approved") {
			t.Fatalf("after approving: %s", b.Text())
		}
		in := n.get(poll).want(t, 200)
		n.get("/api/v2/me", bearer(in["tokens"].(map[string]any)["id_token"].(string))...).want(t, 200)
		if errs := b.Errors(); len(errs) > 0 {
			t.Errorf("the browser complains: %v", errs)
		}
	})

	t.Run("Enter refuses", func(t *testing.T) {
		page, poll := n.begin("x")
		b := window(t, n, "bert@example.com")
		b.Goto(page)
		wait(t, b, `document.activeElement.matches("button[value=refuse]")`) // browsers give the focus with the first picture
		b.Press("Enter")
		if !strings.Contains(b.Text(), "Refused") {
			t.Errorf("after Enter: %s", b.Text())
		}
		if a := n.get(poll); a.StatusCode != 410 {
			t.Errorf("poll = %d %s, want refused", a.StatusCode, a.body)
		}
	})

	t.Run("a second person locks it", func(t *testing.T) {
		page, poll := n.begin("x")
		first, second := window(t, n, "carl@example.com"), window(t, n, "dora@example.com")
		first.Goto(page)
		second.Goto(page)
		if text := second.Text(); !strings.Contains(text, "More than one person has opened this code") || strings.Contains(text, "Approve\n") {
			t.Errorf("the second person sees %s", text)
		}
		first.Click("[value=approve]")
		if text := first.Text(); strings.Contains(text, "Approved") {
			t.Errorf("the first person could approve: %s", text)
		}
		if a := n.get(poll); a.StatusCode != 428 {
			t.Errorf("poll = %d %s", a.StatusCode, a.body)
		}
		if log := fmt.Sprint(s.do("admin", "audit", "list")); strings.Count(log, "device.code_seen_by_many") != 1 {
			t.Errorf("audit = %s", log)
		}
	})

	t.Run("other sites can neither approve nor frame it", func(t *testing.T) {
		page, poll := n.begin("x")
		b := browser.Open(t)
		b.Goto(n.url + "/signup")
		enter(b, "emil@example.com")
		b.Goto(page)
		grant, code := b.Eval("document.querySelector('[name=grant]').value"), mustParse(t, page).Query().Get("code")
		form := b.Eval("document.querySelector('form.verdict [name=form_token]').value")

		evil := http.NewServeMux()
		show := func(path, body string) {
			evil.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<!doctype html><title>evil</title>"+body)
			})
		}
		fields := url.Values{"grant": {grant}, "code": {code}, "verdict": {"approve"}, "form_token": {form}}
		var inputs strings.Builder
		for name := range fields {
			fmt.Fprintf(&inputs, `<input name=%q value=%q>`, name, fields.Get(name))
		}
		// The worst case: the attacker even has the form's token.
		show("/form", fmt.Sprintf(`<form method="post" action="%s/device">%s</form><script>document.forms[0].submit()</script>`, n.url, inputs.String()))
		show("/fetch", fmt.Sprintf(`<script>fetch(%q, {method: "POST", credentials: "include", mode: "no-cors",
			headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: %q}).finally(() => document.title = "sent")</script>`, n.url+"/device", fields.Encode()))
		show("/img", fmt.Sprintf(`<img src="%s&%s" onerror="document.title='sent'">`, page, fields.Encode()))
		show("/frame", fmt.Sprintf(`<iframe src=%q></iframe>`, page))
		server := httptest.NewServer(evil)
		defer server.Close()
		site := "http://evil.test:" + mustParse(t, server.URL).Port()

		still := func(attack string) {
			t.Helper()
			if log := fmt.Sprint(s.do("admin", "audit", "list", "--limit", "1000")); strings.Contains(log, grant) {
				t.Errorf("%s: a decision about the grant is in the audit log", attack)
			}
		}
		b.Goto(site + "/form")
		wait(t, b, "document.body && document.body.innerText.includes('another site')")
		still("a form")
		for _, attack := range []string{"/fetch", "/img"} {
			b.Goto(site + attack)
			wait(t, b, "document.title == 'sent'")
			still(attack)
		}
		b.Goto(site + "/frame")
		for _, address := range b.FrameURLs() {
			if strings.HasPrefix(address, n.url) {
				t.Errorf("the page is framed: %v", b.FrameURLs())
			}
		}
		// It was waiting all the time: its own page can still approve.
		b.Goto(page)
		if b.Header("X-Frame-Options") != "DENY" || !strings.Contains(b.Header("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Error("the page may be framed")
		}
		b.Click("[value=approve]")
		n.get(poll).want(t, 200)
	})

	t.Run("names run no scripts", func(t *testing.T) {
		b := browser.Open(t)
		b.Goto(n.url + "/signup")
		enter(b, "fred@example.com")
		company := s.do("admin", "company", "create", "--name", "<img src=x onerror=alert(1)>", "--plan", "TEAM")["id"].(string)
		s.do("admin", "company", "add", "--company", company, "--email", "fred@example.com", "--permission", "MANAGE_API_TOKENS")
		for i, payload := range payloads {
			page, poll := n.begin(payload)
			b.Goto(page)
			b.Click("[value=approve]")
			n.get(poll).want(t, 200)
			s.do("admin", "team", "add", "--email", "fred@example.com", "--team",
				s.do("admin", "team", "create", "--company", company, "--name="+payload)["id"].(string))
			s.do("admin", "token", "create", "--email", "fred@example.com", "--name="+payload, "--company", company)
			if i%5 == 4 || i == len(payloads)-1 {
				for _, path := range []string{"/account", "/devices", "/tokens", "/companies/" + company + "/tokens"} {
					b.Goto(n.url + path)
					if b.Status() != 200 {
						t.Errorf("%s = %d", path, b.Status())
					}
				}
			}
		}
		for _, path := range []string{"/device?code=", "/signin?next=", "/signup?invitation=", "/verify?token=", "/signin?done="} {
			b.Goto(n.url + path + url.QueryEscape(`"><script>alert(1)</script>`))
		}
		if d := b.Dialogs(); len(d) > 0 {
			t.Errorf("scripts ran: %v", d)
		}
		if errs := b.Errors(); len(errs) > 0 { // the policy would have had to stop one
			t.Errorf("scripts were stopped by the policy only: %v", errs)
		}
	})
	s.check()
}

// payloads are names that would run where a page forgets to escape.
var payloads = []string{
	`<script>alert(1)</script>`, `"><script>alert(1)</script>`, `'><img src=x onerror=alert(1)>`, `<svg onload=alert(1)>`,
	`<body onload=alert(1)>`, `javascript:alert(1)`, `"autofocus onfocus=alert(1) x="`, `</title><script>alert(1)</script>`,
	`<iframe srcdoc="<script>alert(1)</script>">`, `<a href="javascript:alert(1)">x</a>`, `<details open ontoggle=alert(1)>`,
	`{{alert(1)}}`, `<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)>`, `--><script>alert(1)</script>`,
	`<input autofocus onfocus=alert(1)>`,
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// wait waits until a script of the test says true.
func wait(t *testing.T, b *browser.Browser, script string) {
	t.Helper()
	watch.Until(t, script, func() bool { return b.Eval(script) == "true" })
}
