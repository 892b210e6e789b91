// Package webhook delivers events about runs and other notices to receivers.
//
// An event is a row, written in the transaction that causes it. A Sender on any
// node claims it with a lease, posts it and records the outcome. Every request is
// signed as Standard Webhooks 1.0.0 with the secret of the account. The body of an
// event about a run is made at each attempt; a notice, which is not about a run,
// is stored with its body.
//
//	waiting ──2xx──▶ delivered
//	  ▲ │ ├──410──▶ gone
//	  │ │ └──schedule used up──▶ exhausted
//	  └─┘ any other failure
//
// An event is sent at least once, always with one webhook-id: a sender that dies
// between the receiver's answer and its record leaves a lease that expires, and
// the event is sent once more. The end of the lease is also its fencing token: a
// sender with an older lease records nothing.
//
// A redelivery by hand puts an event that has ended back to waiting for one
// attempt. If that attempt fails, the event returns to the state in which it
// had ended, which follows from its attempts.
//
// The receiver is not trusted. Connections are made to public addresses only,
// even if its name resolves to others; only the status of its response is
// stored.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// The states of an event as they are stored.
const (
	Waiting   = "waiting"   // for its next attempt
	Delivered = "delivered" // the receiver answered 2xx
	Exhausted = "exhausted" // every attempt of the schedule failed
	Gone      = "gone"      // the receiver answered 410: send no more attempts
)

// Event is the event of a run that has ended.
type Event struct {
	RunID     string
	AccountID string // the account whose secret signs the event
	URL       string // passed CheckURL when the run was created
}

// Add stores the event of a run that has just ended, in the transaction that
// ends it. A run has one event: adding a second is an error. Wake a sender of
// this process after the commit.
func Add(ctx context.Context, tx *sqldb.Tx, e Event) error {
	host, err := hostOf(e.URL)
	if err != nil {
		return fmt.Errorf("add event: %w", err)
	}
	if err := insertEvent(ctx, tx, newID(), host, e); err != nil {
		return fmt.Errorf("add event: %w", err)
	}
	return nil
}

// Notice is an event that is not about a run.
type Notice struct {
	AccountID string // the account whose secret signs the notice
	URL       string // passed CheckURL
	Body      []byte // the JSON that is posted
}

// AddNotice stores a notice in the transaction that causes it. Wake a sender of
// this process after the commit.
func AddNotice(ctx context.Context, tx *sqldb.Tx, n Notice) error {
	host, err := hostOf(n.URL)
	if err != nil {
		return fmt.Errorf("add notice: %w", err)
	}
	if len(n.Body) == 0 {
		return errors.New("add notice: the body is empty")
	}
	if err := insertNotice(ctx, tx, newID(), host, n); err != nil {
		return fmt.Errorf("add notice: %w", err)
	}
	return nil
}

// newID returns a webhook-id.
func newID() string { return "msg_" + ids.New() }

// hostOf returns the host that limits are counted for: with the port unless it
// is 443, since another port is another server. The name is the host of the
// address, in lower case.
func hostOf(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", errors.New("the address has no host") // without the error of the parser, which repeats the address
	}
	return strings.TrimSuffix(strings.ToLower(u.Host), ":443"), nil
}

// State is the state of the delivery of an event.
type State struct {
	// State is one of the stored states. An event that was delivered and is
	// being sent again by hand is Delivered all the same.
	State string
	// Attempts counts all attempts, including redeliveries by hand.
	Attempts int
}

// PublicState returns the public state: "pending" before the first attempt, "failing"
// between attempts, "delivered", "exhausted" or "gone".
func (s State) PublicState() string {
	switch {
	case s.State != Waiting:
		return s.State
	case s.Attempts == 0:
		return "pending"
	}
	return "failing"
}

// StateOf returns the state of a run's event, nil if it has none.
func StateOf(ctx context.Context, tx *sqldb.Tx, runID string) (*State, error) {
	s, err := readState(ctx, tx, runID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state of event: %w", err)
	}
	return &s, nil
}

// Attempt is one attempt to deliver an event.
type Attempt struct {
	ID         string
	At         time.Time
	StatusCode int // 0: no answer
	Duration   time.Duration
	Error      string // one of the words below; empty: delivered
}

// The reasons why an attempt failed. Only these words are stored: the text of an
// error could contain data of the receiver.
const (
	failTimeout  = "timeout"  // no answer in time
	failRefused  = "refused"  // no connection
	failDNS      = "dns"      // the name does not resolve
	failTLS      = "tls"      // TLS handshake failed, or invalid certificate
	failBlocked  = "blocked"  // the SSRF guard refuses the address
	failRedirect = "redirect" // redirects are not followed
	failStatus   = "status"   // the status is not 2xx
	failBody     = "body"     // the answer is not HTTP, too large or incomplete
	failInternal = "internal" // internal failure: nothing was sent
)

// Attempts returns the attempts of a run's event, newest first.
func Attempts(ctx context.Context, tx *sqldb.Tx, runID string) ([]Attempt, error) {
	all, err := listAttempts(ctx, tx, runID)
	if err != nil {
		return nil, fmt.Errorf("attempts of event: %w", err)
	}
	return all, nil
}

// Redeliver sends the event of a run once more, now. An event that waits is
// attempted at once and continues in its schedule; one that has ended gets a
// single attempt. While an attempt is in progress, no further one is made.
func Redeliver(ctx context.Context, tx *sqldb.Tx, runID string) error {
	found, err := makeDue(ctx, tx, runID)
	if err != nil {
		return fmt.Errorf("redeliver: %w", err)
	}
	if !found {
		return fault.New(fault.NotFound, "This run has no webhook event.")
	}
	return nil
}
