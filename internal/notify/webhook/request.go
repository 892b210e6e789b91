package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"atelier/internal/base/sqldb"
)

const (
	userAgent     = "Atelier-Webhooks/1"
	maxAnswer     = 64 << 10 // maximum number of bytes of a response body that are read; they are discarded
	maxRetryAfter = 24 * time.Hour
)

// outcome is the result of an attempt to deliver an event.
type outcome struct {
	status     int    // HTTP status of the response; 0 if there was none
	word       string // reason for the failure, such as failTimeout; empty if delivered
	took       time.Duration
	retryAfter time.Duration // waiting time that the receiver requested with Retry-After
}

func (o outcome) isDelivered() bool { return o.status >= 200 && o.status <= 299 }

// attemptDelivery sends an event once. err is set only for internal failures
// and is intended for the log.
func (s *Sender) attemptDelivery(ctx context.Context, e dueEvent) (o outcome, err error) {
	defer func() {
		if p := recover(); p != nil { // a panic in one attempt must not stop the delivery of other events
			o = outcome{word: failInternal}
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if s.o.Guard.CheckURL(e.url) != "" { // the allowed networks may have changed since the event was added
		return outcome{word: failBlocked}, nil
	}
	req, err := s.buildRequest(ctx, e)
	if err != nil {
		return outcome{word: failInternal}, err
	}
	began := s.o.Now()
	resp, err := s.transport.RoundTrip(req)
	o.took = s.o.Now().Sub(began)
	if err != nil {
		o.word = failureWord(ctx, err)
		return o, nil
	}
	defer resp.Body.Close()
	o.status = resp.StatusCode
	switch {
	case o.isDelivered():
	case o.status >= 300 && o.status <= 399:
		o.word = failRedirect
	default:
		o.word = failStatus
	}
	o.retryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), s.o.Now())
	// Only the status determines the outcome. The body is read, within the
	// timeout of the attempt, so that the receiver does not get a broken
	// connection. After a status 101 there is no body, and reading would
	// continue after ctx ends.
	if o.status >= 200 {
		_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	}
	return o, nil
}

// buildRequest returns the signed HTTP request for an event.
func (s *Sender) buildRequest(ctx context.Context, e dueEvent) (*http.Request, error) {
	body, err := s.eventBody(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	secrets, err := s.o.Secrets.signingSecrets(ctx, s.o.DB, e.accountID, s.o.SecretMade)
	if err != nil {
		return nil, err
	}
	now := s.o.Now()
	var signatures []string
	for _, secret := range secrets {
		hook, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return nil, errors.New("sign event: the secret is damaged") // the library's error could contain a part of the secret
		}
		one, err := hook.Sign(e.id, now, body)
		if err != nil {
			return nil, fmt.Errorf("sign event: %w", err)
		}
		signatures = append(signatures, one)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("create webhook request: the address is not valid") // the original error contains the URL
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set(standardwebhooks.HeaderWebhookID, e.id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return req, nil
}

// eventBody returns the body to send for an event. The body of an event about a
// run is generated anew for each attempt.
func (s *Sender) eventBody(ctx context.Context, e dueEvent) (body []byte, err error) {
	if e.runID != "" {
		return s.o.Events.EventBody(ctx, e.runID)
	}
	err = s.o.DB.Read(ctx, func(tx *sqldb.Tx) error {
		text, err := noticeBody(ctx, tx, e.id)
		body = []byte(text)
		return err
	})
	return body, err
}

// failureWord returns the reason why no response was received, such as
// failTimeout.
func failureWord(ctx context.Context, err error) string {
	step, failed := errors.AsType[*stepError](err)
	if failed && step.word == failBlocked {
		return failBlocked
	}
	if late, ok := errors.AsType[net.Error](err); ctx.Err() != nil || ok && late.Timeout() {
		return failTimeout
	}
	if failed {
		return step.word
	}
	return failBody
}

// parseRetryAfter parses a Retry-After header, which is a number of seconds or
// a date (RFC 9110 section 10.2.3). It returns the waiting time, at most
// maxRetryAfter, or 0 for an invalid value.
func parseRetryAfter(text string, now time.Time) time.Duration {
	if text == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
