package reference_test

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	openapi "atelier/api"
)

// documents are the real one and one that uses what OpenAPI has.
func documents(t *testing.T) map[string][]byte {
	t.Helper()
	full, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"atelier": openapi.Document, "full": full}
}

// named is as much of a document as has names to look for.
type named struct {
	Servers []struct{ URL string }
	Tags    []struct{ Name, Description string }
	Paths   map[string]map[string]struct {
		Summary    string
		Servers    []struct{ URL string }
		Parameters []struct{ Name string }
	}
	Components struct {
		Parameters map[string]struct{ Name string }
		Schemas    map[string]struct {
			Properties map[string]any
			Enum       []string
		}
	}
}

func TestPageShowsTheWholeDocument(t *testing.T) {
	t.Parallel()
	var doc named
	if err := yaml.Unmarshal(openapi.Document, &doc); err != nil {
		t.Fatal(err)
	}
	page := page(t, openapi.Document)
	words := read(page)
	want := []string{}
	for path, item := range doc.Paths {
		want = append(want, path)
		for method, o := range item {
			at := slices.Concat(o.Servers, doc.Servers)[0].URL
			want = append(want, o.Summary, strings.ToUpper(method)+" "+strings.TrimSuffix(at, "/")+path)
			for _, p := range o.Parameters {
				want = append(want, p.Name)
			}
		}
	}
	for _, tag := range doc.Tags {
		want = append(want, tag.Name, tag.Description)
	}
	for _, p := range doc.Components.Parameters {
		want = append(want, p.Name)
	}
	for name, s := range doc.Components.Schemas {
		if !strings.Contains(page, `id="schema-`+name+`"`) {
			t.Errorf("schema %s has no section", name)
		}
		for p := range s.Properties {
			want = append(want, p)
		}
		want = append(want, s.Enum...)
	}
	if len(want) < 100 {
		t.Fatalf("found only %d names in the document", len(want))
	}
	for _, w := range want {
		if !strings.Contains(words, w) {
			t.Errorf("the page does not show %q", w)
		}
	}
	for _, link := range []string{`href="/api/v2/openapi.json"`, `href="#schema-ToolList">ToolList</a>`, `href="#auth-bearer">bearer</a>`} {
		if !strings.Contains(page, link) {
			t.Errorf("the page has no %s", link)
		}
	}
}

var (
	ids     = regexp.MustCompile(`\sid="([^"]*)"`)
	targets = regexp.MustCompile(`\shref="#([^"]*)"`)
	labels  = regexp.MustCompile(`\saria-labelledby="([^"]*)"`)
	heading = regexp.MustCompile(`<h([1-6])`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for name, document := range documents(t) {
		p := page(t, document)
		seen := map[string]bool{}
		for _, m := range ids.FindAllStringSubmatch(p, -1) {
			if seen[m[1]] {
				t.Errorf("%s: id %q stands there twice", name, m[1])
			}
			seen[m[1]] = true
		}
		for _, m := range slices.Concat(targets.FindAllStringSubmatch(p, -1), labels.FindAllStringSubmatch(p, -1)) {
			if !seen[m[1]] {
				t.Errorf("%s: nothing has the id %q", name, m[1])
			}
		}
	}
}

func TestHeadingsAreInOrder(t *testing.T) {
	t.Parallel()
	for name, document := range documents(t) {
		last, tops := 0, 0
		for _, m := range heading.FindAllStringSubmatch(page(t, document), -1) {
			level, _ := strconv.Atoi(m[1])
			if level > last+1 {
				t.Errorf("%s: a heading of level %d follows one of level %d", name, level, last)
			}
			if level == 1 {
				tops++
			}
			last = level
		}
		if tops != 1 {
			t.Errorf("%s: %d headings of level 1, want 1", name, tops)
		}
	}
}

func TestPageRunsNoScript(t *testing.T) {
	t.Parallel()
	for name, document := range documents(t) {
		p := page(t, document)
		for _, bad := range []string{"<script", "<style", " style=", " onclick=", "<img", "ZgotmplZ"} {
			if strings.Contains(p, bad) {
				t.Errorf("%s: the page has %q", name, bad)
			}
		}
	}
}

func TestHostileTextIsEscaped(t *testing.T) {
	t.Parallel()
	const evil = `<script>alert(1)</script>"'><img src=x onerror=y>`
	document := strings.NewReplacer("EVIL", strings.ReplaceAll(evil, `"`, `\"`), "POINTER", strings.NewReplacer("/", "~1", `"`, `\"`).Replace(evil)).Replace(`
openapi: 3.1.0
info: {title: "EVIL", version: "EVIL", summary: "EVIL", description: "EVIL ` + "`EVIL`" + ` **EVIL**\n\n- EVIL"}
servers: [{url: "javascript:EVIL"}]
tags: [{name: "EVIL", description: "EVIL"}]
paths:
  "/EVIL/{EVIL}":
    post:
      operationId: "EVIL"
      tags: ["EVIL"]
      summary: "EVIL"
      description: "EVIL"
      security: [{"EVIL": ["EVIL"]}]
      parameters:
        - {name: "EVIL", in: path, required: true, description: "EVIL", schema: {type: string, pattern: "EVIL", default: "EVIL"}}
        - {name: "EVIL", in: "EVIL", schema: {type: "EVIL", format: "EVIL"}}
      requestBody: {content: {"EVIL": {schema: {enum: ["EVIL"]}, examples: {"EVIL": {summary: "EVIL", value: "EVIL"}}}}}
      responses:
        "EVIL":
          description: "EVIL"
          headers: {"EVIL": {schema: {type: string}}}
          content: {application/json: {schema: {$ref: "#/components/schemas/POINTER"}}}
  /openapi.json: {get: {responses: {"200": {description: "EVIL"}}}}
components:
  securitySchemes: {"EVIL": {type: "EVIL", description: "EVIL"}}
  schemas:
    "EVIL":
      title: "EVIL"
      type: object
      required: ["EVIL"]
      if: {const: "EVIL"}
      properties: {"EVIL": {const: "EVIL", description: "EVIL"}}
      patternProperties: {"EVIL": {enum: ["EVIL"], examples: ["EVIL"]}}
`)
	p := page(t, []byte(document))
	if n := strings.Count(p, "&lt;script&gt;"); n < 30 {
		t.Errorf("the text appears %d times, want it wherever the document has it", n)
	}
	for _, bad := range []string{"<script", "<img", "onerror=y>", `href="javascript`} {
		if strings.Contains(p, bad) {
			at := strings.Index(p, bad)
			t.Errorf("the page has %q: %s", bad, p[max(0, at-200):at+50])
		}
	}
}

var colour = regexp.MustCompile(`--([a-z]+): (#[0-9a-f]{6});`)

// Every colour of text must be readable on every ground (WCAG 2.2, 1.4.3).
func TestContrast(t *testing.T) {
	t.Parallel()
	css := body(t, get(handler(t, openapi.Document), "GET", "/docs/style.css"))
	light, dark, found := strings.Cut(css, "prefers-color-scheme: dark")
	if !found {
		t.Fatal("the style has no dark colours")
	}
	for name, part := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]string{}
		for _, m := range colour.FindAllStringSubmatch(part, -1) {
			colours[m[1]] = m[2]
		}
		if len(colours) < 15 {
			t.Fatalf("%s: found only %d colours", name, len(colours))
		}
		grounds := []string{"paper", "panel", "code"}
		for text, value := range colours {
			if slices.Contains(append(grounds, "line"), text) {
				continue
			}
			for _, ground := range grounds {
				if c := contrast(t, value, colours[ground]); c < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f, want 4.5", name, text, ground, c)
				}
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{.2126, .7152, .0722} {
		v, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(v) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
