package comfyui_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/comfyui/workflowimport"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/manifestdraft"
)

func (r rig) draft(t *testing.T, g dict) manifestdraft.Tool {
	t.Helper()
	tool, _, err := r.ImportTool(t.Context(), workflowimport.Request{Name: "Portrait", Data: []byte(text(t, g)), File: "portrait.json", Engine: "studio"})
	if err != nil {
		t.Fatalf("import: %v", err)
	}
	return tool
}

// readManifest writes a draft and reads it as the catalog does. It fails the
// test if the manifest has problems.
func readManifest(t *testing.T, tool manifestdraft.Tool) *catalog.Set {
	t.Helper()
	manifest, err := tool.YAML("a draft")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"portrait.yaml": {Data: manifest}}
	for name, b := range tool.Files {
		files[name] = &fstest.MapFile{Data: b}
	}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: files, Name: "dir"})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Problems) > 0 {
		t.Fatalf("problems = %v in\n%s", set.Problems, manifest)
	}
	return set
}

// taken gives a draft as the catalog has it, once it was written, read, checked
// and stored.
func taken(t *testing.T, tool manifestdraft.Tool) *catalog.Tool {
	t.Helper()
	set := readManifest(t, tool)
	db := dbtest.Open(t, dbtest.URL(t, "sqlite"))
	if _, err := catalog.Apply(t.Context(), db, set); err != nil {
		t.Fatal(err)
	}
	c := catalog.New(db, slog.New(slog.DiscardHandler))
	if _, err := c.RefreshSnapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.CurrentSnapshot().AllTools()[0]
}

// filled is a job for a tool with nothing but what is required.
func filled(t *testing.T, tool *catalog.Tool) engine.Job {
	t.Helper()
	in := dict{}
	files := map[string][]engine.File{}
	for _, f := range tool.Fields {
		switch {
		case f.Type == "IMG" || f.Type == "AUDIO" || f.Type == "VIDEO":
			files[f.Key] = []engine.File{enginetest.FileFromBytes("image/png", drawn(24, 16))}
		case f.Required:
			in[f.Key] = "a fox"
		}
	}
	got, problems := tool.ParseInputs(in, catalog.InputOptions{PriceOnly: true})
	if len(problems) > 0 {
		t.Fatalf("fill: %v", problems)
	}
	n, err := tool.ResultCount(nil, 64)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Job{
		RunID: "run", Attempt: 1, With: tool.Engine.With, Values: got.Values, Files: files, Seed: 7, NumResults: int(n),
		OutputType: tool.Output.Type, MimeTypes: tool.Output.MimeTypes,
	}
}

func TestImportOfAPlainWorkflow(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	manifest, err := r.draft(t, portrait()).YAML()
	if err != nil {
		t.Fatal(err)
	}
	const want = `name: Portrait
price: {type: COST, tokens: 1}
num_results: {min: 1, max: 4, default: 1}
output: {type: IMG, mime_types: [image/png]}
engine:
  name: studio
  with:
    bind:
      cfg:
        - 3.cfg
      denoise:
        - 3.denoise
      model:
        - 4.ckpt_name
      negative_prompt:
        - 7.text
      num_results:
        - 5.batch_size
      prompt:
        - 6.text
      sampler:
        - 3.sampler_name
      scheduler:
        - 3.scheduler
      seed:
        - 3.seed
      size.height:
        - 5.height
      size.width:
        - 5.width
      steps:
        - 3.steps
  include: {workflow: portrait.json}
fields:
  - key: prompt
    type: PROMPT
    label: Prompt
    required: true
  - key: negative_prompt
    type: NEG_PROMPT
    label: Negative prompt
    default: blurry, text
  - key: size
    type: WIDTH_HEIGHT
    label: Size
    default:
      height: 48
      width: 64
    min: 16
    max: 2048
    multiple_of: 8
  - key: model
    type: MODEL_SINGLE_SELECT
    label: Model
    default: dreamscape_xl.safetensors
    options:
      - text: dreamscape_xl
        value: dreamscape_xl.safetensors
      - text: lineart_v2
        value: lineart_v2.safetensors
  - key: steps
    type: STEPS
    label: Steps
    default: 4
    min: 1
    max: 150
  - key: cfg
    type: CFG
    label: Guidance
    default: 7.5
    min: 0
    max: 30
    step: 0.1
  - key: denoise
    type: SLIDER
    label: Strength
    default: 1
    advanced: true
    min: 0
    max: 1
    step: 0.01
  - key: sampler
    type: SINGLE_SELECT
    label: Sampler
    default: euler
    advanced: true
    options:
      - text: euler
        value: euler
      - text: euler_ancestral
        value: euler_ancestral
      - text: dpmpp_2m
        value: dpmpp_2m
      - text: ddim
        value: ddim
  - key: scheduler
    type: SINGLE_SELECT
    label: Scheduler
    default: normal
    advanced: true
    options:
      - text: normal
        value: normal
      - text: karras
        value: karras
      - text: simple
        value: simple
  - key: seed
    type: SEED
    label: Seed
    advanced: true
`
	if string(manifest) != want {
		t.Errorf("manifest:\n%s\nwant:\n%s", manifest, want)
	}
}

// sdxl has two samplers that share their steps, texts for two encoders, one of
// them from elsewhere, and an emptied negative one.
func sdxl() dict {
	g := portrait()
	g["6"] = graphNode("CLIPTextEncodeSDXL", dict{"clip": link("4", 1), "width": 1024, "height": 1024, "text_g": link("15", 0), "text_l": "a lighthouse"})
	g["15"] = graphNode("PrimitiveStringMultiline", dict{"value": "a lighthouse"})
	g["16"] = graphNode("FluxGuidance", dict{"conditioning": link("6", 0), "guidance": 3.5})
	g["7"] = graphNode("ConditioningZeroOut", dict{"conditioning": link("6", 0)})
	for id, from := range map[string]string{"3": "5", "17": "3"} {
		g[id] = graphNode("KSamplerAdvanced", dict{
			"model": link("4", 0), "add_noise": "enable", "noise_seed": 12, "steps": 200, "cfg": 8, "sampler_name": "euler", "scheduler": "simple",
			"positive": link("16", 0), "negative": link("7", 0), "latent_image": link(from, 0),
		})
	}
	inputs(g, "17")["cfg"] = 4
	inputs(g, "8")["samples"] = link("17", 0)
	inputs(g, "5")["batch_size"] = 6
	inputs(g, "5")["width"] = 1001
	inputs(g, "4")["ckpt_name"] = "lineart_v2.safetensors"
	return g
}

func filming() dict {
	g := reworked()
	g["20"] = graphNode("CreateVideo", dict{"images": link("8", 0), "fps": 24})
	g["21"] = graphNode("SaveVideo", dict{"video": link("20", 0), "filename_prefix": "video/x", "format": "auto", "codec": "auto"})
	return g
}

func singing() dict {
	g := portrait()
	g["5"] = graphNode("EmptyLatentAudio", dict{"seconds": 4, "batch_size": 1})
	g["8"] = graphNode("VAEDecodeAudio", dict{"samples": link("3", 0), "vae": link("4", 2)})
	g["9"] = graphNode("SaveAudio", dict{"audio": link("8", 0), "filename_prefix": "audio/x"})
	g["22"] = graphNode("LoadAudio", dict{"audio": "example.flac"})
	g["23"] = graphNode("SaveAudio", dict{"audio": link("22", 0), "filename_prefix": "audio/y"})
	return g
}

func modelling() dict {
	g := portrait()
	g["8"] = graphNode("VAEDecodeHunyuan3D", dict{"samples": link("3", 0), "vae": link("4", 2)})
	g["10"] = graphNode("VoxelToMesh", dict{"voxel": link("8", 0), "algorithm": "basic"})
	g["9"] = graphNode("SaveGLB", dict{"mesh": link("10", 0), "filename_prefix": "mesh/x"})
	return g
}

func combining() dict {
	return dict{
		"1": graphNode("VHS_LoadVideo", dict{"video": "example.mp4", "force_rate": 0}),
		"2": graphNode("LoadImage", dict{"image": "example.png"}),
		"3": graphNode("LoadImage", dict{"image": "example.png"}),
		"4": graphNode("PreviewImage", dict{"images": link("2", 0)}),
		"5": graphNode("PreviewImage", dict{"images": link("3", 0)}),
		"6": graphNode("VHS_VideoCombine", dict{"images": link("1", 0), "frame_rate": 8, "filename_prefix": "x", "format": "video/h264-mp4", "save_output": true}),
	}
}

// named is a workflow whose nodes have names, and that makes a moving picture
// beside a still one.
func named() dict {
	g := dict{}
	for id, n := range portrait() {
		for _, v := range n.(dict)["inputs"].(dict) {
			if l, ok := v.([]any); ok {
				l[0] = "sub:" + l[0].(string)
			}
		}
		g["sub:"+id] = n
	}
	inputs(g, "sub:7")["text"] = ""
	g["10"] = graphNode("VHS_VideoCombine", dict{"images": link("sub:8", 0), "frame_rate": 8, "filename_prefix": "x", "format": "image/gif", "save_output": true})
	return g
}

// TestDraftsWork has each draft read by the catalog, and run.
func TestDraftsWork(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: 1})
	for _, tt := range []struct {
		name   string
		graph  dict
		output string
		fields []string
		bind   dict
		most   int64 // results
	}{
		{"plain", portrait(), "IMG [image/png]", []string{
			"prompt PROMPT", "negative_prompt NEG_PROMPT blurry, text", "size WIDTH_HEIGHT map[height:48 width:64]",
			"model MODEL_SINGLE_SELECT dreamscape_xl.safetensors", "steps STEPS 4", "cfg CFG 7.5", "denoise SLIDER 1",
			"sampler SINGLE_SELECT euler", "scheduler SINGLE_SELECT normal", "seed SEED",
		}, nil, 4},
		{"two samplers", sdxl(), "IMG [image/png]", []string{
			"prompt PROMPT", "size WIDTH_HEIGHT map[height:48 width:1000]", "model MODEL_SINGLE_SELECT lineart_v2.safetensors",
			"steps STEPS 200", "cfg CFG 8", "cfg_2 CFG 4", "guidance CFG 3.5", "sampler SINGLE_SELECT euler", "scheduler SINGLE_SELECT simple", "seed SEED",
		}, dict{
			"prompt": []any{"15.value", "6.text_l"}, "steps": []any{"3.steps", "17.steps"}, "cfg": []any{"3.cfg"}, "cfg_2": []any{"17.cfg"},
			"seed": []any{"3.noise_seed", "17.noise_seed"}, "num_results": []any{"5.batch_size"},
		}, 6},
		{"video of a picture", filming(), "VID [video/mp4]", []string{
			"prompt PROMPT", "negative_prompt NEG_PROMPT blurry, text", "picture IMG", "fps NUM 24", "model MODEL_SINGLE_SELECT dreamscape_xl.safetensors",
			"steps STEPS 4", "cfg CFG 7.5", "denoise SLIDER 0.6", "sampler SINGLE_SELECT euler", "scheduler SINGLE_SELECT normal", "seed SEED",
		}, dict{"picture": []any{"10.image"}}, 4},
		{"sound", singing(), "AUDIO [audio/flac]", []string{
			"prompt PROMPT", "negative_prompt NEG_PROMPT blurry, text", "audio AUDIO", "seconds NUM 4", "model MODEL_SINGLE_SELECT dreamscape_xl.safetensors",
			"steps STEPS 4", "cfg CFG 7.5", "denoise SLIDER 1", "sampler SINGLE_SELECT euler", "scheduler SINGLE_SELECT normal", "seed SEED",
		}, nil, 8},
		{"model", modelling(), "ASSET_3D [model/gltf-binary]", nil, nil, 4},
		{"names and a moving picture", named(), "IMG [image/gif image/png]", []string{
			"prompt PROMPT", "negative_prompt NEG_PROMPT", "size WIDTH_HEIGHT map[height:48 width:64]", "fps NUM 8",
			"model MODEL_SINGLE_SELECT dreamscape_xl.safetensors", "steps STEPS 4", "cfg CFG 7.5", "denoise SLIDER 1",
			"sampler SINGLE_SELECT euler", "scheduler SINGLE_SELECT normal", "seed SEED",
		}, dict{"prompt": []any{"sub:6.text"}}, 8},
		{"files only", combining(), "VID [video/mp4]", []string{"video VIDEO", "picture IMG", "picture_2 IMG", "fps NUM 8"},
			dict{"video": []any{"1.video"}, "picture": []any{"2.image"}, "picture_2": []any{"3.image"}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tool := taken(t, r.draft(t, tt.graph))
			if got := fmt.Sprint(tool.Output.Type, " ", tool.Output.MimeTypes); got != tt.output {
				t.Errorf("output = %s, want %s", got, tt.output)
			}
			var fields []string
			for _, f := range tool.Fields {
				s := fmt.Sprint(f.Key, " ", f.Type)
				if f.Default != nil {
					s += fmt.Sprint(" ", f.Default)
				}
				fields = append(fields, s)
			}
			if tt.fields != nil && !slices.Equal(fields, tt.fields) {
				t.Errorf("fields = %q,\nwant %q", fields, tt.fields)
			}
			var with struct{ Bind, Workflow dict }
			if err := json.Unmarshal([]byte(tool.Engine.With), &with); err != nil {
				t.Fatal(err)
			}
			for key, want := range tt.bind {
				if fmt.Sprint(with.Bind[key]) != fmt.Sprint(want) {
					t.Errorf("bind %s = %v, want %v", key, with.Bind[key], want)
				}
			}
			if tool.NumResults == nil && tt.most != 1 || tool.NumResults != nil && tool.NumResults.Max != tt.most {
				t.Errorf("results = %+v, want at most %d", tool.NumResults, tt.most)
			}
			j := filled(t, tool)
			if n := len(r.results(t, j).Outputs()); n != j.NumResults {
				t.Errorf("results = %d, want %d", n, j.NumResults)
			}
		})
	}
}

// TestGotcha11TheHashFollowsTheGraph as the nodes of a workflow change with the
// server's extensions.
func TestGotcha11TheHashFollowsTheGraph(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	one := taken(t, r.draft(t, portrait()))
	g := portrait()
	inputs(g, "3")["seed"] = json.Number("18446744073709551614")
	two := taken(t, r.draft(t, g))
	if one.Hash == two.Hash {
		t.Error("another graph has the same hash")
	}
	if !strings.Contains(one.Engine.With, "18446744073709551615") {
		t.Errorf("a number was rounded: %s", one.Engine.With)
	}
}

func TestWorkflowsThatCannotBeImported(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	gone := portrait()
	gone["40"] = graphNode("FancySaver", dict{})
	nothing := portrait()
	delete(nothing, "9")
	shown := portrait()
	shown["9"] = graphNode("VAEEncode", dict{"pixels": link("8", 0), "vae": link("4", 2)})
	for _, tt := range []struct{ name, graph, want string }{
		{"a workflow of the editor that saves nothing", `{"last_node_id":9,"nodes":[{"id":3,"type":"KSampler"}],"links":[],"version":0.4}`, "saves nothing"},
		{"a workflow of the editor without nodes", `{"nodes":[],"links":[]}`, "no nodes"},
		{"a workflow of the editor with notes only", `{"nodes":[{"id":1,"type":"Note"}],"links":[]}`, "no nodes that the server runs"},
		{"no JSON and no picture", "hello", "not JSON"},
		{"an empty file", "", "not JSON"},
		{"not JSON", `{`, "not JSON"},
		{"a list", `[]`, "not JSON"},
		{"nothing", `{}`, "no nodes"},
		{"no nodes", `{"a":1}`, "neither a workflow"},
		{"nodes without inputs", `{"1":{"class_type":"A"}}`, "neither a workflow"},
		{"an unknown node", text(t, gone), "does not have these nodes of the workflow: FancySaver"},
		{"nothing is saved", text(t, nothing), "saves nothing"},
		{"no node with results", text(t, shown), "saves nothing"},
	} {
		_, _, err := r.ImportTool(t.Context(), workflowimport.Request{Name: "X", Data: []byte(tt.graph), File: "x.json", Engine: "studio"})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: import = %v, want %q", tt.name, err, tt.want)
		}
	}
	r.server.Change(func(f *comfyuitest.Faults) { f.Garble = "/object_info" })
	if _, _, err := r.ImportTool(t.Context(), workflowimport.Request{Data: []byte(text(t, portrait())), File: "x.json"}); err == nil {
		t.Error("import = nil although the server talks nonsense")
	}
}

// runnable returns a recorded workflow with a model that the stand-in server
// has.
func runnable(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("workflowimport", "testdata", "workflows", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "sd15.safetensors", "dreamscape_xl.safetensors")
}

// TestImportedAndRun imports workflows from every kind of file and runs them.
func TestImportedAndRun(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{Step: 1})
	api := runnable(t, "sd15_txt2img")
	// Python writes NaN, which is no JSON, into the graphs that it saves.
	python := strings.Replace(api, `"class_type": "KSampler"`, `"is_changed": [NaN], "class_type": "KSampler"`, 1)
	if python == api {
		t.Fatal("the workflow has no sampler")
	}
	tagged := func(text string) []byte {
		return []byte("\x00\x00\x00\x18ftypisom{\x00{\"x\x01moov...prompt\x00" + text + "\x00\x01")
	}
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"API format", []byte(api)},
		{"API format with a byte order mark", []byte("\xef\xbb\xbf" + api)},
		{"a prompt request", []byte(`{"client_id": "x", "prompt": ` + api + `}`)},
		{"the editor's format", []byte(runnable(t, "editor_plain"))},
		{"subgraph", []byte(runnable(t, "editor_subgraph"))},
		{"nested subgraphs", []byte(runnable(t, "editor_v1_nested_subgraphs"))},
		{"group node", []byte(runnable(t, "editor_group_node"))},
		{"primitives and reroutes", []byte(runnable(t, "editor_note_primitive_reroute"))},
		{"App mode", []byte(runnable(t, "editor_app_mode"))},
		{"only a preview", []byte(runnable(t, "preview_only"))},
		{"PNG with both texts", comfyuitest.PictureWithTexts(map[string]string{"prompt": python, "workflow": runnable(t, "editor_plain")})},
		{"PNG with a workflow of the editor", comfyuitest.PictureWithTexts(map[string]string{"prompt": "null", "workflow": runnable(t, "editor_subgraph")})},
		{"another media file", tagged(api)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			drafted, report, err := r.ImportTool(t.Context(), workflowimport.Request{Name: "Recorded", Data: tt.data, File: "recorded.json", Engine: "studio"})
			if err != nil {
				t.Fatalf("import: %v", err)
			}
			if len(report.Warnings) > 0 {
				t.Errorf("warnings = %q", report.Warnings)
			}
			tool := taken(t, drafted)
			j := filled(t, tool)
			if n := len(r.results(t, j).Outputs()); n != j.NumResults {
				t.Errorf("results = %d, want %d", n, j.NumResults)
			}
		})
	}
}
