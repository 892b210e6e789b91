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

// maxInlineBytes limits a file that is embedded in JSON.
const maxInlineBytes = 24 << 20

// parameterNames map fields to parameters of other names. A manifest's rename has precedence.
var parameterNames = map[string]map[string]string{
	"images":     {"steps": "num_inference_steps", "cfg": "guidance_scale", "picture": "image", "pictures": "image"},
	"edits":      {"steps": "num_inference_steps", "cfg": "guidance_scale", "picture": "image", "pictures": "image"},
	"speech":     {"prompt": "input", "text": "input", "format": "response_format"},
	"videos":     {"steps": "num_inference_steps", "cfg": "guidance_scale", "picture": "input_reference", "image": "input_reference"},
	"video-sync": {"steps": "step", "cfg": "cfg_scale", "picture": "start_image", "image": "start_image", "size.width": "width", "size.height": "height"},
}

// parameterFor returns the parameter for a field. It returns false if there is none.
func (t *task) parameterFor(key string) (string, bool) {
	to, ok := t.Rename[key]
	if !ok {
		if to, ok = parameterNames[t.Call][key]; !ok {
			to = key
		}
	}
	return to, to != "-" && to != ""
}

// requestParameters returns the body of the next call, without files. there is the number of
// results that exist already. results is the number of results of this call, or 0 for calls that
// make one result and have no parameter for the number.
func (t *task) requestParameters(there, results int) map[string]any {
	all := map[string]any{}
	for key, v := range t.Values {
		switch v := v.(type) {
		case map[string]any:
			t.setSize(all, key, v)
		case string:
			// Empty values are not sent: servers refuse empty options.
			if to, ok := t.parameterFor(key); ok && v != "" {
				all[to] = v
			}
		default:
			if key == "seed" && t.Rename[key] == "" {
				continue // Job.Seed has it
			}
			if to, ok := t.parameterFor(key); ok && v != nil {
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
	if t.manifestSetting.Seed != "" {
		all[t.manifestSetting.Seed] = t.Job.Seed + uint32(there)
	}
	if t.ResponseFormat != "" {
		all["response_format"] = t.ResponseFormat
	}
	maps.Copy(all, t.Fixed)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// setSize sends a width and a height as 640x480, or separately if both are renamed.
func (t *task) setSize(all map[string]any, key string, v map[string]any) {
	apart := false
	for _, side := range []string{"width", "height"} {
		to, ok := t.parameterFor(key + "." + side)
		if to == key+"."+side {
			continue
		}
		apart = true
		if ok {
			all[to] = v[side]
		}
	}
	if to, ok := t.parameterFor(key); ok && !apart {
		all[to] = formValue(v["width"]) + "x" + formValue(v["height"])
	}
}

// formValue returns a parameter as the value of a form.
func formValue(v any) string {
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
	if err != nil { // the value came from JSON
		return ""
	}
	return string(b)
}

// upload is a media input and its parameter.
type upload struct {
	name string
	many bool
	file engine.File
}

// listUploads returns the media inputs, with fields in the order of their keys. Errors of reading
// a file are recorded in bad, because the call then fails as if the server had caused it.
func (t *task) listUploads(bad *fileErrors) []upload {
	var all []upload
	for _, key := range slices.Sorted(maps.Keys(t.Files)) {
		to, ok := t.parameterFor(key)
		if !ok {
			continue
		}
		name, list := strings.CutSuffix(to, "[]")
		for _, f := range t.Files[key] {
			f.Open = bad.watchFile(f.Open)
			all = append(all, upload{name: name, many: list || len(t.Files[key]) > 1, file: f})
		}
	}
	return all
}

// fileErrors records the error of reading a file.
type fileErrors struct {
	mu  sync.Mutex
	err error
}

func (b *fileErrors) firstError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *fileErrors) recordError(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *fileErrors) watchFile(open func(context.Context) (io.ReadCloser, error)) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		r, err := open(ctx)
		if err != nil {
			b.recordError(err)
			return nil, err
		}
		return watchedReader{r, b}, nil
	}
}

type watchedReader struct {
	io.ReadCloser
	bad *fileErrors
}

func (w watchedReader) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.bad.recordError(err)
	}
	return n, err
}

// postJSON sends the parameters with embedded files. The caller closes the response's body. An
// error is one of Client.Do, or of a file.
func (t *task) postJSON(ctx context.Context, path string, body map[string]any) (*http.Response, error) {
	for _, u := range t.listUploads(&fileErrors{}) {
		uri, err := backend.DataURI(ctx, u.file, maxInlineBytes)
		if err != nil {
			return nil, inputError{err}
		}
		var v any = uri
		switch t.Call {
		case "videos":
			v = map[string]any{"image_url": uri}
		case "video-sync": // LocalAI expects only the part after the comma
			_, v, _ = strings.Cut(uri, ",")
		}
		if list, _ := body[u.name].([]any); u.many {
			v = append(list, v)
		}
		body[u.name] = v
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, engine.ErrMisconfigured.WithCause(err)
	}
	return t.e.c.Do(ctx, backend.Request{Method: http.MethodPost, Path: path, Body: bytes.NewReader(b), Type: "application/json"})
}

// postForm sends the parameters and files as a streamed form. ctx is for reading the files, call
// for the call.
func (t *task) postForm(ctx, call context.Context, path string, body map[string]any) (*http.Response, error) {
	var parts []backend.FormPart
	for _, name := range slices.Sorted(maps.Keys(body)) {
		list, ok := body[name].([]any)
		if !ok {
			parts = append(parts, backend.FormPart{Name: name, Value: formValue(body[name])})
		}
		for _, v := range list {
			parts = append(parts, backend.FormPart{Name: name + "[]", Value: formValue(v)})
		}
	}
	var bad fileErrors
	for _, u := range t.listUploads(&bad) {
		name := u.name
		if u.many {
			name += "[]"
		}
		parts = append(parts, backend.FormPart{Name: name, File: &u.file, FileName: u.name + fileEnding(u.file.MimeType)})
	}
	form, kind := backend.MultipartForm(ctx, parts)
	res, err := t.e.c.Do(call, backend.Request{Method: http.MethodPost, Path: path, Body: form, Type: kind})
	if err != nil {
		form.Close()
		if own := bad.firstError(); own != nil {
			return nil, inputError{own}
		}
		return nil, err
	}
	return res, nil
}

// inputError is an error of a file. It is not a failure of the server.
type inputError struct{ error }

func (u inputError) Unwrap() error { return u.error }

// postFailure is callFailure for errors of postJSON and postForm.
func postFailure(ctx context.Context, err error) error {
	if u, ok := errors.AsType[inputError](err); ok {
		return u.error
	}
	return callFailure(ctx, err)
}

// fileEnding returns the file name ending by which servers judge a file.
func fileEnding(mimeType string) string {
	_, kind, _ := strings.Cut(mimeType, "/")
	if kind == "jpeg" {
		kind = "jpg"
	}
	if kind == "" || strings.ContainsAny(kind, "+.-;") {
		return ""
	}
	return "." + kind
}
