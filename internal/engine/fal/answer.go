package fal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

var (
	errNone  = engine.Fail(engine.Invalid, "The tool made no result.")
	errBlack = engine.Fail(engine.Refused, "The tool refused the content.")
)

// deliver hands over what a request made.
func (t *task) deliver(ctx context.Context, answer json.RawMessage) error {
	var said struct {
		Text   json.RawMessage `json:"text"`
		Output json.RawMessage `json:"output"`
		Unsafe []bool          `json:"has_nsfw_concepts"`
	}
	_ = json.Unmarshal(answer, &said) // what has another form is not there
	if t.job.OutputType == "TEXT" {
		for _, v := range []json.RawMessage{said.Text, said.Output} {
			var text string
			if json.Unmarshal(v, &text) == nil && text != "" {
				t.given++
				return t.out.Output(ctx, engine.Result{Data: strings.NewReader(text)})
			}
		}
	}
	refs := backend.Pick(backend.Made(answer, t.job.Values), t.job.OutputType)
	want := 1
	taken := 0
	if t.with.Results != "" {
		want = t.job.NumResults
	}
	for i, r := range refs {
		if len(said.Unsafe) == len(refs) && said.Unsafe[i] {
			t.black = true
			continue
		}
		if taken == want {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.e.c.Deliver(ctx, r.URL, t.out); err != nil {
			return err
		}
		taken++
		t.given++
	}
	return nil
}

// reason is why a request failed. Models say it with a list of details, the
// queue with one and a type.
type reason struct{ Type, Words string }

// read takes the reason out of an answer.
func (r *reason) read(s *backend.Status) {
	var said struct {
		Detail json.RawMessage `json:"detail"`
		Type   string          `json:"error_type"`
	}
	if json.Unmarshal(s.Body, &said) != nil {
		return
	}
	if said.Type != "" {
		r.Type = said.Type
	}
	var list []struct{ Msg, Type string }
	if text := ""; json.Unmarshal(said.Detail, &text) == nil && text != "" {
		r.Words = text
	} else if json.Unmarshal(said.Detail, &list) == nil && len(list) > 0 {
		words := make([]string, len(list))
		for i, one := range list {
			words[i] = one.Msg
			if r.Type != policy {
				r.Type = one.Type
			}
		}
		r.Words = strings.Join(words, "; ")
	}
}

// ofRequest tells whether a status is how the request ended, and not the queue's
// own: that it was asked too often, or does not know us.
func (r reason) ofRequest(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return true
	case http.StatusInternalServerError:
		return r != reason{}
	}
	return r.Type != ""
}

const policy = "content_policy_violation"

// failed says what the end of a request means. One that fell victim to the
// provider's machines is made afresh at the next try: it is known to have ended.
func (t *task) failed(ctx context.Context, i int, why reason, err error) error {
	if err == nil {
		err = errors.New(backend.Say(why.Type + ": " + why.Words))
	}
	switch why.Type {
	case policy:
		return backend.Told(engine.Refused, "The tool refused the content.", why.Words).Because(err)
	case "client_cancelled":
		if t.requests[i].old {
			return errAfresh
		}
		return errCancelled.Because(err)
	case "startup_timeout", "runner_scheduling_failure", "runner_connection_timeout", "runner_disconnected",
		"runner_connection_refused", "runner_connection_error", "runner_incomplete_response", "internal_error":
		t.note.IDs[i] = ""
		if err := t.leave(ctx); err != nil {
			return err
		}
		// The queue itself is there: for other runs, and for as few of these as
		// are tried.
		return engine.Again(engine.Failed, "The provider could not run the job just now.").Because(err)
	}
	return backend.Told(engine.Failed, "The tool failed.", why.Words).Because(err)
}

// refusal says why the queue did not take a request.
func refusal(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || ctx.Err() != nil {
		return backend.Failure(ctx, err)
	}
	switch s.Code {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return engine.ErrMisconfigured.Because(err) // there is no such endpoint
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusUnprocessableEntity:
		var why reason
		why.read(s)
		if why.Type == policy {
			return backend.Told(engine.Refused, "The tool refused the content.", why.Words).Because(err)
		}
		return backend.Told(engine.Failed, "The provider did not take the job.", why.Words).Because(err)
	}
	return backend.Failure(ctx, err)
}
