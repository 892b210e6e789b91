package enginetest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/a1111"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/openai"
	"atelier/internal/engine/replicate"
	"atelier/internal/testkit/watch"
)

// TestAProbeDoesNotWaitForLong probes a server that never responds, with every
// engine whose probe is one call.
func TestAProbeDoesNotWaitForLong(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(watch.Hang))
	t.Cleanup(s.Close)
	c, err := backend.New(backend.Options{URL: s.URL, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)

	for name, prober := range map[string]engine.Prober{
		"a1111":     a1111.New(c, a1111.Options{}),
		"comfyui":   comfyui.New(c, comfyui.Options{}),
		"fal":       fal.New(c, fal.Options{}),
		"openai":    openai.New(c, openai.Options{}),
		"replicate": replicate.New(c, replicate.Options{}),
	} {
		if e := engine.AsError(prober.Probe(t.Context())); e.Code != engine.Unavailable || !e.Transient {
			t.Errorf("%s: probe = %v, transient %v; want that the server is unavailable", name, e, e.Transient)
		}
	}
}
