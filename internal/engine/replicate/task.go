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

// task is the state of one job.
type task struct {
	backend.PaidJob
	e    *Engine
	with manifestSetting
	path string

	checkpoint checkpoint
	resumed    []bool // for each prediction, whether an earlier attempt created it
	done       []bool // for each prediction, whether it has ended
	activeIDs  []string
	unanswered bool // a create request got no response
}

// checkpoint is saved for the worker that continues the run.
type checkpoint struct {
	IDs []string `json:"ids"` // ids of the predictions; an id is empty if the prediction has not been created
	// Creating is a hash of the inputs of the first prediction without an id.
	// It is set before the create request and cleared when the id is known.
	// Since is the time of the request, in Unix seconds.
	Creating string `json:"creating,omitempty"`
	Since    int64  `json:"since,omitempty"`
	// Of is the model of the predictions. Abandon needs it, because it has
	// only the checkpoint.
	Of *model `json:"of,omitempty"`
}

// resumeCheckpoint restores the predictions of an earlier attempt of the run.
// left is the saved checkpoint.
func (t *task) resumeCheckpoint(left string) {
	n := t.PieceCount()
	if err := json.Unmarshal([]byte(left), &t.checkpoint); err != nil || len(t.checkpoint.IDs) != n {
		t.checkpoint = checkpoint{IDs: make([]string, n)} // the checkpoint belongs to another engine, or the tool was edited
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

// markActive records that a prediction belongs to this job, so that no other
// job of this process adopts it.
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

// runPredictions creates the predictions that do not exist yet, waits for all,
// and passes their results to the sink in order.
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
	if given == 0 { // if there is at least one result, the job succeeds with fewer than requested
		return backend.ErrToolNoResult
	}
	return nil
}

// prediction is the API's response about a prediction.
type prediction struct {
	ID          string          `json:"id"`
	Status      string          `json:"status"`
	Output      json.RawMessage `json:"output"`
	Error       json.RawMessage `json:"error"`
	Logs        string          `json:"logs"`
	DataRemoved bool            `json:"data_removed"`
}

var errDeleted = engine.Fail(engine.Failed, "The provider has deleted the result.")

// awaitPrediction waits until the job's prediction number i has succeeded.
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
	if err == nil && p.ID != id {
		err = backend.ErrBadResponse.WithCause(errors.New("the response belongs to another prediction"))
	}
	return p, err
}

// checkEnded reports whether the job's prediction number i has ended, and
// returns its failure if it did not succeed. A prediction that an earlier
// attempt cancelled is created again.
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
		// The worker of an earlier attempt cancelled the prediction when it
		// had to stop.
		t.resumed[i] = false
		t.checkpoint.IDs[i] = ""
		return false, t.createPrediction(ctx, i)
	case "starting": // the prediction waits for a machine, which may have to start first
		t.ReportQueued(0)
		return false, nil
	}
	t.ReportRendering(i, backend.ProgressInLog(p.Logs))
	return false, nil
}

var (
	// refusalPattern matches error messages of models that refuse the content.
	refusalPattern = regexp.MustCompile(`(?i)\bnsfw\b|flagged as sensitive|content policy|safety (?:filter|system|checker)|\bE005\b`)
	// transientPattern matches error messages about the provider's machines.
	transientPattern = regexp.MustCompile(`(?i)please retry|\bcode: PA\b`)
)

// predictionFailure converts the failure of a prediction to the error that the
// run fails with. If the provider's machines were the cause, the prediction is
// created again at the next attempt, because it is known to have ended.
func (t *task) predictionFailure(ctx context.Context, i int, p prediction) error {
	var words string
	_ = json.Unmarshal(p.Error, &words) // a value of another type is ignored
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

// deliverResults passes the results of a prediction to the sink and returns
// their number. It fetches files at once, because the provider deletes them
// after an hour.
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
		if err := t.e.c.DeliverRemoteFile(ctx, r.URL, t.Out); err != nil {
			return 0, err
		}
	}
	return len(refs), nil
}

// textOutput returns the text of a model's output, which may be a list of
// parts. It returns "" if the output is not text. files is the number of files
// in the output.
func textOutput(output json.RawMessage, files int) string {
	var pieces []string
	var whole string
	if json.Unmarshal(output, &whole) == nil {
		pieces = []string{whole}
	} else if json.Unmarshal(output, &pieces) != nil {
		return ""
	}
	if len(pieces) == 1 && files == 1 {
		return "" // the only string is the URL of a file that contains the text
	}
	return strings.Join(pieces, "")
}

// cancelPredictions cancels running predictions whose results are not needed
// because err ends the run. After a transient failure, or if another worker
// continues the run, the predictions continue and are resumed later.
func (t *task) cancelPredictions(ctx context.Context, err error) {
	if !engine.IsFinal(ctx, err) {
		return
	}
	end, cancel := context.WithTimeout(t.Settle, 5*time.Second)
	defer cancel()
	ids := slices.Clone(t.checkpoint.IDs)
	if t.unanswered && t.canRecognize() && ctx.Err() != nil {
		if found, err := t.e.findCandidates(end, t.with.model, t.checkpoint); err == nil && len(found) == 1 {
			ids = append(ids, found[0])
		}
	}
	var all sync.WaitGroup
	for i, id := range ids {
		if id != "" && (i >= len(t.done) || !t.done[i]) {
			all.Go(func() {
				_ = t.e.cancelPrediction(end, id) // if this fails, the provider ends the prediction at the time in its Cancel-After header
			})
		}
	}
	all.Wait()
}

func (e *Engine) cancelPrediction(ctx context.Context, id string) error {
	return e.c.CallJSON(ctx, "POST", "predictions/"+url.PathEscape(id)+"/cancel", nil, nil)
}
