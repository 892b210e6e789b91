package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"atelier/internal/testkit/servers"
)

// kinds are what ffprobe calls results.
var kinds = map[string]string{".png": "png", ".jpg": "mjpeg", ".gif": "gif", ".wav": "pcm_s16le", ".mp4": "h264"}

// learned are the tools whose results come from a model.
var learned = map[string]bool{"sketch": true, "sketch-from-picture": true, "upscale-art": true, "sketch-to-print": true}

// gallery gives the commands of the README's gallery, as words.
func gallery(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(string(text), "\n## Gallery\n")
	var all [][]string
	for line := range strings.Lines(commands) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "bin/atelier run ")
		if !ok {
			continue
		}
		var words []string
		for i, part := range strings.Split(rest, `"`) { // every second one is quoted
			if i%2 == 1 {
				words = append(words, part)
			} else {
				words = append(words, strings.Fields(part)...)
			}
		}
		all = append(all, words)
	}
	return all
}

// TestEveryShippedTool runs the commands of the README's gallery on a fresh
// installation, one for every tool, and looks at what they made.
func TestEveryShippedTool(t *testing.T) {
	t.Parallel()
	servers.NeedShippedPrograms(t)
	s := newSite(t)
	s.env = []string{"ATELIER_LIMITS_CREATE_PER_MINUTE=1000"}
	token := s.token("maker@example.com")
	s.grant("--email", "maker@example.com", 100)
	n := s.serve()
	n.token = token
	s.env = append(s.env, "ATELIER_TOKEN="+token, "ATELIER_SERVICE="+n.url)
	out := t.TempDir()

	listed := map[string]bool{}
	for _, item := range n.json("/api/v2/tools")["data"].([]any) {
		tool := item.(map[string]any)
		listed[tool["slug"].(string)] = true
		if tool["avatar_url"] == nil || tool["description"] == "" {
			t.Errorf("%v has no picture or no description: %v", tool["name"], tool)
		}
	}
	for _, args := range gallery(t) {
		tool := args[0]
		if !listed[tool] {
			t.Fatalf("%s is not in the catalog: %v", tool, listed)
		}
		delete(listed, tool)
		for i, a := range args {
			a = strings.ReplaceAll(a, "@docs/", "@../../docs/")
			args[i] = strings.ReplaceAll(a, "@out/", "@"+out+"/")
		}
		args[len(args)-1] = out // of --out
		made := s.do(append([]string{"generate"}, args...)...)
		files := made["files"].([]any)
		if len(files) != 1 {
			t.Fatalf("%s: %v", tool, made)
		}
		kind := look(t, tool, files[0].(string), made["request_id"].(string))
		if kind == "h264" {
			out := n.json("/api/v2/generate/" + made["request_id"].(string))["outputs"].([]any)[0].(map[string]any)
			if out["preview_url"] == nil || out["thumb_url"] == nil || out["duration_seconds"] == nil {
				t.Errorf("%s: a video without a first frame or a length: %v", tool, out)
			}
		}
	}
	if len(listed) > 0 {
		t.Errorf("these tools are not in the gallery: %v", listed)
	}
	s.check()
}

// look probes a result and gives its kind.
func look(t *testing.T, tool, file, requestID string) (kind string) {
	t.Helper()
	kind = kinds[filepath.Ext(file)]
	out, err := exec.Command("ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width,height,duration", "-of", "json", file).Output()
	if err != nil {
		t.Errorf("%s: ffprobe: %v", tool, err)
		return kind
	}
	var probed struct {
		Streams []struct {
			Codec         string `json:"codec_name"`
			Width, Height int
			Duration      string
		}
	}
	if err := json.Unmarshal(out, &probed); err != nil || len(probed.Streams) == 0 || probed.Streams[0].Codec != kind {
		t.Errorf("%s: made %s, want %s", tool, out, kind)
		return kind
	}
	first := probed.Streams[0]
	if strings.HasPrefix(kind, "pcm") {
		var seconds float64
		if _, err := fmt.Sscan(first.Duration, &seconds); err != nil || seconds < 1 {
			t.Errorf("%s: made %s of sound", tool, first.Duration)
		}
		return kind
	}
	if first.Width < 16 || first.Height < 16 {
		t.Errorf("%s: made %d by %d pixels", tool, first.Width, first.Height)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	source := "digitalsourcetype/algorithmicMedia"
	if learned[tool] {
		source = "digitalsourcetype/trainedAlgorithmicMedia"
	}
	for _, want := range []string{source, requestID} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("%s: the result does not say %q", tool, want)
		}
	}
	return kind
}

// TestDemo is the first command of the README.
func TestDemo(t *testing.T) {
	needOneProcess(t, "the demo starts its own service")
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "atelier")
	if out, err := exec.Command("go", "build", "-o", binary, "atelier/cmd/atelier").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := t.TempDir()
	cmd := exec.Command("../../build/demo")
	cmd.Env = append(os.Environ(), "DEMO_BINARY="+binary, "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var paths []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, dir) {
			paths = append(paths, line)
		}
	}
	if len(paths) != 3 {
		t.Fatalf("results = %v\n%s", paths, out)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text := strings.TrimSpace(string(out)); !strings.HasSuffix(text, "The next command to type:\n\n    make run") {
		t.Errorf("the demo ends without the next command: %s", text)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "data"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
