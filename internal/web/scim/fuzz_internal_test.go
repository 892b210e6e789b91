package scim

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// samples are the resources that filters and changes are tried on.
var samples = map[*resourceType]string{
	&userType: `{"userName": "anna@example.com", "externalId": "7", "active": true, "displayName": "Anna", "name": {"givenName": "Anna", "familyName": "Berg"},
		"emails": [{"value": "anna@example.com", "type": "work", "primary": true}, {"value": "a@example.org"}]}`,
	&groupType: `{"displayName": "Look", "externalId": "9", "members": [{"value": "1"}, {"value": "2"}]}`,
}

// newSample returns the resource of a type that filters and changes are tried on.
func newSample(t testing.TB, kind *resourceType) object {
	t.Helper()
	var sent map[string]any
	if err := json.Unmarshal([]byte(samples[kind]), &sent); err != nil {
		t.Fatal(err)
	}
	o, err := readAttributes(kind.core.attributes, sent, "")
	if err != nil {
		t.Fatal(err)
	}
	if kind.extension != nil {
		o[kind.extension.id] = object{"department": "Look"}
	}
	return o
}

// isProblem reports whether an error is one that the client is told about.
func isProblem(err error) bool {
	_, ok := errors.AsType[*problem](err)
	return ok
}

// FuzzParseFilter proves that filters are refused with a reason or give an
// answer: "not" turns it around, and a filter joined with itself stays the same.
func FuzzParseFilter(f *testing.F) {
	for _, text := range []string{
		`userName eq "anna@example.com"`, `userName sw "A" and active eq true`, `not (active eq true) or emails pr`, `emails[type eq "work" and value co "@"]`,
		`emails.type eq "work"`, `meta.lastModified gt "2026-01-01T00:00:00Z"`, `urn:ietf:params:scim:schemas:core:2.0:User:userName eq "x"`, `members.value eq "1"`,
		`userName eq "\u0061\\"`, `active eq "true"`, `userName eq null`, `userName eq 12.5e3`, `((((active eq true))))`, `displayName co ""`, `groups pr`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range resourceTypes {
			one := newSample(t, kind)
			parsed, err := kind.parseFilter(text)
			if err != nil {
				if !isProblem(err) {
					t.Errorf("%q = %v", text, err)
				}
				continue
			}
			matches := parsed.matches(one)
			if not, err := kind.parseFilter("not (" + text + ")"); err == nil && not.matches(one) == matches {
				t.Errorf("%q and its opposite both match: %v", text, matches)
			}
			if twice, err := kind.parseFilter("(" + text + ") and (" + text + ")"); err == nil && twice.matches(one) != matches {
				t.Errorf("%q matches: %v, twice: %v", text, matches, !matches)
			}
			if want, ok := parsed.equalTo["displayname"]; ok && matches && !strings.EqualFold(want, one["displayName"].(string)) {
				t.Errorf("%q matches %v and requires displayName to be %q", text, one["displayName"], want)
			}
		}
	})
}

// FuzzPatch proves that changes are refused with a reason or lead to a resource
// that can be sent, read again, and that the same replacement does not change
// any further.
func FuzzPatch(f *testing.F) {
	for _, operations := range []string{
		`[{"op": "replace", "path": "active", "value": false}]`,
		`[{"op": "Add", "path": "emails[type eq \"home\"].value", "value": "h@example.com"}]`,
		`[{"op": "remove", "path": "emails[primary eq true]"}]`, `[{"op": "remove", "path": "name.givenName"}]`,
		`[{"op": "add", "value": {"name.familyName": "Berg", "emails": [{"value": "x@example.com", "primary": true}]}}]`,
		`[{"op": "replace", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department", "value": "Sound"}]`,
		`[{"op": "replace", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User", "value": {"manager": {"value": "1"}}}]`,
		`[{"op": "add", "path": "emails", "value": [{"value": "anna@example.com"}]}, {"op": "remove", "path": "emails", "value": [{"value": "anna@example.com"}]}]`,
		`[{"op": "replace", "path": "emails.type", "value": "home"}]`, `[{"op": "remove"}]`, `[{"op": "replace", "path": "name", "value": null}]`, `[]`,
		`[{"op": "add", "path": "members", "value": [{"value": "1"}]}]`,
	} {
		f.Add([]byte(`{"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": ` + operations + `}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPatch, "/", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/scim+json")
		sent, err := readBody(httptest.NewRecorder(), r)
		if err != nil {
			return
		}
		for _, kind := range resourceTypes {
			operations, err := kind.parseOperations(sent)
			if err != nil {
				if !isProblem(err) {
					t.Errorf("%q = %v", body, err)
				}
				continue
			}
			changed := newSample(t, kind)
			if err := kind.applyOperations(changed, operations); err != nil {
				if !isProblem(err) {
					t.Errorf("%q = %v", body, err)
				}
				continue
			}
			text, err := json.Marshal(changed)
			if err != nil {
				t.Fatalf("%q leads to %#v: %v", body, changed, err)
			}
			var again map[string]any
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatal(err)
			}
			if len(operations) != 1 || operations[0].op != "replace" {
				continue
			}
			if operations, err = kind.parseOperations(sent); err != nil {
				t.Fatal(err)
			}
			if err := kind.applyOperations(changed, operations); err != nil {
				if operations[0].path.filter == nil { // a replaced value may no longer match its filter
					t.Errorf("%q works once: %v", body, err)
				}
				continue
			}
			var twice map[string]any
			if text, err = json.Marshal(changed); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &twice); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(twice, again) {
				t.Errorf("%q changes %v to %v", body, again, twice)
			}
		}
	})
}

// FuzzParseSelection proves that a selection of attributes keeps the id, adds
// nothing, and does not change what was selected before.
func FuzzParseSelection(f *testing.F) {
	f.Add("userName,emails.value", "")
	f.Add("", "emails,name")
	f.Add("urn:ietf:params:scim:schemas:core:2.0:User:userName", "id")
	f.Add("emails[type eq \"work\"]", ".")
	f.Fuzz(func(t *testing.T, attributes, excluded string) {
		for _, kind := range resourceTypes {
			selected, err := kind.parseSelection(splitList(attributes), splitList(excluded))
			if err != nil {
				if !isProblem(err) {
					t.Errorf("%q without %q = %v", attributes, excluded, err)
				}
				continue
			}
			full := newSample(t, kind)
			full["id"] = "1"
			full["schemas"] = []string{kind.core.id}
			part := kind.selectAttributes(full, selected)
			if part["id"] != "1" || part["schemas"] == nil {
				t.Errorf("%q without %q = %v", attributes, excluded, part)
			}
			for name := range part {
				if _, ok := full[name]; !ok {
					t.Errorf("%q without %q shows %s, which the resource does not have", attributes, excluded, name)
				}
			}
			if again := kind.selectAttributes(part, selected); !reflect.DeepEqual(again, part) {
				t.Errorf("%q without %q = %v, selected again %v", attributes, excluded, part, again)
			}
		}
	})
}
