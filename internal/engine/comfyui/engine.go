// Package comfyui is the engine for tools that are workflows of a ComfyUI
// server. Package workflowimport drafts manifests for such workflows.
//
// The operator's manifest contains the graph. A person's inputs only become
// plain values of the inputs that the manifest binds:
//
//	engine:
//	  name: studio
//	  include: {workflow: portrait.json}    # the graph, in API format
//	  with:
//	    bind:                               # field → list of "node.input"
//	      prompt: ["6.text"]
//	      size.width: ["5.width"]
//	      size.height: ["5.height"]
//	      picture: ["10.image"]             # files are uploaded; the input gets their name
//	      seed: ["3.seed"]                  # the job's seed
//	      num_results: ["5.batch_size"]     # number of results per run of the graph
//	    outputs: ["9"]                      # nodes whose files are results; default: all nodes
//
// If a graph makes fewer results than requested, it is run again with another
// seed, until there are enough.
//
// The server has one queue, which it may share with other clients, and loses it
// when it restarts. The engine polls the queue and the history for the state of
// a prompt. The WebSocket is used only for progress and previews. The ids of
// prompts are saved in a checkpoint before the prompts are sent, so that the
// next worker can resume the prompts that still exist.
//
// For a node with the same inputs as before, the server returns the cached
// result, with the names of the files of an earlier prompt. Saving nodes
// therefore get an unused input and a file name that no other prompt has (see
// markSavers), and results of nodes that the server took from its cache are
// refused.
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
	"atelier/internal/engine/comfyui/nodegraph"
)

// Options are the settings of a ComfyUI engine. The zero value selects the
// defaults.
type Options struct {
	// PollInterval is the time between two polls of a prompt's state. Default: 1 s.
	PollInterval time.Duration
}

// Engine runs workflows on one ComfyUI server. It has no state between jobs.
type Engine struct {
	server *backend.Client
	poll   time.Duration
}

// New returns an engine that uses the server of c. It does not contact the
// server.
func New(c *backend.Client, o Options) *Engine {
	return &Engine{server: c, poll: cmp.Or(o.PollInterval, time.Second)}
}

var (
	_ engine.Prober    = (*Engine)(nil)
	_ engine.Abandoner = (*Engine)(nil)
)

// Probe checks that the server responds and is a ComfyUI server.
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
		return engine.ErrMisconfigured.WithCause(errors.New("the server is not ComfyUI"))
	}
	return nil
}

// Run runs the workflow of a job's tool and passes its results to out.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g, err := parseGraph(j.With)
	if err != nil {
		return err
	}
	t := &task{
		Engine:     e,
		job:        j,
		out:        backend.DropCopies(j, out),
		graph:      g,
		bar:        engine.NewSpan(out),
		checkpoint: parseCheckpoint(j.SavedCheckpoint),
	}
	if t.checkpoint.ClientID == "" {
		t.checkpoint.ClientID = uuid.NewString()
	}
	t.socket = e.openSocket(ctx, t.checkpoint.ClientID, out)
	defer t.socket.closeSocket()
	t.bar.ReportProgress(0)
	err = t.runPrompts(ctx)
	if err != nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// checkpoint is saved for the worker that continues the run: it contains this
// worker's client id and the ids of the run's prompts, in order.
type checkpoint struct {
	ClientID string   `json:"client_id"`
	Prompts  []string `json:"prompts"`
}

// parseCheckpoint parses the checkpoint of an earlier attempt. It returns an
// empty checkpoint if the text is invalid.
func parseCheckpoint(left string) (n checkpoint) {
	if left == "" || json.Unmarshal([]byte(left), &n) != nil || n.ClientID == "" {
		return checkpoint{}
	}
	return n
}

func (n checkpoint) String() string {
	text, _ := json.Marshal(n) // marshalling strings cannot fail
	return string(text)
}

// task is the state of one running job.
type task struct {
	*Engine
	job        engine.Job
	out        engine.Sink
	graph      *graph
	bar        engine.Span
	socket     *eventSocket
	checkpoint checkpoint
	delivered  int                 // number of results that the sink has stored
	names      map[string][]string // names of uploaded files by field; nil before the upload
}

// runPrompts resumes or sends one prompt after the other until there are as many results as
// requested.
func (t *task) runPrompts(ctx context.Context) error {
	for number := 0; t.delivered < t.job.NumResults; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		taken, err := t.resumePrompt(ctx, number)
		if err != nil {
			return err
		}
		if !taken {
			err := t.runPrompt(ctx, number)
			if errors.Is(err, errNoResult) && t.delivered > 0 {
				break // the job succeeds with fewer results than requested
			}
			if err != nil {
				return err
			}
		}
	}
	t.bar.ReportProgress(1)
	return nil
}

// resumePrompt waits for a prompt that an earlier attempt has sent. It returns
// false if the prompt must be sent again: the server no longer has it, or it
// failed before it delivered a result. The failure may be that another worker
// cancelled the prompt when it lost the run.
func (t *task) resumePrompt(ctx context.Context, number int) (bool, error) {
	if number >= len(t.checkpoint.Prompts) {
		return false, nil
	}
	id := t.checkpoint.Prompts[number]
	before := t.delivered
	found, err := t.queryPrompt(ctx, id)
	if err != nil {
		return false, err
	}
	if found.state != stateUnknown {
		err = t.finishPrompt(ctx, id)
		again := errors.Is(err, errLost) || err != nil && !engine.AsError(err).Transient
		if !again || ctx.Err() != nil || t.delivered > before {
			return true, err
		}
	}
	t.checkpoint.Prompts = t.checkpoint.Prompts[:number]
	return false, nil
}

// runPrompt sends the graph as a new prompt and delivers its results. If the
// server reports results of an earlier prompt, the graph is sent once more.
func (t *task) runPrompt(ctx context.Context, number int) error {
	err := t.sendGraph(ctx, number)
	if errors.Is(err, errStale) && ctx.Err() == nil {
		err = t.sendGraph(ctx, number)
	}
	return err
}

// sendGraph sends the graph as a new prompt and waits for its results.
func (t *task) sendGraph(ctx context.Context, number int) error {
	wanted := t.job.NumResults - t.delivered
	if err := t.uploadFiles(ctx); err != nil {
		return err
	}
	if err := t.graph.setInputs(t.job, t.job.SeedOf(number), wanted, t.names); err != nil {
		return err
	}
	id, err := t.submitPrompt(ctx, number)
	if err != nil {
		return err
	}
	return t.finishPrompt(ctx, id)
}

// finishPrompt waits for a prompt and passes its results to the sink. If the
// run has ended or failed permanently, it cancels the prompt; otherwise the
// next attempt or another worker can continue with the prompt.
func (t *task) finishPrompt(ctx context.Context, id string) error {
	share := 1
	if t.graph.isBound(nodegraph.KeyResults) {
		share = t.job.NumResults - t.delivered
	}
	all := float64(t.job.NumResults)
	making := t.bar.SubSpan(float64(t.delivered)/all, float64(t.delivered+share)/all).SubSpan(0, 0.95) // the last 5 % are for fetching the files
	t.socket.followPrompt(id, t.graph.nodeWeights(), making)
	e, err := t.awaitPrompt(ctx, id)
	t.socket.followPrompt("", nil, engine.Span{})
	if err != nil {
		if engine.IsFinal(ctx, err) {
			t.cancelPrompt(ctx, id)
		}
		return err
	}
	if err := e.failureOf(); err != nil {
		return err
	}
	return t.deliverResults(ctx, e)
}
