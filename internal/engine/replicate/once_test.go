package replicate_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/replicate/replicatetest"
)

// The tests here hold that nothing is created twice.

func TestACreateWithoutAnAnswerIsFoundAgain(t *testing.T) {
	t.Parallel()
	for _, fault := range []replicatetest.Fault{replicatetest.Drops, replicatetest.Ill} {
		for name, model := range map[string]string{
			"model": official, "version": `"version":"acme/painter:` + replicatetest.Version + `"`, "deployment": `"deployment":"acme/studio"`,
		} {
			w := start(t, replicatetest.Options{})
			w.SetFault(fault, 1)
			j := painting(model, 2)
			j.Files = pictureOf(300 << 10)
			w.results(t, j)
			if t.Failed() {
				t.Logf("%s, %s", fault, name)
			}
			w.wantCreates(t, 2)
		}
	}
}

const unknown = "The provider did not confirm the job, and starting it again could cost twice. Start a new run if you want to try again."

func TestACreateThatCannotBeFoundIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	w.SetFault(replicatetest.Swallows, 1)
	e, r := w.failure(t, painting(official, 1))
	if e.Message != unknown || e.Transient || e.Code != engine.Failed {
		t.Errorf("failure = %v, transient %v", e, e.Transient)
	}
	w.wantCreates(t, 0)
	j := painting(official, 1)
	j.Attempt, j.SavedCheckpoint = 2, r.LastCheckpoint()
	if e, _ := w.failure(t, j); e.Message != unknown {
		t.Errorf("the next try: %v", e)
	}
	w.wantCreates(t, 0)
}

// TestTwinsAreNotGuessed has two predictions that could be the one.
func TestTwinsAreNotGuessed(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	w.results(t, painting(official, 1))
	w.results(t, painting(official, 1))
	w.SetFault(replicatetest.Swallows, 1)
	if e, _ := w.failure(t, painting(official, 1)); e.Message != unknown {
		t.Errorf("failure = %v", e)
	}
	w.wantCreates(t, 2)
}

// TestPredictionsWithoutASeedAreNotAdopted has another run whose prediction has
// the same inputs, because the model has no seed. It may be another person's.
func TestPredictionsWithoutASeedAreNotAdopted(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	j := painting(official, 1)
	j.With = `{` + official + `}`
	w.results(t, j)
	w.SetFault(replicatetest.Swallows, 1)
	e, r := w.failure(t, j)
	if e.Message != unknown {
		t.Errorf("failure = %v", e)
	}
	if err := w.engine.Abandon(t.Context(), r.LastCheckpoint()); err != nil {
		t.Error(err)
	}
	w.wantCreates(t, 1)
}

// TestJobsThatRunKeepTheirPredictions has one job whose create never arrived
// beside another that asked for the same.
func TestJobsThatRunKeepTheirPredictions(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{Takes: 500 * time.Millisecond})
	j := painting(official, 1)
	created := make(chan struct{})
	done := make(chan error)
	go func() {
		var r enginetest.Recorder
		r.OnProgress = func(float64) {
			select {
			case <-created:
			default:
				close(created)
			}
		}
		done <- w.engine.Run(t.Context(), j, &r)
	}()
	<-created
	w.SetFault(replicatetest.Swallows, 1)
	if e, _ := w.failure(t, j); e.Message != unknown {
		t.Errorf("failure = %v", e)
	}
	if err := <-done; err != nil {
		t.Errorf("the other job: %v", err)
	}
	w.wantCreates(t, 1)
}

func TestOldPredictionsAreNotTakenForNewOnes(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	j := painting(official, 1)
	notes := w.results(t, j).Checkpoints()
	var left map[string]any
	if err := json.Unmarshal([]byte(notes[0]), &left); err != nil || left["creating"] == nil {
		t.Fatalf("first note = %s, %v", notes[0], err)
	}
	left["since"] = time.Now().Add(time.Hour).Unix() // as if its twin were created then
	text, err := json.Marshal(left)
	if err != nil {
		t.Fatal(err)
	}
	j.Attempt, j.SavedCheckpoint = 2, string(text)
	if e, _ := w.failure(t, j); e.Message != unknown {
		t.Errorf("failure = %v", e)
	}
	w.wantCreates(t, 1)
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
	created := func(n int) func(string) bool {
		return func(note string) bool {
			var v struct {
				IDs      []string
				Creating string
			}
			if json.Unmarshal([]byte(note), &v) != nil || v.Creating != "" {
				return false
			}
			got := 0
			for _, id := range v.IDs {
				if id != "" {
					got++
				}
			}
			return got == n
		}
	}
	for name, tt := range map[string]struct {
		at      func(string) bool
		creates int
	}{
		"after the first create": {created(1), 2},
		"after all creates":      {created(2), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, replicatetest.Options{Takes: 100 * time.Millisecond})
			left := w.die(t, painting(official, 2), tt.at)
			j := painting(official, 2)
			j.Attempt, j.SavedCheckpoint = 2, left
			w.engine = w.another()
			w.results(t, j)
			w.wantCreates(t, tt.creates)
		})
	}
}

// die runs a job whose worker dies, and gives the note it leaves.
func (w *fixture) die(t *testing.T, j engine.Job, at func(string) bool) string {
	t.Helper()
	dead, die := context.WithCancel(context.Background())
	c := &crash{at: at, dead: die}
	go func() { _ = w.engine.Run(context.Background(), j, c) }()
	select {
	case <-dead.Done():
	case <-time.After(time.Minute):
		t.Fatal("the worker did not come to where it dies")
	}
	return c.LastCheckpoint()
}

// TestAWorkerThatDiesBeforeTheAnswer leaves a note that names no prediction.
func TestAWorkerThatDiesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	j := painting(official, 1)
	j.Files = pictureOf(300 << 10) // the next worker's upload has another address
	r := w.results(t, j)
	notes := r.Checkpoints()
	if len(notes) != 2 || !strings.Contains(notes[0], "creating") {
		t.Fatalf("notes = %q", notes)
	}
	j.Attempt, j.SavedCheckpoint = 2, notes[0]
	w.engine = w.another()
	w.results(t, j)
	w.wantCreates(t, 1)
}

func TestCancelledPredictionsAreCreatedAfresh(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{Takes: 2 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	r := enginetest.Recorder{OnProgress: func(float64) { cancel() }}
	if err := w.engine.Run(ctx, painting(official, 2), &r); err == nil {
		t.Fatal("run = nil although the context ended")
	}
	j := painting(official, 2)
	j.Attempt, j.SavedCheckpoint = 2, r.LastCheckpoint()
	w.results(t, j)
	w.wantCreates(t, 4)
	if w.Running() != 0 {
		t.Errorf("predictions that run on = %d", w.Running())
	}
}

func TestPredictionsThatSomebodyCancels(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{Takes: time.Hour})
	c := &crash{at: func(string) bool {
		w.Cancel() // nothing at the first note: it is written before the request is made
		return false
	}}
	if e := engine.AsError(w.engine.Run(t.Context(), painting(official, 1), c)); e.Transient || !strings.Contains(e.Message, "cancelled") {
		t.Errorf("failure = %v", e)
	}
	w.wantCreates(t, 1)
}

// TestInterruptedPredictionsAreCreatedAfresh: they are known to have ended.
func TestInterruptedPredictionsAreCreatedAfresh(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	w.SetFault(replicatetest.Interrupts, 1)
	_, r := w.failure(t, painting(official, 2))
	j := painting(official, 2)
	j.Attempt, j.SavedCheckpoint = 2, r.LastCheckpoint()
	w.results(t, j)
	w.wantCreates(t, 3)
}

func TestLooksThatFailAreBorneForAWhile(t *testing.T) {
	t.Parallel()
	w := start(t, replicatetest.Options{})
	w.SetFault(replicatetest.Hiccups, 5)
	w.results(t, painting(official, 1))

	w.SetFault(replicatetest.Hiccups, 0)
	e, r := w.failure(t, painting(official, 1))
	if !e.Transient || e.Code != engine.Unavailable {
		t.Errorf("failure = %v, transient %v", e, e.Transient)
	}
	w.ClearFault()
	j := painting(official, 1)
	j.Attempt, j.SavedCheckpoint = 2, r.LastCheckpoint()
	w.results(t, j)
	w.wantCreates(t, 2)
}

func TestNotesOfOthersAreNotUnderstood(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"", "{", `{"ids":["a","b","c"]}`, `{"prompt_id":"x"}`, `[]`} {
		w := start(t, replicatetest.Options{})
		j := painting(official, 1)
		j.SavedCheckpoint = left
		w.results(t, j)
		w.wantCreates(t, 1)
	}
}
