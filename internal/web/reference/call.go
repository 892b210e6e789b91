package reference

import (
	"fmt"
	"mime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// call is an operation as the page shows it.
type call struct {
	Anchor, Method, Path string
	Webhook              bool
	Full                 []pathPiece // the path with the server's URL
	Summary              string
	Text                 []block
	Deprecated           bool
	Access               access
	Parameters           []parameterView
	Body                 *bodyView
	Requests             []requestView
	Responses            []responseView
	Errors               []errorLink // that operations share

	tags []string
}

type callAt struct {
	path, method string
	webhook      bool
}

// pathPiece is a part of a path; breaking a line is fine after it.
type pathPiece struct {
	Text     string
	Variable bool
}

// access says what a caller must bring.
type access struct {
	Open     bool // nothing
	Optional bool
	Ways     []way // any one of them is enough
}

// way is a set of credentials that are needed together.
type way []credentialView

type credentialView struct {
	Name, Href string
	Scopes     []string
}

type parameterView struct {
	Name, In             string
	Required, Deprecated bool
	Shape                shape
	Text                 []block
}

type bodyView struct {
	Text     []block
	Required bool
	Media    []mediaView
}

type mediaView struct {
	Type     string
	Shape    shape
	Facts    []fact // of how parts are sent
	Examples []exampleView
}

// requestView is a command that sends a request; Media is empty where there is
// one way only.
type requestView struct {
	Media, Curl string
}

type exampleView struct {
	Title string
	Text  []block
	Code  []token
}

type responseView struct {
	Status, Class, Reason string
	Text                  []block
	Headers               []parameterView
	Media                 []mediaView
}

func (b *builder) call(at callAt, item pathItem, o operation) *call {
	c := &call{
		Method:     strings.ToUpper(at.method),
		Path:       at.path,
		Webhook:    at.webhook,
		Summary:    o.Summary,
		Text:       b.text(o.Description),
		Deprecated: o.Deprecated,
		tags:       o.Tags,
	}
	name := o.OperationID
	if name == "" {
		name = c.Method + " " + c.Path
	}
	c.Anchor = b.anchor("op-" + name)
	if c.Summary == "" {
		c.Summary = name
	}
	start := base(b.doc.Servers)
	if len(item.Servers) > 0 {
		start = base(item.Servers)
	}
	if len(o.Servers) > 0 {
		start = base(o.Servers)
	}
	if at.webhook {
		start = ""
	}
	c.Full = pathPieces(start + at.path)
	ps := b.parameters(item.Parameters, o.Parameters)
	for _, p := range ps {
		c.Parameters = append(c.Parameters, b.parameter(p))
	}
	needs := b.doc.Security
	if o.Security != nil {
		needs = *o.Security
	}
	c.Access = b.access(needs)
	var body *requestBody
	if !o.RequestBody.IsZero() {
		rb := read[requestBody](b, &o.RequestBody)
		body = &rb
		c.Body = &bodyView{Text: b.text(rb.Description), Required: rb.Required, Media: b.media(rb.Content, true)}
	}
	for _, r := range o.Responses {
		if strings.HasPrefix(r.Key, "x-") {
			continue
		}
		if link, ok := b.errorLink(r.Key, &r.Value); ok {
			c.Errors = append(c.Errors, link)
		} else {
			c.Responses = append(c.Responses, b.response(r.Key, read[response](b, &r.Value)))
		}
	}
	if !at.webhook {
		c.Requests = b.requests(curlOf{
			method:     c.Method,
			url:        start + at.path,
			parameters: ps,
			needs:      needs,
			responses:  c.Responses,
		}, body)
	}
	return c
}

// requests has a command for each media type that a body can have.
func (b *builder) requests(c curlOf, body *requestBody) []requestView {
	if body == nil || len(body.Content) == 0 {
		return []requestView{{Curl: b.curl(c)}}
	}
	var all []requestView
	for _, content := range body.Content {
		c.body = &content
		all = append(all, requestView{Media: content.Key, Curl: b.curl(c)})
	}
	if len(all) == 1 {
		all[0].Media = ""
	}
	return all
}

// pathPieces cuts a path after its slashes and around its variables.
func pathPieces(path string) []pathPiece {
	var all []pathPiece
	for path != "" {
		end := strings.IndexAny(path, "/{")
		variable := false
		switch {
		case end < 0:
			end = len(path)
		case path[end] == '/':
			end++
		case end == 0:
			if shut := strings.IndexByte(path, '}'); shut > 0 {
				end = shut + 1
				variable = true
			} else {
				end = len(path)
			}
		}
		all = append(all, pathPiece{path[:end], variable})
		path = path[end:]
	}
	return all
}

// parameters joins those of the path with those of the operation, which win.
func (b *builder) parameters(shared, own []yaml.Node) []parameter {
	var all []parameter
	for _, n := range slices.Concat(shared, own) {
		p := read[parameter](b, &n)
		same := func(q parameter) bool { return q.Name == p.Name && q.In == p.In }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i] = p
		} else {
			all = append(all, p)
		}
	}
	return all
}

// place names where a parameter goes in words.
func place(in string) string {
	if in == "query" {
		return "query string"
	}
	return in
}

func (b *builder) parameter(p parameter) parameterView {
	v := parameterView{
		Name:       p.Name,
		In:         p.In,
		Required:   p.Required,
		Deprecated: p.Deprecated,
		Text:       b.text(p.Description),
	}
	s := p.schema()
	v.Shape = b.shape(s)
	if s != nil {
		v.Deprecated = v.Deprecated || s.Deprecated
	}
	for _, m := range p.Content {
		v.Shape.Facts = append(v.Shape.Facts, fact{Text: "written as", Codes: []string{m.Key}})
	}
	if shown := p.examples(); len(shown) > 0 && isScalar(shown[0]) {
		v.Shape.Facts = append(v.Shape.Facts, fact{Text: "for example", Codes: []string{literal(&shown[0])}})
	}
	switch {
	case p.Style == "deepObject":
		v.Shape.Facts = append(v.Shape.Facts, fact{Text: "sent as", Codes: []string{p.Name + "[field]=value"}})
	case s != nil && slices.Contains(s.Type, "array") && p.In == "query":
		if p.Explode != nil && !*p.Explode {
			v.Shape.Facts = append(v.Shape.Facts, fact{Text: "several in one, between commas"})
		} else {
			v.Shape.Facts = append(v.Shape.Facts, fact{Text: "repeat it for several"})
		}
	}
	return v
}

// schema gives a parameter's schema, which may stand below a media type.
func (p parameter) schema() *schema {
	if p.Schema == nil && len(p.Content) > 0 {
		return p.Content[0].Value.Schema
	}
	return p.Schema
}

// examples lists the values that the parameter itself gives.
func (p parameter) examples() []yaml.Node {
	if !p.Example.IsZero() {
		return []yaml.Node{p.Example}
	}
	var all []yaml.Node
	for _, e := range p.Examples {
		if v := child(original(&e.Value), "value"); v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// access reads which credentials an operation needs.
func (b *builder) access(needs []requirement) access {
	a := access{Open: true}
	for _, together := range needs {
		if len(together) == 0 {
			a.Optional = true
			continue
		}
		var w way
		for _, n := range together {
			anchor, ok := b.schemes[n.Key]
			if !ok {
				b.fail(fmt.Errorf("security scheme %q is not described", n.Key))
			}
			w = append(w, credentialView{Name: n.Key, Href: "#" + anchor, Scopes: n.Value})
		}
		a.Open = false
		a.Ways = append(a.Ways, w)
	}
	return a
}

func (b *builder) response(status string, r response) responseView {
	v := responseView{Status: status, Class: "other", Text: b.text(r.Description), Media: b.media(r.Content, false)}
	if status == "default" {
		v.Reason = "any other status"
	} else if status != "" {
		v.Class = "s" + status[:1]
	}
	for _, h := range r.Headers {
		p := read[parameter](b, &h.Value)
		p.Name = h.Key
		v.Headers = append(v.Headers, b.parameter(p))
	}
	return v
}

// media shows a body in each of its media types.
func (b *builder) media(content ordered[mediaType], request bool) []mediaView {
	var all []mediaView
	for _, c := range content {
		m := mediaView{Type: c.Key, Shape: b.shape(c.Value.Schema)}
		if c.Value.Schema == nil && !isJSON(c.Key) && !strings.HasPrefix(c.Key, "text/") {
			m.Shape.Type = []piece{{Text: "bytes"}}
		}
		for _, e := range c.Value.Encoding {
			if e.Value.ContentType != "" {
				m.Facts = append(m.Facts, fact{Text: "part " + e.Key + " as", Codes: []string{e.Value.ContentType}})
			}
		}
		m.Examples = b.examples(c.Key, c.Value, request)
		all = append(all, m)
	}
	return all
}

// examples are those that the document gives, else one made from the schema.
func (b *builder) examples(name string, m mediaType, request bool) []exampleView {
	if !m.Example.IsZero() {
		return []exampleView{{Code: shown(name, plain(&m.Example))}}
	}
	var all []exampleView
	for _, e := range m.Examples {
		ex := read[example](b, &e.Value)
		v := exampleView{Title: e.Key, Text: b.text(ex.Description)}
		if ex.Summary != "" {
			v.Title = ex.Summary
		}
		switch {
		case !ex.Value.IsZero():
			v.Code = shown(name, plain(&ex.Value))
		case ex.ExternalValue != "":
			v.Code = []token{{"", ex.ExternalValue}}
		}
		all = append(all, v)
	}
	if len(all) > 0 || !isJSON(name) || m.Schema == nil {
		return all
	}
	if v, ok := b.sample(m.Schema, request); ok {
		return []exampleView{{Code: tokens(v)}}
	}
	return nil
}

// shown writes an example the way its media type is written.
func shown(mediaType string, v any) []token {
	if s, ok := v.(string); ok && !isJSON(mediaType) {
		return []token{{"", s}}
	}
	return tokens(v)
}

func isJSON(name string) bool {
	kind, _, err := mime.ParseMediaType(name)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
