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

	"atelier/internal/engine/sketch"
)

// shipped are the tools of the program and what each is asked for: inputs, in
// this order, where @name stands for what an earlier tool made.
var shipped = []struct {
	tool string
	args []string
	as   string // the kind of the result, as ffprobe calls it
}{
	{"gradient", []string{"style=mesh", "size=640x480", "seed=3"}, "png"},
	{"pattern", []string{"motif=cells", "size=512x512", "seed=7"}, "png"},
	{"resize", []string{"picture=@gradient.png", "size=320x240"}, "png"},
	{"crop-to-ratio", []string{"picture=@gradient.png"}, "png"},
	{"light-and-colour", []string{"picture=@gradient.png", "exposure=0.5"}, "png"},
	{"palette", []string{"picture=@gradient.png"}, "png"},
	{"collage", []string{"pictures=@gradient.png,@pattern.png", "width=800"}, "png"},
	{"upscale", []string{"picture=@resize.png", "factor=2"}, "png"},
	{"photo-upscale", []string{"picture=@resize.png"}, "png"},
	{"cut-out", []string{"picture=@plain.png"}, "png"},
	{"contact-sheet", []string{"pictures=@gradient.png,@pattern.png,@resize.png", "title=Three"}, "png"},
	{"speech", []string{"text=Good morning. This is Atelier.", "language=en-gb"}, "pcm_s16le"},
	{"tune", []string{"bars=8", "seed=5"}, "pcm_s16le"},
	{"still-to-video", []string{"pictures=@gradient.png,@pattern.png", "size=640x360", "seconds=1"}, "h264"},
	{"slideshow", []string{"pictures=@gradient.png,@pattern.png", "music=@tune.wav", "seconds=2", "size=640x360"}, "h264"},
	{"smooth-motion", []string{"video=@still-to-video.mp4", "method=blend"}, "h264"},
	{"video-to-gif", []string{"video=@still-to-video.mp4"}, "gif"},
	{"waveform", []string{"audio=@tune.wav", "size=640x360"}, "h264"},
}

// plain is a picture with a plain background.
func plain(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.Command("ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "color=white:s=200x150", "-vf", "drawbox=60:40:80:60:red:fill", "-frames:v", "1", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestEveryShippedTool runs each tool of a fresh installation once, from the
// command line, and looks at what it made.
func TestEveryShippedTool(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ffmpeg", "ffprobe", "espeak-ng", "fluidsynth"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not here", name)
			}
			t.Skipf("%s is not here (apt-get install ffmpeg espeak-ng fluidsynth timgm6mb-soundfont)", name)
		}
	}
	s := newSite(t)
	s.env = []string{"ATELIER_LIMITS_CREATE_PER_MINUTE=1000"}
	token := s.token("maker@example.com")
	s.grant("--email", "maker@example.com", 1000)
	n := s.serve()
	n.token = token
	s.env = append(s.env, "ATELIER_TOKEN="+token)
	dir := t.TempDir()
	plain(t, filepath.Join(dir, "plain.png"))

	listed := map[string]bool{}
	for _, item := range n.json("/api/v2/tools")["data"].([]any) {
		tool := item.(map[string]any)
		listed[sketch.Slug(tool["name"].(string))] = true
		if tool["avatar_url"] == nil || tool["description"] == "" {
			t.Errorf("%v has no picture or no description: %v", tool["name"], tool)
		}
	}
	for _, one := range shipped {
		if !listed[one.tool] {
			t.Fatalf("%s is not in the catalog: %v", one.tool, listed)
		}
		delete(listed, one.tool)
		args := []string{"generate", one.tool, "--service", n.url, "--out", dir}
		for _, a := range one.args {
			args = append(args, strings.ReplaceAll(a, "@", "@"+dir+"/"))
		}
		made := s.do(args...)
		files := made["files"].([]any)
		if len(files) != 1 {
			t.Fatalf("%s: %v", one.tool, made)
		}
		look(t, one.tool, one.as, files[0].(string), made["request_id"].(string))
		if one.as == "h264" {
			out := n.json("/api/v2/generate/" + made["request_id"].(string))["outputs"].([]any)[0].(map[string]any)
			if out["preview_url"] == nil || out["thumb_url"] == nil || out["duration_seconds"] == nil {
				t.Errorf("%s: a video without a first frame or a length: %v", one.tool, out)
			}
		}
	}
	if len(listed) > 0 {
		t.Errorf("these tools were not run: %v", listed)
	}
	s.check()
}

// look probes a result.
func look(t *testing.T, tool, kind, file, requestID string) {
	t.Helper()
	out, err := exec.Command("ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width,height,duration", "-of", "json", file).Output()
	if err != nil {
		t.Errorf("%s: ffprobe: %v", tool, err)
		return
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
		return
	}
	first := probed.Streams[0]
	if strings.HasPrefix(kind, "pcm") {
		var seconds float64
		if _, err := fmt.Sscan(first.Duration, &seconds); err != nil || seconds < 1 {
			t.Errorf("%s: made %s of sound", tool, first.Duration)
		}
		return
	}
	if first.Width < 16 || first.Height < 16 {
		t.Errorf("%s: made %d by %d pixels", tool, first.Width, first.Height)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"digitalsourcetype/algorithmicMedia", requestID} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("%s: the result does not say %q", tool, want)
		}
	}
}

// TestDemo is the first command of the README.
func TestDemo(t *testing.T) {
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
	left, err := filepath.Glob(filepath.Join(dir, "*", "data"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
