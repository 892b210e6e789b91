package person

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// LinkKind is the purpose of a link.
type LinkKind string

// The kinds of links.
const (
	VerifyLink    LinkKind = "verify" // the target is the mail address
	ResetLink     LinkKind = "reset"
	EndDeviceLink LinkKind = "drop_device" // the target is the device id
)

// Link has the person and the target that a link is for.
type Link struct {
	PersonID string
	Target   string
}

// secretChars is the length of a link's secret: 238 random bits.
const secretChars = 40

// CreateLink returns the secret of a new link that works once, until it
// expires. Earlier links of the same kind and target stop working, except links
// to choose a new password: any visitor can request such a link, and would
// otherwise disable the owner's links. Concurrent calls for the same person run
// one after the other, by a lock.
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

// errLink is the same error for used, expired and unknown links.
var errLink = fault.New(fault.NotFound, "This link does not work any more. Ask for a new one.")

// FindLink returns a link without using it.
func FindLink(ctx context.Context, tx *sqldb.Tx, kind LinkKind, secret string) (Link, error) {
	return findLink(ctx, tx, kind, ids.Hash(secret))
}

// UseLink returns a link and uses it up.
func UseLink(ctx context.Context, tx *sqldb.Tx, kind LinkKind, secret string) (Link, error) {
	return takeLink(ctx, tx, kind, ids.Hash(secret))
}
