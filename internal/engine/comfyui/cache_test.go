package comfyui_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"atelier/internal/engine"
	"atelier/internal/engine/comfyui/comfyuitest"
)

// TestNobodyGetsAnothersPicture has two people use one server. Its output
// folder is emptied between them, so that it counts from 1 again, and its cache
// still has the first picture with the name that is now the second one's.
func TestNobodyGetsAnothersPicture(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{CachedPrompts: 10})
	annas := job(t)
	annas.Values["prompt"] = "a fox"
	first := r.results(t, annas).Outputs()[0]

	r.server.EmptyOutputs()
	berts := job(t)
	berts.Values["prompt"] = "a secret"
	secret := r.results(t, berts).Outputs()[0]
	if bytes.Equal(first, secret) {
		t.Fatal("both jobs have the same picture, so this proves nothing")
	}

	again := r.results(t, annas).Outputs()[0]
	switch {
	case bytes.Equal(again, secret):
		t.Error("one person's picture was delivered to another")
	case !bytes.Equal(again, first):
		t.Error("an equal job gave another picture")
	}
}

// TestARepeatAfterTheFileIsGone empties the output folder of a server with
// default caches, which answers an equal job with the name of the deleted file.
func TestARepeatAfterTheFileIsGone(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	first := r.results(t, job(t)).Outputs()[0]
	r.server.EmptyOutputs()
	if again := r.results(t, job(t)).Outputs()[0]; !bytes.Equal(again, first) {
		t.Error("an equal job gave another picture")
	}
}

// TestAResumedPromptDoesNotGetAnothersFile has a worker die after the server
// was done. Before the next worker fetches the file, its name belongs to another
// client of the server.
func TestAResumedPromptDoesNotGetAnothersFile(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	out := r.results(t, job(t))
	r.server.EmptyOutputs()
	other := portrait()
	inputs(other, "6")["text"] = "a secret"
	r.send(t, other, "somebody", uuid.NewString())
	eventually(t, "the other picture is saved", r.server.Idle)

	j := job(t)
	j.Attempt = 2
	j.SavedCheckpoint = out.LastCheckpoint()
	if again := r.results(t, j).Outputs()[0]; !bytes.Equal(again, out.Outputs()[0]) {
		t.Error("the file of another client was delivered")
	}
}

// TestOnlySaversRunAgain counts the sampling steps of an equal job: the server
// takes the expensive part from its cache.
func TestOnlySaversRunAgain(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	r.results(t, job(t))
	if n := len(r.results(t, job(t)).Previews()); n != 0 {
		t.Errorf("previews = %d, want none: the sampler has nothing to do", n)
	}
	first := inputs(r.sent(t, 0), "9")
	second := inputs(r.sent(t, 1), "9")
	if first["atelier_attempt"] == second["atelier_attempt"] || first["atelier_attempt"] == nil {
		t.Errorf("attempts = %v and %v, want a fresh value for each prompt", first["atelier_attempt"], second["atelier_attempt"])
	}
	if first["filename_prefix"] == second["filename_prefix"] || !strings.HasPrefix(fmt.Sprint(second["filename_prefix"]), "atelier/portrait") {
		t.Errorf("prefixes = %v and %v, want the workflow's with a fresh end", first["filename_prefix"], second["filename_prefix"])
	}
	for id, node := range r.sent(t, 1) {
		if _, marked := node.(dict)["inputs"].(dict)["atelier_attempt"]; marked != (id == "9") {
			t.Errorf("node %s: marked %v, want only the saver", id, marked)
		}
	}
}

// TestStaleResultsAreRefused has a server answer from its cache all the same:
// the prompt is sent once more, and then the job fails.
func TestStaleResultsAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		stale   int
		prompts int // in all
		fails   bool
	}{{"once", 1, 3, false}, {"always", 100, 3, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, comfyuitest.Options{})
			first := r.results(t, job(t)).Outputs()[0]
			r.server.Change(func(f *comfyuitest.Faults) { f.Stale = tt.stale })
			if tt.fails {
				e := r.refusal(t, job(t))
				if e.Code != engine.Invalid || e.Transient || !strings.Contains(e.Message, "an earlier job") {
					t.Errorf("failure = %+v", e)
				}
			} else if again := r.results(t, job(t)).Outputs()[0]; !bytes.Equal(again, first) {
				t.Error("an equal job gave another picture")
			}
			if n := len(r.server.Prompts()); n != tt.prompts {
				t.Errorf("prompts = %d, want %d", n, tt.prompts)
			}
		})
	}
}
