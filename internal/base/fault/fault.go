// Package fault defines the errors that are reported to API clients.
//
// An *Error has a public code, a message for people, and details for programs.
// API responses contain these three; the cause is only logged. An error of any
// other type is reported as an internal error.
package fault

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Code identifies an error in API responses. Codes are part of the public API:
// new ones may be added, existing ones are never renamed.
type Code string

// The error codes of the API. Package web/api maps each to its HTTP status.
const (
	Unauthenticated         Code = "UNAUTHENTICATED"
	TokenInvalid            Code = "TOKEN_INVALID"
	AuthorizationPending    Code = "AUTHORIZATION_PENDING"
	SlowDown                Code = "SLOW_DOWN"
	DeviceCodeExpired       Code = "DEVICE_CODE_EXPIRED"
	Unavailable             Code = "UPSTREAM_UNAVAILABLE"
	RateLimited             Code = "RATE_LIMITED"
	ActiveRunCap            Code = "ACTIVE_RUN_CAP"
	PluginNotAllowed        Code = "PLUGIN_NOT_ALLOWED"
	Forbidden               Code = "FORBIDDEN"
	EmailNotVerified        Code = "EMAIL_NOT_VERIFIED"
	AccountSelectionInvalid Code = "ACCOUNT_SELECTION_INVALID"
	Invalid                 Code = "INVALID_REQUEST"
	NotFound                Code = "NOT_FOUND"
	ToolSchemaStale         Code = "TOOL_SCHEMA_STALE"
	IdempotencyKeyConflict  Code = "IDEMPOTENCY_KEY_CONFLICT"
	PreconditionFailed      Code = "CONFLICT"
	InsufficientBalance     Code = "INSUFFICIENT_BALANCE"
	NumResultsLimit         Code = "NUM_RESULTS_LIMIT"
	ContentPolicyViolation  Code = "CONTENT_POLICY_VIOLATION"
	TooManyInputFiles       Code = "TOO_MANY_INPUT_FILES"
	UploadTooLarge          Code = "UPLOAD_TOO_LARGE"
	UploadOffsetConflict    Code = "UPLOAD_OFFSET_CONFLICT"
	UploadChecksumMismatch  Code = "UPLOAD_CHECKSUM_MISMATCH"
	PayloadTooLarge         Code = "PAYLOAD_TOO_LARGE"
	StorageQuotaExceeded    Code = "STORAGE_QUOTA_EXCEEDED"
	UnsupportedMediaType    Code = "UNSUPPORTED_MEDIA_TYPE"
	MethodNotAllowed        Code = "METHOD_NOT_ALLOWED"
	RequestTimeout          Code = "REQUEST_TIMEOUT"
	Internal                Code = "INTERNAL"
)

// Codes lists every code, for tests that check that tables of codes are
// complete.
var Codes = []Code{
	Unauthenticated, TokenInvalid, AuthorizationPending, SlowDown, DeviceCodeExpired,
	Unavailable, RateLimited, ActiveRunCap, PluginNotAllowed, Forbidden, EmailNotVerified,
	AccountSelectionInvalid, Invalid, NotFound, ToolSchemaStale, IdempotencyKeyConflict,
	PreconditionFailed, InsufficientBalance, NumResultsLimit, ContentPolicyViolation, TooManyInputFiles,
	UploadTooLarge, UploadOffsetConflict, UploadChecksumMismatch, PayloadTooLarge, StorageQuotaExceeded,
	UnsupportedMediaType, MethodNotAllowed, RequestTimeout, Internal,
}

// Field is a problem with one field of a request.
type Field struct {
	Path    string
	Message string
}

// Error is an error that is reported to the API client. It is immutable: the
// methods return modified copies.
type Error struct {
	Code    Code
	Message string
	// Details are sent to the client in addition to the message.
	Details map[string]any
	// Fields are all problems of a request with the code Invalid.
	Fields []Field
	// RetryAfter is the time after which the client should retry, or zero if
	// that is unknown.
	RetryAfter time.Duration

	cause error
}

// New returns an error with a message that may be shown to the client.
func New(code Code, message string) *Error {
	return &Error{Code: code, Message: message}
}

// TooMany returns a RateLimited error. limit is the number of requests allowed
// per window or, if window is 0, at the same time. wait is the time after which
// the client should retry.
func TooMany(message string, limit int, window, wait time.Duration) *Error {
	return New(RateLimited, message).After(wait).
		With("limit", limit).
		With("window_seconds", WholeSeconds(window)).
		With("retry_after_seconds", WholeSeconds(wait))
}

// WholeSeconds rounds a duration up to whole seconds, so that clients do not
// retry too early.
func WholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// On returns a copy that reports its message as a problem with the request
// field at path.
func (e *Error) On(path string) *Error { return e.Field(path, e.Message) }

// Field returns a copy that also reports message as a problem with the request
// field at path.
func (e *Error) Field(path, message string) *Error {
	c := *e
	c.Fields = append(slices.Clip(c.Fields), Field{path, message})
	return &c
}

// With returns a copy with an additional detail.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = maps.Clone(c.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	c.Details[key] = value
	return &c
}

// After returns a copy with the time after which the client should retry.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Because returns a copy with a cause, which is logged and never sent to
// clients.
func (e *Error) Because(err error) *Error {
	c := *e
	c.cause = err
	return &c
}

// Error returns the code, the message and the cause, for logs.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether err is or wraps an *Error with this code.
func Is(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}
