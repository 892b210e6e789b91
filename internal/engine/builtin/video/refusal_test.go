package video_test

import (
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/video"
	"atelier/internal/engine/enginetest"
)

func TestNeeds(t *testing.T) {
	t.Parallel()
	var names []string
	for _, n := range video.Requirements() {
		names = append(names, n.Name+" of "+n.Package)
	}
	if got := strings.Join(names, ", "); got != "ffmpeg of ffmpeg, ffprobe of ffmpeg" {
		t.Errorf("needs = %s", got)
	}
}

func TestToolsSetUpWronglySaySo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*engine.Job){
		"no such operation": func(j *engine.Job) { j.With = `{"operation":"dance"}` },
		"no operation":      func(j *engine.Job) { j.With = `{}` },
		"no JSON":           func(j *engine.Job) { j.With = `` },
		"more than known":   func(j *engine.Job) { j.With = `{"operation":"waveform","filter":"x"}` },
		"no such type":      func(j *engine.Job) { j.MimeTypes = []string{"video/webm"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := cases(t)["waveform"]
			change(&j)
			if e := refusal(t, j); e.Code != engine.Failed || e.Message != "This tool is not configured correctly. Contact the operator." {
				t.Errorf("failure = %v", e)
			}
		})
	}
}

// selects are the fields of each operation that take a word.
var selects = map[string][]string{
	"pan-zoom":      {"motion", "fps"},
	"slideshow":     {"style", "background"},
	"smooth-motion": {"effect", "factor", "method", "size"},
	"video-to-gif":  {"dither"},
	"waveform":      {"style"},
}

// TestWordsOfStrangersAreRefused tries what would mean something to a filter
// graph, in each field that a graph is made from.
func TestWordsOfStrangersAreRefused(t *testing.T) {
	t.Parallel()
	bad := []any{
		"fade'", "fade:offset=1", "fade;[0]null", "[0:v]", "fade,movie=/etc/passwd", "fade\\", "fade\n", "", " fade", "FADE", "$(id)", "%s",
		"amovie=x", -1.0, int64(7), true, []any{"fade"}, values{"a": 1},
	}
	for operation, keys := range selects {
		for _, key := range keys {
			t.Run(operation+" "+key, func(t *testing.T) {
				t.Parallel()
				for _, v := range bad {
					j := cases(t)[operation]
					j.Values = values{key: v}
					if e := refusal(t, j); e.Transient {
						t.Errorf("%#v: %v", v, e)
					}
				}
			})
		}
	}
	for _, key := range []string{"colour", "background"} {
		for _, v := range []any{"red", "#12345", "#1234567", "0x112233", "#12g", "#fff:s=1x1", "#-12345", "#+12345", "#fff@0.5", "'#fff'", "#１２３"} {
			j := cases(t)["waveform"]
			j.Values = values{key: v}
			if e := refusal(t, j); !strings.Contains(e.Message, "hex code") {
				t.Errorf("%s %q: %v", key, v, e)
			}
		}
	}
}

func TestPlainRefusals(t *testing.T) {
	t.Parallel()
	f, big := pngFile(flat(64, 64, green)), cases(t)["pan-zoom"]
	many := make([]engine.File, 13)
	for i := range many {
		many[i] = f
	}
	mute := enginetest.FileFromBytes("video/mp4", made(t, "mp4", "-f", "lavfi", "-i", "sine=duration=0.2", "-c:a", "aac"))
	long := enginetest.FileFromBytes("video/mp4", made(t, "mp4", "-f", "lavfi", "-i", "color=s=64x64:r=1:d=700", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"))
	halfLong := enginetest.FileFromBytes("video/mp4", made(t, "mp4", "-f", "lavfi", "-i", "color=s=64x64:r=1:d=200", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"))
	speech := enginetest.FileFromBytes("audio/wav", made(t, "wav", "-f", "lavfi", "-i", "anullsrc=r=8000:cl=mono", "-t", "310"))
	large := enginetest.FileFromBytes("video/mp4", made(t, "mp4", "-f", "lavfi", "-i", "color=s=1280x720:r=60:d=40", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"))
	shaped := func(w, h int64) engine.Job { j := big; j.Values = values{"size": size(w, h)}; return j }
	for _, tt := range []struct {
		name, want string
		job        engine.Job
	}{
		{"no picture", "A picture is required.", job("pan-zoom", nil, nil)},
		{"one slide", "At least 2 pictures", job("slideshow", nil, pictures(f))},
		{"thirteen slides", "At most 12 pictures", job("slideshow", nil, pictures(many...))},
		{"no video", "A video is required.", job("video-to-gif", nil, nil)},
		{"no sound", "A recording is required.", job("waveform", nil, nil)},
		{"heic", "does not support the type", job("pan-zoom", nil, pictures(enginetest.FileFromBytes("image/heic", []byte("x"))))},
		{"a video as a picture", "does not support the type", job("pan-zoom", nil, pictures(clip(t)))},
		{"a picture as a video", "does not support the type", job("video-to-gif", nil, videoInput(f))},
		{"too small", "64 to 1920 pixels", shaped(32, 64)},
		{"too large", "64 to 1920 pixels", shaped(1920, 1920)},
		{"too wide", "64 to 1920 pixels", shaped(3000, 64)},
		{"a video without pictures", "contains no video", job("smooth-motion", nil, videoInput(mute))},
		{"a long video", "longer than 10 minutes", job("video-to-gif", nil, videoInput(long))},
		{"a long result", "The limit is 300.", job("smooth-motion", values{"effect": "slow"}, videoInput(halfLong))},
		{"too much work", "would take too long", job("smooth-motion", values{"method": "motion"}, videoInput(large))},
		{"a start behind the end", "cannot start at 5.0", job("video-to-gif", values{"start": 5.0}, videoInput(clip(t)))},
		{"a long recording", "longer than 5 minutes", job("waveform", nil, map[string][]engine.File{"audio": {speech}})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if e := refusal(t, tt.job); !strings.Contains(e.Message, tt.want) || e.Transient {
				t.Errorf("failure = %v, want %q", e, tt.want)
			}
		})
	}
}

// TestBrokenFiles are damaged in many ways. What ffmpeg says of them is not for
// people.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	for operation, j := range cases(t) {
		for key, files := range j.Files {
			for name, spoil := range map[string]func([]byte) []byte{
				"empty":   func([]byte) []byte { return nil },
				"noise":   func([]byte) []byte { return []byte(strings.Repeat("no such thing ", 300)) },
				"a start": func(b []byte) []byte { return b[:min(len(b), 40)] },
			} {
				t.Run(operation+" "+key+" "+name, func(t *testing.T) {
					t.Parallel()
					j := cases(t)[operation]
					f := files[0]
					j.Files[key] = append([]engine.File{enginetest.FileFromBytes(f.MimeType, spoil(bytesOf(t, f)))}, files[1:]...)
					e := refusal(t, j)
					if e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, "could not be read") {
						t.Errorf("failure = %v", e)
					}
				})
			}
		}
	}
}
