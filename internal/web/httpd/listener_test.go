package httpd_test

import (
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"atelier/internal/web/httpd"
)

// failingListener is a listener whose next calls of Accept fail.
type failingListener struct {
	net.Listener
	left atomic.Int64
	err  syscall.Errno
}

func (f *failingListener) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", f.err)}
	}
	return f.Listener.Accept()
}

// TestListenerSurvivesErrors fails twenty calls of Accept with errors that
// Linux reports there, of which net/http takes some for final.
func TestListenerSurvivesErrors(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM, syscall.EPROTO} {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			broken := &failingListener{Listener: inner, err: errno}
			broken.left.Store(20)
			l := httpd.NewListener(broken, httpd.ConnectionLimits{}, slog.New(slog.DiscardHandler), time.Now)
			s := &http.Server{
				Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
				ConnState:         l.TrackState,
				ReadHeaderTimeout: time.Minute,
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(l) }()
			t.Cleanup(func() { s.Close(); <-ended })

			res, err := http.Get("http://" + inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusNoContent {
				t.Errorf("status = %d", res.StatusCode)
			}
			if left := broken.left.Load(); left > 0 {
				t.Errorf("%d errors were not met", left)
			}
		})
	}
}
