package generations

import (
	"encoding/json"
	"time"

	"atelier/internal/file/library"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// AsGeneration converts a run. Its signed addresses are made for the viewer.
func AsGeneration(links library.Links, rec generation.Record, viewerID string) wire.Generation {
	g := wire.Generation{
		RequestID:         rec.ID,
		Status:            wire.GenerationStatus(rec.State.Status()),
		RetryAfterSeconds: int64(rec.RetryAfter / time.Second),
		EstimatedSeconds:  rest.WholeSecondsOrNull(rec.Estimated),
		Created:           rest.Moment(rec.Created),
		Started:           rest.MomentOrNull(rec.Started),
		Finished:          rest.MomentOrNull(rec.Finished),
		ToolID:            rec.ToolID,
		TeamID:            rest.TextOrNull(rec.TeamID),
		NumResults:        rec.NumResults,
		Seed:              rec.Seed,
		TokensCharged:     rec.TokensCharged,
		FreeAllowanceUsed: rec.AllowanceUsed,
		Outputs:           []wire.GenerationOutput{},
		Metadata:          json.RawMessage("null"),
		Webhook:           AsWebhook(rec.Webhook),
	}
	if rec.Metadata != "" {
		g.Metadata = json.RawMessage(rec.Metadata)
	}
	if !rec.State.Ended() {
		stage := wire.GenerationStage(rec.State)
		g.Stage = &stage
		g.TokensHeld = rec.TokensHeld
		g.Progress = asProgress(rec.Progress)
	}
	if rec.State == run.Queued {
		g.QueuePosition = &rec.Position
	}
	if rec.State == run.Failed {
		code := wire.GenerationErrorCode(rec.ErrorCode)
		g.Error = &wire.GenerationError{
			Code:      code,
			Message:   rec.ErrorText,
			Retryable: retryableRuns[code],
			Details:   map[string]any{},
		}
	}
	for _, o := range rec.Outputs {
		g.Outputs = append(g.Outputs, asOutput(links, rec.Run, o, viewerID))
	}
	return g
}

// retryableRuns lists the error codes of runs after which the same create can
// succeed later. After other codes the request must be changed first.
var retryableRuns = map[wire.GenerationErrorCode]bool{
	wire.GenerationErrorCodeENGINEUNAVAILABLE: true,
	wire.GenerationErrorCodeOUTPUTINVALID:     true,
	wire.GenerationErrorCodeTIMEDOUT:          true,
}

func asOutput(links library.Links, r run.Run, o run.Output, viewerID string) wire.GenerationOutput {
	out := wire.GenerationOutput{
		ID:              r.LibraryID + ":" + o.ID,
		Type:            wire.Medium(o.Type),
		MimeType:        o.MimeType,
		Width:           rest.NumberOrNull(o.Width),
		Height:          rest.NumberOrNull(o.Height),
		DurationSeconds: rest.SecondsOrNull(o.Duration),
		SizeBytes:       o.Size,
		Sha256:          o.SHA256,
		Blurhash:        rest.TextOrNull(o.Blurhash),
		Expired:         o.Expired,
	}
	if o.Expired {
		return out
	}
	out.Note = rest.TextOrNull(o.Note)
	names := library.ResultNames(o.ToolSlug, o.ID, library.Keys{Blob: o.Blob, Thumb: o.Thumb, Preview: o.Preview})
	out.URL = rest.MediaURL(links, library.OfResult, o.ID, library.Whole, viewerID, names)
	out.ThumbURL = rest.MediaURL(links, library.OfResult, o.ID, library.Thumb, viewerID, names)
	out.PreviewURL = rest.MediaURL(links, library.OfResult, o.ID, library.Preview, viewerID, names)
	return out
}

// AsWebhook converts the delivery of a run's webhook, nil where the run has none.
func AsWebhook(state *webhook.State) *wire.GenerationWebhook {
	if state == nil {
		return nil
	}
	return &wire.GenerationWebhook{State: wire.WebhookState(state.Word()), Attempts: int64(state.Attempts)}
}

// asProgress converts thousandths to a fraction of one.
func asProgress(thousandths *int64) *float64 {
	if thousandths == nil {
		return nil
	}
	f := float64(*thousandths) / 1000
	return &f
}
