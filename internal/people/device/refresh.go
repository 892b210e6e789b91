package device

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Refreshed is the result of RefreshToken.
type Refreshed struct {
	Device Device
	Token  string // the refresh token to use next: the presented token or its successor
	// Reused means that the presented token was replaced too long ago. Two
	// parties have it, so the device was revoked and Token is empty. The caller
	// must commit the transaction, because a rollback would undo the
	// revocation, and then return ErrTokenInvalid, as for an unknown token.
	Reused bool
}

// ErrTokenInvalid is returned for refresh tokens that are unknown or reused, or
// whose device is revoked.
var ErrTokenInvalid = fault.New(fault.TokenInvalid, "This refresh token is not valid. Sign in again.")

// token is a row of the table refresh_token.
type token struct {
	generation int64
	live       int64 // generation of the device's newest token
	created    time.Time
	replaced   time.Time // zero if this is the device's newest token
}

// RefreshToken checks a refresh token and returns the token to use next. A
// token younger than RotateAfter stays valid. An older token is replaced with a
// successor that is derived from it, so that a client that lost the response
// gets the same successor again. A replaced token counts as stolen if it is
// presented after the time Grace, or after its successor was replaced too.
//
// Unknown tokens and tokens of revoked devices cause the same database work: one
// query that reads one device, locks nothing and writes nothing.
func (d *Devices) RefreshToken(ctx context.Context, tx *sqldb.Tx, presented string) (Refreshed, error) {
	if !wellFormed(refreshPrefix, presented) {
		return Refreshed{}, ErrTokenInvalid
	}
	h := ids.Hash(presented)
	dev, err := deviceOf(ctx, tx, h)
	if err == nil {
		dev, err = lockDevice(ctx, tx, dev.ID)
	}
	if errors.Is(err, sqldb.ErrNoRows) {
		return Refreshed{}, ErrTokenInvalid
	}
	if err != nil {
		return Refreshed{}, err
	}
	// The device's row is locked, so another transaction cannot replace its
	// tokens.
	t, err := tokenByHash(ctx, tx, h)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Refreshed{}, ErrTokenInvalid
	}
	if err != nil {
		return Refreshed{}, err
	}
	current := t.replaced.IsZero()
	switch {
	case current && tx.Now.Before(t.created.Add(d.o.RotateAfter)):
		return Refreshed{Device: dev, Token: presented}, nil
	case current:
		successor := d.successorToken(presented, t.generation+1)
		if err := replaceToken(ctx, tx, h); err != nil {
			return Refreshed{}, err
		}
		return Refreshed{Device: dev, Token: successor}, insertToken(ctx, tx, dev.ID, ids.Hash(successor), t.generation+1)
	case t.generation == t.live-1 && !tx.Now.After(t.replaced.Add(d.o.Grace)):
		return Refreshed{Device: dev, Token: d.successorToken(presented, t.live)}, nil
	default:
		dev, err := d.revokeLocked(ctx, tx, dev, whyReused)
		return Refreshed{Device: dev, Reused: true}, err
	}
}

// ByRefresh returns the signed-in device to which a refresh token belongs, even
// if the token was replaced. It returns false if there is no such device.
// Callers use it for checks before they call RefreshToken.
func (d *Devices) ByRefresh(ctx context.Context, db *sqldb.DB, presented string) (Device, bool, error) {
	if !wellFormed(refreshPrefix, presented) {
		return Device{}, false, nil
	}
	dev, err := deviceOf(ctx, db, ids.Hash(presented))
	if errors.Is(err, sqldb.ErrNoRows) {
		return Device{}, false, nil
	}
	return dev, err == nil, err
}
