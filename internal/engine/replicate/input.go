package replicate

import (
	"context"
	"errors"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// inlineBytes is the largest file that the API accepts embedded in the inputs.
const inlineBytes = 256 << 10

// inputValues returns the inputs of a prediction. Files are uploaded once for all predictions.
func (t *task) inputValues(ctx context.Context, i int) (map[string]any, error) {
	if t.inputs == nil {
		var err error
		if t.inputs, err = t.with.InputValues(ctx, t.job, t.job.Seed, t.job.NumResults, t.fileInput); err != nil {
			return nil, err
		}
	}
	return t.with.WithSeed(t.inputs, t.job.SeedOf(i)), nil
}

// fileInput returns a file in the form that the API accepts.
func (t *task) fileInput(ctx context.Context, f engine.File) (any, error) {
	if f.Size <= inlineBytes {
		return backend.DataURI(ctx, f, inlineBytes)
	}
	if t.e.o.Addresses && f.Address != nil {
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
		return nil, backend.ErrBadResponse.Because(errors.New("the upload has no URL"))
	}
	return made.URLs.Get, nil
}
