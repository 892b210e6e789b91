package reference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// page is all that the template shows.
type page struct {
	Title, Version, Summary string
	Text                    []block
	Servers                 []string
	Document                string // address of the document, "" where it has none
	Schemes                 []schemeView
	Groups                  []group
	Errors                  []errorSection
	Schemas                 []section
}

// group is a tag with its operations.
type group struct {
	Anchor, Name string
	Text         []block
	Operations   []*call
	Also         []*call // shown in full under their first tag
}

// section is a named schema.
type section struct {
	Anchor, Name string
	Title        string
	Deprecated   bool
	Shape        shape
	Example      []token
}

// builder makes a page from a document. The first thing that goes wrong is
// kept in err, so that the steps need not hand it on.
type builder struct {
	doc      *document
	root     *yaml.Node
	err      error
	anchors  map[string]bool
	sections map[string]string // anchors of the schemas, by name
	schemes  map[string]string // anchors of the security schemes, by name
	errors   map[string]string // anchors of the errors that operations share, by name
}

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func newPage(text []byte) (*page, error) {
	doc, root, err := parse(text)
	if err != nil {
		return nil, err
	}
	b := &builder{
		doc:      doc,
		root:     root,
		anchors:  map[string]bool{},
		sections: map[string]string{},
		schemes:  map[string]string{},
		errors:   map[string]string{},
	}
	for _, own := range []string{"contents", "main", "authentication", "errors", "schemas"} {
		b.anchor(own) // of the template
	}
	for _, s := range doc.Components.Schemas {
		b.sections[s.Key] = b.anchor("schema-" + s.Key)
	}
	for _, s := range doc.Components.SecuritySchemes {
		b.schemes[s.Key] = b.anchor("auth-" + s.Key)
	}
	p := &page{
		Title: doc.Info.Title, Version: doc.Info.Version, Summary: doc.Info.Summary,
		Text: b.text(doc.Info.Description),
	}
	for _, s := range doc.Servers {
		p.Servers = append(p.Servers, s.address())
	}
	if _, ok := doc.Paths.get(documentPath); ok {
		p.Document = base(doc.Servers) + documentPath
	}
	for _, s := range doc.Components.SecuritySchemes {
		p.Schemes = append(p.Schemes, b.scheme(s.Key, read[securityScheme](b, &s.Value)))
	}
	p.Groups = b.groups()
	p.Errors = b.errorSections()
	for _, s := range doc.Components.Schemas {
		p.Schemas = append(p.Schemas, b.section(s.Key, s.Value))
	}
	return p, b.err
}

// documentPath is where an API serves its own document, by convention.
const documentPath = "/openapi.json"

// title is what the template adds to an anchor for the id of its heading.
const title = "-title"

// anchor makes an id that is unique on the page and needs no escaping.
func (b *builder) anchor(name string) string {
	slug := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, name)
	id := slug
	for i := 2; b.anchors[id] || b.anchors[id+title]; i++ {
		id = slug + "-" + strconv.Itoa(i)
	}
	b.anchors[id] = true
	b.anchors[id+title] = true
	return id
}

// text reads a description; code that names a schema leads to its section.
func (b *builder) text(description string) []block {
	all := blocks(description)
	for _, one := range all {
		for _, line := range slices.Concat(one.Items, [][]span{one.Text}) {
			for i := range line {
				if anchor, ok := b.sections[line[i].Text]; ok && line[i].Code {
					line[i].Href = "#" + anchor
				}
			}
		}
	}
	return all
}

func (b *builder) section(name string, s *schema) section {
	sec := section{Anchor: b.sections[name], Name: name, Shape: b.shape(s)}
	if s == nil {
		return sec
	}
	sec.Title = s.Title
	sec.Deprecated = s.Deprecated
	switch v, _ := b.sample(&schema{Ref: "#/components/schemas/" + escape(name)}, false); v.(type) {
	case object, list: // of a single value the type says enough
		sec.Example = tokens(v)
	}
	return sec
}

// escape writes a name for a JSON pointer in a URI fragment.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "%", "%25").Replace(name)
}

// groups sorts the operations by tag: the tags that the document describes
// first, then those that only operations name, then the rest.
func (b *builder) groups() []group {
	var gs []group
	under := func(name, description string) *group {
		i := slices.IndexFunc(gs, func(g group) bool { return g.Name == name })
		if i < 0 {
			i = len(gs)
			gs = append(gs, group{Name: name, Anchor: b.anchor("tag-" + name), Text: b.text(description)})
		}
		return &gs[i]
	}
	for _, t := range b.doc.Tags {
		under(t.Name, t.Description)
	}
	var untagged []*call
	for _, c := range b.calls() {
		if len(c.tags) == 0 {
			untagged = append(untagged, c)
			continue
		}
		first := under(c.tags[0], "")
		first.Operations = append(first.Operations, c)
		for _, name := range c.tags[1:] {
			other := under(name, "")
			other.Also = append(other.Also, c)
		}
	}
	for _, c := range untagged {
		name := "Other operations"
		if c.Webhook {
			name = "Webhooks"
		}
		g := under(name, "")
		g.Operations = append(g.Operations, c)
	}
	return gs
}

// calls lists every operation of the document and its webhooks.
func (b *builder) calls() []*call {
	var all []*call
	list := func(items ordered[yaml.Node], webhook bool) {
		for _, p := range items {
			if strings.HasPrefix(p.Key, "x-") {
				continue
			}
			item := read[pathItem](b, &p.Value)
			for _, o := range item.Operations {
				all = append(all, b.call(callAt{p.Key, o.Key, webhook}, item, o.Value))
			}
		}
	}
	list(b.doc.Paths, false)
	list(b.doc.Webhooks, true)
	return all
}

// address is a server's URL with the defaults of its variables.
func (s server) address() string {
	url := s.URL
	for _, v := range s.Variables {
		url = strings.ReplaceAll(url, "{"+v.Key+"}", v.Value.Default)
	}
	return strings.TrimSuffix(url, "/")
}

// base is the URL that paths begin with: that of the first server.
func base(servers []server) string {
	if len(servers) == 0 {
		return ""
	}
	return servers[0].address()
}

// schemeView is a way to authenticate.
type schemeView struct {
	Anchor, Name string
	Kind         string
	Codes        []string // words of Kind that a program uses
	Text         []block
	Facts        []fact
}

func (b *builder) scheme(name string, s securityScheme) schemeView {
	v := schemeView{Anchor: b.schemes[name], Name: name, Kind: s.Type, Text: b.text(s.Description)}
	switch {
	case s.Type == "http" && strings.EqualFold(s.Scheme, "bearer"):
		v.Kind = "Bearer token, in the header"
		v.Codes = []string{"Authorization: Bearer <token>"}
	case s.Type == "http":
		v.Kind = "HTTP authentication, in the header"
		v.Codes = []string{"Authorization: " + s.Scheme}
	case s.Type == "apiKey":
		v.Kind = fmt.Sprintf("Key, in the %s", place(s.In))
		v.Codes = []string{s.Name}
	case s.Type == "oauth2":
		v.Kind = "OAuth 2"
	case s.Type == "openIdConnect":
		v.Kind = "OpenID Connect, described at"
		v.Codes = []string{s.OpenIDConnectURL}
	case s.Type == "mutualTLS":
		v.Kind = "Client certificate (mutual TLS)"
	}
	if s.BearerFormat != "" {
		v.Facts = append(v.Facts, fact{Text: "format", Codes: []string{s.BearerFormat}})
	}
	for _, f := range s.Flows {
		for _, url := range []struct{ label, value string }{
			{"authorization at", f.Value.AuthorizationURL}, {"device authorization at", f.Value.DeviceAuthorizationURL},
			{"tokens at", f.Value.TokenURL}, {"refresh at", f.Value.RefreshURL},
		} {
			if url.value != "" {
				v.Facts = append(v.Facts, fact{Text: f.Key + ": " + url.label, Codes: []string{url.value}})
			}
		}
		for _, scope := range f.Value.Scopes {
			v.Facts = append(v.Facts, fact{f.Key + ": scope", []string{scope.Key}, scope.Value})
		}
	}
	return v
}
