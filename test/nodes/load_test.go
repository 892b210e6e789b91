package nodes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"atelier/client"
)

// load is the work of clients that repeat nothing: every response other than
// the expected one, and every broken connection, is a failure.
type load struct {
	base   string
	token  string
	tool   string
	hash   string
	client *http.Client

	creates, polls, files, streams, reconnects atomic.Int64

	mu       sync.Mutex
	failures []string
	created  map[string]bool // ids of all runs
}

func newLoad(base, token, tool, hash string) *load {
	return &load{
		base:    base,
		token:   token,
		tool:    tool,
		hash:    hash,
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		created: map[string]bool{},
	}
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, fmt.Sprintf(format, args...))
}

// send sends one request. It returns false after a failure.
func (l *load) send(ctx context.Context, method, address, body string, status int) (text []byte, ok bool) {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		l.fail("%v", err)
		return nil, false
	}
	if strings.HasPrefix(address, l.base+"/api/") {
		r.Header.Set("Authorization", "Bearer "+l.token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", client.NewKey())
	}
	res, err := l.client.Do(r)
	if err == nil {
		defer res.Body.Close()
		text, err = io.ReadAll(res.Body)
	}
	if ctx.Err() != nil {
		return nil, false
	}
	if err != nil || res.StatusCode != status {
		l.fail("%s %s = %v %.300s, %v", method, r.URL.Path, res, text, err)
		return nil, false
	}
	return text, true
}

// create starts a run that takes about the given time, and returns its id.
func (l *load) create(ctx context.Context, lasts time.Duration) (id string, ok bool) {
	half := lasts / 2
	return l.createScript(ctx, fmt.Sprintf(`[{"wait": %q}, {"progress": 0.5}, {"wait": %q}, {"output": {"kind": "png", "width": 8, "height": 8}}]`, half, half))
}

// createScript starts a run with a script, and returns its id.
func (l *load) createScript(ctx context.Context, script string) (id string, ok bool) {
	body, err := json.Marshal(map[string]any{"tool_id": l.tool, "tool_fields_hash": l.hash, "inputs": map[string]any{"script": script}})
	if err != nil {
		l.fail("%v", err)
		return "", false
	}
	text, ok := l.send(ctx, http.MethodPost, l.base+"/api/v2/generate", string(body), http.StatusAccepted)
	if !ok {
		return "", false
	}
	var v struct {
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		l.fail("create: %v", err)
		return "", false
	}
	l.creates.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created[v.RequestID] = true
	return v.RequestID, true
}

// pollRuns creates short runs, polls each until it has ended, and reads its
// result, until ctx ends. It finishes the run that it has begun.
func (l *load) pollRuns(ctx context.Context) {
	for ctx.Err() == nil {
		if id, ok := l.create(context.WithoutCancel(ctx), 100*time.Millisecond); ok {
			l.pollRun(context.WithoutCancel(ctx), id)
		}
	}
}

// pollRun polls a run until it has ended, and reads its result.
func (l *load) pollRun(ctx context.Context, id string) {
	for tick := time.Tick(100 * time.Millisecond); ; <-tick {
		text, ok := l.send(ctx, http.MethodGet, l.base+"/api/v2/generate/"+id, "", http.StatusOK)
		if !ok {
			return
		}
		l.polls.Add(1)
		var run struct {
			Status  string
			Outputs []struct{ URL string }
		}
		if err := json.Unmarshal(text, &run); err != nil {
			l.fail("poll: %v", err)
			return
		}
		switch {
		case run.Status == "pending":
			continue
		case run.Status != "succeeded" || len(run.Outputs) != 1:
			l.fail("run %s ended as %s", id, text)
			return
		}
		if _, ok := l.send(ctx, http.MethodGet, run.Outputs[0].URL, "", http.StatusOK); ok {
			l.files.Add(1)
		}
		return
	}
}

// streamRuns creates runs of some seconds and follows each by its events until
// it is done, until ctx ends.
func (l *load) streamRuns(ctx context.Context) {
	for ctx.Err() == nil {
		id, ok := l.create(context.WithoutCancel(ctx), 4*time.Second)
		if !ok {
			continue
		}
		done := false
		l.follow(context.WithoutCancel(ctx), "/api/v2/generate/"+id+"/events", func(name, _ string) bool {
			done = name == "done"
			return !done
		})
		if !done {
			l.fail("the stream of run %s ended without done", id)
		}
	}
}

// followAccount follows the account and returns the runs that it saw ending. It
// ends after all created runs have ended, once ctx has ended.
func (l *load) followAccount(ctx, limit context.Context) map[string]bool {
	ended := map[string]bool{}
	l.follow(limit, "/api/v2/events", func(name, data string) bool {
		if name == "run" {
			var run struct {
				RequestID string `json:"request_id"`
				Status    string
			}
			if err := json.Unmarshal([]byte(data), &run); err != nil {
				l.fail("event run: %v", err)
			}
			if run.Status != "pending" {
				ended[run.RequestID] = true
			}
		}
		return ctx.Err() == nil || !l.allIn(ended)
	})
	return ended
}

// allIn reports whether the set has all created runs.
func (l *load) allIn(ended map[string]bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.created {
		if !ended[id] {
			return false
		}
	}
	return true
}

// follow reads a stream of events until see returns false, which gets every
// event and, as an event without a name, every comment. A connection may end
// only with the event reconnect; the next one begins at once.
func (l *load) follow(ctx context.Context, path string, see func(name, data string) bool) {
	last := ""
	for {
		told, more := l.followOnce(ctx, path, &last, see)
		if !more {
			return
		}
		if !told {
			l.fail("the stream %s ended without the event reconnect", path)
			return
		}
		l.reconnects.Add(1)
	}
}

// followOnce reads one connection of a stream.
func (l *load) followOnce(ctx context.Context, path string, last *string, see func(name, data string) bool) (told, more bool) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+path, nil)
	if err != nil {
		l.fail("%v", err)
		return false, false
	}
	r.Header.Set("Authorization", "Bearer "+l.token)
	if *last != "" {
		r.Header.Set("Last-Event-ID", *last)
	}
	res, err := l.client.Do(r)
	if err != nil {
		l.fail("stream %s: %v", path, err)
		return false, false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		l.fail("stream %s = %s", path, res.Status)
		return false, false
	}
	l.streams.Add(1)
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 4<<20)
	name := ""
	data := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			*last = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			told = told || name == "reconnect"
			if !see(name, data) {
				return told, false
			}
			name = ""
			data = ""
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		l.fail("stream %s: %v", path, err)
		return told, false
	}
	return told, true
}
