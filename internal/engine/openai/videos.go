package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

const (
	// createGrace is how long a call that creates a video may continue after the job's end, so that
	// the video's id becomes known and it can be deleted.
	createGrace = 700 * time.Millisecond
	// deleteTimeout limits the deletion of a video that is not needed.
	deleteTimeout = 800 * time.Millisecond
	// maxFailedPolls is how many polls of a video may fail in a row.
	maxFailedPolls = 5
)

// video is a job on the server.
type video struct {
	ID       string          `json:"id"`
	Status   string          `json:"status"`
	Progress json.Number     `json:"progress"`
	Error    json.RawMessage `json:"error"`
}

// checkpoint is the information that the next worker needs: the ids of the videos in order, "" for
// one that is not created yet, and whether one was requested whose id is unknown.
type checkpoint struct {
	IDs    []string `json:"ids"`
	Asking bool     `json:"asking,omitempty"`
}

func (n checkpoint) idOf(i int) string {
	if i < len(n.IDs) {
		return n.IDs[i]
	}
	return ""
}

// setID sets the id of the ith video without changing other copies of the checkpoint.
func (n *checkpoint) setID(i int, id string) {
	ids := slices.Clone(n.IDs)
	for len(ids) <= i {
		ids = append(ids, "")
	}
	ids[i] = id
	for len(ids) > 0 && ids[len(ids)-1] == "" {
		ids = ids[:len(ids)-1]
	}
	n.IDs = ids
}

// parseCheckpoint parses the checkpoint of an earlier try. Any other text is an empty checkpoint.
func parseCheckpoint(left string) (n checkpoint) {
	if json.Unmarshal([]byte(left), &n) != nil {
		return checkpoint{}
	}
	return n
}

// saveCheckpoint saves the checkpoint.
func (t *task) saveCheckpoint(ctx context.Context, n checkpoint) error {
	text := ""
	if len(n.IDs) > 0 || n.Asking {
		b, err := json.Marshal(n)
		if err != nil {
			return err
		}
		text = string(b)
	}
	if len(text) > engine.MaxCheckpoint {
		return nil // too large: the last checkpoint names the first videos; the others are made again
	}
	return t.out.SaveCheckpoint(ctx, text)
}

// makeVideos makes one video after another, and continues with the videos that an earlier try of
// this run began.
func (t *task) makeVideos(ctx context.Context) error {
	n := parseCheckpoint(t.SavedCheckpoint)
	for i := 0; i < t.NumResults; i++ {
		v := video{ID: n.idOf(i)}
		known := v.ID != ""
		if !known {
			if n.Asking {
				return errUncertain
			}
			var err error
			if v, err = t.beginVideo(ctx, &n, i); err != nil {
				return err
			}
		}
		err := t.finishVideo(ctx, v, i, known)
		if ctx.Err() != nil || err != nil && !errors.Is(err, errNotFound) && !engine.AsError(err).Transient {
			t.deleteVideos(ctx, n, i)
		}
		if errors.Is(err, errNotFound) {
			n.setID(i, "")
			if err := t.saveCheckpoint(ctx, n); err != nil {
				return err
			}
			if !known { // the server had the video before
				return errLost.WithCause(err)
			}
			i-- // a video of an earlier try: it is made again
			continue
		}
		if err != nil {
			return err
		}
		t.reportDone(i + 1)
	}
	return nil
}

// errNotFound is the error for a video that the server does not have.
var errNotFound = errors.New("the server does not know the video")

// beginVideo creates a video on the server.
func (t *task) beginVideo(ctx context.Context, n *checkpoint, i int) (video, error) {
	n.Asking = true
	if err := t.saveCheckpoint(ctx, *n); err != nil {
		return video{}, err
	}
	v, err := t.createVideo(ctx, i)
	if err == nil && v.ID == "" {
		err = errUncertain
	}
	if err != nil && mayHaveBegun(err) {
		if ctx.Err() != nil {
			return video{}, ctx.Err()
		}
		return video{}, errUncertain.WithCause(err)
	}
	n.Asking = false
	end, cancel := backend.WithGrace(ctx, createGrace)
	defer cancel()
	if err != nil {
		if err := t.saveCheckpoint(end, *n); err != nil {
			return video{}, err
		}
		return video{}, postFailure(ctx, err)
	}
	n.setID(i, v.ID)
	err = t.saveCheckpoint(end, *n)
	if err != nil || ctx.Err() != nil {
		t.deleteVideos(ctx, *n, i)
		return video{}, errors.Join(ctx.Err(), err)
	}
	return v, nil
}

// createVideo makes the call, which slightly outlives ctx.
func (t *task) createVideo(ctx context.Context, i int) (video, error) {
	call, hangUp := backend.WithGrace(ctx, createGrace)
	defer hangUp()
	files, cancel := context.WithCancel(ctx) // also ends the readers of files
	defer cancel()
	body := t.requestParameters(i, 0)
	if s, ok := body["seconds"]; ok {
		body["seconds"] = formValue(s)
	}
	// A reused connection that the server has closed would make this a call that
	// may have arrived. A new connection fails at once if the server is unreachable.
	t.e.c.Close()
	var res *http.Response
	var err error
	if t.JSON {
		res, err = t.postJSON(call, "videos", body)
	} else {
		res, err = t.postForm(files, call, "videos", body)
	}
	if err != nil {
		return video{}, err
	}
	defer res.Body.Close()
	var v video
	err = backend.DecodeJSON(res.Body, &v)
	return v, err
}

// mayHaveBegun reports whether a failed call may have begun a video.
func mayHaveBegun(err error) bool {
	if _, ok := errors.AsType[inputError](err); ok {
		return false // the server never received the whole request
	}
	if s, ok := errors.AsType[*backend.Status](err); ok {
		// After a timeout of a gateway the outcome is unknown.
		return s.Code == http.StatusBadGateway || s.Code == http.StatusGatewayTimeout
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e == errUncertain
	}
	return backend.MayHaveArrived(err)
}

// finishVideo waits for a video and passes it to the sink. known is true for a video of an earlier
// try.
func (t *task) finishVideo(ctx context.Context, v video, i int, known bool) error {
	wait := time.NewTimer(t.e.poll)
	defer wait.Stop()
	if known {
		wait.Reset(0)
	}
	for failed := 0; ; {
		switch v.Status {
		case "completed", "succeeded":
			return t.fetchVideo(ctx, v.ID)
		case "failed", "cancelled", "canceled", "expired":
			return videoFailure(v)
		}
		if percent, err := v.Progress.Float64(); err == nil && percent > 0 {
			t.bar.NthOf(i, t.NumResults).ReportProgress(min(percent, 99) / 100)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait.C:
		}
		now, err := t.queryVideo(ctx, v.ID)
		switch {
		case err == nil:
			v = now
			failed = 0
		case isNotFound(err):
			return errNotFound
		default:
			failed++
			if e, ok := errors.AsType[*engine.Error](backend.QueryFailure(ctx, err)); !ok || !e.Transient {
				return callFailure(ctx, err)
			} else if failed > maxFailedPolls {
				return e
			}
		}
		wait.Reset(t.e.poll)
	}
}

func (t *task) queryVideo(ctx context.Context, id string) (video, error) {
	ctx, cancel := t.e.c.WithTimeout(ctx)
	defer cancel()
	var v video
	err := t.e.c.CallJSON(ctx, http.MethodGet, "videos/"+url.PathEscape(id), nil, &v)
	v.ID = id
	return v, err
}

// fetchVideo passes the finished video to the sink.
func (t *task) fetchVideo(ctx context.Context, id string) error {
	res, err := t.e.c.Do(ctx, backend.Request{Path: "videos/" + url.PathEscape(id) + "/content"})
	if isNotFound(err) {
		return backend.ErrNoResult.WithCause(err)
	}
	if err != nil {
		return callFailure(ctx, err)
	}
	defer res.Body.Close()
	return t.deliverBody(ctx, res)
}

// deleteVideos deletes the videos that are not needed, beginning with the given one, and removes
// them from the checkpoint, so that the next worker does not wait for them. Videos that another
// worker continues with stay.
func (t *task) deleteVideos(ctx context.Context, n checkpoint, from int) {
	if engine.IsHandedOver(ctx) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	for i, id := range n.IDs {
		if i < from || id == "" {
			continue
		}
		if err := t.e.deleteVideo(ctx, id); err == nil || isNotFound(err) {
			n.setID(i, "")
		} // otherwise it continues, and the checkpoint is right
	}
	_ = t.saveCheckpoint(ctx, n) // on failure, the next worker finds them missing
}

// Abandon deletes the videos that a checkpoint names. A video without an id cannot be deleted.
func (e *Engine) Abandon(ctx context.Context, left string) error {
	for _, id := range parseCheckpoint(left).IDs {
		if id == "" {
			continue
		}
		short, cancel := e.c.WithTimeout(ctx)
		err := e.deleteVideo(short, id)
		cancel()
		if err := backend.CancelFailure(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// deleteVideo deletes a video, which also cancels it.
func (e *Engine) deleteVideo(ctx context.Context, id string) error {
	return e.c.CallJSON(ctx, http.MethodDelete, "videos/"+url.PathEscape(id), nil, nil)
}

func isNotFound(err error) bool {
	s, ok := errors.AsType[*backend.Status](err)
	return ok && (s.Code == http.StatusNotFound || s.Code == http.StatusGone)
}

// videoFailure returns the failure of a video.
func videoFailure(v video) error {
	var c serverError
	c.readPart(v.Error)
	if known := c.knownFailure(); known != nil {
		return known
	}
	return backend.FailWithText(errFailed.Code, errFailed.Message, c.Message)
}

// makeVideosSync makes videos with a blocking call: LocalAI's /video, which is not below the API's
// base path.
func (t *task) makeVideosSync(ctx context.Context) error {
	at := t.e.c.BaseURL()
	at.Path = strings.TrimSuffix(at.Path, "/v1") + "/video"
	for i := range t.NumResults {
		res, err := t.postJSON(ctx, at.String(), t.requestParameters(i, 0))
		if err != nil {
			return postFailure(ctx, err)
		}
		n, err := t.deliverImages(ctx, res.Body, i, 1)
		res.Body.Close()
		if err != nil {
			return err
		}
		if n == 0 && i == 0 {
			return backend.ErrNoResult
		}
		if n == 0 {
			return nil // fewer results than requested are better than none
		}
	}
	return nil
}
