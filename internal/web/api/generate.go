package api

import (
	"encoding/json"
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
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// smallBody is the size above which a request is refused for its rate before its
// body is read.
const smallBody = 1 << 20

func (s *Server) createGeneration(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	s.tellPolicy(w)
	if err := c.params.failed(); err != nil {
		return err
	}
	key, err := s.idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	defer s.Runs.Expect(c.caller.PersonID)()
	known := false
	if key != "" {
		if known, err = s.Runs.Known(r.Context(), c.caller.PersonID, key); err != nil {
			return err
		}
	}
	if err := s.refuseEarly(w, r, c.caller.PersonID, known); err != nil {
		return err
	}
	room := int64(math.MaxInt64)
	if !known {
		if room, err = s.roomForRun(r, c.caller.AccountID); err != nil {
			w.Header().Set("Connection", "close")
			return inPart(err, "body")
		}
	}
	s.takeLarge(w, r)
	f, err := s.receive(w, r, known, room)
	if err != nil {
		w.Header().Set("Connection", "close") // the rest of the body is not waited for
		return err
	}
	created, err := s.accept(r, c, f, key, known)
	if refused(err) || created.Replayed {
		s.Intake.Drop(r.Context(), f.files...)
	}
	if fault.Is(err, fault.StorageQuotaExceeded) && len(f.files) > 0 {
		err = inPart(err, "files")
	}
	if err != nil {
		return s.tellFull(w, err)
	}
	h := w.Header()
	h.Set("Retry-After", strconv.FormatInt(int64(created.PollAfter/time.Second), 10))
	if created.Replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	h.Set("RateLimit", rateLimit(created.Rooms))
	addVary(h, varies)
	send(w, http.StatusAccepted, created.Response)
	return nil
}

// roomForRun tells how many bytes a run can bring along, and refuses a form that
// brings more before it is read. A JSON body is small: whether the account has
// room for results is then decided with everything else.
func (s *Server) roomForRun(r *http.Request, accountID string) (room int64, err error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		return s.roomFor(r, accountID)
	}
	return math.MaxInt64, s.Space()
}

// refused tells whether a create was refused for sure. After any other failure
// the run may be there, and need its files; where it is not, they are swept.
func refused(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code != fault.Unavailable && f.Details["reason"] != "in_flight"
}

// accept makes a run of what was received, or finds the answer that its key
// got before.
func (s *Server) accept(r *http.Request, c *call, f form, key string, known bool) (generation.Created, error) {
	if err := httpd.WellFormed(f.payload, s.Limits.JSONDepth); err != nil {
		if known {
			return generation.Created{}, fault.New(fault.IdempotencyKeyConflict, "This Idempotency-Key was used with another request. Use a new one.")
		}
		return generation.Created{}, err
	}
	print, err := f.fingerprint(c.caller.AccountID)
	if err != nil {
		return generation.Created{}, fmt.Errorf("fingerprint: %w", err)
	}
	if known {
		created, found, err := s.Runs.Replay(r.Context(), c.caller.PersonID, key, print)
		if err != nil || found {
			return created, err
		}
		// It was forgotten in between, and the files were not kept.
		if len(f.digests) > 0 {
			return generation.Created{}, fault.New(fault.IdempotencyKeyConflict, "This Idempotency-Key has just expired. Send the request again.").With("reason", "in_flight")
		}
	}
	d, err := draftOf(f.payload)
	if err != nil {
		return generation.Created{}, err
	}
	d.Principal = c.caller
	d.Files = f.files
	d.Key = key
	d.Fingerprint = print
	return s.Runs.Create(r.Context(), d, func(made run.Run) ([]byte, error) { return json.Marshal(s.asCreated(made)) })
}

// refuseEarly refuses a request by what its headers say, so that nobody sends
// a large body for nothing.
func (s *Server) refuseEarly(w http.ResponseWriter, r *http.Request, personID string, known bool) error {
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		return nil
	}
	err := error(nil)
	if r.ContentLength > s.Limits.RequestBytes {
		err = tooLarge(s.Limits.RequestBytes)
	} else if !known {
		err = s.tellFull(w, s.Runs.Busy(r.Context(), personID))
	}
	if err != nil {
		w.Header().Set("Connection", "close")
	}
	return err
}

// idempotencyKey reads the header: visible characters of ASCII.
func (s *Server) idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	bad := len(values) > 1 || key == "" || len(key) > s.Limits.KeyLength
	for i := 0; i < len(key) && !bad; i++ {
		bad = key[i] <= ' ' || key[i] > '~'
	}
	if bad {
		return "", fault.New(fault.Invalid, fmt.Sprintf("An Idempotency-Key has 1 to %d visible ASCII characters.", s.Limits.KeyLength)).On("Idempotency-Key")
	}
	return key, nil
}

func (s *Server) previewCost(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	if err := c.params.failed(); err != nil {
		return err
	}
	body, err := decode[jsontext.Value](w, r, s.Limits)
	if err != nil {
		return err
	}
	d, err := draftOf(body)
	if err != nil {
		return err
	}
	d.Principal = c.caller
	cost, err := s.Runs.Price(r.Context(), d)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wire.CostPreview{
		TotalTokens:       cost.Tokens,
		FreeAllowanceUsed: cost.FreeAllowance,
		TokensPerResult:   cost.PerResult,
		EstimatedSeconds:  wholeSeconds(cost.Estimated),
		CanRun:            cost.Blocked == "",
		BlockingReason:    orNull(cost.Blocked),
	})
}

// The names of the rate windows of creates.
const minuteWindow, hourWindow = "minute", "hour"

func (s *Server) tellPolicy(w http.ResponseWriter) {
	w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=60, "%s";q=%d;w=3600`, minuteWindow, s.Runs.Settings.CreatePerMinute, hourWindow, s.Runs.Settings.CreatePerHour))
}

func rateLimit(rooms []ratelimit.Room) string {
	text := ""
	for i, name := range []string{minuteWindow, hourWindow} {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf(`"%s";r=%d;t=%d`, name, rooms[i].Left, fault.WholeSeconds(rooms[i].Reset))
	}
	return text
}

// tellFull tells a caller whose rate is used up for how long.
func (s *Server) tellFull(w http.ResponseWriter, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.RateLimited {
		full := minuteWindow
		if f.Details["window_seconds"] == fault.WholeSeconds(time.Hour) {
			full = hourWindow
		}
		w.Header().Set("RateLimit", fmt.Sprintf(`"%s";r=0;t=%d`, full, fault.WholeSeconds(f.RetryAfter)))
	}
	return err
}

// statusURL is where a run is asked for.
func (s *Server) statusURL(r run.Run) string {
	address := s.BaseURL + prefix + "/generate/" + r.ID
	if r.TeamID != "" {
		address += "?team_id=" + url.QueryEscape(r.TeamID)
	}
	return address
}

func (s *Server) asCreated(r run.Run) wire.GenerationCreated {
	return wire.GenerationCreated{
		RequestID:         r.ID,
		Status:            run.Pending,
		StatusURL:         s.statusURL(r),
		RetryAfterSeconds: int64(r.PollAfter / time.Second),
		EstimatedSeconds:  wholeSeconds(r.Estimated),
		Created:           moment(r.Created),
	}
}

// wholeSeconds is a span as the wire has it, null where nobody knows it.
func wholeSeconds(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	n := int64(d / time.Second)
	return &n
}
