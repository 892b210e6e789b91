package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// maxInline bounds a file that has to travel inside of JSON.
const maxInline = 24 << 20

// names are the parameters for fields that are called otherwise here. A
// manifest's rename comes before them.
var names = map[string]map[string]string{
	"images":     {"steps": "num_inference_steps", "cfg": "guidance_scale", "picture": "image", "pictures": "image"},
	"edits":      {"steps": "num_inference_steps", "cfg": "guidance_scale", "picture": "image", "pictures": "image"},
	"speech":     {"prompt": "input", "text": "input", "format": "response_format"},
	"videos":     {"steps": "num_inference_steps", "cfg": "guidance_scale", "picture": "input_reference", "image": "input_reference"},
	"video-sync": {"steps": "step", "cfg": "cfg_scale", "picture": "start_image", "image": "start_image", "size.width": "width", "size.height": "height"},
}

// name gives the parameter for a field, false for none.
func (t *task) name(key string) (string, bool) {
	to, ok := t.Rename[key]
	if !ok {
		if to, ok = names[t.Call][key]; !ok {
			to = key
		}
	}
	return to, to != "-" && to != ""
}

// parameters gives the body without files, for a call that makes so many
// results after those that are there. results is 0 for calls that make one and
// do not want to be told.
func (t *task) parameters(there, results int) map[string]any {
	all := map[string]any{}
	for key, v := range t.Values {
		switch v := v.(type) {
		case map[string]any:
			t.size(all, key, v)
		case string:
			// What a person left empty is not sent: servers refuse empty options.
			if to, ok := t.name(key); ok && v != "" {
				all[to] = v
			}
		default:
			if key == "seed" && t.Rename[key] == "" {
				continue // Job.Seed tells it
			}
			if to, ok := t.name(key); ok && v != nil {
				all[strings.TrimSuffix(to, "[]")] = v
			}
		}
	}
	if t.Model != "" {
		all["model"] = t.Model
	}
	if results > 0 {
		all["n"] = results
	}
	if t.setting.Seed != "" {
		all[t.setting.Seed] = t.Job.Seed + uint32(there)
	}
	if t.ResponseFormat != "" {
		all["response_format"] = t.ResponseFormat
	}
	maps.Copy(all, t.Fixed)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// size sends a width and a height as 640x480, or apart where they are named.
func (t *task) size(all map[string]any, key string, v map[string]any) {
	apart := false
	for _, side := range []string{"width", "height"} {
		to, ok := t.name(key + "." + side)
		if to == key+"."+side {
			continue
		}
		apart = true
		if ok {
			all[to] = v[side]
		}
	}
	if to, ok := t.name(key); ok && !apart {
		all[to] = text(v["width"]) + "x" + text(v["height"])
	}
}

// text writes a parameter as a form does.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint32:
		return strconv.FormatUint(uint64(v), 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case json.Number:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil { // it came from JSON
		return ""
	}
	return string(b)
}

// upload is a media input and where it goes.
type upload struct {
	name string
	many bool
	file engine.File
}

// uploads gives the media inputs, fields in the order of their keys. A file
// that cannot be read is remembered in bad: the call will fail for it, and look
// as if the server had done it.
func (t *task) uploads(bad *trouble) []upload {
	var all []upload
	for _, key := range slices.Sorted(maps.Keys(t.Files)) {
		to, ok := t.name(key)
		if !ok {
			continue
		}
		name, list := strings.CutSuffix(to, "[]")
		for _, f := range t.Files[key] {
			f.Open = bad.watch(f.Open)
			all = append(all, upload{name: name, many: list || len(t.Files[key]) > 1, file: f})
		}
	}
	return all
}

// trouble is why a file could not be read.
type trouble struct {
	mu  sync.Mutex
	err error
}

func (b *trouble) get() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *trouble) note(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *trouble) watch(open func(context.Context) (io.ReadCloser, error)) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		r, err := open(ctx)
		if err != nil {
			b.note(err)
			return nil, err
		}
		return watched{r, b}, nil
	}
}

type watched struct {
	io.ReadCloser
	bad *trouble
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.bad.note(err)
	}
	return n, err
}

// postJSON sends the parameters, files inside of them. The answer's body has to
// be closed. An error is one of Client.Do, or of a file.
func (t *task) postJSON(ctx context.Context, path string, body map[string]any) (*http.Response, error) {
	for _, u := range t.uploads(&trouble{}) {
		uri, err := backend.DataURI(ctx, u.file, maxInline)
		if err != nil {
			return nil, unread{err}
		}
		var v any = uri
		switch t.Call {
		case "videos":
			v = map[string]any{"image_url": uri}
		case "video-sync": // LocalAI takes what follows the comma
			_, v, _ = strings.Cut(uri, ",")
		}
		if list, _ := body[u.name].([]any); u.many {
			v = append(list, v)
		}
		body[u.name] = v
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, engine.ErrMisconfigured.Because(err)
	}
	return t.e.c.Do(ctx, backend.Request{Method: http.MethodPost, Path: path, Body: bytes.NewReader(b), Type: "application/json"})
}

// postForm sends the parameters and files as a form that flows. ctx reads the
// files, call makes the call.
func (t *task) postForm(ctx, call context.Context, path string, body map[string]any) (*http.Response, error) {
	var parts []backend.FormPart
	for _, name := range slices.Sorted(maps.Keys(body)) {
		list, ok := body[name].([]any)
		if !ok {
			parts = append(parts, backend.FormPart{Name: name, Value: text(body[name])})
		}
		for _, v := range list {
			parts = append(parts, backend.FormPart{Name: name + "[]", Value: text(v)})
		}
	}
	var bad trouble
	for _, u := range t.uploads(&bad) {
		name := u.name
		if u.many {
			name += "[]"
		}
		parts = append(parts, backend.FormPart{Name: name, File: &u.file, FileName: u.name + ending(u.file.MimeType)})
	}
	form, kind := backend.MultipartForm(ctx, parts)
	res, err := t.e.c.Do(call, backend.Request{Method: http.MethodPost, Path: path, Body: form, Type: kind})
	if err != nil {
		form.Close()
		if own := bad.get(); own != nil {
			return nil, unread{own}
		}
		return nil, err
	}
	return res, nil
}

// unread marks what is wrong with a file: it is the reason as it stands, not
// one to be understood as the server's.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

// meaning is failure for errors of postJSON and postForm.
func meaning(ctx context.Context, err error) error {
	if u, ok := errors.AsType[unread](err); ok {
		return u.error
	}
	return failure(ctx, err)
}

// ending gives a file's name the ending that servers judge it by.
func ending(mimeType string) string {
	_, kind, _ := strings.Cut(mimeType, "/")
	if kind == "jpeg" {
		kind = "jpg"
	}
	if kind == "" || strings.ContainsAny(kind, "+.-;") {
		return ""
	}
	return "." + kind
}
