package openai_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai"
	"atelier/internal/engine/openai/openaitest"
)

const key = "sk-for-tests"

// fixture is an engine and its server.
type fixture struct {
	*openaitest.Server
	*openai.Engine
	client *backend.Client
}

func begin(t *testing.T, o openaitest.Options) fixture {
	t.Helper()
	o.Key = key
	s := openaitest.Start(t, o)
	c := client(t, s.URL, key)
	return fixture{s, openai.New(c, openai.Options{PollInterval: 10 * time.Millisecond, MaxResponse: 8 << 20}), c}
}

func client(t *testing.T, url, key string) *backend.Client {
	t.Helper()
	c, err := backend.New(backend.Options{
		URL: url, Header: http.Header{"Authorization": {"Bearer " + key}},
		Guard: netguard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// with returns the engine.with section of a manifest.
func with(t *testing.T, settings map[string]any) string {
	t.Helper()
	b, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// job returns a job with the given settings in its manifest.
func job(t *testing.T, settings map[string]any, values map[string]any, results int) engine.Job {
	t.Helper()
	return engine.Job{RunID: "run", Attempt: 1, With: with(t, settings), Values: values, Seed: 7, NumResults: results}
}

// picture returns a small PNG.
func picture() engine.File {
	return enginetest.FileFromBytes("image/png", enginetest.StripedPNG(32, 32, "picture"))
}

// run runs a job that must succeed.
func (w fixture) run(t *testing.T, j engine.Job) *enginetest.Recorder {
	t.Helper()
	return enginetest.MustSucceed(t, w, j)
}

// fail runs a job that must fail, and returns its failure.
func (w fixture) fail(t *testing.T, j engine.Job) *engine.Error {
	t.Helper()
	var r enginetest.Recorder
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := w.Run(ctx, j, &r)
	if err == nil {
		t.Fatal("run = nil, want an error")
	}
	return engine.AsError(err)
}
