package httpd

import (
	"io"
	"net/http"
	"time"
)

// NewDeadlineWriter returns a writer for a long response. The timeout applies
// to each write instead of the whole response.
func NewDeadlineWriter(w http.ResponseWriter, now func() time.Time, timeout time.Duration) io.Writer {
	return &deadlineWriter{w, http.NewResponseController(w), now, timeout}
}

type deadlineWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	now        func() time.Time
	timeout    time.Duration
}

func (p *deadlineWriter) Write(b []byte) (int, error) {
	_ = p.controller.SetWriteDeadline(p.now().Add(p.timeout)) // an error means that the connection has no deadlines, as in tests
	return p.w.Write(b)
}
