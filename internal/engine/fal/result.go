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

// deliverResults passes the results in the response of a request to the sink.
func (t *task) deliverResults(ctx context.Context, answer json.RawMessage) error {
	var said struct {
		Text   json.RawMessage `json:"text"`
		Output json.RawMessage `json:"output"`
		Unsafe []bool          `json:"has_nsfw_concepts"`
	}
	_ = json.Unmarshal(answer, &said) // a value of another type is ignored
	if t.Job.OutputType == "TEXT" {
		for _, v := range []json.RawMessage{said.Text, said.Output} {
			var text string
			if json.Unmarshal(v, &text) == nil && text != "" {
				t.delivered++
				return t.Out.Output(ctx, engine.Result{Data: strings.NewReader(text)})
			}
		}
	}
	refs := backend.FilterByType(backend.FindResults(answer, t.Job.Values), t.Job.OutputType)
	want := t.ResultsPerPiece()
	taken := 0
	for i, r := range refs {
		if len(said.Unsafe) == len(refs) && said.Unsafe[i] {
			t.blocked = true
			continue
		}
		if taken == want {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.e.c.DeliverRemoteFile(ctx, r.URL, t.Out); err != nil {
			return err
		}
		taken++
		t.delivered++
	}
	return nil
}

// failureReason is the reason why a request failed: fal's error type and its
// message. Models return a list of details, the queue returns one detail and a
// type.
type failureReason struct{ Type, Words string }

// readStatus sets the reason from the body of an error response.
func (r *failureReason) readStatus(s *backend.Status) {
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
			if r.Type != policyViolation {
				r.Type = one.Type
			}
		}
		r.Words = strings.Join(words, "; ")
	}
}

// isRequestEnd reports whether an HTTP status is the outcome of the request,
// as opposed to an error of the queue itself, such as a rate limit or a wrong
// API key.
func (r failureReason) isRequestEnd(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return true
	case http.StatusInternalServerError:
		return r != failureReason{}
	}
	return r.Type != ""
}

const policyViolation = "content_policy_violation"

// requestFailure converts the outcome of a failed request to the error that
// the run fails with. If the provider's machines were the cause, the request
// is created again at the next attempt, because it is known to have ended.
func (t *task) requestFailure(ctx context.Context, i int, why failureReason, err error) error {
	if err == nil {
		err = errors.New(backend.SanitizeText(why.Type + ": " + why.Words))
	}
	switch why.Type {
	case policyViolation:
		return backend.ContentRefused(why.Words).WithCause(err)
	case "client_cancelled":
		if t.requests[i].resumed {
			return errCancelledBefore
		}
		return backend.ErrJobCancelled.WithCause(err)
	case "startup_timeout", "runner_scheduling_failure", "runner_connection_timeout", "runner_disconnected",
		"runner_connection_refused", "runner_connection_error", "runner_incomplete_response", "internal_error":
		t.checkpoint.IDs[i] = ""
		if err := t.SaveCheckpoint(ctx, t.checkpoint); err != nil {
			return err
		}
		return backend.ErrProviderFailed.WithCause(err)
	}
	return backend.ToolFailed(why.Words).WithCause(err)
}

// createFailure converts the queue's refusal of a create request to the error
// that the run fails with.
func createFailure(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || ctx.Err() != nil {
		return backend.CallFailure(ctx, err)
	}
	switch s.Code {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return engine.ErrMisconfigured.WithCause(err) // the endpoint in the manifest does not exist
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusUnprocessableEntity:
		var why failureReason
		why.readStatus(s)
		if why.Type == policyViolation {
			return backend.ContentRefused(why.Words).WithCause(err)
		}
		return backend.ProviderRefused(why.Words).WithCause(err)
	}
	return backend.CallFailure(ctx, err)
}
