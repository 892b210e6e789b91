package person

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// LinkKind is the purpose of a one-time link that is sent by mail.
type LinkKind string

// The purposes of one-time links.
const (
	VerifyLink    LinkKind = "verify" // verifies an e-mail address; the target is the address
	ResetLink     LinkKind = "reset"
	EndDeviceLink LinkKind = "drop_device" // signs out a device; the target is the device's id
)

// Link is the person to whom a one-time link was sent, and the target of the
// link (see LinkKind).
type Link struct {
	PersonID string
	Target   string
}

// secretChars is the length of a link's secret in characters. The secret has
// about 238 random bits.
const secretChars = 40

// CreateLink creates a link that can be used once until it expires, and returns
// its secret. Earlier links of the same kind and target become invalid, except
// password-reset links: anybody can request those, and could otherwise
// invalidate the links of the account's owner. CreateLink locks the person's
// row, so that concurrent calls run one after the other.
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

// errLink is returned for used, expired and unknown links.
var errLink = fault.New(fault.NotFound, "This link is no longer valid. Request a new one.")

// FindLink returns the person and target of a link, and leaves the link valid.
func FindLink(ctx context.Context, tx *sqldb.Tx, kind LinkKind, secret string) (Link, error) {
	return findLink(ctx, tx, kind, ids.Hash(secret))
}

// UseLink deletes a link and returns its person and target.
func UseLink(ctx context.Context, tx *sqldb.Tx, kind LinkKind, secret string) (Link, error) {
	return takeLink(ctx, tx, kind, ids.Hash(secret))
}
