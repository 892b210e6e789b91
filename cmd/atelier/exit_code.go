package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"atelier/client"
)

// The exit statuses of the program. Scripts rely on them: add new ones, and do
// not change the meaning of one. docs/cli.md has the table.
const (
	exitFailure     = 1   // any other failure
	exitUsage       = 2   // the command line or an input is invalid
	exitSignedOut   = 3   // no credential, or the service does not accept it
	exitForbidden   = 4   // not allowed, or not enough tokens
	exitNotFound    = 5   // the object does not exist
	exitRefused     = 6   // the service refused the request for another reason
	exitUnavailable = 7   // the service was not reached, or is busy
	exitRunFailed   = 8   // the run failed
	exitCancelled   = 9   // the run was cancelled
	exitInterrupted = 130 // Ctrl-C or SIGTERM
)

// usageError is the error for an invalid command line, after which the program
// exits with status 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// statusError is an error with an exit status of its own.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// exitStatus returns the exit status for the error of a command.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[statusError](err); ok {
		return e.status
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if e, ok := errors.AsType[*client.Error](err); ok {
		return exitStatusOfResponse(e.Status)
	}
	if errors.Is(err, client.ErrInvalidID) {
		return exitUsage
	}
	_, isURL := errors.AsType[*url.Error](err)
	_, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case isURL, isNetwork:
		return exitUnavailable
	}
	return exitFailure
}

// exitStatusOfResponse returns the exit status for an HTTP status of the
// service.
func exitStatusOfResponse(status int) int {
	switch status {
	case http.StatusUnauthorized:
		return exitSignedOut
	case http.StatusForbidden, http.StatusPaymentRequired:
		return exitForbidden
	case http.StatusNotFound, http.StatusGone:
		return exitNotFound
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return exitUnavailable
	}
	if status >= http.StatusInternalServerError {
		return exitUnavailable
	}
	return exitRefused
}

// explainError returns the message of an error for people. A service that cannot
// be reached is named by its address, without the request that failed.
func explainError(err error) string {
	text := err.Error()
	if failed, ok := errors.AsType[*url.Error](err); ok {
		u, problem := url.Parse(failed.URL)
		if problem != nil {
			return text
		}
		reason := failed.Err.Error()
		if operation, ok := errors.AsType[*net.OpError](failed.Err); ok {
			reason = operation.Err.Error()
		}
		if lookup, ok := errors.AsType[*net.DNSError](failed.Err); ok {
			reason = lookup.Err
		}
		text = strings.Replace(text, failed.Error(), fmt.Sprintf("%s://%s cannot be reached: %s", u.Scheme, u.Host, reason), 1)
	}
	if errors.Is(err, context.Canceled) && exitStatus(err) == exitInterrupted {
		return "interrupted"
	}
	return text
}
