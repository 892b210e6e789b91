package openai_test

import (
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai/openaitest"
)

// example is a call to a server of one dialect.
type example struct {
	options openaitest.Options
	job     func(t *testing.T) engine.Job
	// seeded servers promise equal results for equal seeds.
	seeded, alike bool
	// signs tells that the call tells progress on the way, previews that it
	// shows some.
	signs, previews bool
	// stops tells that the server stops working when the job ends.
	stops bool
}

var square = map[string]any{"width": int64(256), "height": float64(256)}

// examples are the calls, each with a server that has its own way of it.
var examples = map[string]example{
	"images of OpenAI": {
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "images", "model": "gpt-image-1"}, map[string]any{"prompt": "a fox", "quality": ""}, 2)
		},
		signs: true, stops: true,
	},
	"images of OpenAI that stream": {
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "images", "model": "gpt-image-1", "stream": true}, map[string]any{"prompt": "a fox"}, 2)
		},
		signs: true, previews: true, stops: true,
	},
	"images of OpenAI that lie elsewhere": {
		options: openaitest.Options{Elsewhere: true},
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "images", "model": "dall-e-3", "batch": 1}, map[string]any{"prompt": "a fox"}, 2)
		},
		signs: true, stops: true,
	},
	"images of vLLM-Omni": {
		options: openaitest.Options{Dialect: openaitest.VLLMOmni},
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "images", "model": "Qwen/Qwen-Image", "seed": "seed", "response_format": "b64_json"}, map[string]any{"prompt": "a fox", "size": square, "steps": int64(8), "cfg": 4.5}, 3)
		},
		seeded: true, signs: true, stops: true,
	},
	"edits of SGLang": {
		options: openaitest.Options{Dialect: openaitest.SGLang},
		job: func(t *testing.T) engine.Job {
			j := job(t, map[string]any{"call": "edits", "model": "Qwen/Qwen-Image-Edit", "seed": "seed"}, map[string]any{"prompt": "a fox", "size": square}, 2)
			j.Files = map[string][]engine.File{"pictures": {picture(), picture()}}
			return j
		},
		seeded: true, signs: true, stops: true,
	},
	"images of LocalAI": {
		options: openaitest.Options{Dialect: openaitest.LocalAI},
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "images", "model": "flux.1-schnell", "dialect": "localai", "seed": "seed"}, map[string]any{"prompt": "a fox | a hen", "size": square, "steps": int64(4)}, 3)
		},
		seeded: true, signs: true, stops: true,
	},
	"images of stable-diffusion.cpp": {
		options: openaitest.Options{Dialect: openaitest.SDCpp},
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "images"}, map[string]any{"prompt": "a fox", "size": square}, 2)
		},
		alike: true, signs: true, stops: true,
	},
	"speech of OpenAI": {
		job: func(t *testing.T) engine.Job {
			return job(t, map[string]any{"call": "speech", "model": "gpt-4o-mini-tts", "response_format": "wav"}, map[string]any{"text": "Good evening.", "voice": "alloy", "speed": 1.0}, 1)
		},
		alike: true, stops: true,
	},
	"videos of vLLM-Omni": {
		options: openaitest.Options{Dialect: openaitest.VLLMOmni},
		job: func(t *testing.T) engine.Job {
			j := job(t, map[string]any{"call": "videos", "model": "Wan-AI/Wan2.2", "seed": "seed"}, map[string]any{"prompt": "a fox", "seconds": 4.0, "size": square}, 2)
			j.Files = map[string][]engine.File{"picture": {picture()}}
			return j
		},
		seeded: true, signs: true, stops: true,
	},
	"videos as JSON": {
		options: openaitest.Options{Dialect: openaitest.SGLang},
		job: func(t *testing.T) engine.Job {
			j := job(t, map[string]any{"call": "videos", "model": "Wan-AI/Wan2.1-T2V", "seed": "seed", "json": true}, map[string]any{"prompt": "a fox", "seconds": int64(4)}, 1)
			j.Files = map[string][]engine.File{"picture": {picture()}}
			return j
		},
		seeded: true, signs: true,
	},
	"video-sync of LocalAI": {
		options: openaitest.Options{Dialect: openaitest.LocalAI},
		job: func(t *testing.T) engine.Job {
			j := job(t, map[string]any{"call": "video-sync", "model": "ltx-video", "seed": "seed"}, map[string]any{"prompt": "a fox", "size": square, "steps": int64(4)}, 2)
			j.Files = map[string][]engine.File{"picture": {picture()}}
			return j
		},
		seeded: true, signs: true, stops: true,
	},
}

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	for name, x := range examples {
		t.Run(name, func(t *testing.T) {
			w := begin(t, x.options)
			c := enginetest.Case{Engine: w.Engine, Job: x.job(t), Deterministic: x.seeded || x.alike, Seeded: x.seeded, Settle: w.client.Close}
			enginetest.CheckEngine(t, c)
			if x.signs {
				enginetest.CheckProgress(t, c, x.previews)
			}
		})
	}
}

// Not parallel, as above.
func TestFaults(t *testing.T) {
	for name, x := range examples {
		t.Run(name, func(t *testing.T) {
			trials := map[enginetest.Fault]func(*testing.T) enginetest.Trial{}
			for _, f := range []enginetest.Fault{
				enginetest.Refuses, enginetest.Fails, enginetest.Busy, enginetest.Away, enginetest.Loses, enginetest.Garbles, enginetest.Breaks,
				enginetest.Floods, enginetest.Drips, enginetest.Hangs, enginetest.TimeIsUp, enginetest.Restarts, enginetest.Fewer,
			} {
				trials[f] = func(t *testing.T) enginetest.Trial { return x.trial(t, f) }
			}
			enginetest.CheckFaults(t, trials, nil)
		})
	}
}

func (x example) trial(t *testing.T, f enginetest.Fault) enginetest.Trial {
	w := begin(t, x.options)
	tr := enginetest.Trial{Engine: w.Engine, Job: x.job(t), Settle: w.client.Close}
	if x.stops {
		tr.Idle = func() bool { return w.Working() == 0 }
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

func TestAServerThatIsAwayDoesNotProbe(t *testing.T) {
	t.Parallel()
	w := begin(t, openaitest.Options{})
	if err := w.Probe(t.Context()); err != nil {
		t.Errorf("probe = %v, want nil", err)
	}
	w.Set(enginetest.Busy)
	if e := engine.AsError(w.Probe(t.Context())); e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("probe of a busy server = %v, want one that may be over soon", e)
	}
	w.Stop()
	if e := engine.AsError(w.Probe(t.Context())); e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("probe of no server = %v, want one that may be over soon", e)
	}
}
