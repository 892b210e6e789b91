package fal_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
)

// TestAnAnswerThatCannotBeFetchedYetIsNoEnd has the queue say that it was asked
// too often, or broke down, when the answer of a request is there: it was paid.
func TestAnAnswerThatCannotBeFetchedYetIsNoEnd(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError} {
		w := start(t, faltest.Options{})
		to, err := url.Parse(w.URL)
		if err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int64
		pass := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" && !strings.HasSuffix(r.URL.Path, "/status") && asked.Add(1) < 3 {
				rw.WriteHeader(code)
				if code/100 == 4 {
					io.WriteString(rw, `{"detail":"Too many requests"}`)
				}
				return
			}
			pass.ServeHTTP(rw, r)
		}))
		t.Cleanup(s.Close)
		w.engine = w.with(t, s.URL, fal.Options{})
		w.results(t, painting(painter, 1))
		w.wantCreates(t, 1)
	}
}

// TestAnUploadWithoutAnAddress is one that a storage answers which is none.
func TestAnUploadWithoutAnAddress(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"upload_url":"http://`+r.Host+`/x"}`)
	}))
	t.Cleanup(s.Close)
	c := call(t, s.URL, "key")
	e := fal.New(c, fal.Options{PollInterval: 5 * time.Millisecond, Storage: c})
	j := painting(painter, 1)
	j.Files = pictureOf(300 << 10)
	if got := engine.AsError(e.Run(t.Context(), j, &enginetest.Recorder{})); got.Code != engine.Failed || got.Transient || !strings.Contains(got.Message, "invalid response") {
		t.Errorf("failure = %v, transient %v", got, got.Transient)
	}
}
