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

const (
	// slower is added to the polling interval of a client that polled too soon
	// (RFC 8628 section 3.5).
	slower = 5 * time.Second
	// lateReplay is the time after a claim during which another poll with the
	// same code counts as a retry. A later poll counts as theft.
	lateReplay = 10 * time.Second
)

var (
	// errExpired is returned for device codes whose grant is expired, refused,
	// revoked or claimed.
	errExpired = fault.New(fault.DeviceCodeExpired, "This device code has expired. Start again.")
	// ErrUnknownCode is returned for a device code that never existed. Clients
	// get the same response as for errExpired; the separate value allows
	// callers to count guesses.
	ErrUnknownCode = fault.New(fault.DeviceCodeExpired, errExpired.Message)
	errPending     = fault.New(fault.AuthorizationPending, "This device is not approved yet. Continue polling.")
	errTooSoon     = fault.New(fault.SlowDown, "This device polls too often. Wait longer between polls.")
)

// PollGrant handles a poll from a machine that waits for its sign-in. The first
// poll after the approval creates the device and passes it with its refresh
// token to the function claim, in the transaction that marks the grant as
// claimed. If claim returns an error, the transaction is rolled back. In all
// other cases, the error that PollGrant returns informs the client about the
// state of the grant. A poll that changes nothing costs one query.
func (d *Devices) PollGrant(ctx context.Context, db *sqldb.DB, deviceCode string,
	claim func(tx *sqldb.Tx, g Grant, dev Device, refresh string) error) error {
	if !wellFormed(devicePrefix, deviceCode) {
		return ErrUnknownCode
	}
	h := ids.Hash(deviceCode)
	g, err := byDeviceHash(ctx, db, h)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return err
	}
	now := d.o.Now()
	switch {
	case subtle.ConstantTimeCompare([]byte(g.deviceHash), []byte(h)) != 1:
		return ErrUnknownCode
	case g.state == Claimed:
		return d.answerReplay(ctx, db, g, now)
	case g.state == Gone, !g.Expires.After(now):
		return errExpired
	case g.state == Approved:
		return d.claimApproved(ctx, db, g, claim)
	default:
		return d.answerPending(ctx, db, g, now)
	}
}

func (d *Devices) claimApproved(ctx context.Context, db *sqldb.DB, g grant,
	claim func(tx *sqldb.Tx, g Grant, dev Device, refresh string) error) error {
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := lockPerson(ctx, tx, g.personID); err != nil {
			return err
		}
		won, err := claimGrant(ctx, tx, g.ID)
		if err != nil {
			return err
		}
		if !won {
			return errExpired
		}
		dev := Device{
			ID:         ids.New(),
			PersonID:   g.personID,
			PluginKind: g.PluginKind,
			Agent:      g.Agent,
			Address:    g.Address,
			Provider:   g.provider,
			ClientID:   g.clientID,
			Created:    tx.Now,
			LastUsed:   tx.Now,
		}
		if err := insertDevice(ctx, tx, dev, g.ID); err != nil {
			return err
		}
		refresh := newSecret(refreshPrefix)
		if err := insertToken(ctx, tx, dev.ID, ids.Hash(refresh), 1); err != nil {
			return err
		}
		return claim(tx, g.Grant, dev, refresh)
	})
}

// answerReplay handles a poll with a device code whose grant was already
// claimed. A client that lost the response retries within seconds; a later poll
// means that the code was stolen, so the device is revoked.
func (d *Devices) answerReplay(ctx context.Context, db *sqldb.DB, g grant, now time.Time) error {
	if g.revoked || !now.After(g.claimed.Add(lateReplay)) {
		return errExpired
	}
	err := db.Write(ctx, func(tx *sqldb.Tx) error {
		dev, err := lockDevice(ctx, tx, g.deviceID)
		if errors.Is(err, sqldb.ErrNoRows) {
			return nil // another transaction has revoked the device
		}
		if err != nil {
			return err
		}
		if dev, err = d.revokeLocked(ctx, tx, dev, whyReplayed); err != nil || d.o.OnReplay == nil {
			return err
		}
		return d.o.OnReplay(ctx, tx, dev)
	})
	if err != nil {
		return err
	}
	return errExpired
}

// revokeLocked revokes a device whose row the caller has locked.
func (d *Devices) revokeLocked(ctx context.Context, tx *sqldb.Tx, dev Device, why string) (Device, error) {
	now := tx.Now
	dev.Revoked = &now
	_, err := revokeDevice(ctx, tx, dev.PersonID, dev.ID, why)
	return dev, err
}

// answerPending handles a poll for a grant that is neither approved nor
// refused. A client that polls too soon must double its interval. The interval
// that the service enforces grows by only five seconds, which is the increase
// that RFC 8628 requires of clients. When neither interval can grow further,
// polls that come too soon cause no database writes.
func (d *Devices) answerPending(ctx context.Context, db *sqldb.DB, g grant, now time.Time) error {
	if !g.polled.IsZero() && now.Before(g.polled.Add(g.wait)) {
		told := d.growInterval(g.told, g.told)
		wait := min(d.growInterval(g.wait, slower), told) // at most the interval that was sent to the client
		if told != g.told || wait != g.wait {
			// Of several concurrent polls only one changes the intervals; all
			// return the same response.
			if err := db.Write(ctx, func(tx *sqldb.Tx) error { return slowDown(ctx, tx, g, told, wait) }); err != nil {
				return err
			}
		}
		return tooSoon(told)
	}
	first := false
	err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		first, err = markPolled(ctx, tx, g)
		return err
	})
	if err != nil {
		return err
	}
	if !first {
		return tooSoon(g.told)
	}
	return errPending
}

func (d *Devices) growInterval(interval, by time.Duration) time.Duration {
	return max(interval, min(interval+by, d.o.MaxInterval))
}

func tooSoon(interval time.Duration) error {
	return errTooSoon.With("interval", int64(interval/time.Second)).After(interval)
}
