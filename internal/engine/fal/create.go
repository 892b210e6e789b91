package fal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// createRequest adds the job's provider request number i to fal's queue, and
// saves its id in the checkpoint.
func (t *task) createRequest(ctx context.Context, i int) error {
	if t.checkpoint.Creating { // there is no id, so the response was lost
		return backend.ErrUnconfirmed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	inputs, err := t.PieceInputs(ctx, i, t.fileInput)
	if err != nil {
		return err
	}
	body, err := json.Marshal(inputs)
	if err != nil {
		return err
	}
	t.checkpoint.Creating = true
	if err := t.SaveCheckpoint(ctx, t.checkpoint); err != nil {
		return err
	}
	var made struct {
		ID string `json:"request_id"`
		request
	}
	err = t.postRequest(ctx, body, &made)
	if err == nil && made.ID != "" {
		t.checkpoint.IDs[i] = made.ID
		t.checkpoint.Creating = false
		t.requests[i] = t.requestFrom(made.ID, made.request)
		return t.SaveCheckpoint(t.Settle, t.checkpoint)
	}
	if backend.WasNotCreated(err) {
		t.checkpoint.Creating = false
		if err := t.SaveCheckpoint(t.Settle, t.checkpoint); err != nil {
			return err
		}
		return createFailure(ctx, err)
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return backend.ErrUnconfirmed.WithCause(err)
}

// requestFrom returns the URLs of a request. It uses a URL from fal's response
// only if it is on the queue's own host and contains the request's id.
// Otherwise it derives the URL from the id.
func (t *task) requestFrom(id string, said request) request {
	r := requestAt(t.checkpoint.App, id)
	base := t.e.c.BaseURL().String() + "/"
	own := "/requests/" + url.PathEscape(id)
	for _, one := range []struct {
		to   *string
		said string
	}{{&r.Status, said.Status}, {&r.Response, said.Response}, {&r.Cancel, said.Cancel}} {
		isOwn := strings.HasSuffix(one.said, own) || strings.Contains(one.said, own+"/")
		if strings.HasPrefix(one.said, base) && isOwn && !strings.Contains(one.said, "?") {
			*one.to = one.said
		}
	}
	return r
}

// postRequest sends the body of a create request to fal's queue and decodes
// the response into out.
func (t *task) postRequest(ctx context.Context, body []byte, out any) error {
	r := backend.Request{Method: http.MethodPost, Path: t.with.Endpoint, Body: bytes.NewReader(body), Type: "application/json"}
	// fal may delete its copies of the results after a day, because this
	// service copies them at once.
	r.Header = append(r.Header, [2]string{"X-Fal-Object-Lifecycle-Preference", `{"expiration_duration_seconds":86400}`})
	if deadline, ok := ctx.Deadline(); ok {
		seconds := max(math.Ceil(time.Until(deadline).Seconds()), 2) // fal requires more than one second
		r.Header = append(r.Header, [2]string{"X-Fal-Request-Timeout", fmt.Sprintf("%.0f", seconds)})
	}
	return t.PostCreate(ctx, r, out)
}

// inlineBytes is the maximum size, in bytes, of a file that is embedded in a
// request if larger files can be uploaded. maxInlineBytes is the maximum if
// they cannot.
const inlineBytes, maxInlineBytes = 256 << 10, 16 << 20

// fileInput returns a file of the job in a form that fal's models accept: as a
// data: URI or as a URL.
func (t *task) fileInput(ctx context.Context, f engine.File) (any, error) {
	switch {
	case f.Size <= inlineBytes:
		return backend.DataURI(ctx, f, inlineBytes)
	case t.e.o.SendURLs && f.Address != nil:
		return f.Address(), nil
	case t.e.o.Storage == nil:
		return backend.DataURI(ctx, f, maxInlineBytes)
	}
	short, cancel := t.e.c.WithTimeout(ctx)
	defer cancel()
	var at struct {
		Upload string `json:"upload_url"`
		File   string `json:"file_url"`
	}
	asked := map[string]string{"content_type": f.MimeType, "file_name": backend.FileName(f)}
	if err := t.e.o.Storage.CallJSON(short, "POST", "storage/upload/initiate?storage_type=fal-cdn-v3", asked, &at); err != nil {
		return nil, backend.CallFailure(ctx, err)
	}
	if at.Upload == "" || at.File == "" {
		return nil, backend.ErrBadResponse.WithCause(errors.New("the upload has no URL"))
	}
	content, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.e.o.Storage.UploadFile(ctx, at.Upload, f.MimeType, content, f.Size); err != nil {
		return nil, backend.CallFailure(ctx, err)
	}
	return at.File, nil
}
