package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"atelier/internal/base/dispatch"
	"atelier/internal/base/sqldb"
)

// local is the queue in a SQLite database.
type local struct {
	db       *sqldb.DB
	handlers []*Handler // the handlers of the current Run
	o        Options
	loop     *dispatch.Loop
	active   atomic.Bool // Run has been called and has not returned

	// mu guards attempts.
	mu       sync.Mutex
	attempts map[*attempt]struct{}
	working  sync.WaitGroup
}

// attempt is a job that runs in this process.
type attempt struct {
	Work
	handler *Handler
	cancel  context.CancelCauseFunc
	ended   <-chan struct{} // closed when the context of the attempt has ended
	lease   *time.Timer     // ends the attempt's context if the lease was not renewed in time
}

func newLocal(db *sqldb.DB, o Options) *local {
	return &local{
		db:       db,
		o:        o,
		loop:     dispatch.NewLoop(),
		attempts: map[*attempt]struct{}{},
	}
}

func (l *local) Add(ctx context.Context, tx *sqldb.Tx, j Job) (string, error) {
	if err := j.validate(); err != nil {
		return "", err
	}
	id, err := insertJob(ctx, tx, j)
	if err != nil {
		return "", fmt.Errorf("add %s job: %w", j.Kind, err)
	}
	tx.AfterCommit(l.loop.Wake)
	return id, nil
}

func (l *local) AddAll(ctx context.Context, tx *sqldb.Tx, jobs []Job) error {
	for _, j := range jobs {
		if _, err := l.Add(ctx, tx, j); err != nil {
			return err
		}
	}
	return nil
}

func (l *local) Ping(ctx context.Context) error { return readTable(ctx, l.db) }

func (l *local) Run(ctx context.Context, handlers []Handler) error {
	prepared, err := prepareHandlers(handlers)
	if err != nil {
		return err
	}
	if !l.active.CompareAndSwap(false, true) {
		return errRunning
	}
	defer l.active.Store(false)
	l.handlers = prepared

	// Attempts and the renewal of their leases continue after ctx ends.
	// Transactions are not cancelled either: a job that was claimed in the
	// table must also be started by this process.
	lasting := context.WithoutCancel(ctx)
	drained := make(chan struct{})
	var loops sync.WaitGroup
	loops.Go(func() { l.renewLeases(lasting, drained) })
	loops.Go(func() { l.deleteOld(lasting, ctx.Done()) })
	l.dispatch(lasting, ctx.Done())
	l.drainJobs()
	close(drained)
	loops.Wait()
	return nil
}

// dispatch starts due jobs until stop is closed.
func (l *local) dispatch(ctx context.Context, stop <-chan struct{}) {
	poll := time.NewTicker(l.o.Poll)
	defer poll.Stop()

	l.maintainJobs(ctx)
	l.loop.Run(stop, func() time.Duration {
		select {
		case <-poll.C:
			l.maintainJobs(ctx)
		default:
		}

		wait, err := l.startDue(ctx)
		if err != nil {
			l.o.Log.WarnContext(ctx, "could not claim jobs", "error", err)
		}
		return wait
	})
}

// maintainJobs takes over the jobs of dead workers and adds periodic jobs. It
// runs at regular intervals, because neither a dead worker nor a schedule can
// wake the loop.
func (l *local) maintainJobs(ctx context.Context) {
	var taken int64
	err := l.db.Write(ctx, func(tx *sqldb.Tx) error {
		taken = 0
		for _, h := range l.handlers {
			n, err := reclaimJobs(ctx, tx, h.Kind, len(h.Retry)+1)
			if err != nil {
				return err
			}
			taken += n
			if h.Every > 0 {
				if err := addPeriodic(ctx, tx, h.Kind, h.Every); err != nil {
					return err
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		l.o.Log.WarnContext(ctx, "job maintenance failed", "error", err)
	case taken > 0:
		l.o.Log.WarnContext(ctx, "took over the jobs of a lost worker", "jobs", taken)
	}
}

// startDue starts as many due jobs as there are free slots, and returns the
// time until more jobs may be due.
func (l *local) startDue(ctx context.Context) (wait time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := map[*Handler]int{}
	for a := range l.attempts {
		busy[a.handler]++
	}
	taken := map[*Handler][]Work{}
	err = l.db.Write(ctx, func(tx *sqldb.Tx) error {
		clear(taken)
		wait = l.o.Poll
		for _, h := range l.handlers {
			free := h.Parallel - busy[h]
			if free <= 0 {
				continue // the loop is woken when an attempt ends
			}
			var err error
			if taken[h], err = claimJobs(ctx, tx, h.Kind, free, tx.Now.Add(l.o.Lease)); err != nil {
				return err
			}
			if len(taken[h]) == free {
				continue
			}
			next, err := nextRun(ctx, tx, h.Kind)
			if err != nil {
				return err
			}
			if !next.IsZero() {
				wait = min(wait, next.Sub(tx.Now))
			}
		}
		return nil
	})
	if err != nil {
		return l.o.Poll, err
	}
	for h, works := range taken {
		for _, w := range works {
			l.startAttempt(ctx, h, w)
		}
	}
	return wait, nil
}

// startAttempt starts an attempt in a goroutine. The caller must hold l.mu.
func (l *local) startAttempt(ctx context.Context, h *Handler, w Work) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := context.WithTimeout(ctx, h.Timeout)
	a := &attempt{Work: w, handler: h, cancel: cancel, ended: ctx.Done()}
	a.lease = time.AfterFunc(l.o.Lease, func() { cancel(errLost) })
	l.attempts[a] = struct{}{}
	l.working.Go(func() {
		defer stop()
		defer l.endAttempt(a)
		l.runAttempt(ctx, a)
	})
}

// endAttempt releases the slot of an attempt.
func (l *local) endAttempt(a *attempt) {
	a.lease.Stop()
	a.cancel(nil)
	l.mu.Lock()
	delete(l.attempts, a)
	l.mu.Unlock()
	l.loop.Wake()
}

// runAttempt calls the handler and stores the outcome of the attempt.
func (l *local) runAttempt(ctx context.Context, a *attempt) {
	err := a.handler.callOnce(ctx, a.Work)
	o := a.handler.decideOutcome(a.Attempt, err, context.Cause(ctx))
	logOutcome(ctx, l.o.Log, a.Work, o)
	if o.state != running {
		l.recordOutcome(context.WithoutCancel(ctx), a.Work, o)
	}
}

// recordOutcome stores the outcome of an attempt. If the database is
// unavailable, it retries for the duration of a lease. After that another
// worker runs the job again.
func (l *local) recordOutcome(ctx context.Context, w Work, o outcome) {
	timeout := time.After(l.o.Lease)
	for {
		err := l.db.Write(ctx, func(tx *sqldb.Tx) error { return settleJob(ctx, tx, w, o) })
		if err == nil {
			return
		}
		select {
		case <-timeout:
			l.o.Log.ErrorContext(ctx, "could not store the result of a job", "kind", w.Kind, "job", w.ID, "error", err)
			return
		case <-time.After(l.o.Lease / 10):
		}
	}
}

// renewLeases periodically renews the leases of the running jobs until stop is
// closed.
func (l *local) renewLeases(ctx context.Context, stop <-chan struct{}) {
	beat := time.NewTicker(max(l.o.Lease/3, time.Millisecond))
	defer beat.Stop()
	for {
		select {
		case <-stop:
			return
		case <-beat.C:
		}
		if err := l.renewAll(ctx); err != nil {
			l.o.Log.WarnContext(ctx, "could not renew job leases", "error", err)
		}
	}
}

// renewAll renews the lease of every running job whose context has not ended.
// The other leases are left to expire: if a handler ignores the end of its
// context, another worker takes over the job.
func (l *local) renewAll(ctx context.Context) error {
	l.mu.Lock()
	var live []*attempt
	for a := range l.attempts {
		select {
		case <-a.ended:
		default:
			live = append(live, a)
		}
	}
	l.mu.Unlock()
	if len(live) == 0 {
		return nil
	}
	lost := map[*attempt]bool{}
	err := l.db.Write(ctx, func(tx *sqldb.Tx) error {
		clear(lost)
		for _, a := range live {
			held, err := renewLease(ctx, tx, a.Work, tx.Now.Add(l.o.Lease))
			if err != nil {
				return err
			}
			if !held {
				lost[a] = true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, a := range live {
		if lost[a] {
			a.cancel(errLost)
		} else {
			a.lease.Reset(l.o.Lease)
		}
	}
	return nil
}

// deleteOld periodically deletes finished jobs older than Options.Keep until
// stop is closed.
func (l *local) deleteOld(ctx context.Context, stop <-chan struct{}) {
	tick := time.NewTicker(min(l.o.Keep, time.Minute))
	defer tick.Stop()
	for {
		if err := l.deleteAllOld(ctx); err != nil {
			l.o.Log.WarnContext(ctx, "could not delete old jobs", "error", err)
		}
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

func (l *local) deleteAllOld(ctx context.Context) error {
	const batch = 1000 // keeps the transactions short
	for n := int64(batch); n == batch; {
		err := l.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			n, err = deleteFinished(ctx, tx, tx.Now.Add(-l.o.Keep), batch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// drainJobs waits for the running jobs to end. After Options.Drain it cancels
// the jobs that are still running.
func (l *local) drainJobs() {
	ended := make(chan struct{})
	go func() {
		l.working.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-time.After(l.o.Drain):
	}
	l.mu.Lock()
	for a := range l.attempts {
		a.cancel(errStopping)
	}
	l.mu.Unlock()
	<-ended
}
