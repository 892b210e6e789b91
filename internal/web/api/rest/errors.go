package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/throttle"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// retryable is the set of error codes after which the same request can succeed
// later.
var retryable = map[fault.Code]bool{
	fault.AuthorizationPending:   true,
	fault.SlowDown:               true,
	fault.Unavailable:            true,
	fault.RateLimited:            true,
	fault.ActiveRunCap:           true,
	fault.RequestTimeout:         true,
	fault.UploadChecksumMismatch: true,
	fault.Internal:               true,
}

// defaultRetryAfter is the Retry-After of errors that specify no time.
const defaultRetryAfter = 2 * time.Second

// FaultOf returns the error that a client is told. An error that is not a
// fault.Error becomes INTERNAL, and its text is only logged.
func FaultOf(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	return fault.New(fault.Internal, "An internal error occurred.")
}

// IsRetryable reports whether the same request can succeed later.
func IsRetryable(f *fault.Error) bool { return retryable[f.Code] || f.Details["reason"] == "in_flight" }

// SetErrorHeaders sets the headers of a response with an error.
func SetErrorHeaders(header http.Header, status int, f *fault.Error) {
	if f.Code == fault.RequestTimeout {
		header.Set("Connection", "close") // the rest of the body must not be parsed as the next request
	}
	switch {
	case status != http.StatusUnauthorized:
		header.Del("WWW-Authenticate")
	case header.Get("WWW-Authenticate") == "": // the interface may have set a longer one
		header.Set("WWW-Authenticate", "Bearer")
	}
	wait := f.RetryAfter
	if wait == 0 && f.Code == fault.Unavailable {
		wait = defaultRetryAfter
	}
	if wait > 0 {
		header.Set("Retry-After", strconv.FormatInt(fault.WholeSeconds(wait), 10))
	}
	header.Del("ETag")
	header.Set("Cache-Control", "no-store") // a handler may have set another value for its successful response
}

// ErrorBody returns an error in the API's error format.
func ErrorBody(f *fault.Error, traceID string) wire.ErrorBody {
	details := map[string]any{}
	for k, v := range f.Details {
		details[k] = v
	}
	if f.Code == fault.Invalid {
		fields := make([]map[string]string, 0, len(f.Fields))
		for _, p := range f.Fields {
			fields = append(fields, map[string]string{"path": p.Path, "message": p.Message})
		}
		details["fields"] = fields
	}
	if details["path"] == nil && namesPart(f.Code) {
		details["path"] = "body"
	}
	return wire.ErrorBody{
		Code:      wire.ErrorCode(f.Code),
		Message:   f.Message,
		Retryable: IsRetryable(f),
		Details:   details,
		TraceID:   traceID,
	}
}

// WriteError responds with the error in the API's error format.
func WriteError(w http.ResponseWriter, traceID string, err error) {
	f := FaultOf(err)
	status := httpd.Status[f.Code]
	SetErrorHeaders(w.Header(), status, f)
	SendError(w, status, wire.Error{Error: ErrorBody(f, traceID)})
}

// SendError responds with the body of an error as JSON. The body contains only
// plain values, so that encoding it cannot fail.
func SendError(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	Send(w, status, text)
}

// namesPart reports whether details.path of errors with this code names the
// part of the request that is too large or has an unsupported type.
// STORAGE_QUOTA_EXCEEDED is excluded, because it is also returned for requests
// without files.
func namesPart(code fault.Code) bool {
	switch httpd.Status[code] {
	case http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return code != fault.StorageQuotaExceeded
	}
	return false
}

// InPart adds to an error which part or file of the request it concerns,
// unless the error already names one.
func InPart(err error, path string) error {
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case !ok:
		return err
	case f.Code == fault.Invalid && len(f.Fields) == 0:
		return f.On(path)
	case f.Details["path"] == nil && (namesPart(f.Code) || f.Code == fault.StorageQuotaExceeded):
		return f.With("path", path)
	}
	return err
}

// IsRefusal reports whether an error proves that nothing was stored. After any
// other error the change may have been committed.
func IsRefusal(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code != fault.Unavailable && f.Details["reason"] != "in_flight"
}

// CheckRate counts a request of key towards its rate limit, and returns an
// error if the limit is exceeded.
func CheckRate(bucket *throttle.Buckets, key string) error {
	wait, ok := bucket.Take(key)
	if ok {
		return nil
	}
	return fault.TooMany("Too many requests. Wait before you send the next one.", bucket.PerMinute(), time.Minute, wait)
}
