package fal_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
)

// The tests here hold that nothing is asked for twice.

const unknown = "The provider did not confirm the job, and starting it again could cost twice. Start a new run if you want to try again."

func TestARequestWithoutAnAnswerIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	for fault, creates := range map[faltest.Fault]int{faltest.Drops: 1, faltest.Ill: 1, faltest.Swallows: 0} {
		w := start(t, faltest.Options{})
		w.SetFault(fault, 1)
		e, r := w.failure(t, painting(painter, 2))
		if e.Message != unknown || e.Transient || e.Code != engine.Failed {
			t.Errorf("%s: %v, transient %v", fault, e, e.Transient)
		}
		j := painting(painter, 2)
		j.Attempt, j.SavedCheckpoint = 2, r.LastCheckpoint()
		if e, _ := w.failure(t, j); e.Message != unknown {
			t.Errorf("%s, the next try: %v", fault, e)
		}
		w.wantCreates(t, creates)
	}
}

// TestTheOthersAreCancelled has the second of two requests end in the dark.
func TestTheOthersAreCancelled(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{Takes: time.Hour})
	c := &crash{at: func(note string) bool {
		if ids(note) == 1 {
			w.SetFault(faltest.Swallows, 1)
		}
		return false
	}}
	if e := engine.AsError(w.engine.Run(t.Context(), painting(painter, 2), c)); e.Message != unknown {
		t.Errorf("failure = %v", e)
	}
	w.wantCreates(t, 1)
	if w.Running() != 0 {
		t.Errorf("requests that run on = %d", w.Running())
	}
}

// ids is how many requests a note names.
func ids(note string) int {
	var v struct{ IDs []string }
	if json.Unmarshal([]byte(note), &v) != nil {
		return 0
	}
	return len(strings.Join(v.IDs, "")) / len("xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx")
}

// crash is a sink whose worker dies when a note fits.
type crash struct {
	enginetest.Recorder
	at   func(note string) bool
	dead context.CancelFunc
}

func (c *crash) SaveCheckpoint(ctx context.Context, note string) error {
	err := c.Recorder.SaveCheckpoint(ctx, note)
	if c.at(note) {
		c.dead()
		runtime.Goexit() // nothing of this worker goes on
	}
	return err
}

func TestAnotherWorkerTakesUp(t *testing.T) {
	t.Parallel()
	for n := range 2 {
		w := start(t, faltest.Options{Takes: 100 * time.Millisecond})
		dead, die := context.WithCancel(context.Background())
		c := &crash{dead: die, at: func(note string) bool { return ids(note) == n+1 && !strings.Contains(note, "creating") }}
		go func() { _ = w.engine.Run(context.Background(), painting(painter, 2), c) }()
		select {
		case <-dead.Done():
		case <-time.After(time.Minute):
			t.Fatal("the worker did not come to where it dies")
		}
		j := painting(painter, 2)
		j.Attempt, j.SavedCheckpoint = 2, c.LastCheckpoint()
		w.engine = w.with(t, w.URL, fal.Options{})
		w.results(t, j)
		w.wantCreates(t, 2)
	}
}

func TestAWorkerThatDiesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	notes := w.results(t, painting(painter, 1)).Checkpoints()
	if len(notes) != 2 || !strings.Contains(notes[0], "creating") {
		t.Fatalf("notes = %q", notes)
	}
	j := painting(painter, 1)
	j.Attempt, j.SavedCheckpoint = 2, notes[0]
	if e, _ := w.failure(t, j); e.Message != unknown {
		t.Errorf("failure = %v", e)
	}
	w.wantCreates(t, 1)
}

func TestCancelledRequestsAreMadeAfresh(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]bool{"as the note says": false, "as the queue says": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, faltest.Options{Takes: 2 * time.Second})
			ctx, cancel := context.WithCancel(t.Context())
			r := enginetest.Recorder{OnProgress: func(float64) { cancel() }}
			if err := w.engine.Run(ctx, painting(painter, 2), &r); err == nil {
				t.Fatal("run = nil although the context ended")
			}
			notes := r.Checkpoints()
			j := painting(painter, 2)
			j.Attempt, j.SavedCheckpoint = 2, notes[len(notes)-1]
			if forget { // the last note did not get through
				j.SavedCheckpoint = notes[len(notes)-2]
			}
			w.results(t, j)
			w.wantCreates(t, 4)
		})
	}
}

func TestRequestsThatSomebodyCancels(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{Takes: time.Hour})
	c := &crash{at: func(string) bool {
		w.Cancel() // nothing at the first note: it is written before the request is made
		return false
	}}
	if e := engine.AsError(w.engine.Run(t.Context(), painting(painter, 1), c)); e.Transient || !strings.Contains(e.Message, "cancelled") {
		t.Errorf("failure = %v", e)
	}
	w.wantCreates(t, 1)
}

// TestInterruptedRequestsAreMadeAfresh: they are known to have ended.
func TestInterruptedRequestsAreMadeAfresh(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	w.SetFault(faltest.Interrupts, 1)
	_, r := w.failure(t, painting(painter, 2))
	j := painting(painter, 2)
	j.Attempt, j.SavedCheckpoint = 2, r.LastCheckpoint()
	w.results(t, j)
	w.wantCreates(t, 3)
}

func TestLooksThatFailAreBorneForAWhile(t *testing.T) {
	t.Parallel()
	w := start(t, faltest.Options{})
	w.SetFault(faltest.Hiccups, 5)
	w.results(t, painting(painter, 1))

	w.SetFault(faltest.Hiccups, 0)
	e, r := w.failure(t, painting(painter, 1))
	if !e.Transient || e.Code != engine.Unavailable {
		t.Errorf("failure = %v, transient %v", e, e.Transient)
	}
	w.ClearFault()
	j := painting(painter, 1)
	j.Attempt, j.SavedCheckpoint = 2, r.LastCheckpoint()
	w.results(t, j)
	w.wantCreates(t, 2)
}

func TestNotesOfOthersAreNotUnderstood(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"", "{", `{"ids":["a","b","c"]}`, `{"prompt_id":"x"}`, `[]`} {
		w := start(t, faltest.Options{})
		j := painting(painter, 1)
		j.SavedCheckpoint = left
		w.results(t, j)
		w.wantCreates(t, 1)
	}
}
