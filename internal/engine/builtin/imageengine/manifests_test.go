package imageengine_test

import (
	"bytes"
	"image/color"
	"maps"
	"math"
	"slices"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

// TestEveryFieldOfEveryToolMatters changes one field at a time, to each option
// or to both ends of its range.
func TestEveryFieldOfEveryToolMatters(t *testing.T) {
	t.Parallel()
	// A picture with a transparent corner would always be PNG, so it has none.
	subject := photo(120, 80)
	subject.SetNRGBA(5, 5, color.NRGBA{250, 20, 20, 255})
	for name, m := range enginetest.ShippedManifests(t, "image") {
		pictures := []engine.File{jpegFile(subject), pngFile(subject), jpegFile(photo(60, 90))}
		switch name {
		case "gradient", "pattern":
			pictures = nil
		case "cut-out":
			pictures = []engine.File{pngFile(stage(120, 80, wallOf(240, 240, 235), patches, 1))}
		}
		for _, f := range m.InputFields() {
			t.Run(name+" "+f.Key, func(t *testing.T) {
				t.Parallel()
				variants := variantsOf(t, f)
				if variants == nil {
					return
				}
				seen := map[string]any{}
				for _, v := range variants {
					j := job(m.Engine.With.Operation, values{"width": int64(240), "size": size(64, 64)}, pictures...)
					if name == "crop" && f.Key == "vertical" {
						j.Values["ratio"] = "21:9"
					}
					j.MimeTypes = m.Output.MimeTypes
					j.Values["format"] = "jpeg" // which is quick
					j.Values = maps.Clone(j.Values)
					j.Values[f.Key] = v
					out := string(results(t, j)[0])
					if before, ok := seen[out]; ok {
						t.Errorf("%v and %v make no difference", before, v)
					}
					seen[out] = v
				}
			})
		}
	}
}

// patches are a ring, and a bar of which more counts as background the more a
// tool tolerates.
func patches(x, y float64) ([3]float64, bool) {
	d := math.Hypot(x-40, y-40)
	return [3]float64{235 - 2*(x-80), 235 - 2*(x-80), 60}, d < 30 && d > 15 || x > 80 && x < 110 && y > 20 && y < 60
}

// variantsOf gives values that have to make a difference. A type that is not
// known here fails the test, so that a new field needs a line.
func variantsOf(t *testing.T, f enginetest.ManifestField) []any {
	t.Helper()
	var all []any
	switch f.Type {
	case "IMG", "IMGS", "SEED": // shown by other tests
	case "SLIDER", "UPSCALE_FACTOR_SLIDER":
		high := f.Max
		if f.Key == "width" {
			high = 2 * f.Min // the largest is only slow
		}
		if f.Key == "gap" {
			high = 36 // more than the sheet of this test has room for
		}
		all = []any{f.Min, (f.Min + high) / 2, high}
		if f.Key == "columns" {
			all = []any{1.0, 2.0, 3.0} // there are three pictures, and 0 is one of these
		}
	case "BOOLEAN":
		all = []any{false, true}
	case "SINGLE_SELECT":
		for _, o := range f.Options {
			all = append(all, o.Value)
		}
		if f.Key == "format" {
			all = []any{"png", "jpeg"} // the third is one of the two
		}
	case "WIDTH_HEIGHT":
		all = []any{size(64, 72), size(72, 64)}
	case "TEXT":
		all = []any{"#fa3", "#00ff00"}
		if f.Key == "colours" {
			all = []any{"", "#fa3, #0000ff", "#fa3, #0f0, #0000ff"}
		}
	default:
		t.Fatalf("a field of type %s", f.Type)
	}
	return all
}

func TestEveryOperationShips(t *testing.T) {
	t.Parallel()
	var used []string
	for _, m := range enginetest.ShippedManifests(t, "image") {
		used = append(used, m.Engine.With.Operation)
	}
	slices.Sort(used)
	want := []string{"adjust", "collage", "contact", "crop", "cutout", "gradient", "palette", "pattern", "photo-upscale", "resize", "upscale"}
	if !slices.Equal(used, want) {
		t.Errorf("operations = %v, want %v", used, want)
	}
}

func TestDefaultsOfTheOperationsAreThoseOfNoValues(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]values{
		"adjust":  {"exposure": int64(0), "contrast": int64(0), "saturation": int64(0), "warmth": int64(0), "mono": false, "format": "same"},
		"crop":    {"ratio": "1:1", "horizontal": 0.5, "vertical": 0.5},
		"palette": {"colours": int64(6), "labels": true},
		"upscale": {"factor": int64(2), "sharpen": 0.3},
		"contact": {"title": "", "columns": int64(0), "page": "a4-portrait", "background": "light", "numbers": true},
		"cutout":  {"tolerance": 0.3, "soften": 0.5, "holes": false, "background": "transparent"},

		"photo-upscale": {"factor": int64(2), "detail": 0.4},
	} {
		f := pngFile(photo(30, 20))
		switch name {
		case "contact":
			f = jpegFile(photo(30, 20)) // gives the quicker file
		case "cutout":
			f = pngFile(stage(60, 60, wallOf(240, 240, 235), figure(60, 60), 0))
		}
		if !bytes.Equal(results(t, job(name, nil, f))[0], results(t, job(name, v, f))[0]) {
			t.Errorf("%s: the defaults are others", name)
		}
	}
}
