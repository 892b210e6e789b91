package fal_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
)

// TestQueuePositions expects the position in fal's queue, which counts the
// requests ahead.
func TestQueuePositions(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[int]int{0: 1, 6: 7, -1: 0} {
		w := start(t, faltest.Options{Takes: 300 * time.Millisecond, Ahead: ahead})
		r := w.results(t, painting(painter, 1))
		if got := r.QueuePositions(); len(got) == 0 || slices.Min(got) != want || slices.Max(got) != want {
			t.Errorf("%d requests ahead: positions = %v, want %d", ahead, got, want)
		}
		if f := r.Fractions(); len(f) == 0 || f[len(f)-1] != 1 {
			t.Errorf("progress = %v, want it up to 1", f)
		}
	}
}

// queueOf starts a queue that creates the request "mine" with these further
// fields, and answers queries with state. It returns the paths of all queries.
func queueOf(t *testing.T, fields, state, answer string) (url string, paths func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.Method+" "+r.URL.Path)
		mu.Unlock()
		switch {
		case r.Method == http.MethodPost:
			fmt.Fprintf(w, `{"request_id":"mine"%s}`, strings.ReplaceAll(fields, "HOST", "http://"+r.Host))
		case strings.HasSuffix(r.URL.Path, "/status"):
			io.WriteString(w, state)
		case r.Header.Get("Authorization") == "":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			io.WriteString(w, strings.ReplaceAll(answer, "HOST", "http://"+r.Host))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestOtherRequestsAreNotRead has the queue name URLs of another person's
// request, and answer about it.
func TestOtherRequestsAreNotRead(t *testing.T) {
	t.Parallel()
	const theirs = `,"status_url":"HOST/fal-ai/flux/requests/theirs/status","response_url":"HOST/fal-ai/flux/requests/mine-too","cancel_url":"HOST/x/requests/theirs/cancel"`
	at, paths := queueOf(t, theirs, `{"status":"COMPLETED","request_id":"mine"}`, `{"images":[{"url":"data:,a"}]}`)
	e := fal.New(call(t, at, "key"), fal.Options{PollInterval: time.Millisecond})
	enginetest.MustMakeAll(t, e, painting(painter, 1))
	for _, path := range paths() {
		if strings.Contains(path, "theirs") || strings.Contains(path, "mine-too") {
			t.Errorf("call = %s, which is about another request", path)
		}
	}

	at, _ = queueOf(t, "", `{"status":"COMPLETED","request_id":"theirs"}`, `{"images":[{"url":"data:,a"}]}`)
	e = fal.New(call(t, at, "key"), fal.Options{PollInterval: time.Millisecond})
	if f := enginetest.MustFail(t, e, painting(painter, 1)); f.Transient || !strings.Contains(f.Error(), "belongs to another request") {
		t.Errorf("failure = %v", f)
	}
}

// TestResultsAreFetchedWithoutTheKey has a model answer with a URL of the queue
// itself.
func TestResultsAreFetchedWithoutTheKey(t *testing.T) {
	t.Parallel()
	at, _ := queueOf(t, "", `{"status":"COMPLETED"}`, `{"images":[{"url":"HOST/fal-ai/flux/requests/theirs"}]}`)
	e := fal.New(call(t, at, "key"), fal.Options{PollInterval: time.Millisecond})
	enginetest.MustFail(t, e, painting(painter, 1))
}

// TestCopiesAreDropped has an endpoint without a seed repeat its result.
func TestCopiesAreDropped(t *testing.T) {
	t.Parallel()
	at, _ := queueOf(t, "", `{"status":"COMPLETED"}`, `{"images":[{"url":"data:,a"}]}`)
	e := fal.New(call(t, at, "key"), fal.Options{PollInterval: time.Millisecond})
	if n := len(enginetest.MustSucceed(t, e, painting(painter, 2)).Outputs()); n != 1 {
		t.Errorf("results = %d, want 1 without its copy", n)
	}
}
