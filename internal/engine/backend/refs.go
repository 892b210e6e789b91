package backend

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
)

// FileRef is a file that a response names.
type FileRef struct {
	URL  string
	Type string // media type; "": unknown
}

// maxDepth limits the nesting depth that is searched.
const maxDepth = 32

// FindFiles returns the files that a response names, in order: objects with a url or, if there are
// none, texts that are URLs.
func FindFiles(answer json.RawMessage) []FileRef {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	var w fileFinder
	w.findInValue(d, maxDepth) // an invalid rest names no files
	if len(w.objects) > 0 {
		return w.objects
	}
	return w.texts
}

type fileFinder struct{ objects, texts []FileRef }

// findInValue searches the next value. It returns the value if it is a text.
func (w *fileFinder) findInValue(d *json.Decoder, depth int) (text string, ok bool) {
	token, err := d.Token()
	if err != nil || depth == 0 {
		return "", false
	}
	switch v := token.(type) {
	case string:
		if isFileURL(v) {
			w.texts = append(w.texts, FileRef{URL: v})
		}
		return v, true
	case json.Delim:
		if v == '[' {
			for d.More() {
				if _, ok := w.findInValue(d, depth-1); !ok {
					return "", false
				}
			}
		} else {
			w.findInObject(d, depth)
		}
		_, err := d.Token()
		return "", err == nil
	}
	return "", true
}

func (w *fileFinder) findInObject(d *json.Decoder, depth int) {
	var r FileRef
	at := len(w.objects) // files inside the object come after it
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return
		}
		text, ok := w.findInValue(d, depth-1)
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
	if isFileURL(r.URL) {
		w.objects = slices.Insert(w.objects, at, r)
	}
}

func isFileURL(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "data:")
}

// IsEcho reports whether a URL is part of a text among a job's inputs. A URL that a person wrote
// and a model repeats is not a result: fetching it could reach hosts that the person cannot,
// possibly with the server's credentials.
func IsEcho(ref string, values any) bool {
	switch v := values.(type) {
	case string:
		return strings.Contains(v, ref)
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return IsEcho(ref, one) })
	case map[string]any:
		for _, one := range v {
			if IsEcho(ref, one) {
				return true
			}
		}
	}
	return false
}

// FindResults returns the files that a response names and that are not echoes of inputs.
func FindResults(answer json.RawMessage, values map[string]any) []FileRef {
	return slices.DeleteFunc(FindFiles(answer), func(r FileRef) bool { return IsEcho(r.URL, values) })
}

// fileMarks identify the type of files by the start of their media type or the end of their name.
var fileMarks = map[string][]string{
	"IMG":      {"image/", ".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif", ".svg"},
	"VID":      {"video/", ".mp4", ".webm", ".mov", ".mkv"},
	"AUDIO":    {"audio/", ".mp3", ".wav", ".flac", ".ogg", ".opus", ".m4a", ".aac"},
	"ASSET_3D": {"model/", ".glb", ".gltf", ".obj", ".ply", ".stl", ".usdz", ".fbx"},
	"TEXT":     {"text/", ".txt", ".json", ".srt", ".vtt", ".md"},
}

// FilterByType keeps the files of a tool's output type, so that a video's thumbnail is not taken
// for another video. If no file is known to be of the type it keeps all.
func FilterByType(refs []FileRef, outputType string) []FileRef {
	fit := slices.DeleteFunc(slices.Clone(refs), func(r FileRef) bool { return !r.isOfType(outputType) })
	if len(fit) > 0 {
		return fit
	}
	return refs
}

func (r FileRef) isOfType(outputType string) bool {
	mimeType := r.Type
	ending := ""
	if rest, ok := strings.CutPrefix(r.URL, "data:"); ok {
		mimeType = rest
	} else if u, err := url.Parse(r.URL); err == nil {
		ending = strings.ToLower(path.Ext(u.Path))
	}
	return slices.ContainsFunc(fileMarks[outputType], func(k string) bool {
		return strings.HasPrefix(mimeType, k) || k == ending
	})
}
