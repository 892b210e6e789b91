package filebody

import (
	"errors"
	"io"
	"net/http"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/web/httpd"
)

// A large body has Grace to begin with, and must then arrive with at least
// minRate bytes a second.
const (
	Grace   = 30 * time.Second
	minRate = 64 << 10
)

// largeBody reads a request body that may take longer to arrive than others, as
// long as it keeps the minimal rate, up to a size limit. Its errors are faults.
type largeBody struct {
	io.ReadCloser
	conn     *http.ResponseController
	now      func() time.Time
	maxBytes int64
	waited   time.Duration // time spent waiting for the client
	n        int64         // bytes read so far
	err      error         // ends the body
}

// ExtendDeadlines extends the read deadline with the bytes that have arrived, and
// the write deadline to the usual time after that. The whole body may have
// MaxRequestBytes, whether its length was announced or not.
func (rc *Receiver) ExtendDeadlines(w http.ResponseWriter, r *http.Request) {
	r.Body = &largeBody{
		ReadCloser: r.Body,
		conn:       http.NewResponseController(w),
		now:        rc.Now,
		maxBytes:   rc.MaxRequestBytes,
	}
}

func (b *largeBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}

	// Only the time inside of Read counts: between reads the server works, perhaps
	// for long.
	start := b.now()
	until := start.Add(Grace + time.Duration(b.n/minRate)*time.Second - b.waited)
	_ = b.conn.SetReadDeadline(until) // fails only on connections without deadlines
	_ = b.conn.SetWriteDeadline(until.Add(Grace))
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	b.waited += b.now().Sub(start)

	switch {
	case b.n > b.maxBytes:
		b.err = TooLarge(b.maxBytes)
		return 0, b.err
	case errors.Is(err, io.EOF):
		// The HTTP server now waits on the connection to notice that the client left.
		// A deadline set after this would end that wait and cancel the request.
		b.err = io.EOF
	case err != nil:
		b.err = httpd.IncompleteBody(err)
		return n, b.err
	}
	return n, err
}

// TooLarge refuses a request whose whole body is too large.
func TooLarge(maxBytes int64) error {
	return fault.New(fault.PayloadTooLarge, "The request is too large.").With("limit_bytes", maxBytes).With("path", "body")
}
