package openai_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai"
	"atelier/internal/engine/openai/openaitest"
)

// The tests here cover habits of single server products.

// countDifferent returns the number of different results.
func countDifferent(results [][]byte) int {
	all := map[string]bool{}
	for _, b := range results {
		all[string(b)] = true
	}
	return len(all)
}

func TestMarkupIsRefusedBeforeTheServerSeesIt(t *testing.T) {
	t.Parallel()
	const extraArgs = `a fox <sd_cpp_extra_args>{"width":4096,"height":4096}</sd_cpp_extra_args>`
	for _, dialect := range []openaitest.Dialect{openaitest.SDCpp, openaitest.VLLMOmni} {
		w := begin(t, openaitest.Options{Dialect: dialect})
		for _, call := range []string{"images", "edits", "videos", "video-sync"} {
			for _, markup := range []string{"refuse", "allow"} {
				settings := map[string]any{"call": call, "model": "m", "markup": markup, "rename": map[string]any{"scene": "prompt"}}
				for key, text := range map[string]string{"prompt": extraArgs, "scene": extraArgs, "negative_prompt": strings.ToUpper(extraArgs)} {
					e := w.fail(t, job(t, settings, map[string]any{key: text}, 1))
					if e.Transient || !strings.Contains(e.Message, `"`+key+`"`) {
						t.Errorf("%s, markup %s: %v, want a failure that names %s", call, markup, e, key)
					}
				}
			}
			if e := w.fail(t, job(t, map[string]any{"call": call, "model": "m"}, map[string]any{"prompt": "a fox <lora:fur:1>"}, 1)); !strings.Contains(e.Message, "<lora:name:1>") {
				t.Errorf("%s with an extra network: %v", call, e)
			}
		}
		if got := w.Requests(); len(got) != 0 {
			t.Errorf("the server got %d requests, want none", len(got))
		}
	}
}

func TestMarkupThatIsAllowedOrSpoken(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.LocalAI})
	for _, tt := range []struct{ call, markup, parameter, text string }{
		{"images", "allow", "prompt", "a fox <lora:fur:1> | a hen"},
		{"images", "", "prompt", "a (red:1.3) fox"},
		{"speech", "", "input", "say <break time: 1s> and <sd_cpp_extra_args>"},
	} {
		w.run(t, job(t, map[string]any{"call": tt.call, "model": "m", "dialect": "localai", "markup": tt.markup}, map[string]any{"prompt": tt.text, "size": square}, 1))
		all := w.Requests()
		if got := all[len(all)-1].Values[tt.parameter]; got != tt.text {
			t.Errorf("%s: the server got %q, want %q", tt.call, got, tt.text)
		}
	}
}

func TestPromptsForLocalAIAreWhole(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prompt, negative string
		fixed            map[string]any
		want             string
	}{
		{"a fox", "", nil, "a fox"},
		{"a fox | at night|35mm", "", nil, "a fox , at night,35mm"},
		{"a fox", "a hen|an owl", nil, "a fox|a hen,an owl"},
		{"a fox|", "", map[string]any{"negative_prompt": "a | b"}, "a fox,|a | b"},
	} {
		w := begin(t, openaitest.Options{Dialect: openaitest.LocalAI})
		w.run(t, job(t, map[string]any{"call": "images", "model": "m", "dialect": "localai", "fixed": tt.fixed}, map[string]any{"prompt": tt.prompt, "negative_prompt": tt.negative, "size": square}, 1))
		got := w.Requests()[0].Values
		if _, there := got["negative_prompt"]; got["prompt"] != tt.want || there {
			t.Errorf("the server got %v, want the prompt %q and nothing else", got, tt.want)
		}
	}
}

func TestPicturesOfLocalAIDiffer(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.LocalAI})
	j := job(t, map[string]any{"call": "images", "model": "m", "dialect": "localai", "seed": "seed"}, map[string]any{"prompt": "a fox", "steps": int64(4), "size": square}, 3)
	j.Seed = math.MaxUint32 - 1
	first := w.run(t, j).Outputs()
	if len(first) != 3 || countDifferent(first) != 3 {
		t.Errorf("results = %d, of which %d differ; want 3", len(first), countDifferent(first))
	}
	again := w.run(t, j).Outputs()
	for i := range first {
		if string(first[i]) != string(again[i]) {
			t.Errorf("result %d of a large seed is random", i)
		}
	}
	for _, q := range w.Requests() {
		if seed := q.Values["seed"].(float64); seed > math.MaxInt32 || q.Values["step"] != 4.0 || q.Values["n"] != 1.0 {
			t.Errorf("the server got %v, want a seed of 31 bits, step and one result", q.Values)
		}
	}
}

func TestVideosOfLocalAI(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.LocalAI})
	j := job(t, map[string]any{"call": "video-sync", "model": "m", "seed": "seed"}, map[string]any{"prompt": "a fox | a hen", "seconds": int64(4), "num_frames": 49.0, "fps": int64(12), "negative_prompt": "an owl"}, 2)
	j.Seed = math.MaxInt32
	if out := w.run(t, j).Outputs(); countDifferent(out) != 2 {
		t.Errorf("different results = %d, want 2", countDifferent(out))
	}
	want := "map[fps:12 model:m negative_prompt:an owl num_frames:49 prompt:a fox | a hen seconds:4 seed:0]"
	if got := fmt.Sprint(w.Requests()[1].Values); got != want {
		t.Errorf("parameters = %s, want %s", got, want)
	}
}

func TestTheLargestSeedOfAManifest(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.VLLMOmni})
	j := job(t, map[string]any{"call": "images", "seed": "seed", "seed_max": 9, "batch": 1}, map[string]any{"prompt": "a fox", "size": square}, 3)
	j.Seed = 9
	w.run(t, j)
	for i, want := range []float64{9, 0, 1} {
		if got := w.Requests()[i].Values["seed"]; got != want {
			t.Errorf("seed %d = %v, want %v", i, got, want)
		}
	}
}

func TestCopiesAreNotDelivered(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.SDCpp, Most: 1})
	j := job(t, map[string]any{"call": "images"}, map[string]any{"prompt": "a fox", "size": square}, 3)
	if out := w.run(t, j).Outputs(); len(out) != 1 {
		t.Errorf("results = %d, want one of the same", len(out))
	}
	w = begin(t, openaitest.Options{})
	speech := job(t, map[string]any{"call": "speech", "model": "tts-1"}, map[string]any{"prompt": "Hello.", "voice": "alloy"}, 2)
	if out := w.run(t, speech).Outputs(); len(out) != 1 {
		t.Errorf("recordings = %d, want one of the same", len(out))
	}
}

func TestAVideoInTheServersQueue(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.VLLMOmni, Queue: 3})
	r := w.run(t, film(t, 1))
	if got := r.QueuePositions(); len(got) < 3 {
		t.Errorf("queued = %v, want it reported until the server works", got)
	}
	if got := r.Fractions(); len(got) < 2 {
		t.Errorf("progress = %v, want some after the wait", got)
	}
}

// TestAQueueWithoutProgress: the wait also ends if the server never reports
// progress.
func TestAQueueWithoutProgress(t *testing.T) {
	t.Parallel()
	var polls atomic.Int64
	w, _ := studio(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/content"):
			w.Header().Set("Content-Type", "video/mp4")
			fmt.Fprint(w, "a video")
		case polls.Add(1) == 1:
			fmt.Fprint(w, `{"status":"in_progress"}`)
		default:
			fmt.Fprint(w, `{"status":"completed"}`)
		}
	})
	r := w.run(t, film(t, 1))
	if got := r.Fractions(); len(got) == 0 || got[0] != 0 || len(r.QueuePositions()) == 0 {
		t.Errorf("progress = %v after the positions %v, want 0 after the wait", got, r.QueuePositions())
	}
}

func TestAVideoInCloudStorage(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.SGLang, Elsewhere: true})
	j := film(t, 1)
	j.Files = map[string][]engine.File{"picture": {picture()}}
	if out := w.run(t, j).Outputs(); len(out) != 1 {
		t.Errorf("results = %d, want 1", len(out))
	}
	if visits := w.Visits(); len(visits) != 1 || visits[0].Get("Authorization") != "" {
		t.Errorf("visits to the storage = %v, want one without credentials", visits)
	}
}

// TestAVideoInAPrivateNetwork: an address in a response is held against the
// guard.
func TestAVideoInAPrivateNetwork(t *testing.T) {
	t.Parallel()
	w, _ := studio(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"completed","url":"http://169.254.169.254/latest/meta-data"}`)
	})
	if e := w.fail(t, film(t, 1)); e.Transient || !strings.Contains(e.Message, "invalid response") {
		t.Errorf("failure = %v, want a refused address", e)
	}
}

// TestAServerThatCannotStop ends a video on a server that goes on: the run ends
// all the same, and the video is deleted.
func TestAServerThatCannotStop(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.SGLang, Polls: 100})
	var r enginetest.Recorder
	begun := time.Now()
	if err := w.Run(ended(t, &r), film(t, 1), &r); err == nil {
		t.Fatal("run = nil, want an error")
	}
	if len(w.Deleted()) != 1 || w.Working() != 1 || r.LastCheckpoint() != "" || time.Since(begun) > time.Minute {
		t.Errorf("deleted %v, working on %d, checkpoint %q", w.Deleted(), w.Working(), r.LastCheckpoint())
	}
}

func TestSettingsOfDialects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ with, want string }{
		{`{"call":"images","dialect":"localai","markup":"allow","seed_max":9}`, ""},
		{`{"call":"images","dialect":"lokal"}`, `dialect: must be "localai"`},
		{`{"call":"edits","dialect":"localai"}`, "only the calls images, speech, video-sync"},
		{`{"call":"images","markup":"yes"}`, `markup: must be "refuse" or "allow"`},
		{`{"call":"images","batch":-1}`, "must not be negative"},
	} {
		problems := openai.ManifestSpec().FindProblems(tt.with)
		if (len(problems) > 0) != (tt.want != "") || tt.want != "" && !strings.Contains(problems[0].Message, tt.want) {
			t.Errorf("%s: %v, want %q", tt.with, problems, tt.want)
		}
		err := openai.New(client(t, "http://127.0.0.1:1/v1", key), openai.Options{}).Run(canceled(t), engine.Job{With: tt.with, NumResults: 1}, &enginetest.Recorder{})
		if misconfigured := strings.Contains(engine.AsError(err).Message, "not configured correctly"); misconfigured != (tt.want != "") {
			t.Errorf("%s: run = %v", tt.with, err)
		}
	}
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
