package imageengine

import (
	"fmt"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// task is a job with access to its inputs. The catalog has validated the inputs
// against the tool's manifest, but a manifest may omit fields or allow values
// that an operation does not support.
type task struct {
	engine.Job
	out         engine.Sink
	reservation *memoryReservation
}

func (t task) textInput(key, fallback string) string {
	if s, ok := t.Values[key].(string); ok && s != "" {
		return s
	}
	return fallback
}

func (t task) flagInput(key string, fallback bool) bool {
	if b, ok := t.Values[key].(bool); ok {
		return b
	}
	return fallback
}

// sizeInput returns the width and height of a size input in pixels, or the
// given values if the input is missing.
func (t task) sizeInput(key string, width, height int) (w, h int, err error) {
	m, ok := t.Values[key].(map[string]any)
	if !ok {
		return width, height, checkSize(width, height)
	}
	side := func(name string) int {
		return int(engine.Job{Values: m}.NumberInput(name, 0, 0, pixels.MaxPixels))
	}
	w = side("width")
	h = side("height")
	if w < 1 || h < 1 {
		return 0, 0, engine.Fail(engine.Failed, "The width and the height must be at least 1 pixel.")
	}
	return w, h, checkSize(w, h)
}

// checkSize returns an error if a result of w by h pixels exceeds the limit.
func checkSize(w, h int) error {
	if n := int64(w) * int64(h); n > pixels.MaxPixels {
		return engine.Fail(engine.Failed, fmt.Sprintf("The result would be %d by %d pixels. The limit is %d megapixels.", w, h, pixels.MaxPixels/1_000_000))
	}
	return nil
}

// fileInput returns the first file of an input field. It fails if there is
// none.
func (t task) fileInput(key string) (engine.File, error) {
	files := t.Files[key]
	if len(files) == 0 {
		return engine.File{}, engine.Fail(engine.Failed, "A picture is required.")
	}
	return files[0], nil
}
