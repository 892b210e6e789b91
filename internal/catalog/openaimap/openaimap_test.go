package openaimap_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/openaimap"
	"atelier/tools"
)

// read returns the tool of a manifest.
func read(t *testing.T, manifest string) *catalog.Tool {
	t.Helper()
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: fstest.MapFS{"one.yaml": {Data: []byte(manifest)}}})
	if err != nil || len(set.Problems) > 0 {
		t.Fatal(err, set.Problems)
	}
	for slug, one := range set.AllTools() {
		one.Slug = slug
		return one
	}
	t.Fatal("no tool")
	return nil
}

const head = "name: One\nprice: {type: FREE}\nengine: {name: script}\n"

// TestShippedTools lists how the tools of the program can be called.
func TestShippedTools(t *testing.T) {
	t.Parallel()
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Builtin, Files: tools.Files})
	if err != nil || len(set.Problems) > 0 {
		t.Fatal(err, set.Problems)
	}
	got := map[string]string{}
	for slug, one := range set.AllTools() {
		var all []string
		for _, m := range openaimap.All(one) {
			text := string(m.Endpoint)
			if remarks := m.Remarks(); len(remarks) > 0 {
				text += " (" + strings.Join(remarks, "; ") + ")"
			}
			all = append(all, text)
		}
		got[slug] = strings.Join(all, ", ")
	}
	for slug, want := range map[string]string{
		"sketch":              "images/generations",
		"sketch-from-picture": "images/edits",
		"speech":              "audio/speech",
		"tune":                "",
		"gradient":            "images/generations (prompt is not used)",
		"cut-out":             "images/edits (prompt is not used), images/variations",
		"still-to-video":      "videos (prompt is not used)",
		"waveform":            "",
		"contact-sheet":       "images/edits (prompt is not used), images/variations",
	} {
		if got[slug] != want {
			t.Errorf("%s: %q, want %q", slug, got[slug], want)
		}
	}
	t.Logf("%v", got)
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		manifest string
		endpoint openaimap.Endpoint
		want     string
	}{
		{head + "output: {type: TEXT, mime_types: [text/plain]}\n", openaimap.Generations, "it makes text"},
		{head + "output: {type: IMG, mime_types: [image/png]}\nfields: [{key: sound, type: AUDIO, label: A, required: true}]\n", openaimap.Generations, "it requires a file in the field sound"},
		{head + "output: {type: IMG, mime_types: [image/png]}\nfields: [{key: prompt, type: PROMPT, label: A}]\n", openaimap.Edits, "it has no field for a picture"},
		{head + "output: {type: IMG, mime_types: [image/png]}\nfields: [{key: prompt, type: PROMPT, label: A, required: true}, {key: picture, type: IMG, label: B}]\n", openaimap.Variations, "it requires a text in the field prompt"},
		{head + "output: {type: AUDIO, mime_types: [audio/wav]}\nfields: [{key: speed, type: NUM, label: A}]\n", openaimap.Speech, "it has no field for a text"},
		{head + "output: {type: VID, mime_types: [video/mp4]}\nfields: [{key: film, type: VIDEO, label: A, required: true}]\n", openaimap.Videos, "it requires a file in the field film"},
		{head + "output: {type: IMG, mime_types: [image/png]}\nfields: [{key: n, type: NUM, label: A}]\nopenai: {fields: {prompt: n}}\n", openaimap.Generations, "its field n, which the manifest names for prompt, is no text"},
		{head + "output: {type: IMG, mime_types: [image/png]}\nfields: [{key: p, type: IMG, label: A}, {key: n, type: NUM, label: A}]\nopenai: {fields: {mask: n}}\n", openaimap.Edits, "its field n, which the manifest names for mask, is no picture"},
	} {
		_, err := openaimap.New(read(t, one.manifest), one.endpoint)
		if err == nil || err.Error() != one.want {
			t.Errorf("%s: %v, want %s", one.endpoint, err, one.want)
		}
	}
}

const painter = head + `output: {type: IMG, mime_types: [image/png]}
openai:
  models: [dall-e-3]
  values: {quality: {hd: 40}}
fields:
  - {key: prompt, type: PROMPT, label: Prompt, required: true}
  - {key: size, type: WIDTH_HEIGHT, label: Size, sizes: [{text: A, width: 512, height: 512}, {text: B, width: 768, height: 512}]}
  - {key: quality, type: STEPS, label: Steps, min: 1, max: 50}
  - {key: style, type: SINGLE_SELECT, label: Style, options: [{text: Flat, value: flat}, {text: Vivid, value: vivid}]}
  - {key: seed, type: SEED, label: Seed}
  - {key: sharp, type: BOOLEAN, label: Sharp}
  - {key: mask, type: IMG, label: Mask}
  - {key: picture, type: IMG, label: Picture}
  - {key: more, type: IMGS, label: More, max_items: 2}
`

func TestInputs(t *testing.T) {
	t.Parallel()
	tool := read(t, painter)
	ref := func(n int64) any { return map[string]any{"kind": "MULTIPART", "file_index": n} }
	for name, one := range map[string]struct {
		endpoint openaimap.Endpoint
		request  openaimap.Request
		want     map[string]any
		problem  string // parameter, colon, message
	}{
		"the exact size": {openaimap.Generations, openaimap.Request{Parameters: map[string]any{"model": "one", "prompt": "fox", "n": int64(1), "size": "768x512"}},
			map[string]any{"prompt": "fox", "size": map[string]any{"width": int64(768), "height": int64(512)}}, ""},
		"the nearest size of the same shape": {openaimap.Generations, openaimap.Request{Parameters: map[string]any{"prompt": "fox", "size": "1024x1024"}},
			map[string]any{"prompt": "fox", "size": map[string]any{"width": int64(512), "height": int64(512)}}, ""},
		"another shape": {openaimap.Generations, openaimap.Request{Parameters: map[string]any{"prompt": "fox", "size": "1024x1792"}},
			nil, "size: size is not offered in this shape; this model offers 512x512, 768x512."},
		"no size": {openaimap.Generations, openaimap.Request{Parameters: map[string]any{"prompt": "fox", "size": "big"}},
			nil, "size: size must be a width and a height such as 1024x1024, or auto; this model offers 512x512, 768x512."},
		"a translated value": {openaimap.Generations, openaimap.Request{Parameters: map[string]any{"prompt": "fox", "quality": "hd", "style": "vivid", "background": "red"}},
			map[string]any{"prompt": "fox", "quality": int64(40), "style": "vivid"}, ""},
		"a value that is not offered": {openaimap.Generations, openaimap.Request{Parameters: map[string]any{"prompt": "fox", "style": "natural"}},
			nil, "style: style must be one of the options: flat, vivid."},
		"automatic": {openaimap.Generations, openaimap.Request{Parameters: map[string]any{"prompt": "fox", "quality": "auto", "size": "auto"}},
			map[string]any{"prompt": "fox"}, ""},
		"further fields, from a form": {openaimap.Edits, openaimap.Request{Parameters: map[string]any{"prompt": "5", "seed": "7", "sharp": "true"}, Pictures: []any{ref(0)}},
			map[string]any{"prompt": "5", "seed": int64(7), "sharp": true, "picture": ref(0)}, ""},
		"an unknown parameter": {openaimap.Generations, openaimap.Request{Parameters: map[string]any{"prompt": "fox", "sede": int64(1)}},
			nil, "sede: Unknown parameter: sede is neither a parameter of this endpoint nor a field of the model one."},
		"pictures and a mask": {openaimap.Edits, openaimap.Request{Parameters: map[string]any{"prompt": "fox"}, Pictures: []any{ref(0), ref(1), ref(2)}, Mask: ref(3)},
			map[string]any{"prompt": "fox", "picture": ref(0), "more": []any{ref(1), ref(2)}, "mask": ref(3)}, ""},
		"too many pictures": {openaimap.Edits, openaimap.Request{Pictures: []any{ref(0), ref(1), ref(2), ref(3)}},
			nil, "image: The model one takes at most 3 pictures."},
		"a mask without a picture": {openaimap.Edits, openaimap.Request{Mask: ref(0)}, nil, "mask: A mask needs the picture that it belongs to."},
		"no picture":               {openaimap.Edits, openaimap.Request{}, nil, "image: A picture is required."},
		"a prompt that is no text": {openaimap.Generations, openaimap.Request{Parameters: map[string]any{"prompt": int64(3)}}, nil, "prompt: prompt must be text."},
	} {
		m, err := openaimap.New(tool, one.endpoint)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Inputs(one.request)
		problem := ""
		if f, ok := err.(*fault.Error); ok {
			problem = f.Fields[0].Path + ": " + f.Fields[0].Message
		}
		if !reflect.DeepEqual(got, one.want) || problem != one.problem {
			t.Errorf("%s: %v, %q; want %v, %q", name, got, problem, one.want, one.problem)
		}
	}
}

func TestSpeech(t *testing.T) {
	t.Parallel()
	m, err := openaimap.New(read(t, head+`output: {type: AUDIO, mime_types: [audio/wav]}
fields:
  - {key: text, type: TEXT_AREA, label: Text, required: true}
  - {key: voice, type: SINGLE_SELECT, label: Voice, default: man, options: [{text: Man, value: man}, {text: Woman, value: woman}]}
  - {key: speed, type: SLIDER, label: Speed, default: 160, min: 80, max: 320, step: 10, integer: true}
`), openaimap.Speech)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		voice string
		speed any
		want  map[string]any
		err   string
	}{
		{"woman", 1.5, map[string]any{"text": "hello", "voice": "woman", "speed": 240.0}, ""},
		{"alloy", "0.5", map[string]any{"text": "hello", "speed": 80.0}, ""},
		{"nobody", nil, nil, "voice must be one of the options: man, woman."},
		{"man", 4.0, nil, "speed must be between 0.50 and 2.00 with this model."},
		{"man", "fast", nil, "speed must be a number."},
	} {
		got, err := m.Inputs(openaimap.Request{Parameters: map[string]any{"model": "x", "input": "hello", "voice": one.voice, "speed": one.speed}})
		text := ""
		if err != nil {
			text = err.(*fault.Error).Message
		}
		if !reflect.DeepEqual(got, one.want) || text != one.err {
			t.Errorf("%s, %v: %v, %q; want %v, %q", one.voice, one.speed, got, text, one.want, one.err)
		}
	}
}

func TestManifestProblems(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"{modles: [a]}":               "openai.modles is not a known setting",
		"{models: [a b]}":             "a b is not the name of a model",
		"{fields: {prompt: nothing}}": "the tool has no field nothing",
		"{fields: {colour: prompt}}":  "is not a parameter; the parameters are",
		"{values: {quality: high}}":   "must be a mapping from values of the parameter to values of the field",
		"{values: {quality: }}":       "must not be empty",
		"[prompt]":                    "must be a mapping",
	} {
		set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: fstest.MapFS{"one.yaml": {Data: []byte(head +
			"output: {type: IMG, mime_types: [image/png]}\nfields: [{key: prompt, type: PROMPT, label: A}]\nopenai: " + part + "\n")}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Message, want) {
			t.Errorf("%s: %v, want %s", part, set.Problems, want)
		}
	}
}
