// Package mail sends plain-text mail: over SMTP or, if no mail server is
// configured, to the standard error of the program.
//
// Messages are validated before they are sent, so that no part of a message can
// add a header or a recipient, or contain a terminal escape sequence.
package mail

import (
	"context"
	"errors"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Message is a mail to one recipient.
type Message struct {
	To      string // an e-mail address without a display name
	Subject string
	Text    string // lines end with \n
}

// Sender sends messages. It is safe for concurrent use.
type Sender interface {
	// Send returns nil if the mail server accepted the message. A permanent
	// error (see IsPermanent) means that this message will never be accepted;
	// after any other error the caller should retry. After a retry, the
	// recipient can get the message twice if the connection broke before the
	// server's response arrived.
	Send(ctx context.Context, m Message) error
}

// IsPermanent reports whether err means that every retry would fail too.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[permanent](err)
	return ok
}

// permanent wraps an error that would occur again at every retry.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

const (
	maxAddress = 254 // in bytes, from RFC 5321 section 4.5.3.1.3
	maxSubject = 200
	maxText    = 64 << 10
)

// CheckMessage returns a permanent error if the message is invalid. The error
// does not contain the text of the message.
func (m Message) CheckMessage() error {
	switch {
	case !isBareAddress(m.To):
		return permanent{errors.New("check mail: the recipient is not an e-mail address")}
	case m.Subject == "" || utf8.RuneCountInString(m.Subject) > maxSubject || !isPrintable(m.Subject, ""):
		return permanent{errors.New("check mail: the subject is empty, too long or not one line of text")}
	case m.Text == "" || len(m.Text) > maxText || !isPrintable(m.Text, "\n\t"):
		return permanent{errors.New("check mail: the text is empty, too long or not valid UTF-8")}
	}
	return nil
}

// isBareAddress reports whether s is an e-mail address without a display name.
// Addresses with a quoted local part are rejected, because a quoted part may
// contain almost any character.
func isBareAddress(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= maxAddress && isPrintable(s, "")
}

// isPrintable reports whether s is valid UTF-8 without control characters,
// except the characters in allowed. Line and paragraph separators count as
// control characters.
func isPrintable(s, allowed string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) && !strings.ContainsRune(allowed, r)
	})
}
