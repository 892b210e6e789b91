package openai_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai"
)

// The tests here check that videos are deleted whose run is over.

// studio starts a server whose videos never end by themselves. look handles all
// requests other than creating and deleting. The returned function lists the ids
// of the deleted videos.
func studio(t *testing.T, look http.HandlerFunc) (fixture, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var deleted []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPost:
			fmt.Fprint(w, `{"id":"new","status":"queued"}`)
		case http.MethodDelete:
			mu.Lock()
			deleted = append(deleted, strings.TrimPrefix(r.URL.Path, "/v1/videos/"))
			mu.Unlock()
			fmt.Fprint(w, `{}`)
		default:
			look(w, r)
		}
	}))
	t.Cleanup(s.Close)
	c := client(t, s.URL+"/v1", key)
	return fixture{Engine: openai.New(c, openai.Options{PollInterval: time.Millisecond}), client: c}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(deleted)
	}
}

func TestAVideoThatNobodyCanFollowIsDeleted(t *testing.T) {
	t.Parallel()
	w, deleted := studio(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	if e := w.fail(t, film(t, 1)); e.Transient {
		t.Errorf("failure = %v, want one that stays", e)
	}
	if got := deleted(); !slices.Equal(got, []string{"new"}) {
		t.Errorf("deleted = %v, want the one that was begun", got)
	}
}

func TestAllVideosOfARunAreDeleted(t *testing.T) {
	t.Parallel()
	w, deleted := studio(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"in_progress","progress":10}`)
	})
	j := film(t, 2)
	j.SavedCheckpoint = `{"ids":["one","two"]}`
	var r enginetest.Recorder
	if err := w.Run(ended(t, &r), j, &r); err == nil {
		t.Fatal("run = nil, want an error")
	}
	if got := deleted(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("deleted = %v, want both", got)
	}
	if notes := r.Checkpoints(); notes[len(notes)-1] != "" {
		t.Errorf("notes = %q, want none in the end", notes)
	}
}

func TestAServerMayBreakDownOverALook(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	w, deleted := studio(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/content"):
			w.Header().Set("Content-Type", "video/mp4")
			fmt.Fprint(w, "a video")
		case looks.Add(1) < 3:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			fmt.Fprint(w, `{"status":"completed"}`)
		}
	})
	if r := w.run(t, film(t, 1)); len(r.Outputs()) != 1 || len(deleted()) != 0 {
		t.Errorf("results = %d, deleted %v", len(r.Outputs()), deleted())
	}
}

// TestLostWorkIsTriedAFewTimes: a lost job counts as a failure of the job, which
// is retried a few times. A failure of the server would be retried without limit.
func TestLostWorkIsTriedAFewTimes(t *testing.T) {
	t.Parallel()
	w, _ := studio(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	if e := w.fail(t, film(t, 1)); e.Code != engine.Failed || !e.Transient {
		t.Errorf("failure = %v, transient %v", e, e.Transient)
	}
}

func TestFewerAreBetterThanNone(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]int{`{"data":[{"b64_json":"YQ=="}]}`: 1, `{"data":[]}`: 0} {
		var calls atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 1 {
				fmt.Fprint(w, first)
				return
			}
			fmt.Fprint(w, `{"data":[]}`)
		}))
		t.Cleanup(s.Close)
		w := fixture{Engine: openai.New(client(t, s.URL+"/v1", key), openai.Options{})}
		j := job(t, map[string]any{"call": "images"}, map[string]any{"prompt": "a fox"}, 3)
		if want > 0 {
			if n := len(w.run(t, j).Outputs()); n != want {
				t.Errorf("%s: %d results, want %d", first, n, want)
			}
		} else if e := w.fail(t, j); e.Code != engine.Invalid || e.Transient {
			t.Errorf("%s: %v, want that there is no result", first, e)
		}
	}
}
