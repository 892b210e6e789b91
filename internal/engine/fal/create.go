package fal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// errUnknown is the end of a run whose request was not answered.
var errUnknown = engine.Fail(engine.Failed, "The provider did not say whether it started the job, so it was not started again.")

// create puts a request into the queue.
func (t *task) create(ctx context.Context, i int) error {
	if t.note.Creating { // and no id: the answer is missing
		return errUnknown
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	inputs, err := t.values(ctx, i)
	if err != nil {
		return err
	}
	body, err := json.Marshal(inputs)
	if err != nil {
		return err
	}
	t.note.Creating = true
	if err := t.leave(ctx); err != nil {
		return err
	}
	var made struct {
		ID string `json:"request_id"`
		request
	}
	err = t.post(ctx, body, &made)
	if err == nil && made.ID != "" {
		t.note.IDs[i] = made.ID
		t.note.Creating = false
		t.requests[i] = t.found(made.ID, made.request)
		return t.leave(t.end)
	}
	s, answered := errors.AsType[*backend.Status](err)
	if err != nil && !backend.Sent(err) || answered && s.Code/100 == 4 {
		t.note.Creating = false
		if err := t.leave(t.end); err != nil {
			return err
		}
		return refusal(ctx, err)
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return errUnknown.Because(err)
}

// found is where the queue says a request is, as far as that is in the queue.
func (t *task) found(id string, said request) request {
	r := at(t.note.App, id)
	base := t.e.c.Base().String() + "/"
	for _, one := range []struct {
		to   *string
		said string
	}{{&r.Status, said.Status}, {&r.Response, said.Response}, {&r.Cancel, said.Cancel}} {
		if strings.HasPrefix(one.said, base) && !strings.Contains(one.said, "?") {
			*one.to = one.said
		}
	}
	return r
}

// post sends a request. It listens for the answer a little longer than the job
// lasts: what is not known cannot be cancelled.
func (t *task) post(ctx context.Context, body []byte, out any) error {
	r := backend.Request{Method: http.MethodPost, Path: t.with.Endpoint, Body: bytes.NewReader(body), Type: "application/json"}
	// We copy results at once: nobody needs them there for longer than a day.
	r.Header = append(r.Header, [2]string{"X-Fal-Object-Lifecycle-Preference", `{"expiration_duration_seconds":86400}`})
	if deadline, ok := ctx.Deadline(); ok {
		seconds := max(math.Ceil(time.Until(deadline).Seconds()), 2) // it takes more than 1
		r.Header = append(r.Header, [2]string{"X-Fal-Request-Timeout", fmt.Sprintf("%.0f", seconds)})
	}
	end, cancel := backend.Linger(ctx, late*2/3) // the rest is to cancel it
	defer cancel()
	end, done := t.e.c.Short(end)
	defer done()
	res, err := t.e.c.Do(end, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return backend.Decode(res.Body, out)
}

// inline is the largest file that goes inside a request where it can be
// uploaded, and most where it cannot.
const inline, most = 256 << 10, 16 << 20

// values are the inputs of a request. Files are uploaded once for all.
func (t *task) values(ctx context.Context, i int) (map[string]any, error) {
	if t.inputs == nil {
		var err error
		if t.inputs, err = t.with.Values(ctx, t.job, t.job.Seed, t.job.NumResults, t.file); err != nil {
			return nil, err
		}
	}
	return t.with.Again(t.inputs, t.job.SeedOf(i)), nil
}

// file gives a file in the way that models take it.
func (t *task) file(ctx context.Context, f engine.File) (any, error) {
	switch {
	case f.Size <= inline:
		return backend.DataURI(ctx, f, inline)
	case t.e.o.Addresses && f.Address != nil:
		return f.Address(), nil
	case t.e.o.Storage == nil:
		return backend.DataURI(ctx, f, most)
	}
	short, cancel := t.e.c.Short(ctx)
	defer cancel()
	var at struct {
		Upload string `json:"upload_url"`
		File   string `json:"file_url"`
	}
	asked := map[string]string{"content_type": f.MimeType, "file_name": backend.FileName(f)}
	if err := t.e.o.Storage.JSON(short, "POST", "storage/upload/initiate?storage_type=fal-cdn-v3", asked, &at); err != nil {
		return nil, backend.Failure(ctx, err)
	}
	if at.Upload == "" || at.File == "" {
		return nil, backend.ErrGarbled.Because(errors.New("an upload without an address"))
	}
	content, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.e.o.Storage.Put(ctx, at.Upload, f.MimeType, content, f.Size); err != nil {
		return nil, backend.Failure(ctx, err)
	}
	return at.File, nil
}
