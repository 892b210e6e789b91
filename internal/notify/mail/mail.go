// Package mail sends plain-text mail to people: over SMTP, or, if no mail
// server is set, to the standard error of the program.
//
// A message is checked before it is sent: no part of it can become another
// header, another recipient or a terminal command.
package mail

import (
	"context"
	"errors"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Message is one mail to one person.
type Message struct {
	To      string // a bare address
	Subject string
	Text    string // lines end with \n
}

// Sender sends messages. It is safe for concurrent use.
type Sender interface {
	// Send returns nil when the message was accepted. A permanent error (see
	// IsPermanent) means that the same message will never be accepted; after
	// any other error a retry makes sense. A message can arrive twice if the
	// connection broke before the response of the server arrived.
	Send(ctx context.Context, m Message) error
}

// IsPermanent reports whether a retry would fail the same way.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[permanent](err)
	return ok
}

// permanent marks an error that every retry repeats.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

const (
	maxAddress = 254 // RFC 5321 section 4.5.3.1.3
	maxSubject = 200
	maxText    = 64 << 10
)

// CheckMessage returns the reason why no sender could send the message, or nil.
// Such errors are permanent. They do not contain the text of the message.
func (m Message) CheckMessage() error {
	switch {
	case !isBareAddress(m.To):
		return permanent{errors.New("check mail: the recipient is not an address")}
	case m.Subject == "" || utf8.RuneCountInString(m.Subject) > maxSubject || !isPrintable(m.Subject, ""):
		return permanent{errors.New("check mail: the subject is empty, too long or not one line of text")}
	case m.Text == "" || len(m.Text) > maxText || !isPrintable(m.Text, "\n\t"):
		return permanent{errors.New("check mail: the text is empty, too long or not text")}
	}
	return nil
}

// isBareAddress reports whether s is an address and nothing else. Quoted local
// parts, which may contain nearly anything, are refused.
func isBareAddress(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= maxAddress && isPrintable(s, "")
}

// isPrintable reports whether s is text without control characters except the
// allowed ones. Line and paragraph separators count as control characters.
func isPrintable(s, allowed string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) && !strings.ContainsRune(allowed, r)
	})
}
