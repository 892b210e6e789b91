package comfyui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// state is where a prompt is.
type state int

const (
	unknown state = iota // nowhere: it never came, or the server has started anew
	pending
	running
	ended
)

// looked is what the server says about a prompt.
type looked struct {
	state state
	entry entry // where it has ended
}

// errLost is for a prompt that the server does not know any more.
// One that breaks the server down would do so again and again, so it counts as
// its own failure.
var errLost = engine.Again(engine.Failed, "The tool's server has forgotten the work.")

const (
	// patience is how many looks in a row may fail before the server counts as
	// away, and lostAfter how many have to find nothing.
	patience  = 5
	lostAfter = 2
	// breath is the least time between looks, however often the socket says
	// that it is time for one.
	breath = 50 * time.Millisecond
)

// await waits until a prompt has ended, well or not.
func (t *task) await(ctx context.Context, id string) (entry, error) {
	failed := 0
	missed := 0
	wait := min(t.poll, 250*time.Millisecond) // at first, as there may be nothing to do
	for {
		if err := t.pause(ctx, wait); err != nil {
			return entry{}, err
		}
		wait = t.poll
		found, err := t.look(ctx, id)
		if err != nil {
			if failed++; ctx.Err() != nil || !engine.As(err).Transient || failed == patience {
				return entry{}, err
			}
			continue
		}
		failed = 0
		switch found.state {
		case ended:
			return found.entry, nil
		case unknown:
			if missed++; missed == lostAfter {
				return entry{}, errLost
			}
			wait = min(t.poll, 250*time.Millisecond)
		default:
			missed = 0
		}
	}
}

// pause waits for the time of the next look, or a hint that it has come.
func (t *task) pause(ctx context.Context, wait time.Duration) error {
	first := time.NewTimer(min(wait, breath))
	defer first.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-first.C:
	}
	rest := time.NewTimer(max(wait-breath, 0))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-rest.C:
	case <-t.socket.hint:
	}
	return nil
}

// look asks where a prompt is: the queue first, as prompts go from there to the
// history and never back.
func (t *task) look(ctx context.Context, id string) (looked, error) {
	short, cancel := t.server.WithTimeout(ctx)
	defer cancel()
	at, err := t.queued(short, id)
	if err != nil || at != unknown {
		return looked{state: at}, backend.QueryFailure(ctx, err)
	}
	var history map[string]entry
	if err := t.server.CallJSON(short, "GET", "/history/"+url.PathEscape(id), nil, &history); err != nil {
		return looked{}, backend.QueryFailure(ctx, err)
	}
	if e, ok := history[id]; ok {
		return looked{ended, e}, nil
	}
	return looked{}, nil
}

// queued tells where in the queue a prompt is, unknown for nowhere.
func (e *Engine) queued(ctx context.Context, id string) (state, error) {
	res, err := e.server.Do(ctx, backend.Request{Path: "/queue"})
	if err != nil {
		return unknown, err
	}
	defer res.Body.Close()
	var at state
	// Everybody's graphs are in it, which can be a lot.
	err = backend.StreamJSON(res.Body, backend.MaxResponse, func(d *json.Decoder) (err error) {
		at, err = findIn(d, id)
		return err
	})
	return at, err
}

// findIn looks for a prompt in a queue, one entry after the other.
func findIn(d *json.Decoder, id string) (at state, err error) {
	if err := opens(d, '{'); err != nil {
		return unknown, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return unknown, err
		}
		in, ok := map[json.Token]state{"queue_running": running, "queue_pending": pending}[key]
		if !ok {
			if err := d.Decode(&json.RawMessage{}); err != nil {
				return unknown, err
			}
			continue
		}
		if err := opens(d, '['); err != nil {
			return unknown, err
		}
		for d.More() {
			var q queueItem
			if err := d.Decode(&q); err != nil {
				return unknown, err
			}
			if string(q) == id && at != running {
				at = in
			}
		}
		if _, err := d.Token(); err != nil {
			return unknown, err
		}
	}
	_, err = d.Token()
	return at, err
}

func opens(d *json.Decoder, with json.Delim) error {
	if t, err := d.Token(); err != nil {
		return err
	} else if t != with {
		return errors.New("the queue has another form")
	}
	return nil
}

// queueItem is the id of an entry [number, id, graph, …], "" for one of another
// form.
type queueItem string

// UnmarshalJSON reads no further than the id.
func (q *queueItem) UnmarshalJSON(entry []byte) error {
	d := json.NewDecoder(bytes.NewReader(entry))
	*q = ""
	if opens(d, '[') != nil || d.Decode(&json.RawMessage{}) != nil || !d.More() {
		return nil
	}
	var id string
	if d.Decode(&id) == nil {
		*q = queueItem(id)
	}
	return nil
}

// entry is what the history has about a prompt.
type entry struct {
	Outputs map[string]map[string]json.RawMessage `json:"outputs"`
	Status  *struct {
		Text     string              `json:"status_str"`
		Messages [][]json.RawMessage `json:"messages"`
	} `json:"status"` // null where the server did not keep it
}

// failure says why the prompt failed, nil where it did not.
func (e entry) failure() error {
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
			return engine.Fail(engine.Failed, "The work was interrupted at the tool's server.")
		case "execution_error":
			var what struct {
				Message string `json:"exception_message"`
				Type    string `json:"exception_type"`
				Class   string `json:"node_type"`
			}
			_ = json.Unmarshal(m[1], &what) // without words, it failed all the same
			return backend.FailWithText(engine.Failed, "The tool's server could not do it.", what.Message).
				Because(errors.New(backend.SanitizeText(what.Class + ": " + what.Type)))
		}
	}
	return engine.Fail(engine.Failed, "The tool's server could not do it.")
}
