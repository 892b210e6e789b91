package enginetest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"atelier/internal/engine"
)

// Fault is a kind of failure of a model server or program that an engine uses.
type Fault string

// The faults that CheckFaults tests. Each is a fault of the model server or
// program that the engine uses.
const (
	Refuses  Fault = "refuses"        // the server refuses the job permanently
	Fails    Fault = "fails"          // the server accepts the job and then fails
	Busy     Fault = "busy"           // the server accepts no job at the moment
	Away     Fault = "away"           // the server cannot be reached
	Loses    Fault = "loses the job"  // the server forgets the job while it runs
	Garbles  Fault = "garbles"        // the server sends invalid responses
	Breaks   Fault = "breaks off"     // a result is truncated
	Floods   Fault = "floods"         // a result never ends
	Drips    Fault = "drips"          // a result arrives byte by byte, for minutes
	Hangs    Fault = "hangs"          // the server accepts the job and stops responding
	Restarts Fault = "restarts"       // the server restarts during the job and loses its state
	Fewer    Fault = "gives too few"  // the server reports success without a result
	TimeIsUp Fault = "the time is up" // the server is still working when the job's deadline has passed
)

// faults lists all faults, each with the function that checks it.
var faults = []struct {
	fault Fault
	run   func(t *testing.T, tr Trial)
}{
	{Refuses, checkPermanent},
	{Fails, checkPermanent},
	{Busy, checkTransient},
	{Away, checkTransient},
	{Loses, checkAnyError},
	{Garbles, checkAnyError},
	{Breaks, checkAnyError},
	{Floods, checkFlood},
	{Drips, checkCancelled},
	{Hangs, checkCancelled},
	{TimeIsUp, checkDeadline},
	{Restarts, checkRestart},
	{Fewer, checkNoResult},
}

// Trial is an engine whose model server or program has a fault, and a job for
// it.
type Trial struct {
	Engine engine.Engine
	Job    engine.Job
	// Idle reports whether the model server has stopped working. It is nil if
	// the engine cannot make the server stop.
	Idle func() bool
	// After is a job that succeeds once the fault no longer occurs. The zero
	// Job means that there is none.
	After engine.Job
	// Settle releases resources that the engine keeps between jobs, as
	// Case.Settle does.
	Settle func()
}

// CheckFaults checks that an engine handles every fault. For each fault, trials
// has a function that returns a trial, or never has the reason why the fault
// cannot happen. The calling test must not be parallel.
func CheckFaults(t *testing.T, trials map[Fault]func(t *testing.T) Trial, never map[Fault]string) {
	for _, f := range faults {
		begin, ok := trials[f.fault]
		if !ok {
			if never[f.fault] == "" {
				t.Errorf("there is no trial for %q, and no reason why it cannot happen", f.fault)
			}
			continue
		}
		t.Run(string(f.fault), func(t *testing.T) {
			tr := begin(t)
			before := goleak.IgnoreCurrent()
			f.run(t, tr)
			if tr.Idle != nil {
				waitUntil(t, "the work stops", tr.Idle)
			}
			if tr.Settle != nil {
				tr.Settle()
			}
			goleak.VerifyNone(t, before)
		})
	}
}

func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s: not within 10s", what)
			return
		}
	}
}

func (tr Trial) asCase() Case { return Case{Engine: tr.Engine, Job: tr.Job, Settle: tr.Settle} }

// runToFailure runs the trial's job, which must fail with a message that can
// be shown to people.
func (tr Trial) runToFailure(ctx context.Context, t *testing.T, r *Recorder) *engine.Error {
	t.Helper()
	c := tr.asCase()
	err := c.runJob(ctx, t, c.newJob(t, 1), r)
	if err == nil {
		t.Fatal("run = nil, want an error")
	}
	e := engine.AsError(err)
	if e.Message == "" || strings.Contains(e.Message, "://") || strings.Contains(e.Message, "127.0.0.1") || strings.Contains(e.Message, "/tmp") {
		t.Errorf("message = %q, want words for a person that name no place", e.Message)
	}
	return e
}

func checkPermanent(t *testing.T, tr Trial) {
	var r Recorder
	e := tr.runToFailure(t.Context(), t, &r)
	if e.Transient || e.Code == engine.Unavailable {
		t.Errorf("failure = %v, transient %v; want one that stays", e, e.Transient)
	}
	if n := len(r.Outputs()); n == tr.Job.NumResults {
		t.Errorf("all %d results came all the same", n)
	}
}

func checkTransient(t *testing.T, tr Trial) {
	var r Recorder
	if e := tr.runToFailure(t.Context(), t, &r); !e.Transient || e.Code != engine.Unavailable {
		t.Errorf("failure = %v, transient %v; want one that may be over soon", e, e.Transient)
	}
	if p, ok := tr.Engine.(engine.Prober); ok && p.Probe(t.Context()) == nil && tr.After.NumResults == 0 {
		t.Error("probe = nil although it takes no work")
	}
	tr.runAfter(t)
}

func checkAnyError(t *testing.T, tr Trial) {
	var r Recorder
	tr.runToFailure(t.Context(), t, &r)
	tr.runAfter(t)
}

// runAfter runs the trial's second job, which must succeed because the fault no
// longer occurs.
func (tr Trial) runAfter(t *testing.T) {
	t.Helper()
	if tr.After.NumResults == 0 {
		return
	}
	c := Case{Engine: tr.Engine, Job: tr.After}
	r := c.runToEnd(t, c.newJob(t, 2))
	if n := len(r.Outputs()); n != tr.After.NumResults {
		t.Errorf("afterwards: results = %d, want %d", n, tr.After.NumResults)
	}
}

// checkRestart runs a job whose server restarts. An engine that finds its work
// again may complete the job.
func checkRestart(t *testing.T, tr Trial) {
	var r Recorder
	c := tr.asCase()
	if err := c.runJob(t.Context(), t, c.newJob(t, 1), &r); err == nil && len(r.Outputs()) != tr.Job.NumResults {
		t.Errorf("run = nil with %d of %d results", len(r.Outputs()), tr.Job.NumResults)
	}
	tr.runAfter(t)
}

func checkNoResult(t *testing.T, tr Trial) {
	var r Recorder
	c := tr.asCase()
	err := c.runJob(t.Context(), t, c.newJob(t, 1), &r)
	if n := len(r.Outputs()); err == nil && n > 0 {
		t.Errorf("results = %d, want none", n)
	}
}

// checkFlood checks a result that never ends. It uses a sink that accepts at
// most 4 MiB, because the real sink has a limit too.
func checkFlood(t *testing.T, tr Trial) {
	r := Recorder{MaxBytes: 4 << 20}
	tr.runToFailure(t.Context(), t, &r)
}

func checkCancelled(t *testing.T, tr Trial) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan time.Time, 1)
	timer := time.AfterFunc(500*time.Millisecond, func() { ended <- time.Now(); cancel() })
	defer timer.Stop()
	c := tr.asCase()
	if err := c.runJob(ctx, t, c.newJob(t, 1), &Recorder{}); err == nil {
		t.Fatal("run = nil although the context ended")
	}
	checkPrompt(t, <-ended)
}

func checkDeadline(t *testing.T, tr Trial) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	c := tr.asCase()
	if err := c.runJob(ctx, t, c.newJob(t, 1), &Recorder{}); err == nil {
		t.Fatal("run = nil although its time was up")
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("it failed after %v, before its time was up", took)
	}
	checkPrompt(t, began.Add(500*time.Millisecond))
}

// CheckProgress checks that the engine reports progress between 0 and 1 and,
// if previews is true, sends previews.
func CheckProgress(t *testing.T, c Case, previews bool) {
	r := c.runToEnd(t, c.newJob(t, 1))
	between := false
	for _, f := range r.Fractions() {
		between = between || f > 0 && f < 1
	}
	if !between {
		t.Errorf("progress = %v, want some on the way", r.Fractions())
	}
	if previews && len(r.Previews()) == 0 {
		t.Error("there was no preview")
	}
}

// CheckHandover checks that work continues when a worker has to stop: the next
// worker resumes the work from the checkpoint instead of starting it again.
// begun returns how many tasks the server has started. The job must take long
// enough to be interrupted.
func CheckHandover(t *testing.T, tr Trial, begun func() int) {
	c := tr.asCase()
	next := c.newJob(t, 1)
	next.Attempt = 2
	next.SavedCheckpoint = tr.runUntilHandover(t, begun)
	r := c.runToEnd(t, next)
	if n := len(r.Outputs()); n != tr.Job.NumResults {
		t.Errorf("results = %d, want %d", n, tr.Job.NumResults)
	}
	if n := begun(); n != tr.Job.NumResults && n != 1 {
		t.Errorf("begun %d times for %d results", n, tr.Job.NumResults)
	}
}

// CheckAbandon checks that the engine can cancel work with nothing but its
// checkpoint. begun returns how many tasks the server has started; idle
// reports whether the server has stopped working.
func CheckAbandon(t *testing.T, tr Trial, begun func() int, idle func() bool) {
	e, ok := tr.Engine.(engine.Abandoner)
	if !ok {
		t.Fatal("the engine cannot abandon work")
	}
	note := tr.runUntilHandover(t, begun)
	if idle() {
		t.Fatal("the work stopped with the worker, so there is nothing to abandon")
	}
	if err := e.Abandon(t.Context(), note); err != nil {
		t.Fatalf("abandon: %v", err)
	}
	waitUntil(t, "the work stops", idle)
	if err := e.Abandon(t.Context(), note); err != nil {
		t.Errorf("abandon once more: %v", err)
	}
	for _, foreign := range []string{"", "{", "null", "[]", `{"something":"else"}`, `{"ids":["",""]}`} {
		if err := e.Abandon(t.Context(), foreign); err != nil {
			t.Errorf("abandon %q: %v, want nil for what is no note", foreign, err)
		}
	}
}

// runUntilHandover runs the trial's job until it has begun and saved a
// checkpoint, interrupts it as if another worker continued the run, and
// returns the checkpoint.
func (tr Trial) runUntilHandover(t *testing.T, begun func() int) string {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var first Recorder
	go func() {
		for (begun() == 0 || len(first.Checkpoints()) == 0) && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond) // time for the server's response to arrive
		stop(engine.ErrHandedOver)
	}()
	c := tr.asCase()
	if err := c.runJob(ctx, t, c.newJob(t, 1), &first); err == nil {
		t.Fatal("run = nil although the worker had to stop")
	}
	notes := first.Checkpoints()
	if len(notes) == 0 {
		t.Fatal("the worker left no note")
	}
	return notes[len(notes)-1]
}

// errTooLarge is the recorder's error for a result that is larger than
// MaxBytes.
var errTooLarge = errors.New("the result is too large")

// readLimited reads everything from r. It returns errTooLarge if there are
// more than maxBytes bytes. If maxBytes is 0, there is no limit.
func readLimited(r io.Reader, maxBytes int64) ([]byte, error) {
	if maxBytes == 0 {
		return io.ReadAll(r)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && int64(len(b)) > maxBytes {
		err = errTooLarge
	}
	return b, err
}
