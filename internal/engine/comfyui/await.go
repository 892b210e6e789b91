package comfyui

import (
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
var errLost = engine.Again(engine.Unavailable, "The tool's server has forgotten the work.")

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
	failed, missed := 0, 0
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
	short, cancel := t.server.Short(ctx)
	defer cancel()
	at, err := t.queued(short, id)
	if err != nil || at != unknown {
		return looked{state: at}, backend.Asked(ctx, err)
	}
	var history map[string]entry
	if err := t.server.JSON(short, "GET", "/history/"+url.PathEscape(id), nil, &history); err != nil {
		return looked{}, backend.Asked(ctx, err)
	}
	if e, ok := history[id]; ok {
		return looked{ended, e}, nil
	}
	return looked{}, nil
}

// queued tells where in the queue a prompt is, unknown for nowhere.
func (t *task) queued(ctx context.Context, id string) (state, error) {
	var queue struct {
		Running []queueItem `json:"queue_running"`
		Pending []queueItem `json:"queue_pending"`
	}
	if err := t.server.JSON(ctx, "GET", "/queue", nil, &queue); err != nil {
		return unknown, err
	}
	for _, q := range queue.Running {
		if q.is(id) {
			return running, nil
		}
	}
	for _, q := range queue.Pending {
		if q.is(id) {
			return pending, nil
		}
	}
	return unknown, nil
}

// queueItem is [number, id, graph, …].
type queueItem []json.RawMessage

func (q queueItem) is(id string) bool {
	var own string
	return len(q) > 1 && json.Unmarshal(q[1], &own) == nil && own == id
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
			return backend.Told(engine.Failed, "The tool's server could not do it.", what.Message).
				Because(errors.New(backend.Say(what.Class + ": " + what.Type)))
		}
	}
	return engine.Fail(engine.Failed, "The tool's server could not do it.")
}
