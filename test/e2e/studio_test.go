package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// The tests in the files studio_*_test.go use the studio in a real browser as
// people do: they find elements by role and name, click and type.

// setUpLink waits for the link that a new installation prints.
func (n *node) setUpLink() string {
	n.t.Helper()
	var link string
	watch.Until(n.t, "the set-up link", func() bool {
		link = regexp.MustCompile(`http://\S+/setup\?token=\w+`).FindString(n.stderr.String())
		return link != ""
	})
	return link
}

// openStudio opens a window in which the first person of an installation is
// signed in.
func openStudio(t *testing.T, n *node) *browser.Browser {
	t.Helper()
	b := browser.Open(t)
	b.Size(1280, 860)
	b.Goto(n.setUpLink())
	enter(b, "anna@example.com")
	b.See("navigation", "Main")
	return b
}

// signIn signs a person in and opens an address of the studio.
func signIn(t *testing.T, n *node, email, path string) *browser.Browser {
	t.Helper()
	b := browser.Open(t)
	b.Size(1280, 860)
	b.Goto(n.url + path)
	enter(b, email)
	b.See("navigation", "Main")
	return b
}

// screensFolder is the environment variable that names the folder in which the
// tests keep pictures of the pages.
const screensFolder = "ATELIER_TEST_SCREENS"

// keepView stores a picture of the window for people to look at, if they want
// pictures. No test compares them.
func keepView(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	folder := os.Getenv(screensFolder)
	if folder == "" {
		return
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), b.View(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantNoComplaints fails the test if a script of the page failed or broke the
// page's content security policy.
func wantNoComplaints(t *testing.T, b *browser.Browser) {
	t.Helper()
	if errors := b.Errors(); len(errors) > 0 {
		t.Errorf("the browser complains at %s: %q", b.URL(), errors)
	}
}

// axePath is the checker of accessibility, which "make test" installs with the
// studio's other tools where there is Node.
const axePath = "../../web/node_modules/axe-core/axe.min.js"

// isLookedAt reports whether a test looks at the pages that it opens. They look
// the same on every database, so that one of them is enough.
func isLookedAt(t *testing.T) bool {
	return !strings.HasSuffix(t.Name(), "/postgres")
}

// wantAccessible lets axe check the page, light and dark. Without the checker it
// does nothing, and in CI it fails the test.
func wantAccessible(t *testing.T, b *browser.Browser, page string) {
	t.Helper()
	if !isLookedAt(t) {
		return
	}
	axe, err := os.ReadFile(axePath)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("axe is missing: %v", err)
		}
		t.Logf("%s is not checked for accessibility: run build/studio --test, which needs Node", page)
		return
	}
	for _, dark := range []bool{false, true} {
		b.Dark(dark)
		b.Eval(string(axe) + "\n;0")
		// Colours change with a short transition, and a checker would see those in between.
		said := b.Eval(`(async () => {
			const moving = () => document.getAnimations().filter(a => a.effect?.getTiming().iterations !== Infinity && a.playState !== "finished");
			while (moving().length > 0) {
				await Promise.all(moving().map(a => a.finished.catch(() => 0)));
				await new Promise(requestAnimationFrame);
			}
			const found = await axe.run(document, {resultTypes: ["violations"]});
			return JSON.stringify(found.violations.map(v => v.id + " (" + v.impact + "): " + v.nodes.slice(0, 4).map(n => n.target.join(" ") + " " + n.html.slice(0, 160)).join(" | ")));
		})()`)
		var violations []string
		if err := json.Unmarshal([]byte(said), &violations); err != nil {
			t.Fatalf("axe said %s: %v", said, err)
		}
		for _, violation := range violations {
			t.Errorf("%s, dark %v: %s", page, dark, violation)
		}
	}
	b.Dark(false)
}

// looks are the sizes at which pages are looked at.
var looks = [][2]int{{390, 844}, {1280, 860}, {2560, 1300}}

// keepLooks stores pictures of the page at every size, light and dark, if
// pictures are wanted; it fails the test if a page is wider than its window.
func keepLooks(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	if !isLookedAt(t) {
		return
	}
	for _, size := range looks {
		b.Size(size[0], size[1])
		// On a telephone innerWidth grows with a page that is too wide.
		if wide := b.Eval(fmt.Sprintf("document.documentElement.scrollWidth > %d", size[0]+1)); wide != "false" {
			t.Errorf("%s is wider than %d pixels", name, size[0])
		}
		if os.Getenv(screensFolder) == "" {
			continue
		}
		for _, dark := range []bool{false, true} {
			b.Dark(dark)
			b.Eval(`new Promise(done => requestAnimationFrame(() => setTimeout(done, 250)))`)
			keepView(t, b, fmt.Sprintf("%s-%d-%s", name, size[0], map[bool]string{false: "light", true: "dark"}[dark]))
		}
	}
	b.Dark(false)
	b.Size(1280, 860)
}

// TestStudioFrame signs up, opens every page, which the program serves under a
// policy that the studio must not violate, and goes through what is on every
// page: the palette, the keys and the account menu. Signing out in either place
// leads away from the studio and deletes what it has stored.
func TestStudioFrame(t *testing.T) {
	n := newSite(t).serve()
	b := browser.Open(t)
	b.Size(1280, 860)
	wantAt := func(what, want string) {
		t.Helper()
		if got := b.URL(); got != n.url+want {
			t.Fatalf("%s led to %s, want %s", what, got, n.url+want)
		}
	}
	b.Goto(n.url + "/library")
	wantAt("the studio", "/signin?next=%2Flibrary")
	b.Goto(n.url + "/signup?next=%2Flibrary")
	enter(b, "anna@studio.example")
	wantAt("the sign-up", "/library")
	for _, path := range []string{"/library", "/", "/boards", "/reports", "/you", "/people", "/welcome"} {
		b.Goto(n.url + path)
		b.See("navigation", "Main")
		if got := b.Header("Content-Security-Policy"); got == "" {
			t.Errorf("%s has no policy", path)
		}
	}

	b.Press("Ctrl+k")
	b.TypeInto("combobox", "Find a tool, a page or an action", "librar")
	b.See("option", "Library")
	b.Press("Enter")
	b.Until(`location.pathname === "/library"`)

	b.Press("?")
	b.See("heading", "Keys")
	wantAccessible(t, b, "the sheet of keys")
	b.Press("Escape")
	b.Press("g")
	b.Press("b")
	b.Until(`location.pathname === "/boards"`)

	b.ClickOn("button", "Account:…")
	b.ClickOn("menuitemradio", "Dark")
	b.Until(`document.documentElement.dataset.theme === "dark"`)
	wantNothingStored := func() {
		t.Helper()
		if left := b.Eval(`localStorage.getItem("draft")`); left != "null" {
			t.Errorf("after signing out the browser still has %s", left)
		}
	}
	b.Eval(`localStorage.setItem("draft", "a fox")`)
	b.ClickOn("button", "Account:…")
	b.ClickOn("menuitem", "Sign out")
	b.Until(`location.pathname === "/signin"`)
	wantNothingStored()
	b.Goto(n.url + "/boards")
	wantAt("after signing out, /boards", "/signin?next=%2Fboards")
	enter(b, "anna@studio.example")
	b.See("navigation", "Main")
	wantAt("the sign-in", "/boards")

	b.Eval(`localStorage.setItem("draft", "a fox")`)
	b.Goto(n.url + "/account")
	b.Click("header button")
	wantAt("signing out on the account page", "/signin?done=signed-out")
	wantNothingStored()
	b.Goto(n.url + "/")
	wantAt("after signing out, the studio", "/signin")
	wantNoComplaints(t, b)
}
