package telemetry_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"atelier/internal/base/telemetry"
)

// TestDocuments reads documents beside the metrics from a real listener.
func TestDocuments(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- telemetry.ServeMetrics(ctx, l, nil, telemetry.Registry("test"),
			telemetry.Document{Path: "/pools", Read: func() (any, bool) { return map[string]int{"waiting": 3}, true }},
			telemetry.Document{Path: "/broken", Read: func() (any, bool) { return nil, false }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})

	for _, tt := range []struct {
		path, kind, body string
		status           int
	}{
		{"/pools", "application/json", `{"waiting":3}`, http.StatusOK},
		{"/broken", "application/json", `{"error":"The database does not respond."}`, http.StatusServiceUnavailable},
		{"/metrics", "text/plain", "atelier_build_info", http.StatusOK},
		{"/other", "text/plain", "404", http.StatusNotFound},
	} {
		answer, err := http.Get("http://" + l.Addr().String() + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != tt.status || !strings.HasPrefix(answer.Header.Get("Content-Type"), tt.kind) || !strings.Contains(string(body), tt.body) {
			t.Errorf("%s = %d %s %s, %v", tt.path, answer.StatusCode, answer.Header.Get("Content-Type"), body, err)
		}
	}
}
