package api

import (
	"context"
	"net/http"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/library"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/principal"
	"atelier/internal/web/api/wire"
)

// link makes an address, null where there is nothing behind it.
func link(l library.Links, kind library.Kind, id, variant, viewerID string, names library.Names) *string {
	name := names.Of(variant)
	if name == "" {
		return nil
	}
	address := l.URL(kind, id, variant, viewerID, name)
	return &address
}

func asWebhook(state *webhook.State) *wire.GenerationWebhook {
	if state == nil {
		return nil
	}
	return &wire.GenerationWebhook{State: wire.WebhookState(state.Word()), Attempts: int64(state.Attempts)}
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
