package main

import (
	"fmt"
	"slices"
	"strings"

	"atelier/build/apispec"
)

// generateCalls writes the groups of calls and a method for each operation.
func generateCalls(d document) (string, error) {
	endpoints := d.operationsByID()
	var groups []string
	var methods strings.Builder
	for _, o := range operations {
		e, ok := endpoints[o.id]
		if !ok {
			return "", fmt.Errorf("operations.go has %s, which is not in the document", o.id)
		}
		delete(endpoints, o.id)
		if !slices.Contains(groups, o.group) {
			groups = append(groups, o.group)
		}
		if o.manual {
			continue
		}
		text, err := d.callSource(o, e)
		if err != nil {
			return "", fmt.Errorf("operation %s: %w", o.id, err)
		}
		methods.WriteString(text)
	}
	for id := range endpoints {
		return "", fmt.Errorf("operation %s has no line in build/clientgen/operations.go", id)
	}
	return groupsSource(groups) + methods.String(), nil
}

// groupsSource writes the struct of all groups, and the type of each group.
func groupsSource(groups []string) string {
	var b strings.Builder
	b.WriteString("package client\n\nimport (\n\t\"context\"\n\t\"io\"\n\t\"iter\"\n\t\"net/http\"\n\t\"net/url\"\n\t\"time\"\n)\n\n")
	b.WriteString("// Calls has the calls of the API, in groups. Client embeds it.\ntype Calls struct {\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "\t%s *%sCalls\n", g, g)
	}
	b.WriteString("}\n\nfunc newCalls(c *Client) Calls {\n\treturn Calls{\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "\t\t%s: &%sCalls{c},\n", g, g)
	}
	b.WriteString("\t}\n}\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "\n// %sCalls has the calls of the field %s of a Client.\ntype %sCalls struct{ client *Client }\n", g, g, g)
	}
	return b.String()
}

// call is an operation with the parts of its Go method.
type call struct {
	operation
	endpoint *apispec.Operation
	query    []*apispec.Parameter // members of the parameter struct
	headers  []*apispec.Parameter
	body     string // Go type of the JSON body; "" for none
	result   string // Go type of the response; "" for none
	stream   bool   // the response is a file
	item     string // Go type of an item of a list; "" if the result is no list
	team     bool   // sends the client's team
	teams    bool   // sends the team of the parameters, or else the client's
}

// callSource writes the method of an operation, its parameter struct and its
// iterator.
func (d document) callSource(o operation, e *apispec.Operation) (string, error) {
	c := &call{operation: o, endpoint: e}
	for _, p := range e.Parameters {
		d.addParameter(c, p)
	}
	if err := d.addBody(c); err != nil {
		return "", err
	}
	if err := d.addResult(c); err != nil {
		return "", err
	}

	var b strings.Builder
	params, err := d.paramsSource(c)
	if err != nil {
		return "", err
	}
	b.WriteString(params)
	b.WriteString(c.methodSource())
	if o.all != "" {
		if c.item == "" {
			return "", fmt.Errorf("the response has no pages")
		}
		b.WriteString(c.iteratorSource())
	}
	return b.String(), nil
}

// addParameter sorts a parameter into the call.
func (d document) addParameter(c *call, p *apispec.Parameter) {
	name := apispec.RefName(p.Ref)
	p = d.ResolveParameter(p)
	switch {
	case name == "TeamID":
		c.team = true
	case name == "IfNoneMatch", name == "ReportFormat":
		// Responses 304 and CSV are no JSON: the client does not request them here.
	case p.In == "query":
		c.query = append(c.query, p)
		c.teams = c.teams || name == "LibraryTeams"
	case p.In == "header":
		c.headers = append(c.headers, p)
	}
}

// addBody finds the type of the JSON body.
func (d document) addBody(c *call) error {
	if c.endpoint.RequestBody == nil {
		return nil
	}
	media, ok := c.endpoint.RequestBody.Content.Find("application/json")
	if !ok {
		return fmt.Errorf("the body is no JSON; mark the operation as manual")
	}
	var err error
	c.body, err = d.goType(media.Schema)
	return err
}

// addResult finds the type of the response with the first 2xx status.
func (d document) addResult(c *call) error {
	for _, r := range c.endpoint.Responses {
		if !strings.HasPrefix(r.Key, "2") {
			continue
		}
		content := d.ResolveResponse(r.Value).Content
		if len(content) == 0 {
			return nil
		}
		media, ok := content.Find("application/json")
		if !ok {
			c.stream = true
			return nil
		}
		var err error
		if c.result, err = d.goType(media.Schema); err != nil {
			return err
		}
		target := d.ResolveSchema(media.Schema)
		data, hasData := target.Properties.Find("data")
		if _, hasNext := target.Properties.Find("next_cursor"); hasData && hasNext {
			c.item, err = d.goType(data.Items)
		}
		return err
	}
	return fmt.Errorf("there is no 2xx response")
}

// paramsName is the name of the parameter struct, such as ToolsListParams.
func (c *call) paramsName() string { return c.group + c.method + "Params" }

func (c *call) hasParams() bool { return len(c.query)+len(c.headers) > 0 }

// paramsSource writes the parameter struct and its conversion to a query and
// to headers.
func (d document) paramsSource(c *call) (string, error) {
	if !c.hasParams() {
		return "", nil
	}
	var b strings.Builder
	name := c.paramsName()
	fmt.Fprintf(&b, "\n// %s are the parameters of %sCalls.%s. The zero value of a field leaves the parameter out.\ntype %s struct {\n", name, c.group, c.method, name)
	var queries, headers strings.Builder
	for _, p := range slices.Concat(c.query, c.headers) {
		goType, err := d.goType(p.Schema)
		if err != nil {
			return "", fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		goName := exportedName(p.Name)
		text := p.Description
		switch {
		case p.Name == "Idempotency-Key":
			text = "The idempotency key; \"\" lets the client make one, which it keeps over all its retries."
		case c.teams && p.Name == "team_id":
			text = "The team, or several teams separated by commas; \"\" means the client's team."
		}
		b.WriteString(comment("\t", text))
		var add string
		switch goType {
		case "string":
			add = fmt.Sprintf("addText(v, %q, p.%s)\n", p.Name, goName)
		case "int64":
			add = fmt.Sprintf("addNumber(v, %q, p.%s)\n", p.Name, goName)
		case "time.Time":
			add = fmt.Sprintf("addTime(v, %q, p.%s)\n", p.Name, goName)
		case "bool":
			goType = "*bool"
			add = fmt.Sprintf("addBool(v, %q, p.%s)\n", p.Name, goName)
		default:
			add = fmt.Sprintf("addText(v, %q, string(p.%s))\n", p.Name, goName)
		}
		fmt.Fprintf(&b, "\t%s %s\n", goName, goType)
		if p.In == "header" {
			fmt.Fprintf(&headers, "\tif p.%s != \"\" {\n\t\th.Set(%q, p.%s)\n\t}\n", goName, p.Name, goName)
		} else {
			queries.WriteString("\t" + add)
		}
	}
	b.WriteString("}\n")
	if queries.Len() > 0 {
		fmt.Fprintf(&b, "\nfunc (p %s) query() url.Values {\n\tv := url.Values{}\n%s\treturn v\n}\n", name, queries.String())
	}
	if headers.Len() > 0 {
		fmt.Fprintf(&b, "\nfunc (p %s) header() http.Header {\n\th := http.Header{}\n%s\treturn h\n}\n", name, headers.String())
	}
	return b.String(), nil
}

// arguments returns the arguments of the method after the context, with or
// without their types.
func (c *call) arguments(types bool) string {
	var all []string
	for _, p := range pathParameters(c.endpoint.Path) {
		all = append(all, typed(argumentName(p), "string", types))
	}
	if c.body != "" {
		all = append(all, typed("body", c.body, types))
	}
	if c.hasParams() {
		all = append(all, typed("p", c.paramsName(), types))
	}
	return strings.Join(append([]string{typed("ctx", "context.Context", types)}, all...), ", ")
}

func typed(name, goType string, types bool) string {
	if types {
		return name + " " + goType
	}
	return name
}

// pathParameters returns the names in braces of a path.
func pathParameters(path string) []string {
	var names []string
	for _, element := range strings.Split(path, "/") {
		if strings.HasPrefix(element, "{") {
			names = append(names, strings.Trim(element, "{}"))
		}
	}
	return names
}

// pathSource returns a Go expression for the path.
func pathSource(path string) string {
	var parts []string
	text := ""
	for _, element := range strings.Split(path, "/")[1:] {
		text += "/"
		if !strings.HasPrefix(element, "{") {
			text += element
			continue
		}
		parts = append(parts, fmt.Sprintf("%q", text), "url.PathEscape("+argumentName(strings.Trim(element, "{}"))+")")
		text = ""
	}
	if text != "" {
		parts = append(parts, fmt.Sprintf("%q", text))
	}
	return strings.Join(parts, " + ")
}

// methodSource writes the method.
func (c *call) methodSource() string {
	e := c.endpoint
	summary := strings.TrimSuffix(strings.TrimSpace(e.Summary), ".")
	text := fmt.Sprintf("%s: %s (%s %s).", c.method, lowerFirst(summary), e.Method, e.Path)
	if e.Description != "" {
		text += "\n\n" + e.Description
	}
	results := "error"
	send := "callEmpty"
	switch {
	case c.stream:
		results = "(io.ReadCloser, error)"
		send = "callStream"
	case c.result != "":
		results = "(*" + c.result + ", error)"
		send = "callJSON[" + c.result + "]"
	}
	var b strings.Builder
	b.WriteString("\n" + comment("", text))
	fmt.Fprintf(&b, "func (g *%sCalls) %s(%s) %s {\n", c.group, c.method, c.arguments(true), results)
	fmt.Fprintf(&b, "\treturn %s(ctx, g.client, &request{\n\t\tmethod: http.Method%s,\n\t\tpath: %s,\n", send, e.Method[:1]+strings.ToLower(e.Method[1:]), pathSource(e.Path))
	if len(c.query) > 0 {
		b.WriteString("\t\tquery: p.query(),\n")
	}
	if len(c.headers) > 0 {
		b.WriteString("\t\theader: p.header(),\n")
	}
	if c.body != "" {
		b.WriteString("\t\tjson: body,\n")
	}
	if c.team || c.teams {
		b.WriteString("\t\tteam: true,\n")
	}
	if e.Security != nil && len(*e.Security) == 0 {
		b.WriteString("\t\tpublic: true,\n")
	}
	if c.repeat {
		b.WriteString("\t\trepeatable: true,\n")
	}
	if slices.ContainsFunc(c.headers, func(p *apispec.Parameter) bool { return p.Name == "Idempotency-Key" }) {
		b.WriteString("\t\tkeyed: true,\n")
	}
	b.WriteString("\t})\n}\n")
	return b.String()
}

// iteratorSource writes the method that iterates over all pages.
func (c *call) iteratorSource() string {
	text := fmt.Sprintf("%s iterates over the items of all pages of %s. It reads a page when the loop comes to it; after an error the iteration ends.", c.all, c.method)
	return "\n" + comment("", text) + fmt.Sprintf(`func (g *%sCalls) %s(%s) iter.Seq2[%s, error] {
	return eachItem(p.Cursor, func(cursor string) ([]%s, *string, error) {
		p := p // the caller may use the iterator several times at once
		p.Cursor = cursor
		page, err := g.%s(%s)
		if err != nil {
			return nil, nil, err
		}
		return page.Data, page.NextCursor, nil
	})
}
`, c.group, c.all, c.arguments(true), c.item, c.item, c.method, c.arguments(false))
}

func lowerFirst(text string) string {
	if len(text) > 1 && strings.ToUpper(text[:2]) == text[:2] {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}
