package backend

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"atelier/internal/engine"
)

// GracePeriod is how long requests may continue after a job has ended, to
// receive the response to a create request and to cancel the provider's work.
const GracePeriod = 1500 * time.Millisecond

// renderShare is the fraction of a provider request's progress that is for
// making the result. The remaining 5 % are for fetching it.
const renderShare = 0.95

// Failures of jobs at a hosted provider.
var (
	// ErrUnconfirmed is the failure of a run whose create request got no
	// response.
	ErrUnconfirmed  = engine.Fail(engine.Failed, "The provider did not confirm the job, and starting it again could cost twice. Start a new run if you want to try again.")
	ErrJobLost      = engine.Fail(engine.Failed, "The provider no longer has a record of the job.")
	ErrJobCancelled = engine.Fail(engine.Failed, "The provider cancelled the job.")
	ErrToolNoResult = engine.Fail(engine.Invalid, "The tool made no result.")
	// ErrProviderFailed has the code Failed instead of Unavailable, because
	// the provider still works for other runs.
	ErrProviderFailed = engine.FailTransient(engine.Failed, "The provider could not run the job. Try again later.")
)

// ContentRefused returns the failure for content that the provider refused,
// with the provider's message text.
func ContentRefused(text string) *engine.Error {
	return FailWithText(engine.Refused, "The tool refused the content.", text)
}

// ToolFailed returns the failure of a model, with the provider's message text.
func ToolFailed(text string) *engine.Error {
	return FailWithText(engine.Failed, "The tool failed.", text)
}

// ProviderRefused returns the failure for a create request that the provider
// refused, with the provider's message text.
func ProviderRefused(text string) *engine.Error {
	return FailWithText(engine.Failed, "The provider refused the job.", text)
}

// PaidJob is a job at a hosted provider, with the methods that the engines of
// such providers have in common. The job consists of one or more provider
// requests ("pieces" in the names below). Each costs money and must be created
// only once.
type PaidJob struct {
	Client  *Client
	Job     engine.Job
	Out     engine.Sink
	Mapping Mapping
	// Settle is the context for requests that cancel work or query its outcome.
	// It outlives the job's context by GracePeriod.
	Settle context.Context

	bar       engine.Span
	inputs    map[string]any
	rendering bool // the provider has started one of the requests
}

// NewPaidJob returns a job whose clean-up requests, such as cancellations, use
// the context settle.
func NewPaidJob(c *Client, j engine.Job, out engine.Sink, m Mapping, settle context.Context) PaidJob {
	return PaidJob{
		Client:  c,
		Job:     j,
		Out:     out,
		Mapping: m,
		Settle:  settle,
		bar:     engine.NewSpan(out),
	}
}

// PieceCount returns the number of provider requests that the job needs: one
// if the model makes all results at once, otherwise one for each result.
func (p *PaidJob) PieceCount() int {
	if p.Mapping.MakesAllAtOnce() {
		return 1
	}
	return p.Job.NumResults
}

// ResultsPerPiece returns the number of results that each provider request
// makes.
func (p *PaidJob) ResultsPerPiece() int {
	if p.Mapping.MakesAllAtOnce() {
		return p.Job.NumResults
	}
	return 1
}

// ReportQueued reports that a provider request waits in the provider's queue,
// at the given position or at 0 if the position is unknown. The job counts as
// queued until the provider has started the first of its requests.
func (p *PaidJob) ReportQueued(position int) {
	if !p.rendering {
		p.bar.ReportQueued(position)
	}
}

// ReportRendering reports the progress of the job's provider request number i:
// the fraction of its results, from 0 to 1, that has been made.
func (p *PaidJob) ReportRendering(i int, fraction float64) {
	p.rendering = true
	p.bar.NthOf(i, p.PieceCount()).ReportProgress(renderShare * fraction)
}

// ReportDelivered reports that all results of the job's provider request
// number i have been delivered.
func (p *PaidJob) ReportDelivered(i int) {
	p.rendering = true
	p.bar.NthOf(i, p.PieceCount()).ReportProgress(1)
}

// PieceInputs returns the model's inputs for the job's provider request number
// i. The requests differ only in their seed. Files are converted once for all
// of them.
func (p *PaidJob) PieceInputs(ctx context.Context, i int, file func(context.Context, engine.File) (any, error)) (map[string]any, error) {
	if p.inputs == nil {
		inputs, err := p.Mapping.InputValues(ctx, p.Job, p.Job.Seed, p.Job.NumResults, file)
		if err != nil {
			return nil, err
		}
		p.inputs = inputs
	}
	return p.Mapping.WithSeed(p.inputs, p.Job.SeedOf(i)), nil
}

// SaveCheckpoint saves a checkpoint of the job as JSON.
func (p *PaidJob) SaveCheckpoint(ctx context.Context, checkpoint any) error {
	text, err := json.Marshal(checkpoint)
	if err != nil {
		return err
	}
	return p.Out.SaveCheckpoint(ctx, string(text))
}

// PostCreate sends a create request and decodes the response into out. It
// waits for the response for two thirds of GracePeriod after the job has
// ended, because work without a known id cannot be cancelled. The rest of
// GracePeriod is for cancelling.
func (p *PaidJob) PostCreate(ctx context.Context, r Request, out any) error {
	end, cancel := WithGrace(ctx, GracePeriod*2/3)
	defer cancel()
	end, done := p.Client.WithTimeout(end)
	defer done()
	res, err := p.Client.Do(end, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return DecodeJSON(res.Body, out)
}

// WasNotCreated reports whether the error of a create request proves that the
// provider created nothing: the request did not arrive, or the provider
// refused it.
func WasNotCreated(err error) bool {
	if err == nil {
		return false
	}
	s, answered := errors.AsType[*Status](err)
	return !MayHaveArrived(err) || answered && s.Code/100 == 4
}

// NewPoller returns a poller with the given first interval (default: 1 s).
// timeout is how long queries may keep failing.
func NewPoller(interval, timeout time.Duration) *Poller {
	interval = cmp.Or(interval, time.Second)
	return &Poller{Interval: interval, MaxInterval: 5 * interval, Timeout: timeout}
}
