package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Verifier verifies webhooks with the secrets of an account, as Standard
// Webhooks 1.0.0 specifies.
type Verifier struct {
	keys [][]byte
}

// ErrWebhook means that a webhook is not genuine, or too old.
var ErrWebhook = errors.New("the webhook cannot be verified")

// webhookTolerance is the largest difference between the time of a webhook and
// the local clock. An older webhook may be a copy that somebody has recorded.
const webhookTolerance = 5 * time.Minute

// NewVerifier returns a verifier for the secrets of an account (whsec_…, from
// Webhooks.GetSecret). During a rotation give it the new secret and the old one.
func NewVerifier(secrets ...string) (*Verifier, error) {
	if len(secrets) == 0 {
		return nil, errors.New("a webhook secret is required")
	}
	v := &Verifier{}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) < 16 {
			return nil, errors.New("the webhook secret is not whsec_ and a key in base64")
		}
		v.keys = append(v.keys, key)
	}
	return v, nil
}

// Verify returns nil if the headers prove that the service sent this body within
// the last five minutes. Pass the body as it arrived, byte by byte.
func (v *Verifier) Verify(header http.Header, body []byte) error {
	return v.verifyAt(header, body, time.Now())
}

func (v *Verifier) verifyAt(header http.Header, body []byte, now time.Time) error {
	id := header.Get("Webhook-Id")
	stamp := header.Get("Webhook-Timestamp")
	signatures := header.Get("Webhook-Signature")
	if id == "" || stamp == "" || signatures == "" {
		return fmt.Errorf("%w: the headers webhook-id, webhook-timestamp and webhook-signature are required", ErrWebhook)
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: the timestamp is invalid", ErrWebhook)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > webhookTolerance || age < -webhookTolerance {
		return fmt.Errorf("%w: its time differs from the clock by more than %v", ErrWebhook, webhookTolerance)
	}
	genuine := false
	for _, one := range strings.Fields(signatures) {
		text, found := strings.CutPrefix(one, "v1,")
		if !found {
			continue // another version of the signature
		}
		given, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue
		}
		for _, key := range v.keys {
			genuine = hmac.Equal(given, sign(key, id, stamp, body)) || genuine
		}
	}
	if !genuine {
		return fmt.Errorf("%w: no signature is right", ErrWebhook)
	}
	return nil
}

// sign computes the signature of a webhook.
func sign(key []byte, id, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// ReceivedWebhook is a verified webhook.
type ReceivedWebhook struct {
	// ID is the same each time that the event arrives: remember the ids that
	// you have handled.
	ID string
	// Type is generation.succeeded, generation.failed, generation.cancelled or
	// budget.reached; later versions of the service may send others.
	Type string
	// Body is the event as it arrived.
	Body []byte
	// Run is the run of a generation event; nil for other events.
	Run *RunRecord
	// Budget is the alert of a budget event; nil for other events.
	Budget *BudgetAlert
}

// maxWebhookBytes is the largest body that a handler reads.
const maxWebhookBytes = 8 << 20

// Handler returns an http.Handler that receives webhooks, verifies them and
// passes them to handle. It answers 204 if handle returns nil, and 500 if it
// returns an error, so that the service sends the event again. Webhooks that
// cannot be verified get 401. Return soon: the service waits 15 seconds.
func (v *Verifier) Handler(handle func(r *http.Request, d ReceivedWebhook) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "webhooks are sent with POST", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhookBytes))
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		if err := v.Verify(r.Header, body); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		delivery, err := ParseWebhook(r.Header, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := handle(r, delivery); err != nil {
			http.Error(w, "the event was not handled", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// ParseWebhook decodes a webhook that was verified before.
func ParseWebhook(header http.Header, body []byte) (ReceivedWebhook, error) {
	d := ReceivedWebhook{ID: header.Get("Webhook-Id"), Body: body}
	var event struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return d, fmt.Errorf("decode the webhook: %w", err)
	}
	d.Type = event.Type
	var into any
	switch {
	case strings.HasPrefix(event.Type, "generation."):
		d.Run = &RunRecord{}
		into = d.Run
	case event.Type == "budget.reached":
		d.Budget = &BudgetAlert{}
		into = d.Budget
	default:
		return d, nil
	}
	if err := json.Unmarshal(event.Data, into); err != nil {
		return d, fmt.Errorf("decode the webhook: %w", err)
	}
	return d, nil
}
