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
	with manifestSetting
	path string
	end  context.Context // outlives the job's context by the grace period

	checkpoint checkpoint
	resumed    []bool // predictions that an earlier try created
	done       []bool // predictions that have ended
	bar        engine.Span
	inputs     map[string]any
	activeIDs  []string
	unanswered bool // a create request had no response
}

// checkpoint is the information that the next worker needs.
type checkpoint struct {
	IDs []string `json:"ids"` // ids of the predictions; "": not created yet
	// Creating is the hash of the inputs of the first of those, from before its create request until
	// after it. Since is the time of the request.
	Creating string `json:"creating,omitempty"`
	Since    int64  `json:"since,omitempty"`
	// Of is the model, for Abandon, which has no other information.
	Of *model `json:"of,omitempty"`
}

// resumeCheckpoint continues where an earlier try of the run ended.
func (t *task) resumeCheckpoint(left string) {
	n := t.job.NumResults
	if t.with.Results != "" {
		n = 1 // one prediction makes all results
	}
	if err := json.Unmarshal([]byte(left), &t.checkpoint); err != nil || len(t.checkpoint.IDs) != n {
		t.checkpoint = checkpoint{IDs: make([]string, n)} // the checkpoint is of another engine or of an edited tool
	}
	t.resumed = make([]bool, n)
	t.done = make([]bool, n)
	for i, id := range t.checkpoint.IDs {
		if id != "" {
			t.resumed[i] = true
			t.markActive(id)
		}
	}
}

// markActive keeps other jobs of this process from adopting a prediction.
func (t *task) markActive(id string) {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	t.e.activeIDs[id] = true
	t.activeIDs = append(t.activeIDs, id)
}

func (t *task) releaseActive() {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	for _, id := range t.activeIDs {
		delete(t.e.activeIDs, id)
	}
}

func (t *task) saveCheckpoint(ctx context.Context) error {
	text, err := json.Marshal(t.checkpoint)
	if err != nil {
		return err
	}
	return t.out.Leave(ctx, string(text))
}

// runPredictions creates missing predictions and passes their results to the sink in order.
func (t *task) runPredictions(ctx context.Context) error {
	for i, id := range t.checkpoint.IDs {
		if id == "" {
			if err := t.createPrediction(ctx, i); err != nil {
				return err
			}
		}
	}
	given := 0
	for i := range t.checkpoint.IDs {
		p, err := t.awaitPrediction(ctx, i)
		if err != nil {
			return err
		}
		n, err := t.deliverResults(ctx, p)
		if err != nil {
			return err
		}
		given += n
		t.predictionSpan(i).ReportProgress(1)
	}
	if given == 0 { // fewer results than requested are better than none
		return errNoResult
	}
	return nil
}

// prediction is the API's description of a prediction.
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
	errDeleted   = engine.Fail(engine.Failed, "The provider has deleted the result.")
	errNoResult  = engine.Fail(engine.Invalid, "The tool made no result.")
	errCancelled = engine.Fail(engine.Failed, "The provider cancelled the job.")
)

// awaitPrediction waits until a prediction has succeeded.
func (t *task) awaitPrediction(ctx context.Context, i int) (prediction, error) {
	pace := t.e.newPoller()
	for {
		p, err := t.queryPrediction(ctx, t.checkpoint.IDs[i])
		if s, ok := errors.AsType[*backend.Status](err); ok && s.Code == http.StatusNotFound {
			t.done[i] = true
			return p, errLost.Because(err)
		}
		if failed := pace.CheckError(ctx, err); failed != nil {
			return p, failed
		}
		if err == nil {
			ended, err := t.checkEnded(ctx, i, p)
			if ended || err != nil {
				return p, err
			}
		}
		if err := pace.WaitNext(ctx); err != nil {
			return p, err
		}
	}
}

func (t *task) queryPrediction(ctx context.Context, id string) (p prediction, err error) {
	ctx, cancel := t.e.c.WithTimeout(ctx)
	defer cancel()
	err = t.e.c.CallJSON(ctx, "GET", "predictions/"+url.PathEscape(id), nil, &p)
	return p, err
}

// checkEnded reports whether a prediction has ended, and its failure if it did not succeed.
func (t *task) checkEnded(ctx context.Context, i int, p prediction) (ended bool, err error) {
	switch p.Status {
	case "succeeded":
		t.done[i] = true
		return true, nil
	case "failed":
		t.done[i] = true
		return true, t.predictionFailure(ctx, i, p)
	case "canceled", "aborted":
		if !t.resumed[i] {
			t.done[i] = true
			return true, errCancelled
		}
		// The worker before cancelled it when it had to stop.
		t.resumed[i] = false
		t.checkpoint.IDs[i] = ""
		return false, t.createPrediction(ctx, i)
	}
	t.predictionSpan(i).ReportProgress(renderShare * backend.ProgressInLog(p.Logs))
	return false, nil
}

var (
	// refusalPattern matches messages of models that refuse the content.
	refusalPattern = regexp.MustCompile(`(?i)\bnsfw\b|flagged as sensitive|content policy|safety (?:filter|system|checker)|\bE005\b`)
	// transientPattern matches failures of the provider's own machines.
	transientPattern = regexp.MustCompile(`(?i)please retry|\bcode: PA\b`)
)

// predictionFailure translates the failure of a prediction. A prediction that failed because of
// the provider's machines is created again at the next try, because it is known to have ended.
func (t *task) predictionFailure(ctx context.Context, i int, p prediction) error {
	var words string
	_ = json.Unmarshal(p.Error, &words) // a value of another type counts as missing
	switch {
	case refusalPattern.MatchString(words):
		return backend.FailWithText(engine.Refused, "The tool refused the content.", words)
	case transientPattern.MatchString(words):
		t.checkpoint.IDs[i] = ""
		if err := t.saveCheckpoint(ctx); err != nil {
			return err
		}
		// Not Unavailable: the provider itself works for other runs.
		return engine.Again(engine.Failed, "The provider could not run the job. Try again later.").Because(errors.New(backend.SanitizeText(words)))
	}
	return backend.FailWithText(engine.Failed, "The tool failed.", words)
}

// predictionSpan returns the part of the progress that belongs to a prediction.
func (t *task) predictionSpan(i int) engine.Span { return t.bar.NthOf(i, len(t.checkpoint.IDs)) }

// renderShare is the share of a prediction's progress for making the result. The rest is for
// fetching it.
const renderShare = 0.95

// deliverResults passes the results of a prediction to the sink and returns their number. The
// provider deletes files after an hour, so they are fetched at once.
func (t *task) deliverResults(ctx context.Context, p prediction) (int, error) {
	if p.DataRemoved {
		return 0, errDeleted
	}
	refs := backend.FindResults(p.Output, t.job.Values)
	if text := textOutput(p.Output, len(refs)); t.job.OutputType == "TEXT" && text != "" {
		return 1, t.out.Output(ctx, engine.Result{Data: strings.NewReader(text)})
	}
	refs = backend.FilterByType(refs, t.job.OutputType)
	want := 1
	if t.with.Results != "" {
		want = t.job.NumResults
	}
	refs = refs[:min(want, len(refs))]
	for _, r := range refs {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := t.e.c.DeliverFile(ctx, r.URL, t.out); err != nil {
			return 0, err
		}
	}
	return len(refs), nil
}

// textOutput returns the text of an output with so many files. "": the output is not text.
// Language models return text in pieces.
func textOutput(output json.RawMessage, files int) string {
	var pieces []string
	var whole string
	if json.Unmarshal(output, &whole) == nil {
		pieces = []string{whole}
	} else if json.Unmarshal(output, &pieces) != nil {
		return ""
	}
	if len(pieces) == 1 && files == 1 {
		return "" // the text is in a file
	}
	return strings.Join(pieces, "")
}

// cancelPredictions cancels running predictions whose results are not needed. After a transient
// failure, or if another worker continues, they go on and are resumed later.
func (t *task) cancelPredictions(ctx context.Context, err error) {
	if engine.IsHandedOver(ctx) || ctx.Err() == nil && engine.As(err).Transient {
		return
	}
	end, cancel := context.WithTimeout(t.end, 5*time.Second)
	defer cancel()
	ids := slices.Clone(t.checkpoint.IDs)
	if t.unanswered && ctx.Err() != nil {
		if found, err := t.e.findCandidates(end, t.with.model, t.checkpoint); err == nil && len(found) == 1 {
			ids = append(ids, found[0])
		}
	}
	var all sync.WaitGroup
	for i, id := range ids {
		if id != "" && (i >= len(t.done) || !t.done[i]) {
			all.Go(func() {
				_ = t.e.cancelPrediction(end, id) // if this fails, Cancel-After ends the prediction
			})
		}
	}
	all.Wait()
}

func (e *Engine) cancelPrediction(ctx context.Context, id string) error {
	return e.c.CallJSON(ctx, "POST", "predictions/"+url.PathEscape(id)+"/cancel", nil, nil)
}
