package enginetest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
	"atelier/internal/engine/a1111"
	"atelier/internal/engine/a1111/a1111test"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/cog"
	"atelier/internal/engine/cog/cogtest"
	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/execengine"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
	"atelier/internal/engine/openai"
	"atelier/internal/engine/openai/openaitest"
	"atelier/internal/engine/replicate"
	"atelier/internal/engine/replicate/replicatetest"
)

type dict = map[string]any

// connect returns a client to which hosts on this machine count as public. auth
// is the Authorization header.
func connect(t *testing.T, url, auth string) *backend.Client {
	t.Helper()
	o := backend.Options{URL: url, Guard: netguard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})}
	if auth != "" {
		o.Header = http.Header{"Authorization": {auth}}
	}
	c, err := backend.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// jobs returns a function that makes jobs with the given engine.with section.
// change adds what a tool needs besides a prompt.
func jobs(t *testing.T, with dict, change func(j *engine.Job)) func(prompt string) engine.Job {
	t.Helper()
	text, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	return func(prompt string) engine.Job {
		j := engine.Job{
			With:       string(text),
			Values:     dict{"prompt": prompt},
			Seed:       7,
			NumResults: 2,
			OutputType: "IMG",
			MimeTypes:  []string{"image/png"},
		}
		if change != nil {
			change(&j)
		}
		return j
	}
}

const poll = 10 * time.Millisecond

// TestIsolation has two people use every adapter with one server, and tries to
// get one person's picture with the other's job.
func TestIsolation(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) enginetest.Isolation{
		"comfyui": openComfyUI,
		"a1111": func(t *testing.T) enginetest.Isolation {
			s := a1111test.Start(t, a1111test.Options{User: "u", Password: "p", Takes: 20 * time.Millisecond})
			c := connect(t, s.URL, "Basic "+base64.StdEncoding.EncodeToString([]byte("u:p")))
			return enginetest.Isolation{Engine: a1111.New(c, a1111.Options{PollInterval: poll}), Job: jobs(t, dict{"call": "txt2img"}, withSize)}
		},
		"openai pictures": openOpenAI(openaitest.VLLMOmni, dict{"call": "images", "model": "Qwen/Qwen-Image", "seed": "seed", "response_format": "b64_json"}, withSize),
		"openai edits": openOpenAI(openaitest.SGLang, dict{"call": "edits", "model": "Qwen/Qwen-Image-Edit", "seed": "seed"}, func(j *engine.Job) {
			withSize(j)
			j.Files = map[string][]engine.File{"pictures": {enginetest.FileFromBytes("image/png", enginetest.StripedPNG(32, 32, "picture"))}}
		}),
		"openai videos": openOpenAI(openaitest.VLLMOmni, dict{"call": "videos", "model": "Wan-AI/Wan2.2", "seed": "seed"}, func(j *engine.Job) { j.OutputType = "VID" }),
		"openai video files": openOpenAI(openaitest.LocalAI, dict{"call": "video-sync", "model": "ltx-video", "seed": "seed"}, func(j *engine.Job) {
			withSize(j)
			j.OutputType = "VID"
		}),
		"cog": func(t *testing.T) enginetest.Isolation {
			s := cogtest.Start(t, cogtest.Options{Slots: 1})
			return enginetest.Isolation{
				Engine: retrying{cog.New(connect(t, s.URL, ""), cog.Options{})},
				Job:    jobs(t, dict{"results": "num_outputs", "seed": "seed", "seed_max": 2147483647}, nil),
			}
		},
		"replicate": func(t *testing.T) enginetest.Isolation {
			s := replicatetest.Start(t, replicatetest.Options{})
			e := replicate.New(connect(t, s.URL, "Bearer "+s.Token), replicate.Options{PollInterval: poll, PollTimeout: time.Minute, Now: time.Now})
			return enginetest.Isolation{Engine: e, Job: jobs(t, dict{"model": "acme/painter", "seed": "seed"}, nil)}
		},
		"fal": func(t *testing.T) enginetest.Isolation {
			s := faltest.Start(t, faltest.Options{})
			storage := connect(t, s.Storage, "Key "+s.Key)
			e := fal.New(connect(t, s.URL, "Key "+s.Key), fal.Options{PollInterval: poll, PollTimeout: time.Minute, Storage: storage})
			return enginetest.Isolation{Engine: e, Job: jobs(t, dict{"endpoint": faltest.Painter, "seed": "seed"}, nil)}
		},
		"exec": openProgram,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.CheckIsolation(t, open(t))
		})
	}
}

func withSize(j *engine.Job) {
	j.Values["size"] = dict{"width": int64(64), "height": int64(48)}
}

// openComfyUI has a server with a large cache, whose output folder is emptied
// again and again, so that it reuses the names of files.
func openComfyUI(t *testing.T) enginetest.Isolation {
	s := comfyuitest.Start(t, comfyuitest.Options{CachedPrompts: 100})
	node := func(class string, inputs dict) dict { return dict{"class_type": class, "inputs": inputs} }
	workflow := dict{
		"3": node("KSampler", dict{
			"seed": 1, "steps": 2, "cfg": 7, "sampler_name": "euler", "scheduler": "normal", "denoise": 1,
			"model": []any{"4", 0}, "positive": []any{"6", 0}, "negative": []any{"6", 0}, "latent_image": []any{"5", 0},
		}),
		"4": node("CheckpointLoaderSimple", dict{"ckpt_name": "dreamscape_xl.safetensors"}),
		"5": node("EmptyLatentImage", dict{"width": 64, "height": 48, "batch_size": 1}),
		"6": node("CLIPTextEncode", dict{"text": "a lighthouse", "clip": []any{"4", 1}}),
		"8": node("VAEDecode", dict{"samples": []any{"3", 0}, "vae": []any{"4", 2}}),
		"9": node("SaveImage", dict{"filename_prefix": "picture", "images": []any{"8", 0}}),
	}
	with := dict{"workflow": workflow, "bind": dict{"prompt": []string{"6.text"}, "seed": []string{"3.seed"}}}
	return enginetest.Isolation{
		Engine: comfyui.New(connect(t, s.URL, ""), comfyui.Options{PollInterval: poll}),
		Job:    jobs(t, with, nil),
		Reuse:  s.EmptyOutputs,
	}
}

func openOpenAI(dialect openaitest.Dialect, with dict, change func(*engine.Job)) func(t *testing.T) enginetest.Isolation {
	return func(t *testing.T) enginetest.Isolation {
		s := openaitest.Start(t, openaitest.Options{Dialect: dialect, Key: "sk-for-tests"})
		e := openai.New(connect(t, s.URL, "Bearer sk-for-tests"), openai.Options{PollInterval: poll})
		return enginetest.Isolation{Engine: e, Job: jobs(t, with, change)}
	}
}

// openProgram has a program that repeats its prompt. All its runs use the same
// file name.
func openProgram(t *testing.T) enginetest.Isolation {
	e, err := execengine.New(execengine.Options{
		Command: []string{"/bin/sh", "-c", `sed -n 's/.*"prompt":"\([^"]*\)".*/\1/p' > out/result.txt`},
		Folder:  t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Isolation{Engine: e, Job: jobs(t, dict{}, func(j *engine.Job) {
		j.OutputType = "TEXT"
		j.MimeTypes = []string{"text/plain"}
		j.NumResults = 1
	})}
}

// retrying is an engine whose server refuses jobs while it is busy, so that
// they are tried again.
type retrying struct{ engine.Engine }

func (r retrying) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	for {
		err := r.Engine.Run(ctx, j, out)
		if err == nil || ctx.Err() != nil || !engine.AsError(err).Transient {
			return err
		}
		j.Try++
	}
}
