package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"

	"atelier/internal/engine/backend"
)

// maxBatch is the maximum number of results per request in OpenAI's API.
const maxBatch = 10

// previewCount is the number of preview pictures that are requested for a
// stream.
const previewCount = 2

// imagesResponse is the response to a request for pictures that is not
// streamed.
type imagesResponse struct {
	Data []struct {
		B64 string `json:"b64_json"`
		URL string `json:"url"`
	} `json:"data"`
}

// makePictures makes the pictures of a job with the endpoints images and
// edits. A server may return fewer results than requested, so the request is
// repeated until there are enough results or a response has none.
func (t *task) makePictures(ctx context.Context) error {
	batch := cmp.Or(t.Batch, t.dialectOf().batch, maxBatch)
	if t.Stream {
		batch = 1
	}
	for made := 0; made < t.NumResults; {
		n, err := t.makeBatch(ctx, made, min(batch, t.NumResults-made))
		if err != nil {
			return err
		}
		if n == 0 && made == 0 {
			return backend.ErrNoResult
		}
		if n == 0 {
			return nil // the job succeeds with fewer results than requested
		}
		made += n
	}
	return nil
}

// makeBatch sends one request for the given number of pictures (want) and
// returns the number of results. The parameter there is the number of results
// of earlier requests.
func (t *task) makeBatch(ctx context.Context, there, want int) (int, error) {
	ctx, cancel := context.WithCancel(ctx) // cancelling also stops reading the input files
	defer cancel()
	body := t.requestParameters(there, want)
	if t.Stream {
		body["stream"] = true
		if _, ok := body["partial_images"]; !ok {
			body["partial_images"] = previewCount
		}
	}
	var res *http.Response
	var err error
	if t.Call == "edits" {
		res, err = t.postForm(ctx, ctx, "images/edits", body)
	} else {
		res, err = t.postJSON(ctx, "images/generations", body)
	}
	if err != nil {
		return 0, postFailure(ctx, err)
	}
	defer res.Body.Close()
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/event-stream" {
		return t.followStream(ctx, res.Body, there, body["partial_images"])
	}
	return t.deliverImages(ctx, res.Body, there, want)
}

// deliverImages passes at most want results from a response to the sink, and
// returns their number. The parameter there is the number of results of earlier
// requests.
func (t *task) deliverImages(ctx context.Context, body io.Reader, there, want int) (int, error) {
	var a imagesResponse
	if err := backend.DecodeJSONLimit(body, t.e.maxResponse, &a); err != nil {
		return 0, callFailure(ctx, err)
	}
	n := min(len(a.Data), want)
	for i := range n {
		r, err := t.openImage(ctx, a.Data[i].B64, a.Data[i].URL)
		if err != nil {
			return i, callFailure(ctx, err)
		}
		a.Data[i].B64 = "" // frees the memory of the encoded picture
		err = backend.DeliverReader(ctx, r, t.out)
		r.Close()
		if err != nil {
			return i, err
		}
		t.reportDone(there + i + 1)
	}
	return n, nil
}

// openImage opens a result that is either embedded in the response as base64
// or referred to by a URL.
func (t *task) openImage(ctx context.Context, b64, url string) (io.ReadCloser, error) {
	switch {
	case b64 != "":
		return io.NopCloser(backend.Base64Reader(b64)), nil
	case url != "":
		return t.e.c.OpenFile(ctx, url)
	}
	return nil, backend.ErrBadResponse
}

// streamEvent is a server-sent event about a picture.
type streamEvent struct {
	Type  string          `json:"type"`
	B64   string          `json:"b64_json"`
	Index int             `json:"partial_image_index"`
	Error json.RawMessage `json:"error"`
}

// followStream reads the server-sent events of one picture, as the HTML
// standard defines them. It reports progress, shows previews, and passes the
// result to the sink.
func (t *task) followStream(ctx context.Context, body io.Reader, there int, partials any) (int, error) {
	all, err := strconv.Atoi(formValue(partials))
	if err != nil {
		all = previewCount
	}
	made := 0
	err = backend.EachEvent(body, t.e.maxResponse, func(_ string, data []byte) error {
		var e streamEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return backend.ErrBadResponse.WithCause(err)
		}
		switch e.Type {
		case "image_generation.partial_image", "image_edit.partial_image":
			if picture, err := io.ReadAll(backend.Base64Reader(e.B64)); err == nil {
				t.out.Preview(picture)
			}
			t.bar.NthOf(there, t.NumResults).ReportProgress(float64(e.Index+1) / float64(all+1))
		case "image_generation.completed", "image_edit.completed":
			if made > 0 {
				return nil // only one result was requested
			}
			if err := backend.DeliverReader(ctx, backend.Base64Reader(e.B64), t.out); err != nil {
				return err
			}
			made++
			t.reportDone(there + made)
		case "error":
			var c serverError
			c.readPart(e.Error)
			if known := c.knownFailure(); known != nil {
				return known
			}
			return backend.FailWithText(errFailed.Code, errFailed.Message, c.Message)
		}
		return nil
	})
	if err == nil && made == 0 {
		err = io.ErrUnexpectedEOF
	}
	return made, callFailure(ctx, err)
}
