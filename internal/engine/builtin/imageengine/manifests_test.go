package imageengine_test

import (
	"bytes"
	"image/color"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"atelier/internal/engine"
	"atelier/tools"
)

type manifest struct {
	Engine struct {
		Name string
		With struct{ Operation string }
	}
	Output struct {
		MimeTypes []string `yaml:"mime_types"`
	}
	Fields []field
}

type field struct {
	Key, Type string
	Min, Max  float64
	Options   []struct{ Value string }
	Fields    []field
}

// fields are all leaves with values of their own.
func (m manifest) fields() []field {
	var all []field
	var walk func([]field)
	walk = func(list []field) {
		for _, f := range list {
			walk(f.Fields)
			if f.Key != "" {
				all = append(all, f)
			}
		}
	}
	walk(m.Fields)
	return all
}

func shipped(t *testing.T) map[string]manifest {
	t.Helper()
	names, err := fs.Glob(tools.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]manifest{}
	for _, name := range names {
		b, err := fs.ReadFile(tools.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		var m manifest
		// Tags and kits have another form.
		if yaml.Unmarshal(b, &m) == nil && m.Engine.Name == "image" {
			all[strings.TrimSuffix(name, ".yaml")] = m
		}
	}
	if len(all) == 0 {
		t.Fatal("no shipped tool uses this engine")
	}
	return all
}

// TestEveryFieldOfEveryToolMatters changes one field at a time, to each option
// or to both ends of its range.
func TestEveryFieldOfEveryToolMatters(t *testing.T) {
	t.Parallel()
	// A picture with a transparent corner would always be PNG, so it has none.
	subject := photo(120, 80)
	subject.SetNRGBA(5, 5, color.NRGBA{250, 20, 20, 255})
	for name, m := range shipped(t) {
		pictures := []engine.File{jpegFile(subject), pngFile(subject), jpegFile(photo(60, 90))}
		switch name {
		case "gradient", "pattern":
			pictures = nil
		case "cut-out":
			pictures = []engine.File{pngFile(stage(120, 80, wallOf(240, 240, 235), patches, 1))}
		}
		for _, f := range m.fields() {
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
func variantsOf(t *testing.T, f field) []any {
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
	for _, m := range shipped(t) {
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
