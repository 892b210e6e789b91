package mcpbridge

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// TestInputEndsAfterResponses checks that the end of the input waits for the
// response to the last request.
func TestInputEndsAfterResponses(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	in := io.NopCloser(strings.NewReader(`{"id":1,"method":"initialize"}` + "\n" + `{"method":"notifications/initialized"}` + "\n" + `{"id":"b","method":"ping"}`))
	p := newPending(t.Context(), in, nopCloser{&out})
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(p)
		ended <- err
	}()
	select {
	case <-ended:
		t.Fatal("the input ended before the response")
	case <-time.After(100 * time.Millisecond):
	}
	for _, part := range []string{`{"id":1,`, `"result":{}}` + "\n", `{"id":"b","result":{}}` + "\n"} {
		if _, err := p.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
