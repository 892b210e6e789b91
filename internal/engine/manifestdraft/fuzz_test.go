package manifestdraft_test

import (
	"reflect"
	"testing"

	"atelier/internal/engine/manifestdraft"
)

// FuzzFromSchema proves that the schema of a foreign server is refused or leads
// to a form, each time the same one, in which no two fields have one key.
func FuzzFromSchema(f *testing.F) {
	for _, input := range []string{
		`{"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}`,
		`{"properties": {"n": {"type": "integer", "minimum": 1, "maximum": 4}, "size": {"enum": ["512x512", "1024x1024"]}, "seed": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}`,
		`{"$ref": "#/components/schemas/Input"}`, `{"allOf": [{"$ref": "#/components/schemas/Output"}]}`, `{"properties": {"image": {"type": "string", "format": "uri"}, "x": true, "": {}}}`, `{"properties": 5}`, `[]`, `null`,
		`{"properties": {"a": {"type": "number", "minimum": 1e308, "maximum": -1e308, "default": "x"}, "a b": {}, "a-b": {"type": ["string", "null"]}}}`,
	} {
		f.Add([]byte(`{"components": {"schemas": {"Input": ` + input + `, "Output": {"type": "string", "format": "uri"}}}}`))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		from := manifestdraft.Source{Doc: doc, Input: "Input", Output: "Output", Name: "Fox", Engine: "model"}
		first, err := manifestdraft.FromSchema(from)
		if err != nil {
			return
		}
		keys := map[string]bool{}
		for _, field := range first.Fields {
			if field.Key == "" || keys[field.Key] {
				t.Errorf("%q leads to two fields with the key %q, or to one without", doc, field.Key)
			}
			keys[field.Key] = true
		}
		if second, err := manifestdraft.FromSchema(from); err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%q leads to %+v, then to %+v, %v", doc, first, second, err)
		}
	})
}
