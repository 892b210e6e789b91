package openai

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"atelier/internal/engine/backend"
)

// maxBatch is how many results OpenAI makes in one call.
const maxBatch = 10

// previews is how many pictures on the way a stream is asked for.
const previews = 2

// answer is what comes of a blocking call.
type answer struct {
	Data []struct {
		B64 string `json:"b64_json"`
		URL string `json:"url"`
	} `json:"data"`
}

// pictures does images and edits. Servers may give fewer than they were asked
// for, so it asks until all are there, or a call gives none.
func (t *task) pictures(ctx context.Context) error {
	batch := cmp.Or(t.Batch, maxBatch)
	if t.Stream {
		batch = 1
	}
	for made := 0; made < t.NumResults; {
		n, err := t.batch(ctx, made, min(batch, t.NumResults-made))
		if err != nil {
			return err
		}
		if n == 0 && made == 0 {
			return backend.ErrNoResult
		}
		if n == 0 {
			return nil // fewer than were wanted are better than none
		}
		made += n
	}
	return nil
}

// batch makes one call and says how many results came of it.
func (t *task) batch(ctx context.Context, there, want int) (int, error) {
	ctx, cancel := context.WithCancel(ctx) // ends what reads files, too
	defer cancel()
	body := t.parameters(there, want)
	if t.Stream {
		body["stream"] = true
		if _, ok := body["partial_images"]; !ok {
			body["partial_images"] = previews
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
		return 0, meaning(ctx, err)
	}
	defer res.Body.Close()
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/event-stream" {
		return t.watch(ctx, res.Body, there, body["partial_images"])
	}
	return t.take(ctx, res.Body, there, want)
}

// take hands over the results of an answer, at most so many.
func (t *task) take(ctx context.Context, body io.Reader, there, want int) (int, error) {
	var a answer
	if err := backend.DecodeJSONLimit(body, t.e.most, &a); err != nil {
		return 0, failure(ctx, err)
	}
	n := min(len(a.Data), want)
	for i := range n {
		r, err := t.open(ctx, a.Data[i].B64, a.Data[i].URL)
		if err != nil {
			return i, failure(ctx, err)
		}
		a.Data[i].B64 = "" // it may be large
		err = backend.DeliverReader(ctx, r, t.out)
		r.Close()
		if err != nil {
			return i, err
		}
		t.done(there + i + 1)
	}
	return n, nil
}

// open reads a result that is in the answer or lies elsewhere.
func (t *task) open(ctx context.Context, b64, url string) (io.ReadCloser, error) {
	switch {
	case b64 != "":
		return io.NopCloser(backend.Base64Reader(b64)), nil
	case url != "":
		return t.e.c.OpenFile(ctx, url)
	}
	return nil, backend.ErrBadResponse
}

// event is what a server tells while a picture comes.
type event struct {
	Type  string          `json:"type"`
	B64   string          `json:"b64_json"`
	Index int             `json:"partial_image_index"`
	Error json.RawMessage `json:"error"`
}

// watch follows the making of one picture (text/event-stream of the HTML
// standard).
func (t *task) watch(ctx context.Context, body io.Reader, there int, partials any) (int, error) {
	all, err := strconv.Atoi(text(partials))
	if err != nil {
		all = previews
	}
	made := 0
	err = events(body, t.e.most, func(data []byte) error {
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return backend.ErrBadResponse.Because(err)
		}
		switch e.Type {
		case "image_generation.partial_image", "image_edit.partial_image":
			if picture, err := io.ReadAll(backend.Base64Reader(e.B64)); err == nil {
				t.out.Preview(picture)
			}
			t.bar.NthOf(there, t.NumResults).ReportProgress(float64(e.Index+1) / float64(all+1))
		case "image_generation.completed", "image_edit.completed":
			if made > 0 {
				return nil // it was asked for one
			}
			if err := backend.DeliverReader(ctx, backend.Base64Reader(e.B64), t.out); err != nil {
				return err
			}
			made++
			t.done(there + made)
		case "error":
			var c complaint
			c.read(e.Error)
			if known := c.known(); known != nil {
				return known
			}
			return backend.FailWithText(errFailed.Code, errFailed.Message, c.Message)
		}
		return nil
	})
	if err == nil && made == 0 {
		err = io.ErrUnexpectedEOF
	}
	return made, failure(ctx, err)
}

// events calls each with the data of every event until the stream ends. most
// bounds one event, with the picture that it brings.
func events(r io.Reader, most int64, each func(data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, int(most))
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data != nil {
				data = append(data, '\n')
			}
			if data = append(data, bytes.TrimPrefix(rest, []byte(" "))...); int64(len(data)) > most {
				return backend.ErrTooLarge
			}
			continue
		}
		if len(line) > 0 || len(data) == 0 {
			continue // a name or a comment; the data tells its type
		}
		if string(data) == "[DONE]" {
			return nil
		}
		if err := each(data); err != nil {
			return err
		}
		data = nil
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return backend.ErrTooLarge
	} else if err != nil {
		return err
	}
	return nil
}
