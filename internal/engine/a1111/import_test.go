package a1111_test

import (
	"slices"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/a1111/a1111test"
	"atelier/internal/engine/enginetest"
)

// TestImportedToolsRun drafts tools of every server, checks them against the
// catalog's rules, and runs them with all their fields.
func TestImportedToolsRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dialect     a1111test.Dialect
		model, call string
		checkpoint  any
		fields      string
	}{
		{a1111test.A1111, "", "", "sd15", "prompt size negative_prompt steps cfg seed sampler"},
		{a1111test.Forge, "sdxl", "img2img", "xl/sdxl", "prompt picture denoise mask negative_prompt steps cfg seed sampler"},
		{a1111test.SDNext, "", "upscale", nil, "picture factor upscaler"},
		{a1111test.SDCpp, "", "txt2img", "sd15", "prompt size negative_prompt steps cfg seed sampler"},
	} {
		t.Run(string(tt.dialect)+" "+tt.call, func(t *testing.T) {
			t.Parallel()
			w := begin(t, a1111test.Options{Dialect: tt.dialect})
			tool, err := w.ImportTool(t.Context(), tt.model, tt.call, "server")
			if err != nil {
				t.Fatal(err)
			}
			enginetest.LintDraft(t, tool)

			var keys []string
			values := map[string]any{}
			files := map[string][]engine.File{}
			for _, f := range tool.Fields {
				keys = append(keys, f.Key)
				switch {
				case f.Type == "IMG":
					files[f.Key] = []engine.File{picture()}
				case f.Default != nil:
					values[f.Key] = f.Default
				case len(f.Options) > 0:
					values[f.Key] = f.Options[len(f.Options)-1].Value
				case strings.Contains(f.Type, "PROMPT"):
					values[f.Key] = "a fox"
				}
			}
			if strings.Join(keys, " ") != tt.fields || tool.Engine.With["checkpoint"] != tt.checkpoint {
				t.Errorf("manifest with %v and fields %v", tool.Engine.With, keys)
			}
			j := job(t, tool.Engine.With, values, 1)
			j.Files = files
			w.run(t, j)
		})
	}
}

func TestWhatCannotBeImported(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{})
	if names, err := w.ListModels(t.Context()); err != nil || !slices.Equal(names, []string{"sd15", "xl/sdxl"}) {
		t.Errorf("models = %v, %v", names, err)
	}
	for _, tt := range []struct{ model, call, want string }{
		{"", "dream", "not supported"},
		{"flux", "", "no model"},
	} {
		if _, err := w.ImportTool(t.Context(), tt.model, tt.call, "x"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v, want %q", tt.model, tt.call, err, tt.want)
		}
	}
	w.Stop()
	for _, call := range []string{"txt2img", "upscale"} {
		if _, err := w.ImportTool(t.Context(), "", call, "x"); err == nil {
			t.Errorf("%s of no server = nil, want an error", call)
		}
	}
	if _, err := w.ListModels(t.Context()); err == nil {
		t.Error("models of no server = nil, want an error")
	}
}
