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
	// errLost counts as a failure of the work, because work that crashes the server would crash it
	// again.
	errLost   = engine.FailTransient(engine.Failed, "The tool's server restarted and lost the job. Try again.")
	errMemory = engine.Fail(engine.Failed, "The tool's server does not have enough memory for this job. Try a smaller size or fewer results.")
)

// callFailure translates the error of a call into a failure of the run.
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
	case !ok || e.Transient || s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden:
		return backend.CallFailure(ctx, err)
	}
	return backend.FailWithText(e.Code, e.Message, words).WithCause(err)
}

// parseError parses an error's body: {error, detail, body, errors}, the last of which is an
// exception's text, or FastAPI's {detail}.
func parseError(body []byte) (kind, words string) {
	var b struct {
		Error  string          `json:"error"`
		Detail json.RawMessage `json:"detail"`
		Errors json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &b) != nil {
		return "", "" // an HTML page of a proxy is not for people
	}
	for _, part := range []json.RawMessage{b.Detail, b.Errors} {
		// The rest is a traceback.
		if words, _, _ = strings.Cut(strings.TrimSpace(backend.FastAPIDetail(part)), "\n"); words != "" {
			break
		}
	}
	return b.Error, words
}
