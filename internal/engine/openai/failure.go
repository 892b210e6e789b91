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
	errFailed = engine.Fail(engine.Failed, "The tool's server failed to make the result.")
	// errLost is a failure of the job rather than of the server: a job that
	// crashed the server would probably crash it again.
	errLost      = engine.FailTransient(engine.Failed, "The tool's server restarted and lost the job. Try again.")
	errUncertain = engine.Fail(engine.Failed, "The tool's server did not confirm the job, and starting it again could cost twice. Start a new run if you want to try again.")
)

// serverError is the error in the body of a server's response.
type serverError struct {
	Message string
	Code    string // OpenAI's error code, or the error type if there is no code
}

// refusalCodes are the error codes and types for refused content.
var refusalCodes = map[string]bool{
	"content_policy_violation": true, "moderation_blocked": true, "content_filter": true, "sentinel_block": true,
}

// quotaCodes are the error codes and types for an account without remaining
// quota.
var quotaCodes = map[string]bool{"insufficient_quota": true, "quota_exceeded": true, "billing_hard_limit_reached": true}

// callFailure converts the error of a request to the engine.Error that the run
// fails with.
func callFailure(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || ctx.Err() != nil {
		return backend.CallFailure(ctx, err)
	}
	c := parseError(s.Body)
	if e := c.knownFailure(); e != nil {
		return e.WithCause(err)
	}
	switch {
	case s.Code == http.StatusNotFound && c.Code == "model_not_found":
		return engine.ErrMisconfigured.WithCause(err)
	case s.Code == http.StatusUnauthorized, s.Code == http.StatusForbidden, c.Message == "":
		return backend.CallFailure(ctx, err)
	}
	if e, ok := errors.AsType[*engine.Error](backend.CallFailure(ctx, err)); ok && !e.Transient {
		return backend.FailWithText(e.Code, e.Message, c.Message).WithCause(err)
	}
	return backend.CallFailure(ctx, err)
}

// knownFailure returns the failure for error codes that have the same meaning
// on all servers. It returns nil for other codes.
func (c serverError) knownFailure() *engine.Error {
	switch {
	case refusalCodes[c.Code]:
		return backend.FailWithText(engine.Refused, "The tool's server refused the content.", c.Message)
	case quotaCodes[c.Code]:
		return engine.FailTransient(engine.Unavailable, "The operator's quota at the tool's server is exhausted. Try again later or contact the operator.")
	}
	return nil
}

// parseError parses the body of an error response. OpenAI sends
// {"error":{message,type,code}}, FastAPI servers send {"detail":…}, and some
// servers mix both.
func parseError(body []byte) serverError {
	var b struct {
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &b) != nil {
		return serverError{} // probably a proxy's HTML page, which is not shown to people
	}
	var c serverError
	for _, part := range []json.RawMessage{b.Error, b.Detail} {
		if c.readPart(part) {
			return c
		}
	}
	return serverError{Message: b.Message}
}

func (c *serverError) readPart(part json.RawMessage) bool {
	var o struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"` // a string for OpenAI, a number for vLLM
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
