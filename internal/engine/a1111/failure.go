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
	// errLost counts as the work's own failure: what breaks the server down would
	// do so again and again.
	errLost   = engine.Again(engine.Failed, "The tool's server has lost the work.")
	errMemory = engine.Fail(engine.Failed, "The tool's server has not enough memory for this. Try a smaller size or fewer results.")
)

// failure says what an error of a call means for the run.
func failure(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || ctx.Err() != nil {
		return backend.CallFailure(ctx, err)
	}
	kind, words := complain(s.Body)
	e, ok := errors.AsType[*engine.Error](backend.CallFailure(ctx, err))
	switch {
	case kind == "OutOfMemoryError" || strings.Contains(words, "out of memory"):
		return errMemory.Because(err)
	case !ok || e.Transient || s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden:
		return backend.CallFailure(ctx, err)
	}
	return backend.FailWithText(e.Code, e.Message, words).Because(err)
}

// complain reads an error's body: {error, detail, body, errors}, where the last
// is an exception's own text, or FastAPI's {detail}.
func complain(body []byte) (kind, words string) {
	var b struct {
		Error  string          `json:"error"`
		Detail json.RawMessage `json:"detail"`
		Errors json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &b) != nil {
		return "", "" // a proxy's page says nothing to people
	}
	for _, part := range []json.RawMessage{b.Detail, b.Errors} {
		// The rest of it is a traceback.
		if words, _, _ = strings.Cut(strings.TrimSpace(backend.FastAPIDetail(part)), "\n"); words != "" {
			break
		}
	}
	return b.Error, words
}
