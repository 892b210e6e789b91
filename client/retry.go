package client

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// RetryPolicy limits how often a request is sent, and sets the waits between
// attempts: the wait doubles each time, with a random part so that clients that
// failed together do not return together. A Retry-After of the service counts
// instead if it is longer. The zero value of a field means its default.
type RetryPolicy struct {
	// Attempts is the largest number of times that a request is sent; the
	// default is 10. 1 means that nothing is repeated.
	Attempts int
	// MaxTime is the time after which no attempt begins; the default is three
	// minutes. A Retry-After that ends later ends the call at once.
	MaxTime time.Duration
	// MinWait is the wait after the first attempt; the default is 200 ms.
	MinWait time.Duration
	// MaxWait is the longest wait that the client chooses itself; the default
	// is 5 seconds.
	MaxWait time.Duration
	// OnRetry, if set, is told of each failed attempt before the wait, for
	// example to show it to a person.
	OnRetry func(err error, wait time.Duration)
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.Attempts <= 0 {
		p.Attempts = 10
	}
	if p.MaxTime <= 0 {
		p.MaxTime = 3 * time.Minute
	}
	if p.MinWait <= 0 {
		p.MinWait = 200 * time.Millisecond
	}
	if p.MaxWait <= 0 {
		p.MaxWait = 5 * time.Second
	}
	return p
}

// backOff returns the wait after the given number of failed attempts.
func (p RetryPolicy) backOff(failed int) time.Duration {
	wait := p.MinWait << min(failed-1, 20)
	if wait > p.MaxWait || wait <= 0 {
		wait = p.MaxWait
	}
	return wait/2 + rand.N(wait/2+1)
}

// attempts counts the attempts of one call.
type attempts struct {
	policy RetryPolicy
	failed int
	start  time.Time
}

func (p RetryPolicy) newAttempts() *attempts {
	return &attempts{policy: p, start: time.Now()}
}

// wait waits before the next attempt. It returns err if there is to be none,
// and the error of the context if that ends first.
func (a *attempts) wait(ctx context.Context, err error) error {
	a.failed++
	if ctx.Err() != nil {
		return contextError(ctx, err)
	}
	if a.failed >= a.policy.Attempts {
		return err
	}
	wait := a.policy.backOff(a.failed)
	if e, ok := errors.AsType[*Error](err); ok && e.RetryAfter > wait {
		wait = e.RetryAfter
	}
	if time.Since(a.start)+wait > a.policy.MaxTime {
		return err
	}
	if a.policy.OnRetry != nil {
		a.policy.OnRetry(err, wait)
	}
	return sleep(ctx, wait)
}

// restart forgets earlier failures, after a step that succeeded.
func (a *attempts) restart() {
	a.failed = 0
	a.start = time.Now()
}

// sleep waits for a duration or until the context ends.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// contextError returns the reason why a context ended, with the last failure.
func contextError(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || errors.Is(err, cause) {
		return cause
	}
	return errors.Join(cause, err)
}

// mayRepeat reports whether a request that failed with err may be sent again,
// and whether that can help.
// safe says that a second delivery has no second effect.
func mayRepeat(err error, safe bool) bool {
	if _, final := errors.AsType[*finalError](err); final {
		return false
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return false
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return safe || neverSent(err)
	}
	switch {
	case e.Code == CodeAuthorizationPending, e.Code == CodeSlowDown: // answers to a poll, which has a rhythm of its own
		return false
	case e.Status == http.StatusRequestTimeout, e.Status == http.StatusTooManyRequests:
		return true
	case e.Status == http.StatusServiceUnavailable:
		return safe || e.RetryAfter > 0
	case e.Status >= 500:
		return safe
	}
	return e.Retryable && safe // for example a create whose first request is still in progress
}

// neverSent reports whether no connection was made, so that the request cannot
// have reached the service.
func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
