// Package watch is what tests watch running things with.
package watch

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Log keeps what is written to it, by any number of writers.
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

// String is all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Until waits for something to come true and fails the test when it does not.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Hang is a handler that never answers. It waits for the client to leave and
// then aborts the connection: a handler that returns at that moment sends a 200,
// which a client that is just closing its connection can still read.
func Hang(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // the server notices a client that leaves only after the body was read
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}
