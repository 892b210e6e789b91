package replicate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// errUnknown is the end of a run whose create was not answered.
var errUnknown = engine.Fail(engine.Failed, "The provider did not say whether it started the job, so it was not started again.")

// create creates a prediction, or finds the one that an earlier create made.
func (t *task) create(ctx context.Context, i int) error {
	if t.note.Creating != "" { // and no id: the answer is missing
		return t.adopt(ctx, i)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	inputs, err := t.values(ctx, i)
	if err != nil {
		return err
	}
	body := map[string]any{"input": inputs}
	if t.with.Version != "" {
		body["version"] = t.with.Version
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if t.note.Creating, err = hash(inputs); err != nil {
		return err
	}
	t.note.Since = t.now()
	t.note.Of = &t.with.model
	if err := t.leave(ctx); err != nil {
		return err
	}
	t.asked = true
	p, err := t.post(ctx, text)
	if err == nil && p.ID != "" {
		return t.have(i, p.ID)
	}
	s, answered := errors.AsType[*backend.Status](err)
	if err != nil && !backend.Sent(err) || answered && s.Code/100 == 4 {
		t.created()
		if err := t.leave(t.end); err != nil {
			return err
		}
		return refusal(ctx, err)
	}
	return t.adopt(ctx, i)
}

// have keeps the id of a prediction before anything else happens.
func (t *task) have(i int, id string) error {
	t.hold(id)
	t.note.IDs[i] = id
	t.created()
	return t.leave(t.end)
}

// created takes off the note that the answer to a create is missing.
func (t *task) created() {
	t.note.Creating = ""
	t.note.Since = 0
	t.note.Of = nil
	t.asked = false
}

// post asks for a prediction. It listens for the answer a little longer than the
// job lasts: what is not known cannot be cancelled.
func (t *task) post(ctx context.Context, body []byte) (p prediction, err error) {
	r := backend.Request{Method: http.MethodPost, Path: t.path, Body: bytes.NewReader(body), Type: "application/json"}
	if deadline, ok := ctx.Deadline(); ok {
		const least, slack = 5, 10 // s: what the API takes, and so that we are the first to give up
		seconds := max(math.Ceil(time.Until(deadline).Seconds())+slack, least)
		r.Header = append(r.Header, [2]string{"Cancel-After", fmt.Sprintf("%.0fs", seconds)})
	}
	end, cancel := backend.Linger(ctx, late*2/3) // the rest is to cancel it
	defer cancel()
	end, done := t.e.c.Short(end)
	defer done()
	res, err := t.e.c.Do(end, r)
	if err != nil {
		return p, err
	}
	defer res.Body.Close()
	return p, backend.Decode(res.Body, &p)
}

// refusal says why a create was not taken.
func refusal(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || ctx.Err() != nil {
		return backend.Failure(ctx, err)
	}
	switch s.Code {
	case http.StatusNotFound:
		return engine.ErrMisconfigured.Because(err) // there is no such model
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusUnprocessableEntity:
		var said struct{ Title, Detail string }
		_ = json.Unmarshal(s.Body, &said) // no words are no words
		if said.Detail == "" {
			said.Detail = said.Title
		}
		return backend.Told(engine.Failed, "The provider did not take the job.", said.Detail).Because(err)
	}
	return backend.Failure(ctx, err)
}

// adopt takes the prediction whose create was not answered for ours, where it is
// beyond doubt.
func (t *task) adopt(ctx context.Context, i int) error {
	found, err := t.e.seek(ctx, t.with.model, t.note)
	if err != nil {
		return backend.Failure(ctx, err) // the note stays: the next try looks again
	}
	if len(found) != 1 {
		return errUnknown
	}
	t.old[i] = true
	return t.have(i, found[0])
}

// seek is find for a list that may be behind.
func (e *Engine) seek(ctx context.Context, m model, n note) ([]string, error) {
	pace := e.pace()
	for range 3 {
		if found, err := e.find(ctx, m, n); err != nil || len(found) > 0 {
			return found, err
		}
		if err := pace.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// listed is what a list has to say about a prediction.
type listed struct {
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Version    string          `json:"version"`
	Deployment string          `json:"deployment"`
	Input      json.RawMessage `json:"input"`
	CreatedAt  string          `json:"created_at"`
}

// find lists recent predictions that could be the one being created: the same
// model with the same inputs, not older than the create, and of no job here.
func (e *Engine) find(ctx context.Context, m model, n note) (ids []string, err error) {
	const pages = 2 // of 100
	at := "predictions"
	for range pages {
		var page struct {
			Next    string   `json:"next"`
			Results []listed `json:"results"`
		}
		short, cancel := e.c.Short(ctx)
		err := e.c.JSON(short, "GET", at, nil, &page)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, p := range page.Results {
			if m.made(p) && !e.isHeld(p.ID) && n.fits(p) {
				ids = append(ids, p.ID)
			}
		}
		if at = page.Next; at == "" {
			break
		}
	}
	return ids, nil
}

func (e *Engine) isHeld(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held[id]
}

// fits tells whether a prediction has the inputs of the create that a note tells
// of, and is not older.
func (n note) fits(p listed) bool {
	const skew = 2 * time.Minute // between their clock and ours
	if at, err := time.Parse(time.RFC3339, p.CreatedAt); err == nil && n.Since != 0 && at.Before(time.Unix(n.Since, 0).Add(-skew)) {
		return false
	}
	var inputs any
	if p.ID == "" || json.Unmarshal(p.Input, &inputs) != nil {
		return false
	}
	h, err := hash(inputs)
	return err == nil && h == n.Creating
}

// now is the time in seconds, 0 where nobody tells it.
func (t *task) now() int64 {
	if t.e.o.Now == nil {
		return 0
	}
	return t.e.o.Now().Unix()
}

// hash names inputs by their meaning: however numbers are written and keys are
// ordered, equal inputs have equal names.
func hash(inputs any) (string, error) {
	text, err := json.Marshal(inputs)
	if err != nil {
		return "", err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil { // all numbers as float64
		return "", err
	}
	if text, err = json.Marshal(plain); err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
