package imageengine

import (
	"fmt"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// task is a job with ways to ask for its inputs. The catalog has checked them
// against the manifest, but a manifest may leave fields out or allow more than
// an operation can do.
type task struct {
	engine.Job
	out  engine.Sink
	hold *hold
}

func (t task) text(key, otherwise string) string {
	if s, ok := t.Values[key].(string); ok && s != "" {
		return s
	}
	return otherwise
}

func (t task) flag(key string, otherwise bool) bool {
	if b, ok := t.Values[key].(bool); ok {
		return b
	}
	return otherwise
}

// size gives a width and a height in pixels.
func (t task) size(key string, width, height int) (w, h int, err error) {
	m, ok := t.Values[key].(map[string]any)
	if !ok {
		return width, height, fits(width, height)
	}
	side := func(name string) int {
		return int(engine.Job{Values: m}.Number(name, 0, 0, pixels.Most))
	}
	w = side("width")
	h = side("height")
	if w < 1 || h < 1 {
		return 0, 0, engine.Fail(engine.Failed, "The width and the height must be at least 1 pixel.")
	}
	return w, h, fits(w, h)
}

// fits refuses results that are too large.
func fits(w, h int) error {
	if n := int64(w) * int64(h); n > pixels.Most {
		return engine.Fail(engine.Failed, fmt.Sprintf("The result would be %d by %d pixels; at most %d megapixels are possible.", w, h, pixels.Most/1_000_000))
	}
	return nil
}

// file gives the one media input of a field.
func (t task) file(key string) (engine.File, error) {
	files := t.Files[key]
	if len(files) == 0 {
		return engine.File{}, engine.Fail(engine.Failed, "A picture is needed.")
	}
	return files[0], nil
}
