package comfyui_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/engine"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
)

// crowd pauses the server and fills its queue with other people's prompts. The
// first of them runs. It returns the prompts' ids.
func (r rig) crowd(t *testing.T, people int) (ids []string) {
	t.Helper()
	r.server.Change(func(f *comfyuitest.Faults) { f.Paused = true })
	for i := range people {
		g := portrait()
		inputs(g, "3")["seed"] = i
		r.send(t, g, "", uuid.NewString()) // without a client, so that its events go to everybody
	}
	eventually(t, "somebody else's prompt runs", func() bool { return len(r.server.Waiting()) < people })
	for _, p := range r.server.Prompts() {
		ids = append(ids, p.ID)
	}
	return ids
}

// goOn ends the pause that crowd began.
func (r rig) goOn() { r.server.Change(func(f *comfyuitest.Faults) { f.Paused = false }) }

// journal is a sink that also records the order of queue positions, progress
// and previews.
type journal struct {
	enginetest.Recorder
	mu     sync.Mutex
	events []string
	onWait func(position int)
}

func (j *journal) add(event string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.events) == 0 || j.events[len(j.events)-1] != event {
		j.events = append(j.events, event)
	}
}

func (j *journal) Queued(position int) {
	j.add("queued")
	j.Recorder.Queued(position)
	if j.onWait != nil {
		j.onWait(position)
	}
}

func (j *journal) Progress(fraction float64) {
	j.add("progress")
	j.Recorder.Progress(fraction)
}

func (j *journal) Preview(picture []byte) {
	j.add("preview")
	j.Recorder.Preview(picture)
}

// TestAServerBusyWithOthers has a job wait behind three other people's prompts.
// Positions only come while it waits; progress and previews are its own and
// come after the wait.
func TestAServerBusyWithOthers(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]comfyuitest.Options{
		"now":              {},
		"with previews":    {Previews: true}, // of other people's prompts too
		"long ago":         {NoJobs: true, GlobalInterrupt: true, OwnIDs: true},
		"without a socket": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Step = 40 * time.Millisecond
			r := start(t, o)
			if name == "without a socket" {
				r.server.Change(func(f *comfyuitest.Faults) { f.NoSocket = true })
			}
			r.crowd(t, 3)
			out := journal{onWait: func(int) { r.goOn() }}
			if err := r.Run(t.Context(), job(t), &out); err != nil || len(out.Outputs()) != 1 {
				t.Fatalf("run = %v with %d results", err, len(out.Outputs()))
			}
			at := out.QueuePositions()
			if len(at) == 0 || at[0] != 3 || !slices.IsSortedFunc(at, func(a, b int) int { return b - a }) {
				t.Errorf("positions = %v, want them to fall from 3", at)
			}
			wait := slices.Index(out.events, "queued")
			if wait < 0 || slices.Contains(out.events[wait+1:], "queued") || slices.Contains(out.events[:wait], "preview") {
				t.Errorf("events = %v, want one wait, and previews only after it", out.events)
			}
			if f := out.Fractions(); f[0] != 0 || f[1] > 0.3 {
				t.Errorf("progress = %v, want it to begin after the wait", f)
			}
			if n := len(out.Previews()); name != "without a socket" && (n == 0 || n > 4) {
				t.Errorf("previews = %d, want those of our 4 steps at most", n)
			}
		})
	}
}

// TestWhoComesFirst has prompts that were sent to the front of the queue.
func TestWhoComesFirst(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	r.crowd(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := journal{onWait: func(position int) {
		switch position {
		case 2: // one runs, one waits, and the job is behind it
			r.call(t, "POST", "/prompt", text(t, dict{"prompt": portrait(), "front": true}))
		case 3:
			cancel()
		}
	}}
	if err := r.Run(ctx, job(t), &out); err == nil {
		t.Error("run = nil although it was cancelled")
	}
	if at := slices.Compact(out.QueuePositions()); !slices.Equal(at, []int{2, 3}) {
		t.Errorf("positions = %v, want 2, and 3 behind the prompt at the front", at)
	}
}

// TestLeavingAQueueOfOthers cancels a job that waits: its prompt leaves the
// queue, and everybody else's work goes on.
func TestLeavingAQueueOfOthers(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]comfyuitest.Options{
		"now":      {},
		"older":    {NoJobs: true},
		"long ago": {NoJobs: true, GlobalInterrupt: true, OwnIDs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, o)
			others := r.crowd(t, 3)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := journal{onWait: func(int) { cancel() }}
			if err := r.Run(ctx, job(t), &out); err == nil {
				t.Error("run = nil although it was cancelled")
			}
			if waiting := r.server.Waiting(); !slices.Equal(waiting, others[1:]) {
				t.Errorf("waiting = %v, want only other people's prompts %v", waiting, others[1:])
			}
			r.goOn()
			eventually(t, "everybody else is served", r.server.Idle)
			for _, id := range others {
				if _, history := r.call(t, "GET", "/history/"+id, ""); !strings.Contains(history, `"status_str":"success"`) {
					t.Errorf("the prompt %s of somebody else ended: %.200s", id, history)
				}
			}
		})
	}
}

// TestAWaitIsHandedOver has the worker stop while its job waits: the prompt
// stays in the queue, and the next worker goes on waiting for it.
func TestAWaitIsHandedOver(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	r.crowd(t, 2)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	first := journal{onWait: func(int) { stop(engine.ErrHandedOver) }}
	if err := r.Run(ctx, job(t), &first); err == nil {
		t.Fatal("run = nil although the worker had to stop")
	}
	j := job(t)
	j.Attempt = 2
	j.SavedCheckpoint = first.LastCheckpoint()
	second := journal{onWait: func(int) { r.goOn() }}
	if err := r.Run(t.Context(), j, &second); err != nil {
		t.Fatalf("the second worker: %v", err)
	}
	if n := len(r.server.Prompts()); len(second.Outputs()) != 1 || len(second.QueuePositions()) == 0 || n != 3 {
		t.Errorf("results = %d, positions = %v, prompts = %d; want the same prompt to be waited for", len(second.Outputs()), second.QueuePositions(), n)
	}
}

// TestPreviewsAreAskedFor looks at the extra data of a prompt.
func TestPreviewsAreAskedFor(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	out := r.results(t, job(t))
	if got := string(r.server.Prompts()[0].ExtraData); got != `{"preview_method":"auto"}` || len(out.Previews()) == 0 {
		t.Errorf("extra data = %s with %d previews", got, len(out.Previews()))
	}
}
