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
	// grace is how long a call that began a video may take once the job has
	// ended, so that the video's name becomes known and it can be deleted.
	grace = 700 * time.Millisecond
	// parting bounds the deletion of a video that nobody waits for.
	parting = 800 * time.Millisecond
	// patience is how many looks at a video may fail one after another.
	patience = 5
)

// video is a server's job.
type video struct {
	ID       string          `json:"id"`
	Status   string          `json:"status"`
	Progress json.Number     `json:"progress"`
	Error    json.RawMessage `json:"error"`
}

// note is what the next worker has to know: the videos in order, "" for one
// that is to be made, and whether one was asked for that may be there without
// a name.
type note struct {
	IDs    []string `json:"ids"`
	Asking bool     `json:"asking,omitempty"`
}

func (n note) id(i int) string {
	if i < len(n.IDs) {
		return n.IDs[i]
	}
	return ""
}

// set names the ith video, without touching other copies of the note.
func (n *note) set(i int, id string) {
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

// readNote takes what an earlier try has left. Anything else is no note.
func readNote(left string) (n note) {
	if json.Unmarshal([]byte(left), &n) != nil {
		return note{}
	}
	return n
}

// leave writes the note down.
func (t *task) leave(ctx context.Context, n note) error {
	text := ""
	if len(n.IDs) > 0 || n.Asking {
		b, err := json.Marshal(n)
		if err != nil {
			return err
		}
		text = string(b)
	}
	if len(text) > engine.MaxNote {
		return nil // the last one names the first videos; the others are made again
	}
	return t.out.Leave(ctx, text)
}

// videos makes one after another, and goes on with those that an earlier try
// of this run began.
func (t *task) videos(ctx context.Context) error {
	n := readNote(t.Left)
	for i := 0; i < t.NumResults; i++ {
		v := video{ID: n.id(i)}
		known := v.ID != ""
		if !known {
			if n.Asking {
				return errUnsure
			}
			var err error
			if v, err = t.begin(ctx, &n, i); err != nil {
				return err
			}
		}
		err := t.finish(ctx, v, i, known)
		if ctx.Err() != nil || err != nil && !errors.Is(err, errGone) && !engine.As(err).Transient {
			t.drop(ctx, n, i)
		}
		if errors.Is(err, errGone) {
			n.set(i, "")
			if err := t.leave(ctx, n); err != nil {
				return err
			}
			if !known { // it was there a moment ago
				return errLost.Because(err)
			}
			i-- // the earlier try's: it is made again
			continue
		}
		if err != nil {
			return err
		}
		t.done(i + 1)
	}
	return nil
}

// errGone is a video that the server does not know.
var errGone = errors.New("the server does not know the video")

// begin has the server make a video.
func (t *task) begin(ctx context.Context, n *note, i int) (video, error) {
	n.Asking = true
	if err := t.leave(ctx, *n); err != nil {
		return video{}, err
	}
	v, err := t.create(ctx, i)
	if err == nil && v.ID == "" {
		err = errUnsure
	}
	if err != nil && unsure(err) {
		if ctx.Err() != nil {
			return video{}, ctx.Err()
		}
		return video{}, errUnsure.Because(err)
	}
	n.Asking = false
	end, cancel := backend.WithGrace(ctx, grace)
	defer cancel()
	if err != nil {
		if err := t.leave(end, *n); err != nil {
			return video{}, err
		}
		return video{}, meaning(ctx, err)
	}
	n.set(i, v.ID)
	err = t.leave(end, *n)
	if err != nil || ctx.Err() != nil {
		t.drop(ctx, *n, i)
		return video{}, errors.Join(ctx.Err(), err)
	}
	return v, nil
}

// create makes the call, which outlives ctx a little.
func (t *task) create(ctx context.Context, i int) (video, error) {
	call, hangUp := backend.WithGrace(ctx, grace)
	defer hangUp()
	files, cancel := context.WithCancel(ctx) // ends what reads them, too
	defer cancel()
	body := t.parameters(i, 0)
	if s, ok := body["seconds"]; ok {
		body["seconds"] = text(s)
	}
	// A connection that the server has closed meanwhile would make this a call
	// that may have arrived. A new one tells at once that nobody is there.
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

// unsure tells whether a call that failed may have begun a video.
func unsure(err error) bool {
	if _, ok := errors.AsType[unread](err); ok {
		return false // the server never got the whole request
	}
	if s, ok := errors.AsType[*backend.Status](err); ok {
		// A gateway that gave up waiting does not know what came of it.
		return s.Code == http.StatusBadGateway || s.Code == http.StatusGatewayTimeout
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e == errUnsure
	}
	return backend.MayHaveArrived(err)
}

// finish waits for a video and hands it over. known is one of an earlier try.
func (t *task) finish(ctx context.Context, v video, i int, known bool) error {
	wait := time.NewTimer(t.e.poll)
	defer wait.Stop()
	if known {
		wait.Reset(0)
	}
	for failed := 0; ; {
		switch v.Status {
		case "completed", "succeeded":
			return t.fetch(ctx, v.ID)
		case "failed", "cancelled", "canceled", "expired":
			return sad(v)
		}
		if percent, err := v.Progress.Float64(); err == nil && percent > 0 {
			t.bar.NthOf(i, t.NumResults).ReportProgress(min(percent, 99) / 100)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait.C:
		}
		now, err := t.look(ctx, v.ID)
		switch {
		case err == nil:
			v = now
			failed = 0
		case gone(err):
			return errGone
		default:
			failed++
			if e, ok := errors.AsType[*engine.Error](backend.QueryFailure(ctx, err)); !ok || !e.Transient {
				return failure(ctx, err)
			} else if failed > patience {
				return e
			}
		}
		wait.Reset(t.e.poll)
	}
}

func (t *task) look(ctx context.Context, id string) (video, error) {
	ctx, cancel := t.e.c.WithTimeout(ctx)
	defer cancel()
	var v video
	err := t.e.c.CallJSON(ctx, http.MethodGet, "videos/"+url.PathEscape(id), nil, &v)
	v.ID = id
	return v, err
}

// fetch hands the finished video over.
func (t *task) fetch(ctx context.Context, id string) error {
	res, err := t.e.c.Do(ctx, backend.Request{Path: "videos/" + url.PathEscape(id) + "/content"})
	if gone(err) {
		return backend.ErrNoResult.Because(err)
	}
	if err != nil {
		return failure(ctx, err)
	}
	defer res.Body.Close()
	return t.deliverBody(ctx, res)
}

// drop deletes the videos that nobody waits for, from one on, and takes them off
// the note, so that the next worker, if there is one, does not wait for them.
// Those that another worker goes on with stay.
func (t *task) drop(ctx context.Context, n note, from int) {
	if engine.IsHandedOver(ctx) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	for i, id := range n.IDs {
		if i < from || id == "" {
			continue
		}
		if err := t.e.remove(ctx, id); err == nil || gone(err) {
			n.set(i, "")
		} // else it goes on, and the note is right
	}
	_ = t.leave(ctx, n) // without it, the next worker finds them gone
}

// Abandon deletes the videos that a note names. One that has no name cannot be.
func (e *Engine) Abandon(ctx context.Context, left string) error {
	for _, id := range readNote(left).IDs {
		if id == "" {
			continue
		}
		short, cancel := e.c.WithTimeout(ctx)
		err := e.remove(short, id)
		cancel()
		if err := backend.CancelFailure(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a video, which ends the making of it.
func (e *Engine) remove(ctx context.Context, id string) error {
	return e.c.CallJSON(ctx, http.MethodDelete, "videos/"+url.PathEscape(id), nil, nil)
}

func gone(err error) bool {
	s, ok := errors.AsType[*backend.Status](err)
	return ok && (s.Code == http.StatusNotFound || s.Code == http.StatusGone)
}

// sad is the failure of a video that was not made.
func sad(v video) error {
	var c complaint
	c.read(v.Error)
	if known := c.known(); known != nil {
		return known
	}
	return backend.FailWithText(errFailed.Code, errFailed.Message, c.Message)
}

// videoSync makes videos with a call that waits for them, LocalAI's /video,
// which is beside the API and not in it.
func (t *task) videoSync(ctx context.Context) error {
	at := t.e.c.BaseURL()
	at.Path = strings.TrimSuffix(at.Path, "/v1") + "/video"
	for i := range t.NumResults {
		res, err := t.postJSON(ctx, at.String(), t.parameters(i, 0))
		if err != nil {
			return meaning(ctx, err)
		}
		n, err := t.take(ctx, res.Body, i, 1)
		res.Body.Close()
		if err != nil {
			return err
		}
		if n == 0 && i == 0 {
			return backend.ErrNoResult
		}
		if n == 0 {
			return nil // fewer than were wanted are better than none
		}
	}
	return nil
}
