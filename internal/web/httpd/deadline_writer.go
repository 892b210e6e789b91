package httpd

import (
	"io"
	"net/http"
	"time"
)

// Patient writes an answer that may take longer than others do, as long as the
// client takes each part of it within a span.
func Patient(w http.ResponseWriter, now func() time.Time, span time.Duration) io.Writer {
	return &deadlineWriter{w, http.NewResponseController(w), now, span}
}

type deadlineWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	now        func() time.Time
	timeout    time.Duration
}

func (p *deadlineWriter) Write(b []byte) (int, error) {
	_ = p.controller.SetWriteDeadline(p.now().Add(p.timeout)) // a connection without deadlines has none to move
	return p.w.Write(b)
}
