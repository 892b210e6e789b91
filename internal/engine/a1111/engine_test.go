package a1111_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/a1111"
	"atelier/internal/engine/a1111/a1111test"
	"atelier/internal/engine/enginetest"
)

func TestBodies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		with, values map[string]any
		results      int
		want         map[string]any
	}{
		{
			"fields go by their names", map[string]any{"call": "txt2img"},
			map[string]any{"prompt": "a fox", "negative_prompt": "a hen", "steps": 20.0, "cfg": 7.5, "size": size, "sampler": "Euler", "seed": int64(3), "scheduler": ""}, 1,
			map[string]any{
				"prompt": "a fox", "negative_prompt": "a hen", "steps": 20.0, "cfg_scale": 7.5, "width": 64.0, "height": 48.0, "sampler_name": "Euler",
				"seed": 7.0, "send_images": true, "save_images": false, "batch_size": 1.0, "n_iter": 1.0, "force_task_id": "task(run-1-0)",
			},
		},
		{
			"settings of the manifest",
			map[string]any{
				"call": "txt2img", "checkpoint": "sdxl", "rename": map[string]any{"what": "prompt", "mood": "-"},
				"fixed": map[string]any{"override_settings": map[string]any{"forge_additional_modules": []any{"vae"}}, "save_images": nil},
			},
			map[string]any{"what": "a fox", "mood": "calm"}, 1,
			map[string]any{
				"prompt": "a fox", "override_settings": map[string]any{"sd_model_checkpoint": "xl/sdxl.safetensors [31e35c80fc]", "forge_additional_modules": []any{"vae"}},
				"override_settings_restore_afterwards": false, "seed": 7.0, "send_images": true, "batch_size": 1.0, "n_iter": 1.0, "force_task_id": "task(run-1-0)",
			},
		},
		{
			"batches", map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 7,
			map[string]any{"prompt": "a fox", "seed": 7.0, "send_images": true, "save_images": false, "batch_size": 4.0, "n_iter": 2.0, "force_task_id": "task(run-1-0)"},
		},
		{
			"batches of the manifest's size", map[string]any{"call": "txt2img", "fixed": map[string]any{"batch_size": 1}}, map[string]any{"prompt": "a fox"}, 3,
			map[string]any{"prompt": "a fox", "seed": 7.0, "send_images": true, "save_images": false, "batch_size": 1.0, "n_iter": 3.0, "force_task_id": "task(run-1-0)"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, a1111test.Options{})
			r := w.run(t, job(t, tt.with, tt.values, tt.results))
			if got := w.Requests()[0]; fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("body = %v, want %v", got, tt.want)
			}
			if n := len(r.Outputs()); n != tt.results {
				t.Errorf("results = %d, want %d", n, tt.results)
			}
		})
	}
}

func TestPicturesThatNobodyAskedForAreDropped(t *testing.T) {
	t.Parallel()
	j := job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox", "size": size}, 2)
	plain := begin(t, a1111test.Options{}).run(t, j).Outputs()
	got := begin(t, a1111test.Options{Grid: true, Extra: 2}).run(t, j).Outputs()
	if len(got) != 2 || !bytes.Equal(got[0], plain[0]) || !bytes.Equal(got[1], plain[1]) {
		t.Errorf("results = %d, want the two that come without a grid and a script", len(got))
	}
}

func TestUpscale(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{})
	j := job(t, map[string]any{"call": "upscale"}, map[string]any{"factor": int64(4), "upscaler": "Lanczos"}, 1)
	j.Files = map[string][]engine.File{"picture": {picture()}}
	out := w.run(t, j).Outputs()
	if c, err := png.DecodeConfig(bytes.NewReader(out[0])); err != nil || c.Width != 128 || c.Height != 96 {
		t.Errorf("picture = %dx%d, %v, want 128x96", c.Width, c.Height, err)
	}
	body := w.Requests()[0]
	if image, _ := body["image"].(string); body["upscaling_resize"] != 4.0 || body["upscaler_1"] != "Lanczos" || !strings.HasPrefix(image, "data:image/png;base64,") || len(body) != 3 {
		t.Errorf("body has %d parameters: factor %v, upscaler %v", len(body), body["upscaling_resize"], body["upscaler_1"])
	}
}

// TestSomebodyElsesWorkIsNotInterrupted cancels a job that waits behind another
// one in the server's queue.
func TestSomebodyElsesWorkIsNotInterrupted(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{Takes: 2 * time.Second})
	var wg sync.WaitGroup
	defer wg.Wait()
	other := job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a hen"}, 1)
	other.RunID = "other"
	wg.Go(func() { w.run(t, other) })
	until(t, "the other one is at work", func() bool { return w.Current() == "task(other-1-0)" })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- w.Run(ctx, job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 1), &enginetest.Recorder{})
	}()
	until(t, "ours waits", func() bool { return w.Pending() == 1 })
	cancel()
	if err := <-ended; err == nil {
		t.Error("run = nil although the context ended")
	}
	if w.Interrupts() != 0 || w.Current() != "task(other-1-0)" {
		t.Errorf("interrupts = %d while %q is at work, want none", w.Interrupts(), w.Current())
	}
}

func TestOurOwnWorkIsInterruptedOnce(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{Takes: 20 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := enginetest.Recorder{OnProgress: func(float64) { cancel() }}
	if err := w.Run(ctx, job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 1), &r); err == nil {
		t.Error("run = nil although the context ended")
	}
	until(t, "the server rests", func() bool { return !w.Working() })
	if w.Interrupts() != 1 || len(r.Outputs()) != 0 {
		t.Errorf("interrupts = %d, results = %d; want 1 and none of the half-done ones", w.Interrupts(), len(r.Outputs()))
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{})
	if err := w.Probe(t.Context()); err != nil {
		t.Errorf("probe = %v, want nil", err)
	}
	stranger := a1111.New(client(t, w.URL, user+":wrong"), a1111.Options{})
	if e := engine.AsError(stranger.Probe(t.Context())); e.Code != engine.Failed || e.Transient {
		t.Errorf("probe with a wrong password = %v", e)
	}
	w.Stop()
	if e := engine.AsError(w.Probe(t.Context())); e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("probe of no server = %v", e)
	}
}

func TestComplaints(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		again  bool
		text   string // part of the message
	}{
		{500, `{"error":"OutOfMemoryError","detail":"","body":"","errors":"CUDA out of memory. Tried to allocate"}`, false, "not have enough memory"},
		{500, `{"error":"RuntimeError","detail":"","body":"","errors":"Unknown checkpoint: x\nTraceback"}`, false, "Unknown checkpoint: x"},
		{404, `{"error":"HTTPException","detail":"Sampler not found","body":"","errors":""}`, false, "Sampler not found"},
		{422, `{"detail":[{"loc":["body","steps"],"msg":"value is not a valid integer","type":"type_error.integer"}]}`, false, "steps: value is not a valid integer"},
		{401, `{"error":"HTTPException","detail":"Incorrect username or password","body":"","errors":""}`, false, "not configured correctly"},
		{502, `<html>a proxy`, true, "busy"},
		{500, `<html>a proxy at https://inner.example/x`, false, "failed to make the picture."},
		{500, `Internal Server Error`, false, "failed to make the picture."},
		{400, `Bad Request`, false, "refused the request."},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		}))
		t.Cleanup(s.Close)
		w := fixture{Engine: a1111.New(client(t, s.URL, "a:b"), a1111.Options{})}
		e := w.fail(t, job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 1))
		if e.Transient != tt.again || !strings.Contains(e.Message, tt.text) || strings.Contains(e.Message, "://") || strings.Contains(e.Message, "Traceback") {
			t.Errorf("%d %s: transient %v, %q", tt.status, tt.body, e.Transient, e.Message)
		}
	}
}

func TestManifestsThatAreWrong(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{})
	for _, with := range []map[string]any{{"call": "dream"}, {}, {"call": "txt2img", "colour": "red"}, {"call": "txt2img", "markup": "yes"}} {
		if e := w.fail(t, job(t, with, nil, 1)); !strings.Contains(e.Message, "not configured correctly") {
			t.Errorf("%v: %v", with, e)
		}
	}
	for _, call := range []string{"img2img", "upscale"} {
		if e := w.fail(t, job(t, map[string]any{"call": call}, map[string]any{"prompt": "a fox"}, 1)); !strings.Contains(e.Message, "picture is required") {
			t.Errorf("%s without a picture: %v", call, e)
		}
	}
}

func TestFewerAreBetterThanNone(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int{`{"images":["YQ==","Yg=="]}`: 2, `{"images":[]}`: 0} {
		var calls atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case !strings.HasSuffix(r.URL.Path, "/txt2img"):
				http.NotFound(w, r)
			case calls.Add(1) == 1:
				fmt.Fprint(w, answer)
			default:
				fmt.Fprint(w, `{"images":[]}`)
			}
		}))
		t.Cleanup(s.Close)
		w := fixture{Engine: a1111.New(client(t, s.URL, "a:b"), a1111.Options{})}
		j := job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 3)
		if want > 0 {
			if n := len(w.run(t, j).Outputs()); n != want {
				t.Errorf("%s: %d results, want %d", answer, n, want)
			}
		} else if e := w.fail(t, j); e.Code != engine.Invalid || e.Transient {
			t.Errorf("%s: %v, want that there is no result", answer, e)
		}
	}
}

// TestLostWorkIsTriedAFewTimes: a lost job counts as a failure of the job, which
// is retried a few times. A failure of the server would be retried without limit.
func TestLostWorkIsTriedAFewTimes(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{Takes: 60 * time.Millisecond})
	w.Set(enginetest.Loses)
	if e := w.fail(t, job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 1)); e.Code != engine.Failed || !e.Transient {
		t.Errorf("failure = %v, transient %v", e, e.Transient)
	}
}
