package reference_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	openapi "atelier/api"
	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// newSite starts a server with the API reference and the OpenAPI document.
func newSite(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/docs/api", newHandler(t))
	mux.Handle("/docs/api/", newHandler(t))
	mux.HandleFunc("GET /api/v2/openapi.json", func(w http.ResponseWriter, r *http.Request) { w.Write(openapi.Document) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// readOperations returns the summaries of the operations and webhooks of the
// document, by method and path.
func readOperations(t *testing.T) map[string]string {
	t.Helper()
	type items map[string]map[string]struct{ Summary string }
	var document struct {
		Paths    items
		Webhooks items
	}
	if err := yaml.Unmarshal(openapi.Document, &document); err != nil {
		t.Fatal(err)
	}

	summaries := map[string]string{}
	for _, all := range []items{document.Paths, document.Webhooks} {
		for path, item := range all {
			for method, operation := range item {
				summaries[strings.ToUpper(method)+" "+path] = operation.Summary
			}
		}
	}
	return summaries
}

// waitForElements waits until the page has n elements that match a selector.
func waitForElements(t *testing.T, b *browser.Browser, selector string, n int) {
	t.Helper()
	count := fmt.Sprintf(`new Promise(done => setTimeout(() => done(document.querySelectorAll(%q).length), 100))`, selector)
	watch.Until(t, fmt.Sprintf("%d elements %s", n, selector), func() bool { return b.Eval(count) == strconv.Itoa(n) })
}

// TestPageInABrowser checks that Chromium shows every operation of the
// document, closed and open, and that the page keeps to its own policy.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	summaries := readOperations(t)
	if len(summaries) < 80 {
		t.Fatalf("found only %d operations in the document", len(summaries))
	}

	b := browser.Open(t)
	b.Goto(newSite(t) + "/docs/api")
	waitForElements(t, b, ".opblock", len(summaries))
	shown := b.Eval(`window.operations = Object.fromEntries([...document.querySelectorAll(".opblock")].map(o => [
		o.querySelector(".opblock-summary-method").textContent + " " + o.querySelector(".opblock-summary-path").dataset.path, o]));
		JSON.stringify(Object.entries(operations).map(([name, o]) => name + " " + o.querySelector(".opblock-summary-description").textContent))`)
	for name, summary := range summaries {
		if !strings.Contains(shown, name+" "+summary) {
			t.Errorf("the page does not show %s %s", name, summary)
		}
	}

	// Open operations have elements that a closed page does not have.
	b.Eval(`operations["POST /generate"].querySelector("button").click()`)
	waitForElements(t, b, ".opblock.is-open .responses-wrapper", 1)
	b.Eval(`operations["POST /generate"].querySelector(".try-out button").click()`)
	waitForElements(t, b, ".btn.execute", 1)
	b.Eval(`operations["POST generationEnded"].querySelector("button").click()`)
	waitForElements(t, b, ".opblock.is-open .responses-wrapper", 2)
	b.Eval(`document.querySelector(".models button").click()`)
	waitForElements(t, b, ".models.is-open [data-index='0'] .json-schema-2020-12__title", 1)
	if !strings.Contains(b.Text(), "Idempotency-Key") {
		t.Error("the page does not show the header Idempotency-Key of POST /generate")
	}

	if errors := b.Errors(); len(errors) > 0 {
		t.Errorf("the console has errors: %q", errors)
	}

	// A violation of the policy would have been reported.
	b.Eval(`document.head.append(Object.assign(document.createElement("style"), {textContent: "p { color: red }"}))`)
	if errors := b.Errors(); len(errors) != 1 || !strings.Contains(errors[0], "Content Security Policy") {
		t.Errorf("an inline style leaves the console with %q, want one violation", errors)
	}
}

func TestPageWithoutScripts(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	b.NoScript()
	b.Goto(newSite(t) + "/docs/api")
	if text := b.Text(); !strings.Contains(text, "OpenAPI document") {
		t.Errorf("without scripts the page says %q, want a link to the document", text)
	}
}
