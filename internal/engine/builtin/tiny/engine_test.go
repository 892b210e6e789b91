package tiny_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/tiny"
	"atelier/internal/engine/builtin/tiny/neural"
	"atelier/internal/engine/enginetest"
)

// TestSameSeedSamePicture draws as the tool does by default, twice and once more
// with a model that was opened anew.
func TestSameSeedSamePicture(t *testing.T) {
	t.Parallel()
	j := job("sketch", values{"prompt": "penguin in the snow", "steps": int64(6), "size": side(512)})
	first := results(t, shared(), j).Outputs()[0]
	if m := decoded(t, first); m.Bounds() != image.Rect(0, 0, 512, 512) {
		t.Errorf("size = %v", m.Bounds())
	}
	for name, e := range map[string]engine.Engine{"again": shared(), "after a restart": fresh(t)} {
		if !bytes.Equal(results(t, e, j).Outputs()[0], first) {
			t.Errorf("%s it is another picture", name)
		}
	}
}

// TestEightResults gives pictures that differ, the first of which is that of a
// job for one.
func TestEightResults(t *testing.T) {
	t.Parallel()
	j := job("sketch", values{"steps": int64(1)})
	one := results(t, shared(), j).Outputs()[0]
	j.NumResults = 8
	r := results(t, shared(), j)
	all := map[string]bool{}
	for _, b := range r.Outputs() {
		if m := decoded(t, b); m.Bounds() != image.Rect(0, 0, 128, 128) {
			t.Errorf("size = %v", m.Bounds())
		}
		all[string(b)] = true
	}
	if len(all) != 8 || !bytes.Equal(r.Outputs()[0], one) {
		t.Errorf("%d of 8 pictures differ", len(all))
	}
}

// TestStepsAreShown has progress and a preview for each step but the last.
func TestStepsAreShown(t *testing.T) {
	t.Parallel()
	j := job("sketch", values{"steps": int64(5)})
	r := results(t, shared(), j)
	if n := len(r.Previews()); n != 4 {
		t.Errorf("%d previews, want 4", n)
	}
	for _, b := range r.Previews() {
		m, err := jpeg.Decode(bytes.NewReader(b))
		if err != nil || m.Bounds() != image.Rect(0, 0, 128, 128) {
			t.Errorf("preview = %v", err)
		}
	}
	if f := r.Fractions(); len(f) < 6 || !slices.IsSorted(f) || f[len(f)-1] != 1 {
		t.Errorf("progress = %v", f)
	}
}

// TestCancelledBetweenSteps ends a long drawing at its first step.
func TestCancelledBetweenSteps(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told int
	r := enginetest.Recorder{OnProgress: func(f float64) {
		if f > 0 {
			told++
			cancel()
		}
	}}
	err := shared().Run(ctx, job("sketch", values{"steps": int64(16)}), &r)
	if !errors.Is(err, context.Canceled) || len(r.Outputs()) > 0 || told != 1 {
		t.Errorf("run = %v with %d results, %d steps after the end", err, len(r.Outputs()), told-1)
	}
}

// TestWaitingForATurnEnds has a job give up that waits for another.
func TestWaitingForATurnEnds(t *testing.T) {
	t.Parallel()
	e := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := enginetest.Recorder{OnOutput: func(int) {
		late, stop := context.WithTimeout(ctx, 10*time.Millisecond)
		defer stop()
		var r enginetest.Recorder
		if err := e.Run(late, job("sketch", nil), &r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second = %v, want the end of its context", err)
		}
	}}
	if err := e.Run(ctx, job("sketch", values{"steps": int64(1)}), &first); err != nil {
		t.Errorf("the first = %v", err)
	}
}

// TestUnknownWords has every result say what it does not show.
func TestUnknownWords(t *testing.T) {
	t.Parallel()
	j := job("sketch", values{"prompt": "red fox on a Blorptangle", "steps": int64(1), "style": "flat", "background": "snow"})
	j.NumResults = 2
	for _, note := range results(t, shared(), j).Notes() {
		if want := "1 of 5 words is unknown to this model and was left out of the drawing: blorptangle."; note != want {
			t.Errorf("note = %q, want %q", note, want)
		}
	}
	if note := results(t, shared(), job("sketch", values{"steps": int64(1)})).Notes()[0]; note != "" {
		t.Errorf("note = %q, want none", note)
	}
}

// TestStagesAreLogged looks for the stages, and for no word of the prompt.
func TestStagesAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := tiny.New(tiny.Options{Open: open, Log: slog.New(slog.NewJSONHandler(&log, nil)), Now: time.Now})
	defer e.Close()
	j := job("sketch", values{"prompt": "zanzibar fox", "size": side(512)})
	j.RunID = "the-run"
	results(t, e, j)
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatalf("log = %q: %v", log.String(), err)
	}
	for _, key := range []string{"open", "first_step", "step", "upscale", "encode"} {
		text, _ := line[key].(string)
		if _, err := time.ParseDuration(text); err != nil {
			t.Errorf("%s = %v in %s", key, line[key], log.String())
		}
	}
	if line["run"] != "the-run" || strings.Contains(log.String(), "zanzibar") {
		t.Errorf("log = %s", log.String())
	}
}

// TestPicturesAreBegunWith keeps more of the picture with less strength.
func TestPicturesAreBegunWith(t *testing.T) {
	t.Parallel()
	green := made(300, 200, func(int, int) color.NRGBA { return color.NRGBA{30, 160, 40, 255} })
	distance := func(strength float64) (sum float64) {
		m := decoded(t, results(t, shared(), job("sketch-from-picture", values{"prompt": "tree", "strength": strength, "steps": int64(6)}, pngFile(green))).Outputs()[0])
		for x := 20; x < 108; x++ {
			r, g, b, _ := m.At(x, 64).RGBA()
			for _, d := range []float64{float64(r>>8) - 30, float64(g>>8) - 160, float64(b>>8) - 40} {
				sum += d * d
			}
		}
		return sum
	}
	if little, all := distance(0.1), distance(1); little >= all {
		t.Errorf("distance %v with little strength, %v with all", little, all)
	}
}

// TestTransparencyIsKept enlarges a disc on nothing.
func TestTransparencyIsKept(t *testing.T) {
	t.Parallel()
	m := decoded(t, results(t, shared(), job("upscale-art", nil, pngFile(ball(40, 30)))).Outputs()[0])
	if m.Bounds() != image.Rect(0, 0, 160, 120) {
		t.Fatalf("size = %v", m.Bounds())
	}
	r, g, b, a := m.At(80, 60).RGBA()
	if _, _, _, corner := m.At(1, 1).RGBA(); corner != 0 || a != 0xffff || r>>8 < 190 || g>>8 > 80 || b>>8 > 80 {
		t.Errorf("the middle is %d %d %d %d, the corner's alpha %d", r>>8, g>>8, b>>8, a>>8, corner>>8)
	}
}

// TestOptionsThatAreNone refuses what a manifest should not have asked for.
func TestOptionsThatAreNone(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]engine.Job{
		"no operation":      job("", nil),
		"another operation": job("paint", nil),
		"another size":      job("sketch", values{"size": side(300)}),
		"no square":         job("sketch", values{"size": values{"width": int64(128), "height": int64(512)}}),
	} {
		if e := refusal(t, j); e.Message != engine.ErrMisconfigured.Message {
			t.Errorf("%s: %v", name, e)
		}
	}
	if e := refusal(t, job("upscale-art", nil)); !strings.Contains(e.Message, "required") {
		t.Errorf("without a picture: %v", e)
	}
}

// TestModelThatDoesNotOpen is tried again by the next job.
func TestModelThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	tries := 0
	e := tiny.New(tiny.Options{Log: slog.New(slog.DiscardHandler), Now: time.Now, Open: func() (*neural.Model, error) {
		if tries++; tries == 1 {
			return nil, errors.New("the weights are damaged")
		}
		return open()
	}})
	defer e.Close()
	var r enginetest.Recorder
	if err := e.Run(t.Context(), job("sketch", nil), &r); err == nil || strings.Contains(engine.AsError(err).Message, "weights") {
		t.Errorf("run = %v", err)
	}
	results(t, e, job("sketch", values{"steps": int64(1)}))
}
