package replicate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// task is one call of Run.
type task struct {
	e    *Engine
	job  engine.Job
	out  engine.Sink
	with setting
	path string
	end  context.Context // goes on a little after the job's

	note   note
	old    []bool // predictions of an earlier try
	done   []bool // predictions that have ended
	bar    engine.Span
	inputs map[string]any
	holds  []string
	asked  bool // a create was sent whose answer is missing
}

// note is what the next worker has to know.
type note struct {
	IDs []string `json:"ids"` // of the predictions, "" for those to be created
	// Creating is the hash of the inputs of the first of those, from before its
	// create until after it, and Since when that was.
	Creating string `json:"creating,omitempty"`
	Since    int64  `json:"since,omitempty"`
	// Of is the model, for whoever abandons it and knows nothing else.
	Of *model `json:"of,omitempty"`
}

// takeUp begins where an earlier try of the run ended.
func (t *task) takeUp(left string) {
	n := t.job.NumResults
	if t.with.Results != "" {
		n = 1 // one prediction makes them all
	}
	if err := json.Unmarshal([]byte(left), &t.note); err != nil || len(t.note.IDs) != n {
		t.note = note{IDs: make([]string, n)} // of another engine, or of an edited tool
	}
	t.old = make([]bool, n)
	t.done = make([]bool, n)
	for i, id := range t.note.IDs {
		if id != "" {
			t.old[i] = true
			t.hold(id)
		}
	}
}

// hold keeps other jobs from taking a prediction for theirs.
func (t *task) hold(id string) {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	t.e.held[id] = true
	t.holds = append(t.holds, id)
}

func (t *task) release() {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	for _, id := range t.holds {
		delete(t.e.held, id)
	}
}

func (t *task) leave(ctx context.Context) error {
	text, err := json.Marshal(t.note)
	if err != nil {
		return err
	}
	return t.out.Leave(ctx, string(text))
}

// all creates what is to be created and hands over the results in order.
func (t *task) all(ctx context.Context) error {
	for i, id := range t.note.IDs {
		if id == "" {
			if err := t.create(ctx, i); err != nil {
				return err
			}
		}
	}
	given := 0
	for i := range t.note.IDs {
		p, err := t.watch(ctx, i)
		if err != nil {
			return err
		}
		n, err := t.deliver(ctx, p)
		if err != nil {
			return err
		}
		given += n
		t.part(i).ReportProgress(1)
	}
	if given == 0 { // fewer than were wanted are better than none
		return errNone
	}
	return nil
}

// prediction is what the API says about one.
type prediction struct {
	ID          string          `json:"id"`
	Status      string          `json:"status"`
	Output      json.RawMessage `json:"output"`
	Error       json.RawMessage `json:"error"`
	Logs        string          `json:"logs"`
	DataRemoved bool            `json:"data_removed"`
}

var (
	errLost      = engine.Fail(engine.Failed, "The provider no longer knows the job.")
	errGone      = engine.Fail(engine.Failed, "The provider has deleted the result.")
	errNone      = engine.Fail(engine.Invalid, "The tool made no result.")
	errCancelled = engine.Fail(engine.Failed, "The provider cancelled the job.")
)

// watch waits until a prediction has ended well.
func (t *task) watch(ctx context.Context, i int) (prediction, error) {
	pace := t.e.pace()
	for {
		p, err := t.look(ctx, t.note.IDs[i])
		if s, ok := errors.AsType[*backend.Status](err); ok && s.Code == http.StatusNotFound {
			t.done[i] = true
			return p, errLost.Because(err)
		}
		if failed := pace.Bear(ctx, err); failed != nil {
			return p, failed
		}
		if err == nil {
			ended, err := t.judge(ctx, i, p)
			if ended || err != nil {
				return p, err
			}
		}
		if err := pace.Wait(ctx); err != nil {
			return p, err
		}
	}
}

func (t *task) look(ctx context.Context, id string) (p prediction, err error) {
	ctx, cancel := t.e.c.Short(ctx)
	defer cancel()
	err = t.e.c.JSON(ctx, "GET", "predictions/"+url.PathEscape(id), nil, &p)
	return p, err
}

// judge tells whether a prediction has ended, and why where that was no good
// end.
func (t *task) judge(ctx context.Context, i int, p prediction) (ended bool, err error) {
	switch p.Status {
	case "succeeded":
		t.done[i] = true
		return true, nil
	case "failed":
		t.done[i] = true
		return true, t.failed(ctx, i, p)
	case "canceled", "aborted":
		if !t.old[i] {
			t.done[i] = true
			return true, errCancelled
		}
		// The worker before us cancelled it when it had to go.
		t.old[i] = false
		t.note.IDs[i] = ""
		return false, t.create(ctx, i)
	}
	t.part(i).ReportProgress(making * backend.Logged(p.Logs))
	return false, nil
}

var (
	// refusals are how models say that they do not want to.
	refusals = regexp.MustCompile(`(?i)\bnsfw\b|flagged as sensitive|content policy|safety (?:filter|system|checker)|\bE005\b`)
	// passings are failures of the provider's own machines.
	passings = regexp.MustCompile(`(?i)please retry|\bcode: PA\b`)
)

// failed says why a prediction did. One that fell victim to the provider's
// machines is created afresh at the next try: it is known to have ended.
func (t *task) failed(ctx context.Context, i int, p prediction) error {
	var words string
	_ = json.Unmarshal(p.Error, &words) // what has another form is not there
	switch {
	case refusals.MatchString(words):
		return backend.Told(engine.Refused, "The tool refused the content.", words)
	case passings.MatchString(words):
		t.note.IDs[i] = ""
		if err := t.leave(ctx); err != nil {
			return err
		}
		// The provider itself is there: for other runs, and for as few of these
		// as are tried.
		return engine.Again(engine.Failed, "The provider could not run the job just now.").Because(errors.New(backend.Say(words)))
	}
	return backend.Told(engine.Failed, "The tool failed.", words)
}

// part is the stretch of the progress that belongs to a prediction.
func (t *task) part(i int) engine.Span { return t.bar.NthOf(i, len(t.note.IDs)) }

// making is how much of that it takes to make a result; the rest is to fetch it.
const making = 0.95

// deliver hands over what a prediction made and says how many that were. Files
// are kept for an hour only, so they are fetched at once.
func (t *task) deliver(ctx context.Context, p prediction) (int, error) {
	if p.DataRemoved {
		return 0, errGone
	}
	refs := backend.Made(p.Output, t.job.Values)
	if text := words(p.Output, len(refs)); t.job.OutputType == "TEXT" && text != "" {
		return 1, t.out.Output(ctx, engine.Result{Data: strings.NewReader(text)})
	}
	refs = backend.Pick(refs, t.job.OutputType)
	want := 1
	if t.with.Results != "" {
		want = t.job.NumResults
	}
	refs = refs[:min(want, len(refs))]
	for _, r := range refs {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := t.e.c.Deliver(ctx, r.URL, t.out); err != nil {
			return 0, err
		}
	}
	return len(refs), nil
}

// words is the text that an output with so many files is, "" where it is
// something else. Language models give it in pieces.
func words(output json.RawMessage, files int) string {
	var pieces []string
	var whole string
	if json.Unmarshal(output, &whole) == nil {
		pieces = []string{whole}
	} else if json.Unmarshal(output, &pieces) != nil {
		return ""
	}
	if len(pieces) == 1 && files == 1 {
		return "" // a file with the text
	}
	return strings.Join(pieces, "")
}

// stop cancels what still runs and nobody will ask for. After a failure that may
// pass, or where another worker goes on, it is taken up instead.
func (t *task) stop(ctx context.Context, err error) {
	if engine.IsHandedOver(ctx) || ctx.Err() == nil && engine.As(err).Transient {
		return
	}
	end, cancel := context.WithTimeout(t.end, 5*time.Second)
	defer cancel()
	ids := slices.Clone(t.note.IDs)
	if t.asked && ctx.Err() != nil {
		if found, err := t.e.find(end, t.with.model, t.note); err == nil && len(found) == 1 {
			ids = append(ids, found[0])
		}
	}
	var all sync.WaitGroup
	for i, id := range ids {
		if id != "" && (i >= len(t.done) || !t.done[i]) {
			all.Go(func() {
				_ = t.e.cancel(end, id) // where this fails, Cancel-After ends it
			})
		}
	}
	all.Wait()
}

func (e *Engine) cancel(ctx context.Context, id string) error {
	return e.c.JSON(ctx, "POST", "predictions/"+url.PathEscape(id)+"/cancel", nil, nil)
}
