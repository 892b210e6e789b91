// Package enginetest contains the conformance tests that every engine.Engine must pass, and a sink
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
	"atelier/internal/testkit/watch"
)

// Case is an engine and a job that it can do, for CheckEngine.
type Case struct {
	Engine engine.Engine
	// Job is a job that succeeds. Each check runs it with another RunID.
	Job engine.Job
	// Deterministic means that the engine returns equal bytes for equal seeds,
	// and Seeded that it returns different bytes for different seeds.
	Deterministic, Seeded bool
	// Settle releases resources that the engine keeps between jobs, such as idle connections, before
	// goroutines are counted. It may be nil.
	Settle func()
}

const (
	// promptLimit is how long an engine may take to return after its context
	// is cancelled.
	promptLimit = 2 * time.Second
	// stuckLimit is how long a job may run before the test fails.
	stuckLimit = 2 * time.Minute
)

var errSinkFull = errors.New("the sink is full")

// CheckEngine checks that an engine does everything that the interface
// engine.Engine requires. The calling test must not be parallel, because
// goroutines of other tests would count as leaked.
func CheckEngine(t *testing.T, c Case) {
	files := len(c.Job.Files) > 0
	tests := []struct {
		name    string
		run     func(t *testing.T, c Case)
		applies bool
	}{
		{"all results in order", checkAllResults, true},
		{"progress only grows", checkProgressGrows, true},
		{"ended before it began", checkEndedBefore, true},
		{"ended at the first progress", checkEndedAtProgress, true},
		{"ended while a result is taken", checkEndedAtOutput, true},
		{"the sink's error comes back", checkSinkError, true},
		{"seeds decide", checkSeeds, c.Deterministic},
		{"jobs do not disturb each other", checkParallelJobs, true},
		{"files are closed", checkFilesClosed, files},
		{"files that cannot be opened", checkUnopenableFile, files},
		{"files that break off", checkBrokenFile, files},
		{"files that never come", checkHangingFile, files},
		{"files left out", checkAbsentFile, files},
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

// newJob returns a copy of the case's job with a RunID made of the test's name
// and number.
func (c Case) newJob(t *testing.T, number int) engine.Job {
	j := c.Job
	j.RunID = fmt.Sprintf("%s/%d", t.Name(), number)
	j.Attempt = 1
	j.Values = maps.Clone(j.Values)
	j.Files = maps.Clone(j.Files)
	return j
}

// runJob runs a job and fails the test if the job takes longer than stuckLimit. A
// panic becomes an error.
func (c Case) runJob(ctx context.Context, t *testing.T, j engine.Job, out engine.Sink) error {
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
	timer := time.NewTimer(stuckLimit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		t.Fatalf("the engine did not return within %v", stuckLimit)
		return nil
	}
}

// runToEnd runs a job and fails the test if the job fails.
func (c Case) runToEnd(t *testing.T, j engine.Job) *Recorder {
	t.Helper()
	var r Recorder
	if err := c.runJob(t.Context(), t, j, &r); err != nil {
		t.Fatalf("run: %v", err)
	}
	return &r
}

func checkAllResults(t *testing.T, c Case) {
	j := c.newJob(t, 1)
	r := c.runToEnd(t, j)
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

func checkProgressGrows(t *testing.T, c Case) {
	r := c.runToEnd(t, c.newJob(t, 1))
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

func checkEndedBefore(t *testing.T, c Case) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := time.Now()
	var r Recorder
	if err := c.runJob(ctx, t, c.newJob(t, 1), &r); err == nil {
		t.Error("run = nil although the context had ended")
	}
	checkPrompt(t, ended)
	if n := len(r.Outputs()); n != 0 {
		t.Errorf("results = %d, want 0", n)
	}
}

// checkEndedAtProgress cancels the job when it first reports progress. An
// engine that was almost done may finish the job.
func checkEndedAtProgress(t *testing.T, c Case) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended time.Time
	var once sync.Once
	r := Recorder{OnProgress: func(float64) {
		once.Do(func() { ended = time.Now(); cancel() })
	}}
	j := c.newJob(t, 1)
	err := c.runJob(ctx, t, j, &r)
	if ended.IsZero() {
		return // the engine reports no progress
	}
	checkPrompt(t, ended)
	if n := len(r.Outputs()); err == nil && n != j.NumResults {
		t.Errorf("run = nil with %d of %d results", n, j.NumResults)
	}
}

func checkEndedAtOutput(t *testing.T, c Case) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended time.Time
	r := Recorder{OnOutput: func(int) { ended = time.Now(); cancel() }}
	if err := c.runJob(ctx, t, c.newJob(t, 1), &r); err == nil {
		t.Error("run = nil although the context ended")
	}
	checkPrompt(t, ended)
	if n := r.Offered(); n != 1 {
		t.Errorf("results offered = %d, want 1", n)
	}
}

func checkPrompt(t *testing.T, ended time.Time) {
	t.Helper()
	watch.Took(t, "the return after the end of the context", time.Since(ended), promptLimit)
}

func checkSinkError(t *testing.T, c Case) {
	for _, nth := range slices.Compact([]int{1, c.Job.NumResults}) {
		r := Recorder{FailAt: nth, Err: fmt.Errorf("output %d: %w", nth, errSinkFull)}
		if err := c.runJob(t.Context(), t, c.newJob(t, nth), &r); !errors.Is(err, errSinkFull) {
			t.Errorf("run = %v, want the sink's error", err)
		}
		if n := r.Offered(); n != nth {
			t.Errorf("results offered = %d, want none after number %d failed", n, nth)
		}
	}
}

func checkSeeds(t *testing.T, c Case) {
	j := c.newJob(t, 1)
	first := c.runToEnd(t, j).Outputs()
	j.RunID = t.Name() + "/2"
	j.Attempt = 2
	if again := c.runToEnd(t, j).Outputs(); !slices.EqualFunc(first, again, bytes.Equal) {
		t.Error("the same job with the same seed gave other results")
	}
	if !c.Seeded {
		return
	}
	j.RunID = t.Name() + "/3"
	j.Seed = j.Seed + 1
	if other := c.runToEnd(t, j).Outputs(); slices.EqualFunc(first, other, bytes.Equal) {
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

func checkParallelJobs(t *testing.T, c Case) {
	const many = 4
	alone := make([][][]byte, many)
	together := make([]Recorder, many)
	jobs := make([]engine.Job, many)
	for i := range jobs {
		jobs[i] = c.newJob(t, i)
		jobs[i].Seed += uint32(i / 2) // two jobs for each seed, so that equal jobs run at the same time
		if c.Deterministic {
			alone[i] = c.runToEnd(t, jobs[i]).Outputs()
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

// withFiles returns the case's job with open as the function that opens its
// files.
func (c Case) withFiles(t *testing.T, open func(ctx context.Context, f engine.File) (io.ReadCloser, error)) engine.Job {
	t.Helper()
	j := c.newJob(t, 1)
	for key, files := range j.Files {
		files = slices.Clone(files)
		for i, f := range files {
			files[i].Open = func(ctx context.Context) (io.ReadCloser, error) { return open(ctx, f) }
		}
		j.Files[key] = files
	}
	return j
}

// runFailing runs a job and fails the test if the job succeeds.
func (c Case) runFailing(t *testing.T, j engine.Job) {
	t.Helper()
	var r Recorder
	if err := c.runJob(t.Context(), t, j, &r); err == nil {
		t.Error("run = nil, want an error")
	}
	if n := len(r.Outputs()); n == j.NumResults {
		t.Errorf("all %d results came all the same", n)
	}
}

func checkFilesClosed(t *testing.T, c Case) {
	var opened, closed atomic.Int64
	j := c.withFiles(t, func(ctx context.Context, f engine.File) (io.ReadCloser, error) {
		whole, err := f.Open(ctx)
		if err != nil {
			return nil, err
		}
		opened.Add(1)
		return testFile{whole, closeFunc(func() error { closed.Add(1); return whole.Close() })}, nil
	})
	c.runToEnd(t, j)
	if opened.Load() == 0 || opened.Load() != closed.Load() {
		t.Errorf("files opened = %d and closed = %d, want as many and some", opened.Load(), closed.Load())
	}
}

func checkUnopenableFile(t *testing.T, c Case) {
	c.runFailing(t, c.withFiles(t, func(context.Context, engine.File) (io.ReadCloser, error) {
		return nil, errors.New("there is no such file")
	}))
}

func checkBrokenFile(t *testing.T, c Case) {
	c.runFailing(t, c.withFiles(t, func(ctx context.Context, f engine.File) (io.ReadCloser, error) {
		whole, err := f.Open(ctx)
		if err != nil {
			return nil, err
		}
		start := io.LimitReader(whole, f.Size/2)
		return testFile{io.MultiReader(start, failingReader{errors.New("the disk is gone")}), whole}, nil
	}))
}

func checkHangingFile(t *testing.T, c Case) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended time.Time
	var once sync.Once
	j := c.withFiles(t, func(ctx context.Context, _ engine.File) (io.ReadCloser, error) {
		once.Do(func() { ended = time.Now(); cancel() })
		return io.NopCloser(hangingReader{ctx.Done()}), nil
	})
	if err := c.runJob(ctx, t, j, &Recorder{}); err == nil {
		t.Error("run = nil although the context ended")
	}
	checkPrompt(t, ended)
}

// checkAbsentFile runs the job without its files. The job may succeed or fail,
// because whether a file is required depends on the tool.
func checkAbsentFile(t *testing.T, c Case) {
	j := c.newJob(t, 1)
	j.Files = nil
	var r Recorder
	err := c.runJob(t.Context(), t, j, &r)
	if n := len(r.Outputs()); err == nil && n != j.NumResults {
		t.Errorf("run = nil with %d of %d results", n, j.NumResults)
	}
}

type testFile struct {
	io.Reader
	io.Closer
}

type closeFunc func() error

func (c closeFunc) Close() error { return c() }

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// hangingReader is a reader that blocks until its context is cancelled, like a
// server that hangs.
type hangingReader struct{ done <-chan struct{} }

func (w hangingReader) Read([]byte) (int, error) {
	<-w.done
	return 0, context.Canceled
}

// FileFromBytes returns an input file with the content b.
func FileFromBytes(mimeType string, b []byte) engine.File {
	return engine.File{
		MimeType: mimeType,
		Size:     int64(len(b)),
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b)), ctx.Err()
		},
	}
}
