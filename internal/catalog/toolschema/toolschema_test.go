package toolschema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/toolschema"
	"atelier/tools"
)

// form has a field of every kind that a program can fill.
const form = `name: All
description: All fields.
engine: {name: image}
output: {type: IMG, mime_types: [image/png]}
price: {type: COST, tokens: 3}
num_results: {min: 1, max: 4, default: 1}
fields:
  - {key: prompt, type: PROMPT, label: What to paint, required: true, max_length: 50, help: Plain words.}
  - {key: style, type: SINGLE_SELECT, label: Style, default: oil, options: [{text: Oil paint, value: oil}, {text: Ink, value: ink}]}
  - {key: extras, type: MULTI_SELECT, label: Extras, max_items: 2, options: [{text: Frame, value: frame}, {text: Sign, value: sign}, {text: Date, value: date}]}
  - {key: strength, type: SLIDER, label: Strength, min: 0, max: 1, step: 0.1, default: 0.5}
  - {key: steps, type: STEPS, label: Steps, min: 1, max: 50, default: 20}
  - {key: tiled, type: BOOLEAN, label: Tiled, default: false}
  - {key: seed, type: SEED, label: Seed}
  - {key: size, type: WIDTH_HEIGHT, label: Size, sizes: [{text: Square, width: 512, height: 512}, {text: Wide, width: 768, height: 512}]}
  - {key: picture, type: IMG, label: Picture}
  - {key: pictures, type: IMGS, label: Pictures, max_items: 3}
`

// readForm returns the tool with the form.
func readForm(t *testing.T) *catalog.Tool {
	t.Helper()
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: fstest.MapFS{"all.yaml": {Data: []byte(form)}}})
	if err != nil || len(set.Problems) > 0 {
		t.Fatal(err, set.Problems)
	}
	for _, one := range set.AllTools() {
		return one
	}
	t.Fatal("no tool")
	return nil
}

func compile(t *testing.T, schema toolschema.Schema) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("tool.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("tool.json")
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return compiled
}

func TestSchema(t *testing.T) {
	tool := readForm(t)
	schema := compile(t, toolschema.Of(tool, 3))
	for object, valid := range map[string]bool{
		`{"prompt":"a fox"}`:                               true,
		`{"prompt":"a fox","style":"ink","tiled":true}`:    true,
		`{"prompt":"a fox","extras":["frame","sign"]}`:     true,
		`{"prompt":"a fox","size":"768x512","seed":7}`:     true,
		`{"prompt":"a fox","picture":"gen_x_0"}`:           true,
		`{"prompt":"a fox","pictures":["a","b","c"]}`:      true,
		`{"prompt":"a fox","strength":0.3,"steps":50}`:     true,
		`{"prompt":"a fox","num_results":3}`:               true,
		`{}`:                                               false,
		`{"prompt":""}`:                                    false,
		`{"prompt":"a fox","colour":"red"}`:                false,
		`{"prompt":"a fox","style":"chalk"}`:               false,
		`{"prompt":"a fox","extras":["frame","frame"]}`:    false,
		`{"prompt":"a fox","extras":["frame","sign","x"]}`: false,
		`{"prompt":"a fox","size":"7x7"}`:                  false,
		`{"prompt":"a fox","pictures":["a","b","c","d"]}`:  false,
		`{"prompt":"a fox","strength":2}`:                  false,
		`{"prompt":"a fox","steps":1.5}`:                   false,
		`{"prompt":"a fox","num_results":4}`:               false, // the installation allows 3
		`{"prompt":"` + strings.Repeat("x", 51) + `"}`:     false,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(object))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != valid {
			t.Errorf("%s: %v, want valid %t", object, err, valid)
		}
	}
	properties := toolschema.Of(tool, 3)["properties"].(toolschema.Schema)
	for key, want := range map[string]string{
		"prompt": "What to paint. Plain words.",
		"style":  "oil: Oil paint.",
		"size":   "Width x height in pixels.",
	} {
		if got := properties[key].(toolschema.Schema)["description"]; got != want {
			t.Errorf("the description of %s is %q, want %q", key, got, want)
		}
	}
}

// TestShippedTools: the schemas of all tools of the program are schemas.
func TestShippedTools(t *testing.T) {
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Builtin, Files: tools.Files})
	if err != nil || len(set.Problems) > 0 {
		t.Fatal(err, set.Problems)
	}
	for slug, one := range set.AllTools() {
		schema := toolschema.Of(one, 4)
		compile(t, schema)
		if len(one.Leaves()) > 0 && len(schema["properties"].(toolschema.Schema)) == 0 {
			t.Errorf("%s has no properties", slug)
		}
	}
}

func TestInputs(t *testing.T) {
	tool := readForm(t)
	var fields []string
	inputs, err := toolschema.Inputs(tool, map[string]any{
		"prompt":   "a fox",
		"size":     "768x512",
		"seed":     nil,
		"picture":  "one",
		"pictures": []any{"two", "three"},
		"colour":   "red",
	}, func(f *catalog.Field, value any) (any, error) {
		fields = append(fields, f.Key)
		return "file " + value.(string), nil
	})
	want := map[string]any{
		"prompt":   "a fox",
		"size":     catalog.SizeValue(768, 512),
		"picture":  "file one",
		"pictures": []any{"file two", "file three"},
		"colour":   "red", // is refused when the inputs are parsed
	}
	if err != nil || !reflect.DeepEqual(inputs, want) {
		t.Errorf("inputs = %v, %v, want %v", inputs, err, want)
	}
	if got := strings.Join(fields, " "); got != "picture pictures pictures" {
		t.Errorf("files are converted in the order %s", got)
	}
}
