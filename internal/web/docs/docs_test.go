package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	texts "atelier/docs"
	"atelier/internal/base/fault"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/docs"
	"atelier/internal/web/httpd"
)

const baseURL = "https://atelier.example"

func newHandler(t *testing.T, baseURL string) http.Handler {
	t.Helper()
	h, err := docs.New(baseURL)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// get calls a handler with GET and returns the response with its body.
func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// pageNames returns the names of all Markdown files, without .md.
func pageNames(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(texts.Files, "*.md")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d pages, %v", len(files), err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file, ".md"))
	}
	return names
}

func pathOf(name string) string {
	if name == "index" {
		return "/docs"
	}
	return "/docs/" + name
}

// document is a parsed page.
type document struct {
	ids      map[string]bool
	links    []string // href of links, src of pictures
	headings []int
	problems []string
}

// parseDocument reads an HTML page, and notes what must not be in it.
func parseDocument(t *testing.T, text string) *document {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	d := &document{ids: map[string]bool{}}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			d.readElement(n)
		}
	}
	return d
}

func (d *document) readElement(n *html.Node) {
	for _, a := range n.Attr {
		switch {
		case a.Key == "id" && d.ids[a.Val]:
			d.problems = append(d.problems, "id "+a.Val+" twice")
		case a.Key == "id":
			d.ids[a.Val] = true
		case a.Key == "href" && n.DataAtom == atom.A, a.Key == "src" && n.DataAtom == atom.Img:
			d.links = append(d.links, a.Val)
		case a.Key == "style", strings.HasPrefix(a.Key, "on"):
			d.problems = append(d.problems, "inline "+a.Key)
		}
	}
	switch n.DataAtom {
	case atom.Style:
		d.problems = append(d.problems, "a style element")
	case atom.Script:
		if n.FirstChild != nil {
			d.problems = append(d.problems, "an inline script")
		}
	case atom.Img:
		if !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "alt" && a.Val != "" }) {
			d.problems = append(d.problems, "a picture without alt")
		}
	case atom.H1:
		d.headings = append(d.headings, 1)
	}
	if n.DataAtom == atom.A && n.Parent.DataAtom == atom.A {
		d.problems = append(d.problems, "a link in a link")
	}
}

// TestContentsAreComplete checks that every file of the folder is a page of the
// navigation.
func TestContentsAreComplete(t *testing.T) {
	t.Parallel()
	h := newHandler(t, baseURL)
	home := parseDocument(t, get(h, "/docs").Body.String())
	for _, name := range pageNames(t) {
		if !slices.Contains(home.links, pathOf(name)) {
			t.Errorf("%s.md is not in the navigation: add it to contents.go", name)
		}
	}
	if !slices.Contains(home.links, "/docs/api") {
		t.Error("the pages do not link to the API reference")
	}
}

// TestLinksResolve follows every link of every page to its page and heading.
func TestLinksResolve(t *testing.T) {
	t.Parallel()
	h := newHandler(t, baseURL)
	elsewhere := []string{"/", "/docs/api"} // served by other handlers
	pages := map[string]*document{}
	for _, name := range pageNames(t) {
		w := get(h, pathOf(name))
		if w.Code != http.StatusOK {
			t.Fatalf("%s = %d", name, w.Code)
		}
		d := parseDocument(t, w.Body.String())
		pages[pathOf(name)] = d
		for _, problem := range d.problems {
			t.Errorf("%s has %s", name, problem)
		}
		if !slices.Equal(d.headings, []int{1}) {
			t.Errorf("%s has %d titles", name, len(d.headings))
		}
	}
	for from, d := range pages {
		for _, link := range d.links {
			address, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s links to %q: %v", from, link, err)
				continue
			}
			if address.IsAbs() || slices.Contains(elsewhere, link) {
				continue
			}
			target := from
			if address.Path != "" {
				target = address.Path
			}
			if w := get(h, target); w.Code != http.StatusOK {
				t.Errorf("%s links to %s, which is answered with %d", from, link, w.Code)
			}
			if address.Fragment != "" && (pages[target] == nil || !pages[target].ids[address.Fragment]) {
				t.Errorf("%s links to %s, which has no such heading", from, link)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := newHandler(t, baseURL)
	for address, mediaType := range map[string]string{
		"/docs":                        "text/html; charset=utf-8",
		"/docs/generate":               "text/html; charset=utf-8",
		"/docs/generate.md":            "text/markdown; charset=utf-8",
		"/docs/index.md":               "text/markdown; charset=utf-8",
		"/docs/style.css":              "text/css; charset=utf-8",
		"/docs/page.js":                "text/javascript; charset=utf-8",
		"/docs/search?q=upload":        "text/html; charset=utf-8",
		"/docs/search.json":            "application/json",
		"/docs/llms.txt":               "text/plain; charset=utf-8",
		"/docs/llms-full.txt":          "text/plain; charset=utf-8",
		"/llms.txt":                    "text/plain; charset=utf-8",
		"/docs/studio/create.jpg":      "image/jpeg",
		"/docs/monitoring/alerts.yaml": "text/plain; charset=utf-8",
	} {
		w := get(h, address)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != mediaType {
			t.Errorf("%s = %d, %s", address, w.Code, w.Header().Get("Content-Type"))
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: Content-Security-Policy = %q", address, policy)
		}
		if w.Body.Len() == 0 {
			t.Errorf("%s is empty", address)
		}
	}

	drawing := get(h, "/docs/drawings/run.svg").Header().Get("Content-Security-Policy")
	if !regexp.MustCompile(`^default-src 'none'; style-src 'sha256-[^']{44}'; `).MatchString(drawing) {
		t.Errorf("the policy of a drawing is %q", drawing)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	h := newHandler(t, baseURL)
	for _, c := range []struct {
		method, path  string
		status        int
		header, value string
	}{
		{"GET", "/docs/", 308, "Location", "/docs"},
		{"GET", "/docs/index", 308, "Location", "/docs"},
		{"GET", "/docs/nothing", 404, "Content-Type", "text/html; charset=utf-8"},
		{"GET", "/docs/nothing.md", 404, "", ""},
		{"GET", "/docs/..%2fgo.mod", 404, "", ""},
		{"HEAD", "/docs", 200, "", ""},
		{"POST", "/docs", 405, "Allow", "GET, HEAD"},
		{"POST", "/docs/search", 405, "Allow", "GET, HEAD"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.status || w.Header().Get(c.header) != c.value {
			t.Errorf("%s %s = %d, %s %q", c.method, c.path, w.Code, c.header, w.Header().Get(c.header))
		}
		if c.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("%s %s has a body", c.method, c.path)
		}
	}
	if body := get(h, "/docs/web-hooks/delivery").Body.String(); !strings.Contains(body, "This page does not exist") {
		t.Errorf("an unknown page says %q", body)
	}
	if body := get(h, "/docs/%3Cscript%3Ealert(1)%3C/script%3E").Body.String(); strings.Contains(body, "<script>alert") {
		t.Error("an unknown page contains its path unescaped")
	}
}

// TestExamplesCallThisService checks that examples have the address of the
// service, in HTML and in Markdown, and other code does not.
func TestExamplesCallThisService(t *testing.T) {
	t.Parallel()
	h := newHandler(t, baseURL)
	for _, address := range []string{"/docs/generate", "/docs/generate.md"} {
		body := get(h, address).Body.String()
		if !strings.Contains(body, "API="+baseURL+"/api/v2") || strings.Contains(body, "API=http://localhost:8080") {
			t.Errorf("the examples of %s do not call %s", address, baseURL)
		}
	}
	if body := get(h, "/docs/clients").Body.String(); !strings.Contains(body, "http://localhost:8080/api/v2/openapi.json") {
		t.Error("code that is no example was changed")
	}
}

func TestServerSearch(t *testing.T) {
	t.Parallel()
	h := newHandler(t, baseURL)
	for query, want := range map[string]string{
		"idempotency key":    `href="/docs/generate#start-a-run"`,
		"Provenance":         `href="/docs/files#provenance-of-results"`,
		"tool_schema_stale":  `href="/docs/errors#codes-of-requests"`,
		"LANDLOCK":           `href="/docs/exec#the-sandbox"`,
		"scim okta":          `href="/docs/scim#okta"`,
		"nosuchwordanywhere": "No page contains “nosuchwordanywhere”",
		"":                   "Write a word",
		`"><b>`:              "No page contains “&#34;&gt;&lt;b&gt;”",
	} {
		w := get(h, "/docs/search?q="+url.QueryEscape(query))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("a search for %q does not find %s", query, want)
		}
	}
	// The page about a word comes before pages that contain it.
	body := get(h, "/docs/search?q=webhooks").Body.String()
	if first := regexp.MustCompile(`<li><a href="([^"]+)">`).FindStringSubmatch(body[strings.Index(body, "results"):]); first[1] != "/docs/webhooks" {
		t.Errorf("the first result for webhooks is %s", first[1])
	}
}

func TestLanguageModels(t *testing.T) {
	t.Parallel()
	h := newHandler(t, baseURL)
	list := get(h, "/llms.txt").Body.String()
	full := get(h, "/docs/llms-full.txt").Body.String()
	if !strings.HasPrefix(list, "# Atelier\n\n> ") {
		t.Errorf("llms.txt begins with %.60q", list)
	}
	for _, m := range regexp.MustCompile(`\((https://atelier.example/docs/[^)]+)\): .`).FindAllStringSubmatch(list, -1) {
		if w := get(h, strings.TrimPrefix(m[1], baseURL)); w.Code != http.StatusOK {
			t.Errorf("llms.txt names %s, which is answered with %d", m[1], w.Code)
		}
	}
	for _, name := range pageNames(t) {
		if !strings.Contains(list, fmt.Sprintf("(%s/docs/%s.md): ", baseURL, name)) {
			t.Errorf("llms.txt does not name %s", name)
		}
		if !strings.Contains(full, get(h, "/docs/"+name+".md").Body.String()) {
			t.Errorf("llms-full.txt does not contain %s", name)
		}
	}
}

// TestIndex checks that the index has every page, and that its sections exist.
func TestIndex(t *testing.T) {
	t.Parallel()
	h := newHandler(t, baseURL)
	var index []struct{ Page, Heading, Path, Text string }
	content := get(h, "/docs/search.json").Body.Bytes()
	if err := json.Unmarshal(content, &index); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range index {
		name, _, _ := strings.Cut(e.Path, "#")
		seen[name] = true
		if e.Page == "" || strings.Contains(e.Text, "\n") {
			t.Errorf("%s: page %q, text %.40q", e.Path, e.Page, e.Text)
		}
	}
	for _, name := range pageNames(t) {
		if !seen[pathOf(name)] {
			t.Errorf("the index does not have %s", name)
		}
	}
	t.Logf("%d sections, %d bytes", len(index), len(content))
}

// codeRow is a row of the table of error codes: code, status, retryable.
var codeRow = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (\\d+) \\| (yes|no) \\|")

// TestErrorCodes compares the page of error codes with the codes of the program.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(texts.Files, "errors.md")
	if err != nil {
		t.Fatal(err)
	}
	statuses := map[string]string{}
	for _, m := range codeRow.FindAllStringSubmatch(string(text), -1) {
		statuses[m[1]] = m[2]
	}
	for _, code := range fault.Codes {
		if got, want := statuses[string(code)], fmt.Sprint(httpd.Status[code]); got != want {
			t.Errorf("errors.md has %s with status %q, want %s", code, got, want)
		}
		delete(statuses, string(code))
	}
	for code := range statuses {
		t.Errorf("errors.md has %s, which does not exist", code)
	}
	for _, code := range []wire.GenerationErrorCode{
		wire.GenerationErrorCodeENGINEFAILED, wire.GenerationErrorCodeENGINEUNAVAILABLE, wire.GenerationErrorCodeTIMEDOUT,
		wire.GenerationErrorCodeCONTENTPOLICYVIOLATION, wire.GenerationErrorCodeOUTPUTINVALID, wire.GenerationErrorCodeSTORAGEQUOTAEXCEEDED,
	} {
		_, runs, _ := bytes.Cut(text, []byte("## Codes of runs"))
		if !bytes.Contains(runs, []byte("| `"+string(code)+"` |")) {
			t.Errorf("errors.md does not have the code %s of runs", code)
		}
	}
}

// TestFilesAreUsed checks that no embedded file is unused: they add to the size
// of the program.
func TestFilesAreUsed(t *testing.T) {
	t.Parallel()
	var all []byte
	for _, name := range pageNames(t) {
		text, err := fs.ReadFile(texts.Files, name+".md")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	err := fs.WalkDir(texts.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) != ".md" && !bytes.Contains(all, []byte(name)) {
			t.Errorf("no page shows %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
