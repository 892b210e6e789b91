package enginetest

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"atelier/internal/engine"
)

// Isolation is an engine that two people use at the same time, for
// CheckIsolation. Equal jobs must have equal results.
type Isolation struct {
	Engine engine.Engine
	// Job returns a new job whose results depend on the prompt.
	Job func(prompt string) engine.Job
	// Reuse makes the server reuse the names and ids of earlier results, as far
	// as the real server could, for example because an operator has emptied its
	// output folder. It is nil if the server never reuses any.
	Reuse func()
}

// The prompts of the two people in CheckIsolation.
const (
	annasPrompt = "a fox in the snow"
	bertsPrompt = "the secret of a company"
)

// CheckIsolation checks that nobody gets the result of another person's job:
// when the jobs follow each other, when they run at the same time, when they
// are equal, and when a worker resumes a job whose results the server has
// replaced.
func CheckIsolation(t *testing.T, i Isolation) {
	t.Helper()
	c := Case{Engine: i.Engine}
	runs := 0
	newJob := func(prompt string) engine.Job {
		c.Job = i.Job(prompt)
		runs++
		return c.newJob(t, runs)
	}
	reuse := func() {
		if i.Reuse != nil {
			i.Reuse()
		}
	}
	first := c.runToEnd(t, newJob(annasPrompt))
	reuse()
	own := map[string][][]byte{annasPrompt: first.Outputs(), bertsPrompt: c.runToEnd(t, newJob(bertsPrompt)).Outputs()}
	if slices.EqualFunc(own[annasPrompt], own[bertsPrompt], bytes.Equal) {
		t.Fatal("both people have the same results, so this proves nothing")
	}
	check := func(when, prompt string, got [][]byte) {
		t.Helper()
		for _, result := range got {
			for other, theirs := range own {
				if other != prompt && slices.ContainsFunc(theirs, func(b []byte) bool { return bytes.Equal(b, result) }) {
					t.Errorf("%s: one person's result was delivered to another", when)
					return
				}
			}
		}
		if !slices.EqualFunc(got, own[prompt], bytes.Equal) {
			t.Errorf("%s: the results are not those of the job", when)
		}
	}

	// From the third job on, the server reuses the names of earlier results, so
	// that Bert's results get the names of Anna's first ones.
	for n, prompt := range []string{annasPrompt, bertsPrompt, bertsPrompt, annasPrompt} {
		if n == 2 {
			reuse()
		}
		check("one after the other", prompt, c.runToEnd(t, newJob(prompt)).Outputs())
	}

	prompts := []string{annasPrompt, bertsPrompt, annasPrompt, bertsPrompt, bertsPrompt, annasPrompt}
	recorders := make([]Recorder, len(prompts))
	jobs := make([]engine.Job, len(prompts))
	for n, prompt := range prompts {
		jobs[n] = newJob(prompt)
	}
	var all sync.WaitGroup
	for n := range prompts {
		all.Go(func() {
			if err := i.Engine.Run(t.Context(), jobs[n], &recorders[n]); err != nil {
				t.Errorf("at the same time: run: %v", err)
			}
		})
	}
	all.Wait()
	for n, prompt := range prompts {
		check("at the same time", prompt, recorders[n].Outputs())
	}

	// The first worker died after the server was done.
	reuse()
	check("before it is resumed", bertsPrompt, c.runToEnd(t, newJob(bertsPrompt)).Outputs())
	resumed := newJob(annasPrompt)
	resumed.Attempt = 2
	resumed.SavedCheckpoint = first.LastCheckpoint()
	var r Recorder
	if err := c.runJob(t.Context(), t, resumed, &r); err == nil || len(r.Outputs()) > 0 {
		check("resumed", annasPrompt, r.Outputs()) // the job may also fail, because its results are gone
	}
}
