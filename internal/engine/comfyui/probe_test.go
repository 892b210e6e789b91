package comfyui_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/comfyui"
	"atelier/internal/testkit/watch"
)

func TestAProbeDoesNotWaitForLong(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(watch.Hang))
	t.Cleanup(s.Close)
	c, err := backend.New(backend.Options{URL: s.URL, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if e := engine.As(comfyui.New(c, comfyui.Options{}).Probe(t.Context())); e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("probe = %v, transient %v; want that the server is away", e, e.Transient)
	}
}
