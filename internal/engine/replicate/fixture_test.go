package replicate_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/replicate"
	"atelier/internal/engine/replicate/replicatetest"
)

// fixture is a provider and an engine that works with it.
type fixture struct {
	*replicatetest.Server
	engine *replicate.Engine
	client *backend.Client
}

func start(t *testing.T, o replicatetest.Options) *fixture {
	t.Helper()
	s := replicatetest.Start(t, o)
	w := &fixture{Server: s}
	w.client = call(t, s.URL, s.Token)
	w.engine = w.another()
	return w
}

// another is an engine of another process with the same account.
func (w *fixture) another() *replicate.Engine {
	return replicate.New(w.client, replicate.Options{PollInterval: 5 * time.Millisecond, PollTimeout: 3 * time.Second, Now: time.Now})
}

// call returns a client for the provider.
func call(t *testing.T, url, token string) *backend.Client {
	t.Helper()
	return enginetest.NewClient(t, url, "Bearer "+token)
}

const mapping = `"seed":"seed","rename":{"picture":"image"}`

// painting is a job for the painter. model is written as in a manifest.
func painting(model string, results int) engine.Job {
	return engine.Job{
		RunID: "run-1", Attempt: 1, With: fmt.Sprintf(`{%s,%s}`, model, mapping),
		Values: map[string]any{"prompt": "a fox", "guidance_scale": 7.0}, Seed: 7, NumResults: results,
		OutputType: "IMG", MimeTypes: []string{"image/png"},
	}
}

const official = `"model":"acme/painter"`

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
		t.Errorf("predictions created = %d, want %d", got, n)
	}
}
