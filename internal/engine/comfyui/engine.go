// Package comfyui is the engine for tools that are a workflow of a ComfyUI
// server, and makes manifests of such workflows.
//
// The operator's manifest holds the graph; a person's inputs only ever become
// plain values of the inputs that it binds:
//
//	engine:
//	  name: studio
//	  include: {workflow: portrait.json}    # the graph, in API format
//	  with:
//	    bind:                               # field → "node.input", as many as there are
//	      prompt: ["6.text"]
//	      size.width: ["5.width"]
//	      size.height: ["5.height"]
//	      picture: ["10.image"]             # files are uploaded, and the input gets their name
//	      seed: ["3.seed"]                  # the job's seed
//	      num_results: ["5.batch_size"]     # how many results one run of the graph shall make
//	    outputs: ["9"]                      # whose files are results; all nodes where it is left out
//
// A graph that makes fewer results than are wanted is run again with another
// seed, until there are enough.
//
// The server has one queue and forgets it when it restarts. What became of a
// prompt is asked of its queue and its history; its WebSocket tells how far it
// is and shows previews, and nothing depends on it. The ids of the prompts are
// left for the next worker before they are sent, which then takes up what is
// still there.
package comfyui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// Options are how the engine goes about its work. The zero value is good.
type Options struct {
	// Poll is how often the server is asked what became of a prompt: 1 s.
	Poll time.Duration
}

// Engine runs workflows on one server. It keeps nothing between jobs.
type Engine struct {
	server *backend.Client
	poll   time.Duration
}

// New makes the engine without talking to the server.
func New(c *backend.Client, o Options) *Engine {
	return &Engine{server: c, poll: cmp.Or(o.Poll, time.Second)}
}

var (
	_ engine.Prober    = (*Engine)(nil)
	_ engine.Abandoner = (*Engine)(nil)
)

// Probe asks the server for its state.
func (e *Engine) Probe(ctx context.Context) error {
	short, cancel := e.server.WithTimeout(ctx)
	defer cancel()
	var stats struct {
		System json.RawMessage `json:"system"`
	}
	if err := e.server.CallJSON(short, "GET", "/system_stats", nil, &stats); err != nil {
		return backend.CallFailure(ctx, err)
	}
	if len(stats.System) == 0 {
		return engine.ErrMisconfigured.Because(errors.New("another kind of server answers"))
	}
	return nil
}

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g, err := read(j.With)
	if err != nil {
		return err
	}
	t := &task{
		Engine: e,
		job:    j,
		out:    out,
		graph:  g,
		bar:    engine.NewSpan(out),
		note:   readNote(j.Left),
	}
	if t.note.ClientID == "" {
		t.note.ClientID = uuid.NewString()
	}
	t.socket = e.listen(ctx, t.note.ClientID, out)
	defer t.socket.close()
	t.bar.ReportProgress(0)
	err = t.run(ctx)
	if err != nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// note is what another worker has to know: under which name the server knows
// us, and the prompts of this run in their order.
type note struct {
	ClientID string   `json:"client_id"`
	Prompts  []string `json:"prompts"`
}

// readNote takes what an earlier try has left. Anything else is no note.
func readNote(left string) (n note) {
	if left == "" || json.Unmarshal([]byte(left), &n) != nil || n.ClientID == "" {
		return note{}
	}
	return n
}

func (n note) String() string {
	text, _ := json.Marshal(n) // strings always marshal
	return string(text)
}

// task is a job on its way.
type task struct {
	*Engine
	job    engine.Job
	out    engine.Sink
	graph  *graph
	bar    engine.Span
	socket *socket
	note   note
	given  int                 // results that the sink has taken
	names  map[string][]string // of the uploaded files, by field; nil before they are
}

// run takes up or sends one prompt after the other, until there are as many
// results as are wanted.
func (t *task) run(ctx context.Context) error {
	for number := 0; t.given < t.job.NumResults; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		taken, err := t.takeUp(ctx, number)
		if err != nil {
			return err
		}
		if !taken {
			err := t.anew(ctx, number)
			if errors.Is(err, errNone) && t.given > 0 {
				break // fewer than were wanted are better than none
			}
			if err != nil {
				return err
			}
		}
	}
	t.bar.ReportProgress(1)
	return nil
}

// takeUp goes on with a prompt that an earlier try has sent. It tells false
// where nothing came of that: another worker may have cancelled it when the run
// became ours, so that only its success counts.
func (t *task) takeUp(ctx context.Context, number int) (bool, error) {
	if number >= len(t.note.Prompts) {
		return false, nil
	}
	id := t.note.Prompts[number]
	before := t.given
	found, err := t.look(ctx, id)
	if err != nil {
		return false, err
	}
	if found.state != unknown {
		err = t.finish(ctx, id)
		again := errors.Is(err, errLost) || err != nil && !engine.As(err).Transient
		if !again || ctx.Err() != nil || t.given > before {
			return true, err
		}
	}
	t.note.Prompts = t.note.Prompts[:number]
	return false, nil
}

// anew sends the graph and waits for its results.
func (t *task) anew(ctx context.Context, number int) error {
	wanted := t.job.NumResults - t.given
	if err := t.upload(ctx); err != nil {
		return err
	}
	if err := t.graph.fill(t.job, t.job.SeedOf(number), wanted, t.names); err != nil {
		return err
	}
	id, err := t.submit(ctx, number)
	if err != nil {
		return err
	}
	return t.finish(ctx, id)
}

// over tells whether nobody goes on after an error: neither the next try nor
// another worker.
func over(ctx context.Context, err error) bool {
	return !engine.IsHandedOver(ctx) && (ctx.Err() != nil || !engine.As(err).Transient)
}

// finish waits for a prompt and hands over what it made. A prompt that nobody
// waits for any more is cancelled, unless the next try, or another worker, can
// go on with it.
func (t *task) finish(ctx context.Context, id string) error {
	share := 1
	if t.graph.bound(keyResults) {
		share = t.job.NumResults - t.given
	}
	all := float64(t.job.NumResults)
	making := t.bar.SubSpan(float64(t.given)/all, float64(t.given+share)/all).SubSpan(0, 0.95) // the rest is to fetch the files
	t.socket.follow(id, t.graph.nodes(), making)
	e, err := t.await(ctx, id)
	t.socket.follow("", nil, engine.Span{})
	if err != nil {
		if over(ctx, err) {
			t.cancel(ctx, id)
		}
		return err
	}
	if err := e.failure(); err != nil {
		return err
	}
	return t.deliver(ctx, e)
}
