package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"atelier/client"
)

// TestFollowWaits has streams that break off, and a service that says nothing of
// how long to wait.
func TestFollowWaits(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v2/generate/r/events", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /api/v2/generate/r", func(w http.ResponseWriter, _ *http.Request) {
		status := "pending"
		if asked.Add(1) > 1 {
			status = "succeeded"
		}
		fmt.Fprintf(w, `{"request_id": "r", "status": %q}`, status)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	began := time.Now()
	run, err := (&client.Client{URL: s.URL, Token: "t"}).FollowRun(t.Context(), "r", nil)
	if err != nil || run.Status != "succeeded" {
		t.Fatalf("run = %+v, %v", run, err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("it was asked again after %v", took)
	}
}
