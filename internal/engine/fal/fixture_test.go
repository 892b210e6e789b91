package fal_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
)

// fixture is a provider and an engine that works with it.
type fixture struct {
	*faltest.Server
	engine  *fal.Engine
	clients []*backend.Client
}

func start(t *testing.T, o faltest.Options) *fixture {
	t.Helper()
	s := faltest.Start(t, o)
	w := &fixture{Server: s}
	w.engine = w.with(t, s.URL, fal.Options{})
	return w
}

// with makes an engine of another process with the same account.
func (w *fixture) with(t *testing.T, url string, o fal.Options) *fal.Engine {
	t.Helper()
	c, storage := call(t, url, w.Key), call(t, w.Storage, w.Key)
	w.clients = append(w.clients, c, storage)
	o.PollInterval, o.PollTimeout, o.Storage = 5*time.Millisecond, 3*time.Second, storage
	return fal.New(c, o)
}

func (w *fixture) settle() {
	for _, c := range w.clients {
		c.Close()
	}
}

// call returns a client for the provider.
func call(t *testing.T, url, key string) *backend.Client {
	t.Helper()
	return enginetest.NewClient(t, url, "Key "+key)
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
func (w *fixture) results(t *testing.T, j engine.Job) *enginetest.Recorder {
	t.Helper()
	return enginetest.MustMakeAll(t, w.engine, j)
}

// failure runs a job that has to fail.
func (w *fixture) failure(t *testing.T, j engine.Job) (*engine.Error, *enginetest.Recorder) {
	t.Helper()
	return enginetest.RunToFailure(t, w.engine, j)
}

func (w *fixture) wantCreates(t *testing.T, n int) {
	t.Helper()
	if got := w.Creates(); got != n {
		t.Errorf("requests made = %d, want %d", got, n)
	}
}
