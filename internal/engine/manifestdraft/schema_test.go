package manifestdraft_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"atelier/internal/catalog/catalog"
	"atelier/internal/engine/manifestdraft"
)

// document wraps inputs and an output in what Cog answers with, beside enums.
func document(t require, properties, required, output, more string) []byte {
	t.Helper()
	if more != "" {
		more = "," + more
	}
	doc := fmt.Appendf(nil, `{"openapi":"3.0.2","components":{"schemas":{"Input":{"type":"object","required":%s,"properties":{%s}},"Output":%s%s}}}`,
		required, properties, output, more)
	if !json.Valid(doc) {
		t.Fatalf("not JSON: %s", doc)
	}
	return doc
}

type require interface {
	Helper()
	Fatalf(format string, args ...any)
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

func source(doc []byte) manifestdraft.Source {
	return manifestdraft.Source{Doc: doc, Input: "Input", Output: "Output", Name: "A model", Engine: "cog"}
}

// draft reads a schema whose manifest must have no problem.
func draft(t require, doc []byte) manifestdraft.Draft {
	t.Helper()
	d, err := manifestdraft.FromSchema(source(doc))
	if err != nil {
		t.Fatalf("schema: %v", err)
	}
	lint(t, d.Tool("A model", "cog"))
	return d
}

func lint(t require, tool manifestdraft.Tool) {
	t.Helper()
	text, err := tool.YAML("A draft.")
	if err != nil {
		t.Fatal(err)
	}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: fstest.MapFS{"a-model.yaml": {Data: text}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Problems {
		t.Errorf("%v", p)
	}
	if set.Len() != 1 {
		t.Fatalf("tools = %d, want 1\n%s", set.Len(), text)
	}
}

// one gives the field for a single input.
func one(t *testing.T, schema string) (manifestdraft.Field, manifestdraft.Draft) {
	t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(schema, `"`), `"`)
	d := draft(t, document(t, schema, `[]`, `{"type":"string","format":"uri"}`,
		`"colour":{"title":"colour","description":"An enumeration.","enum":["red","green"],"type":"string"},"n":{"enum":[1,2,3],"type":"integer"},"loop":{"allOf":[{"$ref":"#/components/schemas/loop"}]}`))
	if len(d.Fields) != 1 {
		t.Fatalf("%s: fields = %+v, want one", name, d.Fields)
	}
	return d.Fields[0], d
}

func TestFieldTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		schema, kind string
		def          any
	}{
		{`"prompt":{"type":"string"}`, "PROMPT", nil},
		{`"negative_prompt":{"type":"string","default":"ugly"}`, "NEG_PROMPT", "ugly"},
		{`"scheduler":{"type":"string","default":""}`, "TEXT", nil},
		{`"lyrics":{"type":"string"}`, "TEXT_AREA", nil},
		{`"notes":{"type":"string","default":"one\ntwo"}`, "TEXT_AREA", "one\ntwo"},
		{`"name":{"type":"string","maxLength":2,"default":"abc"}`, "TEXT", nil},
		{`"steps":{"type":"integer","minimum":1,"maximum":50,"default":20}`, "STEPS", int64(20)},
		{`"num_inference_steps":{"type":"integer"}`, "STEPS", nil},
		{`"guidance_scale":{"type":"number","minimum":0,"maximum":20,"default":7.5}`, "CFG", 7.5},
		{`"cfg":{"type":"number","default":3.0}`, "CFG", int64(3)},
		{`"strength":{"type":"number","minimum":0,"maximum":1,"default":0.8}`, "SLIDER", 0.8},
		{`"strength":{"type":"number","minimum":0,"maximum":1,"default":2}`, "SLIDER", nil},
		{`"strength":{"type":"number","minimum":2,"maximum":1}`, "NUM", nil},
		{`"strength":{"type":"number","minimum":0}`, "NUM", nil},
		{`"many":{"type":"integer","minimum":0,"maximum":2147483647,"default":1}`, "NUM", int64(1)},
		{`"count":{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":9.5,"default":1}`, "SLIDER", int64(1)},
		{`"count":{"type":"integer","exclusiveMinimum":true,"minimum":0.5,"maximum":4,"default":1.5}`, "SLIDER", nil},
		{`"upscale_factor":{"type":"integer","minimum":2,"maximum":8}`, "UPSCALE_FACTOR_SLIDER", nil},
		{`"tiling":{"type":"boolean","default":false}`, "BOOLEAN", false},
		{`"tiling":{"type":"boolean","default":"no"}`, "BOOLEAN", nil},
		{`"colour":{"allOf":[{"$ref":"#/components/schemas/colour"}],"default":"red"}`, "SINGLE_SELECT", "red"},
		{`"colour":{"$ref":"#/components/schemas/colour","default":"blue"}`, "SINGLE_SELECT", nil},
		{`"colour":{"type":"string","enum":["","red",null,"red"],"default":""}`, "SINGLE_SELECT", ""},
		{`"factor":{"allOf":[{"$ref":"#/components/schemas/n"}],"default":2}`, "SINGLE_SELECT", int64(2)},
		{`"colours":{"type":"array","items":{"$ref":"#/components/schemas/colour"},"default":["red"]}`, "MULTI_SELECT", []any{"red"}},
		{`"colours":{"type":"array","maxItems":1,"items":{"$ref":"#/components/schemas/colour"},"default":["red","green"]}`, "MULTI_SELECT", nil},
		{`"image_size":{"anyOf":[{"type":"object","properties":{"width":{}}},{"enum":["square","wide"],"type":"string"},{"type":"null"}],"default":"wide"}`, "SINGLE_SELECT", "wide"},
		{`"style":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}`, "TEXT", nil},
		{`"style":{"type":["null","string"]}`, "TEXT", nil},
		{`"picture":{"type":"string","format":"uri","nullable":true}`, "IMG", nil},
		{`"input":{"type":"string","format":"uri","default":"https://example.com/a.png"}`, "IMG", nil},
		{`"input":{"type":"string","format":"uri","description":"The song, or a video with one"}`, "AUDIO", nil},
		{`"input_video":{"type":"string","format":"uri"}`, "VIDEO", nil},
		{`"voice_sample":{"type":"string","format":"uri"}`, "AUDIO", nil},
		{`"mesh":{"type":"string","format":"uri"}`, "ASSET_3D", nil},
		{`"source":{"type":"string","format":"uri","x-cog-accept":"video/mp4,video/webm"}`, "VIDEO", nil},
		{`"image_url":{"type":"string"}`, "IMG", nil},
		{`"images":{"type":"array","items":{"type":"string","format":"uri"}}`, "IMGS", nil},
		{`"image_urls":{"type":"array","maxItems":3,"items":{"type":"string"}}`, "IMGS", nil},
		{`"clips":{"type":"array","items":{"type":"string","format":"uri"},"description":"Video clips"}`, "VIDEO", nil},
		{`"homepage_url":{"type":"string"}`, "TEXT", nil},
		{`"seed":{"type":"integer","nullable":true}`, "SEED", nil},
	} {
		f, _ := one(t, tt.schema)
		if f.Type != tt.kind || !reflect.DeepEqual(f.Default, tt.def) {
			t.Errorf("%s: %s with default %v (%T), want %s with %v", tt.schema, f.Type, f.Default, f.Default, tt.kind, tt.def)
		}
	}
}

func TestFieldDetails(t *testing.T) {
	t.Parallel()
	f, _ := one(t, `"guess":{"type":"number","minimum":0,"maximum":1,"description":"  How\nfree.  "}`)
	if f.Label != "Guess" || f.Help != "How\nfree." || *f.Min != 0 || *f.Max != 1 || *f.Step != 0.01 || f.Integer || f.Required || !f.Advanced {
		t.Errorf("slider = %+v", f)
	}
	f, _ = one(t, `"count":{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":9.5,"multipleOf":2}`)
	if *f.Min != 1 || *f.Max != 9 || *f.Step != 2 || !f.Integer {
		t.Errorf("count = %+v", f)
	}
	f, _ = one(t, `"colour":{"allOf":[{"$ref":"#/components/schemas/colour"}]}`)
	if f.Help != "" || len(f.Options) != 2 || f.Options[0] != (manifestdraft.Option{Text: "red", Value: "red"}) || f.Advanced {
		t.Errorf("select = %+v", f)
	}
	f, _ = one(t, `"source":{"type":"string","format":"uri","x-cog-accept":"image/png, image/jpeg"}`)
	if !reflect.DeepEqual(f.Accept, []string{"image/png", "image/jpeg"}) {
		t.Errorf("accept = %v", f.Accept)
	}
	f, _ = one(t, `"source":{"type":"string","format":"uri","x-cog-accept":"image/*"}`)
	if f.Type != "IMG" || f.Accept != nil {
		t.Errorf("accept = %v", f.Accept)
	}
	f, d := one(t, `"images":{"type":"array","maxItems":3,"items":{"type":"string","format":"uri"}}`)
	if f.MaxItems != 3 || d.Rename["images"] != "images[]" {
		t.Errorf("list = %+v, rename %v", f, d.Rename)
	}
	f, _ = one(t, `"a":{"type":"string","description":"`+strings.Repeat("ä", 3000)+`"}`)
	if n := len([]rune(f.Help)); n != 1000 {
		t.Errorf("help has %d characters, want 1000", n)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 70)
	d := draft(t, document(t, `"top-k":{"type":"integer"},"top_k":{"type":"integer"},"2x":{"type":"boolean"},"größe":{"type":"string"},"`+long+`":{"type":"string"},"`+long+`b":{"type":"string"},"\u0001":{"type":"string"},"size":{"type":"string"},"width":{"type":"integer"},"height":{"type":"integer"}`,
		`[]`, `{"type":"string","format":"uri"}`, ""))
	want := map[string]string{"top_k_2": "top-k", "x2x": "2x", "gr_e": "größe", long[:64]: long, long[:62] + "_2": long + "b", "x_": "\x01"}
	if !reflect.DeepEqual(d.Rename, want) {
		t.Errorf("rename = %q, want %q", d.Rename, want)
	}
	if last := d.Fields[len(d.Fields)-1]; last.Type != "WIDTH_HEIGHT" || last.Key != "size_2" {
		t.Errorf("last = %+v, want the size under another key", last)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	f, d := one(t, `"width":{"type":"integer","minimum":64,"maximum":1024,"default":512,"multipleOf":8},"height":{"type":"integer","minimum":128,"maximum":2048,"default":768,"multipleOf":8}`)
	if f.Type != "WIDTH_HEIGHT" || f.Key != "size" || *f.Min != 128 || *f.Max != 1024 || f.MultipleOf != 8 ||
		!reflect.DeepEqual(f.Default, map[string]any{"width": int64(512), "height": int64(768)}) || d.Rename != nil {
		t.Errorf("size = %+v, rename %v", f, d.Rename)
	}
	if f, _ = one(t, `"height":{"type":"integer"}`); f.Type != "NUM" {
		t.Errorf("a height alone = %+v", f)
	}
	apart := draft(t, document(t, `"width":{"type":"integer","enum":[256,512],"default":512},"height":{"type":"integer","enum":[256,512]}`, `[]`, `{"type":"string","format":"uri"}`, ""))
	if len(apart.Fields) != 2 || apart.Fields[0].Type != "SINGLE_SELECT" || apart.Fields[0].Default != int64(512) {
		t.Errorf("sides to choose from = %+v", apart.Fields)
	}
}

func TestSeedAndResults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		schema string
		max    int64
	}{
		{`"seed":{"type":"integer","maximum":2147483647}`, math.MaxInt32},
		{`"seed":{"type":"integer"}`, 0},
		{`"seed":{"type":"integer","maximum":18446744073709551615}`, 0},
	} {
		f, d := one(t, tt.schema)
		if d.Seed != "seed" || d.SeedMax != tt.max || f.Type != "SEED" || !f.Advanced {
			t.Errorf("%s: %+v", tt.schema, d)
		}
	}
	for _, tt := range []struct {
		schema string
		want   *manifestdraft.NumResults
	}{
		{`"num_outputs":{"type":"integer","minimum":1,"maximum":4,"default":4}`, &manifestdraft.NumResults{Min: 1, Max: 4, Default: 1}},
		{`"num_images":{"type":"integer","minimum":2,"maximum":400}`, &manifestdraft.NumResults{Min: 2, Max: 64, Default: 2}},
		{`"batch_size":{"type":"integer","enum":[1,2,3]}`, &manifestdraft.NumResults{Min: 1, Max: 3, Default: 1}},
		{`"num_outputs":{"type":"integer","enum":[1,4]}`, nil},
		{`"num_outputs":{"type":"integer","maximum":1}`, nil},
		{`"num_outputs":{"type":"integer"}`, nil},
	} {
		d := draft(t, document(t, tt.schema, `[]`, `{"type":"string","format":"uri"}`, ""))
		if d.Results == "" || !reflect.DeepEqual(d.NumResults, tt.want) || len(d.Fields) != 0 {
			t.Errorf("%s: %+v, want %+v", tt.schema, d, tt.want)
		}
	}
}

// TestNumResultsWithoutAnInput covers models without an input for the number of
// results.
func TestNumResultsWithoutAnInput(t *testing.T) {
	t.Parallel()
	const seed, file, list = `"seed":{"type":"integer"}`, `{"type":"string","format":"uri"}`, `{"type":"array","items":{"type":"string","format":"uri"},"x-cog-array-type":"iterator"}`
	upTo4 := &manifestdraft.NumResults{Min: 1, Max: 4, Default: 1}
	for _, tt := range []struct {
		name, inputs, output string
		want                 *manifestdraft.NumResults
		several              bool
	}{
		{"a seed each", seed, file, upTo4, false},
		{"a list and a seed", seed, list, upTo4, false},
		{"a list", ``, list, upTo4, true},
		{"one text in pieces", ``, `{"type":"array","items":{"type":"string"},"x-cog-array-display":"concatenate"}`, nil, false},
		{"no seed", `"prompt":{"type":"string"}`, file, nil, false},
	} {
		d := draft(t, document(t, tt.inputs, `[]`, tt.output, ""))
		if !reflect.DeepEqual(d.NumResults, tt.want) || d.Several != tt.several {
			t.Errorf("%s: %+v, several %v; want %+v, %v", tt.name, d.NumResults, d.Several, tt.want, tt.several)
		}
		if several := d.Tool("A", "cog").Engine.With["several"]; (several == true) != tt.several {
			t.Errorf("%s: several = %v in the manifest", tt.name, several)
		}
	}
}

func TestSafetySwitches(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]any{
		`"disable_safety_checker":{"type":"boolean","default":false}`:                  false,
		`"disable_safety_checker":{"type":"boolean","default":true}`:                   false,
		`"enable_safety_checker":{"type":"boolean","default":false}`:                   true,
		`"enableSafetyChecks":{"type":"boolean"}`:                                      true,
		`"safe_mode":{"type":"boolean"}`:                                               true,
		`"nsfw":{"type":"boolean","default":true}`:                                     false,
		`"allow_nsfw":{"type":"boolean","default":true}`:                               false,
		`"no_nsfw":{"type":"boolean"}`:                                                 true,
		`"nsfw_filter":{"type":"boolean"}`:                                             true,
		`"disable_nsfw_filter":{"type":"boolean"}`:                                     false,
		`"skip_moderation":{"type":"boolean"}`:                                         false,
		`"uncensored":{"type":"boolean"}`:                                              false,
		`"content_filter":{"type":"boolean"}`:                                          true,
		`"safety_tolerance":{"type":"integer","minimum":1,"maximum":6,"default":2}`:    int64(2),
		`"safety_tolerance":{"enum":["1","2","6"],"type":"string","default":"2"}`:      "2",
		`"nsfw_threshold":{"type":"number","default":0.5,"minimum":0,"maximum":1}`:     0.5,
		`"safety_tolerance":{"type":"integer","minimum":1,"maximum":6}`:                nil,
		`"safety_settings":{"type":"object","default":{"a":1}}`:                        nil,
		`"moderation":{"type":"string","enum":["auto","low"],"default":null}`:          nil,
		`"safety_checker_version":{"allOf":[{"$ref":"#/components/schemas/missing"}]}`: nil,
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(schema, `"`), `"`)
		d := draft(t, document(t, schema, `[]`, `{"type":"string","format":"uri","description":"An image"}`, ""))
		if len(d.Fields) != 0 || d.Fixed[name] != want {
			t.Errorf("%s: fields %+v, fixed %v; want %v", schema, d.Fields, d.Fixed, want)
		}
		if len(d.Notes) != 1 || !strings.HasPrefix(d.Notes[0], name+" is ") {
			t.Errorf("%s: notes = %q, want one about it", schema, d.Notes)
		}
		if with := d.Tool("A", "cog").Engine.With["input"]; (with == nil) != (want == nil) {
			t.Errorf("%s: input = %v in the manifest", schema, with)
		}
	}
	for _, name := range []string{"prompt", "filter", "content", "sampler", "check", "failsafe", "saves"} {
		if d := draft(t, document(t, `"`+name+`":{"type":"string"}`, `[]`, `{}`, "")); len(d.Fields) != 1 {
			t.Errorf("%s is taken for a safety switch", name)
		}
	}
	if _, err := manifestdraft.ToolFromSchema(source(document(t, `"safety_level":{"type":"integer"}`, `["safety_level"]`, `{}`, ""))); err == nil {
		t.Error("a required safety switch without a default is imported")
	}
}

func TestOutputTypes(t *testing.T) {
	t.Parallel()
	from := source(document(t, `"prompt":{"type":"string"}`, `[]`, `{"type":"string","format":"uri"}`, ""))
	for _, kind := range manifestdraft.OutputTypes {
		from.OutputType = kind
		tool, err := manifestdraft.ToolFromSchema(from)
		if err != nil || tool.Output.Type != kind || len(tool.Notes) != 0 || tool.Price != (manifestdraft.Price{Type: "COST", Tokens: 1}) {
			t.Errorf("%s: %+v, %v", kind, tool, err)
			continue
		}
		lint(t, tool)
	}
	from.OutputType = "sound"
	if _, err := manifestdraft.FromSchema(from); err == nil || !strings.Contains(err.Error(), "one of IMG, VID, AUDIO, ASSET_3D, TEXT") {
		t.Errorf("an unknown type: %v", err)
	}
	from.OutputType = ""
	from.Hint = "Makes music from a text."
	if d, err := manifestdraft.FromSchema(from); err != nil || d.Output.Type != "AUDIO" || len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "AUDIO is a guess") {
		t.Errorf("with a hint: %+v, %v", d, err)
	}
	from.Doc = document(t, `"prompt":{"type":"string"}`, `[]`, `{"type":"string","format":"uri","description":"The video"}`, "")
	if d, err := manifestdraft.FromSchema(from); err != nil || d.Output.Type != "VID" || len(d.Notes) != 0 {
		t.Errorf("a schema that says so: %+v, %v", d, err)
	}
}

func TestLeftOut(t *testing.T) {
	t.Parallel()
	d := draft(t, document(t, `"key":{"type":"string","format":"password"},"token":{"type":"string","x-cog-secret":true},"old":{"type":"string","deprecated":true},
		"options":{"type":"object"},"words":{"type":"array","items":{"type":"string"}},"-":{"type":"string"},"any":{},"loop":{"$ref":"#/components/schemas/loop"},"prompt":{"type":"string"}`,
		`["prompt","token","words"]`, `{"type":"string","format":"uri"}`, `"loop":{"anyOf":[{"$ref":"#/components/schemas/loop"},{"$ref":"#/components/schemas/loop"}]}`))
	if len(d.Fields) != 1 || d.Fields[0].Key != "prompt" || !d.Fields[0].Required {
		t.Errorf("fields = %+v, want the prompt", d.Fields)
	}
	if want := []string{"token: it is a secret", "words: no field type supports its values"}; !reflect.DeepEqual(d.Missing, want) {
		t.Errorf("missing = %q, want %q", d.Missing, want)
	}
}

func TestTooManyInputs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for n := range 300 {
		fmt.Fprintf(&b, `"a%d":{"type":"string"},`, n)
	}
	d := draft(t, document(t, b.String()+`"z":{"type":"string"}`, `["z"]`, `{}`, ""))
	if len(d.Fields) != 200 || len(d.Missing) != 1 {
		t.Errorf("fields = %d, missing %q", len(d.Fields), d.Missing)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	keys := func(d manifestdraft.Draft) (all string) {
		for _, f := range d.Fields {
			all += f.Key
		}
		return all
	}
	if got := keys(draft(t, document(t, `"c":{"type":"string","x-order":2},"a":{"type":"string","x-order":0},"z":{"type":"string"},"b":{"type":"string","x-order":1},"y":{"type":"string"}`, `[]`, `{}`, ""))); got != "abczy" {
		t.Errorf("order = %s", got)
	}
	d, err := manifestdraft.FromSchema(manifestdraft.Source{Input: "Input", Doc: []byte(`{"components":{"schemas":{"Input":{"x-fal-order-properties":["b","a"],"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}}}}}}`)})
	if err != nil || keys(d) != "bac" {
		t.Errorf("order = %s, %v", keys(d), err)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		`{"type":"string","format":"uri"}`:                                              "IMG",
		`{"type":"array","items":{"type":"string","format":"uri"}}`:                     "IMG",
		`{"type":"string","format":"uri","description":"The video"}`:                    "VID",
		`{"type":"array","description":"MP3","items":{"type":"string","format":"uri"}}`: "AUDIO",
		`{"type":"string"}`: "TEXT",
		`{"type":"array","items":{"type":"string"},"x-cog-array-display":"concatenate"}`:                                               "TEXT",
		`{"type":"object","properties":{"seed":{"type":"integer"},"words":{"type":"string"},"mesh":{"type":"string","format":"uri"}}}`: "ASSET_3D",
		`{"type":"object","properties":{"words":{"type":"string"}}}`:                                                                   "TEXT",
		`{"type":"object","properties":{"video":{"$ref":"#/components/schemas/File"}}}`:                                                "VID",
		`{"type":"object","properties":{"images":{"type":"array","items":{"$ref":"#/components/schemas/File"}}}}`:                      "IMG",
		`{"type":"object"}`: "IMG",
		`{}`:                "IMG",
	} {
		d := draft(t, document(t, `"prompt":{"type":"string"}`, `[]`, output, `"File":{"type":"object","properties":{"url":{"type":"string"},"content_type":{"type":"string"}}}`))
		if d.Output.Type != want || len(d.Output.MimeTypes) == 0 {
			t.Errorf("%s: %+v, want %s", output, d.Output, want)
		}
	}
}

func TestTool(t *testing.T) {
	t.Parallel()
	d := draft(t, document(t, `"top-k":{"type":"integer"},"seed":{"type":"integer","maximum":9},"num_outputs":{"type":"integer","maximum":4}`, `[]`, `{"type":"string"}`, ""))
	tool := d.Tool(" A\nmodel  with "+strings.Repeat("a long name ", 20), "gpu-box")
	lint(t, tool)
	if want := map[string]any{"rename": map[string]string{"top_k": "top-k"}, "seed": "seed", "seed_max": int64(9), "results": "num_outputs"}; !reflect.DeepEqual(tool.Engine.With, want) {
		t.Errorf("with = %v, want %v", tool.Engine.With, want)
	}
	if !strings.HasPrefix(tool.Name, "A model with a long name") || tool.NumResults.Max != 4 {
		t.Errorf("tool = %+v", tool)
	}
	lint(t, d.Tool("\x00", "cog"))
}

func TestNoSchema(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{``, `[]`, `{}`, `{"components":{"schemas":{"Output":{}}}}`, `{"components":[]}`} {
		if _, err := manifestdraft.FromSchema(source([]byte(doc))); err == nil {
			t.Errorf("%q: no error", doc)
		}
	}
	draft(t, []byte(`{"components":{"schemas":{"Input":{"properties":[1],"required":"x"}}}}`))
}

// TestAnySchema drafts from schemas that nobody would write.
func TestAnySchema(t *testing.T) {
	t.Parallel()
	names := rapid.OneOf(rapid.SampledFrom([]string{"prompt", "seed", "width", "height", "steps", "cfg", "num_outputs", "size", "image_url", "-", "a[]", "x"}), rapid.StringN(0, 90, -1))
	numbers := rapid.OneOf(rapid.Float64Range(-1e9, 1e9), rapid.Map(rapid.IntRange(-5, 5000), func(n int) float64 { return float64(n) }), rapid.Float64Range(-1e300, 1e300))
	values := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(numbers, func(f float64) any { return f }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Just[any](nil),
		rapid.Map(rapid.SliceOfN(rapid.String(), 0, 3), func(s []string) any { return s }), rapid.Just[any](map[string]any{"a": 1}),
	)
	rapid.Check(t, func(t *rapid.T) {
		property := func() map[string]any {
			p := map[string]any{}
			p["type"] = rapid.SampledFrom([]any{"string", "integer", "number", "boolean", "array", "object", "null", []string{"null", "integer"}, 3}).Draw(t, "type")
			for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxLength", "maxItems", "x-order"} {
				if rapid.IntRange(0, 2).Draw(t, key) == 0 {
					p[key] = numbers.Draw(t, key)
				}
			}
			for _, key := range []string{"default", "const", "description"} {
				if rapid.IntRange(0, 2).Draw(t, key) == 0 {
					p[key] = values.Draw(t, key)
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "enum") == 0 {
				p["enum"] = rapid.SliceOfN(values, 0, 4).Draw(t, "enum")
			}
			if rapid.IntRange(0, 3).Draw(t, "format") == 0 {
				p["format"] = "uri"
			}
			if rapid.IntRange(0, 4).Draw(t, "ref") == 0 {
				p["anyOf"] = []any{map[string]any{"$ref": "#/components/schemas/Input"}, map[string]any{"type": "integer", "enum": []int{1, 2}}}
			}
			return p
		}
		properties := map[string]any{}
		for range rapid.IntRange(0, 12).Draw(t, "inputs") {
			p := property()
			if rapid.Bool().Draw(t, "items") {
				p["items"] = property()
			}
			properties[names.Draw(t, "name")] = p
		}
		doc, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": map[string]any{
			"Input":  map[string]any{"properties": properties, "required": rapid.SliceOfN(names, 0, 5).Draw(t, "required")},
			"Output": property(),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		draft(t, doc)
	})
}

// TestMergeKeys has a name that YAML takes for a merge key unless it is quoted.
func TestMergeKeys(t *testing.T) {
	t.Parallel()
	draft(t, document(t, `"prompt":{"type":"string"},"<<":{"type":"string","description":"<<","enum":["<<","a"],"default":"<<"}`, `["prompt"]`, `{"type":"string","format":"uri"}`, ""))
}

// TestUnwritableTexts has texts of several lines that begin with white space,
// which the YAML encoder cannot write.
func TestUnwritableTexts(t *testing.T) {
	t.Parallel()
	d := draft(t, document(t, `"\t\n":{"type":"string"},"a":{"type":"string","description":"\tb\nc","default":"\tb\nc"},"b":{"type":"string","enum":["\tb\nc","d"],"default":"\tb\nc"},"safety":{"type":"string","default":"\tb\nc"}`,
		`[]`, `{"type":"string","format":"uri"}`, ""))
	if len(d.Fields) != 2 {
		t.Errorf("fields = %+v, want two", d.Fields)
	}
}

// TestCirclesHaveAnEnd: a schema may refer to itself, in as many ways as its
// server likes.
func TestCirclesHaveAnEnd(t *testing.T) {
	t.Parallel()
	many := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/components/schemas/Odd"},`, 100), ",")
	doc := document(t, `"prompt":{"type":"string"},"odd":{"$ref":"#/components/schemas/Odd"}`, `["prompt"]`, `{"type":"string","format":"uri"}`,
		`"Odd":{"anyOf":[`+many+`],"allOf":[`+many+`]}`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = manifestdraft.FromSchema(source(doc)) // whatever comes of it
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("the import does not end")
	}
}
