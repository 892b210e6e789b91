package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"atelier/internal/api/wire"
	"atelier/internal/fault"
	"atelier/internal/httpd"
	"atelier/internal/throttle"
)

// retryable are the codes after which the same request can succeed later.
var retryable = map[fault.Code]bool{
	fault.AuthorizationPending: true, fault.SlowDown: true, fault.Unavailable: true,
	fault.RateLimited: true, fault.ActiveRunCap: true, fault.Internal: true,
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
	h := w.Header()
	if httpd.Status[f.Code] == http.StatusUnauthorized {
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
		Code: wire.ErrorCode(f.Code), Message: f.Message, Retryable: retryable[f.Code] || f.Details["reason"] == "in_flight", Details: details, TraceID: traceID,
	}})
	if err != nil {
		panic(err) // details are made of plain values
	}
	send(w, httpd.Status[f.Code], body)
}

// takeRequest uses one request of what a bucket allows a key.
func takeRequest(bucket *throttle.Buckets, key string) error {
	wait, ok := bucket.Take(key)
	if ok {
		return nil
	}
	return fault.TooMany("Too many requests. Wait a little.", bucket.PerMinute(), time.Minute, wait)
}
