package runner_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/engine"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

// TestSuccess looks at what an engine is given and at what becomes of what it
// makes.
func TestSuccess(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		jobs := make(chan engine.Job, 1)
		read := make(chan []byte, 3)
		work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			jobs <- j
			for _, name := range []string{"picture", "pictures"} {
				for _, f := range j.Files[name] {
					body, err := f.Open(ctx)
					if err != nil {
						return err
					}
					data, err := io.ReadAll(body)
					body.Close()
					if err != nil || f.Size != int64(len(data)) || f.MimeType != "image/png" || f.Width != 8 || f.Height != 8 {
						return errors.New("not the file")
					}
					read <- data
				}
			}
			return paints(ctx, j, out)
		}), nil)
		made := create(h, "media", func(d *generation.Draft) {
			for i := range 3 {
				d.Files = append(d.Files, h.Take(generationtest.PNG(i)))
			}
			part := func(i int64) any { return map[string]any{"kind": "MULTIPART", "file_index": i} }
			d.Inputs = map[string]any{"pictures": []any{part(2), part(0)}, "picture": part(1)}
		})
		j := receive(h, jobs, "the job")
		if j.RunID != made.ID || j.Attempt != 1 || int64(j.Seed) != made.Seed || j.NumResults != 1 || j.OutputType != "IMG" || !slices.Equal(j.MimeTypes, []string{"image/png"}) ||
			j.With != "{}" || len(j.Values) != 0 {
			h.Errorf("job = %+v", j)
		}
		r := ended(h, made.ID)
		if r.State != run.Succeeded {
			h.Fatalf("run = %+v", r)
		}
		for _, n := range []int{1, 2, 0} {
			if !bytes.Equal(<-read, generationtest.PNG(n)) {
				h.Errorf("picture %d is not where it belongs", n)
			}
		}
		rec, err := h.Runs.GetStatus(h.Context(), r.AccountID, r.ID)
		if err != nil || len(rec.Outputs) != 1 || rec.Outputs[0].Width != 8 || rec.Outputs[0].Thumb == "" {
			h.Errorf("record = %+v, %v", rec, err)
		}

		made = create(h, "free", func(d *generation.Draft) { d.Inputs = map[string]any{"prompt": "a fox", "seed": int64(7)} })
		j = receive(h, jobs, "the job")
		if j.Values["prompt"] != "a fox" || j.Values["strength"] != 1.5 || j.Values["seed"] != int64(7) || j.Seed != 7 {
			h.Errorf("values = %#v", j.Values)
		}
		ended(h, made.ID)
	})
}

func TestProgressIsSeen(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		next := make(chan func(engine.Sink))
		work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			for do := range next {
				do(out)
			}
			return paints(ctx, j, out)
		}), nil)
		made := create(h, "cost", nil)
		news, unfollow := h.Hub.Follow(made.ID)
		defer unfollow()
		for _, c := range []struct {
			tell func(engine.Sink)
			want int64
		}{
			{func(s engine.Sink) { s.Progress(0.2504); s.Preview(generationtest.PNG(1)) }, 250},
			{func(s engine.Sink) { s.Progress(math.NaN()); s.Progress(7); s.Preview(generationtest.PNG(2)) }, 1000},
			{func(s engine.Sink) { s.Progress(-1); s.Preview([]byte("no picture")); s.Preview(make([]byte, 2<<20)) }, 0},
		} {
			next <- c.tell
			watch.Until(h.T, "progress", func() bool { p := h.Run(made.ID).Progress; return p != nil && *p == c.want })
			receive(h, news, "news")
		}
		shown := h.Run(made.ID).Preview
		previews := slices.DeleteFunc(h.Files(), func(key string) bool { return !strings.HasPrefix(key, "preview/") })
		if !slices.Equal(previews, []string{shown}) || !strings.HasSuffix(shown, ".png") {
			h.Errorf("previews %v, shown is %s", previews, shown)
		}
		close(next)
		if r := ended(h, made.ID); r.State != run.Succeeded || r.Preview != "" || r.Progress != nil {
			h.Errorf("run = %+v", r)
		}
		watch.Until(h.T, "the preview to go", func() bool { return slices.Equal(h.Files(), h.Owned()) })
	})
}

// TestFailures has engines fail in all ways there are.
func TestFailures(t *testing.T) {
	raw := func(data []byte) script {
		return func(ctx context.Context, j engine.Job, out engine.Sink) error {
			if err := picture(ctx, out, 1); err != nil {
				return err
			}
			return out.Output(ctx, engine.Result{Data: bytes.NewReader(data)})
		}
	}
	for name, c := range map[string]struct {
		tool   string
		engine script
		code   string
		text   string // within the message
	}{
		"it says why": {"many", func(context.Context, engine.Job, engine.Sink) error { return engine.Fail(engine.Refused, "Not that.") }, "CONTENT_POLICY_VIOLATION", "Not that."},
		"it cannot be reached": {"many", func(context.Context, engine.Job, engine.Sink) error {
			return engine.FailTransient(engine.Unavailable, "Away.")
		}, "ENGINE_UNAVAILABLE", "Away."},
		"it does not say why": {"many", func(context.Context, engine.Job, engine.Sink) error { return errors.New("secret") }, "ENGINE_FAILED", "could not finish"},
		"it panics":           {"many", func(context.Context, engine.Job, engine.Sink) error { panic("secret") }, "ENGINE_FAILED", "could not finish"},
		"it panics too late": {"many", func(ctx context.Context, j engine.Job, out engine.Sink) error {
			picture(ctx, out, 1)
			panic("secret")
		}, "ENGINE_FAILED", "could not finish"},
		"nothing":           {"many", func(context.Context, engine.Job, engine.Sink) error { return nil }, "OUTPUT_INVALID", "no result"},
		"an empty file":     {"many", raw(nil), "OUTPUT_INVALID", "is invalid"},
		"garbage":           {"many", raw([]byte{0, 1, 2, 3}), "OUTPUT_INVALID", "is invalid"},
		"half a picture":    {"many", raw(generationtest.PNG(1)[:60]), "OUTPUT_INVALID", "is invalid"},
		"words":             {"many", raw([]byte("Here is your picture.")), "OUTPUT_INVALID", "is invalid"},
		"a sound":           {"many", raw(generationtest.WAV()), "OUTPUT_INVALID", "is invalid"},
		"a picture of text": {"words", raw(generationtest.PNG(1)), "OUTPUT_INVALID", "is invalid"},
		"a flood": {"words", func(ctx context.Context, _ engine.Job, out engine.Sink) error {
			return out.Output(ctx, engine.Result{Data: endless{}})
		}, "OUTPUT_INVALID", "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			eachInstallation(t, func(h *installation) {
				work(h, c.engine, nil)
				made := create(h, c.tool, nil)
				r := ended(h, made.ID)
				if r.State != run.Failed || r.ErrorCode != c.code || !strings.Contains(r.ErrorText, c.text) || strings.Contains(r.ErrorText, "secret") || r.TokensCharged != 0 {
					h.Errorf("%s: %q, charged %d", r.ErrorCode, r.ErrorText, r.TokensCharged)
				}
				if b := h.Balance(made.AccountID); b.Tokens != 100 || b.Held != 0 {
					h.Errorf("balance = %+v", b)
				}
			})
		})
	}
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

// TestNotes has results say something about themselves: it is made one line, is
// kept with the result, and is no part of what an earlier try left behind.
func TestNotes(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		long := strings.Repeat("é", engine.MaxNote)
		work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			notes := []string{"1 of 2 words is unknown: <b>zeppelin</b>.", "", "two\nlines\x00\u202e", long}
			if j.Try == 0 {
				notes = []string{"of the first try"}
			}
			for i, note := range notes {
				if err := out.Output(ctx, engine.Result{Data: bytes.NewReader(generationtest.PNG(i)), Note: note}); err != nil {
					return err
				}
			}
			if j.Try == 0 {
				return engine.FailTransient(engine.Failed, "Once more.")
			}
			return nil
		}), func(p *runner.Parts) { p.Retry = []time.Duration{time.Millisecond} })
		four := int64(4)
		made := create(h, "many", func(d *generation.Draft) { d.NumResults = &four })
		r := ended(h, made.ID)
		rec, err := h.Runs.GetStatus(h.Context(), r.AccountID, r.ID)
		if err != nil || r.State != run.Succeeded || len(rec.Outputs) != 4 {
			h.Fatalf("record = %+v, %v", rec, err)
		}
		for i, want := range []string{"1 of 2 words is unknown: <b>zeppelin</b>.", "", "two\ufffdlines\ufffd\ufffd", long[:engine.MaxNote]} {
			if got := rec.Outputs[i].Note; got != want {
				h.Errorf("note %d = %q, want %q", i, got, want)
			}
		}
	})
}

func TestWords(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		work(h, script(func(ctx context.Context, _ engine.Job, out engine.Sink) error {
			return out.Output(ctx, engine.Result{Data: strings.NewReader("a fox")})
		}), nil)
		made := create(h, "words", nil)
		r := ended(h, made.ID)
		rec, err := h.Runs.GetStatus(h.Context(), r.AccountID, r.ID)
		if err != nil || r.State != run.Succeeded || len(rec.Outputs) != 1 || rec.Outputs[0].Type != "TEXT" {
			h.Errorf("record = %+v, %v", rec, err)
		}
	})
}

// TestAnotherTry has an engine fail for a while.
func TestAnotherTry(t *testing.T) {
	for name, c := range map[string]struct {
		failures int64
		state    run.State
	}{"it comes back": {2, run.Succeeded}, "it does not": {3, run.Failed}} {
		t.Run(name, func(t *testing.T) {
			eachInstallation(t, func(h *installation) {
				var calls atomic.Int64
				work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
					if err := picture(ctx, out, 1); err != nil {
						return err
					}
					if calls.Add(1) <= c.failures {
						return engine.FailTransient(engine.Unavailable, "Away.")
					}
					return picture(ctx, out, 2)
				}), func(p *runner.Parts) { p.Retry = []time.Duration{time.Millisecond, 2 * time.Millisecond} })
				made := create(h, "many", nil)
				r := ended(h, made.ID)
				if r.State != c.state || calls.Load() != 3 || r.Attempt != 1 {
					h.Errorf("%s after %d calls in attempt %d, want %s after 3 in one", r.State, calls.Load(), r.Attempt, c.state)
				}
				if n := h.Count(`SELECT count(*) FROM result`); c.state == run.Succeeded && n != 2 {
					h.Errorf("%d results, want those of the last try alone", n)
				}
			})
		})
	}
}

// flaky is a store that cannot be reached for a while.
type flaky struct {
	blob.Store
	away atomic.Int64
}

func (f *flaky) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if f.away.Add(-1) >= 0 {
		return 0, fault.New(fault.Unavailable, "The store is away.")
	}
	return f.Store.Put(ctx, key, r)
}

func TestAStoreThatIsAway(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		store := &flaky{Store: h.Blobs}
		store.away.Store(1)
		work(h, paints, func(p *runner.Parts) {
			p.Retry = []time.Duration{time.Millisecond}
			p.Intake = &ingest.Pipeline{Blobs: store, Analyzer: h.Intake.Analyzer}
		})
		if r := ended(h, create(h, "many", nil).ID); r.State != run.Succeeded {
			h.Errorf("away for one try: %s %s", r.State, r.ErrorCode)
		}
		store.away.Store(100)
		if r := ended(h, create(h, "many", nil).ID); r.State != run.Failed || r.ErrorCode != "ENGINE_UNAVAILABLE" {
			h.Errorf("away for good: %s %s", r.State, r.ErrorCode)
		}
	})
}

func TestTimeLimit(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newStuck()
		work(h, e, nil)
		r := ended(h, create(h, "quick", nil).ID)
		if r.State != run.Failed || r.ErrorCode != "TIMED_OUT" || !strings.Contains(r.ErrorText, "1s") {
			h.Errorf("%s %s: %s", r.State, r.ErrorCode, r.ErrorText)
		}
	})
}

// TestMoreThanAskedFor has an engine hand over too many, one after the other
// and all at once.
func TestMoreThanAskedFor(t *testing.T) {
	for name, e := range map[string]script{
		"in a row": func(ctx context.Context, j engine.Job, out engine.Sink) error {
			for i := range 5 {
				if err := picture(ctx, out, i); err != nil {
					return err
				}
			}
			return nil
		},
		"at once": func(ctx context.Context, j engine.Job, out engine.Sink) error {
			var group sync.WaitGroup
			var failed atomic.Bool
			for i := range 8 {
				group.Go(func() {
					if picture(ctx, out, i) != nil {
						failed.Store(true)
					}
				})
			}
			group.Wait()
			if failed.Load() {
				return errors.New("a picture was refused")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachInstallation(t, func(h *installation) {
				work(h, e, nil)
				made := create(h, "many", nil) // two for 2 tokens each
				r := ended(h, made.ID)
				if n := h.Count(`SELECT count(*) FROM result`); r.State != run.Succeeded || r.TokensCharged != 4 || n != 2 || h.Balance(made.AccountID).Tokens != 96 {
					h.Errorf("%s %s: %d results for %d", r.State, r.ErrorText, n, r.TokensCharged)
				}
			})
		})
	}
}

func TestFewerThanAskedFor(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error { return picture(ctx, out, 1) }), nil)
		made := create(h, "many", nil)
		if r := ended(h, made.ID); r.State != run.Succeeded || r.TokensCharged != 2 || h.Balance(made.AccountID).Tokens != 98 {
			h.Errorf("%s: charged %d", r.State, r.TokensCharged)
		}
	})
}
