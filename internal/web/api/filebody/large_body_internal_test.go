package filebody

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// deadlines counts how often a connection's read deadline is set.
type deadlines struct {
	http.ResponseWriter
	set int
}

func (d *deadlines) SetReadDeadline(time.Time) error {
	d.set++
	return nil
}

// TestWholeBodyHasNoDeadline reads a body again after its end, as readers of
// multipart bodies do. The HTTP server then waits on the connection to notice
// a client that leaves: a deadline on that wait would cancel a request whose
// work takes longer.
func TestWholeBodyHasNoDeadline(t *testing.T) {
	t.Parallel()
	conn := &deadlines{}
	body := &largeBody{
		ReadCloser: io.NopCloser(strings.NewReader("content")),
		conn:       http.NewResponseController(conn),
		now:        time.Now,
		maxBytes:   1 << 20,
	}
	if text, err := io.ReadAll(body); string(text) != "content" || err != nil {
		t.Fatalf("body = %q, %v", text, err)
	}

	before := conn.set
	if n, err := body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read after the end = %d, %v", n, err)
	}
	if before == 0 || conn.set != before {
		t.Errorf("the deadline was set %d times and %d times after the end", before, conn.set-before)
	}
}
