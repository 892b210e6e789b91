package backend

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"atelier/internal/engine"
)

// GracePeriod is how long calls may continue after a job to learn the outcome of
// a create request, and to cancel its work.
const GracePeriod = 1500 * time.Millisecond

// renderShare is the share of a piece's progress for making the result. The rest
// is for fetching it.
const renderShare = 0.95

// Failures of jobs at a provider.
var (
	// ErrUnconfirmed ends a run whose create request had no response.
	ErrUnconfirmed  = engine.Fail(engine.Failed, "The provider did not confirm the job, and starting it again could cost twice. Start a new run if you want to try again.")
	ErrJobLost      = engine.Fail(engine.Failed, "The provider no longer knows the job.")
	ErrJobCancelled = engine.Fail(engine.Failed, "The provider cancelled the job.")
	ErrToolNoResult = engine.Fail(engine.Invalid, "The tool made no result.")
	// ErrProviderFailed is not Unavailable, because the provider itself works for
	// other runs.
	ErrProviderFailed = engine.FailTransient(engine.Failed, "The provider could not run the job. Try again later.")
)

// ContentRefused returns the failure for refused content, with the provider's
// message.
func ContentRefused(text string) *engine.Error {
	return FailWithText(engine.Refused, "The tool refused the content.", text)
}

// ToolFailed returns the failure of a model, with the provider's message.
func ToolFailed(text string) *engine.Error {
	return FailWithText(engine.Failed, "The tool failed.", text)
}

// ProviderRefused returns the failure for a refused create request, with the
// provider's message.
func ProviderRefused(text string) *engine.Error {
	return FailWithText(engine.Failed, "The provider refused the job.", text)
}

// PaidJob is the part of a job that engines of hosted providers share. The
// provider does the job in pieces (requests, predictions), each of which costs
// money and is created once.
type PaidJob struct {
	Client  *Client
	Job     engine.Job
	Out     engine.Sink
	Mapping Mapping
	// Settle outlives the job's context by GracePeriod.
	Settle context.Context

	bar    engine.Span
	inputs map[string]any
}

// NewPaidJob returns a job whose calls for settling end with settle.
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

// PieceCount returns the number of pieces: one if the model makes all results at
// once, otherwise one for each result.
func (p *PaidJob) PieceCount() int {
	if p.Mapping.Results != "" {
		return 1
	}
	return p.Job.NumResults
}

// ResultsPerPiece returns the number of results of each piece.
func (p *PaidJob) ResultsPerPiece() int {
	if p.Mapping.Results != "" {
		return p.Job.NumResults
	}
	return 1
}

// ReportRendering reports the progress of making the results of piece i, from 0
// to 1.
func (p *PaidJob) ReportRendering(i int, fraction float64) {
	p.bar.NthOf(i, p.PieceCount()).ReportProgress(renderShare * fraction)
}

// ReportDelivered reports that all results of piece i have been delivered.
func (p *PaidJob) ReportDelivered(i int) {
	p.bar.NthOf(i, p.PieceCount()).ReportProgress(1)
}

// PieceInputs returns the inputs of piece i. Files are converted once for all
// pieces.
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

// SaveCheckpoint saves a checkpoint as JSON.
func (p *PaidJob) SaveCheckpoint(ctx context.Context, checkpoint any) error {
	text, err := json.Marshal(checkpoint)
	if err != nil {
		return err
	}
	return p.Out.SaveCheckpoint(ctx, string(text))
}

// PostCreate sends a create request and decodes the response into out. It waits
// for the response slightly longer than the job lasts, because work without a
// known id cannot be cancelled. The rest of the grace period is for cancelling.
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

// WasNotCreated reports whether the error of a create request proves that
// nothing was created: it did not arrive, or the provider refused it.
func WasNotCreated(err error) bool {
	if err == nil {
		return false
	}
	s, answered := errors.AsType[*Status](err)
	return !MayHaveArrived(err) || answered && s.Code/100 == 4
}

// NewPoller returns a poller with the given first interval (default: 1 s) and
// timeout.
func NewPoller(interval, timeout time.Duration) *Poller {
	interval = cmp.Or(interval, time.Second)
	return &Poller{Interval: interval, MaxInterval: 5 * interval, Timeout: timeout}
}
