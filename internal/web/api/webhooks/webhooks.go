// Package webhooks serves the API endpoints for an account's webhook secret
// and for the delivery attempts of a run's webhook.
package webhooks

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"atelier/internal/base/cursor"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/web/access"
	"atelier/internal/web/api/generations"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for webhook secrets and deliveries.
type Handler struct {
	DB      *sqldb.DB
	Secrets *webhook.Secrets
	Runs    *generation.Service
	Ended   *generations.EndedCache
	Pages   rest.Pager
}

// Routes returns the routes of the operations on webhooks.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/generate/{request_id}/webhook-attempts", access.ForAccount, h.listAttempts),
		rest.NewRoute("POST /api/v2/generate/{request_id}/webhook-attempts/redeliver", access.ForAccount, h.redeliverWebhook),
		rest.NewRoute("GET /api/v2/webhook-deliveries", access.ForAccount, h.listDeliveries),
		rest.NewRoute("GET /api/v2/webhook-secret", access.Managing, h.getSecret),
		rest.NewRoute("POST /api/v2/webhook-secret/rotate", access.Managing, h.rotateSecret),
	}
}

// listAttempts serves GET /api/v2/generate/{request_id}/webhook-attempts: it
// lists the delivery attempts of a run's webhook, newest first.
func (h *Handler) listAttempts(w http.ResponseWriter, r *http.Request) error {
	call, id, err := generations.RunCall(r)
	if err != nil {
		return err
	}
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("webhook-attempts", call.Principal.PersonID, call.Principal.AccountID, id))
	if err != nil {
		return err
	}
	attempts, err := h.Runs.WebhookAttempts(r.Context(), call.Principal.AccountID, id)
	if err != nil {
		return err
	}

	// A run has few delivery attempts, so the handler reads all of them and
	// paginates them in memory.
	if page.After != nil {
		for i, one := range attempts {
			if one.ID == page.After[1] {
				attempts = attempts[i+1:]
				break
			}
		}
	}
	attempts, hasMore, next := rest.Cut(page, attempts, func(a webhook.Attempt) (string, string) { return rest.Micros(a.At), a.ID })
	return rest.Reply(w, http.StatusOK, wire.WebhookAttemptList{
		Data:       rest.Convert(attempts, asAttempt),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

func asAttempt(a webhook.Attempt) wire.WebhookAttempt {
	return wire.WebhookAttempt{
		ID:         a.ID,
		At:         rest.Moment(a.At),
		DurationMs: a.Duration.Milliseconds(),
		Error:      rest.TextOrNull(a.Error),
		StatusCode: rest.NumberOrNull(int64(a.StatusCode)),
	}
}

// redeliverWebhook serves POST
// /api/v2/generate/{request_id}/webhook-attempts/redeliver: it queues the
// webhook of a run for one more delivery.
func (h *Handler) redeliverWebhook(w http.ResponseWriter, r *http.Request) error {
	call, id, err := generations.RunCall(r)
	if err != nil {
		return err
	}
	state, err := h.Runs.RedeliverWebhook(r.Context(), call.Principal.AccountID, id)
	if err != nil {
		return err
	}
	h.Ended.DropAll()
	return rest.Reply(w, http.StatusAccepted, generations.AsWebhook(state))
}

// listDeliveries serves GET /api/v2/webhook-deliveries: it lists the deliveries
// of webhooks of an account's runs, newest first.
func (h *Handler) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	status := call.Params.ReadText("status")
	if status != "" && !slices.Contains(webhook.PublicStates, status) {
		call.Params.AddProblem("status", "Must be one of "+strings.Join(webhook.PublicStates, ", ")+".")
	}
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("webhook-deliveries", call.Principal.PersonID, call.Principal.AccountID, status))
	if err != nil {
		return err
	}

	var after *webhook.DeliveryCursor
	if page.After != nil {
		created, err := page.AfterTime()
		if err != nil {
			return err
		}
		after = &webhook.DeliveryCursor{Created: created, ID: page.After[1]}
	}
	deliveries, err := webhook.ListDeliveries(r.Context(), h.DB, call.Principal.AccountID, status, after, page.Limit+1)
	if err != nil {
		return err
	}
	deliveries, hasMore, next := rest.Cut(page, deliveries, func(d webhook.Delivery) (string, string) { return rest.Micros(d.Created), d.ID })
	return rest.Reply(w, http.StatusOK, wire.WebhookDeliveryList{
		Data:       rest.Convert(deliveries, asDelivery),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

func asDelivery(d webhook.Delivery) wire.WebhookDelivery {
	return wire.WebhookDelivery{
		RequestID:   d.RunID,
		Status:      wire.WebhookState(d.PublicState()),
		Attempts:    int64(d.Attempts),
		Host:        d.Host,
		StatusCode:  rest.NumberOrNull(int64(d.Last.StatusCode)),
		Error:       rest.TextOrNull(d.Last.Error),
		Created:     rest.Moment(d.Created),
		LastAttempt: rest.MomentOrNull(d.Last.At),
		NextAttempt: rest.MomentOrNull(d.Next),
	}
}

// getSecret serves GET /api/v2/webhook-secret: it returns the secret that
// signs an account's webhooks.
func (h *Handler) getSecret(w http.ResponseWriter, r *http.Request) error {
	return h.replySecret(w, r, h.Secrets.GetFor)
}

// rotateSecret serves POST /api/v2/webhook-secret/rotate: it replaces the
// secret that signs an account's webhooks.
func (h *Handler) rotateSecret(w http.ResponseWriter, r *http.Request) error {
	return h.replySecret(w, r, h.Secrets.RotateFor)
}

// secretFunc reads or replaces the webhook secret of an account.
type secretFunc func(context.Context, *sqldb.DB, principal.Principal) (webhook.Secret, error)

func (h *Handler) replySecret(w http.ResponseWriter, r *http.Request, secretOf secretFunc) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	secret, err := secretOf(r.Context(), h.DB, call.Principal)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.WebhookSecret{
		Secret:             secret.Value,
		Created:            rest.Moment(secret.Created),
		PreviousValidUntil: rest.MomentOrNull(secret.PreviousValidUntil),
	})
}
