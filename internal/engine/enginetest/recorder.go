package enginetest

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"atelier/internal/engine"
)

// Recorder is a sink that keeps all it gets. The zero value takes everything.
type Recorder struct {
	// FailAt makes the nth output fail with Err; the first is 1.
	FailAt int
	Err    error
	// Most bounds an output; 0 is no bound.
	Most int64
	// OnProgress and OnOutput are called before the recorder does its own part,
	// OnOutput with the number of the output.
	OnProgress func(fraction float64)
	OnOutput   func(n int)

	mu       sync.Mutex
	progress []float64
	previews [][]byte
	outputs  [][]byte
	remarks  []string
	asked    int  // outputs that were offered
	busy     int  // outputs being taken
	overlap  bool // two were, at once
	notes    []string
}

var _ engine.Sink = (*Recorder)(nil)

// Progress keeps the fraction.
func (r *Recorder) Progress(fraction float64) {
	if r.OnProgress != nil {
		r.OnProgress(fraction)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = append(r.progress, fraction)
}

// Preview keeps a copy of the picture.
func (r *Recorder) Preview(picture []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.previews = append(r.previews, bytes.Clone(picture))
}

// Output keeps what the reader gives. It takes nothing once ctx has ended.
func (r *Recorder) Output(ctx context.Context, made engine.Result) error {
	n := r.begin()
	defer r.end()
	if r.OnOutput != nil {
		r.OnOutput(n)
	}
	if n == r.FailAt {
		return r.Err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := bounded(made.Data, r.Most)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outputs = append(r.outputs, b)
	r.remarks = append(r.remarks, made.Note)
	return nil
}

func (r *Recorder) begin() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	r.busy++
	r.overlap = r.overlap || r.busy > 1
	return r.asked
}

func (r *Recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
}

// Leave keeps the note.
func (r *Recorder) Leave(ctx context.Context, note string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, note)
	return ctx.Err()
}

// Notes are what the engine left, in order.
func (r *Recorder) Notes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

// Outputs are the results that were taken, in order.
func (r *Recorder) Outputs() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.outputs)
}

// Remarks are the notes of the results, in order, "" for none.
func (r *Recorder) Remarks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.remarks)
}

// Offered is how many results the engine tried to hand over.
func (r *Recorder) Offered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// Overlapped tells whether two results came at once, so that their order says
// nothing.
func (r *Recorder) Overlapped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.overlap
}

// Previews are the pictures that were shown, in order.
func (r *Recorder) Previews() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.previews)
}

// Fractions are the steps of progress, in order.
func (r *Recorder) Fractions() []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.progress)
}
