package a1111

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
	errFailed = engine.Fail(engine.Failed, "The tool's server failed to make the picture.")
	// errLost is a failure of the job rather than of the server: a job that
	// crashed the server would probably crash it again.
	errLost   = engine.FailTransient(engine.Failed, "The tool's server restarted and lost the job. Try again.")
	errMemory = engine.Fail(engine.Failed, "The tool's server does not have enough memory for this job. Try a smaller size or fewer results.")
)

// callFailure converts the error of a request to the engine.Error that the run
// fails with.
func callFailure(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || ctx.Err() != nil {
		return backend.CallFailure(ctx, err)
	}
	kind, words := parseError(s.Body)
	e, ok := errors.AsType[*engine.Error](backend.CallFailure(ctx, err))
	switch {
	case kind == "OutOfMemoryError" || strings.Contains(words, "out of memory"):
		return errMemory.WithCause(err)
	case s.Code == http.StatusInternalServerError && words == "": // Forge has no messages for errors
		return errFailed.WithCause(err)
	case !ok || e.Transient || s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden:
		return backend.CallFailure(ctx, err)
	}
	return backend.FailWithText(e.Code, e.Message, words).WithCause(err)
}

// parseError parses the body of an error response. The body is either {error,
// detail, body, errors}, where errors is an exception's message, or FastAPI's
// {detail}.
func parseError(body []byte) (kind, words string) {
	var b struct {
		Error  string          `json:"error"`
		Detail json.RawMessage `json:"detail"`
		Errors json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &b) != nil {
		return "", "" // probably a proxy's HTML page, which is not shown to people
	}
	for _, part := range []json.RawMessage{b.Detail, b.Errors} {
		// The first line is the message. The other lines are a traceback.
		if words, _, _ = strings.Cut(strings.TrimSpace(backend.FastAPIDetail(part)), "\n"); words != "" {
			break
		}
	}
	return b.Error, words
}
