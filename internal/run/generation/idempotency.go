package generation

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/run/run"
)

// FindKey returns the record of a person's idempotency key, or nil if there is
// none. Handlers call it before they read the body of a create request, because
// a request with a known key does not count against the rate limit and stores
// no files.
func (s *Service) FindKey(ctx context.Context, personID, key string) (k *run.Key, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		k, err = run.FindKey(ctx, tx, personID, key, s.Settings.KeyLifetime)
		return err
	})
	return k, err
}

// ReplayCreate returns the result of the create request that first used the
// idempotency key k. It returns an error if the fingerprint differs from that
// of the first request.
func (s *Service) ReplayCreate(ctx context.Context, personID string, k run.Key, fingerprint string) (c Created, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		c, err = s.replayKey(ctx, tx, personID, k, fingerprint)
		return err
	})
	return c, err
}

// findReplay returns the result of the create request that first used the
// idempotency key. found is false if the key is new.
func (s *Service) findReplay(ctx context.Context, tx *sqldb.Tx, personID, key, fingerprint string) (c Created, found bool, err error) {
	k, err := run.FindKey(ctx, tx, personID, key, s.Settings.KeyLifetime)
	if err != nil || k == nil {
		return Created{}, false, err
	}

	c, err = s.replayKey(ctx, tx, personID, *k, fingerprint)
	return c, err == nil, err
}

// repeatWindow is how long a request without an idempotency key is recognized
// when its client sends it again. The official clients of OpenAI wait for ten
// minutes for a response, and then send the request again.
const repeatWindow = 20 * time.Minute

// repeatPrefix is the beginning of the keys under which runs are stored that
// are found by the fingerprint of their request. The id of the run follows.
func repeatPrefix(fingerprint string) string { return "repeat:" + fingerprint + ":" }

// findRepeated returns the newest run that a request with the same fingerprint
// created recently. found is false if there is none. The person is locked, so
// that of several such requests only one creates a run.
func (s *Service) findRepeated(ctx context.Context, tx *sqldb.Tx, personID, fingerprint string) (c Created, found bool, err error) {
	k, err := run.FindNewestKey(ctx, tx, personID, repeatPrefix(fingerprint), repeatWindow)
	if err != nil || k == nil {
		return Created{}, false, err
	}
	c, err = s.replayKey(ctx, tx, personID, *k, fingerprint)
	return c, err == nil, err
}

func (s *Service) replayKey(ctx context.Context, tx *sqldb.Tx, personID string, k run.Key, fingerprint string) (Created, error) {
	if k.Fingerprint != fingerprint {
		return Created{}, errKeyReused
	}

	r, err := run.GetUnscoped(ctx, tx, k.RunID)
	if err != nil {
		return Created{}, fmt.Errorf("replay response: %w", err)
	}
	rooms, err := ratelimit.Rooms(ctx, tx, rateKey(personID), s.windows...)
	if err != nil {
		return Created{}, err
	}
	return Created{Run: r, Replayed: true, Rooms: rooms}, nil
}

var errKeyReused = fault.New(fault.IdempotencyKeyConflict, "This Idempotency-Key was used with another request. Use a new one.")
