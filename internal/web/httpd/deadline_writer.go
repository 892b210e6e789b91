package httpd

import (
	"io"
	"net/http"
	"time"
)

// Patient writes an answer that may take longer than others do, as long as the
// client takes each part of it within a span.
func Patient(w http.ResponseWriter, now func() time.Time, span time.Duration) io.Writer {
	return &patient{w, http.NewResponseController(w), now, span}
}

type patient struct {
	w    http.ResponseWriter
	conn *http.ResponseController
	now  func() time.Time
	span time.Duration
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.conn.SetWriteDeadline(p.now().Add(p.span)) // a connection without deadlines has none to move
	return p.w.Write(b)
}
