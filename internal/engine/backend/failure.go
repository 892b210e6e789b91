package backend

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"atelier/internal/border"
	"atelier/internal/engine"
)

// What people are told. They name no server.
const (
	away    = "The tool's server cannot be reached."
	busy    = "The tool's server is busy."
	refused = "The tool's server did not take the request."
	setup   = "This tool is not set up rightly. Tell the operator."
	garbled = "The tool's server answered something that is not understood."
	huge    = "The tool's server answered more than can be taken."
)

// ErrSetup is for a manifest or settings that the engine cannot work with.
var ErrSetup = engine.Fail(engine.Failed, setup)

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
	s, ok := errors.AsType[*Status](err)
	switch {
	case errors.Is(err, errTooLarge):
		return engine.Fail(engine.Invalid, huge).Because(err)
	case errors.Is(err, errGarbage), errors.Is(err, border.ErrBlocked): // an address that stays what it is
		return engine.Fail(engine.Failed, garbled).Because(err)
	case !ok:
		return engine.Again(engine.Unavailable, away).Because(err)
	}
	switch s.Code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return engine.Again(engine.Unavailable, busy).Because(err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrSetup.Because(err)
	}
	return engine.Fail(engine.Failed, refused).Because(err)
}

// Sent tells whether a call that failed may have reached the server. Only what
// surely did not may be sent again where doing it twice costs somebody.
func Sent(err error) bool {
	if _, ok := errors.AsType[*Status](err); ok {
		return true
	}
	if errors.Is(err, border.ErrBlocked) {
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
