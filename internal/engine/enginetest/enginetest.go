// Package enginetest holds what every engine.Engine has to pass, and a sink
// for tests of engines.
package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"atelier/internal/engine"
)

// Case is an engine and a job that it can do.
type Case struct {
	Engine engine.Engine
	// Job succeeds. Each use of it gets a RunID of its own.
	Job engine.Job
	// Deterministic engines give equal bytes for equal seeds. With Seeded,
	// other seeds give other bytes.
	Deterministic, Seeded bool
	// Settle lets go of what the engine keeps between jobs, such as idle
	// connections, before goroutines are counted. It may be nil.
	Settle func()
}

const (
	// soon is how long an engine may take once its context has ended.
	soon = 2 * time.Second
	// long is when a job counts as stuck.
	long = 2 * time.Minute
)

var errTaken = errors.New("the sink takes no more")

// Run proves that the engine keeps the promises of engine.Engine. The calling
// test must not be parallel: goroutines of other tests would count as left
// behind.
func Run(t *testing.T, c Case) {
	files := len(c.Job.Files) > 0
	tests := []struct {
		name    string
		run     func(t *testing.T, c Case)
		applies bool
	}{
		{"all results in order", allResults, true},
		{"progress only grows", progressGrows, true},
		{"ended before it began", endedBefore, true},
		{"ended at the first progress", endedAtProgress, true},
		{"ended while a result is taken", endedAtOutput, true},
		{"the sink's error comes back", sinkFails, true},
		{"seeds decide", seedsDecide, c.Deterministic},
		{"jobs do not disturb each other", manyJobs, true},
		{"files are closed", filesClosed, files},
		{"files that cannot be opened", noFile, files},
		{"files that break off", brokenFile, files},
		{"files that never come", endlessFile, files},
		{"files left out", absentFile, files},
	}
	for _, tt := range tests {
		if !tt.applies {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			tt.run(t, c)
			if c.Settle != nil {
				c.Settle()
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// job gives a copy of the case's job for one call.
func (c Case) job(t *testing.T, number int) engine.Job {
	j := c.Job
	j.RunID = fmt.Sprintf("%s/%d", t.Name(), number)
	j.Attempt = 1
	j.Values = maps.Clone(j.Values)
	j.Files = maps.Clone(j.Files)
	return j
}

// do runs the job and gives up on it when it hangs. A panic is its error.
func (c Case) do(ctx context.Context, t *testing.T, j engine.Job, out engine.Sink, limit time.Duration) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("the engine panicked: %v", p)
				done <- errors.New("panic")
			}
		}()
		done <- c.Engine.Run(ctx, j, out)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		t.Fatalf("the engine did not return within %v", limit)
		return nil
	}
}

// results runs the job, which has to succeed.
func (c Case) results(t *testing.T, j engine.Job) *Recorder {
	t.Helper()
	var r Recorder
	if err := c.do(t.Context(), t, j, &r, long); err != nil {
		t.Fatalf("run: %v", err)
	}
	return &r
}

func allResults(t *testing.T, c Case) {
	j := c.job(t, 1)
	r := c.results(t, j)
	if got := len(r.Outputs()); got != j.NumResults {
		t.Errorf("results = %d, want %d", got, j.NumResults)
	}
	if r.Overlapped() {
		t.Error("results came at the same time, so in no order")
	}
	for i, b := range r.Outputs() {
		if len(b) == 0 {
			t.Errorf("result %d is empty", i)
		}
	}
}

func progressGrows(t *testing.T, c Case) {
	r := c.results(t, c.job(t, 1))
	last := 0.0
	for _, f := range r.Fractions() {
		if !(f >= 0 && f <= 1) {
			t.Errorf("progress = %v, want 0 to 1", f)
		}
		if f < last {
			t.Errorf("progress went from %v down to %v", last, f)
		}
		last = f
	}
}

func endedBefore(t *testing.T, c Case) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var r Recorder
	if err := c.do(ctx, t, c.job(t, 1), &r, soon); err == nil {
		t.Error("run = nil although the context had ended")
	}
	if n := len(r.Outputs()); n != 0 {
		t.Errorf("results = %d, want 0", n)
	}
}

// endedAtProgress lets an engine finish that was nearly there.
func endedAtProgress(t *testing.T, c Case) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended time.Time
	var once sync.Once
	r := Recorder{OnProgress: func(float64) {
		once.Do(func() { ended = time.Now(); cancel() })
	}}
	j := c.job(t, 1)
	err := c.do(ctx, t, j, &r, long)
	if ended.IsZero() {
		return // it tells no progress
	}
	promptly(t, ended)
	if n := len(r.Outputs()); err == nil && n != j.NumResults {
		t.Errorf("run = nil with %d of %d results", n, j.NumResults)
	}
}

func endedAtOutput(t *testing.T, c Case) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended time.Time
	r := Recorder{OnOutput: func(int) { ended = time.Now(); cancel() }}
	if err := c.do(ctx, t, c.job(t, 1), &r, long); err == nil {
		t.Error("run = nil although the context ended")
	}
	promptly(t, ended)
	if n := r.Offered(); n != 1 {
		t.Errorf("results offered = %d, want 1", n)
	}
}

func promptly(t *testing.T, ended time.Time) {
	t.Helper()
	if took := time.Since(ended); took > soon {
		t.Errorf("the engine returned %v after its context had ended, want at most %v", took, soon)
	}
}

func sinkFails(t *testing.T, c Case) {
	for _, nth := range slices.Compact([]int{1, c.Job.NumResults}) {
		r := Recorder{FailAt: nth, Err: fmt.Errorf("output %d: %w", nth, errTaken)}
		if err := c.do(t.Context(), t, c.job(t, nth), &r, long); !errors.Is(err, errTaken) {
			t.Errorf("run = %v, want the sink's error", err)
		}
		if n := r.Offered(); n != nth {
			t.Errorf("results offered = %d, want none after number %d failed", n, nth)
		}
	}
}

func seedsDecide(t *testing.T, c Case) {
	j := c.job(t, 1)
	first := c.results(t, j).Outputs()
	j.RunID = t.Name() + "/2"
	j.Attempt = 2
	if again := c.results(t, j).Outputs(); !slices.EqualFunc(first, again, bytes.Equal) {
		t.Error("the same job with the same seed gave other results")
	}
	if !c.Seeded {
		return
	}
	j.RunID = t.Name() + "/3"
	j.Seed = j.Seed + 1
	if other := c.results(t, j).Outputs(); slices.EqualFunc(first, other, bytes.Equal) {
		t.Error("another seed gave the same results")
	}
	for i := range first {
		for k := range i {
			if bytes.Equal(first[i], first[k]) {
				t.Errorf("results %d and %d of one job are the same", k, i)
			}
		}
	}
}

func manyJobs(t *testing.T, c Case) {
	const many = 4
	alone := make([][][]byte, many)
	together := make([]Recorder, many)
	jobs := make([]engine.Job, many)
	for i := range jobs {
		jobs[i] = c.job(t, i)
		jobs[i].Seed += uint32(i / 2) // two of each: the same work at the same time
		if c.Deterministic {
			alone[i] = c.results(t, jobs[i]).Outputs()
		}
		jobs[i].RunID += "/together"
	}
	errs := make([]error, many)
	var wg sync.WaitGroup
	for i := range jobs {
		wg.Go(func() { errs[i] = c.Engine.Run(t.Context(), jobs[i], &together[i]) })
	}
	wg.Wait()
	for i := range jobs {
		got := together[i].Outputs()
		if errs[i] != nil || len(got) != jobs[i].NumResults {
			t.Errorf("job %d: %d results, %v", i, len(got), errs[i])
		}
		if c.Deterministic && !slices.EqualFunc(got, alone[i], bytes.Equal) {
			t.Errorf("job %d gave other results than alone", i)
		}
	}
}

// withFiles gives the case's job with other ways to open its files.
func (c Case) withFiles(t *testing.T, open func(ctx context.Context, f engine.File) (io.ReadCloser, error)) engine.Job {
	t.Helper()
	j := c.job(t, 1)
	for key, files := range j.Files {
		files = slices.Clone(files)
		for i, f := range files {
			files[i].Open = func(ctx context.Context) (io.ReadCloser, error) { return open(ctx, f) }
		}
		j.Files[key] = files
	}
	return j
}

// failing runs a job that cannot succeed.
func (c Case) failing(t *testing.T, j engine.Job) {
	t.Helper()
	var r Recorder
	if err := c.do(t.Context(), t, j, &r, long); err == nil {
		t.Error("run = nil, want an error")
	}
	if n := len(r.Outputs()); n == j.NumResults {
		t.Errorf("all %d results came all the same", n)
	}
}

func filesClosed(t *testing.T, c Case) {
	var opened, closed atomic.Int64
	j := c.withFiles(t, func(ctx context.Context, f engine.File) (io.ReadCloser, error) {
		whole, err := f.Open(ctx)
		if err != nil {
			return nil, err
		}
		opened.Add(1)
		return file{whole, closer(func() error { closed.Add(1); return whole.Close() })}, nil
	})
	c.results(t, j)
	if opened.Load() == 0 || opened.Load() != closed.Load() {
		t.Errorf("files opened = %d and closed = %d, want as many and some", opened.Load(), closed.Load())
	}
}

func noFile(t *testing.T, c Case) {
	c.failing(t, c.withFiles(t, func(context.Context, engine.File) (io.ReadCloser, error) {
		return nil, errors.New("there is no such file")
	}))
}

func brokenFile(t *testing.T, c Case) {
	c.failing(t, c.withFiles(t, func(ctx context.Context, f engine.File) (io.ReadCloser, error) {
		whole, err := f.Open(ctx)
		if err != nil {
			return nil, err
		}
		start := io.LimitReader(whole, f.Size/2)
		return file{io.MultiReader(start, failure{errors.New("the disk is gone")}), whole}, nil
	}))
}

func endlessFile(t *testing.T, c Case) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended time.Time
	var once sync.Once
	j := c.withFiles(t, func(ctx context.Context, _ engine.File) (io.ReadCloser, error) {
		once.Do(func() { ended = time.Now(); cancel() })
		return io.NopCloser(waiting{ctx.Done()}), nil
	})
	if err := c.do(ctx, t, j, &Recorder{}, long); err == nil {
		t.Error("run = nil although the context ended")
	}
	promptly(t, ended)
}

// absentFile allows both ends: whether a file is needed is the tool's matter.
func absentFile(t *testing.T, c Case) {
	j := c.job(t, 1)
	j.Files = nil
	var r Recorder
	err := c.do(t.Context(), t, j, &r, long)
	if n := len(r.Outputs()); err == nil && n != j.NumResults {
		t.Errorf("run = nil with %d of %d results", n, j.NumResults)
	}
}

type file struct {
	io.Reader
	io.Closer
}

type closer func() error

func (c closer) Close() error { return c() }

type failure struct{ err error }

func (f failure) Read([]byte) (int, error) { return 0, f.err }

// waiting gives nothing until its context has ended, like a server that hangs.
type waiting struct{ done <-chan struct{} }

func (w waiting) Read([]byte) (int, error) {
	<-w.done
	return 0, context.Canceled
}

// Bytes is a file that lies in memory.
func Bytes(mimeType string, b []byte) engine.File {
	return engine.File{
		MimeType: mimeType,
		Size:     int64(len(b)),
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b)), ctx.Err()
		},
	}
}
