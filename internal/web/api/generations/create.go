package generations

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// smallBody is the size in bytes above which the rate limit is checked before
// the request body is read.
const smallBody = 1 << 20

// createGeneration serves POST /api/v2/generate: it creates a run, or repeats
// the response to the earlier request with the same Idempotency-Key.
func (h *Handler) createGeneration(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	h.setRateLimitPolicy(w.Header())
	if err := call.Params.Err(); err != nil {
		return err
	}
	key, err := rest.ReadIdempotencyKey(r.Header, h.MaxKeyLength)
	if err != nil {
		return err
	}

	defer h.Runs.ExpectCreate(call.Principal.PersonID)()
	var used *run.Key // the earlier use of the idempotency key, if any
	if key != "" {
		if used, err = h.Runs.FindKey(r.Context(), call.Principal.PersonID, key); err != nil {
			return err
		}
	}
	isKnown := used != nil
	if err := h.refuseEarly(w, r, call.Principal.PersonID, isKnown); err != nil {
		return err
	}
	room := int64(math.MaxInt64)
	if !isKnown {
		if room, err = h.checkRoom(r, call.Principal.AccountID); err != nil {
			w.Header().Set("Connection", "close")
			return rest.InPart(err, "body")
		}
	}

	h.Files.ExtendDeadlines(w, r, h.Files.MaxRequestBytes)
	body, err := h.readBody(w, r, isKnown, room)
	if err != nil {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		return err
	}
	created, err := h.createRun(r, call, body, key, used)
	if rest.IsRefusal(err) || created.Replayed {
		h.Files.Intake.DiscardFiles(r.Context(), body.files...)
	}
	if fault.Is(err, fault.StorageQuotaExceeded) && len(body.files) > 0 {
		err = rest.InPart(err, "files")
	}
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

// checkRoom returns how many bytes of files the request may contain. It returns
// an error for a multipart request that is larger, before its body is read. A
// JSON body contains no files; whether the account has storage left for results
// is checked when the run is created.
func (h *Handler) checkRoom(r *http.Request, accountID string) (room int64, err error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		return h.Files.CheckRoom(r, accountID)
	}
	return math.MaxInt64, h.Files.Space()
}

// createRun creates a run from a request, or returns the run that was created
// with the same idempotency key.
func (h *Handler) createRun(r *http.Request, call *rest.Call, body requestBody, key string, used *run.Key) (generation.Created, error) {
	if err := httpd.CheckJSON(body.payload, h.JSON.Depth); err != nil {
		if used != nil {
			return generation.Created{}, fault.New(fault.IdempotencyKeyConflict, "This Idempotency-Key was used with another request. Use a new one.")
		}
		return generation.Created{}, err
	}
	fingerprint, err := body.computeFingerprint(call.Principal.AccountID)
	if err != nil {
		return generation.Created{}, fmt.Errorf("compute the fingerprint of the request: %w", err)
	}

	if used != nil {
		return h.Runs.ReplayCreate(r.Context(), call.Principal.PersonID, *used, fingerprint)
	}

	d, err := parseDraft(body.payload)
	if err != nil {
		return generation.Created{}, err
	}
	d.Principal = call.Principal
	d.Files = body.files
	d.Key = key
	d.Fingerprint = fingerprint
	return h.Runs.CreateRun(r.Context(), d)
}

// refuseEarly checks the headers of a request with a large body before the body
// is read, so that a client does not send the whole body of a request that is
// refused.
func (h *Handler) refuseEarly(w http.ResponseWriter, r *http.Request, personID string, isKnown bool) error {
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		return nil
	}

	var err error
	if r.ContentLength > h.Files.MaxRequestBytes {
		err = filebody.TooLarge(h.Files.MaxRequestBytes)
	} else if !isKnown {
		err = h.Runs.CheckRate(r.Context(), personID)
		setRateLimitExceeded(w.Header(), err)
	}
	if err != nil {
		w.Header().Set("Connection", "close")
	}
	return err
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
