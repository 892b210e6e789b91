package person

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// LinkKind is what a link is good for.
type LinkKind string

// The kinds of links.
const (
	VerifyLink    LinkKind = "verify" // the target is the address
	ResetLink     LinkKind = "reset"
	EndDeviceLink LinkKind = "drop_device" // the target is the device
)

// Link is what the holder of a link may do.
type Link struct {
	PersonID string
	Target   string
}

// secretChars makes a secret that nobody guesses: 238 bits.
const secretChars = 40

// CreateLink makes the secret of a link that works once and for a while. Earlier
// ones of the same kind and target stop working, but for a new password: anybody
// can ask for such a link, and would end those of the owner with it. The lock
// has two that are made at once come one after the other.
func CreateLink(ctx context.Context, tx *sqldb.Tx, kind LinkKind, l Link, lifetime time.Duration) (secret string, err error) {
	if err := Lock(ctx, tx, l.PersonID); err != nil {
		return "", err
	}
	if kind != ResetLink {
		if err := deleteLinks(ctx, tx, kind, l); err != nil {
			return "", err
		}
	}
	secret = ids.Text(secretChars)
	return secret, insertLink(ctx, tx, ids.Hash(secret), kind, l, tx.Now.Add(lifetime))
}

// errLink is one answer for links that were used, ran out or never were.
var errLink = fault.New(fault.NotFound, "This link does not work any more. Ask for a new one.")

// FindLink returns what a link is good for and leaves it as it is.
func FindLink(ctx context.Context, tx *sqldb.Tx, kind LinkKind, secret string) (Link, error) {
	return findLink(ctx, tx, kind, ids.Hash(secret))
}

// UseLink uses a link up.
func UseLink(ctx context.Context, tx *sqldb.Tx, kind LinkKind, secret string) (Link, error) {
	return takeLink(ctx, tx, kind, ids.Hash(secret))
}
