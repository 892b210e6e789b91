package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/client"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/testkit/servers"
	"atelier/internal/testkit/watch"
)

// portrait is a workflow with what people choose and what stays as it is.
const portrait = `{
  "3": {"class_type": "KSampler", "inputs": {"seed": 156680208700286, "steps": 20, "cfg": 7.5, "sampler_name": "euler", "scheduler": "normal",
    "denoise": 1, "model": ["4", 0], "positive": ["6", 0], "negative": ["7", 0], "latent_image": ["5", 0]}},
  "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "dreamscape_xl.safetensors"}},
  "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 512, "height": 384, "batch_size": 1}},
  "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a lighthouse", "clip": ["4", 1]}},
  "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "blurry", "clip": ["4", 1]}},
  "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
  "9": {"class_type": "SaveImage", "inputs": {"filename_prefix": "atelier/portrait", "images": ["8", 0]}}
}`

// studio is an installation in front of a ComfyUI server whose workflow was
// imported.
type studio struct {
	*site
	comfy  *comfyuitest.Server
	node   *node
	client *client.Client
	tool   *client.ToolDetail
}

func newStudio(t *testing.T, s *site, step time.Duration) *studio {
	t.Helper()
	return newStudioWith(t, s, step, func(string) {})
}

// newStudioWith is newStudio with a function that changes the imported
// manifests in their folder.
func newStudioWith(t *testing.T, s *site, step time.Duration, change func(manifests string)) *studio {
	t.Helper()
	servers.NeedShippedPrograms(t)
	st := &studio{site: s, comfy: comfyuitest.Start(t, comfyuitest.Options{Step: step})}
	dir := t.TempDir()
	manifests := filepath.Join(dir, "tools")
	write(t, dir, "backends.yaml", "studio: {engine: comfyui, url: \""+st.comfy.URL+"\"}\n")
	write(t, dir, "portrait.json", portrait)
	s.env = append(s.env, "ATELIER_CATALOG_BUILTIN=false", "ATELIER_BACKENDS="+filepath.Join(dir, "backends.yaml"), "ATELIER_RUNS_RETRY=100ms,200ms",
		"ATELIER_ENGINES_PROBE=200ms", "ATELIER_RUNS_LEASE=3s")
	s.do("tools", "import", "studio", "--workflow", filepath.Join(dir, "portrait.json"), "--into", manifests)
	change(manifests)
	if v := s.do("tools", "lint", manifests); v["tools"] != 1.0 {
		t.Fatalf("lint = %v", v)
	}
	s.env = append(s.env, "ATELIER_TOOLS="+manifests)
	s.do("tools", "doctor")
	token := s.token("artist@example.com")
	s.grant("--email", "artist@example.com", 100)
	st.node = s.serve()
	st.node.token = token
	st.client = connect(t, st.node.url, token)
	all := listTools(t, st.client)
	if len(all) != 1 {
		t.Fatalf("tools = %v", all)
	}
	var err error
	if st.tool, err = st.client.Tools.Get(t.Context(), all[0].ID); err != nil {
		t.Fatal(err)
	}
	return st
}

// begin starts a run of so many steps.
func (st *studio) begin(prompt string, steps int) *client.Run {
	st.t.Helper()
	run, err := startRun(st.t.Context(), st.client, st.tool, 1, map[string]any{"prompt": prompt, "steps": steps})
	if err != nil {
		st.t.Fatal(err)
	}
	return run
}

// follow waits for the end of a run and gives the steps of its progress.
func (st *studio) follow(id string, each func(float64)) (*client.Run, []float64) {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(st.t.Context(), 5*time.Minute)
	defer cancel()
	var seen []float64
	run, err := st.client.Runs.Wait(ctx, id, watchFraction(func(f float64) {
		seen = append(seen, f)
		if each != nil {
			each(f)
		}
	}))
	if err != nil {
		st.t.Fatal(err)
	}
	return run, seen
}

// released fails the test unless nothing is held and so much was charged.
func (st *studio) released(charged float64) {
	st.t.Helper()
	me := st.node.json("/api/v2/me")
	b := me["accounts"].([]any)[0].(map[string]any)["balance"].(map[string]any)
	if b["held"] != 0.0 || b["tokens"] != 100-charged {
		st.t.Errorf("balance = %v, want %v charged and nothing held", b, charged)
	}
	st.check()
}

// download gives a result's bytes.
func (st *studio) download(o client.Output) []byte {
	st.t.Helper()
	b, err := readOutput(st.t.Context(), st.client, o)
	if err != nil {
		st.t.Fatal(err)
	}
	return b
}

// TestAWorkflow takes a ComfyUI workflow from its file to a picture, with the
// steps of its progress, and ends another in the middle.
func TestAWorkflow(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		st := newStudio(t, s, 50*time.Millisecond)
		run, seen := st.follow(st.begin("a red fox", 40).RequestID, nil)
		if run.Status != "succeeded" || len(run.Outputs) != 1 {
			t.Fatalf("run = %+v %v", run, run.Error)
		}
		if len(seen) < 3 {
			t.Errorf("progress = %v, want steps on the way", seen)
		}
		picture := st.download(run.Outputs[0])
		for _, want := range []string{"trainedAlgorithmicMedia", run.RequestID, st.tool.Name} {
			if !bytes.Contains(picture, []byte(want)) {
				t.Errorf("the picture does not say %q", want)
			}
		}
		if bytes.Contains(picture, []byte("a red fox")) {
			t.Error("the picture tells what was asked for")
		}
		graph := string(st.comfy.Prompts()[0].Graph)
		if !strings.Contains(graph, "a red fox") || !strings.Contains(graph, "atelier/portrait") || strings.Contains(graph, "a lighthouse") {
			t.Errorf("graph = %s, want what was bound replaced, and the rest as it was", graph)
		}
		st.released(1)

		var once sync.Once
		long := st.begin("a river", 150)
		run, _ = st.follow(long.RequestID, func(float64) {
			once.Do(func() {
				if _, err := st.client.Runs.Cancel(t.Context(), long.RequestID); err != nil {
					t.Error(err)
				}
			})
		})
		if run.Status != "cancelled" {
			t.Errorf("run = %+v", run)
		}
		watch.Until(t, "the server stops working", st.comfy.Idle)
		st.released(1)
	})
}

// TestAServerRestarts restarts the model server in the middle of a run: what it
// did is lost, and the run ends all the same.
func TestAServerRestarts(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		st := newStudio(t, s, 20*time.Millisecond)
		var once sync.Once
		run, _ := st.follow(st.begin("a storm", 100).RequestID, func(float64) {
			once.Do(func() {
				if err := st.comfy.Restart(); err != nil {
					t.Error(err)
				}
			})
		})
		if run.Status != "succeeded" && (run.Error == nil || run.TokensCharged != 0) {
			t.Errorf("run = %+v", run)
		}
		st.released(float64(run.TokensCharged))
	})
}

// TestAServerGoesAway takes the model server away in the middle of a run. The
// run waits, whoever asks is told to wait longer, and it ends once the server is
// back.
func TestAServerGoesAway(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		st := newStudio(t, s, 20*time.Millisecond)
		made := st.begin("a desert", 100)
		watch.Until(t, "the server works", func() bool { return len(st.comfy.Prompts()) > 0 })
		st.comfy.Stop()
		watch.Until(t, "whoever asks is told to wait longer", func() bool {
			run, err := st.client.Runs.Get(t.Context(), made.RequestID)
			return err == nil && run.Status == "pending" && run.RetryAfterSeconds == 10
		})
		if err := st.comfy.Resume(); err != nil {
			t.Fatal(err)
		}
		run, _ := st.follow(made.RequestID, nil)
		if run.Status != "succeeded" {
			t.Errorf("run = %+v %v", run, run.Error)
		}
		st.released(1)
	})
}

// TestAWorkerFindsItsWorkAgain kills the program while the model server works:
// the next one takes up what goes on there instead of starting it again.
func TestAWorkerFindsItsWorkAgain(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		st := newStudio(t, s, 50*time.Millisecond)
		made := st.begin("a forest", 100)
		watch.Until(t, "the server works", func() bool { return len(st.comfy.Prompts()) > 0 })
		st.node.kill()
		token := st.node.token
		st.node = s.serve()
		st.node.token = token
		st.client = connect(t, st.node.url, token)
		run, _ := st.follow(made.RequestID, nil)
		if run.Status != "succeeded" || len(run.Outputs) != 1 {
			t.Errorf("run = %+v %v", run, run.Error)
		}
		if n := len(st.comfy.Prompts()); n != 1 {
			t.Errorf("the server was given %d prompts, want 1", n)
		}
		st.released(1)
	})
}

// TestBackendsThatAreWrong starts the program with a file that makes no sense.
func TestBackendsThatAreWrong(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "backends.yaml")
	if err := os.WriteFile(file, []byte("studio: {engine: magic}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"ATELIER_BACKENDS=" + file}
	out, err := s.command(t.Context(), "serve", "--listen", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "studio: engine: must be one of") {
		t.Errorf("serve = %v: %s", err, out)
	}
}
