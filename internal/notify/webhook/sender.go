package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/base/dispatch"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/sqldb"
)

const (
	pollInterval = time.Second // how often a sender queries the database for events that other nodes added

	// leaseMargin is how much longer a lease lasts than the timeout of an
	// attempt. recordTimeout is how long a sender retries to store the outcome;
	// it must be less than leaseMargin.
	leaseMargin   = 30 * time.Second
	recordTimeout = 20 * time.Second
)

// EventSource creates the bodies of events about runs.
type EventSource interface {
	// EventBody returns the JSON representation of a run that has ended. The
	// sender calls it at each attempt, so that links in the body have not
	// expired.
	EventBody(ctx context.Context, runID string) ([]byte, error)
}

// Options are the dependencies and settings of a Sender. The defaults are given
// in the comments.
type Options struct {
	DB      *sqldb.DB
	Secrets *Secrets
	// SecretMade, if not nil, is called when a secret is created for the first
	// event of an account, in the same transaction.
	SecretMade func(ctx context.Context, tx *sqldb.Tx, accountID string) error
	Guard      *Guard
	Events     EventSource
	// Loop is the loop that the sender runs. A loop can be created before the
	// sender, so that services that add events can wake it. The default is a
	// new loop, which only WakeSender wakes.
	Loop *dispatch.Loop
	Log  *slog.Logger // default: nothing is logged
	// Now returns the local time for the timestamps in requests, because
	// receivers compare them with their own clock. The due times of events use
	// the clock of the database.
	Now func() time.Time

	Timeout  time.Duration   // time limit of one attempt, including DNS; default 15 s
	Schedule []time.Duration // waiting times between attempts; default: none, so there is a single attempt
	Grace    time.Duration   // time that attempts in progress have to finish when Run ends; default 5 s
	Parallel int             // maximum number of concurrent attempts; default 64
	PerHost  int             // maximum number of concurrent attempts per host; default 4

	Metrics  prometheus.Registerer // default: metrics are not registered
	RootCAs  *x509.CertPool        // trusted root certificates; default: the system's root certificates
	Resolver *net.Resolver         // default: the system's resolver
}

// Sender delivers events. Several senders can use the same database.
type Sender struct {
	o         Options
	transport http.RoundTripper
	slots     *slots
	metrics   *metrics
	active    atomic.Bool // Run has been called and has not returned
	sending   sync.WaitGroup
}

// New returns a sender, which delivers nothing until Run is called.
func New(o Options) *Sender {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Loop == nil {
		o.Loop = dispatch.NewLoop()
	}
	o.Resolver = cmp.Or(o.Resolver, net.DefaultResolver)
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.Parallel = cmp.Or(o.Parallel, 64)
	o.PerHost = cmp.Or(o.PerHost, 4)
	c := &dialer{guard: o.Guard, resolver: o.Resolver, roots: o.RootCAs, connect: o.Timeout / 3}
	return &Sender{
		o:         o,
		transport: c.newTransport(),
		slots:     newSlots(o.Parallel, o.PerHost),
		metrics:   newMetrics(o.Metrics),
	}
}

// WakeSender makes the sender query the database for events immediately instead
// of at the next interval of one second.
func (s *Sender) WakeSender() { s.o.Loop.Wake() }

// Run delivers events until ctx ends. Attempts in progress then have the time
// Grace to finish. After that they are cancelled, and another sender delivers
// their events later. Run returns when all attempts have ended.
func (s *Sender) Run(ctx context.Context) error {
	if !s.active.CompareAndSwap(false, true) {
		return errors.New("send events: the sender is already running")
	}
	defer s.active.Store(false)
	// Attempts continue after ctx ends, and no transaction is cancelled: a
	// leased event must be sent or its lease released.
	lasting, cancelAttempts := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelAttempts()

	s.o.Loop.Run(ctx.Done(), func() time.Duration {
		wait, err := s.sendDue(lasting)
		if err != nil {
			s.o.Log.WarnContext(lasting, "could not claim webhook events", "error", err)
		}
		return wait
	})
	grace := time.AfterFunc(s.o.Grace, cancelAttempts)
	defer grace.Stop()
	s.sending.Wait()
	return nil
}

// sendDue starts an attempt for every due event for which a slot is free. It
// returns how long to wait before the next call.
func (s *Sender) sendDue(ctx context.Context) (wait time.Duration, err error) {
	if !s.slots.hasFree() {
		return pollInterval, nil // the end of an attempt wakes the sender
	}
	full, soon := s.slots.fullHosts(s.o.Now())
	wait = pollInterval
	var events []dueEvent
	err = s.o.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		events, err = dueEvents(ctx, tx, full, s.o.PerHost, s.o.Parallel*s.o.PerHost)
		return err
	})
	if err != nil {
		return pollInterval, fmt.Errorf("find due events: %w", err)
	}
	events, sooner := s.slots.takeSlots(s.o.Now(), events)
	if soon || sooner {
		wait = spacing
	}
	if len(events) == 0 {
		return wait, nil
	}
	leased, err := s.leaseEvents(ctx, events)
	for _, e := range events {
		i := slices.IndexFunc(leased, func(l dueEvent) bool { return l.id == e.id })
		if i < 0 {
			s.slots.releaseSlot(e.host) // another sender has leased the event
			continue
		}
		s.sending.Go(func() {
			defer s.WakeSender()
			defer s.slots.releaseSlot(e.host)
			s.deliverEvent(ctx, leased[i])
		})
	}
	return wait, err
}

// leaseEvents takes the leases of the given events, and returns the events for
// which it succeeded. The others are leased by another sender.
func (s *Sender) leaseEvents(ctx context.Context, events []dueEvent) (leased []dueEvent, err error) {
	// All senders lock rows in the same order, so that they cannot deadlock.
	events = slices.SortedFunc(slices.Values(events), func(a, b dueEvent) int { return strings.Compare(a.id, b.id) })
	err = s.o.DB.Write(ctx, func(tx *sqldb.Tx) error {
		leased = nil
		for _, e := range events {
			e.at = tx.Now
			e.until = tx.Now.Add(s.o.Timeout + leaseMargin)
			ok, err := takeLease(ctx, tx, e)
			if err != nil {
				return err
			}
			if ok {
				leased = append(leased, e)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lease events: %w", err)
	}
	return leased, nil
}

// deliverEvent makes an attempt to deliver an event and stores the outcome.
func (s *Sender) deliverEvent(ctx context.Context, e dueEvent) {
	o, err := s.attemptDelivery(ctx, e)
	if o.isDelivered() {
		failpoint.Hit("hook.after_2xx_before_record")
	}
	finish := func(ctx context.Context, tx *sqldb.Tx) error { return s.recordOutcome(ctx, tx, e, o) }
	if o.status == 0 && ctx.Err() != nil { // this process cancelled the attempt, so it is not a failure of the receiver
		finish = func(ctx context.Context, tx *sqldb.Tx) error { return endLease(ctx, tx, e) }
	} else {
		s.metrics.countAttempt(o)
		if err != nil {
			s.o.Log.ErrorContext(ctx, "webhook request could not be built", "event", e.id, "error", err)
		}
	}
	s.retryWrite(context.WithoutCancel(ctx), e, finish)
}

// retryWrite runs fn in a transaction and retries it for up to recordTimeout.
// If the outcome of an attempt cannot be stored, the event is sent again later.
func (s *Sender) retryWrite(ctx context.Context, e dueEvent, fn func(context.Context, *sqldb.Tx) error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	for {
		err := s.o.DB.Write(ctx, func(tx *sqldb.Tx) error { return fn(ctx, tx) })
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.o.Log.ErrorContext(ctx, "could not record the result of a webhook delivery; the event will be sent again", "event", e.id, "error", err)
			return
		case <-time.After(pollInterval):
		}
	}
}
