package atelier_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// markdownFile is a parsed Markdown file of the repository.
type markdownFile struct {
	path     string
	text     string
	links    []string        // destinations of links and pictures, in Markdown and in HTML
	headings map[string]bool // ids of headings
}

// servicePaths are the pages of the service that documents link to, apart from
// the documentation.
var servicePaths = []string{"", "/", "/tokens", "/api/v2", "/api/v2/openapi.json"}

// serviceURL is the service in documents, as "make run" starts it.
const serviceURL = "http://localhost:8080"

var (
	htmlLink = regexp.MustCompile(`(?:src|href)="([^"]*)"`)

	// namedFile is a file of the documentation that a text or a comment names.
	namedFile = regexp.MustCompile(`(?:^|[\s("` + "`" + `])(docs/[a-z0-9_/-]+\.[a-z]+)`)
)

// TestLinksLeadSomewhere checks every link between files, and from files to the
// service, in all Markdown files: the file exists, and has the heading. The tests
// of internal/web/docs check the same for the pages that the service serves.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	files := markdownFiles(t)
	if len(files) < 40 {
		t.Fatalf("found %d Markdown files", len(files))
	}
	links := 0
	for _, f := range files {
		links += len(f.links)
		for _, link := range f.links {
			if err := checkLink(files, f, link); err != nil {
				t.Errorf("%s links to %s: %v", f.path, link, err)
			}
		}
		for _, m := range namedFile.FindAllStringSubmatch(f.text, -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s names %s, which does not exist", f.path, m[1])
			}
		}
	}
	t.Logf("%d links in %d files", links, len(files))

	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		name := filepath.Join(s.dir, s.name)
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedFile.FindAllStringSubmatch(string(code), -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
		}
	}
}

// TestDocumentationIsNamed checks that people who begin with a README find the
// documentation, the API reference and each client.
func TestDocumentationIsNamed(t *testing.T) {
	t.Parallel()
	for file, names := range map[string][]string{
		"README.md": {
			serviceURL + "/docs", serviceURL + "/docs/api", "client/README.md", "clients/python/README.md", "clients/js/README.md", "docs/cli.md",
			"go mod edit", "pip install ../atelier/clients/python", "npm install ../atelier/clients/js", "bin/atelier login",
		},
		"client/README.md":         {"/docs", "/docs/api"},
		"clients/python/README.md": {"/docs", "/docs/api"},
		"clients/js/README.md":     {"/docs", "/docs/api"},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !regexp.MustCompile(regexp.QuoteMeta(name) + `(?:[^\w/-]|$)`).Match(text) {
				t.Errorf("%s does not name %s", file, name)
			}
		}
	}
}

// TestTablesAreWhole checks that every row of a table has as many cells as its
// head: renderers drop the rest, for example after a bar in code that is not
// written as \|.
func TestTablesAreWhole(t *testing.T) {
	t.Parallel()
	for _, f := range markdownFiles(t) {
		inCode := false
		want := 0 // cells of the table, 0 outside tables
		for number, line := range strings.Split(f.text, "\n") {
			if strings.HasPrefix(line, "```") {
				inCode = !inCode
			}
			if inCode || !strings.HasPrefix(line, "|") {
				want = 0
				continue
			}
			cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") - 1
			if want == 0 {
				want = cells
			}
			if cells != want {
				t.Errorf("%s:%d: %d cells in a table of %d", f.path, number+1, cells, want)
			}
		}
	}
}

// checkLink returns why a link of a file leads nowhere. Addresses of other sites
// are not checked: tests need no internet.
func checkLink(files map[string]*markdownFile, from *markdownFile, link string) error {
	if page, ok := strings.CutPrefix(link, serviceURL); ok {
		return checkPage(page)
	}
	if strings.HasPrefix(link, "/") {
		return checkPage(link)
	}
	if strings.Contains(link, ":") {
		return nil
	}

	name, heading, hasHeading := strings.Cut(link, "#")
	path := from.path
	if name != "" {
		path = filepath.Join(filepath.Dir(from.path), name)
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if !hasHeading {
		return nil
	}
	target := files[path]
	if target == nil {
		return fmt.Errorf("%s has no headings", path)
	}
	if !target.headings[heading] {
		return fmt.Errorf("%s has no such heading", path)
	}
	return nil
}

// checkPage returns why the service has no such page.
func checkPage(path string) error {
	path, _, _ = strings.Cut(path, "#")
	if path == "/docs" || path == "/docs/api" || slices.Contains(servicePaths, path) {
		return nil
	}
	page, ok := strings.CutPrefix(path, "/docs/")
	if !ok {
		return fmt.Errorf("the service has no page %s", path)
	}
	if page == "llms.txt" || page == "llms-full.txt" {
		return nil
	}
	_, err := os.Stat("docs/" + strings.TrimSuffix(page, ".md") + ".md")
	return err
}

// markdownFiles returns the Markdown files of the repository by path.
func markdownFiles(t *testing.T) map[string]*markdownFile {
	t.Helper()
	files := map[string]*markdownFile{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || path == "bin" || path == "data" || path == "model/work") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files[path] = parseMarkdown(path, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parseMarkdown(path string, content []byte) *markdownFile {
	f := &markdownFile{path: path, text: string(content), headings: map[string]bool{}}
	document := goldmark.New(goldmark.WithParserOptions(parser.WithAutoHeadingID())).Parser().Parse(text.NewReader(content))
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			f.links = append(f.links, string(n.Destination))
		case *ast.Image:
			f.links = append(f.links, string(n.Destination))
		case *ast.AutoLink:
			f.links = append(f.links, string(n.URL(content)))
		case *ast.HTMLBlock:
			f.readHTML(string(n.Lines().Value(content)))
		case *ast.RawHTML:
			f.readHTML(string(n.Segments.Value(content)))
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok {
				f.headings[string(id.([]byte))] = true
			}
		}
		return ast.WalkContinue, nil
	})
	return f
}

// readHTML notes the links in a piece of HTML.
func (f *markdownFile) readHTML(markup string) {
	for _, m := range htmlLink.FindAllStringSubmatch(markup, -1) {
		f.links = append(f.links, m[1])
	}
}
