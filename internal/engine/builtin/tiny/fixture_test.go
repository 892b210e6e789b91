package tiny_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/tiny"
	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/engine/builtin/tiny/neural"
	"atelier/internal/engine/enginetest"
)

type values = map[string]any

func open() (*neural.Model, error) { return neural.Open(kernel.Best(), runtime.NumCPU()) }

// fresh returns a new engine, which is closed when the test ends.
func fresh(t *testing.T) *tiny.Engine {
	t.Helper()
	e := tiny.New(tiny.Options{Open: open, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	t.Cleanup(e.Close)
	return e
}

// shared returns an engine that most tests share: opening its model takes
// longer than most tests.
var shared = sync.OnceValue(func() *tiny.Engine {
	return tiny.New(tiny.Options{Open: open, Log: slog.New(slog.DiscardHandler), Now: time.Now})
})

func side(n int64) values { return values{"width": n, "height": n} }

// job returns a quick job: few steps, and a result that is not enlarged.
func job(operation string, v values, pictures ...engine.File) engine.Job {
	all := values{"prompt": "red fox", "steps": int64(2), "size": side(128)}
	for key, value := range v {
		all[key] = value
	}
	j := engine.Job{
		With: fmt.Sprintf(`{"operation":%q}`, operation), Values: all, Seed: 11, NumResults: 1, OutputType: "IMG", MimeTypes: []string{"image/png"},
	}
	if len(pictures) > 0 {
		j.Files = map[string][]engine.File{"picture": pictures}
	}
	return j
}

// results runs a job that has to succeed.
func results(t *testing.T, e engine.Engine, j engine.Job) *enginetest.Recorder {
	t.Helper()
	var r enginetest.Recorder
	if err := e.Run(t.Context(), j, &r); err != nil {
		t.Fatalf("run: %v", err)
	}
	if len(r.Outputs()) != j.NumResults {
		t.Fatalf("results = %d, want %d", len(r.Outputs()), j.NumResults)
	}
	return &r
}

// refusal runs a job that has to fail, and returns the failure.
func refusal(t *testing.T, j engine.Job) *engine.Error {
	t.Helper()
	var r enginetest.Recorder
	err := shared().Run(t.Context(), j, &r)
	e, ok := errors.AsType[*engine.Error](err)
	if !ok || len(r.Outputs()) != 0 {
		t.Fatalf("run = %v with %d results, want a failure that says why", err, len(r.Outputs()))
	}
	return e
}

func decoded(t *testing.T, b []byte) image.Image {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return m
}

func pngFile(m image.Image) engine.File {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return enginetest.FileFromBytes("image/png", b.Bytes())
}

// made draws a picture pixel by pixel.
func made(w, h int, at func(x, y int) color.NRGBA) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetNRGBA(x, y, at(x, y))
		}
	}
	return m
}

// ball returns a red disc on a transparent background.
func ball(w, h int) *image.NRGBA {
	return made(w, h, func(x, y int) color.NRGBA {
		dx, dy := float64(2*x+1-w)/float64(w), float64(2*y+1-h)/float64(h)
		if dx*dx+dy*dy < 0.6 {
			return color.NRGBA{220, 40, 40, 255}
		}
		return color.NRGBA{}
	})
}
