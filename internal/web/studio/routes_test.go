package studio_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"atelier/internal/web/studio"
)

func TestPages(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/", "/create/R5AAHOIpk8BjpovUBFPs", "/library", "/library/result:R5AAHOIpk8BjpovUBFPs", "/library/result%3AR5AAHOIpk8BjpovUBFPs", "/library/upload%3ax_y-z",
		"/boards", "/boards/R5AAHOIpk8BjpovUBFPs", "/flows", "/flows/new", "/flows/R5AAHOIpk8BjpovUBFPs", "/reports", "/you", "/you/tokens", "/people", "/people/R5AAHOIpk8BjpovUBFPs", "/people/R5AAHOIpk8BjpovUBFPs/roles",
		"/operator", "/operator/engines", "/welcome",
	} {
		if !studio.IsPage(path) {
			t.Errorf("%s is no page", path)
		}
	}
	for _, path := range []string{
		"", "//", "///", "//evil.example", "/create", "/create/", "/library/", "/library//", "/library/..", "/library/.", "/library/%2e%2e", "/library/%2f", "/library/%5cevil.example",
		"/library\\evil.example", "/library/a\\b", "/library/a/b", "/you/a/b", "/people/a/b/c", "/library/%00", "/library/a%0d%0aX", "/library/a b", "/library/a?b", "/library/a#b", "/library/é",
		"/library/@evil.example", "/library/a.b", "/library/%zz", "/Library", "/welcome/", "/welcome/x", "library", "/assets/index.js", "/signin", "/account",
		"/library/" + strings.Repeat("a", 65), "/library/%3", "/library/{library_id}",
	} {
		if studio.IsPage(path) {
			t.Errorf("%q is a page", path)
		}
	}
}

// TestPagesOfTheApp compares Paths with the list in the studio's source.
func TestPagesOfTheApp(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../../web/src/routes.ts")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)export const paths = \[(.*?)\]`).FindSubmatch(source)
	if list == nil {
		t.Fatal("routes.ts exports no list of paths")
	}
	var paths []string
	for _, path := range regexp.MustCompile(`['"](.*?)['"]`).FindAllSubmatch(list[1], -1) {
		paths = append(paths, regexp.MustCompile(`:(\w+)`).ReplaceAllString(string(path[1]), "{$1}"))
	}
	if !slices.Equal(paths, studio.Paths) {
		t.Errorf("routes.ts has %q, want %q", paths, studio.Paths)
	}
}
