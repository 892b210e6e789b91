package backend

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
)

// Messages shown to people. They do not name the server.
const (
	messageUnavailable = "The tool's server cannot be reached. Try again later."
	messageBusy        = "The tool's server is busy. Try again later."
	messageRefused     = "The tool's server refused the request."
	messageBadResponse = "The tool's server sent an invalid response."
	messageTooLarge    = "The response of the tool's server is too large."
	messageFileFailed  = "A file of the tool's server could not be transferred."
	messageNoResult    = "The tool's server returned no result."
)

// Failures for responses that are invalid, too large, or without a result.
var (
	ErrBadResponse = engine.Fail(engine.Failed, messageBadResponse)
	ErrTooLarge    = engine.Fail(engine.Invalid, messageTooLarge)
	ErrNoResult    = engine.Fail(engine.Invalid, messageNoResult)
)

// CallFailure converts the error of a request to the engine.Error that the run
// fails with. An error that already is an engine.Error is returned unchanged.
// If ctx is cancelled, the result wraps ctx.Err().
func CallFailure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*engine.Error](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	if u, ok := errors.AsType[inputError](err); ok {
		return u.error
	}
	s, ok := errors.AsType[*Status](err)
	switch {
	case errors.Is(err, errTooLarge):
		return ErrTooLarge.WithCause(err)
	case errors.Is(err, errBadResponse), errors.Is(err, netguard.ErrBlocked): // the response is invalid or contains a forbidden URL, so a retry would fail again
		return ErrBadResponse.WithCause(err)
	case !ok:
		return engine.FailTransient(engine.Unavailable, messageUnavailable).WithCause(err)
	}
	switch s.Code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return engine.FailTransient(engine.Unavailable, messageBusy).WithCause(err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return engine.ErrMisconfigured.WithCause(err)
	}
	return engine.Fail(engine.Failed, messageRefused).WithCause(err)
}

// QueryFailure is CallFailure for requests that only read. It marks server
// errors (5xx) as transient, because such a request can be repeated without
// doing work twice.
func QueryFailure(ctx context.Context, err error) error {
	if _, told := errors.AsType[*engine.Error](err); told || ctx.Err() != nil {
		return CallFailure(ctx, err)
	}
	if s, ok := errors.AsType[*Status](err); ok && s.Code/100 == 5 {
		return engine.FailTransient(engine.Unavailable, messageBusy).WithCause(err)
	}
	return CallFailure(ctx, err)
}

// CancelFailure is CallFailure for requests that cancel work. It returns nil
// if the work is unknown or already done, and marks most other errors as
// transient.
func CancelFailure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return engine.FailTransient(engine.Unavailable, messageUnavailable).WithCause(err)
	}
	if s, ok := errors.AsType[*Status](err); ok && s.Code/100 == 4 {
		switch s.Code {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests:
		default:
			return nil // there is nothing to cancel
		}
	}
	return QueryFailure(ctx, err)
}

// remoteFailure converts the error of a host other than the model server, such
// as a file host. The error does not count as the model server being
// unavailable: the run is retried and then fails.
func remoteFailure(ctx context.Context, err error) error {
	if _, own := errors.AsType[inputError](err); own || ctx.Err() != nil || errors.Is(err, netguard.ErrBlocked) {
		return err
	}
	e := engine.FailTransient(engine.Failed, messageFileFailed)
	if s, ok := errors.AsType[*Status](err); ok {
		switch {
		case s.Code/100 == 5, s.Code == http.StatusTooManyRequests, s.Code == http.StatusRequestTimeout:
		default:
			e = engine.Fail(engine.Invalid, messageFileFailed)
		}
	}
	return e.WithCause(errors.New(err.Error())) // without *Status in the error chain, so that the other host's status is not mistaken for the model server's
}

// MayHaveArrived reports whether a failed request may have reached the server.
// A request that costs money may be repeated only if MayHaveArrived returns
// false.
func MayHaveArrived(err error) bool {
	if _, ok := errors.AsType[*Status](err); ok {
		return true
	}
	if errors.Is(err, netguard.ErrBlocked) {
		return false
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	return true
}

// serverDetails matches details that are removed from a server's messages
// before people see them.
var serverDetails = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+` + // URLs
	`|\bdata:[^\s"']+` + // data: URIs, which contain whole files
	`|(?:^|[\s"'=(])(?:[a-z]:)?[/\\][^\s"')]+` + // file paths, including a query, which may contain a signature
	`|(?:\b[\w-]+\.)+(?:internal|local|localdomain|lan|home|corp|intranet|svc)\b(?::\d+)?` +
	`|\[[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*\](?::\d+)?` +
	`|\bhost=\S+|\blocalhost(?::\d+)?\b|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b[\w-]+(?:\.[\w-]+)+:\d{2,5}\b`) // host names and IP addresses

// SanitizeText makes a server's message fit to be shown to people: one line of
// at most 300 characters, without URLs, host names and file paths.
func SanitizeText(text string) string {
	text = serverDetails.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), " …") // PostgreSQL stores no other text
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	const most = 300
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// FailWithText returns a failure whose message is general, followed by words,
// the server's own message, unless words is empty.
func FailWithText(code engine.Code, general, words string) *engine.Error {
	if words = SanitizeText(words); words != "" {
		general = strings.TrimSuffix(general, ".") + ": " + words
	}
	return engine.Fail(code, general)
}

// FastAPIDetail returns the message in the detail value of a FastAPI error:
// detail is either a string or a list of problems, one for each input. It
// returns "" for anything else.
func FastAPIDetail(detail json.RawMessage) string {
	var text string
	if json.Unmarshal(detail, &text) == nil {
		return text
	}
	var list []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(detail, &list) != nil {
		return ""
	}
	words := make([]string, len(list))
	for i, one := range list {
		words[i] = one.Msg
		if n := len(one.Loc); n > 0 && one.Msg != "" {
			if name, ok := one.Loc[n-1].(string); ok && name != "body" {
				words[i] = name + ": " + one.Msg
			}
		}
	}
	return strings.Join(words, "; ")
}
