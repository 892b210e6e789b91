package pages_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	chromium "atelier/internal/testkit/browser"
)

// screens names the variable with the folder that TestScreens leaves pictures
// in, for people to look at.
const screens = "ATELIER_TEST_SCREENS"

// look checks what a window shows: nothing is wider than a phone or a desk.
func look(t *testing.T, b *chromium.Browser, name string) {
	t.Helper()
	for _, width := range []int{390, 1280} {
		b.Width(width)
		if wide := b.Eval("document.documentElement.scrollWidth > window.innerWidth"); wide != "false" {
			t.Errorf("%s is wider than %d pixels", name, width)
		}
		folder := os.Getenv(screens)
		if folder == "" {
			continue
		}
		file := filepath.Join(folder, fmt.Sprintf("%s-%d.png", name, width))
		if err := os.WriteFile(file, b.Screenshot(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// enter signs a person in through the form.
func enter(b *chromium.Browser, s *site, p person.Person) {
	b.Goto(s.url + "/signin")
	b.Fill("[name=email]", p.Email)
	b.Fill("[name=password]", password)
	b.Click("button.main")
}

// complaints fails the test when a page broke its own policy or a script failed.
func complaints(t *testing.T, b *chromium.Browser) {
	t.Helper()
	if errs := b.Errors(); len(errs) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(errs, "\n"))
	}
}

// TestScreens opens every page in a real browser.
func TestScreens(t *testing.T) {
	t.Parallel()
	s := build(t, dbtest.Engines[0], nil, nil)
	var setup string
	s.write(func(ctx context.Context, tx *sqldb.Tx) (err error) {
		setup, err = person.CreateSetupToken(ctx, tx)
		return err
	})
	out := chromium.Open(t)
	out.Goto(s.url + "/setup?token=" + setup)
	look(t, out, "setup")

	anna := s.person("anna.with.a.rather.long.address@studio.example")
	hers := s.signedIn(anna)
	fox, team := s.company("Studio Fox", "Look development", company.RoleAdmin, anna)
	base := "/companies/" + fox.ID + "/tokens"
	s.device(anna, hers, "blender", "Blender/4.2 (the shop's render machine)")
	hers.submit("/tokens", "/tokens", "name", "render farm").want(200)
	hers.submit(base, base, "name", "nightly", "uid", anna.ID).want(200)
	invitation := s.invite(company.Draft{CompanyID: fox.ID, TeamID: team.ID, Email: "new@studio.example"})
	var reset, verify string
	s.write(func(ctx context.Context, tx *sqldb.Tx) (err error) {
		link := person.Link{PersonID: anna.ID, Target: anna.Email}
		if reset, err = person.CreateLink(ctx, tx, person.ResetLink, link, time.Hour); err != nil {
			return err
		}
		verify, err = person.CreateLink(ctx, tx, person.VerifyLink, link, time.Hour)
		return err
	})

	for _, page := range []struct{ name, path string }{
		{"signin", "/signin"}, {"signup", "/signup"}, {"forgot", "/forgot"}, {"reset", "/reset?token=" + reset},
		{"verify", "/verify?token=" + verify}, {"invitation", "/invitation?token=" + invitation},
		{"signup-invited", "/signup?invitation=" + invitation}, {"nothing", "/nothing"}, {"drop", s.link("/drop")},
	} {
		out.Goto(s.url + page.path)
		look(t, out, page.name)
	}
	complaints(t, out)

	in := chromium.Open(t)
	enter(in, s, anna)
	code := "/device?code=" + url.QueryEscape(s.start("blender", "Blender/4.2 (the shop's)", "198.51.100.7").UserCode)
	for _, page := range []struct{ name, path string }{
		{"account", "/account"}, {"devices", "/devices"}, {"tokens", "/tokens"}, {"company-tokens", base}, {"password", "/password"},
		{"delete", "/account/delete"}, {"code", "/device"}, {"code-wrong", "/device?code=BCDF-GHJK"},
		{"invitation-wrong", "/invitation?token=" + invitation}, {"device", code},
	} {
		in.Goto(s.url + page.path)
		look(t, in, page.name)
	}
	in.Click("[value=refuse]")
	look(t, in, "refused")
	in.Goto(s.url + code)
	look(t, in, "refused-again")
	in.Goto(s.url + "/tokens")
	in.Fill("[name=name]", "laptop")
	in.Click("button.main")
	look(t, in, "token")
	complaints(t, in)
}

// TestCopyAToken copies a token with a script, and finds it whole without one.
func TestCopyAToken(t *testing.T) {
	t.Parallel()
	s := build(t, dbtest.Engines[0], nil, nil)
	anna := s.person("anna@studio.example")
	mint := func(b *chromium.Browser) {
		enter(b, s, anna)
		b.Width(390)
		b.Goto(s.url + "/tokens")
		b.Fill("[name=name]", "laptop")
		b.Click("button.main")
	}
	const whole = `(e => e.scrollWidth <= e.clientWidth && e.textContent)(document.querySelector("#secret"))`

	b := chromium.Open(t)
	mint(b)
	secret := b.Eval(whole)
	if !s.works(secret) {
		t.Fatalf("the page shows %q", secret)
	}
	if got := b.Eval(`getSelection().toString()`); got != secret {
		t.Errorf("selected = %q, want the token", got)
	}
	b.Eval(`document.addEventListener("copy", () => { window.copied = getSelection().toString() })`)
	b.Eval(`Object.defineProperty(navigator, "clipboard", {value: undefined})`) // as on a page without TLS
	b.Tap("button[data-copy]")
	if got := b.Eval(`String(window.copied)`); got != secret {
		t.Errorf("copied = %q, want the token", got)
	}
	if got := b.Eval(`document.querySelector("#secret-status").textContent`); got != "Copied." {
		t.Errorf("status = %q", got)
	}
	complaints(t, b)

	plain := chromium.Open(t)
	plain.NoScript()
	mint(plain)
	secret = plain.Eval(whole)
	if !s.works(secret) {
		t.Fatalf("without scripts the page shows %q", secret)
	}
	if strings.Contains(plain.Text(), "Copy the token") {
		t.Error("there is a button that does nothing")
	}
	plain.Tap("#secret")
	if got := plain.Eval(`getSelection().toString()`); got != secret {
		t.Errorf("a click selects %q, want the token", got)
	}
}

// TestLocalTimes looks at times where scripts run and where not. Each is shown
// once.
func TestLocalTimes(t *testing.T) {
	t.Parallel()
	s := build(t, dbtest.Engines[0], nil, nil)
	anna := s.person("anna@studio.example")

	plain := chromium.Open(t)
	plain.NoScript()
	enter(plain, s, anna)
	s.clock.pass(3 * time.Minute)
	plain.Goto(s.url + "/devices")
	text := plain.Text()
	if !strings.Contains(text, "Last used just now") || !strings.Contains(text, "Signed in since 2026-11-15 09:30 UTC.") {
		t.Errorf("page = %s", text)
	}
	if n := len(regexp.MustCompile(`\d\d:\d\d`).FindAllString(text, -1)); n != 1 {
		t.Errorf("%d times for one browser: %s", n, text)
	}

	b := chromium.Open(t)
	b.TimeZone("Asia/Kolkata")
	enter(b, s, anna)
	b.Goto(s.url + "/tokens")
	b.Fill("[name=name]", "laptop")
	b.Click("button.main")
	b.Goto(s.url + "/tokens")
	text = b.Text()
	if !strings.Contains(text, "3:03") || strings.Contains(text, "UTC") { // 09:33 and five and a half hours
		t.Errorf("page = %s", text)
	}
	if got := b.Eval(`document.querySelector("time").title`); got != "2026-11-15 09:33 UTC" {
		t.Errorf("title = %q", got)
	}
	complaints(t, b)
}
