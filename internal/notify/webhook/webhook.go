// Package webhook delivers events about runs, and other notices, to receivers
// by HTTP POST.
//
// An event is a row that is written in the transaction that causes the event. A
// Sender on any node leases the event, sends it and stores the outcome. Every
// request is signed according to Standard Webhooks 1.0.0 with the secret of the
// account. The body of an event about a run is generated anew at each attempt.
// A notice, which is an event that is not about a run, is stored with its body.
//
//	waiting ──2xx──▶ delivered
//	  ▲ │ ├──410──▶ gone
//	  │ │ └──schedule used up──▶ exhausted
//	  └─┘ any other failure
//
// An event is sent at least once, always with the same webhook-id. If a sender
// dies after the receiver has responded and before the outcome is stored, the
// lease expires and the event is sent again. The expiry time of a lease is also
// its fencing token: a sender whose lease was replaced stores nothing.
//
// A manual redelivery gives an event in a final state one more attempt. If that
// attempt fails, the event returns to its former state, which is derived from
// the earlier attempts.
//
// The receiver is not trusted. Connections are made only to public IP addresses
// and to networks that the operator allows, regardless of the addresses to
// which the host name resolves. Of the response, only the status is stored.
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
	Waiting   = "waiting"   // waiting for the next attempt
	Delivered = "delivered" // the receiver responded with 2xx
	Exhausted = "exhausted" // every scheduled attempt failed
	Gone      = "gone"      // the receiver responded with 410, so no further attempts are made
)

// Event is the webhook event of a run that has ended.
type Event struct {
	RunID     string
	AccountID string // the account whose secret signs the event
	URL       string // must have passed CheckURL when the run was created
}

// Add stores the event of a run that has ended, in the transaction that ends
// the run. A run has one event: adding a second is an error. The caller should
// call WakeSender after the commit.
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

// Notice is a webhook event that is not about a run.
type Notice struct {
	AccountID string // the account whose secret signs the notice
	URL       string // must have passed CheckURL
	Body      []byte // the JSON to send
}

// AddNotice stores a notice in the transaction that causes it. The caller
// should call WakeSender after the commit.
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

// newID returns a new value for the header webhook-id.
func newID() string { return "msg_" + ids.New() }

// hostOf returns the host of a URL in lower case, with the port unless it is
// 443. Limits apply per host and port, because another port is another server.
func hostOf(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", errors.New("the webhook URL has no host") // the parser's error is not returned, because it contains the URL
	}
	return strings.TrimSuffix(strings.ToLower(u.Host), ":443"), nil
}

// State is the delivery state of an event.
type State struct {
	// State is one of the stored states. It stays Delivered during a manual
	// redelivery of an event that was already delivered.
	State string
	// Attempts is the number of all attempts, including manual redeliveries.
	Attempts int
}

// PublicState returns the state for API responses: "pending" before the first
// attempt, "failing" between attempts, "delivered", "exhausted" or "gone".
func (s State) PublicState() string {
	switch {
	case s.State != Waiting:
		return s.State
	case s.Attempts == 0:
		return statePending
	}
	return stateFailing
}

// States returns the delivery states of the events of runs, by run id. It has no
// entry for a run without an event.
func States(ctx context.Context, tx *sqldb.Tx, runIDs ...string) (map[string]*State, error) {
	if len(runIDs) == 0 {
		return nil, nil
	}
	all, err := readStates(ctx, tx, runIDs)
	if err != nil {
		return nil, fmt.Errorf("read the states of events: %w", err)
	}
	return all, nil
}

// Attempt is one attempt to deliver an event.
type Attempt struct {
	ID         string
	At         time.Time
	StatusCode int // HTTP status of the response; 0 if there was none
	Duration   time.Duration
	Error      string // reason for the failure, such as "timeout"; empty if delivered
}

// The reasons why an attempt failed. Only these words are stored, because the
// message of an error could contain data from the receiver.
const (
	failTimeout  = "timeout"  // no response in time
	failRefused  = "refused"  // no connection could be established
	failDNS      = "dns"      // the host name does not resolve
	failTLS      = "tls"      // the TLS handshake failed, or the certificate is invalid
	failBlocked  = "blocked"  // the guard does not allow the URL or the IP address
	failRedirect = "redirect" // the response is a redirect, which is not followed
	failStatus   = "status"   // the status is not 2xx
	failBody     = "body"     // the response is not HTTP, too large or incomplete
	failInternal = "internal" // internal failure; nothing was sent
)

// Attempts returns the attempts to deliver a run's event, newest first.
func Attempts(ctx context.Context, tx *sqldb.Tx, runID string) ([]Attempt, error) {
	all, err := listAttempts(ctx, tx, runID)
	if err != nil {
		return nil, fmt.Errorf("list the attempts of an event: %w", err)
	}
	return all, nil
}

// Redeliver makes the event of a run due now. A waiting event gets its next
// scheduled attempt now; an event in a final state gets one more attempt. If an
// attempt is in progress, Redeliver has no effect.
func Redeliver(ctx context.Context, tx *sqldb.Tx, runID string) error {
	found, err := makeDue(ctx, tx, runID)
	if err != nil {
		return fmt.Errorf("redeliver event: %w", err)
	}
	if !found {
		return fault.New(fault.NotFound, "This run has no webhook event.")
	}
	return nil
}
