package main

import (
	"bytes"
	"testing"

	"atelier/client"
)

// TestStepsAreShown has a flow whose second step starts while it is watched.
func TestStepsAreShown(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	d := newRunDisplay(&program{installation: installation{streams: streams{stderr: &stderr}}}, false, nil)
	d.begin(1, "poster")
	w := d.watch(1, nil)
	queued := client.RunStageQueued
	running := client.RunStageRunning
	half := 0.5

	w.Status(&client.Run{RunRecord: client.RunRecord{Stage: &queued}})
	w.Status(&client.Run{RunRecord: client.RunRecord{
		Stage: &running,
		Steps: []client.RunStep{{Step: "draw", Stage: &running}, {Step: "tune", Stage: &queued}},
	}})
	w.Step(client.RunStep{Step: "draw"})
	w.Step(client.RunStep{Step: "enlarge\x1b", Stage: &running})
	w.Progress(client.RunProgress{Stage: running, Progress: &half})

	want := "poster: queued\nposter: running draw\nposter: running enlarge\ufffd 50%\n"
	if got := stderr.String(); got != want {
		t.Errorf("shown = %q, want %q", got, want)
	}
}
