package enginetest

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// SendTruncated sends half of the content that the Content-Length header
// announces, and closes the connection.
func SendTruncated(w http.ResponseWriter, content []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content[:len(content)/2])  // an error is ignored, because the client may have disconnected
	_ = http.NewResponseController(w).Flush() // send the first half before the connection closes
	panic(http.ErrAbortHandler)
}

// SendEndless sends start and then more data until the client disconnects.
func SendEndless(w http.ResponseWriter, r *http.Request, start string) {
	_, err := w.Write([]byte(start))
	for more := bytes.Repeat([]byte("A"), 64<<10); err == nil && r.Context().Err() == nil; {
		_, err = w.Write(more)
	}
}

// SendSlowly sends the content byte by byte, repeatedly, until the client disconnects.
func SendSlowly(w http.ResponseWriter, r *http.Request, content []byte) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i = (i + 1) % len(content) {
		if _, err := w.Write(content[i : i+1]); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// DropConnection closes the connection without a response.
func DropConnection(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// FaultSwitch contains the fault that a stand-in server currently simulates.
// The zero value has no fault.
type FaultSwitch[F ~string] struct {
	mu    sync.Mutex
	fault F
	times int // number of times that the fault still occurs; -1 means always
}

// SetFault activates a fault for the given number of occurrences. If times is
// 0, the fault is active until ClearFault.
func (t *FaultSwitch[F]) SetFault(f F, times int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if times == 0 {
		times = -1
	}
	t.fault = f
	t.times = times
}

// ClearFault deactivates the active fault.
func (t *FaultSwitch[F]) ClearFault() { t.SetFault("", 0) }

// IsActive reports whether the fault f is active. Each call that returns true
// counts as one occurrence.
func (t *FaultSwitch[F]) IsActive(f F) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != f || t.times == 0 {
		return false
	}
	if t.times > 0 {
		t.times--
	}
	return true
}
