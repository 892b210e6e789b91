package scriptengine_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/scriptengine"
)

func job(text string) engine.Job {
	j := engine.Job{RunID: "run-1", Attempt: 1, With: "{}", Values: map[string]any{}, Seed: 5, NumResults: 1}
	if text != "" {
		j.Values["script"] = text
	}
	return j
}

// play runs a script that has to succeed.
func play(t *testing.T, j engine.Job) *enginetest.Recorder {
	t.Helper()
	var r enginetest.Recorder
	if err := scriptengine.New().Run(t.Context(), j, &r); err != nil {
		t.Fatalf("run: %v", err)
	}
	return &r
}

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	plain := job("")
	plain.NumResults = 3
	echo := job(`[{"progress":0.5},{"output":{"echo":"picture"}},{"progress":1}]`)
	echo.Files = map[string][]engine.File{"picture": {enginetest.FileFromBytes("image/png", []byte("any bytes will do"))}}
	slow := job(`[{"progress":0.1},{"wait":"30ms"},{"output":{"kind":"png","times":2}},{"wait":"20ms"},{"output":{"kind":"png"}}]`)
	slow.NumResults = 3
	for name, c := range map[string]enginetest.Case{
		"no script": {Job: plain, Deterministic: true, Seeded: true},
		"echo":      {Job: echo, Deterministic: true},
		"slow":      {Job: slow, Deterministic: true, Seeded: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.Engine = scriptengine.New()
			enginetest.CheckEngine(t, c)
		})
	}
}

func TestWithoutAScriptTinyPicturesCome(t *testing.T) {
	t.Parallel()
	for _, j := range []engine.Job{job(""), {NumResults: 2, Values: map[string]any{"script": ""}}, {NumResults: 2}} {
		j.NumResults = 2
		out := play(t, j).Outputs()
		if len(out) != 2 || bytes.Equal(out[0], out[1]) {
			t.Fatalf("results = %d, want two of their own", len(out))
		}
		if c, format, err := image.DecodeConfig(bytes.NewReader(out[0])); err != nil || format != "png" || c.Width != 8 || c.Height != 8 {
			t.Errorf("result = %s %dx%d, %v", format, c.Width, c.Height, err)
		}
	}
}

func TestAScriptOfNothingGivesNothing(t *testing.T) {
	t.Parallel()
	if n := len(play(t, job(`[]`)).Outputs()); n != 0 {
		t.Errorf("results = %d, want 0", n)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	j := job(fmt.Sprintf(`[
		{"output":{"kind":"png","width":64,"height":48}},
		{"output":{"kind":"text","text":"hello","times":2}},
		{"output":{"kind":"raw","base64":%q}},
		{"output":{"kind":"wav","seconds":1}},
		{"output":{"echo":"pictures","index":1}}]`, base64.StdEncoding.EncodeToString([]byte("\x00\x01raw"))))
	j.Files = map[string][]engine.File{"pictures": {enginetest.FileFromBytes("", []byte("one")), enginetest.FileFromBytes("", []byte("two"))}}
	out := play(t, j).Outputs()
	if len(out) != 6 {
		t.Fatalf("results = %d, want 6", len(out))
	}
	if c, format, err := image.DecodeConfig(bytes.NewReader(out[0])); err != nil || format != "png" || c.Width != 64 || c.Height != 48 {
		t.Errorf("picture = %s %dx%d, %v", format, c.Width, c.Height, err)
	}
	for i, want := range map[int]string{1: "hello", 2: "hello", 3: "\x00\x01raw", 5: "two"} {
		if string(out[i]) != want {
			t.Errorf("result %d = %q, want %q", i, out[i], want)
		}
	}
	if wav := out[4]; len(wav) != 44+16000 || string(wav[:4]) != "RIFF" || string(wav[8:16]) != "WAVEfmt " {
		t.Errorf("wav of %d bytes begins %q", len(wav), wav[:16])
	}
}

func TestBigOutputs(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	out := play(t, job(`[{"output":{"kind":"raw","base64":"AAEC","size_mb":2}},{"output":{"kind":"text","text":"x","size_mb":1}},{"output":{"kind":"png","size_mb":3}}]`)).Outputs()
	if len(out[0]) != 2*mb || !bytes.HasPrefix(out[0], []byte{0, 1, 2}) {
		t.Errorf("raw = %d bytes, want %d", len(out[0]), 2*mb)
	}
	if len(out[1]) != mb || !bytes.HasPrefix(out[1], []byte("x...")) {
		t.Errorf("text = %d bytes, want %d", len(out[1]), mb)
	}
	if _, format, err := image.Decode(bytes.NewReader(out[2])); err != nil || format != "png" || len(out[2]) < 3*mb || len(out[2]) > 3*mb+mb/10 {
		t.Errorf("png = %s of %d bytes, %v", format, len(out[2]), err)
	}
}

func TestProgressAndPreviewsAreToldAsWritten(t *testing.T) {
	t.Parallel()
	r := play(t, job(`[{"progress":0.5},{"progress":0.2},{"progress":7},{"preview":true}]`))
	if got, want := r.Fractions(), []float64{0.5, 0.2, 7}; !slices.Equal(got, want) {
		t.Errorf("progress = %v, want %v", got, want)
	}
	if p := r.Previews(); len(p) != 1 || len(p[0]) == 0 {
		t.Errorf("previews = %d, want 1", len(p))
	}
}

func TestWaitingTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		play(t, job(`[{"wait":"90s"},{"wait":"1.5s"}]`))
		if took := time.Since(start); took != 91500*time.Millisecond {
			t.Errorf("took %v, want 91.5s", took)
		}
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	e := scriptengine.New()
	j := job(`[{"output":{"kind":"png"}},{"fail":{"code":"ENGINE_UNAVAILABLE","message":"Busy.","transient":true,"times":2}},{"output":{"kind":"png"}}]`)
	try := func(run string) (int, error) {
		j.RunID = run
		var r enginetest.Recorder
		err := e.Run(t.Context(), j, &r)
		return len(r.Outputs()), err
	}
	for attempt := range 2 {
		n, err := try("run-1")
		if f := engine.AsError(err); n != 1 || f.Code != engine.Unavailable || f.Message != "Busy." || !f.Transient {
			t.Errorf("attempt %d: %d results, %v", attempt+1, n, err)
		}
	}
	if n, err := try("run-2"); n != 1 || err == nil {
		t.Errorf("another run: %d results, %v, want its own failures", n, err)
	}
	if n, err := try("run-1"); n != 2 || err != nil {
		t.Errorf("attempt 3: %d results, %v, want success", n, err)
	}
	for range 3 {
		err := e.Run(t.Context(), job(`[{"fail":{}}]`), &enginetest.Recorder{})
		if f := engine.AsError(err); f.Code != engine.Failed || f.Transient || f.Message == "" {
			t.Errorf("failure = %v", err)
		}
	}
}

func TestHangingEndsWithTheJob(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := enginetest.Recorder{OnProgress: func(float64) { cancel() }}
	if err := scriptengine.New().Run(ctx, job(`[{"progress":0},{"hang":true}]`), &r); !errors.Is(err, context.Canceled) {
		t.Errorf("run = %v, want the context's end", err)
	}
}

func TestDeafScriptsGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := enginetest.Recorder{OnProgress: func(float64) { cancel() }}
		start := time.Now()
		err := scriptengine.New().Run(ctx, job(`[{"ignore_cancel":"2s"},{"progress":0.5},{"wait":"1s"},{"output":{"kind":"png"}}]`), &r)
		if err != nil || len(r.Outputs()) != 1 || time.Since(start) != 3*time.Second {
			t.Errorf("run = %v with %d results after %v, want one after 3s", err, len(r.Outputs()), time.Since(start))
		}
		if err := scriptengine.New().Run(ctx, job(`[{"wait":"1h"}]`), &r); !errors.Is(err, context.Canceled) {
			t.Errorf("another script = %v, want the context's end", err)
		}
	})
}

func TestPanic(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_ = scriptengine.New().Run(t.Context(), job(`[{"panic":true}]`), &enginetest.Recorder{})
}

func TestHolds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "go")
	for name, release := range map[string]func(e *scriptengine.Engine){
		"gate": func(e *scriptengine.Engine) { <-e.Reached("gate"); e.Release("gate"); e.Release("gate") },
		path: func(*scriptengine.Engine) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Error(err)
			}
		},
	} {
		e := scriptengine.New()
		done := make(chan error, 1)
		text := fmt.Sprintf(`[{"hold":%q},{"output":{"kind":"png"}}]`, name)
		var r enginetest.Recorder
		go func() { done <- e.Run(t.Context(), job(text), &r) }()
		release(e)
		if err := <-done; err != nil || len(r.Outputs()) != 1 {
			t.Errorf("%s: %v with %d results", name, err, len(r.Outputs()))
		}
		// Once released, it holds nobody.
		if err := e.Run(t.Context(), job(text), &r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Run(ctx, job(`[{"hold":"other"}]`), &r); !errors.Is(err, context.Canceled) {
			t.Errorf("hold of an ended job = %v", err)
		}
	}
}

func TestHoldEndsWithTheJob(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"never", filepath.Join(t.TempDir(), "never")} {
		ctx, cancel := context.WithCancel(t.Context())
		r := enginetest.Recorder{OnProgress: func(float64) { cancel() }}
		err := scriptengine.New().Run(ctx, job(fmt.Sprintf(`[{"ignore_cancel":"0s"},{"progress":0},{"hold":%q}]`, name)), &r)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("run = %v, want the context's end", err)
		}
	}
}

func TestCountingFromOutside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "count")
	e := scriptengine.New()
	for attempt := range int64(3) {
		j := job(fmt.Sprintf(`[{"count_to":%q}]`, path))
		j.Attempt = attempt + 1
		if err := e.Run(t.Context(), j, &enginetest.Recorder{}); err != nil {
			t.Fatal(err)
		}
	}
	again := job(fmt.Sprintf(`[{"count_to":%q}]`, path))
	again.Attempt = 3
	again.Try = 1
	if err := e.Run(t.Context(), again, &enginetest.Recorder{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if want := "run-1 1\nrun-1 2\nrun-1 3\nrun-1 3 1\n"; err != nil || string(b) != want {
		t.Errorf("file = %q, %v, want %q", b, err, want)
	}
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, `hello`, `[`, `[1]`, `[{}]`, `[{"dance":true}]`, `[{"wait":"1s","hang":true}]`, `[] []`, `[null]`,
		`[{"wait":"soon"}]`, `[{"wait":5}]`, `[{"wait":null}]`, `[{"progress":"half"}]`, `[{"preview":false}]`, `[{"hang":false}]`,
		`[{"output":{}}]`, `[{"output":{"kind":"movie"}}]`, `[{"output":{"kind":"png","depth":3}}]`, `[{"output":{"kind":"png","width":-1}}]`,
		`[{"output":{"kind":"png","width":16385}}]`, `[{"output":{"kind":"png","echo":"picture"}}]`, `[{"output":{"kind":"wav","size_mb":1}}]`,
		`[{"output":{"kind":"raw","base64":"%"}}]`, `[{"output":{"kind":"text","times":-1}}]`,
		`[{"fail":{"code":"OUCH"}}]`, `[{"fail":"now"}]`,
	} {
		var r enginetest.Recorder
		err := scriptengine.New().Run(t.Context(), job(`[{"output":{"kind":"png"}},`+strings.TrimPrefix(text, "[")), &r)
		if strings.HasPrefix(text, "[") && (err == nil || len(r.Outputs()) != 0) {
			t.Errorf("%s after a good step: %v with %d results, want an error before any", text, err, len(r.Outputs()))
		}
		if err := scriptengine.New().Run(t.Context(), job(text), &r); err == nil || engine.AsError(err).Code != engine.Failed {
			t.Errorf("%s: %v, want a failure", text, err)
		}
	}
}

func TestEchoOfNoFile(t *testing.T) {
	t.Parallel()
	j := job(`[{"output":{"echo":"picture","index":1}}]`)
	j.Files = map[string][]engine.File{"picture": {enginetest.FileFromBytes("", nil)}}
	if err := scriptengine.New().Run(t.Context(), j, &enginetest.Recorder{}); err == nil {
		t.Error("run = nil, want an error")
	}
}
