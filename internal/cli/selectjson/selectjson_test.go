package selectjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"atelier/internal/cli/selectjson"
)

const page = `{"data": [
	{"id": "a", "status": "failed", "size": 9007199254740993, "tags": ["x", "y"], "tool": {"name": "Gradient <1>"}},
	{"id": "b", "status": "succeeded", "size": 20, "tags": [], "tool": null}
], "next_cursor": null, "odd name": 1.50}`

func TestSelect(t *testing.T) {
	t.Parallel()
	var v any
	d := json.NewDecoder(strings.NewReader(page))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]string{
		".data[].id":                       "a b",
		".data | length":                   "2",
		".data[0].size":                    "9007199254740993",
		".data[-1].id":                     "b",
		".data[5].id":                      "null",
		".data[1:][].id":                   "b",
		".data[:1][].id":                   "a",
		".data[1:0]":                       "[]",
		".next_cursor":                     "null",
		".next_cursor.deeper":              "null",
		".absent":                          "null",
		`."odd name"`:                      "1.50",
		`.["odd name"]`:                    "1.50",
		`.data[0]["id"]`:                   "a",
		"[.data[].id]":                     `["a","b"]`,
		".data[] | {id, name: .tool.name}": `{"id":"a","name":"Gradient <1>"} {"id":"b","name":null}`,
		".data[] | {id, tag: .tags[]}":     `{"id":"a","tag":"x"} {"id":"a","tag":"y"}`,
		".data[0] | .id, .status":          "a failed",
		`.data[] | select(.status == "failed").id`:      "a",
		".data[] | select(.size > 9007199254740992).id": "a",
		".data[] | select(.size <= 20) | .id":           "b",
		".data[] | select(.tool).id":                    "a",
		".data[] | select(.tool != null).id":            "a",
		".data[0] | keys":                               `["id","size","status","tags","tool"]`,
		".data[0].tags[]":                               "x y",
		".data[].id[]?":                                 "",
		".data[0].id | length":                          "1",
		" . data [ 0 ] . id ":                           "a",
		"(.data[0], .data[1]).id":                       "a b",
		"1 == 1.0":                                      "true",
	} {
		e, err := selectjson.Parse(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		var b strings.Builder
		if err := e.Print(&b, v); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
		if got := strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", " "); got != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
	for expression, want := range map[string]string{
		".data.id":                    `a list has no member "id"`,
		".data[].id[]":                "a text has no elements",
		".data[0].id[0]":              "a text has no element 0",
		`.data[] | select(.id > 1)`:   "a text and a number have no order",
		".data[0].size | keys":        "a number has no keys",
		".data[0].tool[1:]":           "an object has no part",
		".data[] | {id: .tags.wrong}": `a list has no member "wrong"`,
	} {
		e, err := selectjson.Parse(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if _, err := e.Select(v); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", expression, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"":              `"": the expression ends too early`,
		".data[":        `".data[": the expression ends too early`,
		".data[0":       `".data[0": column 8: "]" is missing`,
		".data[:]":      `".data[:]": column 8: unexpected "]"`,
		"data":          `"data": column 1: there is no function "data"; the functions are keys, length and select`,
		".a ; .b":       `".a ; .b": column 4: unexpected ";"`,
		".a |":          `".a |": the expression ends too early`,
		`."open`:        `".\"open": column 2: the text has no closing quote`,
		"{id name}":     `"{id name}": column 5: "," is missing`,
		"select .a":     `"select .a": column 8: "(" is missing`,
		".a == 1.2.3":   `".a == 1.2.3": column 7: "1.2.3" is not a number`,
		".data[1e9999]": `".data[1e9999]": column 8: "]" is missing`,
	} {
		_, err := selectjson.Parse(expression)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", expression, err, want)
		}
	}
	if _, err := selectjson.Parse(strings.Repeat("(", 10_000)); err == nil {
		t.Error("an expression of any depth is read")
	}
}

func FuzzSelect(f *testing.F) {
	f.Add(".data[] | {id, a: .b[0:2]} | select(.a == 1)")
	f.Fuzz(func(t *testing.T, expression string) {
		e, err := selectjson.Parse(expression)
		if err == nil {
			_, _ = e.Select(map[string]any{"data": []any{map[string]any{"id": "a"}, 1.0}})
		}
	})
}
