package fal_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
)

// world is a provider and an engine that works with it.
type world struct {
	*faltest.Server
	engine  *fal.Engine
	clients []*backend.Client
}

func start(t *testing.T, o faltest.Options) *world {
	t.Helper()
	s := faltest.Start(t, o)
	w := &world{Server: s}
	w.engine = w.with(t, s.URL, fal.Options{})
	return w
}

// with makes an engine of another process with the same account.
func (w *world) with(t *testing.T, url string, o fal.Options) *fal.Engine {
	t.Helper()
	c, storage := call(t, url, w.Key), call(t, w.Storage, w.Key)
	w.clients = append(w.clients, c, storage)
	o.PollInterval, o.PollTimeout, o.Storage = 5*time.Millisecond, 300*time.Millisecond, storage
	return fal.New(c, o)
}

func (w *world) settle() {
	for _, c := range w.clients {
		c.Close()
	}
}

// call makes a client to which hosts on this machine count as public.
func call(t *testing.T, url, key string) *backend.Client {
	t.Helper()
	c, err := backend.New(backend.Options{
		URL: url, Header: http.Header{"Authorization": {"Key " + key}},
		Guard: netguard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const painter = `"endpoint":"` + faltest.Painter + `"`

// painting is a job for an endpoint, written as in a manifest.
func painting(endpoint string, results int) engine.Job {
	return engine.Job{
		RunID: "run-1", Attempt: 1, With: fmt.Sprintf(`{%s,"seed":"seed","rename":{"picture":"image_url"}}`, endpoint),
		Values: map[string]any{"prompt": "a fox", "guidance_scale": 3.5}, Seed: 7, NumResults: results,
		OutputType: "IMG", MimeTypes: []string{"image/png"},
	}
}

func pictureOf(size int) map[string][]engine.File {
	return map[string][]engine.File{"picture": {enginetest.FileFromBytes("image/png", bytes.Repeat([]byte("p"), size))}}
}

// results runs a job that has to succeed.
func (w *world) results(t *testing.T, j engine.Job) *enginetest.Recorder {
	t.Helper()
	r := enginetest.MustSucceed(t, w.engine, j)
	if n := len(r.Outputs()); n != j.NumResults {
		t.Fatalf("results = %d, want %d", n, j.NumResults)
	}
	return r
}

// failure runs a job that has to fail.
func (w *world) failure(t *testing.T, j engine.Job) (*engine.Error, *enginetest.Recorder) {
	t.Helper()
	var r enginetest.Recorder
	err := w.engine.Run(t.Context(), j, &r)
	if err == nil {
		t.Fatal("run = nil, want an error")
	}
	return engine.AsError(err), &r
}

func (w *world) wantCreates(t *testing.T, n int) {
	t.Helper()
	if got := w.Creates(); got != n {
		t.Errorf("requests made = %d, want %d", got, n)
	}
}
