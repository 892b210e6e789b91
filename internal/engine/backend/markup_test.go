package backend_test

import (
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

func TestMarkup(t *testing.T) {
	t.Parallel()
	const always, unlessAllowed, never = "always", "unless allowed", "never"
	for text, refused := range map[string]string{
		"a fox":                                    never,
		"a (red:1.3) fox, [night:day:0.5] <3":      never,
		"a <b>fox</b> -> a hen, 3 < 4: yes":        never,
		"{red|blue} fox, snake_case and __init":    never,
		"an SD card, C++ extra large":              never,
		"a fox <lora:fur:1>":                       unlessAllowed,
		"a fox < LyCO : fur\n: 1 >":                unlessAllowed,
		"<hypernet:<x>:1>":                         unlessAllowed,
		"{<}lora{:}fur{>}":                         unlessAllowed,
		"a __colour__ fox":                         unlessAllowed,
		"a {_}_dir/colour_{_} fox":                 unlessAllowed,
		`<sd_cpp_extra_args>{"seed":1}</sd_cpp_…>`: always,
		"<SD_CPP_EXTRA_ARGS>":                      always,
		"< sd_cpp\n_extra_ args >":                 always,
		"<sd_c{p}p_":                               always,
		"cpp_extra_args>{}":                        always,
		"a fox <s\u200bd_cpp_extra_args>":          always,
	} {
		for _, m := range []backend.Markup{"", "refuse", "allow"} {
			want := refused == always || refused == unlessAllowed && m != "allow"
			err := m.RefuseMarkup(map[string]any{"seed": int64(3), "words": []any{"a hen", map[string]any{"more": text}}}, backend.ExtraNetworks, backend.Wildcards)
			if (err != nil) != want {
				t.Errorf("%q with markup %q: %v, want refused: %v", text, m, err, want)
			}
			if err == nil {
				continue
			}
			e := engine.AsError(err)
			if e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, `"words"`) || strings.Contains(e.Error(), text) {
				t.Errorf("%q: %v, want a failure that names the field and does not repeat the text", text, e)
			}
		}
	}
}

func TestOtherKindsOfMarkupAreText(t *testing.T) {
	t.Parallel()
	values := map[string]any{"prompt": "a fox before a def __init__(self)"}
	if err := backend.Markup("").RefuseMarkup(values, backend.ExtraNetworks); err != nil {
		t.Errorf("refused: %v", err)
	}
}

func TestMarkupSplitOverFields(t *testing.T) {
	t.Parallel()
	for _, values := range []map[string]any{
		{"prompt": "a fox <sd_c", "negative_prompt": `pp_extra_args>{"seed":1}`},
		{"prompt": `pp_extra_args>{"seed":1}`, "negative_prompt": "a fox <sd_c"},
		{"words": []any{"a fox <s", "d_cpp_"}},
	} {
		if err := backend.Markup("allow").RefuseMarkup(values); err == nil {
			t.Errorf("%v: no error, want one", values)
		}
	}
}

func TestTheSettingOfMarkup(t *testing.T) {
	t.Parallel()
	for m, want := range map[backend.Markup]bool{"": true, "refuse": true, "allow": true, "yes": false} {
		if err := m.CheckSetting(); (err == nil) != want {
			t.Errorf("%q: %v, want accepted: %v", m, err, want)
		}
	}
}
