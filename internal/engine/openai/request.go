package openai

import (
	"bytes"
	"cmp"
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

// maxInlineBytes is the maximum size of a file that is embedded in JSON, in
// bytes.
const maxInlineBytes = 24 << 20

// parameterNames map, for each API endpoint, field keys to request parameters
// whose names differ from the keys. A manifest's rename setting has precedence.
var parameterNames = map[string]map[string]string{
	"images":     {"steps": "num_inference_steps", "cfg": "guidance_scale", "picture": "image", "pictures": "image"},
	"edits":      {"steps": "num_inference_steps", "cfg": "guidance_scale", "picture": "image", "pictures": "image"},
	"speech":     {"prompt": "input", "text": "input", "format": "response_format"},
	"videos":     {"steps": "num_inference_steps", "cfg": "guidance_scale", "picture": "input_reference", "image": "input_reference"},
	"video-sync": {"steps": "step", "cfg": "cfg_scale", "picture": "start_image", "image": "start_image", "size.width": "width", "size.height": "height"},
}

// parameterFor returns the request parameter that a field is sent to. It
// returns false if the field is not sent.
func (t *task) parameterFor(key string) (string, bool) {
	for _, names := range []map[string]string{t.Rename, t.dialectOf().names[t.Call], parameterNames[t.Call]} {
		if to, ok := names[key]; ok {
			return to, to != "-" && to != ""
		}
	}
	return key, true
}

// requestParameters returns the parameters of the next request, without files.
// The parameter there is the number of results that already exist; results is
// the number of requested results, or 0 for endpoints that always make one.
func (t *task) requestParameters(there, results int) map[string]any {
	all := map[string]any{}
	for key, v := range t.Values {
		switch v := v.(type) {
		case map[string]any:
			t.setSize(all, key, v)
		case string:
			// Empty strings are not sent, because servers refuse empty
			// options.
			if to, ok := t.parameterFor(key); ok && v != "" {
				all[to] = v
			}
		default:
			if key == "seed" && t.Rename[key] == "" {
				continue // the seed comes from Job.Seed
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
		all[t.manifestSetting.Seed] = backend.LimitSeed(t.Job.Seed+uint32(there), cmp.Or(t.SeedMax, t.dialectOf().seedMax))
	}
	if t.ResponseFormat != "" {
		all["response_format"] = t.ResponseFormat
	}
	maps.Copy(all, t.Fixed)
	t.joinPrompts(all)
	if seconds, ok := all["seconds"]; ok && seconds != nil {
		all["seconds"] = formValue(seconds) // all servers expect the length of a video as a string
	}
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// setSize adds a size to the parameters: as a string such as 640x480, or as
// separate parameters if the manifest renames its sides.
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

// formValue returns a parameter as a string for a form.
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
	if err != nil { // never happens, because the value came from JSON
		return ""
	}
	return string(b)
}

// upload is an input file and the parameter that it is sent as.
type upload struct {
	name string
	many bool
	file engine.File
}

// listUploads returns the job's input files, sorted by field key. Errors
// reading a file are recorded in bad, because the request then fails as if the
// server had caused it.
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

// fileErrors records an error reading an input file, for the goroutine that
// sends the request.
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

// postJSON sends the parameters and the embedded input files as JSON. The
// caller closes the response's body. The error comes from Client.Do or, as an
// inputError, from reading a file.
func (t *task) postJSON(ctx context.Context, path string, body map[string]any) (*http.Response, error) {
	for _, u := range t.listUploads(&fileErrors{}) {
		uri, err := backend.DataURI(ctx, u.file, maxInlineBytes)
		if err != nil {
			return nil, inputError{err}
		}
		var v any = uri
		if t.Call == "video-sync" { // LocalAI accepts only the base64 part of a data: URI
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

// postForm sends the parameters and input files as a streamed form. ctx limits
// reading the files, and call limits the request.
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

// inputError is an error reading an input file. It is not a failure of the
// server.
type inputError struct{ error }

func (u inputError) Unwrap() error { return u.error }

// postFailure converts an error of postJSON or postForm to the error that the
// run fails with.
func postFailure(ctx context.Context, err error) error {
	if u, ok := errors.AsType[inputError](err); ok {
		return u.error
	}
	return callFailure(ctx, err)
}

// fileEnding returns the file name ending for a MIME type, by which servers
// recognize the file's type.
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
