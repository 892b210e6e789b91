// Package tiny is the engine of the picture model that ships: a small network of
// our own that draws in the style of emoji and clip art, on the processor alone.
//
//	prompt, style, background ─▶ caption ─▶ network, a few steps ─▶ 128 pixels ─▶ upscaler ─▶ 512 pixels ─▶ PNG
//	picture ─▶ upscaler ─▶ four times as large ─▶ PNG
//
// Equal jobs with equal seeds give equal pictures on every machine with the same
// kernel. What the network does not know of a prompt stands in the result's note.
//
// The model is opened for the first job and kept. It uses all cores by itself,
// so jobs take turns.
package tiny

import (
	"context"
	"image"
	"log/slog"
	"maps"
	"slices"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
	"atelier/internal/engine/builtin/tiny/neural"
)

// Options are what the engine works with.
type Options struct {
	// Open opens the model. It is called again where it failed, and after Close.
	Open func() (*neural.Model, error)
	// Log is told how long the stages of each job took.
	Log *slog.Logger
	Now func() time.Time
}

// Engine runs jobs, one at a time.
type Engine struct {
	with  Options
	turn  chan struct{} // held by who works with the model
	model *neural.Model // nil: not open
}

var _ engine.Engine = (*Engine)(nil)

// New makes the engine. It opens nothing yet.
func New(o Options) *Engine {
	return &Engine{with: o, turn: make(chan struct{}, 1)}
}

// Close lets go of the model once nobody works with it. The next job opens it
// again.
func (e *Engine) Close() {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	if e.model != nil {
		e.model.Close()
		e.model = nil
	}
}

// operation makes the ith result.
type operation func(ctx context.Context, t *task, s engine.Span, i int) (*image.NRGBA, string, error)

// operations are what a manifest can name.
var operations = map[string]operation{
	"sketch":              sketch,
	"sketch-from-picture": sketch,
	"upscale-art":         upscaleArt,
}

// task is a job that has its turn.
type task struct {
	engine.Job
	operation string
	model     *neural.Model
	out       engine.Sink
	watch     *watch
	start     *image.NRGBA // what a sketch begins with, nil for nothing
}

// setting is the engine's part of a manifest.
type setting struct {
	Operation string `json:"operation"`
}

// Manual says what a manifest can ask of the engine.
func Manual() engine.Manual {
	return engine.Manual{
		Setting: func() any { return &setting{} },
		Choices: map[string][]string{"operation": slices.Sorted(maps.Keys(operations))},
	}
}

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	var with setting
	if err := engine.DecodeSetting(j.With, &with); err != nil {
		return err
	}
	do, ok := operations[with.Operation]
	if !ok {
		return engine.ErrMisconfigured
	}
	// Who waits for memory does not keep others from the model.
	need, err := memoryOf(ctx, with.Operation, j)
	if err != nil {
		return err
	}
	release, err := j.Reserve(ctx, need)
	if err != nil {
		return err
	}
	defer release()
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.turn }()
	if err := ctx.Err(); err != nil { // both may have been ready
		return err
	}
	w := &watch{now: e.with.Now}
	w.begin()
	if e.model == nil {
		m, err := e.with.Open()
		if err != nil {
			return engine.Fail(engine.Failed, "The picture model could not be opened.").Because(err)
		}
		e.model = m
		w.end("open")
	}
	t := &task{
		Job:       j,
		operation: with.Operation,
		model:     e.model,
		out:       out,
		watch:     w,
	}
	if err := t.all(ctx, do); err != nil {
		return err
	}
	e.with.Log.Info("a picture was drawn", append([]any{"run", j.RunID, "operation", with.Operation, "results", j.NumResults}, w.attrs()...)...)
	return nil
}

// all makes the results and hands them over.
func (t *task) all(ctx context.Context, do operation) error {
	whole := engine.NewSpan(t.out)
	whole.ReportProgress(0)
	for i := range t.NumResults {
		s := whole.NthOf(i, t.NumResults)
		m, note, err := do(ctx, t, s.SubSpan(0, 0.97), i)
		if err != nil {
			return err
		}
		t.watch.begin()
		file, err := pixels.EncodePNG(ctx, m)
		if err != nil {
			return err
		}
		t.watch.end("encode")
		if err := t.out.Output(ctx, engine.Result{Data: file.Reader(), Note: note}); err != nil {
			return err
		}
		s.ReportProgress(1)
	}
	return nil
}

// picture gives the picture of the form.
func picture(j engine.Job) (engine.File, error) {
	if files := j.Files["picture"]; len(files) > 0 {
		return files[0], nil
	}
	return engine.File{}, engine.Fail(engine.Failed, "A picture is needed.")
}
