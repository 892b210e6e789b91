package httpd

import (
	"io"
	"net/http"
	"time"
)

// patience is how long a client may take for the next part of a long answer.
const patience = 30 * time.Second

// Patient writes an answer that may take longer than others do, as long as the
// client keeps taking it.
func Patient(w http.ResponseWriter, now func() time.Time) io.Writer {
	return &patient{w, http.NewResponseController(w), now}
}

type patient struct {
	w    http.ResponseWriter
	conn *http.ResponseController
	now  func() time.Time
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.conn.SetWriteDeadline(p.now().Add(patience)) // a connection without deadlines has none to move
	return p.w.Write(b)
}
