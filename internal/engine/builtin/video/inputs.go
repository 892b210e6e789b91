package video

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/engine"
)

const (
	mp4 = "video/mp4"
	gif = "image/gif"
)

// task is a job with access to its inputs. The catalog has validated the inputs
// against the tool's manifest, but a manifest may omit fields or allow values
// that an operation does not support.
type task struct{ engine.Job }

// canMake reports whether the tool may produce files of a MIME type.
func (t task) canMake(mimeType string) bool { return slices.Contains(t.MimeTypes, mimeType) }

func (t task) flagInput(key string, fallback bool) bool {
	if b, ok := t.Values[key].(bool); ok {
		return b
	}
	return fallback
}

// choiceInput returns the value in the map words for the choice that a person
// made. A choice that is missing from words is a mistake in the manifest. It is
// refused, so that only known strings become part of a command line.
func choiceInput[T any](t task, key, fallback string, words map[string]T) (T, error) {
	word := fallback
	switch v := t.Values[key].(type) {
	case nil:
	case string:
		word = v
	case int64:
		word = strconv.FormatInt(v, 10)
	case float64:
		word = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		word = ""
	}
	chosen, ok := words[word]
	if !ok {
		return chosen, engine.ErrMisconfigured.WithCause(fmt.Errorf("the value of %s is not supported", key))
	}
	return chosen, nil
}

// shape is a width and a height in pixels.
type shape struct{ w, h int }

func (s shape) String() string { return fmt.Sprintf("%dx%d", s.w, s.h) }

// Limits on the size of a result in pixels.
const (
	minSide   = 64
	maxSide   = 1920
	maxPixels = 1920 * 1080
)

// shapeInput returns the requested size of the result, rounded down to even
// numbers, which video requires. w and h are the default.
func (t task) shapeInput(key string, w, h int) (shape, error) {
	if m, ok := t.Values[key].(map[string]any); ok {
		side := func(name string) int { return int(engine.Job{Values: m}.NumberInput(name, 0, 0, 1e6)) }
		w = side("width")
		h = side("height")
	}
	if min(w, h) < minSide || max(w, h) > maxSide || w*h > maxPixels {
		return shape{}, engine.Fail(engine.Failed, fmt.Sprintf("The width and the height of the video must be %d to %d pixels, and the video may not have more pixels than 1920 by 1080.", minSide, maxSide))
	}
	return shape{evenSide(w), evenSide(h)}, nil
}

// evenSide rounds a width or height down to an even number of at least 2.
func evenSide(n int) int { return max(n&^1, 2) }

// colourInput returns a colour in the syntax of FFmpeg's filters.
func (t task) colourInput(key, fallback string) (string, error) {
	s, ok := t.Values[key].(string)
	if !ok || strings.TrimSpace(s) == "" {
		s = fallback
	}
	digits, marked := strings.CutPrefix(strings.TrimSpace(s), "#")
	if len(digits) == 3 {
		digits = string([]byte{digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]})
	}
	v, err := strconv.ParseUint(digits, 16, 24)
	if err != nil || len(digits) != 6 || !marked {
		return "", engine.Fail(engine.Failed, "A colour must be a hex code such as #1d3557.")
	}
	return fmt.Sprintf("0x%06x", v), nil
}

// fileInput returns the first file of an input field. It fails if there is no
// file. The parameter what names the kind of file in the error message.
func (t task) fileInput(key, what string) (engine.File, error) {
	files := t.Files[key]
	if len(files) == 0 {
		return engine.File{}, engine.Fail(engine.Failed, "A "+what+" is required.")
	}
	return files[0], nil
}

// maxPictures is the largest number of pictures in a video.
const maxPictures = 12

func (t task) pictureInputs(minCount int) ([]engine.File, error) {
	files := t.Files["pictures"]
	switch {
	case len(files) < minCount && minCount == 1:
		return nil, engine.Fail(engine.Failed, "A picture is required.")
	case len(files) < minCount:
		return nil, engine.Fail(engine.Failed, fmt.Sprintf("At least %d pictures are required.", minCount))
	case len(files) > maxPictures:
		return nil, engine.Fail(engine.Failed, fmt.Sprintf("At most %d pictures are allowed.", maxPictures))
	}
	return files, nil
}

// formatNumber returns a number in the syntax of FFmpeg's filters.
func formatNumber(f float64) string { return strconv.FormatFloat(f, 'f', 6, 64) }
