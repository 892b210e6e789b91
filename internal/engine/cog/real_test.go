package cog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/engine/cog"
	"atelier/internal/engine/cog/cogtest"
	"atelier/internal/engine/enginetest"
)

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	s := cogtest.Start(t, cogtest.Options{Model: "Several", Slots: 8})
	for name, with := range map[string]string{"one call": drawing, "a call for each": `{"seed":"seed","seed_max":2147483647}`} {
		t.Run(name, func(t *testing.T) {
			c := client(t, s.URL)
			j := job(with, values{"width": int64(32), "height": 24.0})
			j.NumResults = 3
			j.Files = map[string][]engine.File{"picture": {picture(t)}}
			enginetest.CheckEngine(t, enginetest.Case{Engine: cog.New(c, cog.Options{}), Job: j, Deterministic: true, Seeded: true, Settle: c.Close})
		})
	}
}

func TestPictures(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{})
	e := open(t, s.URL)
	if err := e.Probe(t.Context()); err != nil {
		t.Errorf("probe = %v", err)
	}
	j := job(drawing, values{"size": values{"width": int64(48), "height": 32.0}, "steps": 5.0, "style": "loud", "unknown": "is stripped"})
	j.NumResults = 4
	all := results(t, e, j)
	if len(all) != 4 {
		t.Errorf("results = %d, want 4", len(all))
	}
	for _, b := range all {
		isPicture(t, b, 48, 32)
	}
	j.NumResults = 1
	j.With = `{"input":{"num_outputs":3,"style":"plain"}}`
	if n := len(results(t, e, j)); n != 1 {
		t.Errorf("results = %d of a model that made 3, want the 1 that was asked for", n)
	}
	// The same name runs again: what it did before is forgotten.
	if n := len(results(t, e, j)); n != 1 {
		t.Errorf("results = %d", n)
	}
	for what, tt := range map[string]struct {
		v     values
		code  engine.Code
		words []string
	}{
		"fails":    {values{"fail": "out of colour at /srv/model.bin"}, engine.Failed, []string{"The model failed: RuntimeError: out of colour at …"}},
		"too wide": {values{"width": int64(5000)}, engine.Failed, []string{"The model refused the inputs: width: 5000 is greater than the maximum of 512"}},
		"no style": {values{"style": "none"}, engine.Failed, []string{"style: ", "is not one of"}},
		"nothing":  {values{"mode": "none"}, engine.Invalid, []string{"The tool made no result."}},
	} {
		f := failure(t, e, job(drawing, tt.v))
		if f.Code != tt.code || f.Transient {
			t.Errorf("%s: %v, transient %v, want %s", what, f, f.Transient, tt.code)
		}
		contains(t, f.Message, tt.words...)
	}
	if b := results(t, e, job(drawing, values{"mode": "huge"}))[0]; len(b) != 1<<20 {
		t.Errorf("a large result has %d bytes, want %d", len(b), 1<<20)
	}
	if b := results(t, e, job(drawing, values{"mode": "garbage"}))[0]; !bytes.HasPrefix(b, []byte{0, 1, 2, 3}) {
		t.Errorf("result = %q, want what the model made: what it is, others judge", b)
	}
	j = job(drawing, values{"mode": "text"})
	j.OutputType = "TEXT"
	if b := results(t, e, j)[0]; string(b) != "a fox 852516363" {
		t.Errorf("text in a file = %q", b)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{})
	e := open(t, s.URL)
	with := func(f engine.File) engine.Job {
		j := job(drawing, nil)
		j.Files = map[string][]engine.File{"picture": {f}}
		return j
	}
	plain := results(t, e, job(drawing, nil))[0]
	inside := results(t, e, with(picture(t)))[0]
	if bytes.Equal(plain, inside) {
		t.Error("the picture makes no difference")
	}
	isPicture(t, results(t, e, with(enginetest.FileFromBytes("image/png", make([]byte, 4<<20))))[0], 64, 64)

	var asked atomic.Int64
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		f, err := picture(t).Open(r.Context())
		if err != nil {
			t.Error(err)
			return
		}
		io.Copy(w, f)
	}))
	defer files.Close()
	there := cog.New(client(t, s.URL), cog.Options{SendURLs: true})
	f := picture(t)
	f.Address = func() string { return files.URL + "/file.png?signature=secret" }
	if got := results(t, there, with(f))[0]; !bytes.Equal(got, inside) || asked.Load() == 0 {
		t.Errorf("asked %d times for the file at its address, and the result differs: %v", asked.Load(), !bytes.Equal(got, inside))
	}
	files.Close()
	contains(t, failure(t, there, with(f)).Message, "The model failed: Input validation error")
	if m := failure(t, there, with(f)).Message; strings.Contains(m, "127.0.0.1") || strings.Contains(m, "secret") {
		t.Errorf("message = %q names a place", m)
	}
}

func TestCancelStopsTheWork(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{})
	e := open(t, s.URL)
	stop, _ := begun(t, e, job(drawing, values{"sleep": int64(500)}))
	eventually(t, "the model works", func() bool { return s.Health(t) == "BUSY" })
	if err := e.Probe(t.Context()); err != nil {
		t.Errorf("probe of a server that works = %v", err)
	}
	if f := failure(t, e, job(drawing, nil)); f.Code != engine.Unavailable || !f.Transient {
		t.Errorf("without a free slot: %v, transient %v", f, f.Transient)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("run = %v, want the context's end", err)
	}
	eventually(t, "the model stops", func() bool { return s.Health(t) == "READY" })
	isPicture(t, results(t, e, job(drawing, nil))[0], 64, 64)
}

func TestCancelledByOthers(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{})
	c := client(t, s.URL)
	_, ended := begun(t, cog.New(c, cog.Options{}), job(drawing, values{"sleep": int64(500)}))
	eventually(t, "the model works", func() bool { return s.Health(t) == "BUSY" })
	var err error
	eventually(t, "the prediction is cancelled", func() bool {
		// One that comes before the model has begun is lost, so it is sent again.
		_ = c.CallJSON(t.Context(), "POST", "predictions/run-1-0-0/cancel", nil, nil)
		select {
		case err = <-ended:
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
	if f := engine.AsError(err); f.Code != engine.Failed || !f.Transient {
		t.Errorf("failure = %v", f)
	}
}

func TestServerRestarts(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{})
	e := open(t, s.URL)
	_, ended := begun(t, e, job(drawing, values{"sleep": int64(500)}))
	eventually(t, "the model works", func() bool { return s.Health(t) == "BUSY" })
	s.Kill(t)
	if f := engine.AsError(<-ended); f.Code != engine.Unavailable || !f.Transient {
		t.Errorf("failure = %v, transient %v", f, f.Transient)
	}
	if f := failure(t, e, job(drawing, nil)); f.Code != engine.Unavailable || !f.Transient {
		t.Errorf("while it is away: %v, transient %v", f, f.Transient)
	}
	if e.Probe(t.Context()) == nil {
		t.Error("probe = nil while it is away")
	}
	s.Restart(t)
	if err := e.Probe(t.Context()); err != nil {
		t.Errorf("probe = %v", err)
	}
	isPicture(t, results(t, e, job(drawing, nil))[0], 64, 64)
}

// TestWorkerCrashes has the model take its process down, after which the server
// answers and takes nothing.
func TestWorkerCrashes(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{})
	e := open(t, s.URL)
	if f := failure(t, e, job(drawing, values{"mode": "crash"})); f.Code != engine.Failed || f.Transient {
		t.Errorf("failure = %v, transient %v", f, f.Transient)
	}
	if e.Probe(t.Context()) == nil {
		t.Errorf("probe = nil, and the server says %s", s.Health(t))
	}
	if f := failure(t, e, job(drawing, nil)); f.Code != engine.Unavailable || !f.Transient {
		t.Errorf("afterwards: %v, transient %v", f, f.Transient)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{Model: "Writer"})
	e := open(t, s.URL)
	j := job(`{}`, values{"prompt": "https://127.0.0.1/fox"})
	j.OutputType = "TEXT"
	if b := results(t, e, j)[0]; string(b) != "https://127.0.0.1/fox 0, https://127.0.0.1/fox 1, https://127.0.0.1/fox 2, " {
		t.Errorf("text = %q", b)
	}
	j.Values["pieces"] = int64(0)
	if f := failure(t, e, j); f.Code != engine.Invalid {
		t.Errorf("no text: %v", f)
	}
	tool, err := e.ImportTool(t.Context(), "Writer", "cog", "")
	if err != nil || tool.Output.Type != "TEXT" {
		t.Errorf("import = %+v, %v", tool, err)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	s := cogtest.Start(t, cogtest.Options{})
	e := open(t, s.URL)
	tool, err := e.ImportTool(t.Context(), "Stripes", "gpu-box", "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := tool.YAML("Drafted from the server.")
	if err != nil {
		t.Fatal(err)
	}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: fstest.MapFS{"stripes.yaml": {Data: text}}})
	if err != nil || len(set.Problems) > 0 {
		t.Fatalf("lint: %v, %v\n%s", err, set.Problems, text)
	}
	kinds := ""
	j := engine.Job{RunID: "imported", Attempt: 1, Seed: 4_000_000_000, NumResults: int(tool.NumResults.Max), OutputType: tool.Output.Type, Values: values{}}
	for _, f := range tool.Fields {
		kinds += f.Type + " "
		if f.Default != nil {
			j.Values[f.Key] = f.Default
		} else if f.Required {
			j.Values[f.Key] = "a fox"
		}
	}
	if want := "PROMPT IMG WIDTH_HEIGHT STEPS CFG SEED SINGLE_SELECT SINGLE_SELECT TEXT SLIDER "; kinds != want {
		t.Errorf("fields = %s, want %s", kinds, want)
	}
	with, err := json.Marshal(tool.Engine.With)
	if err != nil {
		t.Fatal(err)
	}
	j.With = string(with)
	all := results(t, e, j)
	if len(all) != 4 {
		t.Errorf("results = %d, want 4", len(all))
	}
	isPicture(t, all[3], 64, 64)
}
