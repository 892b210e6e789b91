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
	pollInterval = time.Second // interval of the search for events of other nodes

	// leaseMargin is how long a lease lasts beyond the attempt; recordTimeout,
	// within it, is how long the outcome may take to be recorded.
	leaseMargin   = 30 * time.Second
	recordTimeout = 20 * time.Second
)

// EventSource makes the bodies of events about runs.
type EventSource interface {
	// EventBody returns the JSON of a run that has ended. A Sender calls it at each
	// attempt, so that links in it are fresh.
	EventBody(ctx context.Context, runID string) ([]byte, error)
}

// Options are the dependencies and settings of a Sender. Zero means the value
// in the comment.
type Options struct {
	DB      *sqldb.DB
	Secrets *Secrets
	// SecretMade is called, in the same transaction, for a secret that was
	// created with the first event of an account; nil: not called.
	SecretMade func(ctx context.Context, tx *sqldb.Tx, accountID string) error
	Guard      *Guard
	Events     EventSource
	// Loop is woken after events were added; nil: only WakeSender wakes the sender.
	Loop *dispatch.Loop
	Log  *slog.Logger // none
	// Now is the clock of this machine. Attempts are stamped with it, since
	// receivers compare the stamp with their own clock; due times follow the
	// clock of the database.
	Now func() time.Time

	Timeout  time.Duration   // of one attempt, DNS included: 15 s
	Schedule []time.Duration // the waits between attempts: none, a single attempt
	Grace    time.Duration   // for attempts in progress when Run ends: 5 s
	Parallel int             // concurrent attempts: 64
	PerHost  int             // concurrent attempts per host: 4

	Metrics  prometheus.Registerer // none
	RootCAs  *x509.CertPool        // of receivers: the roots of the system
	Resolver *net.Resolver         // the resolver of the system
}

// Sender delivers events. Any number of senders can share a database.
type Sender struct {
	o         Options
	transport http.RoundTripper
	slots     *slots
	metrics   *metrics
	loop      *dispatch.Loop
	active    atomic.Bool // Run has been called
	sending   sync.WaitGroup
}

// New returns a sender.
func New(o Options) *Sender {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Resolver = cmp.Or(o.Resolver, net.DefaultResolver)
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	if o.Loop == nil {
		o.Loop = dispatch.NewLoop()
	}
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.Parallel = cmp.Or(o.Parallel, 64)
	o.PerHost = cmp.Or(o.PerHost, 4)
	c := &dialer{guard: o.Guard, resolver: o.Resolver, roots: o.RootCAs, connect: o.Timeout / 3}
	return &Sender{
		o:         o,
		transport: c.newTransport(),
		slots:     newSlots(o.Parallel, o.PerHost),
		metrics:   newMetrics(o.Metrics),
		loop:      o.Loop,
	}
}

// WakeSender makes the sender look for events now. Events of other nodes are found
// within a second without it.
func (s *Sender) WakeSender() { s.loop.Wake() }

// Run sends events until ctx ends. Attempts in progress then have Grace to
// finish; the rest are cancelled and left to the next sender. Run returns when
// all have ended.
func (s *Sender) Run(ctx context.Context) error {
	if !s.active.CompareAndSwap(false, true) {
		return errors.New("send events: the sender is running already")
	}
	defer s.active.Store(false)
	// Attempts outlive ctx, and no transaction is interrupted: a leased event must be
	// sent or released.
	lasting, cancelAttempts := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelAttempts()

	s.loop.Run(ctx.Done(), func() time.Duration {
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

// sendDue starts an attempt for every event that is due and has a slot, and
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
		return pollInterval, fmt.Errorf("look for events: %w", err)
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
			s.slots.releaseSlot(e.host) // another sender has the event
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

// leaseEvents takes leases on events, and returns the events that were still available.
func (s *Sender) leaseEvents(ctx context.Context, events []dueEvent) (leased []dueEvent, err error) {
	// All senders lock rows in one order, so that there is no deadlock.
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

// deliverEvent makes an attempt and records its outcome.
func (s *Sender) deliverEvent(ctx context.Context, e dueEvent) {
	o, err := s.attemptDelivery(ctx, e)
	if o.isDelivered() {
		failpoint.Hit("hook.after_2xx_before_record")
	}
	finish := func(ctx context.Context, tx *sqldb.Tx) error { return s.recordOutcome(ctx, tx, e, o) }
	if o.status == 0 && ctx.Err() != nil { // cancelled here: the receiver did not fail
		finish = func(ctx context.Context, tx *sqldb.Tx) error { return endLease(ctx, tx, e) }
	} else {
		s.metrics.countAttempt(o)
		if err != nil {
			s.o.Log.ErrorContext(ctx, "webhook request could not be built", "event", e.id, "error", err)
		}
	}
	s.retryWrite(context.WithoutCancel(ctx), e, finish)
}

// retryWrite repeats a failed write until recordTimeout: an event whose outcome
// is not recorded is sent again.
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
