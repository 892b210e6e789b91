package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"
)

// GiveUp wraps cause in an error for a handler to return if its job must fail
// without further attempts, because another attempt would fail in the same way.
func GiveUp(cause error) error { return &giveUp{cause} }

type giveUp struct{ cause error }

func (g *giveUp) Error() string { return fmt.Sprintf("not retried: %v", g.cause) }
func (g *giveUp) Unwrap() error { return g.cause }

// The reasons why an attempt's context is cancelled.
var (
	errStopping = errors.New("the worker is shutting down")
	errLost     = errors.New("the lease of the job is lost")
)

// The states of a job in the table job.
const (
	waiting = "waiting"
	running = "running"
	done    = "done"
	failed  = "failed"
)

// outcome is the state of a job after an attempt.
type outcome struct {
	state string        // the new state; running means that another worker has taken over the job
	wait  time.Duration // time until the next attempt of a waiting job
	free  bool          // the attempt does not count, because the worker was shut down
	err   error
}

// decideOutcome returns the outcome of an attempt whose handler returned err.
// cause is the reason why its context was cancelled, or nil.
func (h *Handler) decideOutcome(attempt int, err, cause error) outcome {
	_, isGiveUp := errors.AsType[*giveUp](err)
	switch {
	case err == nil:
		return outcome{state: done}
	case errors.Is(cause, errLost):
		return outcome{state: running, err: err}
	case isGiveUp:
		return outcome{state: failed, err: err}
	case errors.Is(cause, errStopping):
		return outcome{state: waiting, free: true, err: err}
	case attempt > len(h.Retry):
		return outcome{state: failed, err: err}
	default:
		return outcome{state: waiting, wait: h.Retry[attempt-1], err: err}
	}
}

// callOnce calls the handler once. It returns a panic as an error.
func (h *Handler) callOnce(ctx context.Context, w Work) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, debug.Stack()}
		}
	}()
	return h.Do(ctx, w)
}

type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// logOutcome logs the outcome if the attempt failed.
func logOutcome(ctx context.Context, log *slog.Logger, w Work, o outcome) {
	if o.err == nil {
		return
	}
	log = log.With("kind", w.Kind, "job", w.ID, "attempt", w.Attempt, "error", o.err)
	if p, ok := errors.AsType[*panicked](o.err); ok {
		log = log.With("stack", string(p.stack))
	}
	switch {
	case o.state == failed:
		log.ErrorContext(ctx, "job failed")
	case o.state == running:
		log.WarnContext(ctx, "job was taken over by another worker")
	case o.free:
		log.InfoContext(ctx, "job returned to the queue")
	default:
		log.WarnContext(ctx, "job will be retried", "wait", o.wait)
	}
}

// maxErrorText is the maximum length in bytes of a stored error message.
const maxErrorText = 4 << 10

// errorText returns the error message in a form that both databases can store.
// PostgreSQL rejects zero bytes, and River stores the outcomes of many jobs at
// once, so one rejected message would make all of them fail.
func (o outcome) errorText() string {
	if o.err == nil {
		return ""
	}
	s := strings.ReplaceAll(o.err.Error(), "\x00", "")
	return strings.ToValidUTF8(s[:min(len(s), maxErrorText)], "")
}
