package replicate

import (
	"context"
	"errors"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// inline is the largest file that the API wants inside the inputs.
const inline = 256 << 10

// values are the inputs of a prediction. Files are uploaded once for all.
func (t *task) values(ctx context.Context, i int) (map[string]any, error) {
	if t.inputs == nil {
		var err error
		if t.inputs, err = t.with.Values(ctx, t.job, t.job.Seed, t.job.NumResults, t.file); err != nil {
			return nil, err
		}
	}
	return t.with.Again(t.inputs, t.job.SeedOf(i)), nil
}

// file gives a file in the way that the API takes it.
func (t *task) file(ctx context.Context, f engine.File) (any, error) {
	if f.Size <= inline {
		return backend.DataURI(ctx, f, inline)
	}
	if t.e.o.Addresses && f.Address != nil {
		return f.Address(), nil
	}
	name := backend.FileName(f)
	form, kind := backend.Form(ctx, []backend.Part{
		{Name: "content", File: &f, As: name}, {Name: "filename", Value: name}, {Name: "type", Value: f.MimeType},
	})
	defer form.Close()
	res, err := t.e.c.Do(ctx, backend.Request{Method: "POST", Path: "files", Body: form, Type: kind})
	if err != nil {
		return nil, backend.Failure(ctx, err)
	}
	defer res.Body.Close()
	var made struct {
		URLs struct {
			Get string `json:"get"`
		} `json:"urls"`
	}
	if err := backend.Decode(res.Body, &made); err != nil {
		return nil, backend.Failure(ctx, err)
	}
	if made.URLs.Get == "" {
		return nil, backend.ErrGarbled.Because(errors.New("an upload without an address"))
	}
	return made.URLs.Get, nil
}
