package docs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atelier/internal/testkit/browser"
	"atelier/web"
)

// newSite starts a server with the documentation, and with the files that it
// shares with other pages.
func newSite(t *testing.T) string {
	t.Helper()
	var mux http.ServeMux
	server := httptest.NewServer(&mux)
	t.Cleanup(server.Close)
	h := newHandler(t, server.URL)
	mux.Handle("/docs", h)
	mux.Handle("/docs/", h)
	mux.Handle("/styles/", http.StripPrefix("/styles", http.FileServerFS(web.Styles())))
	mux.Handle("/icons/", http.FileServerFS(web.Dist()))
	mux.HandleFunc("/docs/api", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "the reference") })
	return server.URL
}

// axePath is the checker of accessibility, which "make test" installs with the
// studio's other tools where there is Node.
const axePath = "../../../web/node_modules/axe-core/axe.min.js"

// readAxe returns the checker, or "" where it is not installed.
func readAxe(t *testing.T) string {
	t.Helper()
	axe, err := os.ReadFile(axePath)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("axe is missing: %v", err)
		}
		t.Log("pages are not checked for accessibility: run build/studio --test, which needs Node")
	}
	return string(axe)
}

// wantAccessible lets axe check the page by the rules in options.
func wantAccessible(t *testing.T, b *browser.Browser, axe, options, page string) {
	t.Helper()
	if axe == "" {
		return
	}
	said := b.Eval(`(async () => {
		const found = await axe.run(document, {resultTypes: ["violations"], ...` + options + `});
		return JSON.stringify(found.violations.map(v => v.id + ": " + v.nodes.slice(0, 4).map(n => n.target.join(" ") + " " + n.html.slice(0, 160)).join(" | ")));
	})()`)
	var violations []string
	if err := json.Unmarshal([]byte(said), &violations); err != nil {
		t.Fatalf("axe said %s: %v", said, err)
	}
	for _, violation := range violations {
		t.Errorf("%s: %s", page, violation)
	}
}

// screens names the variable with the folder that TestPages leaves pictures in,
// for people to look at.
const screens = "ATELIER_TEST_SCREENS"

// keepPicture stores a picture of the page, if pictures are wanted.
func keepPicture(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	folder := os.Getenv(screens)
	if folder == "" {
		return
	}
	b.Eval("document.fonts.ready.then(() => 0)")
	if err := os.WriteFile(filepath.Join(folder, "docs-"+name+".png"), b.View(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPages looks at every page in Chromium: it is not wider than its window,
// axe finds nothing, light and dark, and the console has no errors, such as
// violations of the policy.
func TestPages(t *testing.T) {
	t.Parallel()
	address := newSite(t)
	axe := readAxe(t)
	b := browser.Open(t)
	for _, name := range append(pageNames(t), "search") {
		b.Goto(address + pathOf(name))
		if axe != "" {
			b.Eval(axe + "\n;0")
		}
		for _, width := range []int{320, 390, 820, 1280} {
			b.Size(width, 860)
			if wide := b.Eval("String(document.documentElement.scrollWidth - window.innerWidth)"); wide != "0" && !strings.HasPrefix(wide, "-") {
				t.Errorf("%s is %s pixels wider than %d pixels", name, wide, width)
			}
		}
		// Light and dark differ in their colours only.
		b.ColorScheme("light")
		b.Size(1440, 860)
		wantAccessible(t, b, axe, "{}", name+", light")
		keepPicture(t, b, name+"-1440-light")
		b.ColorScheme("dark")
		b.Size(390, 860)
		wantAccessible(t, b, axe, `{runOnly: ["color-contrast"]}`, name+", dark")
		keepPicture(t, b, name+"-390-dark")
		if errors := b.Errors(); len(errors) > 0 {
			t.Errorf("%s: the console has errors: %q", name, errors)
		}
	}

	// A violation of the policy would have been reported.
	b.Eval(`document.head.append(Object.assign(document.createElement("style"), {textContent: "p { color: red }"}))`)
	if errors := b.Errors(); len(errors) != 1 || !strings.Contains(errors[0], "Content Security Policy") {
		t.Errorf("an inline style leaves the console with %q, want one violation", errors)
	}
}

// shownLanguages is a script that returns the languages of the visible panels.
const shownLanguages = `JSON.stringify([...new Set([...document.querySelectorAll(".panel")].filter(p => p.checkVisibility()).map(p => p.className))])`

func TestLanguageIsRemembered(t *testing.T) {
	t.Parallel()
	address := newSite(t)
	b := browser.Open(t)
	b.Goto(address + "/docs/generate")
	if got := b.Eval(shownLanguages); got != `["panel show-curl"]` {
		t.Errorf("at first the page shows %s", got)
	}
	b.Eval(`document.querySelectorAll(".example")[1].querySelector("label[for$=python]").click()`)
	if got := b.Eval(shownLanguages); got != `["panel show-python"]` {
		t.Errorf("after a click the page shows %s", got)
	}
	b.Goto(address + "/docs/files")
	if got := b.Eval(shownLanguages); got != `["panel show-python"]` {
		t.Errorf("the next page shows %s", got)
	}
}

func TestSearchWhileTyping(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	b.Goto(newSite(t) + "/docs/boards")
	b.Press("/")
	b.Type("provenance of")
	b.Until(`document.querySelectorAll("#found a").length > 0`)
	if got := b.Eval(`document.querySelector("#found a").getAttribute("href")`); got != "/docs/files#provenance-of-results" {
		t.Errorf("the first result is %s", got)
	}
	if axe := readAxe(t); axe != "" {
		b.Eval(axe + "\n;0")
		wantAccessible(t, b, axe, "{}", "the results of a search")
	}
	b.Press("ArrowDown")
	b.Press("Enter")
	b.Until(`location.pathname + location.hash === "/docs/files#provenance-of-results"`)

	b.Eval(`const q = document.getElementById("q"); q.focus(); q.value = "zzzz"; q.dispatchEvent(new Event("input", {bubbles: true}))`)
	b.Until(`document.getElementById("found").textContent === "Nothing found."`)
	b.Press("Escape")
	b.Until(`document.getElementById("found").hidden`)
}

func TestCopyButton(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	b.Goto(newSite(t) + "/docs/quickstart")
	b.Eval(`window.copied = ""; document.addEventListener("copy", () => window.copied = String(getSelection()));
		Object.defineProperty(navigator, "clipboard", {value: {writeText: async text => { window.copied = text }}});
		document.querySelector(".code .copy").click()`)
	b.Until(`document.querySelector(".code .copy").textContent === "Copied"`)
	if got := b.Eval("window.copied"); got != "make run\n" {
		t.Errorf("the button copies %q", got)
	}
}

// TestOldLinks opens an address of an operation from the time when the API
// reference was at /docs.
func TestOldLinks(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	b.Goto(newSite(t) + "/docs#/Runs/createGeneration")
	b.Until(`location.pathname + location.hash === "/docs/api#/Runs/createGeneration"`)
}

func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	address := newSite(t)
	b := browser.Open(t)
	b.NoScript()
	b.Goto(address + "/docs/generate")
	b.Click("label[for=example-2-go]")
	if text := b.Text(); !strings.Contains(text, "c.Tools.Find(") {
		t.Errorf("without scripts the page does not show the example in Go: %q", text)
	}
	b.Fill("#q", "landlock")
	b.Submit("form[role=search]")
	if text := b.Text(); !strings.Contains(text, "Programs as tools › The sandbox") {
		t.Errorf("without scripts the search shows %q", text)
	}
	b.Size(390, 844)
	b.Click(".menu")
	b.Click("#contents a[href='/docs/boards']")
	if got := b.URL(); got != address+"/docs/boards" {
		t.Errorf("the menu leads to %s", got)
	}
}
