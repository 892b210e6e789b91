package backend_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
)

func TestHand(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	if err := backend.DeliverReader(t.Context(), strings.NewReader("a fox"), &r); err != nil || !bytes.Equal(r.Outputs()[0], []byte("a fox")) {
		t.Errorf("hand = %v, outputs %q", err, r.Outputs())
	}
}

// TestHandTellsWhoseFaultItIs has a sink, a server and both go wrong.
func TestHandTellsWhoseFaultItIs(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	broken := io.MultiReader(strings.NewReader("a f"), iotest.ErrReader(errors.New("connection reset")))
	for name, tt := range map[string]struct {
		from  io.Reader
		sink  *enginetest.Recorder
		wants func(error) bool
	}{
		"the sink's":     {strings.NewReader("a fox"), &enginetest.Recorder{FailAt: 1, Err: full}, func(err error) bool { return errors.Is(err, full) }},
		"the server's":   {broken, &enginetest.Recorder{}, func(err error) bool { return engine.AsError(err).Code == engine.Unavailable }},
		"at its start":   {iotest.ErrReader(io.ErrUnexpectedEOF), &enginetest.Recorder{}, func(err error) bool { return engine.AsError(err).Code == engine.Unavailable }},
		"nothing at all": {strings.NewReader(""), &enginetest.Recorder{}, func(err error) bool { return errors.Is(err, backend.ErrNoResult) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := backend.DeliverReader(t.Context(), tt.from, tt.sink); err == nil || !tt.wants(err) {
				t.Errorf("hand = %v", err)
			}
		})
	}
}

func TestDetail(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		`"there is no such model"`: "there is no such model",
		`[{"loc":["body","input","steps"],"msg":"too many"},{"loc":["body"],"msg":"odd"},{"loc":["body",0],"msg":"even"}]`: "steps: too many; odd; even",
		`{"reason":"none"}`: "", `null`: "", ``: "", `[7]`: "",
	} {
		if got := backend.FastAPIDetail([]byte(detail)); got != want {
			t.Errorf("%s: %q, want %q", detail, got, want)
		}
	}
}

func TestLogged(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]float64{
		"":                            0,
		"loading weights at 80 %":     0,
		" 40%|████      | 20/50":      0.4,
		"100%|█| 5/5\r 20%|██| 10/50": 0.2, // the next bar
		"999%|█|":                     1,
		" 10%|█|" + strings.Repeat("x", 5000) + "30%|███|": 0.3,
	} {
		if got := backend.ProgressInLog(log); got != want {
			t.Errorf("%.40q: %v, want %v", log, got, want)
		}
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	first := map[string]any{"prompt": "a fox", "seed": uint32(7)}
	if got := (backend.Mapping{Seed: "seed", SeedMax: 99}).WithSeed(first, 123); got["seed"] != uint32(23) || got["prompt"] != "a fox" || first["seed"] != uint32(7) {
		t.Errorf("again = %v after %v", got, first)
	}
	for _, m := range []backend.Mapping{{}, {Seed: "seed", Input: map[string]any{"seed": 7}}} {
		if got := m.WithSeed(first, 123); got["seed"] != uint32(7) {
			t.Errorf("again = %v, want the seed that there is", got)
		}
	}
}
