package httpd

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"atelier/internal/base/sqldb"
)

// reauthorizeInterval is the time between two authorizations of a client while a
// response is being sent to it.
const reauthorizeInterval = 2 * time.Second

// recordedResponse records the status and size of a response, and re-checks
// authorization during long ones.
type recordedResponse struct {
	http.ResponseWriter
	status int
	bytes  int64

	ctx          context.Context
	record       *Record
	now          func() time.Time
	authorizedAt time.Time // at the beginning of the response, or later
	budget       *sqldb.Budget
}

func (a *recordedResponse) beginResponse(status int) {
	a.budget.Lift()
	a.status = status
	a.authorizedAt = a.now()
}

// reauthorizeClient returns an error if the client may no longer get the
// response. Error responses are not checked.
func (a *recordedResponse) reauthorizeClient() error {
	if a.record.Reauthorize == nil || a.status >= http.StatusBadRequest {
		return nil
	}
	now := a.now()
	if now.Sub(a.authorizedAt) < reauthorizeInterval {
		return nil
	}
	if err := a.record.Reauthorize(a.ctx); err != nil {
		return err
	}
	a.authorizedAt = now
	return nil
}

func (a *recordedResponse) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.beginResponse(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *recordedResponse) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.beginResponse(http.StatusOK)
	}
	if err := a.reauthorizeClient(); err != nil {
		return 0, err
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// ResponseStarted reports whether a response has begun. From then on its status cannot
// change, and an error can only abort it.
func ResponseStarted(w http.ResponseWriter) bool {
	a, ok := w.(*recordedResponse)
	return ok && a.status != 0
}

// Unwrap returns the wrapped writer, by which http.ResponseController reaches
// the connection.
func (a *recordedResponse) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// ETag returns a strong ETag of content, in the form of the header.
func ETag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}
