package generations

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/newrun"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// createGeneration serves POST /api/v2/generate: it creates a run, or repeats
// the response to the earlier request with the same Idempotency-Key.
func (h *Handler) createGeneration(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	h.setRateLimitPolicy(w.Header())
	if err := call.Params.Err(); err != nil {
		return err
	}
	q, err := h.NewRuns.Begin(w, r)
	if err != nil {
		setRateLimitExceeded(w.Header(), err)
		return err
	}
	defer q.End()
	payload, err := h.readPayload(w, r, q)
	if err != nil {
		q.DiscardFiles()
		w.Header().Set("Connection", "close") // the rest of the body is not read
		return err
	}
	created, err := h.createRun(q, call.Principal.AccountID, payload)
	if err != nil {
		setRateLimitExceeded(w.Header(), err)
		return err
	}

	header := w.Header()
	header.Set("Retry-After", strconv.FormatInt(int64(created.Run.PollAfter/time.Second), 10))
	if created.Replayed {
		header.Set("Idempotent-Replayed", "true")
	}
	header.Set("RateLimit", formatRateLimit(created.Rooms))
	return rest.Reply(w, http.StatusAccepted, h.asCreated(created.Run))
}

// createRun creates a run from a request, or returns the run that was created
// with the same idempotency key.
func (h *Handler) createRun(q *newrun.Request, accountID string, payload []byte) (generation.Created, error) {
	if err := httpd.CheckJSON(payload, h.JSON.Depth); err != nil {
		q.DiscardFiles()
		if q.Used != nil {
			return generation.Created{}, fault.New(fault.IdempotencyKeyConflict, "This Idempotency-Key was used with another request. Use a new one.")
		}
		return generation.Created{}, err
	}
	fingerprint, err := computeFingerprint(accountID, payload, q.Digests)
	if err != nil {
		return generation.Created{}, fmt.Errorf("compute the fingerprint of the request: %w", err)
	}
	return q.Create(func() (generation.Draft, error) { return parseDraft(payload) }, fingerprint)
}

// previewCost serves POST /api/v2/generate/preview-cost: it returns the price
// of a run without creating it.
func (h *Handler) previewCost(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	body, err := rest.Decode[jsontext.Value](w, r, h.JSON)
	if err != nil {
		return err
	}
	d, err := parseDraft(body)
	if err != nil {
		return err
	}

	d.Principal = call.Principal
	cost, err := h.Runs.PriceDraft(r.Context(), d)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.CostPreview{
		TotalTokens:       cost.Tokens,
		FreeAllowanceUsed: cost.FreeAllowance,
		TokensPerResult:   cost.PerResult,
		EstimatedSeconds:  rest.WholeSecondsOrNull(cost.Estimated),
		CanRun:            cost.Blocked == "",
		BlockingReason:    rest.TextOrNull(cost.Blocked),
	})
}

// The names of the rate limit windows for creating runs.
const (
	minuteWindow = "minute"
	hourWindow   = "hour"
)

// setRateLimitPolicy sets the RateLimit-Policy header to the rate limits for
// creating runs.
func (h *Handler) setRateLimitPolicy(header http.Header) {
	header.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=60, "%s";q=%d;w=3600`, minuteWindow, h.Runs.Settings.CreatePerMinute, hourWindow, h.Runs.Settings.CreatePerHour))
}

// formatRateLimit returns the value of the RateLimit header: the requests left
// and the seconds until the reset of each window.
func formatRateLimit(rooms []ratelimit.Room) string {
	text := ""
	for i, name := range []string{minuteWindow, hourWindow} {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf(`"%s";r=%d;t=%d`, name, rooms[i].Left, fault.WholeSeconds(rooms[i].Reset))
	}
	return text
}

// setRateLimitExceeded sets the RateLimit header to the window that a
// RATE_LIMITED error reports as exhausted. It ignores other errors.
func setRateLimitExceeded(header http.Header, err error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.RateLimited {
		return
	}

	window := minuteWindow
	if f.Details["window_seconds"] == fault.WholeSeconds(time.Hour) {
		window = hourWindow
	}
	header.Set("RateLimit", fmt.Sprintf(`"%s";r=0;t=%d`, window, fault.WholeSeconds(f.RetryAfter)))
}

// statusURL returns the URL of a run in the API.
func (h *Handler) statusURL(r run.Run) string {
	address := h.BaseURL + "/api/v2/generate/" + r.ID
	if r.TeamID != "" {
		address += "?team_id=" + url.QueryEscape(r.TeamID)
	}
	return address
}

func (h *Handler) asCreated(r run.Run) wire.GenerationCreated {
	return wire.GenerationCreated{
		RequestID:         r.ID,
		Status:            run.Pending,
		StatusURL:         h.statusURL(r),
		RetryAfterSeconds: int64(r.PollAfter / time.Second),
		EstimatedSeconds:  rest.WholeSecondsOrNull(r.Estimated),
		Created:           rest.Moment(r.Created),
	}
}
