package e2e

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"strings"
	"testing"
	"time"

	"atelier/client"
	"atelier/internal/testkit/watch"
)

// easel is an installation whose only engine is the picture model in the binary.
type easel struct {
	*site
	node   *node
	token  string
	client *client.Client
	tools  map[string]*client.ToolDetail
}

func newEasel(t *testing.T, s *site) *easel {
	t.Helper()
	// What results say about themselves has the run's name and time in it.
	s.env = append(s.env, "ATELIER_ENGINES_PROVENANCE=false", "ATELIER_LIMITS_CREATE_PER_MINUTE=1000")
	token := s.token("artist@example.com")
	s.grant("--email", "artist@example.com", 100)
	e := &easel{site: s, token: token, tools: map[string]*client.ToolDetail{}}
	e.open()
	all := listTools(t, e.client)
	var err error
	for i, name := range []string{"Sketch", "Sketch from picture", "Upscale ×4 (art)"} {
		if all[i].Name != name {
			t.Errorf("tool %d is %s, want %s", i, all[i].Name, name)
		}
		if e.tools[name], err = e.client.Tools.Get(t.Context(), all[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// open starts the server, also once more after it has ended.
func (e *easel) open() {
	e.t.Helper()
	e.node = e.serve()
	e.node.token = e.token
	e.client = connect(e.t, e.node.url, e.token)
}

func (e *easel) begin(tool string, results int, inputs map[string]any, files ...[]byte) *client.Run {
	e.t.Helper()
	for _, b := range files {
		inputs["picture"] = client.FileOf("picture.png", b)
	}
	run, err := startRun(e.t.Context(), e.client, e.tools[tool], results, inputs)
	if err != nil {
		e.t.Fatal(err)
	}
	return run
}

// draw runs a tool to its end and gives the bytes of the results.
func (e *easel) draw(tool string, results int, inputs map[string]any, files ...[]byte) (*client.Run, [][]byte) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 5*time.Minute)
	defer cancel()
	run, err := e.client.Runs.Wait(ctx, e.begin(tool, results, inputs, files...).RequestID, client.Watch{})
	if err != nil || run.Status != "succeeded" || len(run.Outputs) != results {
		e.t.Fatalf("run = %+v, %v", run, err)
	}
	var all [][]byte
	for _, o := range run.Outputs {
		b, err := readOutput(ctx, e.client, o)
		if err != nil {
			e.t.Fatal(err)
		}
		all = append(all, b)
	}
	return run, all
}

// TestAPictureFromAPrompt draws with nothing but the binary: the same for the
// same seed, again and after a restart; several at once; and says what it does
// not know.
func TestAPictureFromAPrompt(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := newEasel(t, s)
		penguin := func() map[string]any { return map[string]any{"prompt": "penguin in the snow", "seed": 7} }
		run, first := e.draw("Sketch", 1, penguin())
		if m, err := png.Decode(bytes.NewReader(first[0])); err != nil || m.Bounds() != image.Rect(0, 0, 512, 512) || run.Outputs[0].Note != nil {
			t.Errorf("result = %v, note %v", err, run.Outputs[0].Note)
		}
		if _, again := e.draw("Sketch", 1, penguin()); !bytes.Equal(again[0], first[0]) {
			t.Error("the same seed gives another picture")
		}
		for _, stage := range []string{"step=", "upscale=", "encode="} {
			if log := e.node.stderr.String(); !strings.Contains(strings.ReplaceAll(log, `":"`, "="), stage) || strings.Contains(log, "penguin") {
				t.Errorf("the log has no %s or has the prompt: %s", stage, log)
			}
		}
		e.node.stop()
		e.open()
		if _, after := e.draw("Sketch", 1, penguin()); !bytes.Equal(after[0], first[0]) {
			t.Error("after a restart the same seed gives another picture")
		}
		small := map[string]any{"prompt": "blorptangle in the snow", "seed": 7, "steps": 2, "size": map[string]any{"width": 128, "height": 128}}
		run, eight := e.draw("Sketch", 8, small)
		seen := map[string]bool{}
		for i, b := range eight {
			seen[string(b)] = true
			if note := *run.Outputs[i].Note; !strings.Contains(note, "1 of 4 words is unknown") || !strings.HasSuffix(note, ": blorptangle.") {
				t.Errorf("note = %q", note)
			}
		}
		if len(seen) != 8 {
			t.Errorf("%d of 8 pictures differ", len(seen))
		}
		item := e.node.json("/api/v2/library/" + run.Outputs[0].ID)
		if item["note"] != *run.Outputs[0].Note {
			t.Errorf("item = %v", item)
		}
		_, from := e.draw("Sketch from picture", 1, map[string]any{"prompt": "penguin", "steps": 2}, first[0])
		if _, large := e.draw("Upscale ×4 (art)", 1, map[string]any{}, from[0]); len(large[0]) == 0 {
			t.Error("nothing was enlarged")
		}
		s.check()
	})
}

// TestACancelledDrawing ends between two steps, and costs nothing.
func TestACancelledDrawing(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := newEasel(t, s)
		run := e.begin("Sketch", 8, map[string]any{"prompt": "cat", "steps": 12, "guidance": 4})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var asked time.Time
		run, err := e.client.Runs.Wait(ctx, run.RequestID, watchFraction(func(progress float64) {
			if progress > 0 && asked.IsZero() { // the first step is done
				asked = time.Now()
				if _, err := e.client.Runs.Cancel(ctx, run.RequestID); err != nil {
					t.Error(err)
				}
			}
		}))
		if err != nil || run.Status != "cancelled" || run.TokensCharged != 0 || len(run.Outputs) != 0 {
			t.Errorf("run = %+v, %v", run, err)
		}
		watch.Took(t, "the end of the drawing", time.Since(asked), 5*time.Second)
		s.check()
	})
}

// TestADrawingGoesOnElsewhere stops a node in the middle of a drawing, with less
// time than that takes: the next one draws it anew, the same to the bit, with its
// notes, and it is paid once.
func TestADrawingGoesOnElsewhere(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.env = append(s.env, "ATELIER_SHUTDOWN_DELAY=0s", "ATELIER_SHUTDOWN_TIMEOUT=1s")
		e := newEasel(t, s)
		inputs := func() map[string]any {
			return map[string]any{"prompt": "narwhal in the snow", "seed": 7, "steps": 12, "guidance": 4, "size": map[string]any{"width": 128, "height": 128}}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		begun, stop := context.WithCancel(ctx)
		defer stop()
		run := e.begin("Sketch", 1, inputs())
		_, err := e.client.Runs.Wait(begun, run.RequestID, watchFraction(func(progress float64) {
			if progress > 0 {
				stop()
			}
		}))
		if begun.Err() == nil || ctx.Err() != nil {
			t.Fatalf("it did not begin: %v", err)
		}
		e.node.stop()
		e.open()
		if run, err = e.client.Runs.Wait(ctx, run.RequestID, client.Watch{}); err != nil || run.Status != "succeeded" || run.TokensCharged != 1 || len(run.Outputs) != 1 {
			t.Fatalf("run = %+v, %v", run, err)
		}
		again, _ := e.draw("Sketch", 1, inputs())
		for i, o := range run.Outputs {
			if o.SHA256 != again.Outputs[i].SHA256 || *o.Note != *again.Outputs[i].Note || !strings.HasSuffix(*o.Note, ": narwhal.") {
				t.Errorf("result %d = %+v, drawn at once %+v", i, o, again.Outputs[i])
			}
		}
		s.check()
	})
}
