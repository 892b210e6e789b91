package replicate_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/replicate"
)

// TestAnUploadWithoutAnAddress is no sign that the provider is away.
func TestAnUploadWithoutAnAddress(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, `{"id":"x"}`)
	}))
	t.Cleanup(s.Close)
	j := painting(official, 1)
	j.Files = pictureOf(300 << 10)
	e := engine.AsError(replicate.New(call(t, s.URL, "token"), replicate.Options{}).Run(t.Context(), j, &enginetest.Recorder{}))
	if e.Code != engine.Failed || e.Transient {
		t.Errorf("failure = %v, transient %v", e, e.Transient)
	}
}
