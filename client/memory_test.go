package client_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"atelier/client"
)

// memoryTransport hands requests to a handler without a socket, so that tests
// can run in a synctest bubble.
type memoryTransport struct {
	mu      sync.Mutex
	handler http.Handler
	lose    func(n int, r *http.Request) error // after the handler has run: the answer is lost
	refuse  func(n int, r *http.Request) error // before: there is no connection
	count   int
}

func (m *memoryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.count++
	n := m.count
	m.mu.Unlock()
	if m.refuse != nil {
		if err := m.refuse(n, r); err != nil {
			return nil, err
		}
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer r.Body.Close()
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r)
	if m.lose != nil {
		if err := m.lose(n, r); err != nil {
			return nil, err
		}
	}
	res := w.Result()
	res.Request = r
	return res, nil
}

func (m *memoryTransport) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

var (
	errReset   = errors.New("connection reset by peer")
	errRefused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
)

// connect returns a client whose requests a handler answers.
func connect(t testing.TB, m http.RoundTripper, change func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{URL: "http://atelier.test", Token: "atl_p_secret", HTTP: &http.Client{Transport: m}}
	if change != nil {
		change(&o)
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refusal writes an error of the service.
func refusal(w http.ResponseWriter, status int, code client.Code, retryable bool, retryAfter string) {
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %q, "message": "no", "retryable": %v, "details": {"fields": [{"path": "a", "message": "b"}]}, "trace_id": "t"}}`, code, retryable)
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}
