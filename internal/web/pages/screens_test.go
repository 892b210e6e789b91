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

// look checks what a window shows, light and dark: no page is wider than a
// phone, a desk or a desk at 200 % zoom, and all text has enough contrast.
func look(t *testing.T, b *chromium.Browser, name string) {
	t.Helper()
	for _, width := range []int{320, 390, 640, 1280} {
		b.Width(width)
		if wide := b.Eval("document.documentElement.scrollWidth > window.innerWidth"); wide != "false" {
			t.Errorf("%s is wider than %d pixels", name, width)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		b.ColorScheme(scheme)
		if pale := b.Eval(paleTexts); pale != "[]" {
			t.Errorf("%s, %s: the contrast is too low: %s", name, scheme, pale)
		}
		picture(t, b, name, scheme)
	}
}

// picture leaves pictures of the page in the folder for them.
func picture(t *testing.T, b *chromium.Browser, name, scheme string) {
	t.Helper()
	folder := os.Getenv(screens)
	if folder == "" {
		return
	}
	b.Eval("document.fonts.ready.then(() => 0)")
	for _, width := range []int{390, 1280} {
		b.Width(width)
		file := filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
		if err := os.WriteFile(file, b.Screenshot(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// paleTexts is a script that lists the texts of a page whose contrast to their
// background is less than 4.5:1 (WCAG 2.2, 1.4.3).
const paleTexts = `(() => {
	document.getAnimations().forEach(a => a.finish());
	const numbers = color => color.match(/[\d.]+/g).map(Number);
	const light = color => numbers(color).slice(0, 3).map(c => c / 255)
		.map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
	const ground = e => {
		for (; e; e = e.parentElement) {
			const color = getComputedStyle(e).backgroundColor;
			if ((numbers(color)[3] ?? 1) === 1) return color;
		}
		return "rgb(255, 255, 255)";
	};
	const pale = [];
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const e = texts.currentNode.parentElement;
		if (!texts.currentNode.data.trim() || !e.checkVisibility()) continue;
		const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
		const ratio = (a + .05) / (b + .05);
		if (ratio < 4.5) pale.push(texts.currentNode.data.trim() + " " + ratio.toFixed(2));
	}
	return pale;
})()`

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
