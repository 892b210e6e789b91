package runner

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
)

// Relay notifies other nodes of runs that this node cannot claim immediately.
// It also works on nodes without a runner.
type Relay struct {
	db      *sqldb.DB
	jobs    queue.Queue
	log     *slog.Logger
	notice  func(engine string) bool // NoticeQueued of the runner of this node; nil if the node has no runner
	pending chan string
}

// NewRelay returns a relay. notice is the NoticeQueued method of the runner of
// this node, or nil if the node has no runner.
func NewRelay(db *sqldb.DB, jobs queue.Queue, log *slog.Logger, notice func(engine string) bool) *Relay {
	return &Relay{
		db:      db,
		jobs:    jobs,
		log:     log,
		notice:  notice,
		pending: make(chan string, 1000),
	}
}

// RelayQueued must be called for every run that is queued on this node. If this
// node cannot claim the run immediately, other nodes are notified.
func (l *Relay) RelayQueued(engine string) {
	if l.notice != nil && l.notice(engine) || l.db.Pool() == nil {
		return
	}
	select {
	case l.pending <- engine:
	default: // too many notifications are pending; the other nodes find the run within a second
	}
}

// gather is how long notifications are collected before they are sent in one
// transaction.
const gather = 2 * time.Millisecond

// Run sends notifications to other nodes until ctx ends.
func (l *Relay) Run(ctx context.Context) {
	for {
		var tickets []queue.Job
		add := func(engine string) {
			tickets = append(tickets, queue.Job{Kind: TicketKind, Args: []byte(strconv.Quote(engine))})
		}
		select {
		case <-ctx.Done():
			return
		case one := <-l.pending:
			add(one)
		}
		for late := time.After(gather); len(tickets) < cap(l.pending); {
			select {
			case one := <-l.pending:
				add(one)
				continue
			case <-late:
			}
			break
		}
		err := l.db.Write(ctx, func(tx *sqldb.Tx) error { return l.jobs.AddAll(ctx, tx, tickets) })
		if err != nil && ctx.Err() == nil {
			l.log.Warn("could not notify other nodes of queued runs", "error", err)
		}
	}
}

// TicketKind is the kind of queue job that notifies a node of queued runs.
const TicketKind = "run-ticket"

// TicketHandler returns the queue handler for notifications of other nodes.
func (r *Runner) TicketHandler() queue.Handler {
	return queue.Handler{
		Kind: TicketKind, Timeout: time.Minute, Parallel: max(len(r.slotPools), 1),
		Do: func(ctx context.Context, w queue.Work) error {
			name, err := strconv.Unquote(string(w.Args))
			if err != nil {
				return queue.GiveUp(err)
			}
			r.OfferSlot(ctx, name)
			return nil
		},
	}
}
