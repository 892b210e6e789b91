package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
)

// ByID finds a run of an account.
func ByID(ctx context.Context, tx *sqldb.Tx, accountID, id string) (Run, error) {
	return found(scan(tx.QueryRow(ctx, byID, id, accountID)))
}

// Look is ByID outside any transaction, for polls.
func Look(ctx context.Context, db *sqldb.DB, accountID, id string) (Run, error) {
	return found(scan(db.QueryRow(ctx, byID, id, accountID)))
}

// Any finds a run of whatever account, for those who work on it.
func Any(ctx context.Context, tx *sqldb.Tx, id string) (Run, error) {
	return found(scan(tx.QueryRow(ctx, anyByID, id)))
}

// List gives an account's runs, newest first.
func List(ctx context.Context, tx *sqldb.Tx, accountID string, f Filter, after *Place, limit int) ([]Run, error) {
	return list(ctx, tx, accountID, f, after, limit)
}

// Outputs gives what runs have made.
func Outputs(ctx context.Context, tx *sqldb.Tx, runIDs ...string) (map[string][]Output, error) {
	if len(runIDs) == 0 {
		return nil, nil
	}
	return outputs(ctx, tx, runIDs)
}

// Statuses gives how those runs of an account stand that there are, as callers
// see it.
func Statuses(ctx context.Context, tx *sqldb.Tx, accountID string, ids []string) (map[string]string, error) {
	all := map[string]string{}
	for some := range slices.Chunk(ids, 1024) {
		if err := statuses(ctx, tx, accountID, some, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Position is a queued run's place by age among all of its engine. It is a
// guess: whose turn it is changes with everybody who comes.
func Position(ctx context.Context, tx *sqldb.Tx, r Run) (int64, error) { return position(ctx, tx, r) }

// Active counts a person's runs that have not ended.
func Active(ctx context.Context, tx *sqldb.Tx, personID string) (int64, error) {
	return active(ctx, tx, personID)
}

// Spent is what a person's runs since a time have cost an account, with what
// is held for those that still go on.
func Spent(ctx context.Context, tx *sqldb.Tx, accountID, personID string, since time.Time) (int64, error) {
	return spent(ctx, tx, accountID, personID, since)
}

// OfPerson gives the runs that a person started, for whatever account, newest
// first.
func OfPerson(ctx context.Context, tx *sqldb.Tx, personID string, after *Place, limit int) ([]Run, error) {
	return ofPerson(ctx, tx, personID, after, limit)
}

// Some gives the ids of at most limit runs of an account, oldest first: those
// after a place, or the first. The last of them is the place to go on from.
func Some(ctx context.Context, tx *sqldb.Tx, accountID string, after Place, limit int) (ids []string, last Place, err error) {
	places, err := places(ctx, tx, accountID, after, limit)
	for _, p := range places {
		ids = append(ids, p.ID)
		last = p
	}
	return ids, last, err
}

// Erase takes out of runs what somebody wrote with them. What they were, when,
// and what they cost stays. They have ended.
func Erase(ctx context.Context, tx *sqldb.Tx, ids []string) error { return erase(ctx, tx, ids) }

// ForgetPerson drops what is kept of a person besides their runs, all of which
// have ended: the keys of their creates, their polls and their turns.
func ForgetPerson(ctx context.Context, tx *sqldb.Tx, personID string) error {
	return forgetPerson(ctx, tx, personID)
}

// AskCancel notes that a run of an account shall end. ok is false where it has
// ended already. Whoever works on it finds out; a queued one can be ended by
// the caller at once.
func AskCancel(ctx context.Context, tx *sqldb.Tx, accountID, id string) (r Run, ok bool, err error) {
	r, err = askCancel(ctx, tx, accountID, id)
	if !errors.Is(err, sqldb.ErrNoRows) {
		return r, err == nil, err
	}
	r, err = ByID(ctx, tx, accountID, id)
	return r, false, err
}

// Answer notes that a credential is told about a pending run now. early counts
// its polls of the run that came sooner than it was told to, this one included;
// it is 0 where this one did not. The create was the first answer to whatever
// made the run.
func Answer(ctx context.Context, tx *sqldb.Tx, r Run, p Poller) (early int64, err error) {
	politeFrom := tx.Now.Add(-r.PollAfter)
	madeIt := p.Credential == r.Credential && p.CredentialID == r.CredentialID
	if !madeIt || !r.Created.After(politeFrom) {
		polite, err := answerPolite(ctx, tx, r.ID, p, politeFrom)
		if err != nil || polite {
			return 0, err
		}
	}
	return answerEarly(ctx, tx, r.ID, p)
}

// Key is the answer to a create that came with an idempotency key.
type Key struct {
	Fingerprint string
	RunID       string
	Response    string
	Created     time.Time
}

// Recall finds what a person's key was answered with. A key older than its
// lifetime is forgotten.
func Recall(ctx context.Context, tx *sqldb.Tx, personID, key string, lifetime time.Duration) (k Key, ok bool, err error) {
	k, err = recall(ctx, tx, personID, key)
	switch {
	case errors.Is(err, sqldb.ErrNoRows):
		return Key{}, false, nil
	case err != nil:
		return Key{}, false, fmt.Errorf("recall key: %w", err)
	case !k.Created.Add(lifetime).After(tx.Now):
		return Key{}, false, nil
	}
	return k, true, nil
}

// Remember keeps the answer for a key, in place of one that has lived too
// long.
func Remember(ctx context.Context, tx *sqldb.Tx, personID, key string, k Key) error {
	if err := forget(ctx, tx, personID, key); err != nil {
		return err
	}
	return remember(ctx, tx, personID, key, k)
}

// Forget removes keys that are older than their lifetime, and polls of runs that
// have ended: on PostgreSQL a poll can be noted while the end is being committed.
// It takes a batch at a time.
func Forget(ctx context.Context, db *sqldb.DB, lifetime time.Duration) error {
	for {
		var n int64
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			keys, err := forgetBefore(ctx, tx, tx.Now.Add(-lifetime), forgetBatch)
			if err != nil {
				return err
			}
			polls, err := forgetEndedPolls(ctx, tx, forgetBatch)
			n = max(keys, polls)
			return err
		})
		if err != nil || n < forgetBatch {
			return err
		}
	}
}

const forgetBatch = 1000
