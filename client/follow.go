package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// FollowRun waits until a run has ended and returns its final state. While it
// waits, it calls progress with the completed fraction, from 0 to 1. It reads
// the run's event stream; if the stream ends early, it requests the state of
// the run and reconnects.
func (c *Client) FollowRun(ctx context.Context, id string, progress func(fraction float64)) (*Run, error) {
	last := ""
	for {
		run, err := c.followEvents(ctx, id, &last, progress)
		if err == nil && run != nil {
			return run, nil
		}
		if e, ok := errors.AsType[*Error](err); ctx.Err() != nil || ok && !e.Retryable {
			return nil, errors.Join(ctx.Err(), err)
		}
		// The event stream ended early. Request the state of the run, which
		// also says how long to wait before reconnecting.
		run, err = c.GetRun(ctx, id)
		wait := time.Second
		switch e, ok := errors.AsType[*Error](err); {
		case err == nil && run.HasEnded():
			return run, nil
		case err == nil:
			wait = max(wait, time.Duration(run.RetryAfter)*time.Second)
		case ok && !e.Retryable || ctx.Err() != nil:
			return nil, err
		case ok && e.RetryAfter > 0:
			wait = e.RetryAfter
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// followEvents reads the event stream of a run until the run ends, and returns
// its final state. *last is the id of the last event received; after a
// reconnection the stream continues with the next event.
func (c *Client) followEvents(ctx context.Context, id string, last *string, progress func(float64)) (*Run, error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if *last != "" {
		header.Set("Last-Event-ID", *last)
	}
	res, err := c.sendRequest(ctx, http.MethodGet, c.runPath(id, "events"), header, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxResponseBytes)
	var name string
	var data strings.Builder
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			*last = value
		case "event":
			name = value
		case "data":
			data.WriteString(value)
		case "":
			run, err := handleEvent(name, data.String(), progress)
			if run != nil || err != nil {
				return run, err
			}
			name = ""
			data.Reset()
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return nil, io.ErrUnexpectedEOF
}

// handleEvent handles one event of a run's event stream. It returns the run's
// final state if the event reports that the run has ended, otherwise nil.
func handleEvent(name, data string, progress func(float64)) (*Run, error) {
	switch name {
	case "progress":
		var step struct {
			Progress *float64 `json:"progress"`
		}
		if err := json.Unmarshal([]byte(data), &step); err == nil && step.Progress != nil && progress != nil {
			progress(*step.Progress)
		}
	case "done":
		var run Run
		if err := json.Unmarshal([]byte(data), &run); err != nil {
			return nil, fmt.Errorf(`decode the "done" event: %w`, err)
		}
		return &run, nil
	}
	return nil, nil
}
