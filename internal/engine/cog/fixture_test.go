package cog_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/cog"
	"atelier/internal/engine/enginetest"
)

type values = map[string]any

// drawing is the mapping of fields to the inputs of the tests' model.
const drawing = `{"results":"num_outputs","seed":"seed","seed_max":2147483647}`

// client calls the server. Other hosts on this machine are not public.
func client(t testing.TB, address string) *backend.Client {
	t.Helper()
	c, err := backend.New(backend.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func open(t testing.TB, address string) *cog.Engine {
	t.Helper()
	return cog.New(client(t, address), cog.Options{})
}

// job is one for a picture with these inputs.
func job(with string, v values) engine.Job {
	all := values{"prompt": "a fox"}
	for key, value := range v {
		all[key] = value
	}
	return engine.Job{
		RunID: "run", Attempt: 1, With: with, Values: all, Seed: 3_000_000_011, NumResults: 1,
		OutputType: "IMG", MimeTypes: []string{"image/png"},
	}
}

// results runs a job that has to succeed.
func results(t testing.TB, e engine.Engine, j engine.Job) [][]byte {
	t.Helper()
	return enginetest.MustSucceed(t, e, j).Outputs()
}

// failure runs a job that has to fail, and returns the failure.
func failure(t testing.TB, e engine.Engine, j engine.Job) *engine.Error {
	t.Helper()
	var r enginetest.Recorder
	err := e.Run(t.Context(), j, &r)
	f, ok := errors.AsType[*engine.Error](err)
	if !ok || len(r.Outputs()) != 0 {
		t.Fatalf("run = %v with %d results, want a failure that says why", err, len(r.Outputs()))
	}
	return f
}

func picture(t testing.TB) engine.File {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 8, 8))
	m.Set(1, 1, color.White)
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return enginetest.FileFromBytes("image/png", b.Bytes())
}

// isPicture fails the test unless b is a picture of that size.
func isPicture(t testing.TB, b []byte, width, height int) {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Errorf("result: %v", err)
	} else if m.Bounds().Dx() != width || m.Bounds().Dy() != height {
		t.Errorf("result is %v, want %d by %d", m.Bounds(), width, height)
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// begun runs a job in the background until stop is called, which returns the
// job's error.
func begun(t testing.TB, e engine.Engine, j engine.Job) (stop func() error, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, j, &enginetest.Recorder{}) }()
	return func() error { cancel(); return <-done }, done
}

func contains(t testing.TB, message string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(message, w) {
			t.Errorf("message = %q, want %q in it", message, w)
		}
	}
}
