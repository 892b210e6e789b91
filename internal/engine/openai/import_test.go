package openai_test

import (
	"slices"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai/openaitest"
)

func TestImport(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model   string
		call    string // "" leaves it to the engine
		dialect openaitest.Dialect
		want    string
		fields  string
	}{
		{"gpt-image-1", "", openaitest.OpenAI, "images", "prompt size quality"},
		{"dall-e-3", "", openaitest.OpenAI, "images", "prompt size quality"},
		{"dall-e-2", "", openaitest.OpenAI, "images", "prompt size"},
		{"gpt-4o-mini-tts", "", openaitest.OpenAI, "speech", "text voice speed instructions"},
		{"tts-1-hd", "", openaitest.OpenAI, "speech", "text voice speed"},
		{"sora-2-pro", "", openaitest.OpenAI, "videos", "prompt picture seconds size"},
		{"gpt-image-1", "edits", openaitest.OpenAI, "edits", "prompt pictures mask size quality"},
		{"black-forest-labs/FLUX.1-dev", "", openaitest.VLLMOmni, "images", "prompt size negative_prompt steps cfg seed"},
		{"stabilityai/sdxl-turbo", "", openaitest.VLLMOmni, "images", "prompt size negative_prompt steps cfg seed"},
		{"Qwen/Qwen-Image-Edit", "", openaitest.VLLMOmni, "edits", "prompt pictures mask size negative_prompt steps cfg seed"},
		{"Lightricks/LTX-Video", "", openaitest.VLLMOmni, "videos", "prompt picture seconds size negative_prompt steps cfg seed"},
		{"some/T2V-thing", "", openaitest.SGLang, "videos", "prompt picture seconds size negative_prompt steps cfg seed"},
		{"some/thing", "", openaitest.SGLang, "images", "prompt size negative_prompt steps cfg seed"},
		{"hexgrad/Kokoro-82M", "", openaitest.LocalAI, "speech", "text voice speed"},
		{"parrot", "speech", openaitest.LocalAI, "speech", "text voice speed"},
		{"ltx-video", "video-sync", openaitest.LocalAI, "video-sync", "prompt picture num_frames fps size negative_prompt steps cfg seed"},
		{"ltx-video", "", openaitest.LocalAI, "video-sync", "prompt picture num_frames fps size negative_prompt steps cfg seed"},
		{"gpt-image-1", "", openaitest.LocalAI, "images", "prompt size negative_prompt steps seed"},
		{"sd-cpp-local", "", openaitest.SDCpp, "images", "prompt size"},
		{"sd-cpp-local", "edits", openaitest.SDCpp, "edits", "prompt pictures mask size"},
	} {
		t.Run(tt.model+" "+tt.call, func(t *testing.T) {
			t.Parallel()
			w := begin(t, openaitest.Options{Dialect: tt.dialect, Models: []string{"other", tt.model}})
			tool, err := w.ImportTool(t.Context(), tt.model, tt.call, "my-server")
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, f := range tool.Fields {
				keys = append(keys, f.Key)
			}
			if tool.Engine.With["call"] != tt.want || tool.Engine.With["model"] != tt.model || strings.Join(keys, " ") != tt.fields {
				t.Errorf("manifest with %v and fields %v, want call %s and fields %s", tool.Engine.With, keys, tt.want, tt.fields)
			}
			enginetest.LintDraft(t, tool)
		})
	}
}

func TestImportedToolsRun(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Models: []string{"gpt-image-1", "gpt-4o-mini-tts", "sora-2"}})
	names, err := w.ListModels(t.Context())
	if err != nil || !slices.Equal(names, []string{"gpt-4o-mini-tts", "gpt-image-1", "sora-2"}) {
		t.Fatalf("models = %v, %v", names, err)
	}
	for _, name := range names {
		tool, err := w.ImportTool(t.Context(), name, "", "openai")
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]any{}
		for _, f := range tool.Fields {
			if f.Default != nil {
				values[f.Key] = f.Default
			} else if f.Required {
				values[f.Key] = "a fox"
			}
		}
		w.run(t, job(t, tool.Engine.With, values, 1))
	}
}

// TestImportedToolsOfEveryProductRun runs each draft with all its fields on the
// server that it was made for.
func TestImportedToolsOfEveryProductRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dialect     openaitest.Dialect
		model, call string
	}{
		{openaitest.LocalAI, "flux.1-schnell", ""}, {openaitest.LocalAI, "ltx-video", ""}, {openaitest.LocalAI, "kokoro", ""},
		{openaitest.SDCpp, "sd-cpp-local", ""}, {openaitest.SDCpp, "sd-cpp-local", "edits"},
		{openaitest.SGLang, "Wan-AI/Wan2.1-T2V-1.3B-Diffusers", ""}, {openaitest.VLLMOmni, "Qwen/Qwen-Image", ""},
	} {
		w := begin(t, openaitest.Options{Dialect: tt.dialect})
		tool, err := w.ImportTool(t.Context(), tt.model, tt.call, "server")
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]any{}
		files := map[string][]engine.File{}
		for _, f := range tool.Fields {
			switch {
			case f.Type == "IMG" || f.Type == "IMGS":
				files[f.Key] = []engine.File{picture()}
			case f.Key == "seed":
			case f.Default != nil:
				values[f.Key] = f.Default
			case f.Max != nil:
				values[f.Key] = *f.Max
			default:
				values[f.Key] = "a fox"
			}
		}
		j := job(t, tool.Engine.With, values, 1)
		j.Seed = 4_000_000_000
		j.Files = files
		w.run(t, j)
		if advised := len(tool.Notes) > 0; advised != (tt.dialect == openaitest.SDCpp) {
			t.Errorf("%s: notes = %q, want one only for stable-diffusion.cpp", tt.model, tool.Notes)
		}
	}
}

func TestWhatCannotBeImported(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Models: []string{"gpt-5"}})
	for _, tt := range []struct{ model, call, want string }{
		{"gpt-5", "", "set --call"},
		{"gpt-5", "chat", "not supported"},
		{"none", "", "no model"},
	} {
		if _, err := w.ImportTool(t.Context(), tt.model, tt.call, "x"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v, want %q", tt.model, tt.call, err, tt.want)
		}
	}
	local := begin(t, openaitest.Options{Dialect: openaitest.LocalAI})
	if _, err := local.ImportTool(t.Context(), "flux.1-schnell", "edits", "x"); err == nil || !strings.Contains(err.Error(), "LocalAI servers do not support the call") {
		t.Errorf("edits of LocalAI: %v, want that it has none", err)
	}
	w.Stop()
	if _, err := w.ImportTool(t.Context(), "gpt-5", "", "x"); err == nil {
		t.Error("import of no server = nil")
	}
}
