package catalog_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"atelier/internal/catalog/catalog"
	"atelier/tools"
)

// manifest is a small good tool; tests change one thing about it.
const manifest = `name: Echo
price: {type: FREE}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
`

func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

func read(t *testing.T, f fs.FS) *catalog.Set {
	t.Helper()
	s, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: f, Name: "dir"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShippedManifestsAreClean(t *testing.T) {
	t.Parallel()
	s := read(t, tools.Files)
	for _, p := range s.Problems {
		t.Error(p)
	}
	if s.Len() < 8 {
		t.Errorf("%d tools ship, want at least 8", s.Len())
	}
}

// TestEveryFieldType reads the one manifest that uses all there is.
func TestEveryFieldType(t *testing.T) {
	t.Parallel()
	f := os.DirFS(filepath.Join("testdata", "everything"))
	s := read(t, f)
	for _, p := range s.Problems {
		t.Error(p)
	}
	text, err := fs.ReadFile(f, "everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range strings.Fields(`PROMPT NEG_PROMPT TEXT TEXT_AREA SLIDER UPSCALE_FACTOR_SLIDER CFG STEPS NUM SEED BOOLEAN
		SINGLE_SELECT MODEL_SINGLE_SELECT MULTI_SELECT WIDTH_HEIGHT IMG IMGS VIDEO AUDIO ASSET_3D HEADER HTML`) {
		if !bytes.Contains(text, []byte("type: "+kind+"\n")) {
			t.Errorf("testdata/everything/everything.yaml has no %s", kind)
		}
	}
}

// TestProblems holds one mistake a line, with the place and words it is
// reported with.
func TestProblems(t *testing.T) {
	t.Parallel()
	field := func(s string) string { return manifest + "fields:\n  - {key: a, label: A, " + s + "}\n" }
	for _, c := range []struct{ name, text, want string }{
		{"not yaml", "a: [", "dir/x.yaml:1:1: not YAML"},
		{"tab", "name: x\n\tprice: 1", "dir/x.yaml:2:1: not YAML"},
		{"empty", "", "dir/x.yaml:1:1: the file is empty"},
		{"a list", "- a", "dir/x.yaml:1:1: must be a mapping"},
		{"no name", strings.Replace(manifest, "name: Echo", "description: x", 1), "dir/x.yaml:1:1: name: is required"},
		{"blank name", strings.Replace(manifest, "Echo", `" "`, 1), "dir/x.yaml:1:7: name: must not be blank"},
		{"name is a number", strings.Replace(manifest, "Echo", `7`, 1), "dir/x.yaml:1:7: name: must be text (put it in quotes)"},
		{"long name", strings.Replace(manifest, "Echo", strings.Repeat("x", 81), 1), "name: has 81 characters; at most 80 are allowed"},
		{"two lines", strings.Replace(manifest, "Echo", `"a\nb"`, 1), "name: must be one line"},
		{"unknown setting", manifest + "prise: 3\n", "dir/x.yaml:5:1: prise is not a known setting"},
		{"twice", manifest + "name: Again\n", "dir/x.yaml:5:1: name is set twice"},
		{"no price", strings.Replace(manifest, "price: {type: FREE}", "position: 1", 1), "price: is required"},
		{"cost nothing", strings.Replace(manifest, "FREE", "COST", 1), "price.tokens: must be at least 1"},
		{"negative price", strings.Replace(manifest, "FREE", "COST, tokens: -1", 1), "dir/x.yaml:2:29: price.tokens: must be between 0 and 1000000"},
		{"odd price", strings.Replace(manifest, "FREE", "CHEAP", 1), "price.type: must be one of COST, FREE"},
		{"half a token", strings.Replace(manifest, "FREE", "COST, tokens: 0.5", 1), "price.tokens: must be a whole number"},
		{"results", manifest + "num_results: {max: 65}", "num_results.max: must be between 1 and 64"},
		{"results upside down", manifest + "num_results: {min: 3, max: 2}", "num_results.min: must be at most max"},
		{"results default", manifest + "num_results: {max: 2, default: 3}", "num_results.default: must be between min and max"},
		{"output type", strings.Replace(manifest, "IMG", "PICTURE", 1), "output.type: must be one of"},
		{"output mime", strings.Replace(manifest, "image/png", "video/mp4", 1), "video/mp4 is not a mime type of IMG"},
		{"engine", strings.Replace(manifest, "{name: script}", "{name: ../x}", 1), "engine.name: must be the name of an engine"},
		{"priority", manifest + "priority: 11", "dir/x.yaml:5:11: priority: must be between -10 and 10"},
		{"timeout", manifest + "timeout: soon", "timeout: must be a duration"},
		{"long timeout", manifest + "timeout: 25h", "timeout: must be between 1s and 24h0m0s"},
		{"unknown tag", manifest + "tags: [nope]", "dir/x.yaml:5:8: tags: there is no tag nope"},
		{"repeated tag", manifest + "tags: [known, known]", "known occurs twice"},
		{"visible to nobody", manifest + "visibility: {}", "visibility: lists no company"},
		{"visible to one", manifest + "visibility: anna", `visibility: must be "everyone" or a mapping`},
		{"avatar missing", manifest + "avatar: a.png", "avatar: there is no file a.png"},
		{"avatar outside", manifest + "avatar: ../a.png", "must be the name of a .png file"},
		{"avatar no picture", manifest + "avatar: text.png", "text.png must be a PNG"},
		{"avatar digest", manifest + "avatar: \"sha256:00\"", "must be the name of a .png file"},
		{"field without key", manifest + "fields: [{type: TEXT, label: A}]", "fields[0].key: is required"},
		{"field key", manifest + "fields: [{key: 1a, type: TEXT, label: A}]", "fields[0].key: must start with a letter"},
		{"field keys twice", field("type: TEXT") + "  - {key: a, type: NUM, label: B}\n", "dir/x.yaml:7:11: fields[1].key: a is used by another field"},
		{"field type", field("type: COLOUR, shade: 3"), "fields[0].type: COLOUR is not a field type"},
		{"setting of another type", field("type: TEXT, min: 3"), "fields[0].min is not a known setting"},
		{"slider without ends", field("type: SLIDER"), "a slider needs min and max"},
		{"upside down", field("type: NUM, min: 3, max: 2"), "fields[0].min: must be at most max"},
		{"step", field("type: NUM, step: 0"), "fields[0].step: must be above 0"},
		{"broken whole", field("type: STEPS, min: 0.5"), "fields[0].min: must be a whole number"},
		{"default too long", field("type: TEXT, max_length: 2, default: abc"), "fields[0].default: must have at most 2 characters"},
		{"default no text", field("type: TEXT, default: 3"), "fields[0].default: must be text"},
		{"default too small", field("type: NUM, min: 1, default: 0"), "fields[0].default: must be at least 1"},
		{"default too large", field("type: NUM, max: 1, default: 2"), "fields[0].default: must be at most 1"},
		{"default not whole", field("type: STEPS, default: 1.5"), "fields[0].default: must be a whole number"},
		{"default seed", field("type: SEED, default: 4294967296"), "fields[0].default: must be at most"},
		{"default not bool", field("type: BOOLEAN, default: \"yes\""), "fields[0].default: must be true or false"},
		{"no options", field("type: SINGLE_SELECT"), "fields[0].options: must have 1 to 500 entries"},
		{"option twice", field("type: SINGLE_SELECT, options: [{text: a, value: 1}, {text: b, value: 1.0}]"), "options[1].value: is used by another option"},
		{"option value", field("type: SINGLE_SELECT, options: [{text: a, value: [1]}]"), "options[0].value: must be text or a number"},
		{"option without picture", field("type: SINGLE_SELECT, show_as: image, options: [{text: a, value: 1}]"), "options[0].image: is required"},
		{"default no option", field("type: SINGLE_SELECT, options: [{text: a, value: 1}], default: 2"), "fields[0].default: must be one of the options"},
		{"default no list", field("type: MULTI_SELECT, options: [{text: a, value: 1}], default: 1"), "fields[0].default: must be a list of options"},
		{"default list", field("type: MULTI_SELECT, options: [{text: a, value: 1}], default: [1, 1]"), "fields[0].default: must not repeat"},
		{"no sizes", field("type: WIDTH_HEIGHT"), "fields[0].sizes: needs a list of sizes"},
		{"one end", field("type: WIDTH_HEIGHT, min: 8"), "free sizes need both"},
		{"default size", field("type: WIDTH_HEIGHT, min: 8, max: 64, multiple_of: 8, default: {width: 8, height: 12}"), "that are multiples of 8"},
		{"default no size", field("type: WIDTH_HEIGHT, min: 8, max: 64, default: 8"), "must be a width and a height"},
		{"default picture", field("type: IMG, default: x"), "a IMG field must not have a default"},
		{"accept", field("type: IMG, accept: [png]"), "png is not a mime type"},
		{"required header", field("type: HEADER, required: true"), "must not have a value"},
		{"empty html", field("type: HTML"), "fields[0].html: is required"},
		{"empty group", manifest + "fields: [{group: G}]", "a group needs at least one field"},
		{"deep groups", manifest + "fields: " + strings.Repeat("[{group: G, fields: ", 6) + "[]" + strings.Repeat("}]", 6), "groups are nested more than 4 deep"},
		{"bomb", "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n" + manifest, "too large or nested too deeply"},
		{"itself", "a: &a [*a]\n" + manifest, "too large or nested too deeply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := read(t, files("x.yaml", c.text, "tags.yaml", "known: {type: MEDIA, label: Known}", "text.png", "no picture"))
			var all []string
			for _, p := range s.Problems {
				all = append(all, p.String())
			}
			got := strings.Join(all, "\n")
			if !strings.Contains(got, c.want) {
				t.Errorf("problems:\n%s\nwant one with: %s", got, c.want)
			}
			if s.Len() != 0 {
				t.Error("the tool counts in spite of its problem")
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	s := read(t, files(
		"bad_name.yaml", manifest,
		"x.yaml", "name: 3\nprice: {type: NO}\nfields: [{key: a, type: NUM, min: x, label: A}, {type: TEXT}]\n",
		"tags.yaml", "Wrong: {type: media}\nempty:\n",
		"kits.yaml", "k: {label: K, tools: [{tool: nowhere}], default: other}\nl:\n",
	))
	want := strings.TrimSpace(`
dir/bad_name.yaml:1:1: the file name of a manifest may contain only lower-case letters, digits and dashes, such as my-tool.yaml
dir/kits.yaml:1:30: k.tools[0].tool: there is no tool nowhere
dir/kits.yaml:1:50: k.default: must be one of the kit's tools
dir/kits.yaml:2:1: l: must be a mapping
dir/tags.yaml:1:1: Wrong: the name of a tag may contain only lower-case letters, digits and dashes
dir/tags.yaml:1:8: Wrong.label: is required
dir/tags.yaml:1:15: Wrong.type: must be a type such as MEDIA or MODEL_FAMILY
dir/tags.yaml:2:1: empty: must be a mapping
dir/x.yaml:1:1: output: is required
dir/x.yaml:1:1: engine: is required
dir/x.yaml:1:7: name: must be text (put it in quotes)
dir/x.yaml:1:7: name: must not be blank
dir/x.yaml:2:15: price.type: must be one of COST, FREE
dir/x.yaml:3:35: fields[0].min: must be a number
dir/x.yaml:3:49: fields[1].label: is required
dir/x.yaml:3:49: fields[1].key: is required`)
	var got []string
	for _, p := range s.Problems {
		got = append(got, p.String())
	}
	if strings.Join(got, "\n") != want {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), want)
	}
}

func picture(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, size, size))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAssets(t *testing.T) {
	t.Parallel()
	f := files("x.yaml", manifest+"avatar: a.png\n")
	f["a.png"] = &fstest.MapFile{Data: picture(t, 16)}
	if s := read(t, f); len(s.Problems) != 0 || len(s.Assets) != 1 {
		t.Errorf("problems %v, %d assets, want none and one", s.Problems, len(s.Assets))
	}
	f["a.png"] = &fstest.MapFile{Data: picture(t, 2049)}
	if s := read(t, f); len(s.Problems) != 1 {
		t.Errorf("a huge avatar gives problems %v, want one", s.Problems)
	}
	f["a.png"] = &fstest.MapFile{Data: append(picture(t, 16), make([]byte, 1<<20)...)}
	if s := read(t, f); len(s.Problems) != 1 {
		t.Errorf("a heavy avatar gives problems %v, want one", s.Problems)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(manifest)
	f.Add(manifest + "fields: [{group: G, fields: [{key: a, type: SLIDER, label: A, min: 0, max: 1}]}]")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: files("x.yaml", text), Name: "dir"})
		if err != nil {
			t.Fatal(err)
		}
		if s.Len()+min(len(s.Problems), 1) != 1 {
			t.Errorf("%d tools and %d problems, want one or the other", s.Len(), len(s.Problems))
		}
		_ = fmt.Sprint(s.Problems)
	})
}
