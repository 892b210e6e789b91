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

// What people are told. They name no server.
const (
	away    = "The tool's server cannot be reached."
	busy    = "The tool's server is busy."
	refused = "The tool's server did not take the request."
	garbled = "The tool's server answered something that is not understood."
	huge    = "The tool's server answered more than can be taken."
	stray   = "A file that the tool's server named could not be transferred."
	nothing = "The tool's server gave no result."
)

// Answers that make no sense, are too much, or give nothing.
var (
	ErrGarbled = engine.Fail(engine.Failed, garbled)
	ErrHuge    = engine.Fail(engine.Invalid, huge)
	ErrNothing = engine.Fail(engine.Invalid, nothing)
)

// Failure says what an error of a call means for the run. The end of ctx, and
// what is a failure already, stay as they are.
func Failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*engine.Error](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	if u, ok := errors.AsType[unread](err); ok {
		return u.error
	}
	s, ok := errors.AsType[*Status](err)
	switch {
	case errors.Is(err, errTooLarge):
		return ErrHuge.Because(err)
	case errors.Is(err, errGarbage), errors.Is(err, netguard.ErrBlocked): // an address that stays what it is
		return ErrGarbled.Because(err)
	case !ok:
		return engine.Again(engine.Unavailable, away).Because(err)
	}
	switch s.Code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return engine.Again(engine.Unavailable, busy).Because(err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return engine.ErrMisconfigured.Because(err)
	}
	return engine.Fail(engine.Failed, refused).Because(err)
}

// Asked is Failure for a question: one that a server broke down over may be put
// again, and nothing is done twice.
func Asked(ctx context.Context, err error) error {
	if _, told := errors.AsType[*engine.Error](err); told || ctx.Err() != nil {
		return Failure(ctx, err)
	}
	if s, ok := errors.AsType[*Status](err); ok && s.Code/100 == 5 {
		return engine.Again(engine.Unavailable, busy).Because(err)
	}
	return Failure(ctx, err)
}

// Ended is Failure for taking work back, by whoever has time for it: what the
// server does not know, or has done, is no error, and all else that may pass is
// worth another try.
func Ended(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return engine.Again(engine.Unavailable, away).Because(err)
	}
	if s, ok := errors.AsType[*Status](err); ok && s.Code/100 == 4 {
		switch s.Code {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests:
		default:
			return nil // there is nothing that it would end
		}
	}
	return Asked(ctx, err)
}

// stranger says what an error of a host means that the server named. The server
// is not away because somebody else is: the run is tried again, and fails then.
func stranger(ctx context.Context, err error) error {
	if _, own := errors.AsType[unread](err); own || ctx.Err() != nil || errors.Is(err, netguard.ErrBlocked) {
		return err
	}
	e := engine.Again(engine.Failed, stray)
	if s, ok := errors.AsType[*Status](err); ok {
		switch {
		case s.Code/100 == 5, s.Code == http.StatusTooManyRequests, s.Code == http.StatusRequestTimeout:
		default:
			e = engine.Fail(engine.Invalid, stray)
		}
	}
	return e.Because(errors.New(err.Error())) // its status is none of the server's
}

// Sent tells whether a call that failed may have reached the server. Only what
// surely did not may be sent again where doing it twice costs somebody.
func Sent(err error) bool {
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

// places are what a server's own words may name that people need not know.
var places = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+` + // URLs
	`|\bdata:[^\s"']+` + // whole files
	`|(?:^|[\s"'=(])(?:[a-z]:)?[/\\][^\s"')]+` + // paths, with the query that may hold a signature
	`|(?:\b[\w-]+\.)+(?:internal|local|localdomain|lan|home|corp|intranet|svc)\b(?::\d+)?` +
	`|\[[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*\](?::\d+)?` +
	`|\bhost=\S+|\blocalhost(?::\d+)?\b|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b[\w-]+(?:\.[\w-]+)+:\d{2,5}\b`) // servers

// Say makes a server's own words fit to be shown: one line, not long, without
// addresses and paths. "" stays "".
func Say(text string) string {
	text = places.ReplaceAllString(text, " …")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	const most = 300
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// Told is a failure with the server's own words, where there are any.
func Told(code engine.Code, general, words string) *engine.Error {
	if words = Say(words); words != "" {
		general = strings.TrimSuffix(general, ".") + ": " + words
	}
	return engine.Fail(code, general)
}

// Detail gives the words of the detail that servers made with FastAPI answer
// with: a text, or a list of what is wrong with which input. "" where it is
// neither.
func Detail(detail json.RawMessage) string {
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
