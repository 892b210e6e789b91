package a1111_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/a1111"
	"atelier/internal/engine/a1111/a1111test"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
)

const user, password = "atelier", "for-tests"

// fixture is an engine and its server.
type fixture struct {
	*a1111test.Server
	*a1111.Engine
	client *backend.Client
}

func begin(t *testing.T, o a1111test.Options) fixture {
	t.Helper()
	o.User, o.Password = user, password
	s := a1111test.Start(t, o)
	c := client(t, s.URL, user+":"+password)
	return fixture{s, a1111.New(c, a1111.Options{PollInterval: 5 * time.Millisecond, MaxResponse: 8 << 20}), c}
}

func client(t *testing.T, url, credentials string) *backend.Client {
	t.Helper()
	c, err := backend.New(backend.Options{
		URL:    url,
		Header: http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func job(t *testing.T, with, values map[string]any, results int) engine.Job {
	t.Helper()
	b, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Job{RunID: "run", Attempt: 1, With: string(b), Values: values, Seed: 7, NumResults: results}
}

// picture returns a small PNG.
func picture() engine.File {
	return enginetest.FileFromBytes("image/png", enginetest.StripedPNG(32, 24, "picture"))
}

// run runs a job that must succeed.
func (w fixture) run(t *testing.T, j engine.Job) *enginetest.Recorder {
	t.Helper()
	return enginetest.MustSucceed(t, w, j)
}

// fail runs a job that must fail, and returns its failure.
func (w fixture) fail(t *testing.T, j engine.Job) *engine.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := w.Run(ctx, j, &enginetest.Recorder{})
	if err == nil {
		t.Fatal("run = nil, want an error")
	}
	return engine.AsError(err)
}

// until waits until is returns true. what names the condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !is(); {
		select {
		case <-end:
			t.Fatalf("%s: not within a minute", what)
		case <-tick.C:
		}
	}
}
