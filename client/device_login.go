package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DeviceLogin is a sign-in that a person approves in a browser (RFC 8628):
// show UserCode, open VerificationURL, then call Wait.
type DeviceLogin struct {
	DeviceCodes

	client   *Client
	interval time.Duration
	deadline time.Time
}

// ErrLoginExpired means that a sign-in was refused, or not approved in time.
var ErrLoginExpired = errors.New("the sign-in was refused or has expired: start again")

// StartDeviceLogin begins a sign-in. plugin is the kind of the calling app,
// which the person sees; "" for none. The client needs no credential for it.
func (c *Client) StartDeviceLogin(ctx context.Context, plugin string) (*DeviceLogin, error) {
	var draft DeviceStart
	if plugin != "" {
		draft.PluginKind = &plugin
	}
	codes, err := c.SignIn.StartDevice(ctx, draft)
	if err != nil {
		return nil, err
	}
	return &DeviceLogin{
		DeviceCodes: *codes,
		client:      c,
		interval:    max(time.Second, time.Duration(codes.Interval)*time.Second),
		deadline:    time.Now().Add(time.Duration(codes.ExpiresIn) * time.Second),
	}, nil
}

// Wait polls until the person has approved the sign-in, and returns the tokens
// and the person. It keeps the interval that the service asks for. It returns
// ErrLoginExpired if the person refuses, or does not answer in time.
//
// Give the tokens to a TokenStore for the Options of a new client.
func (l *DeviceLogin) Wait(ctx context.Context) (*SignInResult, error) {
	for {
		if time.Now().Add(l.interval).After(l.deadline) {
			return nil, ErrLoginExpired
		}
		if err := sleep(ctx, l.interval); err != nil {
			return nil, err
		}
		result, err := l.client.SignIn.PollDeviceByBody(ctx, DevicePoll{DeviceCode: l.DeviceCode})
		if err == nil {
			return result, nil
		}
		e, answered := errors.AsType[*Error](err)
		switch {
		case ctx.Err() != nil:
			return nil, contextError(ctx, err)
		case !answered && !mayRepeat(err, true):
			return nil, err
		case !answered: // a lost connection; RFC 8628, section 3.5 asks for longer waits then
			l.interval = min(2*l.interval, time.Minute)
		case e.Code == CodeAuthorizationPending:
		case e.Code == CodeSlowDown:
			l.slowDown(e)
		case e.Code == CodeDeviceCodeExpired:
			return nil, fmt.Errorf("%w (%s)", ErrLoginExpired, e.Message)
		case e.Retryable || e.Status >= 500:
			if err := sleep(ctx, e.RetryAfter); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

// slowDown takes over the interval of a SLOW_DOWN answer. Without one the
// interval grows by 5 seconds, as RFC 8628 says.
func (l *DeviceLogin) slowDown(e *Error) {
	if seconds, ok := e.Details["interval"].(float64); ok && seconds > 0 {
		l.interval = max(l.interval, time.Duration(seconds*float64(time.Second)))
		return
	}
	l.interval += 5 * time.Second
}
