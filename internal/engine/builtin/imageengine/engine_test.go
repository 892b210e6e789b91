package imageengine_test

import (
	"bytes"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/imageengine"
	"atelier/internal/engine/enginetest"
)

func TestToolsSetUpWronglySaySo(t *testing.T) {
	t.Parallel()
	good := job("gradient", values{"size": size(16, 16)})
	for name, change := range map[string]func(*engine.Job){
		"no such operation": func(j *engine.Job) { j.With = `{"operation":"dance"}` },
		"no operation":      func(j *engine.Job) { j.With = `{}` },
		"no JSON":           func(j *engine.Job) { j.With = `` },
		"more than known":   func(j *engine.Job) { j.With = `{"operation":"gradient","colour":"red"}` },
		"no such style":     func(j *engine.Job) { j.Values = values{"style": "dotted"} },
		"no such type":      func(j *engine.Job) { j.MimeTypes = []string{"image/webp"} },
	} {
		t.Run(name, func(t *testing.T) {
			j := good
			change(&j)
			e := refusal(t, j)
			if e.Code != engine.Failed || e.Message != "This tool is not configured correctly. Contact the operator." {
				t.Errorf("failure = %v", e)
			}
		})
	}
}

func TestFirstResultIsTheSingleOne(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"gradient", "pattern"} {
		j := job(operation, values{"size": size(64, 64)})
		single := results(t, j)
		j.NumResults = 4
		many := results(t, j)
		if !bytes.Equal(single[0], many[0]) {
			t.Errorf("%s: result 0 of four is not the result of one", operation)
		}
		if len(many) != 4 || bytes.Equal(many[1], many[2]) {
			t.Errorf("%s: further results are not of their own", operation)
		}
		j.Seed++
		if next := results(t, j); bytes.Equal(next[0], many[1]) {
			t.Errorf("%s: result 1 is that of the next seed", operation)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	both, onlyPNG, onlyJPEG := []string{"image/png", "image/jpeg"}, []string{"image/png"}, []string{"image/jpeg"}
	fromJPEG, fromPNG, seeThrough := jpegFile(photo(32, 32)), pngFile(photo(32, 32)), pngFile(flat(32, 32, nothing))
	for _, tt := range []struct {
		name  string
		file  engine.File
		asked string
		makes []string
		want  string
	}{
		{"a JPEG stays one", fromJPEG, "same", both, "jpeg"},
		{"a PNG stays one", fromPNG, "same", both, "png"},
		{"a JPEG becomes a PNG", fromJPEG, "png", both, "png"},
		{"a PNG becomes a JPEG", fromPNG, "jpeg", both, "jpeg"},
		{"nothing asked", fromJPEG, "", both, "jpeg"},
		{"alpha is kept", seeThrough, "jpeg", both, "png"},
		{"a tool for PNG", fromJPEG, "jpeg", onlyPNG, "png"},
		{"a tool for JPEG", fromPNG, "png", onlyJPEG, "jpeg"},
		{"a tool for JPEG, alpha", seeThrough, "same", onlyJPEG, "jpeg"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := job("crop", values{"format": tt.asked}, tt.file)
			j.MimeTypes = tt.makes
			if _, format := decoded(t, results(t, j)[0]); format != tt.want {
				t.Errorf("format = %s, want %s", format, tt.want)
			}
		})
	}
}

func TestNoAlphaOnJPEGIsWhite(t *testing.T) {
	t.Parallel()
	j := job("crop", nil, pngFile(flat(32, 32, nothing)))
	j.MimeTypes = []string{"image/jpeg"}
	if got := drawn(t, j).NRGBAAt(16, 16); !near(got, white, 2) {
		t.Errorf("colour = %v, want white", got)
	}
}

func TestPreviewsOfLongWork(t *testing.T) {
	t.Parallel()
	picture := pngFile(photo(500, 500))
	for _, tt := range []struct {
		name string
		job  engine.Job
		want int
	}{
		{"a large upscale", job("upscale", values{"factor": int64(4), "sharpen": int64(0)}, picture), 1}, // 4 megapixels
		{"a small upscale", job("upscale", values{"factor": int64(2)}, picture), 0},
		{"a large photograph", job("photo-upscale", values{"factor": int64(4), "detail": int64(0), "format": "jpeg"}, picture), 1},
		{"a contact sheet of four", job("contact", values{"format": "jpeg"}, picture, picture, picture, picture), 1},
		{"a contact sheet of three", job("contact", values{"format": "jpeg"}, picture, picture, picture), 0},
		{"a collage of four", job("collage", values{"width": int64(200)}, picture, picture, picture, picture), 1},
		{"a collage of three", job("collage", values{"width": int64(200)}, picture, picture, picture), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r enginetest.Recorder
			if err := imageengine.New().Run(t.Context(), tt.job, &r); err != nil {
				t.Fatal(err)
			}
			if got := len(r.Previews()); got != tt.want {
				t.Fatalf("previews = %d, want %d", got, tt.want)
			}
			for _, b := range r.Previews() {
				if m, format := decoded(t, b); format != "jpeg" || max(m.Rect.Dx(), m.Rect.Dy()) > 512 || len(b) > 200_000 {
					t.Errorf("preview = %s of %v, %d bytes", format, m.Rect, len(b))
				}
			}
		})
	}
}

func TestProgressHasSteps(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	if err := imageengine.New().Run(t.Context(), job("pattern", values{"size": size(512, 512)}), &r); err != nil {
		t.Fatal(err)
	}
	steps := r.Fractions()
	if len(steps) < 10 || len(steps) > 60 || steps[len(steps)-1] != 1 {
		t.Errorf("progress = %v, want some steps up to 1", steps)
	}
}

func TestResultsAreNeverTooLarge(t *testing.T) {
	t.Parallel()
	picture := pngFile(flat(2, 2, red))
	for _, tt := range []struct {
		name string
		job  engine.Job
	}{
		{"gradient", job("gradient", values{"size": size(10_000, 5001)})},
		{"pattern", job("pattern", values{"size": size(8192, 8192)})},
		{"resize, stretched", job("resize", values{"size": size(8192, 8192), "fit": "stretch"}, picture)},
		{"resize, inside", job("resize", values{"size": size(8192, 8192)}, picture)},
		{"collage", job("collage", values{"width": int64(16384)}, picture)},
		{"upscale", job("upscale", values{"factor": int64(4)}, header(2501, 1250))},
		{"photo-upscale", job("photo-upscale", values{"factor": int64(4)}, header(2501, 1250))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if e := refusal(t, tt.job); !strings.Contains(e.Message, "limit is 50 megapixels") {
				t.Errorf("failure = %v", e)
			}
		})
	}
	// A box of too many pixels is fine where the picture fills only some of it.
	wantSize(t, drawn(t, job("resize", values{"size": size(8192, 8192)}, pngFile(flat(40, 1, red)))), 8192, 205)
}

func TestSizesOfNothingAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []values{size(0, 5), size(5, 0), size(-1, 5), {}} {
		if e := refusal(t, job("pattern", values{"size": s})); !strings.Contains(e.Message, "at least 1 pixel") {
			t.Errorf("%v: %v", s, e)
		}
	}
}
