package httpd

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"atelier/internal/base/sqldb"
)

// reauthorizeInterval is the time between two authorization checks of a client
// while a response is being sent to it.
const reauthorizeInterval = 2 * time.Second

// recordedResponse records the status and size of a response, and checks
// authorization again during long responses.
type recordedResponse struct {
	http.ResponseWriter
	status int
	bytes  int64

	ctx          context.Context
	record       *Record
	now          func() time.Time
	authorizedAt time.Time // set when the response begins and at each later check
	budget       *sqldb.Budget
}

func (a *recordedResponse) beginResponse(status int) {
	a.budget.Lift()
	a.status = status
	a.authorizedAt = a.now()
}

// reauthorizeClient returns an error if the client is no longer authorized to
// receive the response. Error responses are not checked.
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

// ResponseStarted reports whether the response has begun. From then on its
// status cannot change, and an error can only abort it.
func ResponseStarted(w http.ResponseWriter) bool {
	a, ok := w.(*recordedResponse)
	return ok && a.status != 0
}

// Unwrap returns the wrapped writer. http.ResponseController needs it to find
// the connection.
func (a *recordedResponse) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// ETag returns a strong ETag of content, in quotes as the header requires.
func ETag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}
