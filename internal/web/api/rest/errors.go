package api

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

// retryable are the codes after which the same request can succeed later.
var retryable = map[fault.Code]bool{
	fault.AuthorizationPending: true, fault.SlowDown: true, fault.Unavailable: true,
	fault.RateLimited: true, fault.ActiveRunCap: true, fault.RequestTimeout: true, fault.Internal: true,
}

// awayFor is what a caller is told to wait when nobody knows how long something
// will be away.
const awayFor = 2 * time.Second

// writeError answers with the error envelope. What is no fault is an accident:
// the caller learns that it happened, the log learns the rest.
func writeError(w http.ResponseWriter, traceID string, err error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "Something went wrong on our side.")
	}
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
	status := httpd.Status[f.Code]
	if details["path"] == nil && namesPart(f.Code) {
		details["path"] = "body"
	}
	h := w.Header()
	if f.Code == fault.RequestTimeout {
		h.Set("Connection", "close") // what is left of the body belongs to no request
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	wait := f.RetryAfter
	if wait == 0 && f.Code == fault.Unavailable {
		wait = awayFor
	}
	if wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(fault.WholeSeconds(wait), 10))
	}
	h.Del("ETag")
	body, err := json.Marshal(wire.Error{Error: wire.ErrorBody{
		Code:      wire.ErrorCode(f.Code),
		Message:   f.Message,
		Retryable: retryable[f.Code] || f.Details["reason"] == "in_flight",
		Details:   details,
		TraceID:   traceID,
	}})
	if err != nil {
		panic(err) // details are made of plain values
	}
	send(w, status, body)
}

// namesPart reports whether details.path of an error names the part of the
// request that is too large or of a type that is not accepted. An account without
// room refuses requests that bring nothing too.
func namesPart(code fault.Code) bool {
	switch httpd.Status[code] {
	case http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return code != fault.StorageQuotaExceeded
	}
	return false
}

// inPart names the part of a request, or the file, that an error is about, unless
// it does already.
func inPart(err error, path string) error {
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

// takeRequest uses one request of what a bucket allows a key.
func takeRequest(bucket *throttle.Buckets, key string) error {
	wait, ok := bucket.Take(key)
	if ok {
		return nil
	}
	return fault.TooMany("Too many requests. Wait a little.", bucket.PerMinute(), time.Minute, wait)
}
