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

// Snooze, returned by a handler, has the job run again after d. The attempt
// does not count.
func Snooze(d time.Duration) error { return &snooze{max(d, 0)} }

type snooze struct{ wait time.Duration }

func (s *snooze) Error() string { return "snoozed for " + s.wait.String() }

// GiveUp, returned by a handler, fails the job at once: another attempt would
// end the same way.
func GiveUp(cause error) error { return &giveUp{cause} }

type giveUp struct{ cause error }

func (g *giveUp) Error() string { return fmt.Sprintf("given up: %v", g.cause) }
func (g *giveUp) Unwrap() error { return g.cause }

// Why the context of an attempt was ended before its time.
var (
	errCancelled = errors.New("the job was cancelled")
	errStopping  = errors.New("the worker is shutting down")
	errLost      = errors.New("the lease of the job is lost")
)

// The states of a job, as the table has them.
const (
	waiting   = "waiting"
	running   = "running"
	done      = "done"
	failed    = "failed"
	cancelled = "cancelled"
)

// outcome is what becomes of a job after an attempt.
type outcome struct {
	state string        // running: the job is somebody else's now
	wait  time.Duration // of a waiting job
	free  bool          // the attempt does not count
	err   error
}

// judge decides on an attempt that returned err. cause is why its context was
// ended before its time, nil if it was not.
func (h *Handler) judge(attempt int, err, cause error) outcome {
	snoozed, isSnooze := errors.AsType[*snooze](err)
	_, isGiveUp := errors.AsType[*giveUp](err)
	switch {
	case err == nil:
		return outcome{state: done}
	case errors.Is(cause, errCancelled):
		return outcome{state: cancelled, err: err}
	case errors.Is(cause, errLost):
		return outcome{state: running, err: err}
	case isSnooze:
		return outcome{state: waiting, wait: snoozed.wait, free: true}
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

// do makes one attempt. A panic is a failure of the attempt.
func (h *Handler) do(ctx context.Context, w Work) (err error) {
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

// report logs an outcome that someone may want to know about.
func report(ctx context.Context, log *slog.Logger, w Work, o outcome) {
	if o.err == nil || o.state == cancelled {
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
		log.WarnContext(ctx, "job lost to another worker")
	case o.free:
		log.InfoContext(ctx, "job handed back")
	default:
		log.WarnContext(ctx, "job will be tried again", "wait", o.wait)
	}
}

// maxErrorText bounds what is stored of an error.
const maxErrorText = 4 << 10

// text is the outcome's error as both databases can store it: PostgreSQL takes
// no zero bytes, and River writes the outcomes of many jobs at once, so that
// one refused text would hold up all of them.
func (o outcome) text() string {
	if o.err == nil {
		return ""
	}
	s := strings.ReplaceAll(o.err.Error(), "\x00", "")
	return strings.ToValidUTF8(s[:min(len(s), maxErrorText)], "")
}
