package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/library"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/wire"
)

// asGeneration is a run as its people see it. Addresses are made for the
// viewer.
func asGeneration(l library.Links, rec generation.Record, viewerID string) wire.Generation {
	g := wire.Generation{
		RequestID:         rec.ID,
		Status:            wire.GenerationStatus(rec.State.Status()),
		RetryAfterSeconds: int64(rec.RetryAfter / time.Second),
		EstimatedSeconds:  wholeSeconds(rec.Estimated),
		Created:           moment(rec.Created),
		Started:           momentOrNull(rec.Started),
		Finished:          momentOrNull(rec.Finished),
		ToolID:            rec.ToolID,
		TeamID:            orNull(rec.TeamID),
		NumResults:        rec.NumResults,
		Seed:              rec.Seed,
		TokensCharged:     rec.TokensCharged,
		FreeAllowanceUsed: rec.AllowanceUsed,
		Outputs:           []wire.GenerationOutput{},
		Metadata:          json.RawMessage("null"),
		Webhook:           asWebhook(rec.Webhook),
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
		g.Outputs = append(g.Outputs, asOutput(l, rec.Run, o, viewerID))
	}
	return g
}

// retryableRuns are the codes of failed runs after which the same create can
// succeed later. The others need something changed first.
var retryableRuns = map[wire.GenerationErrorCode]bool{
	wire.GenerationErrorCodeENGINEUNAVAILABLE: true,
	wire.GenerationErrorCodeOUTPUTINVALID:     true,
	wire.GenerationErrorCodeTIMEDOUT:          true,
}

func asOutput(l library.Links, r run.Run, o run.Output, viewerID string) wire.GenerationOutput {
	out := wire.GenerationOutput{
		ID:              r.LibraryID + ":" + o.ID,
		Type:            wire.Medium(o.Type),
		MimeType:        o.MimeType,
		Width:           countOrNull(o.Width),
		Height:          countOrNull(o.Height),
		DurationSeconds: playing(o.Duration),
		SizeBytes:       o.Size,
		Sha256:          o.SHA256,
		Blurhash:        orNull(o.Blurhash),
		Expired:         o.Expired,
	}
	if o.Expired {
		return out
	}
	out.Note = orNull(o.Note)
	names := library.ResultNames(o.ToolSlug, o.ID, library.Keys{Blob: o.Blob, Thumb: o.Thumb, Preview: o.Preview})
	out.URL = link(l, library.OfResult, o.ID, library.Whole, viewerID, names)
	out.ThumbURL = link(l, library.OfResult, o.ID, library.Thumb, viewerID, names)
	out.PreviewURL = link(l, library.OfResult, o.ID, library.Preview, viewerID, names)
	return out
}

// link makes an address, null where there is nothing behind it.
func link(l library.Links, kind library.Kind, id, variant, viewerID string, names library.Names) *string {
	name := names.Of(variant)
	if name == "" {
		return nil
	}
	address := l.URL(kind, id, variant, viewerID, name)
	return &address
}

// EventBody is what is posted when a run has ended. Its addresses are made for
// whoever started the run.
func EventBody(l library.Links, rec generation.Record) ([]byte, error) {
	return json.Marshal(wire.WebhookEvent{
		Type: wire.WebhookEventType("generation." + rec.State.Status()), Timestamp: moment(rec.Finished), Data: asGeneration(l, rec, rec.PersonID),
	})
}

func asWebhook(state *webhook.State) *wire.GenerationWebhook {
	if state == nil {
		return nil
	}
	return &wire.GenerationWebhook{State: wire.WebhookState(state.Word()), Attempts: int64(state.Attempts)}
}

func asProgress(thousandths *int64) *float64 {
	if thousandths == nil {
		return nil
	}
	f := float64(*thousandths) / 1000
	return &f
}

func momentOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	m := moment(t)
	return &m
}

func countOrNull(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// decimalSeconds is a span in seconds to the millisecond. One division gives the
// number nearest to these digits, so that they are what JSON shows; the sum in
// time.Duration.Seconds does not.
func decimalSeconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}

// playing is how long something plays, in seconds.
func playing(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	f := decimalSeconds(d)
	return &f
}

// webhookSecret answers with what get makes of the account's secret.
func (s *Server) webhookSecret(w http.ResponseWriter, r *http.Request, get func(context.Context, *sqldb.DB, principal.Principal) (webhook.Secret, error)) error {
	c := callOf(r)
	if err := c.params.failed(); err != nil {
		return err
	}
	secret, err := get(r.Context(), s.DB, c.caller)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wire.WebhookSecret{Secret: secret.Value, Created: moment(secret.Created), PreviousValidUntil: momentOrNull(secret.PreviousValidUntil)})
}
