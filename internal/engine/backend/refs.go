package backend

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Ref is a file that an answer names.
type Ref struct {
	URL  string
	Type string // its media type, "" where the answer does not say
}

// maxDepth bounds how deep an answer is looked into.
const maxDepth = 32

// Refs gives the files that an answer names, in the order they are written:
// objects with a url, or, where it has none of those, texts that are addresses.
func Refs(answer json.RawMessage) []Ref {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	var w walk
	w.value(d, maxDepth) // what does not parse names nothing more
	if len(w.objects) > 0 {
		return w.objects
	}
	return w.texts
}

type walk struct{ objects, texts []Ref }

// value looks into the next value and gives it where it is a text.
func (w *walk) value(d *json.Decoder, depth int) (text string, ok bool) {
	token, err := d.Token()
	if err != nil || depth == 0 {
		return "", false
	}
	switch v := token.(type) {
	case string:
		if address(v) {
			w.texts = append(w.texts, Ref{URL: v})
		}
		return v, true
	case json.Delim:
		if v == '[' {
			for d.More() {
				if _, ok := w.value(d, depth-1); !ok {
					return "", false
				}
			}
		} else {
			w.object(d, depth)
		}
		_, err := d.Token()
		return "", err == nil
	}
	return "", true
}

func (w *walk) object(d *json.Decoder, depth int) {
	var r Ref
	at := len(w.objects) // files inside it come after it
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return
		}
		text, ok := w.value(d, depth-1)
		if !ok {
			return
		}
		switch key {
		case "url":
			r.URL = text
		case "content_type":
			r.Type = text
		}
	}
	if address(r.URL) {
		w.objects = slices.Insert(w.objects, at, r)
	}
}

func address(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "data:")
}

// Echoed tells whether an address is part of a text among a job's values. One
// that a person wrote and a model repeats is no result: it would be fetched from
// where that person cannot reach, maybe with the server's credentials.
func Echoed(ref string, values any) bool {
	switch v := values.(type) {
	case string:
		return strings.Contains(v, ref)
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return Echoed(ref, one) })
	case map[string]any:
		for _, one := range v {
			if Echoed(ref, one) {
				return true
			}
		}
	}
	return false
}

// Made gives the files that an answer names and that are not Echoed.
func Made(answer json.RawMessage, values map[string]any) []Ref {
	return slices.DeleteFunc(Refs(answer), func(r Ref) bool { return Echoed(r.URL, values) })
}

// kinds are what files are by the start of their media type or the end of their
// name.
var kinds = map[string][]string{
	"IMG":      {"image/", ".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif", ".svg"},
	"VID":      {"video/", ".mp4", ".webm", ".mov", ".mkv"},
	"AUDIO":    {"audio/", ".mp3", ".wav", ".flac", ".ogg", ".opus", ".m4a", ".aac"},
	"ASSET_3D": {"model/", ".glb", ".gltf", ".obj", ".ply", ".stl", ".usdz", ".fbx"},
	"TEXT":     {"text/", ".txt", ".json", ".srt", ".vtt", ".md"},
}

// Pick keeps the files that are what a tool makes, so that a picture of a video
// is not taken for another one; all of them where none is known to be.
func Pick(refs []Ref, outputType string) []Ref {
	fit := slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool { return !r.is(outputType) })
	if len(fit) > 0 {
		return fit
	}
	return refs
}

func (r Ref) is(outputType string) bool {
	mimeType := r.Type
	ending := ""
	if rest, ok := strings.CutPrefix(r.URL, "data:"); ok {
		mimeType = rest
	} else if u, err := url.Parse(r.URL); err == nil {
		ending = strings.ToLower(path.Ext(u.Path))
	}
	return slices.ContainsFunc(kinds[outputType], func(k string) bool {
		return strings.HasPrefix(mimeType, k) || k == ending
	})
}
