package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atelier/client"
)

// runServer is a service with one run, whose stream and record a test sets.
type runServer struct {
	stream func(n int, w http.ResponseWriter, r *http.Request)
	record func(n int, w http.ResponseWriter)
	opened int
	polled int
}

func (s *runServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/events") {
		s.opened++
		s.stream(s.opened, w, r)
		return
	}
	s.polled++
	s.record(s.polled, w)
}

func record(w http.ResponseWriter, status string) {
	fmt.Fprintf(w, `{"request_id": "r", "status": %q, "retry_after_seconds": 4}`, status)
}

func TestWaitReadsEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &runServer{}
		s.stream = func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				fmt.Fprint(w, ": hello\n\nid: 1\nevent: status\ndata: {\"request_id\": \"r\", \"status\": \"pending\", \"stage\": \"queued\"}\n\nid: 2\nevent: progress\ndata: {\"progress\": 0.5, \"stage\": \"running\"}\n\nid: 3\nevent: done\ndata: {\"request_id\"")
				return
			}
			if r.Header.Get("Last-Event-ID") != "2" {
				t.Errorf("Last-Event-ID = %q", r.Header.Get("Last-Event-ID"))
			}
			fmt.Fprint(w, "event: later\ndata: unknown\n\nevent: preview\ndata: {\"url\": \"p\"}\n\nevent: step\ndata: {\"step\": \"draw\", \"status\": \"succeeded\"}\n\nevent: done\ndata: {\"request_id\": \"r\", \"status\": \"failed\",\ndata:  \"error\": {\"code\": \"TIMED_OUT\", \"message\": \"slow\"}}\n\n")
		}
		s.record = func(_ int, w http.ResponseWriter) { record(w, "pending") }
		var seen []string
		run, err := connect(t, &memoryTransport{handler: s}, nil).Runs.Wait(t.Context(), "r", client.Watch{
			Status:   func(r *client.Run) { seen = append(seen, string(r.Status)) },
			Progress: func(p client.RunProgress) { seen = append(seen, fmt.Sprint(*p.Progress, p.Stage)) },
			Preview:  func(p client.Preview) { seen = append(seen, p.URL) },
			Step:     func(s client.RunStep) { seen = append(seen, s.Step) },
		})
		if err != nil || run.Status != client.RunStatusFailed {
			t.Fatalf("run = %+v, %v", run, err)
		}
		if f, ok := errors.AsType[*client.RunFailure](run.Err()); !ok || f.Code != client.FailureCodeTimedOut {
			t.Errorf("error = %v", run.Err())
		}
		if got := strings.Join(seen, ","); got != "pending,0.5running,pending,p,draw" {
			t.Errorf("seen = %s", got)
		}
	})
}

// TestWaitPolls has streams that are not available: the record says how long to
// wait.
func TestWaitPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &runServer{stream: func(_ int, w http.ResponseWriter, _ *http.Request) {
			refusal(w, http.StatusBadGateway, client.CodeUpstreamUnavailable, true, "")
		}}
		s.record = func(n int, w http.ResponseWriter) {
			if n < 4 {
				record(w, "pending")
				return
			}
			record(w, "succeeded")
		}
		began := time.Now()
		run, err := connect(t, &memoryTransport{handler: s}, nil).Runs.Wait(t.Context(), "r", client.Watch{})
		if err != nil || run.Status != client.RunStatusSucceeded || time.Since(began) != 12*time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(began), run, err)
		}
	})
}

// TestWaitOutlastsRestarts has a service that is away for ten minutes.
func TestWaitOutlastsRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &runServer{stream: func(_ int, w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "event: done\ndata: {\"request_id\": \"r\", \"status\": \"succeeded\"}\n\n")
		}}
		began := time.Now()
		m := &memoryTransport{handler: s}
		m.refuse = func(int, *http.Request) error {
			if time.Since(began) < 10*time.Minute {
				return errRefused
			}
			return nil
		}
		run, err := connect(t, m, nil).Runs.Wait(t.Context(), "r", client.Watch{})
		if err != nil || run.Status != client.RunStatusSucceeded || time.Since(began) > 11*time.Minute {
			t.Errorf("after %v: %+v, %v", time.Since(began), run, err)
		}
	})
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	t.Run("with an answer that stays", func(t *testing.T) {
		t.Parallel()
		m := &memoryTransport{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refusal(w, http.StatusNotFound, client.CodeNotFound, false, "")
		})}
		if _, err := connect(t, m, nil).Runs.Wait(t.Context(), "r", client.Watch{}); !client.HasCode(err, client.CodeNotFound) || m.requests() != 1 {
			t.Errorf("%d requests, %v", m.requests(), err)
		}
	})
	t.Run("with its context", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			m := &memoryTransport{refuse: func(int, *http.Request) error { return errRefused }}
			if _, err := connect(t, m, nil).Runs.Wait(ctx, "r", client.Watch{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error = %v", err)
			}
		})
	})
	t.Run("after 204 with the record", func(t *testing.T) {
		t.Parallel()
		s := &runServer{stream: func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }}
		s.record = func(_ int, w http.ResponseWriter) { record(w, "cancelled") }
		run, err := connect(t, &memoryTransport{handler: s}, nil).Runs.Wait(t.Context(), "r", client.Watch{})
		if err != nil || !errors.Is(run.Err(), client.ErrCancelled) {
			t.Errorf("run = %+v, %v", run, err)
		}
	})
}

// TestEventsReconnect iterates over a stream that breaks.
func TestEventsReconnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &runServer{stream: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				fmt.Fprint(w, "id: 7\nevent: status\ndata: {}\n\n")
				return
			}
			fmt.Fprintf(w, "event: done\ndata: %q\n\nevent: never\ndata: 1\n\n", r.Header.Get("Last-Event-ID"))
		}}
		var seen []string
		for e, err := range connect(t, &memoryTransport{handler: s}, nil).Runs.Events(t.Context(), "r") {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, e.Name+string(e.Data))
		}
		if got := strings.Join(seen, " "); got != `status{} done"7"` {
			t.Errorf("events = %s", got)
		}
	})
}

// stoppingStreams is a transport whose streams end with the event reconnect,
// after a while, until the last one ends the run.
type stoppingStreams struct {
	lasts  time.Duration
	opened int
	ids    []string // Last-Event-ID of each connection
}

func (s *stoppingStreams) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/events") {
		return nil, errors.New("the run was polled")
	}
	s.opened++
	s.ids = append(s.ids, r.Header.Get("Last-Event-ID"))
	n := s.opened
	body, to := io.Pipe()
	go func() {
		defer to.Close()
		fmt.Fprintf(to, "id: %d\nevent: status\ndata: {\"request_id\": \"r\", \"status\": \"pending\"}\n\n", n)
		if n == 4 {
			fmt.Fprint(to, "event: done\ndata: {\"request_id\": \"r\", \"status\": \"succeeded\"}\n\n")
			return
		}
		time.Sleep(s.lasts)
		fmt.Fprint(to, "retry: 100\n\nevent: reconnect\ndata: {\"reason\": \"This node of the service stops.\"}\n\n")
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
}

// TestReconnectAtOnce has nodes that stop: the client goes to the next without
// a wait and without a poll, and callers do not see it. Streams that are told to
// reconnect right after their start wait like broken ones.
func TestReconnectAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &stoppingStreams{lasts: 10 * time.Second}
		var seen []string
		for e, err := range connect(t, s, nil).Runs.Events(t.Context(), "r") {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, e.Name)
		}
		if got := strings.Join(seen, " "); got != "status status status status done" {
			t.Errorf("events = %s", got)
		}
		if got := strings.Join(s.ids, ","); got != ",1,2,3" {
			t.Errorf("the connections continued after %s", got)
		}

		s = &stoppingStreams{lasts: 10 * time.Second}
		if run, err := connect(t, s, nil).Runs.Wait(t.Context(), "r", client.Watch{}); err != nil || run.Status != client.RunStatusSucceeded {
			t.Errorf("wait = %v, %v", run, err)
		}
		if took := time.Since(began); took != 60*time.Second {
			t.Errorf("the streams took %v, want the 60s that they lasted", took)
		}

		began = time.Now()
		s = &stoppingStreams{}
		for _, err := range connect(t, s, nil).Runs.Events(t.Context(), "r") {
			if err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 200*time.Millisecond {
			t.Errorf("three streams that ended at once took %v, want waits between them", took)
		}
	})
}

// silentStreams is a transport whose streams have no events, only comments, and
// break after a while.
type silentStreams struct {
	opened int
	lasts  time.Duration
}

func (s *silentStreams) RoundTrip(*http.Request) (*http.Response, error) {
	s.opened++
	body, to := io.Pipe()
	go func() {
		for end := time.Now().Add(s.lasts); time.Now().Before(end); time.Sleep(20 * time.Second) {
			fmt.Fprint(to, ": still here\n\n")
		}
		to.CloseWithError(io.ErrUnexpectedEOF)
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
}

// TestSilentStream follows an account in which nothing happens: each break of a
// stream that lasted is the first one. Streams that break at once use up the
// attempts.
func TestSilentStream(t *testing.T) {
	t.Parallel()
	for _, lasts := range []time.Duration{10 * time.Minute, 0} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Hour)
			defer cancel()
			s := &silentStreams{lasts: lasts}
			c, err := client.New(client.Options{URL: "http://atelier.test", HTTP: &http.Client{Transport: s}})
			if err != nil {
				t.Fatal(err)
			}
			for _, last := range c.Account.Events(ctx, client.AccountEventsParams{}) {
				err = last
			}
			if ended := errors.Is(err, context.DeadlineExceeded); ended != (lasts > 0) || ended && s.opened < 25 || !ended && s.opened != 10 {
				t.Errorf("streams of %v: %d were opened, %v", lasts, s.opened, err)
			}
		})
	}
}
