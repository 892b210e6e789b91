package catalog_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
)

// form makes a tool of fields, each as a manifest has it within braces.
func form(t testing.TB, fields ...string) *catalog.Tool {
	t.Helper()
	text := manifest + "fields:\n"
	for _, f := range fields {
		text += "  - {" + f + "}\n"
	}
	tool, err := catalog.ToolOf([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// everything is the tool with one field of each kind.
func everything(t testing.TB) *catalog.Tool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "everything", "everything.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tool, err := catalog.ToolOf(text)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// fromJSON decodes as requests are decoded: whole numbers are int64 where they
// fit. It gives false for what no request can hold.
func fromJSON(text string) (v any, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	ok = true
	var convert func(v any) any
	convert = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
				return n
			}
			n, err := strconv.ParseFloat(v.String(), 64)
			ok = ok && err == nil
			return n
		case []any:
			for i := range v {
				v[i] = convert(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = convert(v[k])
			}
		}
		return v
	}
	v = convert(v)
	return v, ok
}

func inputs(t testing.TB, text string) map[string]any {
	t.Helper()
	v, ok := fromJSON(text)
	m, isMap := v.(map[string]any)
	if !ok || !isMap {
		t.Fatalf("%s is no object", text)
	}
	return m
}

// show writes a value so that types can be told apart: 4 is whole, 4f is not.
func show(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64) + "f"
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, show(item))
		}
		return "[" + strings.Join(all, " ") + "]"
	case map[string]any:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, name+":"+show(v[name]))
		}
		return "{" + strings.Join(all, " ") + "}"
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

// lines writes problems.
func lines(problems []fault.Field) string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Path+": "+p.Message)
	}
	return strings.Join(all, "\n")
}

// outcome is what filling in the field x gave. Problems with x itself stand
// without a path.
func outcome(f catalog.FormInputs, problems []fault.Field) string {
	if len(problems) > 0 {
		text := "\n" + choices.ReplaceAllString(lines(problems), "$1.") // see TestRefusedOptions
		return strings.ReplaceAll(strings.ReplaceAll(text, "\ninputs.x: ", "\n"), "\ninputs.x.", "\nx.")[1:]
	}
	if v, ok := f.Values["x"]; ok {
		return show(v)
	}
	var refs []string
	for _, r := range f.Refs {
		refs = append(refs, fmt.Sprintf("%s %s%d at %d", r.Kind, r.ID, r.FileIndex, r.Index))
	}
	return strings.Join(refs, ", ")
}

// TestRefusedOptions names the options and sizes there are, but not without end.
func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	var many []string
	for n := range 23 {
		many = append(many, fmt.Sprintf("{text: T%d, value: v%d}", n, n))
	}
	for settings, want := range map[string]string{
		"type: SINGLE_SELECT, options: [{text: Light, value: light}, {text: Two, value: 2}, {text: Half, value: 0.5}]": "Must be one of the options: light, 2, 0.5.",
		"type: MULTI_SELECT, options: [{text: A, value: a}, {text: B, value: b}]":                                      "Must be a list of options.",
		"type: WIDTH_HEIGHT, sizes: [{text: S, width: 8, height: 9}, {text: L, width: 80, height: 90}]":                "Must be a width and a height in whole pixels.",
		"type: SINGLE_SELECT, options: [" + strings.Join(many, ", ") + "]":                                             "Must be one of the options: v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18, v19 and 3 more.",
	} {
		if _, problems := form(t, "key: x, label: X, "+settings).ParseInputs(inputs(t, `{"x":"dark"}`), catalog.InputOptions{}); len(problems) != 1 || problems[0].Message != want {
			t.Errorf("%.60s: %v, want %s", settings, problems, want)
		}
	}
	_, problems := form(t, "key: x, label: X, type: MULTI_SELECT, options: [{text: A, value: a}, {text: B, value: b}]").ParseInputs(inputs(t, `{"x":["c"]}`), catalog.InputOptions{})
	if len(problems) != 1 || problems[0].Message != "Must contain only the options: a, b." {
		t.Errorf("problems = %v", problems)
	}
	_, problems = form(t, "key: x, label: X, type: WIDTH_HEIGHT, sizes: [{text: S, width: 8, height: 9}, {text: L, width: 80, height: 90}]").
		ParseInputs(inputs(t, `{"x":{"width":9,"height":8}}`), catalog.InputOptions{})
	if len(problems) != 1 || problems[0].Message != "Must be one of the sizes: 8x9, 80x90." {
		t.Errorf("problems = %v", problems)
	}
}

// choices is what follows in a problem that names the options.
var choices = regexp.MustCompile(`(the options|the sizes): [^\n]*\.`)

// TestInputs has for each kind of field what comes in and what becomes of it:
// a value, a sentence, or nothing where it was left out.
func TestInputs(t *testing.T) {
	t.Parallel()
	const (
		upload              = `{"kind":"UPLOAD_REF","id":"aB3aB3aB3aB3aB3aB3aB"}`
		library             = `{"kind":"LIBRARY_REF","id":"aB3aB3aB3aB3aB3aB3aB:0198c0de-aaaa-7bbb-8ccc-0123456789ab"}`
		uploaded, kept      = "UPLOAD_REF aB3aB3aB3aB3aB3aB3aB0", "LIBRARY_REF aB3aB3aB3aB3aB3aB3aB:0198c0de-aaaa-7bbb-8ccc-0123456789ab0"
		text, number, whole = "Must be text.", "Must be a number.", "Must be a whole number."
		options, size       = "Must be one of the options.", "Must be a width and a height in whole pixels."
		kind, list, file    = "The kind of a reference must be MULTIPART, UPLOAD_REF or LIBRARY_REF.", "Must be a list of references.", "Must be a reference to a file."
		lost, gone          = "There is no such upload.", "There is no such library item."
		all64               = "Must be between -9223372036854775808 and 9223372036854775807."
	)
	long := func(n int, s string) string { return `"` + strings.Repeat(s, n) + `"` }
	rows := 0
	for _, field := range []struct {
		settings string
		rows     []string // in and out in turn
	}{
		{"type: PROMPT", []string{
			`"a fox"`, `"a fox"`, `" "`, `" "`, `""`, ``, `null`, ``, `3`, text, `true`, text, `["a"]`, text, `{}`, text, `[]`, text, `1.5`, text, `"null"`, `"null"`}},
		{"type: PROMPT, required: true", []string{
			`"a"`, `"a"`, `""`, "This field is required.", `null`, "This field is required.", `false`, text}},
		{"type: TEXT, required: true, default: d", []string{`"a"`, `"a"`, `""`, `"d"`, `null`, `"d"`}},
		{`type: TEXT, required: true, default: ""`, []string{`"a"`, `"a"`, `""`, "This field is required."}},
		{`type: TEXT, default: ""`, []string{`null`, `""`}},
		{"type: NEG_PROMPT, max_length: 3", []string{
			`"ab"`, `"ab"`, `"abc"`, `"abc"`, `"abcd"`, "Must have at most 3 characters.", `"äöü"`, `"äöü"`, `"🦊🦊🦊"`, `"🦊🦊🦊"`, `"🦊🦊🦊🦊"`, "Must have at most 3 characters."}},
		{"type: TEXT", []string{`"one\ntwo"`, `"one\ntwo"`, `0`, text, `{"a":"b"}`, text,
			long(catalog.MaxTextLen+1, "x"), "Must have at most 100000 characters.", long(catalog.MaxTextLen+1, "ü"), "Must have at most 100000 characters."}},
		{"type: TEXT_AREA, max_length: 100000", []string{`"a"`, `"a"`, `[null]`, text, long(catalog.MaxTextLen+1, "x"), "Must have at most 100000 characters."}},
		{"type: SLIDER, min: -1, max: 4, step: 0.5", []string{
			`0`, `0`, `-1`, `-1`, `4`, `4`, `4.0`, `4f`, `0.3`, `0.3f`, `-1.01`, "Must be at least -1.", `4.01`, "Must be at most 4.", `5`, "Must be at most 4.",
			`"3"`, number, `true`, number, `null`, ``, `""`, ``, `[]`, number, `[1]`, number, `{}`, number, `1e300`, "Must be at most 4.", `-1e300`, "Must be at least -1.",
			`9223372036854775807`, "Must be at most 4.", `9223372036854775808`, "Must be at most 4.", `1e-300`, `1e-300f`, `-0.0`, `-0f`}},
		{"type: UPSCALE_FACTOR_SLIDER, min: 1, max: 4, integer: true, default: 2", []string{
			`1`, `1`, `4`, `4`, `4.0`, `4`, `4e0`, `4`, `0`, "Must be at least 1.", `5`, "Must be at most 4.", `2.5`, whole, `null`, `2`, `""`, `2`, `"2"`, number}},
		{"type: CFG", []string{`7`, `7`, `7.5`, `7.5f`, `-3`, `-3`, `1e300`, `1e+300f`, `9223372036854775807`, `9223372036854775807`, `9223372036854775808`, `9.223372036854776e+18f`, `"7"`, number}},
		{"type: CFG, default: 7.0", []string{`null`, `7`}},
		{"type: STEPS", []string{
			`20`, `20`, `20.0`, `20`, `2e1`, `20`, `-1`, `-1`, `0.5`, whole, `1e-9`, whole, `-0.0`, `0`, `1e18`, `1000000000000000000`, `9223372036854775807`, `9223372036854775807`,
			`9223372036854775808`, all64, `1e19`, all64, `-1e19`, all64, `1e308`, all64, `-9223372036854775808`, `-9223372036854775808`, `-9223372036854775808.0`, `-9223372036854775808`, `false`, number}},
		{"type: STEPS, min: 1, max: 50, step: 7, default: 20", []string{`1`, `1`, `50`, `50`, `2`, `2`, `0`, "Must be at least 1.", `51`, "Must be at most 50.", `1e308`, "Must be at most 50.", `null`, `20`}},
		{"type: STEPS, default: 1e20", []string{`null`, `1e+20f`, `1e20`, all64}},
		{"type: NUM", []string{`1`, `1`, `1.25`, `1.25f`, `{"a":1}`, number, `"1"`, number}},
		{"type: NUM, integer: true", []string{`1`, `1`, `1.0`, `1`, `1.25`, whole}},
		{"type: NUM, min: 0.001, max: 123456789", []string{`0.001`, `0.001f`, `0`, "Must be at least 0.001.", `123456789`, `123456789`, `123456790`, "Must be at most 123456789."}},
		{"type: NUM, min: 1e-20, max: 1e20", []string{`0`, "Must be at least 1e-20.", `2e20`, "Must be at most 1e+20."}},
		{"type: SEED", []string{
			`0`, `0`, `1`, `1`, `4294967295`, `4294967295`, `4294967295.0`, `4294967295`, `4294967296`, "Must be at most 4294967295.", `-1`, "Must be at least 0.",
			`0.5`, whole, `"1"`, number, `null`, ``, `""`, ``, `1e18`, "Must be at most 4294967295.", `1e300`, "Must be at most 4294967295.", `true`, number, `[0]`, number, `1e2`, `100`}},
		{"type: SEED, default: 4294967295", []string{`null`, `4294967295`, `7`, `7`}},
		{"type: BOOLEAN", []string{
			`true`, `true`, `false`, `false`, `null`, ``, `""`, ``, `1`, "Must be true or false.", `0`, "Must be true or false.", `"true"`, "Must be true or false.", `[true]`, "Must be true or false."}},
		{"type: BOOLEAN, default: true", []string{`null`, `true`, `false`, `false`}},
		{"type: BOOLEAN, required: true", []string{`false`, `false`, `null`, "This field is required."}},
		{"type: SINGLE_SELECT, options: [{text: A, value: a}, {text: One, value: 1}, {text: Half, value: 0.5}, {text: T, value: \"2\"}]", []string{
			`"a"`, `"a"`, `1`, `1`, `1.0`, `1`, `0.5`, `0.5f`, `5e-1`, `0.5f`, `"2"`, `"2"`, `2`, options, `"1"`, `1`, `"1.0"`, `1`, `"0.5"`, `0.5f`, `"5e-1"`, `0.5f`, `".5"`, options, `" 1"`, options, `"+1"`, options, `"01"`, options, `"0x1"`, options, `"1_0"`, options, `"1e999"`, options, `"NaN"`, options, `"A"`, options, `"b"`, options, `true`, options, `[]`, options,
			`["a"]`, options, `{}`, options, `null`, ``, `""`, ``, `1e300`, options}},
		{"type: SINGLE_SELECT, required: true, options: [{text: A, value: a}]", []string{`"a"`, `"a"`, `""`, "This field is required."}},
		{`type: SINGLE_SELECT, required: true, default: "", options: [{text: None, value: ""}, {text: A, value: a}]`, []string{`""`, `""`, `null`, `""`, `"a"`, `"a"`}},
		{"type: MODEL_SINGLE_SELECT, default: 1.0, options: [{text: One, value: 1}, {text: Two, value: 2.5}]", []string{`1`, `1`, `2.5`, `2.5f`, `3`, options, `null`, `1`, `"1"`, `1`, `"2.5"`, `2.5f`}},
		{"type: SINGLE_SELECT, options: [{text: Number, value: 4}, {text: Text, value: \"4\"}]", []string{`4`, `4`, `"4"`, `"4"`, `"4.0"`, `4`}},
		{"type: SINGLE_SELECT, default: \"4\", options: [{text: Four, value: 4}]", []string{`null`, `4`}},
		{"type: MULTI_SELECT, default: [\"4\"], options: [{text: Four, value: 4}, {text: Five, value: 5}]", []string{`null`, `[4]`, `["5","4"]`, `[5 4]`}},
		{"type: MULTI_SELECT, max_items: 2, options: [{text: A, value: a}, {text: B, value: 1}, {text: C, value: 2.5}]", []string{
			`["a"]`, `["a"]`, `[1.0,"a"]`, `[1 "a"]`, `["a",2.5]`, `["a" 2.5f]`, `[]`, ``, `null`, ``, `""`, ``, `"a"`, "Must be a list of options.", `1`, "Must be a list of options.", `{}`, "Must be a list of options.",
			`["a",1,2.5]`, "Must have at most 2 options.", `["a","a"]`, "Must not repeat an option.", `[1,1.0]`, "Must not repeat an option.", `["z"]`, "Must contain only the options.", `[null]`, "Must contain only the options.",
			`[["a"]]`, "Must contain only the options.", `["1"]`, `[1]`, `["2.5",1]`, `[2.5f 1]`, `["1",1]`, "Must not repeat an option.", `["1","1.0"]`, "Must not repeat an option.", `["9"]`, "Must contain only the options.", `[""]`, "Must contain only the options."}},
		{"type: MULTI_SELECT, required: true, options: [{text: A, value: a}]", []string{`["a"]`, `["a"]`, `[]`, "This field is required."}},
		{"type: MULTI_SELECT, required: true, default: [], options: [{text: A, value: a}]", []string{`[]`, "This field is required."}},
		{"type: MULTI_SELECT, default: [a, 1.0], options: [{text: A, value: a}, {text: B, value: 1}]", []string{`[]`, `["a" 1]`, `null`, `["a" 1]`, `["a"]`, `["a"]`}},
		{"type: WIDTH_HEIGHT, min: 64, max: 2048, multiple_of: 64, sizes: [{text: Odd, width: 100, height: 30}]", []string{
			`{"width":64,"height":2048}`, `{height:2048 width:64}`, `{"width":64.0,"height":128}`, `{height:128 width:64}`, `{"width":100,"height":30}`, `{height:30 width:100}`,
			`{"width":100,"height":100}`, "Must have a width and a height that are multiples of 64 pixels.", `{"width":63,"height":64}`, "Must have a width and a height between 64 and 2048 pixels.",
			`{"width":64,"height":2112}`, "Must have a width and a height between 64 and 2048 pixels.", `{"width":64}`, size, `{"height":64}`, size, `{}`, size, `{"width":64,"height":64,"depth":1}`, size,
			`{"width":"64","height":64}`, size, `{"width":64.5,"height":64}`, size, `{"width":null,"height":64}`, size, `[64,64]`, size, `"64x64"`, size, `64`, size, `null`, ``, `""`, ``, `[]`, size,
			`{"Width":64,"height":64}`, size, `{"width":1e300,"height":64}`, "Must have a width and a height between 64 and 2048 pixels.", `{"width":-64,"height":64}`, "Must have a width and a height between 64 and 2048 pixels."}},
		{"type: WIDTH_HEIGHT, sizes: [{text: S, width: 8, height: 9}]", []string{`{"width":8,"height":9}`, `{height:9 width:8}`, `{"width":9,"height":8}`, "Must be one of the sizes."}},
		{"type: WIDTH_HEIGHT, min: 1, max: 1e300", []string{`{"width":1e200,"height":8}`, size, `{"width":1,"height":9223372036854775807}`, `{height:9223372036854775807 width:1}`}},
		{"type: WIDTH_HEIGHT, min: 8, max: 64, default: {width: 8, height: 9.0}", []string{`null`, `{height:9 width:8}`}},
		{"type: IMG", []string{
			upload, uploaded + " at 0", library, kept + " at 0", `null`, ``, `""`, ``, `"aB3aB3aB3aB3aB3aB3aB"`, file, `[]`, file, `[` + upload + `]`, file, `3`, file, `true`, file, `{}`, kind,
			`{"kind":"upload_ref","id":"aB3aB3aB3aB3aB3aB3aB"}`, kind, `{"kind":3}`, kind, `{"kind":null}`, kind, `{"Kind":"UPLOAD_REF","id":"aB3aB3aB3aB3aB3aB3aB"}`, kind, `{"kind":" UPLOAD_REF"}`, kind,
			`{"kind":"UPLOAD_REF"}`, lost, `{"kind":"UPLOAD_REF","id":null}`, lost, `{"kind":"UPLOAD_REF","id":3}`, lost, `{"kind":"UPLOAD_REF","id":""}`, lost, `{"kind":"UPLOAD_REF","id":["aB3aB3aB3aB3aB3aB3aB"]}`, lost,
			`{"kind":"UPLOAD_REF","id":"aB3aB3aB3aB3aB3aB3a"}`, lost, `{"kind":"UPLOAD_REF","id":"aB3aB3aB3aB3aB3aB3aBc"}`, lost, `{"kind":"UPLOAD_REF","id":"aB3aB3aB3aB3aB3aB3a/"}`, lost, `{"kind":"UPLOAD_REF","id":"aB3aB3aB3aB3aB3aB3aB\n"}`, lost,
			`{"kind":"LIBRARY_REF"}`, gone, `{"kind":"LIBRARY_REF","id":"aB3aB3aB3aB3aB3aB3aB"}`, gone, `{"kind":"LIBRARY_REF","id":"aB3aB3aB3aB3aB3aB3aB:"}`, gone,
			`{"kind":"LIBRARY_REF","id":"aB3aB3aB3aB3aB3aB3aB:0198c0de-aaaa-7bbb-8ccc-0123456789a"}`, gone, `{"kind":"LIBRARY_REF","id":"aB3aB3aB3aB3aB3aB3aB:0198c0de-aaaa-7bbb-8ccc-0123456789ag"}`, gone,
			`{"kind":"LIBRARY_REF","id":"aB3aB3aB3aB3aB3aB3aB:0198c0de-aaaa-7bbb-8ccc-0123456789ab\n"}`, gone, `{"kind":"LIBRARY_REF","id":"aB3aB3aB3aB3aB3aB3a:0198c0de-aaaa-7bbb-8ccc-0123456789ab"}`, gone,
			`{"kind":"LIBRARY_REF","id":"aB3aB3aB3aB3aB3aB3a-:0198c0de-aaaa-7bbb-8ccc-0123456789ab"}`, gone, `{"kind":"LIBRARY_REF","id":7}`, gone,
			`{"kind":"UPLOAD_REF","id":"aB3aB3aB3aB3aB3aB3aB","file_index":0}`, "x.file_index: A reference of this kind does not have this property.",
			`{"kind":"UPLOAD_REF","id":"","b":0,"a":{}}`, "x.a: A reference of this kind does not have this property.\nx.b: A reference of this kind does not have this property.\n" + lost,
			`{"kind":"MULTIPART","file_index":0}`, "There is no such file part.", `{"kind":"MULTIPART"}`, "The file_index of a reference must be a whole number.",
			`{"kind":"MULTIPART","file_index":"0"}`, "The file_index of a reference must be a whole number.", `{"kind":"MULTIPART","file_index":0.5}`, "The file_index of a reference must be a whole number.",
			`{"kind":"MULTIPART","file_index":1e300}`, "The file_index of a reference must be a whole number.", `{"kind":"MULTIPART","file_index":null}`, "The file_index of a reference must be a whole number."}},
		{"type: IMG, required: true", []string{upload, uploaded + " at 0", `null`, "This field is required.", `""`, "This field is required.", `{}`, kind}},
		{"type: IMGS, max_items: 2", []string{
			`[` + upload + `]`, uploaded + " at 0", `[` + library + `,` + upload + `]`, kept + " at 0, " + uploaded + " at 1", `[` + upload + `,` + upload + `]`, uploaded + " at 0, " + uploaded + " at 1",
			`[` + upload + `,` + upload + `,` + upload + `]`, "Must have at most 2 references.", `[]`, ``, `null`, ``, `""`, ``, upload, list, `{}`, list, `"a"`, list, `3`, list,
			`[null]`, "x.0: " + file, `[` + upload + `,""]`, "x.1: " + file, `[[]]`, "x.0: " + file, `[{}]`, "x.0: " + kind, `[3,null,{"kind":"UPLOAD_REF"}]`, "Must have at most 2 references.\nx.0: " + file + "\nx.1: " + file + "\nx.2: " + lost,
			`[{"kind":"LIBRARY_REF","id":"x","z":1}]`, "x.0.z: A reference of this kind does not have this property.\nx.0: " + gone}},
		{"type: IMGS, required: true", []string{`[]`, "This field is required.", `[null]`, "x.0: " + file}},
		{"type: VIDEO", []string{upload, uploaded + " at 0", `"a"`, file, `null`, ``}},
		{"type: AUDIO", []string{library, kept + " at 0", `[]`, file, `""`, ``}},
		{"type: ASSET_3D", []string{upload, uploaded + " at 0", `false`, file, `{"kind":"URL"}`, kind}},
		{"type: HEADER", []string{`"a"`, "Must not have a value.", `true`, "Must not have a value.", `{}`, "Must not have a value.", `[]`, "Must not have a value.", `null`, ``, `""`, ``}},
		{"type: HTML, html: <p>", []string{`"a"`, "Must not have a value.", `0`, "Must not have a value.", `null`, ``}},
	} {
		tool := form(t, "key: x, label: X, "+field.settings)
		for i := 0; i+1 < len(field.rows); i += 2 {
			in, want := field.rows[i], field.rows[i+1]
			rows++
			t.Run(fmt.Sprintf("%s %.60s", field.settings, in), func(t *testing.T) {
				t.Parallel()
				if got := outcome(tool.ParseInputs(inputs(t, `{"x":`+in+`}`), catalog.InputOptions{})); got != want {
					t.Errorf("%s gave\n%s\nwant\n%s", in, got, want)
				}
			})
		}
	}
	if rows < 200 {
		t.Errorf("%d rows, want at least 200", rows)
	}
	at := long(catalog.MaxTextLen, "ü")
	if got := outcome(form(t, "key: x, label: X, type: TEXT").ParseInputs(inputs(t, `{"x":`+at+`}`), catalog.InputOptions{})); got != at {
		t.Errorf("a text of the largest length gave %.80s", got)
	}
}
