package comfyui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// promptState is the state of a prompt in the server's queue or history.
type promptState int

const (
	stateUnknown promptState = iota // not on the server: it never arrived, or the server has restarted
	statePending
	stateRunning
	stateEnded
)

// promptStatus is the state of a prompt on the server and, if the prompt has
// ended, its history entry.
type promptStatus struct {
	state    promptState
	position int          // position among the pending prompts, from 1; set if the prompt is pending
	entry    historyEntry // set if the prompt has ended
}

// errLost is the failure for a prompt that the server no longer has. It is a
// failure of the job rather than of the server: a prompt that crashed the
// server would probably crash it again.
var errLost = engine.FailTransient(engine.Failed, "The tool's server restarted and lost the job. Try again.")

const (
	// maxFailedPolls is the number of consecutive polls that may fail before
	// the server counts as unavailable. If lostAfter consecutive polls do not
	// find a prompt, the prompt counts as lost.
	maxFailedPolls = 5
	lostAfter      = 2
	// minPollInterval is the shortest time between polls, even if WebSocket
	// events suggest polling more often.
	minPollInterval = 50 * time.Millisecond
)

// awaitPrompt polls the server until a prompt has ended, successfully or not,
// and returns its history entry.
func (t *task) awaitPrompt(ctx context.Context, id string) (historyEntry, error) {
	failed := 0
	missed := 0
	wait := min(t.poll, 250*time.Millisecond) // short at first, because the results may be cached
	for {
		if err := t.waitForPoll(ctx, wait); err != nil {
			return historyEntry{}, err
		}
		wait = t.poll
		found, err := t.queryPrompt(ctx, id)
		if err != nil {
			if failed++; ctx.Err() != nil || !engine.AsError(err).Transient || failed == maxFailedPolls {
				return historyEntry{}, err
			}
			continue
		}
		failed = 0
		switch found.state {
		case statePending:
			missed = 0
			t.socket.reportQueued(found.position)
		case stateRunning:
			missed = 0
			t.socket.reportRunning()
		case stateEnded:
			t.socket.reportRunning()
			return found.entry, nil
		case stateUnknown:
			if missed++; missed == lostAfter {
				return historyEntry{}, errLost
			}
			wait = min(t.poll, 250*time.Millisecond)
		}
	}
}

// waitForPoll waits until the next poll is due, or until a WebSocket event
// suggests that the prompt may have ended.
func (t *task) waitForPoll(ctx context.Context, wait time.Duration) error {
	first := time.NewTimer(min(wait, minPollInterval))
	defer first.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-first.C:
	}
	rest := time.NewTimer(max(wait-minPollInterval, 0))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-rest.C:
	case <-t.socket.hint:
	}
	return nil
}

// queryPrompt queries a prompt's state. It searches the queue first, because
// prompts move from the queue to the history and never back.
func (t *task) queryPrompt(ctx context.Context, id string) (promptStatus, error) {
	short, cancel := t.server.WithTimeout(ctx)
	defer cancel()
	found, err := t.findInQueue(short, id)
	if err != nil || found.state != stateUnknown {
		return found, backend.QueryFailure(ctx, err)
	}
	var history map[string]historyEntry
	if err := t.server.CallJSON(short, "GET", "/history/"+url.PathEscape(id), nil, &history); err != nil {
		return promptStatus{}, backend.QueryFailure(ctx, err)
	}
	if e, ok := history[id]; ok {
		return promptStatus{state: stateEnded, entry: e}, nil
	}
	return promptStatus{}, nil
}

// findInQueue returns the state and the position of a prompt in the server's
// queue. The state is stateUnknown if the prompt is not in the queue.
func (e *Engine) findInQueue(ctx context.Context, id string) (promptStatus, error) {
	res, err := e.server.Do(ctx, backend.Request{Path: "/queue"})
	if err != nil {
		return promptStatus{}, err
	}
	defer res.Body.Close()
	queue := map[string][]queueItem{}
	// The queue is decoded entry by entry, because it contains the graphs of
	// all clients, which can be large.
	err = backend.StreamJSON(res.Body, backend.MaxResponse, func(d *json.Decoder) error { return decodeQueue(d, queue) })
	if err != nil {
		return promptStatus{}, err
	}
	return searchQueue(queue["queue_running"], queue["queue_pending"], id), nil
}

// searchQueue returns the state and the position of a prompt among the running
// and the pending prompts. The server runs the pending prompt with the lowest
// number next, but does not list the prompts in this order.
func searchQueue(running, pending []queueItem, id string) promptStatus {
	isSame := func(q queueItem) bool { return q.id == id }
	if slices.ContainsFunc(running, isSame) {
		return promptStatus{state: stateRunning}
	}
	at := slices.IndexFunc(pending, isSame)
	if at < 0 {
		return promptStatus{}
	}
	found := promptStatus{state: statePending, position: 1}
	for _, q := range pending {
		if q.number < pending[at].number {
			found.position++
		}
	}
	return found
}

// decodeQueue decodes the lists of the server's queue into the map queue, by
// their keys.
func decodeQueue(d *json.Decoder, queue map[string][]queueItem) error {
	if err := expectDelim(d, '{'); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if name != "queue_running" && name != "queue_pending" {
			if err := d.Decode(&json.RawMessage{}); err != nil {
				return err
			}
			continue
		}
		if queue[name], err = decodeItems(d); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func decodeItems(d *json.Decoder) (items []queueItem, err error) {
	if err := expectDelim(d, '['); err != nil {
		return nil, err
	}
	for d.More() {
		var q queueItem
		if err := d.Decode(&q); err != nil {
			return nil, err
		}
		items = append(items, q)
	}
	_, err = d.Token()
	return items, err
}

func expectDelim(d *json.Decoder, with json.Delim) error {
	if t, err := d.Token(); err != nil {
		return err
	} else if t != with {
		return errors.New("the queue has an unexpected format")
	}
	return nil
}

// queueItem is the start of a queue entry [number, id, graph, …]. The id is
// empty if the entry has another form.
type queueItem struct {
	number float64
	id     string
}

// UnmarshalJSON implements json.Unmarshaler. It decodes an entry only up to the
// prompt id.
func (q *queueItem) UnmarshalJSON(entry []byte) error {
	d := json.NewDecoder(bytes.NewReader(entry))
	*q = queueItem{}
	var number json.RawMessage
	if expectDelim(d, '[') != nil || d.Decode(&number) != nil || !d.More() {
		return nil
	}
	_ = json.Unmarshal(number, &q.number) // without a number, only the position is less exact
	var id string
	if d.Decode(&id) == nil {
		q.id = id
	}
	return nil
}

// historyEntry is the server's history entry of an ended prompt.
type historyEntry struct {
	Outputs map[string]map[string]json.RawMessage `json:"outputs"`
	Status  *struct {
		Text     string              `json:"status_str"`
		Messages [][]json.RawMessage `json:"messages"`
	} `json:"status"` // null if the server did not keep the status
}

// failureOf returns the failure of the prompt, or nil if it succeeded.
func (e historyEntry) failureOf() error {
	if e.Status == nil || e.Status.Text != "error" {
		return nil
	}
	for i := len(e.Status.Messages) - 1; i >= 0; i-- {
		m := e.Status.Messages[i]
		var kind string
		if len(m) < 2 || json.Unmarshal(m[0], &kind) != nil {
			continue
		}
		switch kind {
		case "execution_interrupted":
			return engine.Fail(engine.Failed, "The job was interrupted on the tool's server.")
		case "execution_error":
			var what struct {
				Message string `json:"exception_message"`
				Type    string `json:"exception_type"`
				Class   string `json:"node_type"`
			}
			_ = json.Unmarshal(m[1], &what) // without details of the exception, the failure has a general message
			return backend.FailWithText(engine.Failed, "The tool's server could not run the workflow.", what.Message).
				WithCause(errors.New(backend.SanitizeText(what.Class + ": " + what.Type)))
		}
	}
	return engine.Fail(engine.Failed, "The tool's server could not run the workflow.")
}

// cachedNodes returns the ids of the nodes whose results the server took from
// its cache. known is false if the server did not keep the status of the
// prompt.
func (e historyEntry) cachedNodes() (ids []string, known bool) {
	if e.Status == nil {
		return nil, false
	}
	for _, m := range e.Status.Messages {
		var kind string
		if len(m) < 2 || json.Unmarshal(m[0], &kind) != nil || kind != "execution_cached" {
			continue
		}
		var data struct {
			Nodes []string `json:"nodes"`
		}
		if json.Unmarshal(m[1], &data) != nil {
			return nil, false
		}
		ids = append(ids, data.Nodes...)
		known = true
	}
	return ids, known
}
