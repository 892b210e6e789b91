// Package webhook tells receivers that runs have ended, and whatever else has
// happened to an account.
//
// An event is a row, written in the transaction that gives a reason for it. A
// Sender on any node claims it with a lease, posts it and records what came of
// it. Everything is signed as Standard Webhooks 1.0.0 with the secret of the
// account. What the event of a run says is made at each attempt; a notice, which
// is about no run, has its body from the beginning.
//
//	waiting ──2xx──▶ delivered
//	  ▲ │ ├──410──▶ gone
//	  │ │ └──schedule used up──▶ exhausted
//	  └─┘ any other failure
//
// An event is sent at least once, always with one webhook-id: a sender that dies
// between the receiver's answer and the record of it leaves a lease that runs
// out, and the event goes out once more. The end of a lease is also its fence:
// who comes with an older one records nothing.
//
// An attempt by hand puts an event that has ended back to waiting for one
// attempt. Where that fails the event ends as it had ended before, which its
// attempts tell.
//
// The receiver is a stranger. It is reached at public addresses only, whatever
// its name resolves to; nothing of its answer is kept but the status.
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
	Gone      = "gone"      // the receiver answered 410: it wants no more
)

// Event asks for a run's end to be told.
type Event struct {
	RunID     string
	AccountID string // whose secret signs it
	URL       string // as CheckURL let it pass when the run was created
}

// Add writes the event of a run that has just ended, in the transaction that
// ends it. A run has one: adding a second is an error. Wake a sender of this
// process once the transaction is committed.
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

// Notice asks for something to be told that is not about a run.
type Notice struct {
	AccountID string // whose secret signs it
	URL       string // as CheckURL let it pass
	Body      []byte // what is posted, as it is
}

// AddNotice writes a notice in the transaction that gives a reason for it. Wake
// a sender of this process once the transaction is committed.
func AddNotice(ctx context.Context, tx *sqldb.Tx, n Notice) error {
	host, err := hostOf(n.URL)
	if err != nil {
		return fmt.Errorf("add notice: %w", err)
	}
	if len(n.Body) == 0 {
		return errors.New("add notice: it says nothing")
	}
	if err := insertNotice(ctx, tx, newID(), host, n); err != nil {
		return fmt.Errorf("add notice: %w", err)
	}
	return nil
}

// newID makes a webhook-id.
func newID() string { return "msg_" + ids.New() }

// hostOf names the receiver that limits are counted for: the host, and the
// port where it is not the usual one, since behind another port is another
// server. The name is how the address itself has it, in lower case.
func hostOf(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", errors.New("the address has no host") // the parser's text repeats the address
	}
	return strings.TrimSuffix(strings.ToLower(u.Host), ":443"), nil
}

// State is how far an event has come.
type State struct {
	// State is one of the stored states. An event that was delivered and is
	// being sent again by hand is Delivered all the same.
	State string
	// Attempts are all that were made, those by hand included.
	Attempts int
}

// Word is the state for the outside: "pending" before the first attempt,
// "failing" between attempts, "delivered", "exhausted" or "gone".
func (s State) Word() string {
	switch {
	case s.State != Waiting:
		return s.State
	case s.Attempts == 0:
		return "pending"
	}
	return "failing"
}

// StateOf gives the state of a run's event, nil where it has none.
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

// Attempt is one try to deliver.
type Attempt struct {
	ID         string
	At         time.Time
	StatusCode int // 0: there was no answer
	Duration   time.Duration
	Error      string // one of the words below, empty where it was delivered
}

// Why an attempt failed. These words are all that is kept of a failure: an
// error's text could hold what a receiver sent.
const (
	failTimeout  = "timeout"  // no answer in time
	failRefused  = "refused"  // no connection
	failDNS      = "dns"      // the name does not resolve
	failTLS      = "tls"      // no agreement on a safe connection, or a bad certificate
	failBlocked  = "blocked"  // an address that we do not send to
	failRedirect = "redirect" // the answer points elsewhere, which is not followed
	failStatus   = "status"   // the answer is another than 2xx
	failBody     = "body"     // the answer is not HTTP, too large or broken off
	failInternal = "internal" // ours: nothing was sent
)

// Attempts gives the attempts for a run's event, newest first.
func Attempts(ctx context.Context, tx *sqldb.Tx, runID string) ([]Attempt, error) {
	all, err := listAttempts(ctx, tx, runID)
	if err != nil {
		return nil, fmt.Errorf("attempts of event: %w", err)
	}
	return all, nil
}

// Redeliver has the event of a run sent once more, now. One that waits for its
// next attempt makes it at once, and goes on in its schedule; one that has ended
// gets a single attempt. While one is being sent, that is the attempt asked for.
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
