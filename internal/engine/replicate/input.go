package replicate

import (
	"context"
	"errors"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// inlineBytes is the maximum size, in bytes, of a file that the API accepts
// embedded in the inputs.
const inlineBytes = 256 << 10

// fileInput returns a file of the job in a form that the API accepts: as a
// data: URI or as a URL.
func (t *task) fileInput(ctx context.Context, f engine.File) (any, error) {
	if f.Size <= inlineBytes {
		return backend.DataURI(ctx, f, inlineBytes)
	}
	if t.e.o.SendURLs && f.Address != nil {
		return f.Address(), nil
	}
	name := backend.FileName(f)
	form, kind := backend.MultipartForm(ctx, []backend.FormPart{
		{Name: "content", File: &f, FileName: name}, {Name: "filename", Value: name}, {Name: "type", Value: f.MimeType},
	})
	defer form.Close()
	res, err := t.e.c.Do(ctx, backend.Request{Method: "POST", Path: "files", Body: form, Type: kind})
	if err != nil {
		return nil, backend.CallFailure(ctx, err)
	}
	defer res.Body.Close()
	var made struct {
		URLs struct {
			Get string `json:"get"`
		} `json:"urls"`
	}
	if err := backend.DecodeJSON(res.Body, &made); err != nil {
		return nil, backend.CallFailure(ctx, err)
	}
	if made.URLs.Get == "" {
		return nil, backend.ErrBadResponse.WithCause(errors.New("the upload has no URL"))
	}
	return made.URLs.Get, nil
}
