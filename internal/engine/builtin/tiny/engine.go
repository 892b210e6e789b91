// Package tiny is the engine of the built-in picture model: a small network
// that draws in the style of emoji and clip art, on the CPU, without a GPU.
//
//	prompt, style, background ─▶ caption ─▶ network, a few steps ─▶ 128 pixels ─▶ upscaler ─▶ 512 pixels ─▶ PNG
//	picture ─▶ upscaler ─▶ four times as large ─▶ PNG
//
// Equal jobs with equal seeds make equal pictures on all machines that use the
// same kernel. A note with the result names the words of the prompt that the
// network does not know.
//
// The model is opened for the first job and stays open. A job uses all cores,
// so only one job runs at a time.
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

// Options are the dependencies of the engine.
type Options struct {
	// Open opens the model. After it has failed or after Close, the next job
	// calls it again.
	Open func() (*neural.Model, error)
	// Log receives the durations of the stages of each job.
	Log *slog.Logger
	Now func() time.Time
}

// Engine draws and enlarges pictures. It runs one job at a time.
type Engine struct {
	with  Options
	turn  chan struct{} // contains a value while a job uses the model
	model *neural.Model // nil if the model is not open
}

var _ engine.Engine = (*Engine)(nil)

// New returns the engine. The first job opens the model.
func New(o Options) *Engine {
	return &Engine{with: o, turn: make(chan struct{}, 1)}
}

// Close waits for the running job and closes the model. A later job opens the
// model again.
func (e *Engine) Close() {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	if e.model != nil {
		e.model.Close()
		e.model = nil
	}
}

// operationFunc makes the result with index i and a note for it.
type operationFunc func(ctx context.Context, t *task, s engine.Span, i int) (*image.NRGBA, string, error)

// operations are the operations that a manifest can name.
var operations = map[string]operationFunc{
	"sketch":              drawSketch,
	"sketch-from-picture": drawSketch,
	"upscale-art":         upscaleArtwork,
}

// task is a job while it uses the model.
type task struct {
	engine.Job
	operation string
	model     *neural.Model
	out       engine.Sink
	timer     *stageTimer
	start     *image.NRGBA // picture that a sketch starts from; nil if none has been read
}

// manifestSetting is the part of a manifest that configures this engine.
type manifestSetting struct {
	Operation string `json:"operation"`
}

// ManifestSpec describes the settings that this engine accepts in a manifest.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{
		Setting: func() any { return &manifestSetting{} },
		Choices: map[string][]string{"operation": slices.Sorted(maps.Keys(operations))},
	}
}

// Run runs a job and writes its results to out.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	var with manifestSetting
	if err := engine.DecodeSetting(j.With, &with); err != nil {
		return err
	}
	do, ok := operations[with.Operation]
	if !ok {
		return engine.ErrMisconfigured
	}
	// A job reserves memory before it waits for the model, so that a job that
	// waits for memory does not block the model.
	need, err := jobMemory(ctx, with.Operation, j)
	if err != nil {
		return err
	}
	release, err := j.ReserveMemory(ctx, need)
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
	if err := ctx.Err(); err != nil { // the model may have become free at the moment when the job was cancelled
		return err
	}
	w := &stageTimer{now: e.with.Now}
	w.start()
	if e.model == nil {
		m, err := e.with.Open()
		if err != nil {
			return engine.Fail(engine.Failed, "The picture model could not be loaded. Contact the operator.").WithCause(err)
		}
		e.model = m
		w.endStage("open")
	}
	t := &task{
		Job:       j,
		operation: with.Operation,
		model:     e.model,
		out:       out,
		timer:     w,
	}
	if err := t.runAll(ctx, do); err != nil {
		return err
	}
	e.with.Log.Info("picture generated", append([]any{"run", j.RunID, "operation", with.Operation, "results", j.NumResults}, w.logAttrs()...)...)
	return nil
}

// runAll makes all results of the job and sends them to the sink.
func (t *task) runAll(ctx context.Context, do operationFunc) error {
	whole := engine.NewSpan(t.out)
	whole.ReportProgress(0)
	for i := range t.NumResults {
		s := whole.NthOf(i, t.NumResults)
		m, note, err := do(ctx, t, s.SubSpan(0, 0.97), i)
		if err != nil {
			return err
		}
		t.timer.start()
		file, err := pixels.EncodePNG(ctx, m)
		if err != nil {
			return err
		}
		t.timer.endStage("encode")
		if err := t.out.Output(ctx, engine.Result{Data: file.Reader(), Note: note}); err != nil {
			return err
		}
		s.ReportProgress(1)
	}
	return nil
}

// pictureInput returns the file of the input "picture". It fails if there is
// none.
func pictureInput(j engine.Job) (engine.File, error) {
	if files := j.Files["picture"]; len(files) > 0 {
		return files[0], nil
	}
	return engine.File{}, engine.Fail(engine.Failed, "A picture is required.")
}
