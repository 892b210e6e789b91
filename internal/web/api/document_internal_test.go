package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atelier/internal/web/access"
)

// described is what the tests look at of the served document.
type described struct {
	Servers []struct{ URL string }
	Paths   map[string]map[string]describedOperation
	// Components are by kind, then by name.
	Components map[string]map[string]json.RawMessage
}

type describedOperation struct {
	OperationID string
	Parameters  []describedParameter
	RequestBody json.RawMessage
	Responses   map[string]json.RawMessage
	Security    *[]any
	Servers     []struct{ URL string }
}

type describedParameter struct {
	Ref  string `json:"$ref"`
	Name string
	In   string
}

func servedDocument(t *testing.T) (text []byte, doc described) {
	t.Helper()
	text, err := documentJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return text, doc
}

// parameters gives those of an operation, references followed.
func (d described) parameters(t *testing.T, op describedOperation) []describedParameter {
	t.Helper()
	var all []describedParameter
	for _, p := range op.Parameters {
		if name, isRef := strings.CutPrefix(p.Ref, "#/components/parameters/"); isRef {
			if err := json.Unmarshal(d.Components["parameters"][name], &p); err != nil {
				t.Fatalf("%s: %v", p.Ref, err)
			}
		}
		all = append(all, p)
	}
	return all
}

// expectedStatuses derives the errors that an operation can answer from who may
// call it and what it takes.
func expectedStatuses(rule access.Rule, parameters []describedParameter, hasBody bool) []int {
	expected := []int{http.StatusTooManyRequests}
	if !rule.Open {
		expected = append(expected, http.StatusUnauthorized, http.StatusServiceUnavailable)
	}
	if !rule.Open && (len(rule.Kinds) < 3 || rule.Account != access.NoAccount || !rule.Unverified) {
		expected = append(expected, http.StatusForbidden)
	}
	if hasBody {
		expected = append(expected, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType)
	}
	for _, p := range parameters {
		switch {
		case p.In == "query" && !rule.Open:
			expected = append(expected, http.StatusBadRequest)
		case p.In == "path":
			expected = append(expected, http.StatusNotFound)
		case p.Name == "If-Match":
			expected = append(expected, http.StatusBadRequest, http.StatusPreconditionFailed)
		case p.Name == "Idempotency-Key":
			expected = append(expected, http.StatusBadRequest, http.StatusConflict)
		}
	}
	return expected
}

// TestDocumentNamesErrors holds every operation to the errors that follow from
// its access rule, parameters and body. The errors that only a handler knows of
// are held by package apitest, which refuses answers that are not named.
func TestDocumentNamesErrors(t *testing.T) {
	t.Parallel()
	_, doc := servedDocument(t)
	rules := map[string]access.Rule{}
	for _, rt := range allRoutes() {
		rules[rt.Method+" "+rt.Path] = rt.Rule
	}

	for path, operations := range doc.Paths {
		for method, op := range operations {
			server := doc.Servers[0].URL
			if len(op.Servers) > 0 {
				server = strings.TrimSuffix(op.Servers[0].URL, "/")
			}
			rule, isServed := rules[strings.ToUpper(method)+" "+server+path]
			if !isServed {
				t.Errorf("%s is not served", op.OperationID)
				continue
			}
			if isOpen := op.Security != nil && len(*op.Security) == 0; isOpen != rule.Open {
				t.Errorf("%s: the document says open = %v, the rule %v", op.OperationID, isOpen, rule.Open)
			}

			for _, status := range expectedStatuses(rule, doc.parameters(t, op), op.RequestBody != nil) {
				if _, named := op.Responses[strconv.Itoa(status)]; !named {
					t.Errorf("%s (%s %s) does not name %d %s", op.OperationID, strings.ToUpper(method), path, status, http.StatusText(status))
				}
			}
			if _, named := op.Responses["default"]; !named {
				t.Errorf("%s has no default answer", op.OperationID)
			}
		}
	}
}

// TestDocumentComponentsAreUsed finds components that nothing refers to.
func TestDocumentComponentsAreUsed(t *testing.T) {
	t.Parallel()
	text, doc := servedDocument(t)
	for kind, components := range doc.Components {
		for name := range components {
			reference := []byte(`"#/components/` + kind + `/` + name + `"`)
			if kind == "securitySchemes" {
				reference = []byte(`{"` + name + `":[]}`)
			}
			if !bytes.Contains(text, reference) {
				t.Errorf("nothing refers to %s %s", kind, name)
			}
		}
	}
}

// TestDocumentHasNoExtensions: an extension is for our own tools until somebody
// decides otherwise.
func TestDocumentHasNoExtensions(t *testing.T) {
	t.Parallel()
	text, _ := servedDocument(t)
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}

	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch n := node.(type) {
		case map[string]any:
			for name, child := range n {
				if strings.HasPrefix(name, "x-") {
					t.Errorf("%s/%s is served", at, name)
				}
				walk(at+"/"+name, child)
			}
		case []any:
			for i, child := range n {
				walk(at+"/"+strconv.Itoa(i), child)
			}
		}
	}
	walk("", doc)
}

// TestDocumentNamesItsObjects finds objects and enums that have no name of their
// own where generators would have to make one up: in parameters, bodies,
// answers, lists, maps and choices. A member of a named object gives them a name.
func TestDocumentNamesItsObjects(t *testing.T) {
	t.Parallel()
	text, _ := servedDocument(t)
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}

	needsName := func(schema any) bool {
		s, _ := schema.(map[string]any)
		_, isObject := s["properties"]
		_, isMap := s["additionalProperties"]
		_, isEnum := s["enum"]
		return isObject || isMap || isEnum
	}
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch n := node.(type) {
		case map[string]any:
			for name, child := range n {
				here := at + "/" + name
				if slices.Contains([]string{"schema", "items", "additionalProperties"}, name) && needsName(child) {
					t.Errorf("%s has no name", here)
				}
				if types, isList := n["type"].([]any); isList && needsName(n) {
					t.Errorf("%s is one of %v: name it, and offer null beside it", at, types)
				}
				walk(here, child)
			}
		case []any:
			parent := at[strings.LastIndexByte(at, '/')+1:]
			for i, child := range n {
				here := at + "/" + strconv.Itoa(i)
				if slices.Contains([]string{"oneOf", "anyOf"}, parent) && needsName(child) {
					t.Errorf("%s has no name", here)
				}
				walk(here, child)
			}
		}
	}
	walk("", doc)
}

// TestDocumentBodiesHaveNoDefaults: openapi-typescript takes a member with a
// default for one that is always there, in requests too.
func TestDocumentBodiesHaveNoDefaults(t *testing.T) {
	t.Parallel()
	_, doc := servedDocument(t)
	for name, text := range doc.Components["schemas"] {
		var schema struct {
			Properties map[string]struct{ Default json.RawMessage }
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		for member, s := range schema.Properties {
			if s.Default != nil {
				t.Errorf("%s.%s has a default: say in its description what it is when left out", name, member)
			}
		}
	}
}
