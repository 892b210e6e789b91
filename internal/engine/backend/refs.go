package backend

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
)

// FileRef is a file whose URL is in a response.
type FileRef struct {
	URL  string
	Type string // media type; empty if unknown
}

// maxDepth is the maximum nesting depth of JSON that is searched for files.
const maxDepth = 32

// FindFiles returns the files whose URLs are in a JSON response, in order. It
// uses the values of the key url in objects or, if there are none, all strings
// that are URLs.
func FindFiles(answer json.RawMessage) []FileRef {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	var w fileFinder
	w.findInValue(d, maxDepth) // if the rest is invalid JSON, the files found before it are returned
	if len(w.objects) > 0 {
		return w.objects
	}
	return w.texts
}

type fileFinder struct{ objects, texts []FileRef }

// findInValue searches the next JSON value for files. If the value is a
// string, it returns the string and true.
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
	at := len(w.objects) // files inside the object are listed after the object's own file
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

// IsEcho reports whether a URL occurs in one of a job's input values. If a
// person writes a URL and the model repeats it, it is not a result: fetching
// it could reach hosts that the person cannot reach, possibly with the
// server's credentials.
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

// FindResults returns the files whose URLs are in a JSON response, except URLs
// that occur in the job's input values.
func FindResults(answer json.RawMessage, values map[string]any) []FileRef {
	return slices.DeleteFunc(FindFiles(answer), func(r FileRef) bool { return IsEcho(r.URL, values) })
}

// fileMarks map an output type to the media type prefixes and file name
// endings that identify its files.
var fileMarks = map[string][]string{
	"IMG":      {"image/", ".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif", ".svg"},
	"VID":      {"video/", ".mp4", ".webm", ".mov", ".mkv"},
	"AUDIO":    {"audio/", ".mp3", ".wav", ".flac", ".ogg", ".opus", ".m4a", ".aac"},
	"ASSET_3D": {"model/", ".glb", ".gltf", ".obj", ".ply", ".stl", ".usdz", ".fbx"},
	"TEXT":     {"text/", ".txt", ".json", ".srt", ".vtt", ".md"},
}

// FilterByType returns the files of a tool's output type, so that a video's
// thumbnail is not mistaken for another video. If no file is known to have the
// type, it returns all files.
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
