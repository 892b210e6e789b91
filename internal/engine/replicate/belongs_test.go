package replicate_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/replicate"
	"atelier/internal/engine/replicate/replicatetest"
)

// TestStartingIsQueued expects that a prediction without a machine counts as
// queued, at an unknown position.
func TestStartingIsQueued(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{Takes: 300 * time.Millisecond})
	r := w.results(t, painting(official, 1))
	if got := r.QueuePositions(); len(got) == 0 || slices.Max(got) != 0 {
		t.Errorf("positions = %v, want unknown ones", got)
	}
}

// apiOf starts an API that answers queries of predictions with snapshot, and
// requires the token for everything.
func apiOf(t *testing.T, snapshot string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer r8":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodPost:
			io.WriteString(w, `{"id":"mine","status":"starting"}`)
		case r.URL.Path == "/predictions":
			io.WriteString(w, `{"results":[{"id":"theirs","input":{"prompt":"a secret"}}]}`)
		default:
			io.WriteString(w, strings.ReplaceAll(snapshot, "HOST", "http://"+r.Host))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestOtherPredictionsAreNotRead has the API answer about another person's
// prediction.
func TestOtherPredictionsAreNotRead(t *testing.T) {
	t.Parallel()
	e := replicate.New(call(t, apiOf(t, `{"id":"theirs","status":"succeeded","output":"data:,a"}`), "r8"), replicate.Options{PollInterval: time.Millisecond})
	if f := enginetest.MustFail(t, e, painting(official, 1)); f.Transient || !strings.Contains(f.Error(), "belongs to another prediction") {
		t.Errorf("failure = %v", f)
	}
}

// TestResultsAreFetchedWithoutTheToken has a model for text write the URL of
// the account's list of predictions.
func TestResultsAreFetchedWithoutTheToken(t *testing.T) {
	t.Parallel()
	e := replicate.New(call(t, apiOf(t, `{"id":"mine","status":"succeeded","output":"HOST/predictions"}`), "r8"), replicate.Options{PollInterval: time.Millisecond})
	j := painting(official, 1)
	j.OutputType = "TEXT"
	enginetest.MustFail(t, e, j)
}

// TestCopiesAreDropped has a model without a seed repeat its result.
func TestCopiesAreDropped(t *testing.T) {
	t.Parallel()
	e := replicate.New(call(t, apiOf(t, `{"id":"mine","status":"succeeded","output":"data:,a"}`), "r8"), replicate.Options{PollInterval: time.Millisecond})
	if n := len(enginetest.MustSucceed(t, e, painting(official, 2)).Outputs()); n != 1 {
		t.Errorf("results = %d, want 1 without its copy", n)
	}
}
