// Package mail sends plain messages to people: over SMTP, or, where no mail
// server is set, to where the operator reads them.
//
// A message is checked before it goes anywhere: nothing in it can become
// another header, another recipient or a command to a terminal.
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
	// Send returns nil when the message was taken over. An error that is
	// Permanent says that the same message will never be; after any other one
	// another try makes sense. A message can arrive twice when the connection
	// broke before the server's answer came.
	Send(ctx context.Context, m Message) error
}

// Permanent tells whether another try would end the same way.
func Permanent(err error) bool {
	_, ok := errors.AsType[permanent](err)
	return ok
}

// permanent marks an error that comes back with every try.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

const (
	maxAddress = 254 // RFC 5321 section 4.5.3.1.3
	maxSubject = 200
	maxText    = 64 << 10
)

// Check says what keeps a message from being sent by anybody. Such errors are
// Permanent. They do not repeat the message.
func (m Message) Check() error {
	switch {
	case !isBareAddress(m.To):
		return permanent{errors.New("check mail: the recipient is no address")}
	case m.Subject == "" || utf8.RuneCountInString(m.Subject) > maxSubject || !isPrintable(m.Subject, ""):
		return permanent{errors.New("check mail: the subject is empty, too long or not one line of text")}
	case m.Text == "" || len(m.Text) > maxText || !isPrintable(m.Text, "\n\t"):
		return permanent{errors.New("check mail: the text is empty, too long or not text")}
	}
	return nil
}

// isBareAddress tells whether s is an address and nothing but that. Quoted local
// parts, which may hold nearly anything, are left out.
func isBareAddress(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= maxAddress && isPrintable(s, "")
}

// isPrintable tells whether s is text without control characters but those
// allowed. Line and paragraph separators count as control characters.
func isPrintable(s, allowed string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) && !strings.ContainsRune(allowed, r)
	})
}
