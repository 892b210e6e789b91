package generation

import (
	"context"
	"encoding/json"
	"time"

	"atelier/internal/engine"
	"atelier/internal/file/library"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/run"
)

// RunJSON is the representation of a run in the API and in webhook events. It
// corresponds to the schema Generation of the OpenAPI document, which describes
// the fields.
type RunJSON struct {
	Created           time.Time       `json:"created"`
	Error             *FailureJSON    `json:"error"`
	EstimatedSeconds  *int64          `json:"estimated_seconds"`
	Finished          *time.Time      `json:"finished"`
	FreeAllowanceUsed int64           `json:"free_allowance_used"`
	Inputs            json.RawMessage `json:"inputs,omitempty"` // only if the client requests the inputs
	Metadata          json.RawMessage `json:"metadata"`
	NumResults        int64           `json:"num_results"`
	Outputs           []OutputJSON    `json:"outputs"`
	Progress          *float64        `json:"progress"`
	Prompt            *string         `json:"prompt"`
	QueuePosition     *int64          `json:"queue_position"`
	RequestID         string          `json:"request_id"`
	RetryAfterSeconds int64           `json:"retry_after_seconds"`
	Seed              int64           `json:"seed"`
	Stage             *string         `json:"stage"`
	Started           *time.Time      `json:"started"`
	Status            string          `json:"status"`
	Steps             []StepJSON      `json:"steps,omitempty"` // only for flows
	TeamID            *string         `json:"team_id"`
	TokensCharged     int64           `json:"tokens_charged"`
	TokensHeld        int64           `json:"tokens_held"`
	ToolID            string          `json:"tool_id"`
	ToolName          *string         `json:"tool_name"`
	UID               string          `json:"uid"`
	Webhook           *DeliveryJSON   `json:"webhook"`
}

// FailureJSON says why a run failed. It corresponds to the schema
// GenerationError of the OpenAPI document.
type FailureJSON struct {
	Code      string         `json:"code"`
	Details   map[string]any `json:"details"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
}

// OutputJSON is the representation of a result. It corresponds to the schema
// GenerationOutput of the OpenAPI document.
type OutputJSON struct {
	Blurhash        *string  `json:"blurhash"`
	DurationSeconds *float64 `json:"duration_seconds"`
	Expired         bool     `json:"expired"`
	Height          *int64   `json:"height"`
	ID              string   `json:"id"`
	MimeType        string   `json:"mime_type"`
	Note            *string  `json:"note"`
	PreviewURL      *string  `json:"preview_url"`
	SHA256          string   `json:"sha256"`
	SizeBytes       int64    `json:"size_bytes"`
	ThumbURL        *string  `json:"thumb_url"`
	Type            string   `json:"type"`
	URL             *string  `json:"url"`
	Width           *int64   `json:"width"`
}

// DeliveryJSON is the delivery state of a run's webhook event. It corresponds
// to the schema GenerationWebhook of the OpenAPI document.
type DeliveryJSON struct {
	Attempts int64  `json:"attempts"`
	State    string `json:"state"`
}

// EventJSON is the body of the webhook event about a run that has ended. It
// corresponds to the schema WebhookEvent of the OpenAPI document.
type EventJSON struct {
	Data      RunJSON   `json:"data"`
	Timestamp time.Time `json:"timestamp"`
	Type      string    `json:"type"`
}

// TimedOut is the error code of runs that took longer than their tool allows.
const TimedOut engine.Code = "TIMED_OUT"

// retryableCodes are the error codes of failed runs that can succeed if the
// same request is repeated later. After other errors something must be changed
// first, such as the inputs.
var retryableCodes = map[engine.Code]bool{
	engine.Unavailable: true,
	engine.Invalid:     true,
	TimedOut:           true,
}

// EventBody returns the body of the webhook event of a run. The URLs of its
// results are signed for the person who started the run.
func (s *Service) EventBody(ctx context.Context, runID string) ([]byte, error) {
	rec, err := s.GetStatusUnscoped(ctx, runID)
	if err != nil {
		return nil, err
	}
	return json.Marshal(rec.EventJSON(s.Links))
}

// EventJSON converts a run that has ended to the body of its webhook event.
func (rec Record) EventJSON(links library.URLSigner) EventJSON {
	return EventJSON{
		Type:      "generation." + rec.State.PublicStatus(),
		Timestamp: wholeSecond(rec.Finished),
		Data:      rec.RunJSON(links, rec.PersonID),
	}
}

// RunJSON converts a run to its API representation. The URLs of its results are
// signed for the viewer.
func (rec Record) RunJSON(links library.URLSigner, viewerID string) RunJSON {
	out := RunJSON{
		RequestID:         rec.ID,
		Status:            rec.State.PublicStatus(),
		RetryAfterSeconds: int64(rec.RetryAfter / time.Second),
		EstimatedSeconds:  orNull(int64(rec.Estimated / time.Second)),
		Created:           wholeSecond(rec.Created),
		Started:           optionalTime(rec.Started),
		Finished:          optionalTime(rec.Finished),
		ToolID:            rec.ToolID,
		ToolName:          orNull(rec.ToolName),
		UID:               rec.PersonID,
		Prompt:            orNull(rec.Prompt),
		TeamID:            orNull(rec.TeamID),
		NumResults:        rec.NumResults,
		Seed:              rec.Seed,
		TokensCharged:     rec.TokensCharged,
		FreeAllowanceUsed: rec.AllowanceUsed,
		Outputs:           []OutputJSON{},
		Metadata:          json.RawMessage("null"),
		Webhook:           deliveryJSON(rec.Webhook),
		Error:             failureJSON(rec.Run),
		Steps:             rec.stepsJSON(links, viewerID),
	}
	if rec.Metadata != "" {
		out.Metadata = json.RawMessage(rec.Metadata)
	}
	if !rec.State.IsEnded() {
		out.Stage = orNull(string(rec.Stage()))
		out.TokensHeld = rec.TokensHeld
		out.Progress = rec.ProgressFraction()
	}
	switch {
	case rec.State == run.Queued:
		out.QueuePosition = &rec.Position
	case rec.IsWaitingAtServer():
		out.QueuePosition = orNull(*rec.ServerPosition)
		out.Started = nil
	}
	for _, o := range rec.Outputs {
		out.Outputs = append(out.Outputs, outputJSON(links, o, viewerID))
	}
	return out
}

func outputJSON(links library.URLSigner, o run.Output, viewerID string) OutputJSON {
	out := OutputJSON{
		ID:        o.Library + ":" + o.ID,
		Type:      o.Type,
		MimeType:  o.MimeType,
		Width:     orNull(o.Width),
		Height:    orNull(o.Height),
		SizeBytes: o.Size,
		SHA256:    o.SHA256,
		Blurhash:  orNull(o.Blurhash),
		Expired:   o.Expired,
	}
	if o.Duration != 0 {
		// Dividing the whole milliseconds gives the floating-point number
		// closest to the decimal value, so JSON shows at most three decimals.
		// time.Duration.Seconds adds two numbers, which can be inexact.
		seconds := float64(o.Duration.Round(time.Millisecond).Milliseconds()) / 1000
		out.DurationSeconds = &seconds
	}
	if o.Expired {
		return out
	}

	out.Note = orNull(o.Note)
	names := library.ResultNames(o.ToolSlug, o.ID, library.Keys{Blob: o.Blob, Thumb: o.Thumb, Preview: o.Preview})
	link := func(variant string) *string {
		name := names.ByVariant(variant)
		if name == "" {
			return nil
		}
		return orNull(links.SignURL(library.KindResult, o.ID, variant, viewerID, name))
	}
	out.URL = link(library.VariantFile)
	out.ThumbURL = link(library.VariantThumb)
	out.PreviewURL = link(library.VariantPreview)
	return out
}

func deliveryJSON(state *webhook.State) *DeliveryJSON {
	if state == nil {
		return nil
	}
	return &DeliveryJSON{State: state.PublicState(), Attempts: int64(state.Attempts)}
}

// wholeSecond truncates t to seconds and converts it to UTC, as the API shows
// times.
func wholeSecond(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = wholeSecond(t)
	return &t
}

// orNull returns a pointer to v, or nil if v is zero, which JSON encodes as
// null.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
