package video_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/video"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/subprocess"
	"atelier/internal/file/media"
)

type values = map[string]any

func size(w, h int64) values { return values{"width": w, "height": h} }

// programs returns the paths of ffmpeg and ffprobe. If they are missing, the
// test is skipped; with CI set it fails instead.
func programs(t testing.TB) (ffmpeg, ffprobe string) {
	t.Helper()
	enginetest.RequireInstalled(t, video.Requirements())
	return subprocess.FindProgram("ffmpeg"), subprocess.FindProgram("ffprobe")
}

func newEngine(t testing.TB) *video.Engine {
	t.Helper()
	ffmpeg, ffprobe := programs(t)
	return video.New(ffmpeg, ffprobe, video.Options{Folder: t.TempDir()})
}

// made returns a file that ffmpeg writes.
func made(t testing.TB, ext string, args ...string) []byte {
	t.Helper()
	ffmpeg, _ := programs(t)
	name := filepath.Join(t.TempDir(), "made."+ext)
	args = append(append([]string{"-nostdin", "-v", "error", "-y"}, args...), "-fflags", "+bitexact", name)
	if text, err := exec.CommandContext(t.Context(), ffmpeg, args...).CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// store keeps files that several tests use.
type store struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (s *store) get(key string, make func() []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[key] == nil {
		s.files[key] = make()
	}
	return s.files[key]
}

var shared = &store{files: map[string][]byte{}}

// clip is a second of video with sound, of 128 by 96 pixels: a white block on
// blue that moves from left to right.
func clip(t testing.TB) engine.File {
	return enginetest.FileFromBytes("video/mp4", shared.get("clip", func() []byte {
		return made(t, "mp4", "-f", "lavfi", "-i", "color=c=0x2040c0:s=128x96:r=10:d=1", "-f", "lavfi", "-i", "color=c=white:s=24x24:r=10:d=1",
			"-f", "lavfi", "-i", "sine=frequency=440:duration=1", "-filter_complex", "[0][1]overlay=x=100*t:y=36:shortest=1",
			"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", "-t", "1")
	}))
}

// tone is half a second of sound.
func tone(t testing.TB) engine.File {
	return enginetest.FileFromBytes("audio/wav", shared.get("tone", func() []byte {
		return made(t, "wav", "-f", "lavfi", "-i", "sine=frequency=440:duration=0.5")
	}))
}

func newPicture(w, h int, at func(x, y int) color.NRGBA) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetNRGBA(x, y, at(x, y))
		}
	}
	return m
}

func flat(w, h int, c color.NRGBA) *image.NRGBA {
	return newPicture(w, h, func(int, int) color.NRGBA { return c })
}

func pngFile(m image.Image) engine.File {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return enginetest.FileFromBytes("image/png", b.Bytes())
}

func jpegBytes(m image.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

var (
	red     = color.NRGBA{200, 30, 30, 255}
	green   = color.NRGBA{30, 160, 40, 255}
	blue    = color.NRGBA{40, 60, 200, 255}
	yellow  = color.NRGBA{220, 200, 30, 255}
	white   = color.NRGBA{255, 255, 255, 255}
	black   = color.NRGBA{0, 0, 0, 255}
	nothing = color.NRGBA{}
)

// quarters is a picture of four colours: red and green above, blue and yellow
// below.
func quarters(w, h int) *image.NRGBA {
	return newPicture(w, h, func(x, y int) color.NRGBA {
		return []color.NRGBA{red, green, blue, yellow}[x*2/w+y*2/h*2]
	})
}

// job is one for an operation with these inputs.
func job(operation string, v values, files map[string][]engine.File) engine.Job {
	j := engine.Job{
		With: fmt.Sprintf(`{"operation":%q}`, operation), Values: v, Files: files, Seed: 11, NumResults: 1,
		OutputType: "VID", MimeTypes: []string{"video/mp4"},
	}
	if operation == "video-to-gif" {
		j.OutputType, j.MimeTypes = "IMG", []string{"image/gif"}
	}
	return j
}

func pictures(files ...engine.File) map[string][]engine.File {
	return map[string][]engine.File{"pictures": files}
}

func videoInput(f engine.File) map[string][]engine.File {
	return map[string][]engine.File{"video": {f}}
}

// result runs a job that has to succeed.
func result(t testing.TB, j engine.Job) []byte {
	t.Helper()
	return enginetest.MustSucceed(t, newEngine(t), j).Outputs()[0]
}

// refusal runs a job that has to fail, and returns the failure.
func refusal(t testing.TB, j engine.Job) *engine.Error {
	t.Helper()
	var r enginetest.Recorder
	err := newEngine(t).Run(t.Context(), j, &r)
	e, ok := errors.AsType[*engine.Error](err)
	if !ok || len(r.Outputs()) != 0 {
		t.Fatalf("run = %v with %d results, want a failure that says why", err, len(r.Outputs()))
	}
	return e
}

// examined returns the properties of a result as the service measures them.
func examined(t testing.TB, b []byte) media.Facts {
	t.Helper()
	f, ok := media.Sniff(b[:min(len(b), media.HeadLength)])
	if !ok {
		t.Fatal("the result is of no known type")
	}
	facts, err := media.NewAnalyzer(media.Limits{}).AnalyzeFile(context.WithoutCancel(t.Context()), media.DecodeRequest{}, f, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("examine: %v", err)
	}
	return facts
}

// frames decodes every frame of a result.
func frames(t testing.TB, b []byte) []*image.NRGBA {
	t.Helper()
	ffmpeg, _ := programs(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), ffmpeg, "-nostdin", "-v", "error", "-i", "in", "-fps_mode", "passthrough", "%04d.png")
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("decode: %v\n%s", err, text)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no frames: %v", err)
	}
	all := make([]*image.NRGBA, len(names))
	for i, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := image.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		all[i] = newPicture(m.Bounds().Dx(), m.Bounds().Dy(), func(x, y int) color.NRGBA {
			return color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
		})
	}
	return all
}

// near reports whether two colours look alike after a video codec.
func near(a, b color.NRGBA) bool {
	const levels = 14
	within := func(a, b uint8) bool { return int(a)-int(b) <= levels && int(b)-int(a) <= levels }
	return within(a.R, b.R) && within(a.G, b.G) && within(a.B, b.B)
}

func wantColour(t testing.TB, m *image.NRGBA, x, y int, want color.NRGBA) {
	t.Helper()
	if got := m.NRGBAAt(x, y); !near(got, want) {
		t.Errorf("colour at %d,%d = %v, want %v", x, y, got, want)
	}
}

func bytesOf(t testing.TB, f engine.File) []byte {
	t.Helper()
	r, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
