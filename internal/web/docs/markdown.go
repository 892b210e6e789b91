package docs

import (
	"fmt"
	"html"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	texts "atelier/docs"
)

// tab is one of the languages that examples are written in.
type tab struct {
	info  string // of the code block in Markdown
	id    string
	label string
}

// tabs are the languages in the order in which they are shown. Adjacent code
// blocks with these infos are shown side by side.
var tabs = []tab{
	{"sh curl", "curl", "curl"},
	{"go", "go", "Go"},
	{"python", "python", "Python"},
	{"js", "js", "JavaScript"},
	{"sh cli", "cli", "Command line"},
}

// tabOf returns the language of a code block with this info.
func tabOf(info string) (tab, bool) {
	for _, t := range tabs {
		if t.info == info {
			return t, true
		}
	}
	return tab{}, false
}

// kindExample is an example in several languages: its children are code blocks.
var kindExample = ast.NewNodeKind("Example")

type example struct {
	ast.BaseBlock
	number int // on its page, from 1
}

func (*example) Kind() ast.NodeKind { return kindExample }

func (e *example) Dump(source []byte, level int) { ast.DumpHelper(e, source, level, nil, nil) }

// kindScroller is a table that can be scrolled sideways.
var kindScroller = ast.NewNodeKind("Scroller")

type scroller struct{ ast.BaseBlock }

func (*scroller) Kind() ast.NodeKind { return kindScroller }

func (s *scroller) Dump(source []byte, level int) { ast.DumpHelper(s, source, level, nil, nil) }

// arranger groups examples, wraps tables, and turns links between files into
// links between pages.
type arranger struct{}

func (*arranger) Transform(document *ast.Document, reader text.Reader, _ parser.Context) {
	source := reader.Source()
	var blocks []*ast.FencedCodeBlock
	var grids []*tables.Table
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.FencedCodeBlock:
			blocks = append(blocks, n)
		case *tables.Table:
			grids = append(grids, n)
		case *ast.Link:
			n.Destination = []byte(linkTo(string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(linkTo(string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})

	for _, grid := range grids {
		box := &scroller{}
		grid.Parent().ReplaceChild(grid.Parent(), grid, box)
		box.AppendChild(box, grid)
	}
	groupExamples(blocks, source)
}

// groupExamples puts adjacent code blocks in the languages of examples together.
// The second block in the same language begins another example.
func groupExamples(blocks []*ast.FencedCodeBlock, source []byte) {
	var current *example
	var seen map[string]bool // languages of the current example
	count := 0
	for _, block := range blocks {
		t, ok := tabOf(infoOf(block, source))
		if !ok {
			current = nil
			continue
		}
		if current == nil || block.PreviousSibling() != ast.Node(current) || seen[t.id] {
			count++
			seen = map[string]bool{}
			current = &example{number: count}
			block.Parent().ReplaceChild(block.Parent(), block, current)
		}
		current.AppendChild(current, block)
		seen[t.id] = true
	}
}

// infoOf returns the words behind the fence of a code block.
func infoOf(block *ast.FencedCodeBlock, source []byte) string {
	if block.Info == nil {
		return ""
	}
	return strings.TrimSpace(string(block.Info.Segment.Value(source)))
}

// linkTo returns the address of the destination of a link. Files in the folder
// docs are below /docs, and Markdown files are pages.
func linkTo(destination string) string {
	if destination == "" || strings.HasPrefix(destination, "#") || strings.HasPrefix(destination, "/") || strings.Contains(destination, ":") {
		return destination
	}
	name, fragment, hasFragment := strings.Cut(destination, "#")
	address := root + "/" + name
	if page, ok := strings.CutSuffix(name, ".md"); ok {
		address = pagePath(page)
	}
	if hasFragment {
		address += "#" + fragment
	}
	return address
}

// pageRenderer renders the parts that differ from plain Markdown.
type pageRenderer struct{}

func (r *pageRenderer) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(kindExample, r.renderExample)
	register.Register(kindScroller, r.renderScroller)
	register.Register(ast.KindHeading, r.renderHeading)
	register.Register(ast.KindFencedCodeBlock, r.renderCode)
	register.Register(ast.KindImage, r.renderImage)
}

// renderHeading renders a heading that is a link to itself.
func (*pageRenderer) renderHeading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h := n.(*ast.Heading)
	switch {
	case h.Level == 1 && entering:
		_, _ = w.WriteString("<h1>")
	case h.Level == 1:
		_, _ = w.WriteString("</h1>\n")
	case entering:
		id := html.EscapeString(headingID(h))
		fmt.Fprintf(w, `<h%d id="%s"><a href="#%s">`, h.Level, id, id)
	default:
		fmt.Fprintf(w, "</a></h%d>\n", h.Level)
	}
	return ast.WalkContinue, nil
}

// renderScroller renders the box around a table. It has a tab stop, so that it
// can be scrolled with the keyboard.
func (*pageRenderer) renderScroller(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<div class="scroller" role="group" aria-label="Table" tabindex="0">` + "\n")
	} else {
		_, _ = w.WriteString("</div>\n")
	}
	return ast.WalkContinue, nil
}

// renderExample renders an example as radio buttons with a panel for each
// language. The style sheet shows the panel of the chosen one, so no script is
// needed.
func (*pageRenderer) renderExample(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	e := n.(*example)
	fmt.Fprintf(w, "<fieldset class=\"example\">\n<legend class=\"unseen\">Example %d: language</legend>\n", e.number)
	for block := e.FirstChild(); block != nil; block = block.NextSibling() {
		t, _ := tabOf(infoOf(block.(*ast.FencedCodeBlock), source))
		checked := ""
		if block == e.FirstChild() {
			checked = " checked"
		}
		id := fmt.Sprintf("example-%d-%s", e.number, t.id)
		fmt.Fprintf(w, "<input class=\"unseen pick-%s\" type=\"radio\" name=\"example-%d\" id=\"%s\" value=\"%s\"%s><label for=\"%[3]s\">%[6]s</label>\n",
			t.id, e.number, id, t.id, checked, t.label)
	}
	for block := e.FirstChild(); block != nil; block = block.NextSibling() {
		code := block.(*ast.FencedCodeBlock)
		t, _ := tabOf(infoOf(code, source))
		fmt.Fprintf(w, "<div class=\"panel show-%s\">\n<p class=\"panel-name\">%s</p>\n", t.id, t.label)
		writeCode(w, code, source)
		_, _ = w.WriteString("</div>\n")
	}
	_, _ = w.WriteString("</fieldset>\n")
	return ast.WalkSkipChildren, nil
}

func (*pageRenderer) renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		writeCode(w, n.(*ast.FencedCodeBlock), source)
	}
	return ast.WalkSkipChildren, nil
}

// writeCode renders a code block. It has a tab stop, so that it can be scrolled
// with the keyboard.
func writeCode(w util.BufWriter, block *ast.FencedCodeBlock, source []byte) {
	language := string(block.Language(source))
	_, _ = w.WriteString(`<div class="code"><pre tabindex="0"><code>`)
	_, _ = w.WriteString(highlight(language, string(block.Lines().Value(source))))
	_, _ = w.WriteString("</code></pre></div>\n")
}

// renderImage renders a picture as a link to itself. Drawings become part of the
// page, so that they have the colours of the page.
func (*pageRenderer) renderImage(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	image := n.(*ast.Image)
	address := string(image.Destination)
	words := html.EscapeString(plainText(image, source))
	name := strings.TrimPrefix(address, root+"/")
	if path.Ext(name) != ".svg" {
		fmt.Fprintf(w, `<a href="%s"><img src="%[1]s" alt="%s" loading="lazy"></a>`, html.EscapeString(address), words)
		return ast.WalkSkipChildren, nil
	}
	drawing, err := fs.ReadFile(texts.Files, name)
	if err != nil {
		return ast.WalkStop, fmt.Errorf("read drawing: %w", err)
	}
	markup := svgStyle.ReplaceAllString(string(drawing), "")
	markup = strings.Replace(markup, "<svg ", fmt.Sprintf(`<svg class="drawing" role="img" aria-label="%s" `, words), 1)
	fmt.Fprintf(w, `<span class="scroller" role="group" aria-label="Drawing" tabindex="0">%s</span>`, markup)
	return ast.WalkSkipChildren, nil
}
