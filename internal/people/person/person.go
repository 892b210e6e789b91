// Package person knows the people who use the service: their addresses and
// passwords, who they are at an OpenID provider, the one-time links they were
// sent and what they were told.
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

// Person is somebody with an account.
type Person struct {
	ID            string
	Email         string
	EmailVerified bool
	// Suspended people are refused everywhere until the operator restores them.
	Suspended bool
	// Deleted people are no more. They have no address, and are suspended too.
	Deleted bool
	Created time.Time
	// SignedInBefore is the sign-in on a device before the newest one, the Unix
	// epoch where there was none.
	SignedInBefore time.Time
	// Provider is how this person usually signs in: Password, or the name of an
	// OpenID provider.
	Provider string
}

// Password is the provider of people who sign in with a password of ours.
const Password = "password"

// Draft is what a new person brings.
type Draft struct {
	Email         string
	EmailVerified bool
	// PasswordHash comes from HashPassword, which is slow on purpose and so
	// runs before the transaction. People of an OpenID provider have none.
	PasswordHash string
}

// Create adds a person. An address belongs to one person, whatever its case.
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

// ErrEmailTaken is why an address cannot be given to a person.
var ErrEmailTaken = fault.New(fault.Invalid, "Somebody with this address is here already.").On("email")

// ErrDeleted is why nothing can be done any more in a person's name.
var ErrDeleted = fault.New(fault.Unauthenticated, "This account was deleted.")

var errNobody = fault.New(fault.NotFound, "There is no such person here.")

// ByEmail returns a person by address.
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

// List returns people who are not deleted by their addresses, from the one after
// an address on.
func List(ctx context.Context, tx *sqldb.Tx, afterEmail string, limit int) ([]Person, error) {
	return listPeople(ctx, tx, emailKey(afterEmail), limit)
}

// SetVerified records that the address is the person's, as long as it is still
// their address. It reports whether that was news.
func SetVerified(ctx context.Context, tx *sqldb.Tx, id, email string) (news bool, err error) {
	return setVerified(ctx, tx, id, emailKey(email))
}

// SetEmail returns a person another address, or refuses with ErrTaken. Links that
// were sent to the old one stop working.
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

// HasEmail reports whether the address is the person's, as addresses are compared.
func (p Person) HasEmail(email string) bool {
	return !p.Deleted && emailKey(p.Email) == emailKey(email)
}

// MaskEmail is what is written of an address where it can never be erased: enough to
// recognise one that is known.
func MaskEmail(email string) string {
	first, size := utf8.DecodeRuneInString(email)
	at := strings.LastIndexByte(email, '@')
	if size == 0 || at < size {
		return ""
	}
	return string(first) + "…" + email[at:]
}

// emailKey is how addresses are compared. Local parts are case-sensitive on
// paper (RFC 5321 section 2.4) and nowhere else.
func emailKey(email string) string { return strings.ToLower(email) }

// maxEmail is the longest path that mail can carry (RFC 5321 section 4.5.3.1.3).
const maxEmail = 254

// CheckEmail refuses what cannot be an address.
func CheckEmail(email string) error {
	a, err := mail.ParseAddress(email)
	odd := func(r rune) bool { return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }
	if err != nil || a.Address != email || len(email) > maxEmail || !utf8.ValidString(email) || strings.ContainsFunc(email, odd) {
		return fault.New(fault.Invalid, "This is not a mail address.").On("email")
	}
	return nil
}
