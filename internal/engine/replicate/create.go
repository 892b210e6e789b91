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

// createPrediction creates the job's prediction number i. If an earlier create
// request got no response, it searches for the prediction of that request
// instead.
func (t *task) createPrediction(ctx context.Context, i int) error {
	if t.checkpoint.Creating != "" { // there is no id, so the response was lost
		return t.adoptPrediction(ctx, i)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	inputs, err := t.PieceInputs(ctx, i, t.fileInput)
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
	if t.checkpoint.Creating, err = hashInputs(inputs); err != nil {
		return err
	}
	t.checkpoint.Since = t.unixNow()
	if t.canRecognize() {
		t.checkpoint.Of = &t.with.model
	}
	if err := t.SaveCheckpoint(ctx, t.checkpoint); err != nil {
		return err
	}
	t.unanswered = true
	p, err := t.postPrediction(ctx, text)
	if err == nil && p.ID != "" {
		return t.saveID(i, p.ID)
	}
	if backend.WasNotCreated(err) {
		t.clearCreating()
		if err := t.SaveCheckpoint(t.Settle, t.checkpoint); err != nil {
			return err
		}
		return createFailure(ctx, err)
	}
	return t.adoptPrediction(ctx, i)
}

// saveID saves the id of the job's prediction number i in the checkpoint. It is
// called immediately after the creation, so that the id is not lost.
func (t *task) saveID(i int, id string) error {
	t.markActive(id)
	t.checkpoint.IDs[i] = id
	t.clearCreating()
	return t.SaveCheckpoint(t.Settle, t.checkpoint)
}

// clearCreating removes from the checkpoint the create request that has no
// response.
func (t *task) clearCreating() {
	t.checkpoint.Creating = ""
	t.checkpoint.Since = 0
	t.checkpoint.Of = nil
	t.unanswered = false
}

// postPrediction sends the create request of a prediction.
func (t *task) postPrediction(ctx context.Context, body []byte) (p prediction, err error) {
	r := backend.Request{Method: http.MethodPost, Path: t.path, Body: bytes.NewReader(body), Type: "application/json"}
	if deadline, ok := ctx.Deadline(); ok {
		const minSeconds, slack = 5, 10 // seconds: the API's minimum, and a margin so that this engine stops first
		seconds := max(math.Ceil(time.Until(deadline).Seconds())+slack, minSeconds)
		r.Header = append(r.Header, [2]string{"Cancel-After", fmt.Sprintf("%.0fs", seconds)})
	}
	err = t.PostCreate(ctx, r, &p)
	return p, err
}

// createFailure converts the provider's refusal of a create request to the
// error that the run fails with.
func createFailure(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || ctx.Err() != nil {
		return backend.CallFailure(ctx, err)
	}
	switch s.Code {
	case http.StatusNotFound:
		return engine.ErrMisconfigured.WithCause(err) // the model in the manifest does not exist
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusUnprocessableEntity:
		var said struct{ Title, Detail string }
		_ = json.Unmarshal(s.Body, &said) // if the body has another format, there is no detail
		if said.Detail == "" {
			said.Detail = said.Title
		}
		return backend.ProviderRefused(said.Detail).WithCause(err)
	}
	return backend.CallFailure(ctx, err)
}

// adoptPrediction searches for the prediction whose create request got no
// response. If the prediction can be identified with certainty, the job
// continues with it as its prediction number i.
func (t *task) adoptPrediction(ctx context.Context, i int) error {
	if !t.canRecognize() {
		return backend.ErrUnconfirmed
	}
	found, err := t.e.findRepeatedly(ctx, t.with.model, t.checkpoint)
	if err != nil {
		return backend.CallFailure(ctx, err) // the checkpoint stays, and the next attempt searches again
	}
	if len(found) != 1 {
		return backend.ErrUnconfirmed
	}
	t.resumed[i] = true
	return t.saveID(i, found[0])
}

// canRecognize reports whether the job's predictions can be distinguished from
// predictions that other runs created with the same inputs. That requires a
// seed, because only the seed differs between them.
func (t *task) canRecognize() bool { return t.with.Mapping.Seed != "" }

// findRepeatedly calls findCandidates up to three times, because new
// predictions may appear in the provider's list with a delay.
func (e *Engine) findRepeatedly(ctx context.Context, m model, n checkpoint) ([]string, error) {
	pace := backend.NewPoller(e.o.PollInterval, e.o.PollTimeout)
	for range 3 {
		if found, err := e.findCandidates(ctx, m, n); err != nil || len(found) > 0 {
			return found, err
		}
		if err := pace.WaitNext(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// listedPrediction is a prediction in the provider's list.
type listedPrediction struct {
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Version    string          `json:"version"`
	Deployment string          `json:"deployment"`
	Input      json.RawMessage `json:"input"`
	CreatedAt  string          `json:"created_at"`
}

// findCandidates returns the ids of recent predictions that the create request
// in the checkpoint may have created. They are of the same model, have the same
// inputs, are not older than the request, and belong to no other job in this
// process.
func (e *Engine) findCandidates(ctx context.Context, m model, n checkpoint) (ids []string, err error) {
	const pages = 2 // number of pages to read, each with 100 predictions
	at := "predictions"
	for range pages {
		var page struct {
			Next    string             `json:"next"`
			Results []listedPrediction `json:"results"`
		}
		short, cancel := e.c.WithTimeout(ctx)
		err := e.c.CallJSON(short, "GET", at, nil, &page)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, p := range page.Results {
			if m.hasMade(p) && !e.isActive(p.ID) && n.matchesPrediction(p) {
				ids = append(ids, p.ID)
			}
		}
		if at = page.Next; at == "" {
			break
		}
	}
	return ids, nil
}

func (e *Engine) isActive(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.activeIDs[id]
}

// matchesPrediction reports whether a prediction has the inputs of the create
// request in the checkpoint, and is not older than the request.
func (n checkpoint) matchesPrediction(p listedPrediction) bool {
	const skew = 2 * time.Minute // tolerated difference between the provider's clock and this machine's
	if at, err := time.Parse(time.RFC3339, p.CreatedAt); err == nil && n.Since != 0 && at.Before(time.Unix(n.Since, 0).Add(-skew)) {
		return false
	}
	var inputs any
	if p.ID == "" || json.Unmarshal(p.Input, &inputs) != nil {
		return false
	}
	h, err := hashInputs(inputs)
	return err == nil && h == n.Creating
}

// unixNow returns the current time in Unix seconds. It returns 0 if the engine
// has no clock.
func (t *task) unixNow() int64 {
	if t.e.o.Now == nil {
		return 0
	}
	return t.e.o.Now().Unix()
}

// hashInputs returns a hash of inputs that does not depend on the notation of numbers or the order
// of keys.
func hashInputs(inputs any) (string, error) {
	text, err := json.Marshal(inputs)
	if err != nil {
		return "", err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil { // decoding converts all numbers to float64
		return "", err
	}
	if text, err = json.Marshal(plain); err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
