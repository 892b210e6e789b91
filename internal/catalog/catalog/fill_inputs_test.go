package catalog_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atelier/internal/catalog/catalog"
	"atelier/tools"
)

const (
	anUpload = `{"kind":"UPLOAD_REF","id":"aB3aB3aB3aB3aB3aB3aB"}`
	anItem   = `{"kind":"LIBRARY_REF","id":"aB3aB3aB3aB3aB3aB3aB:0198c0de-aaaa-7bbb-8ccc-0123456789ab"}`
)

func part(i int) string { return fmt.Sprintf(`{"kind":"MULTIPART","file_index":%d}`, i) }

func TestFill(t *testing.T) {
	t.Parallel()
	tool := everything(t)
	got, problems := tool.ParseInputs(inputs(t, `{"pictures":[`+anItem+`,`+part(1)+`],"prompt":"a fox","negative":"","story":"once","factor":4.0,"seed":7,"cfg":null,
		"picture":`+part(0)+`,"film":`+anUpload+`,"sound":`+anUpload+`,"model_3d":`+anUpload+`,"model":2.5}`), catalog.InputOptions{Files: 2})
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	const want = `{amount:0.5f cfg:7.5f extras:["a" "b"] factor:4 model:2.5f prompt:"a fox" seed:7 size:{height:768 width:512} steps:20 story:"once" style:"dot" tile:true title:"Untitled"}`
	if show(got.Values) != want {
		t.Errorf("values = %s\nwant %s", show(got.Values), want)
	}
	if got.Prompt != "a fox" || got.Seed == nil || *got.Seed != 7 {
		t.Errorf("prompt %q and seed %v, want those given", got.Prompt, got.Seed)
	}
	if texts := []catalog.TextInput{{Path: "inputs.prompt", Value: "a fox"}, {Path: "inputs.story", Value: "once"}}; !slices.Equal(got.Texts, texts) {
		t.Errorf("texts = %q, want %q", got.Texts, texts)
	}
	up, item := "aB3aB3aB3aB3aB3aB3aB", "aB3aB3aB3aB3aB3aB3aB:0198c0de-aaaa-7bbb-8ccc-0123456789ab"
	refs := []catalog.Ref{
		{Kind: catalog.Multipart, Field: "picture", Path: "inputs.picture", Accept: []string{"image/png"}, MediaType: "IMG"},
		{Kind: catalog.LibraryRef, ID: item, Field: "pictures", List: true, Path: "inputs.pictures.0", MediaType: "IMG"},
		{Kind: catalog.Multipart, FileIndex: 1, Field: "pictures", List: true, Index: 1, Path: "inputs.pictures.1", MediaType: "IMG"},
		{Kind: catalog.UploadRef, ID: up, Field: "film", Path: "inputs.film", MediaType: "VID"},
		{Kind: catalog.UploadRef, ID: up, Field: "sound", Path: "inputs.sound", MediaType: "AUDIO"},
		{Kind: catalog.UploadRef, ID: up, Field: "model_3d", Path: "inputs.model_3d", MediaType: "ASSET_3D"},
	}
	if !reflect.DeepEqual(got.Refs, refs) {
		t.Errorf("refs = %+v\nwant %+v", got.Refs, refs)
	}
}

func TestPromptAndSeed(t *testing.T) {
	t.Parallel()
	two := form(t, "key: a, type: PROMPT, label: A", "key: s, type: SEED, label: S", "group: G, fields: [{key: b, type: PROMPT, label: B}, {key: z, type: SEED, label: Z}]")
	set := form(t, "key: a, type: PROMPT, label: A, default: d", "key: s, type: SEED, label: S, default: 1e3")
	seven, thousand := int64(7), int64(1000)
	for _, c := range []struct {
		tool   *catalog.Tool
		in     string
		prompt string
		seed   *int64
		texts  int
	}{
		{two, `{"a":"x","b":"y","s":7,"z":8}`, "x", &seven, 2},
		{two, `{"b":"y","z":8}`, "", nil, 1},
		{two, `{}`, "", nil, 0},
		{set, `{}`, "d", &thousand, 0},
		{set, `{"a":"d","s":7.0}`, "d", &seven, 1},
		{form(t), `{}`, "", nil, 0},
	} {
		got, problems := c.tool.ParseInputs(inputs(t, c.in), catalog.InputOptions{})
		if len(problems) > 0 || got.Prompt != c.prompt || !reflect.DeepEqual(got.Seed, c.seed) || len(got.Texts) != c.texts {
			t.Errorf("%s gave %+v, %v", c.in, got, problems)
		}
	}
}

func TestAllInputProblemsAtOnce(t *testing.T) {
	t.Parallel()
	tool := everything(t)
	in := inputs(t, `{"zebra":1,"Prompt":"x","Numbers":{},"":0,"head":"x","prompt":null,"title":3,"amount":"1","steps":51,"seed":-1,"tile":"yes","model":3,"extras":"a",
		"size":{"width":1},"picture":`+part(2)+`,"pictures":[`+part(1)+`,`+part(1)+`,`+anUpload+`,`+anItem+`],"film":{"kind":"UPLOAD_REF","id":"?"},"note":1,"line\nbreak\u202e":1}`)
	in[strings.Repeat("k", 200)] = true
	want := strings.TrimSpace(`
inputs.head: Must not have a value.
inputs.prompt: This field is required.
inputs.title: Must be text.
inputs.amount: Must be a number.
inputs.steps: Must be at most 50.
inputs.seed: Must be at least 0.
inputs.tile: Must be true or false.
inputs.model: Must be one of the options: 1, 2.5.
inputs.extras: Must be a list of options.
inputs.size: Must be a width and a height in whole pixels.
inputs.picture: There is no such file part.
inputs.pictures: Must have at most 3 references.
inputs.pictures.1: This file part is used twice.
inputs.film: There is no such upload.
inputs.note: Must not have a value.
inputs.: This tool has no such field.
inputs.Numbers: This tool has no such field.
inputs.Prompt: This tool has no such field.
inputs.` + strings.Repeat("k", 80) + `: This tool has no such field.
inputs.line�break�: This tool has no such field.
inputs.zebra: This tool has no such field.
files.0: No input refers to this file.`)
	for range 5 { // in the same order each time
		got, problems := tool.ParseInputs(in, catalog.InputOptions{Files: 2})
		if lines(problems) != want {
			t.Fatalf("problems:\n%s\nwant:\n%s", lines(problems), want)
		}
		if len(got.Refs) != 3 || got.Refs[2].Index != 3 {
			t.Errorf("refs = %+v, want the three that are well-formed", got.Refs)
		}
	}
}

func TestFileParts(t *testing.T) {
	t.Parallel()
	tool := form(t, "key: one, type: IMG, label: A", "key: many, type: IMGS, label: B", "group: G, fields: [{key: film, type: VIDEO, label: C}]")
	for _, c := range []struct {
		name, in string
		o        catalog.InputOptions
		refs     int
		want     string
	}{
		{"none", `{}`, catalog.InputOptions{}, 0, ""},
		{"each once, in any order", `{"one":` + part(2) + `,"many":[` + part(1) + `],"film":` + part(0) + `}`, catalog.InputOptions{Files: 3}, 3, ""},
		{"index as a fraction that is whole", `{"one":{"kind":"MULTIPART","file_index":0.0}}`, catalog.InputOptions{Files: 1}, 1, ""},
		{"the one after the last", `{"one":` + part(1) + `}`, catalog.InputOptions{Files: 1}, 0, "inputs.one: There is no such file part.\nfiles.0: No input refers to this file."},
		{"before the first", `{"one":` + part(-1) + `}`, catalog.InputOptions{}, 0, "inputs.one: There is no such file part."},
		{"far away", `{"one":{"kind":"MULTIPART","file_index":9223372036854775807}}`, catalog.InputOptions{Files: 1}, 0, "inputs.one: There is no such file part.\nfiles.0: No input refers to this file."},
		{"twice in a list", `{"many":[` + part(0) + `,` + part(0) + `]}`, catalog.InputOptions{Files: 1}, 1, "inputs.many.1: This file part is used twice."},
		{"twice in two fields", `{"film":` + part(0) + `,"one":` + part(0) + `}`, catalog.InputOptions{Files: 1}, 1, "inputs.film: This file part is used twice."},
		{"never", `{"one":` + anUpload + `}`, catalog.InputOptions{Files: 2}, 1, "files.0: No input refers to this file.\nfiles.1: No input refers to this file."},
		{"one of three never", `{"many":[` + part(2) + `,` + part(0) + `]}`, catalog.InputOptions{Files: 3}, 2, "files.1: No input refers to this file."},
		{"only in an unknown field", `{"two":` + part(0) + `}`, catalog.InputOptions{Files: 1}, 0, "inputs.two: This tool has no such field.\nfiles.0: No input refers to this file."},
		{"with a strange name", `{"one":{"kind":"MULTIPART","file_index":0,"id":"x"}}`, catalog.InputOptions{Files: 1}, 1, "inputs.one.id: A reference of this kind does not have this property."},
		{"an upload twice", `{"one":` + anUpload + `,"many":[` + anUpload + `,` + anUpload + `]}`, catalog.InputOptions{}, 3, ""},
		{"twelve in a list", `{"many":[` + strings.Repeat(anUpload+`,`, 11) + anItem + `]}`, catalog.InputOptions{}, 12, ""},
		{"thirteen in a list", `{"many":[` + strings.Repeat(anUpload+`,`, 12) + anItem + `]}`, catalog.InputOptions{}, 13, "inputs.many: Must have at most 12 references."},
		{"drafts take no files", `{"one":` + part(0) + `,"many":[` + anItem + `,{"kind":"MULTIPART"}]}`, catalog.InputOptions{PriceOnly: true}, 1,
			"inputs.one: Files can be sent only when the run is started. Omit this input here.\ninputs.many.1: Files can be sent only when the run is started. Omit this input here."},
		{"drafts take references", `{"one":` + anUpload + `,"many":[` + anItem + `]}`, catalog.InputOptions{PriceOnly: true}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, problems := tool.ParseInputs(inputs(t, c.in), c.o)
			if lines(problems) != c.want || len(got.Refs) != c.refs {
				t.Errorf("%d refs and problems:\n%s\nwant %d and:\n%s", len(got.Refs), lines(problems), c.refs, c.want)
			}
		})
	}
}

func TestDraft(t *testing.T) {
	t.Parallel()
	tool := form(t, "key: a, type: PROMPT, label: A, required: true", "key: b, type: IMG, label: B, required: true", "key: c, type: NUM, label: C, required: true, default: 3",
		"key: d, type: IMGS, label: D, required: true", "key: e, type: NUM, label: E, max: 4")
	for _, c := range []struct{ in, draft, run string }{
		{`{}`, "", "inputs.a: This field is required.\ninputs.b: This field is required.\ninputs.d: This field is required."},
		{`{"a":"","b":null,"d":[]}`, "", "inputs.a: This field is required.\ninputs.b: This field is required.\ninputs.d: This field is required."},
		{`{"a":3,"e":5,"f":1}`, "inputs.a: Must be text.\ninputs.e: Must be at most 4.\ninputs.f: This tool has no such field.",
			"inputs.a: Must be text.\ninputs.b: This field is required.\ninputs.d: This field is required.\ninputs.e: Must be at most 4.\ninputs.f: This tool has no such field."},
	} {
		got, draft := tool.ParseInputs(inputs(t, c.in), catalog.InputOptions{PriceOnly: true})
		if _, run := tool.ParseInputs(inputs(t, c.in), catalog.InputOptions{}); lines(draft) != c.draft || lines(run) != c.run {
			t.Errorf("%s as a draft:\n%s\nwant\n%s\nas a run:\n%s\nwant\n%s", c.in, lines(draft), c.draft, lines(run), c.run)
		}
		if got.Values["c"] != int64(3) {
			t.Errorf("%s gave %v for c, want its default", c.in, got.Values["c"])
		}
	}
	if got, problems := tool.ParseInputs(nil, catalog.InputOptions{PriceOnly: true}); len(problems) > 0 || show(got.Values) != "{c:3}" {
		t.Errorf("no inputs at all gave %+v, %v", got, problems)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	in := map[string]any{}
	for i := range catalog.MaxProblems - 1 {
		in[fmt.Sprintf("k%03d", i)] = true
	}
	tool := form(t, "key: n, type: NUM, label: N")
	for _, c := range []struct {
		n     any
		files int
		want  int
	}{{int64(1), 0, 99}, {"x", 0, 100}, {"x", 1, 100}, {"x", 5000, 100}} {
		in["n"] = c.n
		if _, problems := tool.ParseInputs(in, catalog.InputOptions{Files: c.files}); len(problems) != c.want {
			t.Errorf("%d problems, want %d", len(problems), c.want)
		}
	}
}

// TestDefaultsFill holds that a tool runs with what it suggests itself, and
// that nobody can change the tool through what they were given.
func TestDefaultsFill(t *testing.T) {
	t.Parallel()
	all := map[string]*catalog.Tool{"everything": everything(t)}
	names, err := fs.Glob(tools.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name == "tags.yaml" || name == "kits.yaml" {
			continue
		}
		text, err := fs.ReadFile(tools.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		if all[name], err = catalog.ToolOf(text); err != nil {
			t.Fatal(err)
		}
	}
	for name, tool := range all {
		draft := catalog.InputOptions{PriceOnly: true}
		first, problems := tool.ParseInputs(nil, draft)
		if len(problems) > 0 {
			t.Errorf("%s: %s", name, lines(problems))
		}
		again, problems := tool.ParseInputs(first.Values, draft)
		if len(problems) > 0 || show(again.Values) != show(first.Values) {
			t.Errorf("%s: its own defaults give %s, %s\nwant %s", name, show(again.Values), lines(problems), show(first.Values))
		}
		for _, v := range first.Values {
			switch v := v.(type) {
			case []any:
				v[0] = "changed"
			case map[string]any:
				v["width"] = "changed"
			}
		}
		if fresh, _ := tool.ParseInputs(nil, draft); show(fresh.Values) != show(again.Values) {
			t.Errorf("%s: changing what was filled changed the tool: %s", name, show(fresh.Values))
		}
	}
}

// anyValue draws something a request can hold, often something a field takes.
func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 9
		if depth == 0 {
			kinds = 7
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 70)).Draw(t, "whole")
		case 3:
			return rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int64Range(-2, 70), func(n int64) float64 { return float64(n) })).Draw(t, "number")
		case 4:
			return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "b", "dot", "UPLOAD_REF", "MULTIPART"})).Draw(t, "text")
		case 5:
			return map[string]any{"width": rapid.Int64Range(1, 33).Draw(t, "width") * 64, "height": int64(512)}
		case 6:
			ref := inputsOf(rapid.SampledFrom([]string{anUpload, anItem, part(0), part(1), part(2), `{"kind":"UPLOAD_REF"}`}).Draw(t, "ref"))
			if rapid.IntRange(0, 5).Draw(t, "odd") == 0 {
				ref[rapid.String().Draw(t, "name")] = nil
			}
			return ref
		case 7:
			return rapid.SliceOfN(anyValue(depth-1), 0, 4).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"kind", "id", "file_index", "width", "height"})), anyValue(depth-1), 0, 4).Draw(t, "object")
	})
}

func inputsOf(text string) map[string]any {
	v, _ := fromJSON(text)
	return v.(map[string]any)
}

// sound holds what is true of every filling: the same each time, either good or
// with problems that a person can read, and what is good stays good.
func sound(t rapid.TB, tool *catalog.Tool, in map[string]any, o catalog.InputOptions) {
	t.Helper()
	got, problems := tool.ParseInputs(in, o)
	again, same := tool.ParseInputs(in, o)
	if !reflect.DeepEqual(got, again) || !slices.Equal(problems, same) {
		t.Fatalf("twice the same inputs gave %+v, %v and %+v, %v", got, problems, again, same)
	}
	if len(problems) > catalog.MaxProblems {
		t.Fatalf("%d problems", len(problems))
	}
	for _, p := range problems {
		known := strings.HasPrefix(p.Path, "inputs.") || strings.HasPrefix(p.Path, "files.")
		if !known || p.Message[0] < 'A' || p.Message[0] > 'Z' || !strings.HasSuffix(p.Message, ".") {
			t.Fatalf("problem %+v, want a path and a sentence", p)
		}
	}
	if len(problems) > 0 {
		return
	}
	refill := map[string]any{}
	for key, v := range got.Values {
		refill[key] = v
	}
	for _, r := range got.Refs {
		refill[r.Field] = in[r.Field]
	}
	if again, problems := tool.ParseInputs(refill, o); len(problems) > 0 || show(again.Values) != show(got.Values) || !reflect.DeepEqual(again.Refs, got.Refs) {
		t.Fatalf("what was filled gives %s and %s\nwant %s", show(again.Values), lines(problems), show(got.Values))
	}
	if _, err := json.Marshal(got.Values); err != nil {
		t.Fatal(err)
	}
}

func TestAnyInputs(t *testing.T) {
	t.Parallel()
	tool := everything(t)
	keys := strings.Fields(`head prompt negative title story amount factor cfg steps weight seed tile style model extras size picture pictures film sound model_3d note`)
	rapid.Check(t, func(rt *rapid.T) {
		in := rapid.MapOfN(rapid.OneOf(rapid.SampledFrom(keys), rapid.SampledFrom(keys), rapid.String()), anyValue(2), 0, 6).Draw(rt, "inputs")
		if rapid.Bool().Draw(rt, "prompted") {
			in["prompt"] = "a fox"
		}
		o := catalog.InputOptions{PriceOnly: rapid.Bool().Draw(rt, "draft"), Files: rapid.IntRange(0, 2).Draw(rt, "files")}
		sound(rt, tool, in, o)
	})
	// One field at a time fills more often than not.
	for _, key := range keys {
		rapid.Check(t, func(rt *rapid.T) {
			sound(rt, tool, map[string]any{key: anyValue(2).Draw(rt, "value")}, catalog.InputOptions{PriceOnly: true})
		})
	}
}

func FuzzFill(f *testing.F) {
	tool := everything(f)
	f.Add(`{"prompt":"a fox"}`, 0, false)
	f.Add(`{"prompt":"a","pictures":[`+part(0)+`,`+anUpload+`],"size":{"width":64,"height":1e2},"extras":["a"]}`, 1, false)
	f.Add(`{"seed":1e2,"steps":1e300,"amount":-0.0,"picture":{"kind":"LIBRARY_REF","id":":"},"x":{"":[[]]}}`, 3, true)
	f.Fuzz(func(t *testing.T, text string, files int, draft bool) {
		v, ok := fromJSON(text)
		in, isMap := v.(map[string]any)
		if !ok || !isMap || files > 1000 {
			return
		}
		sound(t, tool, in, catalog.InputOptions{PriceOnly: draft, Files: files})
	})
}
