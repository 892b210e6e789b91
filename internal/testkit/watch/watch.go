// Package watch has helpers with which tests observe running processes, and limit
// how long something takes.
package watch

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Log stores everything written to it, by any number of writers.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns all output so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// patience is how long Until waits. It is long, because tests run on machines
// that are busy elsewhere; what must be quick is measured by the test itself.
const patience = 5 * time.Minute

// Until waits until ok returns true, and fails the test if it does not in time.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Hang is a handler that never responds. It waits until the client disconnects
// and then aborts the connection: a handler that returns at that moment sends a
// 200, which a client that is just closing its connection can still read.
func Hang(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // the server notices a disconnect only after the body was read
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}
