package reference

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// curlOf is what a curl command is made from.
type curlOf struct {
	method, url string
	parameters  []parameter
	needs       []requirement
	body        *entry[mediaType] // nil for none
	responses   []responseView
}

// curl writes a command that can be pasted. What only the reader knows is a
// shell variable.
func (b *builder) curl(c curlOf) string {
	var args, query []string
	address := quoteVariables(c.url)
	for _, p := range c.parameters {
		if p.In != "path" && !p.Required {
			continue
		}
		switch v := b.argument(p); p.In {
		case "path":
			address = strings.ReplaceAll(address, "{"+p.Name+"}", v.inURL())
		case "query":
			query = append(query, quoteVariables(url.QueryEscape(p.Name))+"="+v.inURL())
		case "header":
			args = append(args, fmt.Sprintf(`-H "%s: %s"`, quoteVariables(p.Name), v))
		case "cookie":
			args = append(args, fmt.Sprintf(`-b "%s=%s"`, quoteVariables(p.Name), v))
		}
	}
	for _, n := range firstWay(c.needs) {
		node, ok := b.doc.Components.SecuritySchemes.get(n.Key)
		if !ok {
			continue
		}
		switch s := read[securityScheme](b, &node); {
		case s.Type == "http" && strings.EqualFold(s.Scheme, "basic"):
			args = append(args, `-u "$ATELIER_USER:$ATELIER_PASSWORD"`)
		case s.Type == "apiKey" && s.In == "header":
			args = append(args, fmt.Sprintf(`-H "%s: $ATELIER_TOKEN"`, quoteVariables(s.Name)))
		case s.Type == "apiKey" && s.In == "cookie":
			args = append(args, fmt.Sprintf(`-b "%s=$ATELIER_TOKEN"`, quoteVariables(s.Name)))
		case s.Type == "apiKey":
			query = append(query, quoteVariables(url.QueryEscape(s.Name))+"=$ATELIER_TOKEN")
		case s.Type == "mutualTLS":
			args = append(args, `--cert "$ATELIER_CERT"`)
		default:
			args = append(args, `-H "Authorization: Bearer $ATELIER_TOKEN"`)
		}
	}
	if c.body != nil {
		args = append(args, b.data(*c.body)...)
	}
	switch {
	case answers(c.responses, isStream):
		args = append(args, "--no-buffer")
	case answers(c.responses, isBinary):
		args = append(args, "--output answer")
	}
	if u, err := url.Parse(c.url); err != nil || u.Host == "" {
		address = "$ATELIER_URL" + address
	} else if u.Hostname() == "localhost" {
		address = "$ATELIER_URL" + strings.TrimPrefix(address, u.Scheme+"://"+u.Host)
	}
	if len(query) > 0 {
		address += "?" + strings.Join(query, "&")
	}
	command := "curl "
	switch c.method {
	case "GET":
	case "HEAD":
		command += "--head "
	default:
		command += "-X " + c.method + " "
	}
	return strings.Join(append([]string{command + `"` + address + `"`}, args...), " \\\n  ")
}

// firstWay is the first set of credentials that is not empty.
func firstWay(needs []requirement) requirement {
	for _, n := range needs {
		if len(n) > 0 {
			return n
		}
	}
	return nil
}

// argument is a parameter's value between double quotes: a literal, or a shell
// variable.
type argument struct {
	literal, variable string
}

func (a argument) String() string {
	if a.variable != "" {
		return "$" + a.variable
	}
	return quoteVariables(a.literal)
}

func (a argument) inURL() string {
	if a.variable != "" {
		return "$" + a.variable
	}
	return url.QueryEscape(a.literal) // leaves nothing that a shell would read
}

// argument gives a value for a parameter, where the document offers one or any
// would do.
func (b *builder) argument(p parameter) argument {
	if shown := p.examples(); len(shown) > 0 {
		return argument{literal: asText(plain(&shown[0]))}
	}
	s := b.settled(p.schema())
	if s != nil && s.Items != nil && p.In == "query" {
		s = b.settled(s.Items) // one of several is enough
	}
	if s != nil {
		if n, ok := given(s); ok {
			return argument{literal: asText(plain(&n))}
		}
		if v, ok := b.sample(s, true); ok && p.In != "path" {
			if t := typeOf(v); t == "integer" || t == "number" || t == "boolean" {
				return argument{literal: asText(v)}
			}
		}
	}
	return argument{variable: variable(p.Name)}
}

// variable makes a shell variable's name. One word could be a variable that
// every shell has, such as PATH.
func variable(name string) string {
	upper := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
	if !strings.Contains(strings.Trim(upper, "_"), "_") || upper[0] <= '9' {
		return "MY_" + upper
	}
	return upper
}

// asText writes a value where text is expected: strings without quotes.
func asText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return compact(v)
}

// quoteVariables escapes what a shell reads between double quotes.
func quoteVariables(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s)
}

// quote puts a text between single quotes.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// data sends a body in its media type.
func (b *builder) data(c entry[mediaType]) []string {
	v, ok := b.bodyOf(c.Value)
	fields, isObject := v.(object)
	switch {
	case c.Key == "multipart/form-data" && isObject:
		return b.form(c.Value, fields)
	case c.Key == "application/x-www-form-urlencoded" && isObject:
		var args []string
		for _, f := range fields {
			args = append(args, "--data-urlencode "+quote(f.name+"="+asText(f.value)))
		}
		return args
	case isJSON(c.Key) && ok:
		return []string{"-H " + quote("Content-Type: "+c.Key), "-d " + quote(text(tokens(v)))}
	case strings.HasPrefix(c.Key, "text/") && ok:
		return []string{"-H " + quote("Content-Type: "+c.Key), "--data-binary " + quote(asText(v))}
	}
	kind := quote("Content-Type: " + c.Key)
	if strings.Contains(c.Key, "*") { // a range of types, of which a request has one
		kind = `"Content-Type: $CONTENT_TYPE"`
	}
	return []string{"-H " + kind, "--data-binary @file"}
}

// form sends the parts of a form.
func (b *builder) form(m mediaType, fields object) []string {
	var args []string
	for _, f := range fields {
		if b.isFile(b.property(m.Schema, f.name, 0)) {
			for _, file := range b.fileNames(m, f) {
				args = append(args, "-F "+quote(f.name+"=@"+file))
			}
			continue
		}
		arg := f.name + "=" + formText(asText(f.value))
		if e, ok := m.Encoding.get(f.name); ok && e.ContentType != "" && !strings.ContainsAny(e.ContentType, "*,") {
			arg += ";type=" + e.ContentType
		}
		args = append(args, "-F "+quote(arg))
	}
	return args
}

// fileNames are those that the document's example gives the files of a part,
// else the part's own name. What was made up is no name.
func (b *builder) fileNames(m mediaType, f member) []string {
	if s := b.settled(m.Schema); m.Example.IsZero() && len(m.Examples) == 0 && (s == nil || len(examplesOf(s)) == 0) {
		return []string{f.name}
	}
	all, several := f.value.(list)
	if !several {
		all = list{f.value}
	}
	var names []string
	for _, one := range all {
		if name, ok := one.(string); ok {
			names = append(names, formText(name))
		}
	}
	if names == nil {
		return []string{f.name}
	}
	return names
}

// formText writes a part's text so that curl reads it as it is: bare, unless
// something in it would mean more.
func formText(s string) string {
	if !strings.Contains(s, ";") && strings.TrimLeft(s, `@<" `) == s {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// bodyOf is the document's first example of a body, else one that is made up.
func (b *builder) bodyOf(m mediaType) (any, bool) {
	if !m.Example.IsZero() {
		return plain(&m.Example), true
	}
	for _, e := range m.Examples {
		if ex := read[example](b, &e.Value); !ex.Value.IsZero() {
			return plain(&ex.Value), true
		}
	}
	if m.Schema == nil {
		return nil, false
	}
	return b.sample(m.Schema, true)
}

// settled follows a schema's references to the end.
func (b *builder) settled(s *schema) *schema {
	for hops := 0; s != nil && s.Ref != "" && hops < maxHops; hops++ {
		s = b.target(s.Ref)
	}
	return s
}

// property gives the schema of an object's field, nil where none says.
func (b *builder) property(s *schema, name string, depth int) *schema {
	if s = b.settled(s); s == nil || depth > maxDepth {
		return nil
	}
	if p, ok := s.Properties.get(name); ok {
		return b.settled(p)
	}
	for _, part := range s.AllOf {
		if p := b.property(part, name, depth+1); p != nil {
			return p
		}
	}
	return nil
}

// isFile tells whether a part of a form is bytes and not text: OpenAPI 3.1
// gives such a part a media type or no type at all, 3.0 the format binary.
func (b *builder) isFile(s *schema) bool {
	if s == nil || s.Bool != nil || hasOptions(s) {
		return false
	}
	if s.Items != nil {
		return b.isFile(b.settled(s.Items))
	}
	kind := b.typeWords(s, "any", maxDepth)
	return s.Format == "binary" || kind == nil || kind[0].Text == "bytes" ||
		s.ContentMediaType != "" && s.ContentEncoding == ""
}

// answers tells whether a success can be of such a media type.
func answers(rs []responseView, such func(mediaType string) bool) bool {
	for _, r := range rs {
		if r.Class == "s2" && slices.ContainsFunc(r.Media, func(m mediaView) bool { return such(m.Type) }) {
			return true
		}
	}
	return false
}

// isBinary tells whether a media type is something a terminal cannot show.
func isBinary(mediaType string) bool {
	return !isJSON(mediaType) && !strings.HasPrefix(mediaType, "text/")
}

// isStream tells whether an answer is to be read while it comes.
func isStream(mediaType string) bool { return mediaType == "text/event-stream" }
