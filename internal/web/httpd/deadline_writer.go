package httpd

import (
	"io"
	"net/http"
	"time"
)

// NewDeadlineWriter returns a writer for a long response: the client has timeout for each
// part of it, not for the whole.
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
	_ = p.controller.SetWriteDeadline(p.now().Add(p.timeout)) // an error means a connection without deadlines, as in tests
	return p.w.Write(b)
}
