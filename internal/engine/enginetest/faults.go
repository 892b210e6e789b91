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

// Fault is a way in which what an engine works with goes wrong.
type Fault string

// The faults.
const (
	Refuses  Fault = "refuses"        // it does not take the job, and never will
	Fails    Fault = "fails"          // it takes the job and cannot do it
	Busy     Fault = "busy"           // it takes no job just now
	Away     Fault = "away"           // nobody is there
	Loses    Fault = "loses the job"  // it forgets the job while it goes on
	Garbles  Fault = "garbles"        // it answers what nobody understands
	Breaks   Fault = "breaks off"     // a result ends in the middle
	Floods   Fault = "floods"         // a result has no end
	Drips    Fault = "drips"          // a result comes byte by byte, for minutes
	Hangs    Fault = "hangs"          // it takes the job and says no more
	Restarts Fault = "restarts"       // it goes away in the middle and is back, empty
	Fewer    Fault = "gives too few"  // it says it is done and has no result
	TimeIsUp Fault = "the time is up" // it works until the deadline
)

// faults are all of them, and what has to come of each.
var faults = []struct {
	fault Fault
	run   func(t *testing.T, tr Trial)
}{
	{Refuses, forGood},
	{Fails, forGood},
	{Busy, passing},
	{Away, passing},
	{Loses, someError},
	{Garbles, someError},
	{Breaks, someError},
	{Floods, flood},
	{Drips, cutOff},
	{Hangs, cutOff},
	{TimeIsUp, deadline},
	{Restarts, restart},
	{Fewer, noResult},
}

// Trial is an engine whose counterpart goes wrong, and a job for it.
type Trial struct {
	Engine engine.Engine
	Job    engine.Job
	// Idle tells whether the counterpart has stopped working, where the engine
	// can have it stop; nil: it cannot.
	Idle func() bool
	// After is a job that succeeds again, where the fault is over; the zero
	// Job: none.
	After engine.Job
	// Settle is as in Case.
	Settle func()
}

// Faults proves that the engine bears everything that can go wrong. Each fault
// has a trial, or a reason in never why it cannot happen. Like Run, it is not
// for parallel tests.
func Faults(t *testing.T, trials map[Fault]func(t *testing.T) Trial, never map[Fault]string) {
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
				eventually(t, "the work stops", tr.Idle)
			}
			if tr.Settle != nil {
				tr.Settle()
			}
			goleak.VerifyNone(t, before)
		})
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s: not within 10s", what)
			return
		}
	}
}

func (tr Trial) as() Case { return Case{Engine: tr.Engine, Job: tr.Job, Settle: tr.Settle} }

// end runs the trial's job, which has to fail with words that can be shown.
func (tr Trial) end(ctx context.Context, t *testing.T, r *Recorder) *engine.Error {
	t.Helper()
	c := tr.as()
	err := c.do(ctx, t, c.job(t, 1), r, long)
	if err == nil {
		t.Fatal("run = nil, want an error")
	}
	e := engine.As(err)
	if e.Message == "" || strings.Contains(e.Message, "://") || strings.Contains(e.Message, "127.0.0.1") || strings.Contains(e.Message, "/tmp") {
		t.Errorf("message = %q, want words for a person that name no place", e.Message)
	}
	return e
}

func forGood(t *testing.T, tr Trial) {
	var r Recorder
	e := tr.end(t.Context(), t, &r)
	if e.Transient || e.Code == engine.Unavailable {
		t.Errorf("failure = %v, transient %v; want one that stays", e, e.Transient)
	}
	if n := len(r.Outputs()); n == tr.Job.NumResults {
		t.Errorf("all %d results came all the same", n)
	}
}

func passing(t *testing.T, tr Trial) {
	var r Recorder
	if e := tr.end(t.Context(), t, &r); !e.Transient || e.Code != engine.Unavailable {
		t.Errorf("failure = %v, transient %v; want one that may be over soon", e, e.Transient)
	}
	if p, ok := tr.Engine.(engine.Prober); ok && p.Probe(t.Context()) == nil && tr.After.NumResults == 0 {
		t.Error("probe = nil although it takes no work")
	}
	tr.after(t)
}

func someError(t *testing.T, tr Trial) {
	var r Recorder
	tr.end(t.Context(), t, &r)
	tr.after(t)
}

// after runs the job that has to succeed once the fault is over.
func (tr Trial) after(t *testing.T) {
	t.Helper()
	if tr.After.NumResults == 0 {
		return
	}
	c := Case{Engine: tr.Engine, Job: tr.After}
	r := c.results(t, c.job(t, 2))
	if n := len(r.Outputs()); n != tr.After.NumResults {
		t.Errorf("afterwards: results = %d, want %d", n, tr.After.NumResults)
	}
}

// restart allows an engine to find its work again.
func restart(t *testing.T, tr Trial) {
	var r Recorder
	c := tr.as()
	if err := c.do(t.Context(), t, c.job(t, 1), &r, long); err == nil && len(r.Outputs()) != tr.Job.NumResults {
		t.Errorf("run = nil with %d of %d results", len(r.Outputs()), tr.Job.NumResults)
	}
	tr.after(t)
}

func noResult(t *testing.T, tr Trial) {
	var r Recorder
	c := tr.as()
	err := c.do(t.Context(), t, c.job(t, 1), &r, long)
	if n := len(r.Outputs()); err == nil && n > 0 {
		t.Errorf("results = %d, want none", n)
	}
}

// flood has a sink that takes 4 MB, as the real one has a limit.
func flood(t *testing.T, tr Trial) {
	r := Recorder{Most: 4 << 20}
	tr.end(t.Context(), t, &r)
}

func cutOff(t *testing.T, tr Trial) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan time.Time, 1)
	timer := time.AfterFunc(500*time.Millisecond, func() { ended <- time.Now(); cancel() })
	defer timer.Stop()
	c := tr.as()
	if err := c.do(ctx, t, c.job(t, 1), &Recorder{}, long); err == nil {
		t.Fatal("run = nil although the context ended")
	}
	promptly(t, <-ended)
}

func deadline(t *testing.T, tr Trial) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	c := tr.as()
	if err := c.do(ctx, t, c.job(t, 1), &Recorder{}, long); err == nil {
		t.Fatal("run = nil although its time was up")
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("it failed after %v, before its time was up", took)
	}
	promptly(t, began.Add(500*time.Millisecond))
}

// Signs proves that the engine tells how far it is: something between nothing
// and all, and previews where it shows any.
func Signs(t *testing.T, c Case, previews bool) {
	r := c.results(t, c.job(t, 1))
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

// TakesUp proves that work goes on when a worker has to stop: the next one takes
// it up from the note, and no more was begun. begun counts what the counterpart
// has begun; the job has to take long enough to be cut off.
func TakesUp(t *testing.T, tr Trial, begun func() int) {
	c := tr.as()
	next := c.job(t, 1)
	next.Attempt = 2
	next.Left = tr.left(t, begun)
	r := c.results(t, next)
	if n := len(r.Outputs()); n != tr.Job.NumResults {
		t.Errorf("results = %d, want %d", n, tr.Job.NumResults)
	}
	if n := begun(); n != tr.Job.NumResults && n != 1 {
		t.Errorf("begun %d times for %d results", n, tr.Job.NumResults)
	}
}

// Abandons proves that a note is enough to end what it names, when nobody takes
// it up. begun is as for TakesUp; idle tells whether the counterpart has stopped
// working.
func Abandons(t *testing.T, tr Trial, begun func() int, idle func() bool) {
	e, ok := tr.Engine.(engine.Abandoner)
	if !ok {
		t.Fatal("the engine cannot abandon work")
	}
	note := tr.left(t, begun)
	if idle() {
		t.Fatal("the work stopped with the worker, so there is nothing to abandon")
	}
	if err := e.Abandon(t.Context(), note); err != nil {
		t.Fatalf("abandon: %v", err)
	}
	eventually(t, "the work stops", idle)
	if err := e.Abandon(t.Context(), note); err != nil {
		t.Errorf("abandon once more: %v", err)
	}
	for _, foreign := range []string{"", "{", "null", "[]", `{"something":"else"}`, `{"ids":["",""]}`} {
		if err := e.Abandon(t.Context(), foreign); err != nil {
			t.Errorf("abandon %q: %v, want nil for what is no note", foreign, err)
		}
	}
}

// left cuts the trial's job off for another worker, once it has begun and left a
// note, and gives the note.
func (tr Trial) left(t *testing.T, begun func() int) string {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var first Recorder
	go func() {
		for (begun() == 0 || len(first.Notes()) == 0) && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond) // so that the answer has come
		stop(engine.ErrElsewhere)
	}()
	c := tr.as()
	if err := c.do(ctx, t, c.job(t, 1), &first, long); err == nil {
		t.Fatal("run = nil although the worker had to stop")
	}
	notes := first.Notes()
	if len(notes) == 0 {
		t.Fatal("the worker left no note")
	}
	return notes[len(notes)-1]
}

// errTooMuch is what a sink says to a result that is too large.
var errTooMuch = errors.New("the result is too large")

// bounded reads no more than so many bytes.
func bounded(r io.Reader, most int64) ([]byte, error) {
	if most == 0 {
		return io.ReadAll(r)
	}
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = errTooMuch
	}
	return b, err
}
