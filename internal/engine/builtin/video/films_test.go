package video_test

import (
	"bytes"
	"image"
	"image/color"
	stdgif "image/gif"
	_ "image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

// decoded gives what ffmpeg makes of a result.
func decoded(t testing.TB, b []byte, args ...string) []byte {
	t.Helper()
	ffmpeg, _ := programs(t)
	name := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), ffmpeg, append(append([]string{"-nostdin", "-v", "error", "-i", name}, args...), "-")...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return out
}

// block finds the middle of the white block of the clip.
func block(m *image.NRGBA) float64 {
	sum, n := 0.0, 0.0
	for x := range m.Rect.Dx() {
		if m.NRGBAAt(x, 48).R > 140 {
			sum, n = sum+float64(x), n+1
		}
	}
	return sum / max(n, 1)
}

func TestFramesBetween(t *testing.T) {
	t.Parallel()
	j := job("smooth-motion", values{"factor": "2", "method": "motion"}, videoInput(clip(t)))
	b := result(t, j)
	all := frames(t, b)
	if len(all) != 20 {
		t.Fatalf("frames = %d, want 20", len(all))
	}
	for i := 4; i < 16; i++ { // 10 pixels a frame before, 5 now
		if got, want := block(all[i]), 12+5*float64(i); got < want-4 || got > want+4 {
			t.Errorf("frame %d: the block is at %.1f, want %.1f", i, got, want)
		}
	}
	if loud := loudness(t, b, 1); loud[0] < 500 {
		t.Errorf("loudness = %v, want the sound", loud)
	}
}

func TestSlowMotion(t *testing.T) {
	t.Parallel()
	for _, factor := range []any{"2", "4", int64(4)} {
		b := result(t, job("smooth-motion", values{"effect": "slow", "method": "blend", "factor": factor}, videoInput(clip(t))))
		want := 2
		if factor != "2" {
			want = 4
		}
		if got := examined(t, b).Duration; got < time.Duration(want)*time.Second-100*time.Millisecond || got > time.Duration(want)*time.Second+100*time.Millisecond {
			t.Errorf("duration = %v, want %d s", got, want)
		}
		if n := len(frames(t, b)); n != 10*want {
			t.Errorf("frames = %d, want %d", n, 10*want)
		}
		if loud := loudness(t, b, want); loud[want-1] < 300 {
			t.Errorf("loudness by second = %v, want it to go on", loud)
		}
	}
}

func TestSoundCanBeDropped(t *testing.T) {
	t.Parallel()
	_, ffprobe := programs(t)
	b := result(t, job("smooth-motion", values{"method": "blend", "sound": false}, videoInput(clip(t))))
	name := filepath.Join(t.TempDir(), "in.mp4")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), ffprobe, "-v", "error", "-show_entries", "stream=codec_type", "-of", "csv=p=0", name).Output()
	if err != nil || string(bytes.TrimSpace(out)) != "video" {
		t.Errorf("streams = %q, %v; want a video only", out, err)
	}
}

func TestLargeVideosAreMadeSmaller(t *testing.T) {
	t.Parallel()
	f := enginetest.FileFromBytes("video/mp4", made(t, "mp4", "-f", "lavfi", "-i", "testsrc2=s=600x800:r=5:d=0.6", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"))
	got := examined(t, result(t, job("smooth-motion", values{"method": "blend", "size": "360"}, videoInput(f))))
	if got.Width != 360 || got.Height != 480 {
		t.Errorf("size = %dx%d, want 360x480", got.Width, got.Height)
	}
}

// TestOtherEnvelopes takes webm without a length, and a video that was filmed
// upright.
func TestOtherEnvelopes(t *testing.T) {
	t.Parallel()
	source := []string{"-f", "lavfi", "-i", "testsrc2=s=96x64:r=10:d=1"}
	webm := made(t, "webm", append(source, "-c:v", "libvpx", "-deadline", "realtime", "-live", "1")...)
	name := filepath.Join(t.TempDir(), "plain.mp4")
	if err := os.WriteFile(name, made(t, "mp4", append(source, "-c:v", "libx264", "-pix_fmt", "yuv420p")...), 0o600); err != nil {
		t.Fatal(err)
	}
	mov := made(t, "mov", "-i", name, "-c", "copy", "-metadata:s:v", "rotate=90")
	for kind, tt := range map[string]struct {
		file engine.File
		w, h int
	}{
		"webm":   {enginetest.FileFromBytes("video/webm", webm), 96, 64},
		"turned": {enginetest.FileFromBytes("video/quicktime", mov), 64, 96},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := result(t, job("smooth-motion", values{"method": "blend"}, videoInput(tt.file)))
			if got := examined(t, b); got.Width != tt.w || got.Height != tt.h || got.Duration < 900*time.Millisecond {
				t.Errorf("size = %dx%d for %v, want %dx%d", got.Width, got.Height, got.Duration, tt.w, tt.h)
			}
		})
	}
}

func TestGIF(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		v      values
		frames int
		loop   int
		w, h   int
	}{
		{"plain", values{"width": int64(64), "fps": int64(10)}, 10, 0, 64, 48},
		{"once", values{"width": 64.0, "fps": 10.0, "loop": false}, 10, -1, 64, 48},
		{"a part", values{"width": int64(32), "fps": int64(10), "start": 0.5, "length": 0.3}, 3, 0, 32, 24},
		{"slower", values{"width": int64(128), "fps": int64(5)}, 5, 0, 128, 96},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := result(t, job("video-to-gif", tt.v, videoInput(clip(t))))
			g, err := stdgif.DecodeAll(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if len(g.Image) != tt.frames || g.LoopCount != tt.loop || g.Config.Width != tt.w || g.Config.Height != tt.h {
				t.Errorf("gif = %d frames, loop %d, %dx%d", len(g.Image), g.LoopCount, g.Config.Width, g.Config.Height)
			}
			if got := color.NRGBAModel.Convert(g.Image[0].At(tt.w-2, 2)).(color.NRGBA); !near(got, color.NRGBA{0x20, 0x40, 0xc0, 255}) {
				t.Errorf("colour = %v, want the blue of the clip", got)
			}
			examined(t, b)
		})
	}
}

func TestWaveform(t *testing.T) {
	t.Parallel()
	silence := enginetest.FileFromBytes("audio/wav", made(t, "wav", "-f", "lavfi", "-i", "anullsrc", "-t", "0.5"))
	lit := func(m *image.NRGBA) (n int) {
		for y := range m.Rect.Dy() {
			for x := range m.Rect.Dx() {
				if c := m.NRGBAAt(x, y); c.R > 90 && c.R > c.B {
					n++
				}
			}
		}
		return n
	}
	back := color.NRGBA{0x10, 0x18, 0x60, 255}
	for _, style := range []string{"wave", "line", "bars", "spectrum"} {
		t.Run(style, func(t *testing.T) {
			t.Parallel()
			v := values{"style": style, "colour": "#fc0", "background": "#101860", "size": size(256, 144)}
			all := frames(t, result(t, job("waveform", v, map[string][]engine.File{"audio": {tone(t)}})))
			m := all[len(all)-2]
			if n := lit(m); n < 20 {
				t.Errorf("%d pixels are of the colour, want more", n)
			}
			wantColour(t, m, 250, 2, back)
			quiet := frames(t, result(t, job("waveform", v, map[string][]engine.File{"audio": {silence}})))
			if n := lit(quiet[len(quiet)-2]); n >= lit(m) && style != "bars" {
				t.Errorf("%d pixels are of the colour in silence", n)
			}
		})
	}
	j := job("waveform", values{"size": size(256, 144)}, map[string][]engine.File{"audio": {tone(t)}, "picture": {pngFile(flat(100, 100, green))}})
	wantColour(t, frames(t, result(t, j))[3], 250, 2, green)
}

func TestEveryKindOfRecording(t *testing.T) {
	t.Parallel()
	source := []string{"-f", "lavfi", "-i", "sine=frequency=440:duration=0.5"}
	for mimeType, b := range map[string][]byte{
		"audio/mpeg": made(t, "mp3", source...),
		"audio/flac": made(t, "flac", source...),
		"audio/ogg":  made(t, "ogg", append(source, "-c:a", "libvorbis")...),
	} {
		t.Run(mimeType, func(t *testing.T) {
			t.Parallel()
			out := result(t, job("waveform", values{"size": size(128, 72)}, map[string][]engine.File{"audio": {enginetest.FileFromBytes(mimeType, b)}}))
			if got := examined(t, out).Duration; got < 480*time.Millisecond || got > 620*time.Millisecond {
				t.Errorf("duration = %v", got)
			}
		})
	}
}

func TestFrame(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	f := clip(t)
	r, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.FirstFrame(t.Context(), f.MimeType, r)
	if err != nil {
		t.Fatal(err)
	}
	m, format, err := image.Decode(bytes.NewReader(b))
	if err != nil || format != "jpeg" || m.Bounds().Size() != image.Pt(128, 96) {
		t.Fatalf("frame = %s, %v", format, err)
	}
	if got := color.NRGBAModel.Convert(m.At(120, 10)).(color.NRGBA); !near(got, color.NRGBA{0x20, 0x40, 0xc0, 255}) {
		t.Errorf("colour = %v, want the blue of the clip", got)
	}
	for _, mimeType := range []string{"video/mp4", "image/png", "", "application/x-mpegurl"} {
		if _, err := e.FirstFrame(t.Context(), mimeType, bytes.NewReader([]byte("no video"))); err == nil {
			t.Errorf("%q: no error", mimeType)
		}
	}
}

func TestTinyVideos(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{"one frame": "testsrc2=s=64x64:r=25:d=0.04", "few pixels": "color=s=2x2:r=10:d=0.5", "a strip": "color=s=2000x2:r=10:d=0.3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := enginetest.FileFromBytes("video/mp4", made(t, "mp4", "-f", "lavfi", "-i", source, "-c:v", "libx264", "-pix_fmt", "yuv420p"))
			for _, j := range []engine.Job{
				job("smooth-motion", values{"method": "motion"}, videoInput(f)),
				job("smooth-motion", values{"effect": "slow", "method": "blend"}, videoInput(f)),
				job("video-to-gif", values{"width": int64(960)}, videoInput(f)),
			} {
				examined(t, result(t, j))
			}
		})
	}
}
