package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is an error response of the service. Find it with errors.As or
// errors.AsType, or test for a code with HasCode:
//
//	if client.HasCode(err, client.CodeInsufficientBalance) { … }
type Error struct {
	Status    int            `json:"-"` // HTTP status
	Code      Code           `json:"code"`
	Message   string         `json:"message"`   // for people
	Retryable bool           `json:"retryable"` // whether the same request can succeed later
	Details   map[string]any `json:"details"`   // for programs, by code
	TraceID   string         `json:"trace_id"`  // id of the request in the service's logs
	// RetryAfter is the time to wait before the next attempt, from the
	// Retry-After header. It is 0 if the service requested none.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the code and the message, and a line for each invalid field.
func (e *Error) Error() string {
	text := string(e.Code) + ": " + e.Message
	for _, f := range e.Fields() {
		text += fmt.Sprintf("\n  %s: %s", f.Path, f.Message)
	}
	return text
}

// FieldProblem is a problem with one field of a request.
type FieldProblem struct {
	Path    string
	Message string
}

// Fields returns the problems that an error with CodeInvalidRequest lists.
func (e *Error) Fields() []FieldProblem {
	var all []FieldProblem
	list, _ := e.Details["fields"].([]any)
	for _, one := range list {
		f, ok := one.(map[string]any)
		if !ok {
			continue
		}
		path, _ := f["path"].(string)
		message, _ := f["message"].(string)
		all = append(all, FieldProblem{Path: path, Message: message})
	}
	return all
}

// HasCode reports whether err is, or wraps, an *Error with the given code.
func HasCode(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// Error returns the code and the message of a failed run.
func (f *RunFailure) Error() string { return string(f.Code) + ": " + f.Message }

// ErrCancelled is the error of a run that was cancelled.
var ErrCancelled = errors.New("the run was cancelled")

// maxErrorBytes is the maximum number of bytes read from an error response.
const maxErrorBytes = 1 << 20

// readError makes an *Error of a response that is no success. The body of a
// proxy in between is no JSON: the status decides then.
func readError(res *http.Response) *Error {
	var body struct {
		Error *Error `json:"error"`
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	if err := json.Unmarshal(text, &body); err != nil || body.Error == nil || body.Error.Code == "" {
		body.Error = &Error{
			Code:      codeOfStatus(res.StatusCode),
			Message:   fmt.Sprintf("the answer has status %d and no description", res.StatusCode),
			Retryable: res.StatusCode >= 500,
		}
	}
	e := body.Error
	e.Status = res.StatusCode
	e.RetryAfter = parseRetryAfter(res.Header.Get("Retry-After"), time.Now())
	if e.TraceID == "" {
		e.TraceID = res.Header.Get("X-Trace-Id")
	}
	return e
}

// codeOfStatus returns the code for a response without one.
func codeOfStatus(status int) Code {
	switch status {
	case http.StatusUnauthorized:
		return CodeUnauthenticated
	case http.StatusForbidden:
		return CodeForbidden
	case http.StatusNotFound:
		return CodeNotFound
	case http.StatusRequestTimeout:
		return CodeRequestTimeout
	case http.StatusConflict:
		return CodeConflict
	case http.StatusTooManyRequests:
		return CodeRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return CodeUpstreamUnavailable
	}
	if status >= 500 {
		return CodeInternal
	}
	return CodeInvalidRequest
}

// parseRetryAfter reads a Retry-After header: seconds or a date (RFC 9110,
// section 10.2.3). It returns 0 for none.
func parseRetryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
