package cog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/engine/cog"
	"atelier/internal/engine/cog/cogtest"
	"atelier/internal/engine/enginetest"
)

// sound returns a job for sounds.
func sound(count int, v values) engine.Job {
	j := job(`{}`, v)
	j.OutputType = "AUDIO"
	j.MimeTypes = []string{"audio/wav"}
	j.NumResults = count
	return j
}

// wantSounds fails the test unless there are n different WAV files.
func wantSounds(t *testing.T, all [][]byte, n int) {
	t.Helper()
	if len(all) != n {
		t.Fatalf("results = %d, want %d", len(all), n)
	}
	for i, b := range all {
		if !bytes.HasPrefix(b, []byte("RIFF")) {
			t.Errorf("result %d = %.20q, want a WAV file", i, b)
		}
		for _, other := range all[:i] {
			if bytes.Equal(b, other) {
				t.Errorf("result %d equals an earlier one", i)
			}
		}
	}
}

// TestYieldedFilesAreResults runs models that yield several sounds: each is a
// result of its own, with and without streaming responses.
func TestYieldedFilesAreResults(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"Album", "Radio"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			s := cogtest.Start(t, cogtest.Options{Model: model})
			e := open(t, s.URL)
			wantSounds(t, results(t, e, sound(3, nil)), 3)
			wantSounds(t, results(t, e, sound(2, nil)), 2)
			wantSounds(t, results(t, e, sound(1, values{"pieces": int64(1)})), 1)
			if f := failure(t, e, sound(1, values{"pieces": int64(0)})); f.Code != engine.Invalid {
				t.Errorf("a model that yields nothing: %v", f)
			}
			if f := failure(t, e, sound(1, values{"pieces": int64(0), "fail": "out of tune"})); f.Code != engine.Failed || f.Transient {
				t.Errorf("a model that fails: %v", f)
			} else {
				contains(t, f.Message, "The model failed: ", "out of tune")
			}
			if f := failure(t, e, sound(1, values{"pieces": int64(1000)})); f.Code != engine.Failed {
				t.Errorf("an invalid input: %v", f)
			} else {
				contains(t, f.Message, "The model refused the inputs: pieces")
			}
		})
	}
}

// TestStreamedResultsArriveEarly has a model wait for minutes after each sound.
// The run ends as soon as it has its results, and the model stops.
func TestStreamedResultsArriveEarly(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{Model: "Radio"})
	e := open(t, s.URL)
	wantSounds(t, results(t, e, sound(1, values{"pieces": int64(5), "wait": 500.0})), 1)
	eventually(t, "the model stops", func() bool { return s.Health(t) == "READY" })

	ctx, cancel := context.WithCancel(t.Context())
	var r enginetest.Recorder
	r.OnOutput = func(int) { cancel() }
	if err := e.Run(ctx, sound(2, values{"pieces": int64(5), "wait": 500.0}), &r); !errors.Is(err, context.Canceled) {
		t.Errorf("run = %v, want the context's end", err)
	}
	eventually(t, "the model stops", func() bool { return s.Health(t) == "READY" })
}

// TestStreamedLogsAreProgress expects progress from the bars in a model's log.
func TestStreamedLogsAreProgress(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{Model: "Radio"})
	j := sound(1, values{"pieces": int64(4)})
	j.With = `{"results":"pieces","input":{"pieces":4}}`
	j.NumResults = 4
	f := enginetest.MustSucceed(t, open(t, s.URL), j).Fractions()
	if len(f) < 4 || !slices.IsSorted(f) || f[len(f)-1] != 1 {
		t.Errorf("progress = %v, want several steps up to 1", f)
	}
}

// TestUploadedResultsMustNameTheirPrediction starts a server that uploads its
// results. Two predictions get the same URL, so the file there may belong to
// another run.
func TestUploadedResultsMustNameTheirPrediction(t *testing.T) {
	t.Parallel()
	receiver := &uploadReceiver{files: map[string][]byte{}}
	storage := httptest.NewServer(receiver)
	t.Cleanup(storage.Close)
	s := cogtest.Start(t, cogtest.Options{UploadURL: storage.URL + "/up"})
	e := cog.New(enginetest.NewClient(t, s.URL, ""), cog.Options{})

	if f := failure(t, e, job(drawing, nil)); f.Code != engine.Invalid || f.Transient || !strings.Contains(f.Error(), "any_url") {
		t.Errorf("a URL without the prediction's id: %v", f)
	}
	j := job(`{"any_url":true,"results":"num_outputs"}`, nil)
	isPicture(t, results(t, e, j)[0], 64, 64)

	receiver.addID = true
	isPicture(t, results(t, e, job(drawing, nil))[0], 64, 64)
}

// uploadReceiver stores the files that a Cog server uploads. If addID is set,
// it returns a URL with the prediction's id, otherwise the URL of the upload.
type uploadReceiver struct {
	addID bool

	mu    sync.Mutex
	files map[string][]byte
}

func (u *uploadReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.Method == http.MethodGet {
		w.Write(u.files[r.URL.Path])
		return
	}
	path := r.URL.Path
	if u.addID {
		path = "/" + r.Header.Get("X-Prediction-Id") + path
		w.Header().Set("Location", "http://"+r.Host+path)
	}
	u.files[path], _ = io.ReadAll(r.Body)
}

// TestImportOfSounds drafts a manifest for a model whose schema does not say
// that its files are sounds.
func TestImportOfSounds(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{Model: "Album"})
	e := open(t, s.URL)
	guess, err := e.ImportTool(t.Context(), "Album", "cog", "")
	if err != nil || guess.Output.Type != "IMG" || !slices.ContainsFunc(guess.Notes, func(n string) bool { return strings.Contains(n, "--output") }) {
		t.Errorf("without --output: %+v with notes %q, %v; want a guess that is noted", guess.Output, guess.Notes, err)
	}

	tool, err := e.ImportTool(t.Context(), "Album", "cog", "AUDIO")
	if err != nil {
		t.Fatal(err)
	}
	text, err := tool.YAML()
	if err != nil {
		t.Fatal(err)
	}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: fstest.MapFS{"album.yaml": {Data: text}}})
	if err != nil || len(set.Problems) > 0 {
		t.Fatalf("lint: %v, %v\n%s", err, set.Problems, text)
	}
	if tool.Output.Type != "AUDIO" || tool.NumResults == nil || tool.NumResults.Max < 2 || tool.Price.Type != "COST" {
		t.Errorf("manifest =\n%s", text)
	}
	for _, f := range tool.Fields {
		if strings.Contains(f.Key, "safety") {
			t.Errorf("field = %+v, but safety is the operator's", f)
		}
	}
	fixed, _ := tool.Engine.With["input"].(map[string]any)
	if fixed["disable_safety_checker"] != false || fixed["safety_tolerance"] != int64(2) {
		t.Errorf("fixed inputs = %v, want the safe values", fixed)
	}
	if !slices.ContainsFunc(tool.Notes, func(n string) bool { return strings.Contains(n, "disable_safety_checker") }) {
		t.Errorf("notes = %q, want one about the safety switches", tool.Notes)
	}

	with, err := json.Marshal(tool.Engine.With)
	if err != nil {
		t.Fatal(err)
	}
	j := sound(int(tool.NumResults.Max), nil)
	j.With = string(with)
	j.NumResults = 3
	wantSounds(t, results(t, e, j), 3)

	if _, err := e.ImportTool(t.Context(), "Album", "cog", "magic"); err == nil {
		t.Error("an unknown output type is accepted")
	}
}
