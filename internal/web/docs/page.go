package docs

import (
	"bytes"
	"errors"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// page is a page of the documentation.
type page struct {
	Name        string // of the file, without .md
	Path        string // URL path
	Title       string
	Description string // the first paragraph
	Headings    []heading

	body     template.HTML
	source   []byte
	sections []entry
}

// heading is an entry of the list "On this page".
type heading struct {
	ID   string
	Text string
}

// IsHome reports whether the page is the one at /docs itself.
func (p *page) IsHome() bool { return p.Name == homeName }

// entries returns the page's part of the search index.
func (p *page) entries() []entry { return p.sections }

// markdown parses and renders pages. Raw HTML is allowed, because the pages are
// our own and the policy forbids inline script and style.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithParserOptions(
		parser.WithAutoHeadingID(),
		parser.WithASTTransformers(util.Prioritized(&arranger{}, 1000)),
	),
	goldmark.WithRendererOptions(
		html.WithUnsafe(),
		renderer.WithNodeRenderers(util.Prioritized(&pageRenderer{}, 100)),
	),
)

// pagePath returns the URL path of a page.
func pagePath(name string) string {
	if name == homeName {
		return root
	}
	return root + "/" + name
}

// parsePage renders a page. Its first block must be a heading of level 1, its
// title, followed by a paragraph, its description.
func parsePage(name string, source []byte) (*page, error) {
	p := &page{Name: name, Path: pagePath(name), source: source}
	document := markdown.Parser().Parse(text.NewReader(source))
	first, ok := document.FirstChild().(*ast.Heading)
	if !ok || first.Level != 1 {
		return nil, errors.New("the page does not begin with a heading of level 1")
	}
	p.Title = plainText(first, source)
	paragraph, ok := first.NextSibling().(*ast.Paragraph)
	if !ok {
		return nil, errors.New("no paragraph follows the title")
	}
	p.Description = plainText(paragraph, source)
	p.readSections(document)

	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, document); err != nil {
		return nil, err
	}
	p.body = template.HTML(out.String()) //nolint:gosec // rendered from our own files
	return p, nil
}

// readSections collects the headings of the page and the texts between them.
func (p *page) readSections(document ast.Node) {
	current := entry{Page: p.Title, Path: p.Path}
	var words []string
	finish := func() {
		current.Text = strings.Join(words, " ")
		p.sections = append(p.sections, current)
		words = nil
	}
	for n := document.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		switch {
		case !ok:
			words = append(words, strings.Fields(plainText(n, p.source))...)
		case h.Level > 1:
			finish()
			id := headingID(h)
			title := plainText(h, p.source)
			current = entry{Page: p.Title, Heading: title, Path: p.Path + "#" + id}
			if h.Level == 2 {
				p.Headings = append(p.Headings, heading{ID: id, Text: title})
			}
		}
	}
	finish()
}

// headingID returns the id that the parser gave to a heading.
func headingID(h *ast.Heading) string {
	id, _ := h.AttributeString("id")
	value, _ := id.([]byte)
	return string(value)
}

// plainText returns the text of a node without markup.
func plainText(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			out.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.String:
			out.Write(n.Value)
		case *ast.AutoLink:
			out.Write(n.URL(source))
		case *ast.FencedCodeBlock:
			out.Write(n.Lines().Value(source))
		case *ast.CodeBlock:
			out.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(out.String())
}

// localURL is the address of the service in the examples of the Markdown files.
const localURL = "http://localhost:8080"

// addressExamples lets the examples in several languages call the service at
// baseURL, so that people can copy them as they are. Other blocks describe a
// service on the reader's own machine.
func addressExamples(source []byte, baseURL string) []byte {
	lines := strings.SplitAfter(string(source), "\n")
	inExample := false
	for i, line := range lines {
		if info, ok := strings.CutPrefix(line, "```"); ok {
			_, isTab := tabOf(strings.TrimSpace(info))
			inExample = isTab && !inExample
			continue
		}
		if inExample {
			lines[i] = strings.ReplaceAll(line, localURL, baseURL)
		}
	}
	return []byte(strings.Join(lines, ""))
}
