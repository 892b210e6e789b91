package comfyui_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/engine"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
)

type readCloser = io.ReadCloser

var errGone = errors.New("the disk is gone")

func TestNotesNameAllPromptsBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	j := job(t)
	j.NumResults = 2
	out := r.results(t, j)
	p := r.server.Prompts()
	want := []string{
		`{"client_id":"` + p[0].ClientID + `","prompts":["` + p[0].ID + `"]}`,
		`{"client_id":"` + p[0].ClientID + `","prompts":["` + p[0].ID + `","` + p[1].ID + `"]}`,
	}
	if !slices.Equal(out.Checkpoints(), want) {
		t.Errorf("notes = %q, want %q", out.Checkpoints(), want)
	}
	own := start(t, comfyuitest.Options{OwnIDs: true})
	out = own.results(t, job(t))
	p = own.server.Prompts()
	if n := out.Checkpoints(); len(n) != 2 || n[1] != `{"client_id":"`+p[0].ClientID+`","prompts":["`+p[0].ID+`"]}` {
		t.Errorf("notes = %q, want the server's id in the end", out.Checkpoints())
	}
}

func TestNotesOfTheLargestRunFit(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: time.Microsecond})
	j := job(t)
	j.NumResults = 64
	g := portrait()
	inputs(g, "3")["steps"] = 1
	j.With = with(t, g, bound)
	if n := len(r.results(t, j).LastCheckpoint()); n == 0 || n > engine.MaxCheckpoint {
		t.Errorf("the note has %d bytes, at most %d are taken", n, engine.MaxCheckpoint)
	}
}

func TestFinishedWorkIsTakenUp(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	j := job(t)
	j.NumResults = 3
	first := r.results(t, j)
	j.Attempt, j.SavedCheckpoint = 2, first.LastCheckpoint()
	again := r.results(t, j)
	if !slices.EqualFunc(first.Outputs(), again.Outputs(), bytes.Equal) {
		t.Error("the results are others")
	}
	if n := len(r.server.Prompts()); n != 3 {
		t.Errorf("prompts = %d, want no new one", n)
	}
	// The worker died after the second of three.
	j.Attempt, j.SavedCheckpoint = 3, first.Checkpoints()[1]
	again = r.results(t, j)
	if !slices.EqualFunc(first.Outputs(), again.Outputs(), bytes.Equal) {
		t.Error("the results are others when one was missing")
	}
	if n := len(r.server.Prompts()); n != 4 {
		t.Errorf("prompts = %d, want one new one", n)
	}
}

func TestWorkThatGoesOnIsTakenUp(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: 50 * time.Millisecond, Previews: true})
	id, client := uuid.NewString(), uuid.NewString()
	r.send(t, portrait(), client, id)
	j := job(t)
	j.SavedCheckpoint = text(t, dict{"client_id": client, "prompts": []string{id}})
	out := r.results(t, j)
	if len(out.Outputs()) != 1 || len(r.server.Prompts()) != 1 {
		t.Errorf("results = %d of %d prompts, want 1 of 1", len(out.Outputs()), len(r.server.Prompts()))
	}
	if len(out.Previews()) == 0 {
		t.Error("there was no preview: its events did not come here")
	}
}

func TestWhatCannotBeTakenUpIsDoneAnew(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: 20 * time.Millisecond})
	failed := uuid.NewString()
	r.server.Change(func(f *comfyuitest.Faults) { f.Fail = "out of memory" })
	r.send(t, portrait(), "a", failed)
	eventually(t, "it failed", r.server.Idle)
	r.server.Change(func(f *comfyuitest.Faults) { f.Fail = "" })
	for name, left := range map[string]string{
		"never sent": text(t, dict{"client_id": "a", "prompts": []string{uuid.NewString()}}),
		"failed":     text(t, dict{"client_id": "a", "prompts": []string{failed}}),
		"no note":    `{"prompts":`,
		"another":    `{"something":"else"}`,
	} {
		before := len(r.server.Prompts())
		j := job(t)
		j.SavedCheckpoint = left
		if n := len(r.results(t, j).Outputs()); n != 1 || len(r.server.Prompts()) != before+1 {
			t.Errorf("%s: results = %d, new prompts = %d, want 1 of 1", name, n, len(r.server.Prompts())-before)
		}
	}
}

// TestTheWorkerBeforeCancelsWhatWasTakenUp is what happens when a worker learns
// late that its run is somebody else's.
func TestTheWorkerBeforeCancelsWhatWasTakenUp(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: 50 * time.Millisecond})
	id := uuid.NewString()
	r.send(t, portrait(), "a", id)
	j := job(t)
	j.SavedCheckpoint = text(t, dict{"client_id": "a", "prompts": []string{id}})
	var out enginetest.Recorder
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context(), j, &out) }()
	eventually(t, "it is taken up", func() bool { return r.called("GET", "/queue") > 1 })
	r.call(t, "POST", "/api/jobs/"+id+"/cancel", "{}")
	if err := <-done; err != nil || len(out.Outputs()) != 1 || len(r.server.Prompts()) != 2 {
		t.Errorf("run = %v with %d results of %d prompts, want it done anew", err, len(out.Outputs()), len(r.server.Prompts()))
	}
}
