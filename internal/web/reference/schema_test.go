package reference_test

import (
	"html"
	"regexp"
	"strings"
	"testing"
)

// withSchemas makes a document that has only schemas, in flow style.
func withSchemas(schemas string) []byte {
	return []byte("openapi: 3.1.0\ninfo: {title: T, version: '1'}\ncomponents:\n  schemas: {" + schemas + "}\n")
}

// section cuts the part about one schema out of a page.
func section(t *testing.T, page, name string) string {
	t.Helper()
	_, part, found := strings.Cut(page, `<article class="entry" id="schema-`+name+`"`)
	if !found {
		t.Fatalf("schema %s has no section", name)
	}
	part, _, _ = strings.Cut(part, "</article>")
	return part
}

func TestSchemasInWords(t *testing.T) {
	t.Parallel()
	const other = ", Tool: {type: object, properties: {at: {type: string, format: date-time, minLength: 3}}}"
	for _, c := range []struct{ name, schema, want string }{
		{"a type", "{type: string}", "string"},
		{"a format", "{type: integer, format: int64}", "integer <int64>"},
		{"null too", "{type: [string, 'null']}", "string or null"},
		{"no type", "{description: Words.}", "any Words."},
		{"true", "true", "any"},
		{"false", "false", "nothing"},
		{"a list", "{type: array, items: {type: string, pattern: ^a+$}}", "array of string each matches ^a+$"},
		{"a list of either", "{type: array, items: {type: [string, integer]}}", "array of (string or integer)"},
		{"a tuple", "{type: array, prefixItems: [{type: string}, {type: integer}]}", "array of (string, integer)"},
		{"a map", "{type: object, additionalProperties: {$ref: '#/components/schemas/Tool'}}", "map of Tool"},
		{"a closed object", "{type: object, additionalProperties: false}", "no other fields"},
		{"an open object", "{type: object, additionalProperties: true}", "may have any other fields"},
		{"one of", "{oneOf: [{$ref: '#/components/schemas/Tool'}, {type: 'null'}]}", "Tool or null"},
		{"any of", "{anyOf: [{type: string}, {type: integer}]}", "string and/or integer"},
		{"all of", "{allOf: [{$ref: '#/components/schemas/Tool'}, {type: object, required: [a], properties: {a: {type: string}}}]}", "Tool and object a required string"},
		{"required elsewhere", "{allOf: [{properties: {a: {type: string}}}, {required: [a]}]}", "a required string"},
		{"a narrower reference", "{allOf: [{$ref: '#/components/schemas/Tool'}, {required: [at]}]}", "Tool requires at"},
		{"options that only require", "{type: object, oneOf: [{required: [a]}, {required: [b]}]}", "object one option object requires a one option object requires b"},
		{"options in place", "{oneOf: [{title: Small, type: object, properties: {a: {type: string}}}]}", "Small object a string"},
		{"a discriminator", "{oneOf: [{$ref: '#/components/schemas/Tool'}], discriminator: {propertyName: kind, mapping: {t: '#/components/schemas/Tool'}}}", "told apart by kind where kind is t: Tool"},
		{"an enum", "{type: string, enum: [COST, '1', null]}", `one of COST "1" null`},
		{"an enum without a type", "{enum: [1, 2]}", "integer one of 1 2"},
		{"a constant", "{const: false}", "boolean always false"},
		{"a default", "{type: string, default: ''}", `default ""`},
		{"null by default", "{type: [string, 'null'], default: null}", "default null"},
		{"bounds", "{type: integer, minimum: 1, maximum: 100}", "1 to 100"},
		{"a lower bound", "{type: integer, minimum: 0}", "at least 0"},
		{"an upper bound", "{type: number, maximum: 0.5}", "at most 0.5"},
		{"open bounds", "{type: number, exclusiveMinimum: 0, exclusiveMaximum: 1}", "more than 0, less than 1"},
		{"a step", "{type: integer, multipleOf: 8}", "a multiple of 8"},
		{"lengths", "{type: string, minLength: 1, maxLength: 64}", "1 to 64 characters"},
		{"an exact length", "{type: string, minLength: 1, maxLength: 1}", "exactly 1 character"},
		{"a count", "{type: array, minItems: 1, uniqueItems: true}", "at least 1 item no item twice"},
		{"a number of fields", "{type: object, maxProperties: 2}", "at most 2 fields"},
		{"names by pattern", "{patternProperties: {^x-: {type: string}}}", "names like ^x- string"},
		{"other names", "{properties: {a: {type: string}}, additionalProperties: {type: integer}}", "any other name integer"},
		{"content", "{type: string, contentEncoding: base64, contentMediaType: image/png}", "encoded as base64 content is image/png"},
		{"bytes", "{contentMediaType: image/png}", "bytes content is image/png"},
		{"an example", "{type: string, examples: [fox]}", "for example fox"},
		{"flags", "{properties: {a: {readOnly: true, deprecated: true}, b: {writeOnly: true}}}", "a any deprecated in answers only b any in requests only"},
		{"fields in fields", "{properties: {a: {type: array, items: {properties: {b: {type: string, description: Deep.}}}}}}", "a array of object b string Deep."},
		{"rare keywords", "{type: object, if: {required: [a]}, not: {required: [b]}}", `if {"required": ["a"]} not {"required": ["b"]}`},
		{"a reference to a part", "{$ref: '#/components/schemas/Tool/properties/at'}", "string <date-time> at least 3 characters"},
		{"a schema of another name", "{$ref: '#/components/schemas/Tool'}", "Tool"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := read(section(t, page(t, withSchemas("X: "+c.schema+other)), "X"))
			if !strings.Contains(got, c.want) {
				t.Errorf("the section reads %q, want %q in it", got, c.want)
			}
		})
	}
}

var exampleText = regexp.MustCompile(`(?s)<pre[^>]*>(.*)</pre>`)

func TestExamples(t *testing.T) {
	t.Parallel()
	const others = `, Text: {type: string, format: date-time}, Base: {type: object, required: [a], properties: {a: {type: integer}}}`
	for _, c := range []struct{ name, schema, want string }{
		{"types", "{properties: {s: {type: string}, i: {type: integer}, b: {type: boolean}, n: {type: 'null'}, a: {}}}", `{"s":"string","i":1,"b":true,"n":null,"a":null}`},
		{"in the order of the document", "{properties: {z: {type: string}, a: {type: string}}}", `{"z":"string","a":"string"}`},
		{"what the document offers", "{properties: {a: {examples: [x]}, b: {const: y}, c: {enum: [z, w]}, d: {type: integer, default: 7}}}", `{"a":"x","b":"y","c":"z","d":7}`},
		{"bounds", "{properties: {a: {type: integer, minimum: 5}, b: {type: integer, maximum: -2}, c: {type: number, exclusiveMinimum: 0, exclusiveMaximum: 1}, d: {type: integer, minimum: 3, multipleOf: 8}}}", `{"a":5,"b":-2,"c":0.5,"d":8}`},
		{"lengths", "{properties: {a: {type: string, maxLength: 3}, b: {type: string, minLength: 8}}}", `{"a":"str","b":"stringxx"}`},
		{"null only where nothing else is", "{properties: {a: {oneOf: [{type: 'null'}, {type: integer}]}, b: {type: ['null', string]}}}", `{"a":1,"b":"string"}`},
		{"references", "{properties: {a: {$ref: '#/components/schemas/Text'}}}", `{"a":"2026-11-15T09:00:00Z"}`},
		{"all of", "{allOf: [{$ref: '#/components/schemas/Base'}, {properties: {b: {type: string}}}, {required: [b]}]}", `{"a":1,"b":"string"}`},
		{"maps", "{type: object, additionalProperties: {type: integer}}", `{"name":1}`},
		{"tuples", "{type: array, prefixItems: [{type: string}, {type: integer}]}", `["string",1]`},
		{"no fields for requests", "{properties: {a: {type: string, writeOnly: true}, b: {type: string}}}", `{"b":"string"}`},
		{"patterns", "{properties: {a: {type: string, pattern: '^v1:(on|off)[0]{2}z?$'}, b: {type: string, pattern: '(?<!x)'}}}", `{"a":"v1:on00","b":"string"}`},
		{"text that looks like HTML", "{properties: {a: {const: <b>&}}}", `{"a":"<b>&"}`},
		{"given for the whole", "{type: object, examples: [{b: [1, {c: null}], a: 0.5}]}", `{"b":[1,{"c":null}],"a":0.5}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := exampleText.FindStringSubmatch(section(t, page(t, withSchemas("X: "+c.schema+others)), "X"))
			if m == nil {
				t.Fatal("no example")
			}
			got := html.UnescapeString(marks.ReplaceAllString(m[1], ""))
			if got = spaces.ReplaceAllString(got, ""); got != c.want {
				t.Errorf("example = %s, want %s", got, c.want)
			}
		})
	}
}

func TestExampleMatchesItsPattern(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{`^[A-Za-z0-9]{20}$`, `^v1:[A-Za-z0-9_-]{43}$`, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, `^\p{Lu}[^a-z\s]+.*\d?$`} {
		p := section(t, page(t, withSchemas("X: {properties: {id: {type: string, pattern: '"+pattern+"'}}}")), "X")
		_, text, _ := strings.Cut(html.UnescapeString(marks.ReplaceAllString(p, "")), `"id": "`)
		text, _, _ = strings.Cut(text, "\"\n")
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("%q does not match %s", text, pattern)
		}
	}
}

func TestRecursiveSchemasEnd(t *testing.T) {
	t.Parallel()
	var wide strings.Builder // each of many schemas holds all of them
	for _, a := range "ABCDEFGHIJKLMNOPQRST" {
		wide.WriteString("W" + string(a) + ": {type: object, properties: {")
		for _, b := range "ABCDEFGHIJKLMNOPQRST" {
			wide.WriteString(string(b) + ": {$ref: '#/components/schemas/W" + string(b) + "'}, ")
		}
		wide.WriteString("}}, ")
	}
	for _, c := range []struct{ name, schemas, want string }{
		{"a tree shows a branch and a leaf", `
			X: {oneOf: [{$ref: '#/components/schemas/Group'}, {$ref: '#/components/schemas/Leaf'}]},
			Group: {type: object, required: [children], properties: {children: {type: array, items: {$ref: '#/components/schemas/X'}}}},
			Leaf: {type: object, required: [key], properties: {key: {type: string}}}`, `"children": [ { "key": "string"`},
		{"an endless chain has no example", "X: {type: object, required: [next], properties: {next: {$ref: '#/components/schemas/X'}}}", "next required X"},
		{"a name for itself", "X: {$ref: '#/components/schemas/Y'}, Y: {$ref: '#/components/schemas/X'}", "Y"},
		{"through allOf", "X: {allOf: [{$ref: '#/components/schemas/X'}], properties: {a: {type: string}}}", "a string"},
		{"through a part", "X: {properties: {a: {type: object, properties: {b: {$ref: '#/components/schemas/X/properties/a'}}}}}", "b object"},
		{"many through many", "X: {type: string}, " + wide.String(), "string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := read(section(t, page(t, withSchemas(c.schemas)), "X"))
			if !strings.Contains(got, c.want) {
				t.Errorf("the section reads %q, want %q in it", got, c.want)
			}
		})
	}
}
