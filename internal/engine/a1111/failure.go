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
	errNothing = engine.Fail(engine.Invalid, "The tool's server gave no result.")
	errHuge    = engine.Fail(engine.Invalid, "The tool's server answered more than can be taken.")
	errLost    = engine.Again(engine.Unavailable, "The tool's server has lost the work.")
	errMemory  = engine.Fail(engine.Failed, "The tool's server has not enough memory for this. Try a smaller size or fewer results.")
)

// failure says what an error of a call means for the run.
func failure(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	if !ok || ctx.Err() != nil {
		return backend.Failure(ctx, err)
	}
	kind, words := complain(s.Body)
	e, ok := errors.AsType[*engine.Error](backend.Failure(ctx, err))
	switch {
	case kind == "OutOfMemoryError" || strings.Contains(words, "out of memory"):
		return errMemory.Because(err)
	case !ok || e.Transient || s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden:
		return backend.Failure(ctx, err)
	}
	return backend.Told(e.Code, e.Message, words).Because(err)
}

// complain reads an error's body: {error, detail, body, errors}, where the last
// is an exception's own text, or FastAPI's {detail}.
func complain(body []byte) (kind, words string) {
	var b struct {
		Error  string `json:"error"`
		Detail any    `json:"detail"`
		Errors any    `json:"errors"`
	}
	if json.Unmarshal(body, &b) != nil {
		return "", "" // a proxy's page says nothing to people
	}
	for _, v := range []any{b.Detail, b.Errors} {
		if words := plain(v); words != "" {
			return b.Error, words
		}
	}
	return b.Error, ""
}

// plain gives the words of a text or of FastAPI's list.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		first, _, _ := strings.Cut(strings.TrimSpace(v), "\n")
		return first
	case []any:
		var all []string
		for _, one := range v {
			o, _ := one.(map[string]any)
			words, _ := o["msg"].(string)
			if loc, _ := o["loc"].([]any); len(loc) > 0 {
				if name, ok := loc[len(loc)-1].(string); ok {
					words = name + ": " + words
				}
			}
			all = append(all, words)
		}
		return strings.Join(all, "; ")
	}
	return ""
}
