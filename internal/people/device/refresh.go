package device

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Refreshed is the outcome of a refresh.
type Refreshed struct {
	Device Device
	Token  string // to use from now on; the one presented, or its successor
	// Reused tells that the token had been replaced too long ago: two parties
	// have it, and the device was revoked. There is no Token. The caller answers
	// as for an unknown token, with ErrTokenInvalid, after the commit: an error
	// inside the transaction would give the device back.
	Reused bool
}

// ErrTokenInvalid is the one answer for refresh tokens that are unknown,
// revoked or reused.
var ErrTokenInvalid = fault.New(fault.TokenInvalid, "This refresh token is not valid. Sign in again.")

// token is a refresh token as its row has it.
type token struct {
	hash       string
	generation int64
	live       int64 // generation of the device's live token
	created    time.Time
	replaced   time.Time // zero: this is the live one
}

// RefreshToken exchanges a refresh token. A young one stays. An old one is replaced
// by a successor that follows from it, so that a client who lost the answer
// gets the same one again; after Grace, or once the successor was replaced too,
// the old one is a sign of theft.
//
// Tokens that are unknown and those of revoked devices go the same way: both
// statements run, no row is locked, nothing is written.
func (d *Devices) RefreshToken(ctx context.Context, tx *sqldb.Tx, presented string) (Refreshed, error) {
	if !wellFormed(refreshPrefix, presented) {
		return Refreshed{}, ErrTokenInvalid
	}
	h := ids.Hash(presented)
	dev, err := lockDeviceOf(ctx, tx, h)
	dead := errors.Is(err, sqldb.ErrNoRows)
	if err != nil && !dead {
		return Refreshed{}, err
	}
	// Read with the lock in hand: nobody replaces the device's tokens now.
	t, err := tokenByHash(ctx, tx, h)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return Refreshed{}, err
	}
	if subtle.ConstantTimeCompare([]byte(t.hash), []byte(h)) != 1 || dead {
		return Refreshed{}, ErrTokenInvalid
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

// ByRefresh returns the live device that a refresh token was made for, whatever
// became of the token since, and false where there is none. It is for what must
// be asked before Refresh changes anything.
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
