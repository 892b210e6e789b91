// Package apitest checks every response of a test against the OpenAPI
// document.
//
// The HTTP client of a test uses a Transport. For each response from a path
// under /api/ the Transport looks up the operation in the document. It fails
// the test if the status, the content type, the body or a header differs from
// the document. Properties that the document does not specify are failures
// too.
package apitest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	openapi "atelier/api"
)

// Contract checks responses against the OpenAPI document.
type Contract struct {
	doc   map[string]any
	base  string
	paths map[string]*regexp.Regexp // by path template
	// templates are the path templates, those with fewer parameters first,
	// because a path such as /library/marks is not an id of /library/{id}.
	templates []string
	compiler  *jsonschema.Compiler
	mu        sync.Mutex
	schemas   map[string]*jsonschema.Schema
}

// resource is the name of the OpenAPI document in schema references.
const resource = "openapi.json"

// Load parses the OpenAPI document.
var Load = sync.OnceValues(func() (*Contract, error) { return parseContract(openapi.Document) })

func parseContract(text []byte) (*Contract, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	// The validator needs numbers of type json.Number, so the document is
	// parsed again as JSON.
	plain, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		return nil, err
	}
	c := &Contract{doc: v.(map[string]any), paths: map[string]*regexp.Regexp{}, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.base = c.doc["servers"].([]any)[0].(map[string]any)["url"].(string)
	for template := range c.doc["paths"].(map[string]any) {
		pattern := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`)
		c.paths[template] = regexp.MustCompile("^" + regexp.QuoteMeta(c.pathPrefix(template)) + pattern + "$")
	}
	c.templates = slices.SortedFunc(maps.Keys(c.paths), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "{"), strings.Count(b, "{")), cmp.Compare(a, b))
	})
	forbidExtraMembers(c.doc["components"].(map[string]any)["schemas"])
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	return c, c.compiler.AddResource(resource, c.doc)
}

// pathPrefix returns the URL prefix of a path of the document. It is "" for
// paths that are not under /api/v2.
func (c *Contract) pathPrefix(template string) string {
	for _, op := range c.doc["paths"].(map[string]any)[template].(map[string]any) {
		if _, elsewhere := op.(map[string]any)["servers"]; elsewhere {
			return ""
		}
	}
	return c.base
}

// forbidExtraMembers makes the schemas of objects refuse members that they do
// not specify.
func forbidExtraMembers(node any) {
	switch n := node.(type) {
	case map[string]any:
		if _, isObject := n["properties"].(map[string]any); isObject {
			if _, said := n["additionalProperties"]; !said {
				n["additionalProperties"] = false
			}
		}
		for _, child := range n {
			forbidExtraMembers(child)
		}
	case []any:
		for _, child := range n {
			forbidExtraMembers(child)
		}
	}
}

// ListOperations returns the operations of the document, such as "GET
// /api/v2/tools".
func (c *Contract) ListOperations() []string {
	var all []string
	for template, item := range c.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			all = append(all, strings.ToUpper(method)+" "+c.pathPrefix(template)+template)
		}
	}
	return all
}

// ListOperationsWithBody returns the operations that have a request body and
// require a credential, such as "POST /boards".
func (c *Contract) ListOperationsWithBody() []string {
	var all []string
	for template, item := range c.doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			described := op.(map[string]any)
			security, given := described["security"].([]any)
			if _, takes := described["requestBody"]; takes && !(given && len(security) == 0) {
				all = append(all, strings.ToUpper(method)+" "+template)
			}
		}
	}
	return all
}

// CheckResponse returns an error that describes the first difference between a
// response and the document.
func (c *Contract) CheckResponse(method, path string, status int, header http.Header, body []byte) error {
	if err := checkHeaders(status, header); err != nil {
		return err
	}
	at, known := c.findResponse(method, path, status)
	if !known {
		if status < 400 {
			return fmt.Errorf("status %d is not in the document", status)
		}
		at = errorResponse
	}
	if known && at == errorResponse && status != http.StatusInternalServerError {
		return fmt.Errorf("the document does not name status %d for this operation", status)
	}
	if status == http.StatusNotModified || status == http.StatusNoContent {
		if len(body) != 0 {
			return fmt.Errorf("status %d has a body", status)
		}
		return nil
	}
	if method == http.MethodHead {
		return nil
	}
	if status < 300 && !c.hasContent(at) {
		if len(body) != 0 {
			return fmt.Errorf("status %d has a body", status)
		}
		return nil
	}
	if other := header.Get("Content-Type"); slices.Contains(otherTypes, other) && c.hasResponse(at, other) {
		return nil
	}
	if got := header.Get("Content-Type"); got != "application/json" {
		return fmt.Errorf("content type is %q", got)
	}
	schema, err := c.compileSchema(at + "/content/application~1json/schema")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("body is not JSON: %w", err)
	}
	if err := schema.Validate(v); err != nil {
		return err
	}
	if status >= 400 {
		e := v.(map[string]any)["error"].(map[string]any)
		if e["trace_id"] != header.Get("X-Trace-Id") {
			return fmt.Errorf("trace_id %v is not the header's %q", e["trace_id"], header.Get("X-Trace-Id"))
		}
		if e["code"] == "RATE_LIMITED" {
			return checkRateLimited(e["details"].(map[string]any), header.Get("Retry-After"))
		}
	}
	return nil
}

// checkRateLimited checks that a RATE_LIMITED error has the required details.
func checkRateLimited(details map[string]any, retryAfter string) error {
	for _, name := range []string{"limit", "window_seconds", "retry_after_seconds"} {
		n, ok := details[name].(json.Number)
		if !ok {
			return fmt.Errorf("RATE_LIMITED without a number %s in its details", name)
		}
		if _, err := n.Int64(); err != nil {
			return fmt.Errorf("%s of RATE_LIMITED: %w", name, err)
		}
	}
	if got := details["retry_after_seconds"].(json.Number).String(); got != retryAfter {
		return fmt.Errorf("retry_after_seconds is %s, Retry-After is %q", got, retryAfter)
	}
	return nil
}

// errorResponse is the pointer to the description of responses that operations
// need not list: responses to unknown methods and paths, and internal errors.
const errorResponse = "/components/responses/Error"

// otherTypes are the content types of responses that are not JSON: event
// streams, CSV and ZIP archives.
var otherTypes = []string{"text/event-stream", "text/csv; charset=utf-8; header=present", "application/zip"}

// hasResponse reports whether the response at pointer in the document has the
// content type.
func (c *Contract) hasResponse(pointer, mimeType string) bool {
	mimeType, _, _ = strings.Cut(mimeType, ";")
	_, err := c.compileSchema(pointer + "/content/" + strings.ReplaceAll(mimeType, "/", "~1") + "/schema")
	return err == nil
}

// hasContent reports whether the response at pointer in the document has a
// body.
func (c *Contract) hasContent(pointer string) bool {
	node := any(c.doc)
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		members, _ := node.(map[string]any)
		node = members[strings.ReplaceAll(step, "~1", "/")]
	}
	_, has := node.(map[string]any)["content"]
	return has
}

// checkHeaders checks the headers that every response must have.
func checkHeaders(status int, h http.Header) error {
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"} {
		if got := h.Get(name); got != want {
			return fmt.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if len(h.Get("X-Trace-Id")) != 32 {
		return fmt.Errorf("X-Trace-Id is %q", h.Get("X-Trace-Id"))
	}
	if status == http.StatusUnauthorized && h.Get("WWW-Authenticate") != "Bearer" {
		return fmt.Errorf("401 without WWW-Authenticate: Bearer")
	}
	if status == http.StatusMethodNotAllowed && h.Get("Allow") == "" {
		return fmt.Errorf("405 without Allow")
	}
	if (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && h.Get("Retry-After") == "" {
		return fmt.Errorf("%d without Retry-After", status)
	}
	return nil
}

// findResponse returns the JSON pointer to the description of a response in
// the document.
func (c *Contract) findResponse(method, path string, status int) (pointer string, known bool) {
	methods := []string{method}
	if method == http.MethodHead {
		methods = append(methods, http.MethodGet) // operations that are described for GET serve HEAD too
	}
	for _, one := range methods {
		if pointer, known = c.findDescribed(one, path, status); known {
			return pointer, true
		}
	}
	return "", false
}

// findDescribed is findResponse for an operation that the document describes
// with the method.
func (c *Contract) findDescribed(method, path string, status int) (pointer string, known bool) {
	for _, template := range c.templates {
		if !c.paths[template].MatchString(path) {
			continue
		}
		op, ok := c.doc["paths"].(map[string]any)[template].(map[string]any)[strings.ToLower(method)].(map[string]any)
		if !ok {
			continue
		}
		responses := op["responses"].(map[string]any)
		for _, name := range []string{fmt.Sprint(status), "default"} {
			r, ok := responses[name].(map[string]any)
			if !ok || name == "default" && status < 400 {
				continue
			}
			if ref, ok := r["$ref"].(string); ok {
				return strings.TrimPrefix(ref, "#"), true
			}
			return "/paths/" + strings.ReplaceAll(template, "/", "~1") + "/" + strings.ToLower(method) + "/responses/" + name, true
		}
	}
	return "", false
}

func (c *Contract) compileSchema(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.schemas[pointer]; ok {
		return s, nil
	}
	s, err := c.compiler.Compile(resource + "#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
	if err == nil {
		c.schemas[pointer] = s
	}
	return s, err
}

// Transport checks every response against the OpenAPI document.
type Transport struct {
	T    testing.TB
	Next http.RoundTripper // nil means http.DefaultTransport
}

// RoundTrip sends the request and checks the response against the OpenAPI
// document.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	next := t.Next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(r)
	if err != nil || !strings.HasPrefix(r.URL.Path, "/api/") || res.StatusCode/100 == 1 {
		return res, err
	}
	var body []byte
	if res.Header.Get("Content-Type") != otherTypes[0] {
		body, err = io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return nil, err
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
	}
	c, err := Load()
	if err != nil {
		return nil, err
	}
	shown, err := plainBody(res, body)
	if err == nil {
		err = c.CheckResponse(r.Method, r.URL.Path, res.StatusCode, res.Header, shown)
	}
	if err != nil {
		t.T.Errorf("%s %s breaks the contract: %v\n%s", r.Method, r.URL, err, shown)
	}
	return res, nil
}

// plainBody returns the response body, decompressed if necessary.
func plainBody(res *http.Response, body []byte) ([]byte, error) {
	if res.Header.Get("Content-Encoding") != "gzip" || len(body) == 0 {
		return body, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Client returns an HTTP client that checks every response against the OpenAPI
// document and follows no redirects.
func Client(t testing.TB) *http.Client {
	return &http.Client{
		Transport:     Transport{T: t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
