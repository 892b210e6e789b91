package enginetest

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"atelier/internal/engine"
)

// Recorder is an engine.Sink that records everything it receives. The zero
// value accepts everything.
type Recorder struct {
	// FailAt is the number of the output that fails with Err. The first output
	// has number 1; 0 means that none fails.
	FailAt int
	Err    error
	// MaxBytes is the maximum size of an output, in bytes. 0 means no limit.
	MaxBytes int64
	// OnProgress and OnOutput are called before the recorder records progress
	// or an output. n is the number of the output; the first is 1.
	OnProgress func(fraction float64)
	OnOutput   func(n int)

	mu       sync.Mutex
	progress []float64
	queued   []int
	previews [][]byte
	outputs  [][]byte
	remarks  []string
	asked    int  // number of calls of Output
	busy     int  // number of calls of Output in progress
	overlap  bool // two calls of Output were in progress at the same time
	notes    []string
}

var _ engine.Sink = (*Recorder)(nil)

// Progress records the completed fraction of the job.
func (r *Recorder) Progress(fraction float64) {
	if r.OnProgress != nil {
		r.OnProgress(fraction)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = append(r.progress, fraction)
}

// Queued records a position in the server's queue.
func (r *Recorder) Queued(position int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued = append(r.queued, position)
}

// QueuePositions returns the recorded positions in the server's queue.
func (r *Recorder) QueuePositions() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.queued)
}

// Preview records a copy of the preview picture.
func (r *Recorder) Preview(picture []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.previews = append(r.previews, bytes.Clone(picture))
}

// Output records the content of a result. It records nothing after ctx is
// cancelled.
func (r *Recorder) Output(ctx context.Context, made engine.Result) error {
	n := r.beginOutput()
	defer r.endOutput()
	if r.OnOutput != nil {
		r.OnOutput(n)
	}
	if n == r.FailAt {
		return r.Err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := readLimited(made.Data, r.MaxBytes)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outputs = append(r.outputs, b)
	r.remarks = append(r.remarks, made.Note)
	return nil
}

func (r *Recorder) beginOutput() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	r.busy++
	r.overlap = r.overlap || r.busy > 1
	return r.asked
}

func (r *Recorder) endOutput() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
}

// SaveCheckpoint records a checkpoint that the engine saves.
func (r *Recorder) SaveCheckpoint(ctx context.Context, note string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, note)
	return ctx.Err()
}

// Checkpoints returns the checkpoints that the engine saved, in order.
func (r *Recorder) Checkpoints() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

// LastCheckpoint returns the checkpoint that the next attempt gets, or "" if
// the engine saved none.
func (r *Recorder) LastCheckpoint() string {
	if all := r.Checkpoints(); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// Outputs returns the content of the recorded results, in order.
func (r *Recorder) Outputs() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.outputs)
}

// Notes returns the notes of the results, in order. The note of a result
// without a note is "".
func (r *Recorder) Notes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.remarks)
}

// Offered returns the number of results that the engine passed to the sink,
// including those that the sink refused.
func (r *Recorder) Offered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// Overlapped reports whether two results were passed to the sink at the same
// time, so that their order is undefined.
func (r *Recorder) Overlapped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.overlap
}

// Previews returns the preview pictures that the engine sent, in order.
func (r *Recorder) Previews() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.previews)
}

// Fractions returns the completed fractions that the engine reported, in
// order.
func (r *Recorder) Fractions() []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.progress)
}
