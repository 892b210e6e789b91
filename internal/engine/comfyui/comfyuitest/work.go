package comfyuitest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// memory is the state that the server keeps in memory and loses when it
// restarts.
type memory struct {
	number  int
	queue   []*prompt
	current *prompt
	history map[string]dict
	caches  []map[string]made // results of the nodes of the last prompts, by signature; the newest prompt is last
	news    chan struct{}
}

func newMemory() *memory {
	return &memory{number: 1, history: map[string]dict{}, news: make(chan struct{}, 1)}
}

func (w *memory) wake() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// enqueue adds a prompt to the queue, which is sorted by number.
func (w *memory) enqueue(p *prompt) {
	w.queue = append(w.queue, p)
	slices.SortStableFunc(w.queue, func(a, b *prompt) int { return cmp.Compare(a.number, b.number) })
}

// cached returns the results in the cache, by signature.
func (w *memory) cached() map[string]made {
	all := map[string]made{}
	for _, one := range w.caches {
		maps.Copy(all, one)
	}
	return all
}

func (w *memory) dequeue(id string) bool {
	before := len(w.queue)
	w.queue = slices.DeleteFunc(w.queue, func(p *prompt) bool { return p.id == id })
	return len(w.queue) < before
}

// prompt is a prompt that is waiting or running.
type prompt struct {
	id, clientID string
	number       int
	raw          json.RawMessage
	nodes        map[string]node
	outputs      []string
	previews     bool // previews are sent
	stale        bool // see Faults.Stale

	interrupt context.CancelFunc
	at        string // id of the node that is running
	messages  []any
}

// made is the result of a node: values by output slot, and the output for the
// user interface.
type made struct {
	values []any
	ui     dict
}

var (
	errInterrupted = errors.New("interrupted")
	errForgotten   = errors.New("forgotten")
)

// work runs the prompts of the queue one after the other.
func (s *Server) work(ctx context.Context, w *memory) {
	for {
		s.mu.Lock()
		if s.memory == w && len(w.queue) > 0 && ctx.Err() == nil {
			p := w.queue[0]
			w.queue = w.queue[1:]
			w.current = p
			run, stop := context.WithCancel(ctx)
			p.interrupt = stop
			s.mu.Unlock()
			s.execute(run, w, p)
			stop()
			continue
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-w.news:
		}
	}
}

// note adds an event to a prompt's history and sends it to the prompt's
// client.
func (s *Server) note(p *prompt, event string, data dict) {
	data["prompt_id"] = p.id
	data["timestamp"] = time.Now().UnixMilli()
	p.messages = append(p.messages, []any{event, data})
	s.tell(p.clientID, event == "execution_interrupted", func(bool) message { return text(event, data) })
}

func (s *Server) execute(ctx context.Context, w *memory, p *prompt) {
	s.note(p, "execution_start", dict{})
	r := &running{
		s:       s,
		ctx:     ctx,
		p:       p,
		done:    map[string]made{},
		keep:    map[string]made{},
		outputs: dict{},
		before:  w.cached(),
	}
	cached := []string{}
	for id := range p.nodes {
		if _, ok := r.fromCache(id); ok {
			cached = append(cached, id)
		}
	}
	s.note(p, "execution_cached", dict{"nodes": cached})
	var err error
	for _, id := range p.outputs {
		if err = r.node(id); err != nil {
			break
		}
	}
	status := dict{"status_str": "success", "completed": true}
	switch {
	case err == nil:
		s.note(p, "execution_success", dict{})
	case errors.Is(err, errInterrupted):
		status = dict{"status_str": "error", "completed": false}
		s.note(p, "execution_interrupted", dict{"node_id": p.at, "node_type": p.nodes[p.at].Class, "executed": []string{}})
	default:
		status = dict{"status_str": "error", "completed": false}
		s.note(p, "execution_error", dict{
			"node_id": p.at, "node_type": p.nodes[p.at].Class, "executed": []string{}, "exception_message": err.Error() + "\n",
			"exception_type": "RuntimeError", "traceback": []string{"  File \"/opt/ComfyUI/execution.py\", line 1, in execute\n"}, "current_inputs": dict{}, "current_outputs": []string{},
		})
	}
	status["messages"] = p.messages
	maps.Copy(r.keep, r.unneeded())
	s.mu.Lock()
	f := s.faults
	w.current = nil
	if !errors.Is(err, errForgotten) {
		w.caches = append(w.caches, r.keep)
		w.caches = w.caches[max(len(w.caches)-s.o.CachedPrompts, 0):]
		e := dict{"prompt": p.item(), "outputs": r.outputs, "status": status, "meta": dict{}}
		if f.Nothing {
			e["outputs"] = dict{}
		}
		if f.NoStatus {
			e["status"] = nil
		}
		w.history[p.id] = e
	}
	s.mu.Unlock()
	if !errors.Is(err, errForgotten) {
		s.tell(p.clientID, false, func(bool) message { return text("executing", dict{"node": nil, "prompt_id": p.id}) })
	}
}

// running is the state of the running prompt.
type running struct {
	s       *Server
	ctx     context.Context
	p       *prompt
	done    map[string]made // results of this prompt's nodes, by node id
	keep    map[string]made // results to cache for the next prompt, by signature
	before  map[string]made
	outputs dict
	states  []state
}

type state struct {
	id         string
	value, max int
	state      string
}

// unneeded returns the cached results, by signature, of the nodes that this
// prompt need not run.
func (r *running) unneeded() map[string]made {
	all := map[string]made{}
	for id := range r.p.nodes {
		if m, ok := r.fromCache(id); ok {
			r.toCache(all, id, m)
		}
	}
	return all
}

// signature returns a digest of everything that a node's result depends on: its
// class, its inputs, and the inputs of the nodes that it depends on. Equal
// nodes of different prompts have equal signatures, even if their ids differ.
func (r *running) signature(id string) string { return r.sign(id, 0, false) }

// fromCache returns the result of a node from the cache.
func (r *running) fromCache(id string) (m made, ok bool) {
	if r.p.stale {
		m, ok = r.before["stale "+r.sign(id, 0, true)]
		return m, ok
	}
	m, ok = r.before[r.signature(id)]
	return m, ok
}

func (r *running) toCache(cache map[string]made, id string, m made) {
	cache[r.signature(id)] = m
	cache["stale "+r.sign(id, 0, true)] = m
}

// sign computes a signature. If loosely is true, it leaves out inputs that do
// not change the content of a result.
func (r *running) sign(id string, depth int, loosely bool) string {
	n := r.p.nodes[id]
	if depth > 100 {
		return ""
	}
	parts := []string{n.Class}
	for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
		v := n.Inputs[name]
		if _, known := r.s.info[n.Class].Input.Required[name]; loosely && (!known || name == "filename_prefix") {
			continue
		}
		if list, ok := v.([]any); ok && len(list) == 2 {
			parts = append(parts, name, r.sign(printed(list[0]), depth+1, loosely), printed(list[1]))
			continue
		}
		parts = append(parts, name, printed(v))
		if loads(n.Class) {
			b, _ := r.s.input(printed(v))
			parts = append(parts, digest(string(b)))
		}
	}
	return digest(parts...)
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// node runs a node, after the nodes whose outputs it uses.
func (r *running) node(id string) error {
	if _, ok := r.done[id]; ok {
		return nil
	}
	if m, ok := r.fromCache(id); ok {
		r.done[id] = m
		r.toCache(r.keep, id, m)
		// Version 0.7.0 copies a cached node's output for the user interface
		// only if the prompt has a client.
		if m.ui != nil && r.p.clientID != "" {
			r.outputs[id] = m.ui
			r.tell("executed", dict{"node": id, "display_node": id, "output": m.ui})
		}
		return nil
	}
	n := r.p.nodes[id]
	inputs := dict{}
	for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
		v := n.Inputs[name]
		if list, ok := v.([]any); ok && len(list) == 2 {
			from := printed(list[0])
			if err := r.node(from); err != nil {
				return err
			}
			slot, _ := json.Number(printed(list[1])).Int64()
			v = r.done[from].values[slot]
		}
		inputs[name] = v
	}
	if r.ctx.Err() != nil {
		return errInterrupted
	}
	r.s.mu.Lock()
	r.p.at = id
	r.s.mu.Unlock()
	r.states = append(r.states, state{id, 0, 1, "running"})
	r.progress()
	r.tell("executing", dict{"node": id, "display_node": id})
	m, err := r.run(id, n.Class, inputs)
	if err != nil {
		return err
	}
	last := &r.states[len(r.states)-1]
	last.value = last.max
	last.state = "finished"
	r.progress()
	r.done[id] = m
	r.toCache(r.keep, id, m)
	if m.ui != nil {
		r.outputs[id] = m.ui
		r.tell("executed", dict{"node": id, "display_node": id, "output": m.ui})
	}
	return nil
}

func (r *running) tell(event string, data dict) {
	data["prompt_id"] = r.p.id
	toAll := event == "progress" || event == "progress_state"
	r.s.tell(r.p.clientID, toAll, func(bool) message { return text(event, data) })
}

func (r *running) progress() {
	nodes := dict{}
	for _, st := range r.states {
		nodes[st.id] = dict{"value": st.value, "max": st.max, "state": st.state, "node_id": st.id, "prompt_id": r.p.id, "display_node_id": st.id}
	}
	r.tell("progress_state", dict{"nodes": nodes})
}

// sample waits for the duration of the sampling steps and sends progress and
// previews.
func (r *running) sample(id string, steps int) error {
	for i := range steps {
		f := r.s.fault()
		if f.Fail != "" {
			return errors.New(f.Fail)
		}
		if f.Forget {
			return errForgotten
		}
		wait := r.s.o.Step
		if f.Stuck {
			wait = time.Hour
		}
		for again := true; again; again = r.s.fault().Paused {
			select {
			case <-r.ctx.Done():
				return errInterrupted
			case <-time.After(wait):
			}
		}
		last := &r.states[len(r.states)-1]
		last.value = i + 1
		last.max = steps
		r.tell("progress", dict{"value": i + 1, "max": steps, "node": id})
		r.progress()
		if !r.p.previews {
			continue
		}
		about := dict{"node_id": id, "prompt_id": r.p.id, "display_node_id": id, "image_type": "image/jpeg"}
		r.s.tell(r.p.clientID, true, func(aware bool) message {
			if aware {
				return picture(about)
			}
			return picture(nil)
		})
	}
	return nil
}
