// Package person stores the people who use the service: their mail addresses
// and passwords, their identities at OpenID providers, the one-time links that
// were sent to them, and the notices on their account pages.
package person

import (
	"context"
	"errors"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Person is a person with an account.
type Person struct {
	ID            string
	Email         string
	EmailVerified bool
	// Suspended people are refused everywhere until the operator restores them.
	Suspended bool
	// Deleted people have no mail address and are suspended too.
	Deleted bool
	Created time.Time
	// SignedInBefore is the time of the sign-in on a device before the newest
	// one, the Unix epoch if there was none.
	SignedInBefore time.Time
	// Provider is the person's usual way to sign in: Password, or the name of
	// an OpenID provider.
	Provider string
}

// Password is the provider of people who sign in with a password of this
// service.
const Password = "password"

// Draft has the values of a new person.
type Draft struct {
	Email         string
	EmailVerified bool
	// PasswordHash is the result of HashPassword, which is slow on purpose and
	// therefore runs before the transaction. It is empty for people who sign in
	// with an OpenID provider.
	PasswordHash string
}

// Create adds a person. Two people cannot have the same mail address; case does
// not matter.
func Create(ctx context.Context, tx *sqldb.Tx, d Draft) (Person, error) {
	if err := CheckEmail(d.Email); err != nil {
		return Person{}, err
	}
	p := Person{
		ID:             ids.New(),
		Email:          d.Email,
		EmailVerified:  d.EmailVerified,
		Created:        tx.Now,
		SignedInBefore: time.Unix(0, 0).UTC(),
		Provider:       Password,
	}
	fresh, err := insertPerson(ctx, tx, p, d.PasswordHash)
	if err != nil {
		return Person{}, err
	}
	if !fresh {
		return Person{}, ErrEmailTaken
	}
	_, err = takeSetups(ctx, tx)
	return p, err
}

// ErrEmailTaken is the error for a mail address that another person has.
var ErrEmailTaken = fault.New(fault.Invalid, "Somebody with this address is here already.").On("email")

// ErrDeleted is the error for an action in the name of a deleted person.
var ErrDeleted = fault.New(fault.Unauthenticated, "This account was deleted.")

var errNobody = fault.New(fault.NotFound, "There is no such person here.")

// ByEmail returns the person with a mail address.
func ByEmail(ctx context.Context, tx *sqldb.Tx, email string) (Person, error) {
	p, err := findPerson(ctx, tx, "email_key", emailKey(email))
	if errors.Is(err, errNobody) || err == nil && p.Deleted {
		p = Person{}
		err = fault.New(fault.NotFound, "Nobody here has this address.")
	}
	return p, err
}

// ByID returns a person.
func ByID(ctx context.Context, tx *sqldb.Tx, id string) (Person, error) {
	return findPerson(ctx, tx, "id", id)
}

// List returns people who are not deleted, ordered by mail address and starting
// after afterEmail.
func List(ctx context.Context, tx *sqldb.Tx, afterEmail string, limit int) ([]Person, error) {
	return listPeople(ctx, tx, emailKey(afterEmail), limit)
}

// SetVerified marks a person's mail address as verified, if it is still their
// address. It reports whether the address was unverified before.
func SetVerified(ctx context.Context, tx *sqldb.Tx, id, email string) (news bool, err error) {
	return setVerified(ctx, tx, id, emailKey(email))
}

// SetEmail changes a person's mail address, or returns ErrEmailTaken. Links
// that were sent to the old address stop working.
func SetEmail(ctx context.Context, tx *sqldb.Tx, id, email string) error {
	if err := CheckEmail(email); err != nil {
		return err
	}
	if err := setEmail(ctx, tx, id, email); err != nil {
		return err
	}
	for _, kind := range []LinkKind{VerifyLink, ResetLink, EndDeviceLink} {
		if err := DeleteLinks(ctx, tx, kind, id); err != nil {
			return err
		}
	}
	return nil
}

// HasEmail reports whether the mail address is the person's, compared without
// case.
func (p Person) HasEmail(email string) bool {
	return !p.Deleted && emailKey(p.Email) == emailKey(email)
}

// MaskEmail returns a shortened mail address for records that are never erased.
// A reader who knows the address can recognise it.
func MaskEmail(email string) string {
	first, size := utf8.DecodeRuneInString(email)
	at := strings.LastIndexByte(email, '@')
	if size == 0 || at < size {
		return ""
	}
	return string(first) + "…" + email[at:]
}

// emailKey returns the form in which mail addresses are compared. Local parts
// are case-sensitive by RFC 5321 section 2.4, but not in practice.
func emailKey(email string) string { return strings.ToLower(email) }

// maxEmail is the longest path that mail can carry (RFC 5321 section 4.5.3.1.3).
const maxEmail = 254

// CheckEmail refuses text that cannot be a mail address.
func CheckEmail(email string) error {
	a, err := mail.ParseAddress(email)
	odd := func(r rune) bool { return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }
	if err != nil || a.Address != email || len(email) > maxEmail || !utf8.ValidString(email) || strings.ContainsFunc(email, odd) {
		return fault.New(fault.Invalid, "This is not a mail address.").On("email")
	}
	return nil
}
