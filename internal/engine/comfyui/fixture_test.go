package comfyui_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
)

type dict = map[string]any

// rig is a server and an engine for it.
type rig struct {
	*comfyui.Engine
	server *comfyuitest.Server
	client *backend.Client
}

func start(t *testing.T, o comfyuitest.Options) rig {
	t.Helper()
	return connect(t, comfyuitest.Start(t, o))
}

func connect(t *testing.T, s *comfyuitest.Server) rig {
	t.Helper()
	return rig{server: s}.to(t, s.URL)
}

// to points the engine at an address.
func (r rig) to(t *testing.T, url string) rig {
	t.Helper()
	c, err := backend.New(backend.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r.client, r.Engine = c, comfyui.New(c, comfyui.Options{PollInterval: 100 * time.Millisecond})
	return r
}

// portrait is a plain workflow from text to picture.
func portrait() dict {
	return dict{
		"3": graphNode("KSampler", dict{
			"seed": json.Number("18446744073709551615"), "steps": 4, "cfg": 7.5, "sampler_name": "euler", "scheduler": "normal", "denoise": 1,
			"model": link("4", 0), "positive": link("6", 0), "negative": link("7", 0), "latent_image": link("5", 0),
		}),
		"4": graphNode("CheckpointLoaderSimple", dict{"ckpt_name": "dreamscape_xl.safetensors"}),
		"5": graphNode("EmptyLatentImage", dict{"width": 64, "height": 48, "batch_size": 1}),
		"6": graphNode("CLIPTextEncode", dict{"text": "a lighthouse", "clip": link("4", 1)}),
		"7": graphNode("CLIPTextEncode", dict{"text": "blurry, text", "clip": link("4", 1)}),
		"8": graphNode("VAEDecode", dict{"samples": link("3", 0), "vae": link("4", 2)}),
		"9": graphNode("SaveImage", dict{"filename_prefix": "atelier/portrait", "images": link("8", 0)}),
	}
}

// reworked is a workflow that starts with a picture.
func reworked() dict {
	g := portrait()
	delete(g, "5")
	g["10"] = graphNode("LoadImage", dict{"image": "example.png"})
	g["11"] = graphNode("VAEEncode", dict{"pixels": link("10", 0), "vae": link("4", 2)})
	inputs(g, "3")["latent_image"] = link("11", 0)
	inputs(g, "3")["denoise"] = 0.6
	return g
}

func graphNode(class string, in dict) dict { return dict{"class_type": class, "inputs": in} }

func link(id string, slot int) []any { return []any{id, slot} }

func inputs(g dict, id string) dict { return g[id].(dict)["inputs"].(dict) }

var bound = dict{"prompt": []string{"6.text"}, "seed": []string{"3.seed"}, "size.width": []string{"5.width"}, "size.height": []string{"5.height"}}

// with makes the engine's part of a manifest. more are further bindings.
func with(t *testing.T, g dict, bind dict, outputs ...string) string {
	t.Helper()
	w := dict{"workflow": g, "bind": bind}
	if outputs != nil {
		w["outputs"] = outputs
	}
	return text(t, w)
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func and(a, b dict) dict {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// job is one for the portrait.
func job(t *testing.T) engine.Job {
	t.Helper()
	return engine.Job{
		RunID: "run", Attempt: 1, With: with(t, portrait(), bound), Values: dict{"prompt": "a fox", "size": dict{"width": int64(32), "height": float64(24)}},
		Seed: 7, NumResults: 1, OutputType: "IMG", MimeTypes: []string{"image/png"},
	}
}

// reworking returns a job with a file.
func reworking(t *testing.T) engine.Job {
	t.Helper()
	j := job(t)
	j.With = with(t, reworked(), dict{"prompt": []string{"6.text"}, "seed": []string{"3.seed"}, "picture": []string{"10.image"}})
	j.Files = map[string][]engine.File{"picture": {enginetest.FileFromBytes("image/png", drawn(20, 12))}}
	return j
}

func drawn(w, h int) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	m.Set(1, 1, color.NRGBA{200, 10, 10, 255})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// results runs a job that has to succeed.
func (r rig) results(t *testing.T, j engine.Job) *enginetest.Recorder {
	t.Helper()
	return enginetest.MustSucceed(t, r, j)
}

// refusal runs a job that has to fail.
func (r rig) refusal(t *testing.T, j engine.Job) *engine.Error {
	t.Helper()
	return enginetest.MustFail(t, r, j)
}

// sent returns the graph of the nth prompt that the server accepted.
func (r rig) sent(t *testing.T, n int) dict {
	t.Helper()
	all := r.server.Prompts()
	if len(all) <= n {
		t.Fatalf("prompts = %d, want more than %d", len(all), n)
	}
	var g dict
	d := json.NewDecoder(bytes.NewReader(all[n].Graph))
	d.UseNumber()
	if err := d.Decode(&g); err != nil {
		t.Fatal(err)
	}
	return g
}

func (r rig) called(method, path string) (n int) {
	for _, c := range r.server.Calls() {
		if c.Method == method && c.Path == path {
			n++
		}
	}
	return n
}

// eventually waits until is returns true. It may be called from any goroutine.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s: not within 20s", what)
			return
		}
	}
}

func size(t *testing.T, b []byte) string {
	t.Helper()
	c, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return fmt.Sprintf("%s %dx%d", format, c.Width, c.Height)
}
