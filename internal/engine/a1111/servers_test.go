package a1111_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/a1111"
	"atelier/internal/engine/a1111/a1111test"
	"atelier/internal/engine/enginetest"
)

// The tests here cover habits of the servers that have AUTOMATIC1111's API.

func TestMarkupIsRefusedBeforeTheServerSeesIt(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{Dialect: a1111test.SDCpp})
	for text, always := range map[string]bool{
		`a fox <sd_cpp_extra_args>{"batch_count":64}</sd_cpp_extra_args>`: true,
		"a fox <SD_CPP_extra_args>":                                       true,
		"a fox <lora:fur:1>":                                              false,
		"a fox <ti:fur>":                                                  false,
		"a __colour__ fox":                                                false,
	} {
		for _, key := range []string{"prompt", "negative_prompt", "scene"} {
			with := map[string]any{"call": "txt2img", "rename": map[string]any{"scene": "prompt"}}
			if e := w.fail(t, job(t, with, map[string]any{key: text}, 1)); e.Transient || !strings.Contains(e.Message, `"`+key+`"`) {
				t.Errorf("%q in %s: %v, want a failure that names the field", text, key, e)
			}
			before := len(w.Requests())
			with["markup"] = "allow"
			if always {
				w.fail(t, job(t, with, map[string]any{key: text}, 1))
			} else {
				w.run(t, job(t, with, map[string]any{key: text}, 1))
			}
			if sent := len(w.Requests()) > before; sent == always {
				t.Errorf("%q in %s where markup is allowed: sent %v, want %v", text, key, sent, !always)
			}
		}
	}
	before := len(w.Requests())
	w.run(t, job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a (red:1.3) fox, [night:day:0.5]"}, 1))
	if len(w.Requests()) != before+1 {
		t.Error("a prompt with weights was not sent")
	}
}

func TestAMissingCheckpointIsAnError(t *testing.T) {
	t.Parallel()
	for _, dialect := range []a1111test.Dialect{a1111test.A1111, a1111test.Forge, a1111test.SDNext, a1111test.SDCpp} {
		w := begin(t, a1111test.Options{Dialect: dialect})
		for _, with := range []map[string]any{
			{"call": "txt2img", "checkpoint": "flux"},
			{"call": "txt2img", "checkpoint": "sd1"},
			{"call": "txt2img", "fixed": map[string]any{"override_settings": map[string]any{"sd_model_checkpoint": "flux"}}},
		} {
			e := w.fail(t, job(t, with, map[string]any{"prompt": "a fox"}, 1))
			if e.Transient || !strings.Contains(e.Message, "not on its server") || len(w.Requests()) != 0 {
				t.Errorf("%q, %v: %v after %d requests", dialect, with, e, len(w.Requests()))
			}
		}
	}
}

func TestCheckpointsByTheirNames(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{
		Models: []string{"sd15.safetensors [6ce0161689]", `xl\sdxl.safetensors [31e35c80fc]`, "a/same.ckpt", "b/same.ckpt"},
		Added:  []string{"new.gguf"},
	})
	for name, title := range map[string]string{
		"sd15":                          "sd15.safetensors [6ce0161689]",
		"sd15.safetensors":              "sd15.safetensors [6ce0161689]",
		"sd15.safetensors [6ce0161689]": "sd15.safetensors [6ce0161689]",
		"sdxl":                          `xl\sdxl.safetensors [31e35c80fc]`,
		"xl/sdxl":                       `xl\sdxl.safetensors [31e35c80fc]`,
		"b/same":                        "b/same.ckpt",
		"new":                           "new.gguf", // the server finds it when it refreshes its list
	} {
		w.run(t, job(t, map[string]any{"call": "txt2img", "checkpoint": name}, map[string]any{"prompt": "a fox"}, 1))
		all := w.Requests()
		settings, _ := all[len(all)-1]["override_settings"].(map[string]any)
		if settings["sd_model_checkpoint"] != title {
			t.Errorf("%s: the server was told %v, want %s", name, settings, title)
		}
	}
	if e := w.fail(t, job(t, map[string]any{"call": "txt2img", "checkpoint": "same"}, map[string]any{"prompt": "a fox"}, 1)); !strings.Contains(e.Message, "not on its server") {
		t.Errorf("a name of two checkpoints: %v", e)
	}
}

func TestSamplers(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{Dialect: a1111test.SDNext})
	for name, known := range map[string]bool{"Euler a": true, "euler_a": true, "DPM++ 2M Karras": true, "Euler b": false, "Heun": false} {
		j := job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox", "sampler": name}, 1)
		if known {
			w.run(t, j)
		} else if e := w.fail(t, j); !strings.Contains(e.Message, "no sampler") {
			t.Errorf("%s: %v, want that there is none", name, e)
		}
	}
}

func TestUpscalersAndSizes(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{})
	upscale := func(with, values map[string]any, results int) engine.Job {
		with["call"] = "upscale"
		j := job(t, with, values, results)
		j.Files = map[string][]engine.File{"picture": {picture()}}
		return j
	}
	for _, values := range []map[string]any{{"factor": 2.0}, {"factor": 2.0, "upscaler": "None"}, {"factor": 2.0, "upscaler": ""}} {
		if e := w.fail(t, upscale(map[string]any{}, values, 1)); !strings.Contains(e.Message, "upscaler is required") {
			t.Errorf("%v: %v", values, e)
		}
	}
	out := w.run(t, upscale(map[string]any{"fixed": map[string]any{"upscaler_1": "Lanczos"}}, map[string]any{"size": map[string]any{"width": int64(160), "height": int64(80)}}, 3)).Outputs()
	if c, err := png.DecodeConfig(bytes.NewReader(out[0])); len(out) != 1 || err != nil || c.Width != 160 || c.Height != 80 {
		t.Errorf("results = %d, the first %dx%d, %v; want one of 160x80", len(out), c.Width, c.Height, err)
	}
}

func TestAPictureKeepsItsSize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width, height int
		values, fixed map[string]any
		want          string
	}{
		{800, 600, nil, nil, "800x600"},
		{803, 606, nil, nil, "800x600"},
		{8000, 6000, nil, nil, "2048x1536"},
		{20, 4000, nil, nil, "64x2048"},
		{0, 0, nil, nil, "<nil>x<nil>"},
		{800, 600, map[string]any{"size": size}, nil, "64x48"},
		{800, 600, nil, map[string]any{"width": 128}, "128x<nil>"},
	} {
		w := begin(t, a1111test.Options{})
		values := map[string]any{"prompt": "a fox", "size": tt.values["size"]}
		j := job(t, map[string]any{"call": "img2img", "fixed": tt.fixed}, values, 1)
		p := picture()
		p.Width = tt.width
		p.Height = tt.height
		j.Files = map[string][]engine.File{"picture": {p}}
		w.run(t, j)
		body := w.Requests()[0]
		if got := fmt.Sprint(body["width"], "x", body["height"]); strings.ReplaceAll(got, " ", "") != tt.want {
			t.Errorf("%dx%d with %v and %v: %s, want %s", tt.width, tt.height, tt.values, tt.fixed, got, tt.want)
		}
	}
}

func TestAServerThatIgnoresBatches(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{Dialect: a1111test.SDCpp})
	j := job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox", "size": size}, 9)
	out := w.run(t, j).Outputs()
	different := map[string]bool{}
	for _, b := range out {
		different[string(b)] = true
	}
	if len(out) != 9 || len(different) != 9 {
		t.Errorf("results = %d, of which %d differ; want 9", len(out), len(different))
	}
	var names []string
	for _, body := range w.Requests() {
		names = append(names, fmt.Sprint(body["force_task_id"], " from ", body["seed"]))
	}
	if want := []string{"task(run-1-0) from 7", "task(run-1-0-3) from 10", "task(run-1-0-6) from 13"}; !slices.Equal(names, want) {
		t.Errorf("requests = %v, want %v", names, want)
	}
}

// TestAnotherClientsProgressIsNotOurs runs and cancels a job on servers without
// tasks, which report whatever they work on.
func TestAnotherClientsProgressIsNotOurs(t *testing.T) {
	t.Parallel()
	for _, dialect := range []a1111test.Dialect{a1111test.SDNext, a1111test.SDCpp} {
		w := begin(t, a1111test.Options{Dialect: dialect, Takes: 200 * time.Millisecond})
		r := w.run(t, job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 1))
		if got := r.Fractions(); !slices.Equal(got, []float64{1}) || len(r.Previews()) != 0 {
			t.Errorf("%s: progress = %v and %d previews, want none until the end", dialect, got, len(r.Previews()))
		}

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			ended <- w.Run(ctx, job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 1), &enginetest.Recorder{})
		}()
		until(t, "the server works", w.Working)
		cancel()
		if err := <-ended; err == nil || w.Interrupts() != 0 {
			t.Errorf("%s: run = %v with %d interrupts, want the end and none", dialect, err, w.Interrupts())
		}
	}
}

func TestAJobInTheServersQueue(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{Takes: 300 * time.Millisecond})
	var wg sync.WaitGroup
	defer wg.Wait()
	other := job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a hen"}, 1)
	other.RunID = "other"
	wg.Go(func() { w.run(t, other) })
	until(t, "the other one is at work", func() bool { return w.Current() == "task(other-1-0)" })
	r := w.run(t, job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 1))
	if len(r.QueuePositions()) == 0 || len(r.Fractions()) < 2 {
		t.Errorf("queued = %v, progress = %v; want both", r.QueuePositions(), r.Fractions())
	}
}

func TestSettingsOfManifests(t *testing.T) {
	t.Parallel()
	for with, want := range map[string]string{
		`{"call":"txt2img","markup":"allow"}`: "",
		`{"call":"txt2img","markup":"some"}`:  `markup: must be "refuse" or "allow"`,
	} {
		problems := a1111.ManifestSpec().FindProblems(with)
		if (len(problems) > 0) != (want != "") || want != "" && !strings.Contains(problems[0].Message, want) {
			t.Errorf("%s: %v, want %q", with, problems, want)
		}
	}
}
