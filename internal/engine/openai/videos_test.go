package openai_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai"
	"atelier/internal/engine/openai/openaitest"
)

// film returns a job for videos.
func film(t *testing.T, results int) engine.Job {
	return job(t, map[string]any{"call": "videos", "model": "Wan", "seed": "seed"}, map[string]any{"prompt": "a fox", "seconds": "4"}, results)
}

func TestTheNextWorkerTakesVideosUp(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.VLLMOmni})
	j := film(t, 2)
	whole := w.run(t, j)
	notes := whole.Checkpoints()
	for _, tt := range []struct {
		name    string
		left    string
		created int
	}{
		{"both are there", notes[len(notes)-1], 0},
		{"one is there", `{"ids":["video_000001"]}`, 1},
		{"one was lost", strings.Replace(notes[len(notes)-1], "video_0", "video_9", 1), 1},
		{"no note of ours", "?", 2},
	} {
		before := len(w.Requests())
		j.SavedCheckpoint = tt.left
		r := w.run(t, j)
		if got := len(w.Requests()) - before; got != tt.created {
			t.Errorf("%s: %d were made (note %s), want %d", tt.name, got, tt.left, tt.created)
		}
		for i, b := range r.Outputs() {
			if !bytes.Equal(b, whole.Outputs()[i]) {
				t.Errorf("%s: result %d is another", tt.name, i)
			}
		}
	}
	j.SavedCheckpoint = `{"ids":[],"asking":true}`
	before := len(w.Requests())
	if e := w.fail(t, j); e.Code != engine.Failed || e.Transient || len(w.Requests()) != before {
		t.Errorf("a video that may have been begun: %v, calls %d", e, len(w.Requests())-before)
	}
}

func TestAnAmbiguousCreateIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"no answer":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a gateway's error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"an answer cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"id":"vid`)
		},
		"no name": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"queued"}`) },
	} {
		var calls atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { calls.Add(1); answer(w, r) }))
		t.Cleanup(s.Close)
		var r enginetest.Recorder
		err := openai.New(client(t, s.URL+"/v1", key), openai.Options{}).Run(t.Context(), film(t, 1), &r)
		if e := engine.AsError(err); e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, "did not confirm") || calls.Load() != 1 {
			t.Errorf("%s: %v after %d calls", name, err, calls.Load())
		}
		if notes := r.Checkpoints(); !strings.Contains(notes[len(notes)-1], "asking") {
			t.Errorf("%s: notes = %q, want the doubt kept", name, notes)
		}
	}
}

func TestARefusedCreateLeavesNoDoubt(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.VLLMOmni})
	for _, f := range []enginetest.Fault{enginetest.Busy, enginetest.Refuses, enginetest.Away} {
		if w.Set(f); f == enginetest.Away {
			w.Stop()
		}
		var r enginetest.Recorder
		if err := w.Run(t.Context(), film(t, 1), &r); err == nil {
			t.Errorf("%s: run = nil", f)
		}
		if notes := r.Checkpoints(); notes[len(notes)-1] != "" {
			t.Errorf("%s: notes = %q, want none in the end", f, notes)
		}
	}
}

func TestEndedVideosAreDeleted(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.VLLMOmni, Polls: 100})
	var r enginetest.Recorder
	if err := w.Run(ended(t, &r), film(t, 1), &r); err == nil {
		t.Fatal("run = nil, want an error")
	}
	if w.Working() != 0 {
		t.Error("the server still works")
	}
	if notes := r.Checkpoints(); notes[len(notes)-1] != "" {
		t.Errorf("notes = %q, want none in the end", notes)
	}
}

func TestAVideoWhoseBeginningWasCutOffIsDeleted(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{Dialect: openaitest.VLLMOmni, Takes: 300 * time.Millisecond, Polls: 100})
	var r enginetest.Recorder
	ctx := ended(t, &r)
	time.AfterFunc(100*time.Millisecond, func() { r.OnProgress(0) })
	if err := w.Run(ctx, film(t, 1), &r); !errors.Is(err, ctx.Err()) {
		t.Errorf("run = %v, want the context's end", err)
	}
	if len(w.Requests()) != 1 || w.Working() != 0 {
		t.Errorf("calls = %d, working on %d; want one call that came to nothing", len(w.Requests()), w.Working())
	}
}

func TestAVideoThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]engine.Code{
		`{"id":"v","status":"failed","error":{"code":"moderation_blocked","message":"No."}}`: engine.Refused,
		`{"id":"v","status":"failed","error":{"code":500,"message":"Broke."}}`:               engine.Failed,
		`{"id":"v","status":"failed","error":null}`:                                          engine.Failed,
		`{"id":"v","status":"expired"}`:                                                      engine.Failed,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, body) }))
		t.Cleanup(s.Close)
		w := fixture{Engine: openai.New(client(t, s.URL+"/v1", key), openai.Options{PollInterval: time.Millisecond})}
		if e := w.fail(t, film(t, 1)); e.Code != want || e.Message == "" {
			t.Errorf("%s: %v", body, e)
		}
	}
}

func TestAFewBadLooksAreBorne(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			fmt.Fprint(w, `{"id":"v","status":"queued","progress":null}`)
		case r.Method == http.MethodDelete: // what is no video is not kept there
		case strings.HasSuffix(r.URL.Path, "/content"):
			fmt.Fprint(w, "a video")
		case looks.Add(1) < 4:
			w.WriteHeader(http.StatusBadGateway)
		default:
			fmt.Fprint(w, `{"id":"v","status":"completed","progress":100}`)
		}
	}))
	t.Cleanup(s.Close)
	w := fixture{Engine: openai.New(client(t, s.URL+"/v1", key), openai.Options{PollInterval: time.Millisecond})}
	// The type of the content is text/plain, so it is not a video.
	if e := w.fail(t, film(t, 1)); !strings.Contains(e.Message, "invalid response") || looks.Load() != 4 {
		t.Errorf("failure = %v after %d looks", e, looks.Load())
	}
}
