package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

var (
	errFailed = engine.Fail(engine.Failed, "The tool's server could not make it.")
	// errLost counts as the work's own failure: what breaks the server down would
	// do so again and again.
	errLost   = engine.Again(engine.Failed, "The tool's server has lost the work.")
	errUnsure = engine.Fail(engine.Failed, "It is not known whether the tool's server began the work. It was not begun a second time, which might cost twice.")
)

// complaint is what a server says is wrong.
type complaint struct {
	Message string
	Code    string // OpenAI's code, or its type where there is no code
}

// refusals are the codes and types of a provider that does not want to make
// what was asked for.
var refusals = map[string]bool{
	"content_policy_violation": true, "moderation_blocked": true, "content_filter": true, "sentinel_block": true,
}

// quotas are the codes and types of an account that is used up.
var quotas = map[string]bool{"insufficient_quota": true, "quota_exceeded": true, "billing_hard_limit_reached": true}

// failure says what an error of a call means for the run.
func failure(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || ctx.Err() != nil {
		return backend.CallFailure(ctx, err)
	}
	c := complain(s.Body)
	if e := c.known(); e != nil {
		return e.Because(err)
	}
	switch {
	case s.Code == http.StatusNotFound && c.Code == "model_not_found":
		return engine.ErrMisconfigured.Because(err)
	case s.Code == http.StatusUnauthorized, s.Code == http.StatusForbidden, c.Message == "":
		return backend.CallFailure(ctx, err)
	}
	if e, ok := errors.AsType[*engine.Error](backend.CallFailure(ctx, err)); ok && !e.Transient {
		return backend.FailWithText(e.Code, e.Message, c.Message).Because(err)
	}
	return backend.CallFailure(ctx, err)
}

// known is the failure for codes that mean the same everywhere, nil for others.
func (c complaint) known() *engine.Error {
	switch {
	case refusals[c.Code]:
		return backend.FailWithText(engine.Refused, "The tool's server does not make this.", c.Message)
	case quotas[c.Code]:
		return engine.Again(engine.Unavailable, "What the operator may use of the tool's server is used up.")
	}
	return nil
}

// complain reads an error's body: {"error":{message,type,code}} of OpenAI,
// {"detail":…} of servers made with FastAPI, and what lies between them.
func complain(body []byte) complaint {
	var b struct {
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &b) != nil {
		return complaint{} // a proxy's page says nothing to people
	}
	var c complaint
	for _, part := range []json.RawMessage{b.Error, b.Detail} {
		if c.read(part) {
			return c
		}
	}
	return complaint{Message: b.Message}
}

func (c *complaint) read(part json.RawMessage) bool {
	var o struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"` // a number with vLLM
	}
	if json.Unmarshal(part, &o) == nil && (o.Message != "" || o.Type != "" || o.Code != nil) {
		c.Message = o.Message
		c.Code = o.Type
		if code, ok := o.Code.(string); ok && code != "" {
			c.Code = code
		}
		return true
	}
	c.Message = backend.FastAPIDetail(part)
	return c.Message != ""
}
