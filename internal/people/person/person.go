// Package person stores the people who use the service: their e-mail addresses
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

// Person is a user of the service.
type Person struct {
	ID            string
	Email         string
	EmailVerified bool
	// Suspended means that the person is refused everywhere until the operator
	// reinstates them.
	Suspended bool
	// Deleted means that the person's data was erased. A deleted person has no
	// e-mail address and is also suspended.
	Deleted bool
	Created time.Time
	// SignedInBefore is the time of the sign-in on a device before the person's
	// most recent one, or the Unix epoch if there was none.
	SignedInBefore time.Time
	// Provider is the person's usual way of signing in: Password, or the name
	// of an OpenID provider.
	Provider string
}

// Password is the value of Provider for people who sign in with a password
// instead of an OpenID provider.
const Password = "password"

// Draft contains the values of a new person.
type Draft struct {
	Email         string
	EmailVerified bool
	// PasswordHash is the result of HashPassword. Hashing is slow on purpose
	// and must be done before the transaction. PasswordHash is empty for people
	// who sign in with an OpenID provider.
	PasswordHash string
}

// Create adds a person. E-mail addresses are unique; upper and lower case make no
// difference.
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

// ErrEmailTaken is returned if another person has the e-mail address.
var ErrEmailTaken = fault.New(fault.Invalid, "An account with this e-mail address already exists.").On("email")

// ErrDeleted is returned for an action on behalf of a deleted person.
var ErrDeleted = fault.New(fault.Unauthenticated, "This account was deleted.")

var errNobody = fault.New(fault.NotFound, "There is no such person.")

// ByEmail returns the person with the given e-mail address; upper and lower case
// make no difference.
func ByEmail(ctx context.Context, tx *sqldb.Tx, email string) (Person, error) {
	p, err := findPerson(ctx, tx, "email_key", emailKey(email))
	if errors.Is(err, errNobody) || err == nil && p.Deleted {
		p = Person{}
		err = fault.New(fault.NotFound, "No account has this e-mail address.")
	}
	return p, err
}

// ByID returns the person with the given id, even if they are deleted.
func ByID(ctx context.Context, tx *sqldb.Tx, id string) (Person, error) {
	return findPerson(ctx, tx, "id", id)
}

// List returns at most limit people who are not deleted, ordered by mail
// address, starting after afterEmail. It returns only people whose e-mail
// address contains text; upper and lower case make no difference.
func List(ctx context.Context, tx *sqldb.Tx, text, afterEmail string, limit int) ([]Person, error) {
	return listPeople(ctx, tx, emailKey(text), emailKey(afterEmail), limit)
}

// SetVerified marks a person's e-mail address as verified, if email is still
// their address. It reports whether the address was not verified before.
func SetVerified(ctx context.Context, tx *sqldb.Tx, id, email string) (news bool, err error) {
	return setVerified(ctx, tx, id, emailKey(email))
}

// SetEmail changes a person's e-mail address. It returns ErrEmailTaken if another
// person has the new address. Links that were sent to the old address become
// invalid.
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

// HasEmail reports whether email is the person's e-mail address; upper and lower
// case make no difference.
func (p Person) HasEmail(email string) bool {
	return !p.Deleted && emailKey(p.Email) == emailKey(email)
}

// MaskEmail shortens an e-mail address to its first character, an ellipsis and the
// domain, for records that are never erased. A reader who already knows the
// address can recognise it.
func MaskEmail(email string) string {
	first, size := utf8.DecodeRuneInString(email)
	at := strings.LastIndexByte(email, '@')
	if size == 0 || at < size {
		return ""
	}
	return string(first) + "…" + email[at:]
}

// emailKey returns the lower-case form in which e-mail addresses are compared.
// Local parts are case-sensitive according to RFC 5321 section 2.4, but not in
// practice.
func emailKey(email string) string { return strings.ToLower(email) }

// maxEmail is the maximum length of an e-mail address, in bytes (RFC 5321 section
// 4.5.3.1.3).
const maxEmail = 254

// CheckEmail refuses a string that cannot be an e-mail address.
func CheckEmail(email string) error {
	a, err := mail.ParseAddress(email)
	odd := func(r rune) bool { return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }
	if err != nil || a.Address != email || len(email) > maxEmail || !utf8.ValidString(email) || strings.ContainsFunc(email, odd) {
		return fault.New(fault.Invalid, "This is not an e-mail address.").On("email")
	}
	return nil
}
