package workflowimport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/comfyui/workflowimport"
	"atelier/internal/engine/manifestdraft"
)

// graphOf returns the nodes of an imported workflow.
func graphOf(t *testing.T, tool manifestdraft.Tool) map[string]struct {
	Class  string `json:"class_type"`
	Inputs map[string]any
} {
	t.Helper()
	var nodes map[string]struct {
		Class  string `json:"class_type"`
		Inputs map[string]any
	}
	d := json.NewDecoder(bytes.NewReader(tool.Files["recorded.json"]))
	d.UseNumber()
	if err := d.Decode(&nodes); err != nil {
		t.Fatal(err)
	}
	return nodes
}

// flat returns a graph as sorted lines, to compare two graphs.
func flat(t *testing.T, tool manifestdraft.Tool) []string {
	t.Helper()
	var lines []string
	for id, n := range graphOf(t, tool) {
		for name, v := range n.Inputs {
			if number, ok := v.(json.Number); ok {
				f, _ := number.Float64()
				v = f
			}
			lines = append(lines, fmt.Sprintf("%s %s.%s = %v", n.Class, id, name, v))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestEditorFormat converts workflows of the editor and compares the result
// with what the front end sends to the server.
func TestEditorFormat(t *testing.T) {
	t.Parallel()
	e := describedServer(t, "{}")
	api, _ := importRecorded(t, e, readRecorded(t, "sd15_txt2img"))
	for _, file := range []string{"editor_plain", "editor_bypassed_muted"} {
		tool, _ := importRecorded(t, e, readRecorded(t, file))
		if got := flat(t, tool); !slices.Equal(got, flat(t, api)) {
			t.Errorf("%s: graph =\n%s\nwant\n%s", file, strings.Join(got, "\n"), strings.Join(flat(t, api), "\n"))
		}
	}
	for _, tt := range []struct {
		file string
		want []string
		not  []string
	}{
		{"editor_note_primitive_reroute", []string{"KSampler 3.seed = 1234", "CLIPTextEncode 6.text = a heron at dawn", "VAEDecode 8.vae = [4 2]"}, []string{"30.", "34."}},
		{"editor_set_get", []string{"CLIPTextEncode 6.text = [40 0]"}, []string{"41.", "42."}},
		{"editor_subgraph", []string{
			"CLIPTextEncode 57:6.text = a violin maker", "EmptyLatentImage 57:5.width = 640", "EmptyLatentImage 57:5.height = 768",
			"KSampler 57:3.seed = 5", "KSampler 57:3.steps = 20", "KSampler 57:3.model = [57:4 0]", "SaveImage 60.images = [57:8 0]",
		}, nil},
		{"editor_v1_nested_subgraphs", []string{
			"CLIPTextEncode 71:57:6.text = [70 0]", "EmptyLatentImage 71:57:5.width = 832", "KSampler 71:57:3.steps = 30",
			"KSampler 71:57:3.seed = 42", "SaveImage 72.images = [71:57:8 0]",
		}, nil},
		{"editor_group_node", []string{"CLIPTextEncode 80:2.text = a beekeeper", "KSampler 80:4.latent_image = [80:1 0]", "SaveImage 81.images = [80:5 0]"}, nil},
		{"editor_vhs_values", []string{"VHS_VideoCombine 9.frame_rate = 12", "VHS_VideoCombine 9.crf = 19", "VHS_VideoCombine 9.audio = [22 0]", "LoadAudio 22.audio = example.flac"}, []string{"videopreview"}},
		{"editor_dynamic_choice", []string{
			"VideoCloudNode 2.model = standard", "VideoCloudNode 2.model.duration = 10", "VideoCloudNode 2.model.sound = true",
			"VideoCloudNode 2.seed = 77", "LoadImage 1.image = example.png",
		}, []string{"upload"}},
	} {
		tool, _ := importRecorded(t, e, readRecorded(t, tt.file))
		got := flat(t, tool)
		for _, line := range tt.want {
			if !slices.Contains(got, line) {
				t.Errorf("%s: graph has no %q:\n%s", tt.file, line, strings.Join(got, "\n"))
			}
		}
		for _, part := range tt.not {
			if slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, " "+part) || strings.Contains(line, "."+part) }) {
				t.Errorf("%s: graph has %q:\n%s", tt.file, part, strings.Join(got, "\n"))
			}
		}
	}
}

func TestFileWithoutWorkflow(t *testing.T) {
	t.Parallel()
	e := describedServer(t, "{}")
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"plain PNG":        {comfyuitest.PictureWithTexts(nil), "the picture contains no workflow"},
		"other texts":      {comfyuitest.PictureWithTexts(map[string]string{"prompt": "a cat", "workflow": "[1]"}), "the picture contains no workflow"},
		"truncated PNG":    {comfyuitest.PictureWithTexts(map[string]string{"prompt": "{}"})[:40], "the picture contains no workflow"},
		"other media file": {[]byte("RIFF\x00\x00\x00\x00WEBPVP8 \"class_type\" \"nodes\" {\"a\":1}"), "not a media file with a ComfyUI workflow"},
	} {
		_, _, err := e.ImportTool(t.Context(), workflowimport.Request{Data: tt.data, File: "x.json"})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: import = %v, want %q", name, err, tt.want)
		}
	}
}

func TestLastRun(t *testing.T) {
	t.Parallel()
	entry := func(number int, status, file string, ended int64) string {
		return fmt.Sprintf(`{"prompt": [%d, "id", %s, {"extra_pnginfo": {"workflow": %s}}, ["9"]], "outputs": {},
			"status": {"status_str": %q, "completed": true, "messages": [["execution_start", {"timestamp": 1}], ["execution_success", {"timestamp": %d}]]}}`,
			number, readRecorded(t, file), readRecorded(t, "editor_plain"), status, ended)
	}
	e := describedServer(t, fmt.Sprintf(`{"a": %s, "b": %s, "c": %s, "d": {"prompt": [9], "status": null}}`,
		entry(1, "success", "wan21_t2v", 1000), entry(2, "success", "flux_dev", 3000), entry(3, "error", "ace_step", 4000)))
	tool, report := importRecorded(t, e, nil)
	if boundTo(tool, "seed") != "8.noise_seed" || !strings.Contains(report.Source, "last successful run") {
		t.Errorf("seed = %s, source = %s, want the newest successful run", boundTo(tool, "seed"), report.Source)
	}
	for _, history := range []string{"{}", fmt.Sprintf(`{"c": %s}`, entry(3, "error", "ace_step", 4000))} {
		_, _, err := describedServer(t, history).ImportTool(t.Context(), workflowimport.Request{File: "x.json"})
		if err == nil || !strings.Contains(err.Error(), "no successful run") {
			t.Errorf("import of an empty history = %v", err)
		}
	}
}

func TestMissingNodesAreNamed(t *testing.T) {
	t.Parallel()
	e := describedServer(t, "{}")
	editor := strings.Replace(string(readRecorded(t, "editor_plain")), `"type": "KSampler"`, `"type": "SuperSampler"`, 1)
	editor = strings.Replace(editor, `{"Node name for S&R": "KSampler", "cnr_id": "comfy-core"}`, `{"cnr_id": "super-pack"}`, 1)
	api := strings.ReplaceAll(string(readRecorded(t, "sd15_txt2img")), `"KSampler"`, `"SuperSampler"`)
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"the editor's format": {[]byte(editor), "SuperSampler (custom node pack super-pack); install"},
		"API format":          {[]byte(api), "these nodes of the workflow: SuperSampler; install"},
		"PNG":                 {comfyuitest.PictureWithTexts(map[string]string{"prompt": api, "workflow": editor}), "SuperSampler (custom node pack super-pack); install"},
	} {
		_, _, err := e.ImportTool(t.Context(), workflowimport.Request{Data: tt.data, File: "x.json"})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: import = %v, want %q", name, err, tt.want)
		}
	}
}

// TestResultsThatCannotBeStored refuses vector graphics and 3D previews with a
// reason.
func TestResultsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	e := describedServer(t, "{}")
	for name, tt := range map[string]struct{ graph, want string }{
		"vector graphics": {`{"1":{"class_type":"VectorCloudNode","inputs":{"prompt":"a logo"}},"2":{"class_type":"SaveSVGNode","inputs":{"svg":["1",0],"filename_prefix":"x"}}}`, "format svg, which cannot be stored"},
		"a preview":       {`{"1":{"class_type":"PrimitiveString","inputs":{"value":"x.glb"}},"2":{"class_type":"Preview3D","inputs":{"model_file":["1",0]}}}`, "2 (Preview3D) only shows something"},
	} {
		_, _, err := e.ImportTool(t.Context(), workflowimport.Request{Data: []byte(tt.graph), File: "x.json"})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: import = %v, want %q", name, err, tt.want)
		}
	}
}
