// Package person knows the people who use the service.
package person

import (
	"context"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"atelier/internal/fault"
	"atelier/internal/ident"
	"atelier/internal/sqldb"
)

// Person is somebody with an account.
type Person struct {
	ID            string
	Email         string
	EmailVerified bool
	Created       time.Time
}

// Draft is what a new person brings.
type Draft struct {
	Email         string
	EmailVerified bool
	// PasswordHash comes from HashPassword, which is slow on purpose and so
	// runs before the transaction.
	PasswordHash string
}

// Create adds a person. An address belongs to one person, whatever its case.
func Create(ctx context.Context, tx *sqldb.Tx, d Draft) (Person, error) {
	if err := checkEmail(d.Email); err != nil {
		return Person{}, err
	}
	p := Person{ID: ident.New(), Email: d.Email, EmailVerified: d.EmailVerified, Created: tx.Now}
	fresh, err := insert(ctx, tx, p, d.PasswordHash)
	if err != nil {
		return Person{}, err
	}
	if !fresh {
		return Person{}, fault.New(fault.Invalid, "Somebody with this address is here already.").On("email")
	}
	return p, deleteSetups(ctx, tx)
}

// ByEmail finds a person by address.
func ByEmail(ctx context.Context, tx *sqldb.Tx, email string) (Person, error) {
	return byEmail(ctx, tx, emailKey(email))
}

// emailKey is how addresses are compared. Local parts are case-sensitive on
// paper (RFC 5321 section 2.4) and nowhere else.
func emailKey(email string) string { return strings.ToLower(email) }

// maxEmail is the longest path that mail can carry (RFC 5321 section 4.5.3.1.3).
const maxEmail = 254

func checkEmail(email string) error {
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > maxEmail || !utf8.ValidString(email) {
		return fault.New(fault.Invalid, "This is not a mail address.").On("email")
	}
	return nil
}
