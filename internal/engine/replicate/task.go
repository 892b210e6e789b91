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
	backend.PaidJob
	e    *Engine
	with manifestSetting
	path string

	checkpoint checkpoint
	resumed    []bool // predictions that an earlier try created
	done       []bool // predictions that have ended
	activeIDs  []string
	unanswered bool // a create request had no response
}

// checkpoint is the information that the next worker needs.
type checkpoint struct {
	IDs []string `json:"ids"` // ids of the predictions; "": not created yet
	// Creating is the hash of the inputs of the first prediction without an id, from before its
	// create request until after it. Since is the time of the request.
	Creating string `json:"creating,omitempty"`
	Since    int64  `json:"since,omitempty"`
	// Of is the model, for Abandon, which has no other information.
	Of *model `json:"of,omitempty"`
}

// resumeCheckpoint continues the work of an earlier try of the run.
func (t *task) resumeCheckpoint(left string) {
	n := t.PieceCount()
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
		t.ReportDelivered(i)
	}
	if given == 0 { // fewer results than requested are better than none
		return backend.ErrToolNoResult
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

var errDeleted = engine.Fail(engine.Failed, "The provider has deleted the result.")

// awaitPrediction waits until a prediction has succeeded.
func (t *task) awaitPrediction(ctx context.Context, i int) (prediction, error) {
	pace := backend.NewPoller(t.e.o.PollInterval, t.e.o.PollTimeout)
	for {
		p, err := t.queryPrediction(ctx, t.checkpoint.IDs[i])
		if s, ok := errors.AsType[*backend.Status](err); ok && s.Code == http.StatusNotFound {
			t.done[i] = true
			return p, backend.ErrJobLost.WithCause(err)
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
			return true, backend.ErrJobCancelled
		}
		// The worker before cancelled it when it had to stop.
		t.resumed[i] = false
		t.checkpoint.IDs[i] = ""
		return false, t.createPrediction(ctx, i)
	}
	t.ReportRendering(i, backend.ProgressInLog(p.Logs))
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
		return backend.ContentRefused(words)
	case transientPattern.MatchString(words):
		t.checkpoint.IDs[i] = ""
		if err := t.SaveCheckpoint(ctx, t.checkpoint); err != nil {
			return err
		}
		return backend.ErrProviderFailed.WithCause(errors.New(backend.SanitizeText(words)))
	}
	return backend.ToolFailed(words)
}

// deliverResults passes the results of a prediction to the sink and returns their number. The
// provider deletes files after an hour, so they are fetched at once.
func (t *task) deliverResults(ctx context.Context, p prediction) (int, error) {
	if p.DataRemoved {
		return 0, errDeleted
	}
	refs := backend.FindResults(p.Output, t.Job.Values)
	if text := textOutput(p.Output, len(refs)); t.Job.OutputType == "TEXT" && text != "" {
		return 1, t.Out.Output(ctx, engine.Result{Data: strings.NewReader(text)})
	}
	refs = backend.FilterByType(refs, t.Job.OutputType)
	refs = refs[:min(t.ResultsPerPiece(), len(refs))]
	for _, r := range refs {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := t.e.c.DeliverFile(ctx, r.URL, t.Out); err != nil {
			return 0, err
		}
	}
	return len(refs), nil
}

// textOutput returns the text of an output. files is the number of files in the output. "": the
// output is not text. Language models return text in pieces.
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
// failure, or if another worker continues, the predictions continue and are resumed later.
func (t *task) cancelPredictions(ctx context.Context, err error) {
	if !engine.IsFinal(ctx, err) {
		return
	}
	end, cancel := context.WithTimeout(t.Settle, 5*time.Second)
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
