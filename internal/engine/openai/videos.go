package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

const (
	// createGrace is how long a request that creates a video may continue
	// after the job has ended, so that the video's id becomes known and the
	// video can be deleted.
	createGrace = 700 * time.Millisecond
	// deleteTimeout is the time limit of the requests that delete videos whose
	// results are not needed.
	deleteTimeout = 800 * time.Millisecond
	// maxFailedPolls is the number of consecutive polls of a video that may
	// fail.
	maxFailedPolls = 5
)

// video is a video job on the server.
type video struct {
	ID       string          `json:"id"`
	Status   string          `json:"status"`
	Progress json.Number     `json:"progress"`
	Error    json.RawMessage `json:"error"`
	// URL is set by SGLang if the server stores videos in cloud storage. The
	// video can then not be downloaded from the server itself.
	URL string `json:"url"`
}

// checkpoint is saved for the worker that continues the run. IDs are the ids
// of the videos in order; an id is empty if the video has not been created.
// Asking is true if a video was requested whose id is unknown.
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

// setID sets the id of video i without changing other copies of the
// checkpoint.
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

// parseCheckpoint parses the checkpoint of an earlier attempt. It returns an
// empty checkpoint if the text is invalid.
func parseCheckpoint(left string) (n checkpoint) {
	if json.Unmarshal([]byte(left), &n) != nil {
		return checkpoint{}
	}
	return n
}

// saveCheckpoint saves the checkpoint of the run, or deletes it if it is
// empty.
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
		return nil // if the checkpoint is too large, the previous one stays, and a later attempt repeats the videos that are not in it
	}
	return t.out.SaveCheckpoint(ctx, text)
}

// makeVideos makes one video after the other. It resumes the videos that an
// earlier attempt of this run created.
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
			if !known { // this attempt created the video, so the server has lost it
				return errLost.WithCause(err)
			}
			i-- // the video of an earlier attempt is lost, so it is made again
			continue
		}
		if err != nil {
			return err
		}
		t.reportDone(i + 1)
	}
	return nil
}

// errNotFound is the error for a video that the server no longer has.
var errNotFound = errors.New("the server has no video with this id")

// beginVideo creates video i on the server, and saves its id in the
// checkpoint.
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

// createVideo sends the request that creates video i. The request may continue
// for createGrace after ctx is cancelled.
func (t *task) createVideo(ctx context.Context, i int) (video, error) {
	call, hangUp := backend.WithGrace(ctx, createGrace)
	defer hangUp()
	files, cancel := context.WithCancel(ctx) // cancelling also stops reading the input files
	defer cancel()
	body := t.requestParameters(i, 0)
	// Idle connections are closed first. If the server had closed a reused
	// connection, the request would fail although it may have arrived. A new
	// connection fails at once if the server is unreachable.
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

// mayHaveBegun reports whether the server may have created a video although
// the request failed.
func mayHaveBegun(err error) bool {
	if _, ok := errors.AsType[inputError](err); ok {
		return false // the server never received the whole request
	}
	if s, ok := errors.AsType[*backend.Status](err); ok {
		// After a gateway timeout it is unknown whether the video was created.
		return s.Code == http.StatusBadGateway || s.Code == http.StatusGatewayTimeout
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e == errUncertain
	}
	return backend.MayHaveArrived(err)
}

// finishVideo waits for video i and passes it to the sink. known is true if an
// earlier attempt created the video.
func (t *task) finishVideo(ctx context.Context, v video, i int, known bool) error {
	wait := time.NewTimer(t.e.poll)
	defer wait.Stop()
	if known {
		wait.Reset(0)
	}
	bar := t.bar.NthOf(i, t.NumResults)
	queued := false
	for failed := 0; ; {
		switch v.Status {
		case "completed", "succeeded":
			return t.fetchVideo(ctx, v)
		case "failed", "cancelled", "canceled", "expired":
			return videoFailure(v)
		case "queued":
			bar.ReportQueued(0) // the API has no position in the queue
			queued = true
		default:
			percent, err := v.Progress.Float64()
			if queued || err == nil && percent > 0 {
				bar.ReportProgress(min(percent, 99) / 100)
			}
			queued = false
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

// fetchVideo downloads a finished video and passes it to the sink.
func (t *task) fetchVideo(ctx context.Context, v video) error {
	if v.URL != "" {
		return t.e.c.DeliverFile(ctx, v.URL, t.out)
	}
	res, err := t.e.c.Do(ctx, backend.Request{Path: "videos/" + url.PathEscape(v.ID) + "/content"})
	if isNotFound(err) {
		return backend.ErrNoResult.WithCause(err)
	}
	if err != nil {
		return callFailure(ctx, err)
	}
	defer res.Body.Close()
	return t.deliverBody(ctx, res)
}

// deleteVideos deletes all videos from the given index on, which are not
// needed, and removes them from the checkpoint, so that the next worker does
// not wait for them. If another worker continues the run, no video is deleted.
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
		} // if the deletion fails, the video's id stays in the checkpoint
	}
	_ = t.saveCheckpoint(ctx, n) // if this fails, the next worker finds that the videos are missing
}

// Abandon deletes the videos whose ids are in a checkpoint. A video whose id
// is unknown cannot be deleted.
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

// deleteVideo deletes a video from the server. If the video is not done yet,
// deleting also cancels it, except on servers that cannot cancel, such as
// SGLang.
func (e *Engine) deleteVideo(ctx context.Context, id string) error {
	return e.c.CallJSON(ctx, http.MethodDelete, "videos/"+url.PathEscape(id), nil, nil)
}

func isNotFound(err error) bool {
	s, ok := errors.AsType[*backend.Status](err)
	return ok && (s.Code == http.StatusNotFound || s.Code == http.StatusGone)
}

// videoFailure returns the failure of a run whose video failed on the server.
func videoFailure(v video) error {
	var c serverError
	c.readPart(v.Error)
	if known := c.knownFailure(); known != nil {
		return known
	}
	return backend.FailWithText(errFailed.Code, errFailed.Message, c.Message)
}

// makeVideosSync makes videos with blocking requests to LocalAI's endpoint
// /video, which is not below the API's base path.
func (t *task) makeVideosSync(ctx context.Context) error {
	for i := range t.NumResults {
		res, err := t.postJSON(ctx, t.e.rootURL("/video"), t.requestParameters(i, 0))
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
			return nil // the job succeeds with fewer results than requested
		}
	}
	return nil
}
