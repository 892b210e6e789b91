package filebody

import (
	"errors"
	"io"
	"net/http"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/web/httpd"
)

// A large body must begin to arrive within Grace, and must then arrive at
// minRate bytes per second or faster.
const (
	Grace   = 30 * time.Second
	minRate = 64 << 10
)

// largeBody reads a request body up to a size limit. The body may take longer
// to arrive than other bodies, as long as it arrives at minRate or faster. Its
// errors are of type *fault.Error.
type largeBody struct {
	io.ReadCloser
	conn     *http.ResponseController
	now      func() time.Time
	maxBytes int64
	waited   time.Duration // time spent waiting for the client
	n        int64         // bytes read so far
	err      error         // returned by all further reads
}

// ExtendDeadlines lets the request body arrive more slowly than other bodies.
// Each read moves the read deadline according to the number of bytes that have
// arrived, and the write deadline to Grace after the read deadline. The whole
// body may have up to maxBytes, whether or not it has a Content-Length.
func (rc *Receiver) ExtendDeadlines(w http.ResponseWriter, r *http.Request, maxBytes int64) {
	r.Body = &largeBody{
		ReadCloser: r.Body,
		conn:       http.NewResponseController(w),
		now:        rc.Now,
		maxBytes:   maxBytes,
	}
}

func (b *largeBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}

	// Only the time spent in Read counts, because between reads the server
	// processes the data, which can take a long time.
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
		// After the end of the body, the HTTP server reads from the connection
		// to notice when the client disconnects. A deadline would end that read
		// and cancel the request.
		_ = b.conn.SetReadDeadline(time.Time{})
		b.err = io.EOF
	case err != nil:
		b.err = httpd.IncompleteBody(err)
		return n, b.err
	}
	return n, err
}

// TooLarge returns the error for a request whose whole body exceeds maxBytes.
func TooLarge(maxBytes int64) error {
	return fault.New(fault.PayloadTooLarge, "The request is too large.").With("limit_bytes", maxBytes).With("path", "body")
}
