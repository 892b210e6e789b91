package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"atelier/internal/base/sqldb"
)

// local is the queue in the embedded database.
type local struct {
	db       *sqldb.DB
	handlers []*Handler
	o        Options
	wake     chan struct{} // holds one token: there may be something to do
	active   atomic.Bool   // Run is going on

	// mu is held from before jobs are taken in the table until they are in
	// attempts, so that a Cancel that found a job running finds it here too.
	mu       sync.Mutex
	attempts map[*attempt]struct{}
	working  sync.WaitGroup
}

// attempt is a job that this process is doing.
type attempt struct {
	Work
	handler *Handler
	cancel  context.CancelCauseFunc
	ended   <-chan struct{} // the context of the work has ended
	lease   *time.Timer     // ends the context when the lease could not be renewed
}

func newLocal(db *sqldb.DB, handlers []*Handler, o Options) *local {
	return &local{
		db:       db,
		handlers: handlers,
		o:        o,
		wake:     make(chan struct{}, 1),
		attempts: map[*attempt]struct{}{},
	}
}

func (l *local) Add(ctx context.Context, tx *sqldb.Tx, j Job) (string, error) {
	if err := j.check(); err != nil {
		return "", err
	}
	id, err := insert(ctx, tx, j)
	if err != nil {
		return "", fmt.Errorf("add %s job: %w", j.Kind, err)
	}
	tx.AfterCommit(l.signal)
	return id, nil
}

func (l *local) Cancel(ctx context.Context, id string) error {
	err := l.db.Write(ctx, func(tx *sqldb.Tx) error { return revoke(ctx, tx, id) })
	if err != nil {
		return fmt.Errorf("cancel job: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := range l.attempts {
		if a.ID == id {
			a.cancel(errCancelled)
		}
	}
	return nil
}

func (l *local) Ping(ctx context.Context) error { return ping(ctx, l.db) }

func (l *local) Run(ctx context.Context) error {
	if len(l.handlers) == 0 {
		return errNoHandlers
	}
	if !l.active.CompareAndSwap(false, true) {
		return errRunning
	}
	defer l.active.Store(false)

	// Jobs and their leases outlive ctx, and no transaction of ours is broken
	// off: what was taken in the table must be started here.
	lasting := context.WithoutCancel(ctx)
	drained := make(chan struct{})
	var loops sync.WaitGroup
	loops.Go(func() { l.renew(lasting, drained) })
	loops.Go(func() { l.prune(lasting, ctx.Done()) })
	l.dispatch(lasting, ctx.Done())
	l.drain()
	close(drained)
	loops.Wait()
	return nil
}

// signal wakes the dispatcher.
func (l *local) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// dispatch starts jobs until stop is closed.
func (l *local) dispatch(ctx context.Context, stop <-chan struct{}) {
	poll := time.NewTicker(l.o.Poll)
	defer poll.Stop()
	l.tend(ctx)
	for {
		wait, err := l.take(ctx)
		if err != nil {
			l.o.Log.WarnContext(ctx, "cannot take jobs", "error", err)
		}
		select {
		case <-stop:
			return
		default: // the others may be ready as well
		}
		select {
		case <-stop:
			return
		case <-l.wake:
		case <-time.After(wait):
		case <-poll.C:
			l.tend(ctx)
		}
	}
}

// tend does what nobody wakes the dispatcher for.
func (l *local) tend(ctx context.Context) {
	var taken int64
	err := l.db.Write(ctx, func(tx *sqldb.Tx) error {
		taken = 0
		for _, h := range l.handlers {
			n, err := reclaim(ctx, tx, h.Kind, len(h.Retry)+1)
			if err != nil {
				return err
			}
			taken += n
			if h.Every > 0 {
				if err := repeat(ctx, tx, h.Kind, h.Every); err != nil {
					return err
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		l.o.Log.WarnContext(ctx, "cannot look after jobs", "error", err)
	case taken > 0:
		l.o.Log.WarnContext(ctx, "jobs of a lost worker taken over", "jobs", taken)
	}
}

// take starts as many due jobs as there are free places, and says how long it
// is until more may be due.
func (l *local) take(ctx context.Context) (wait time.Duration, err error) {
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
				continue // the end of a job wakes us
			}
			var err error
			if taken[h], err = take(ctx, tx, h.Kind, free, tx.Now.Add(l.o.Lease)); err != nil {
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
			l.start(ctx, h, w)
		}
	}
	return wait, nil
}

// start begins an attempt. The caller has mu.
func (l *local) start(ctx context.Context, h *Handler, w Work) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := context.WithTimeout(ctx, h.Timeout)
	a := &attempt{Work: w, handler: h, cancel: cancel, ended: ctx.Done()}
	a.lease = time.AfterFunc(l.o.Lease, func() { cancel(errLost) })
	l.attempts[a] = struct{}{}
	l.working.Go(func() {
		defer stop()
		defer l.leave(a)
		l.work(ctx, a)
	})
}

// leave frees the place of an attempt.
func (l *local) leave(a *attempt) {
	a.lease.Stop()
	a.cancel(nil)
	l.mu.Lock()
	delete(l.attempts, a)
	l.mu.Unlock()
	l.signal()
}

// work makes an attempt and writes down what came of it.
func (l *local) work(ctx context.Context, a *attempt) {
	err := a.handler.do(ctx, a.Work)
	o := a.handler.judge(a.Attempt, err, context.Cause(ctx))
	report(ctx, l.o.Log, a.Work, o)
	if o.state != running {
		l.settle(context.WithoutCancel(ctx), a.Work, o)
	}
}

// settle writes an outcome. While the database is away it tries again for as
// long as a lease; after that the job is run once more.
func (l *local) settle(ctx context.Context, w Work, o outcome) {
	enough := time.After(l.o.Lease)
	for {
		err := l.db.Write(ctx, func(tx *sqldb.Tx) error { return settle(ctx, tx, w, o) })
		if err == nil {
			return
		}
		select {
		case <-enough:
			l.o.Log.ErrorContext(ctx, "cannot write the outcome of a job", "kind", w.Kind, "job", w.ID, "error", err)
			return
		case <-time.After(l.o.Lease / 10):
		}
	}
}

// renew keeps the leases of the running jobs until stop is closed.
func (l *local) renew(ctx context.Context, stop <-chan struct{}) {
	beat := time.NewTicker(max(l.o.Lease/3, time.Millisecond))
	defer beat.Stop()
	for {
		select {
		case <-stop:
			return
		case <-beat.C:
		}
		if err := l.renewAll(ctx); err != nil {
			l.o.Log.WarnContext(ctx, "cannot renew leases", "error", err)
		}
	}
}

// renewAll renews the lease of every running job whose context has not ended.
// The others get no more time: should a handler ignore its context, the job
// goes to another worker when the lease is over.
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
	why := map[*attempt]error{}
	err := l.db.Write(ctx, func(tx *sqldb.Tx) error {
		clear(why)
		for _, a := range live {
			held, cancel, err := renew(ctx, tx, a.Work, tx.Now.Add(l.o.Lease))
			switch {
			case err != nil:
				return err
			case !held:
				why[a] = errLost
			case cancel:
				why[a] = errCancelled
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, a := range live {
		if why[a] != nil {
			a.cancel(why[a])
		} else {
			a.lease.Reset(l.o.Lease)
		}
	}
	return nil
}

// prune deletes old jobs until stop is closed.
func (l *local) prune(ctx context.Context, stop <-chan struct{}) {
	tick := time.NewTicker(min(l.o.Keep, time.Minute))
	defer tick.Stop()
	for {
		if err := l.pruneAll(ctx); err != nil {
			l.o.Log.WarnContext(ctx, "cannot delete old jobs", "error", err)
		}
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

func (l *local) pruneAll(ctx context.Context) error {
	const batch = 1000 // keeps the transactions short
	for n := int64(batch); n == batch; {
		err := l.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			n, err = prune(ctx, tx, tx.Now.Add(-l.o.Keep), batch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// drain waits for the running jobs, and ends them when they take too long.
func (l *local) drain() {
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
