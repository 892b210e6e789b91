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

// task is a job with ways to ask for its inputs. The catalog has checked them
// against the manifest, but a manifest may leave fields out or allow more than
// an operation can do.
type task struct{ engine.Job }

// makes tells whether the tool may make files of a type.
func (t task) makes(mimeType string) bool { return slices.Contains(t.MimeTypes, mimeType) }

func (t task) flag(key string, otherwise bool) bool {
	if b, ok := t.Values[key].(bool); ok {
		return b
	}
	return otherwise
}

// choice gives what one of the words stands for. A word that is not among them
// is a manifest's mistake: it is refused, and never gets any further.
func choice[T any](t task, key, otherwise string, words map[string]T) (T, error) {
	word := otherwise
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
		return chosen, engine.ErrSetup.Because(fmt.Errorf("%s is none of the words that there are", key))
	}
	return chosen, nil
}

// shape is a width and a height in pixels.
type shape struct{ w, h int }

func (s shape) String() string { return fmt.Sprintf("%dx%d", s.w, s.h) }

// The shapes that results can have.
const (
	leastSide  = 64
	mostSide   = 1920
	mostPixels = 1920 * 1080
)

// shape gives the size of the result. Video wants even sides.
func (t task) shape(key string, w, h int) (shape, error) {
	if m, ok := t.Values[key].(map[string]any); ok {
		side := func(name string) int { return int(engine.Job{Values: m}.Number(name, 0, 0, 1e6)) }
		w = side("width")
		h = side("height")
	}
	if min(w, h) < leastSide || max(w, h) > mostSide || w*h > mostPixels {
		return shape{}, engine.Fail(engine.Failed, fmt.Sprintf("The sides of the video must be %d to %d pixels long, and it can have the pixels of 1920 by 1080.", leastSide, mostSide))
	}
	return shape{even(w), even(h)}, nil
}

// even rounds a side down to an even number.
func even(n int) int { return max(n&^1, 2) }

// colour gives a colour as filters write it.
func (t task) colour(key, otherwise string) (string, error) {
	s, ok := t.Values[key].(string)
	if !ok || strings.TrimSpace(s) == "" {
		s = otherwise
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

// file gives the one media input of a field; what is its name for people.
func (t task) file(key, what string) (engine.File, error) {
	files := t.Files[key]
	if len(files) == 0 {
		return engine.File{}, engine.Fail(engine.Failed, "A "+what+" is needed.")
	}
	return files[0], nil
}

// maxPictures is how many pictures a video can be made of.
const maxPictures = 12

func (t task) pictures(least int) ([]engine.File, error) {
	files := t.Files["pictures"]
	switch {
	case len(files) < least && least == 1:
		return nil, engine.Fail(engine.Failed, "A picture is needed.")
	case len(files) < least:
		return nil, engine.Fail(engine.Failed, fmt.Sprintf("At least %d pictures are needed.", least))
	case len(files) > maxPictures:
		return nil, engine.Fail(engine.Failed, fmt.Sprintf("At most %d pictures are possible.", maxPictures))
	}
	return files, nil
}

// num writes a number as filters read it.
func num(f float64) string { return strconv.FormatFloat(f, 'f', 6, 64) }
