package a1111_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine/a1111"
	"atelier/internal/engine/a1111/a1111test"
)

// TestWhatAGatewayGaveUpOnIsStopped puts a gateway in front of the server whose
// time limit is shorter than the work. The server does not notice, and would
// continue while the run is tried again.
func TestWhatAGatewayGaveUpOnIsStopped(t *testing.T) {
	t.Parallel()
	w := begin(t, a1111test.Options{Takes: time.Minute})
	to, err := url.Parse(w.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/txt2img") {
			pass.ServeHTTP(rw, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		call, err := http.NewRequestWithContext(t.Context(), r.Method, w.URL+r.URL.Path, strings.NewReader(string(body)))
		if err != nil {
			t.Error(err)
			return
		}
		call.Header = r.Header.Clone()
		go func() {
			if res, err := http.DefaultClient.Do(call); err == nil {
				res.Body.Close()
			}
		}()
		until(t, "the server works", w.Working)
		rw.WriteHeader(http.StatusGatewayTimeout)
	}))
	t.Cleanup(s.Close)
	w.Engine = a1111.New(client(t, s.URL, user+":"+password), a1111.Options{})
	if e := w.fail(t, job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox"}, 1)); !e.Transient {
		t.Errorf("failure = %v, want one that may be over soon", e)
	}
	if w.Interrupts() != 1 {
		t.Errorf("interrupts = %d, want one", w.Interrupts())
	}
}
