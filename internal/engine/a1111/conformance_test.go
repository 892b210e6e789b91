package a1111_test

import (
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/a1111/a1111test"
	"atelier/internal/engine/enginetest"
)

// example is a call to a server.
type example struct {
	options a1111test.Options
	job     func(t *testing.T) engine.Job
	seeded  bool
	// task means that the server has a task with our name, so that its
	// progress can be queried and it can be interrupted.
	task bool
}

var size = map[string]any{"width": int64(64), "height": float64(48)}

var examples = map[string]example{
	"txt2img": {
		options: a1111test.Options{Takes: 60 * time.Millisecond},
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "txt2img", "checkpoint": "sd15"}, map[string]any{"prompt": "a fox", "size": size, "steps": int64(20), "sampler": "Euler a"}, 2)
		},
		seeded: true, task: true,
	},
	"img2img": {
		options: a1111test.Options{Takes: 60 * time.Millisecond, Extra: 1, Grid: true},
		job: func(t *testing.T) engine.Job {
			j := job(t, map[string]any{"call": "img2img"}, map[string]any{"prompt": "a fox", "denoise": 0.5}, 6)
			j.Files = map[string][]engine.File{"picture": {picture()}, "mask": {picture()}}
			return j
		},
		seeded: true, task: true,
	},
	"upscale": {
		job: func(t *testing.T) engine.Job {
			j := job(t, map[string]any{"call": "upscale"}, map[string]any{"factor": 2.0, "upscaler": "R-ESRGAN 4x+"}, 1)
			j.Files = map[string][]engine.File{"picture": {picture()}}
			return j
		},
	},
	"txt2img of Forge": {
		options: a1111test.Options{Dialect: a1111test.Forge, Takes: 60 * time.Millisecond},
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox", "size": size}, 1)
		},
		seeded: true, task: true,
	},
	"txt2img of SD.Next": {
		options: a1111test.Options{Dialect: a1111test.SDNext},
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox", "size": size}, 2)
		},
		seeded: true,
	},
	"img2img of stable-diffusion.cpp": {
		options: a1111test.Options{Dialect: a1111test.SDCpp},
		job: func(t *testing.T) engine.Job {
			j := job(t, map[string]any{"call": "img2img", "checkpoint": "sd15"}, map[string]any{"prompt": "a fox"}, 6)
			j.Files = map[string][]engine.File{"picture": {picture()}}
			return j
		},
		seeded: true,
	},
	"a server that cannot be asked": {
		options: a1111test.Options{NoProgress: true},
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": "a fox", "size": size}, 2)
		},
		seeded: true,
	},
}

// TestConformance is not parallel, because the suite counts goroutines.
func TestConformance(t *testing.T) {
	for name, x := range examples {
		t.Run(name, func(t *testing.T) {
			w := begin(t, x.options)
			c := enginetest.Case{Engine: w.Engine, Job: x.job(t), Deterministic: true, Seeded: x.seeded, Settle: w.settle(t)}
			enginetest.CheckEngine(t, c)
			if c.Job.NumResults > 1 || x.task {
				enginetest.CheckProgress(t, c, x.task)
			}
		})
	}
}

// settle returns a function that waits until the server is idle, because tasks
// in its queue cannot be cancelled, and closes connections.
func (w fixture) settle(t *testing.T) func() {
	return func() {
		until(t, "the server rests", func() bool { return !w.Working() && w.Pending() == 0 })
		w.client.Close()
	}
}

// TestFaults is not parallel, because the suite counts goroutines.
func TestFaults(t *testing.T) {
	for name, x := range examples {
		t.Run(name, func(t *testing.T) {
			trials := map[enginetest.Fault]func(*testing.T) enginetest.Trial{}
			for _, f := range []enginetest.Fault{
				enginetest.Refuses, enginetest.Fails, enginetest.Busy, enginetest.Away, enginetest.Garbles, enginetest.Breaks,
				enginetest.Floods, enginetest.Drips, enginetest.Hangs, enginetest.TimeIsUp, enginetest.Restarts, enginetest.Fewer,
			} {
				trials[f] = func(t *testing.T) enginetest.Trial { return x.trial(t, f) }
			}
			never := map[enginetest.Fault]string{enginetest.Loses: "without tasks there is nothing to lose but the connection, which is to restart"}
			if x.task {
				trials[enginetest.Loses] = func(t *testing.T) enginetest.Trial { return x.trial(t, enginetest.Loses) }
			}
			enginetest.CheckFaults(t, trials, never)
		})
	}
}

func (x example) trial(t *testing.T, f enginetest.Fault) enginetest.Trial {
	w := begin(t, x.options)
	tr := enginetest.Trial{Engine: w.Engine, Job: x.job(t), Settle: w.client.Close}
	stuck := f == enginetest.Hangs || f == enginetest.TimeIsUp
	if x.task {
		tr.Idle = func() bool { return !w.Working() }
	} else if stuck { // nobody may stop it, as it may be somebody else's
		tr.Settle = func() { w.Stop(); w.client.Close() }
	}
	w.Set(f)
	switch f {
	case enginetest.Away:
		w.Stop()
	case enginetest.Restarts:
		tr.After = tr.Job
	}
	return tr
}
