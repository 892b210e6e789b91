// Package quota counts the bytes that accounts and the whole installation
// store, and refuses what does not fit.
//
//	stored ──▶ used ──delete──▶ leaving ──sweep──▶ gone
//	           └ the account's limit                      used ≤ limit
//	           └─── used + leaving ──┘                    ≤ twice the limit
//	           └─── the installation's limit ┘            used + leaving ≤ limit
//
// A deletion makes room in the account at once, although the bytes stay for the
// sweep. The limit on both together keeps somebody who uploads and deletes in
// turn from filling the disk.
//
// Counts change in the transaction that stores or deletes, by conditional
// updates, so they are exact on any number of nodes. Locks are taken in the
// order: accounts by id, shards by number. The shards come after every lock
// that somebody may wait for, since other accounts wait for them.
package quota

import (
	"context"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// Limits bound how many bytes can be stored. 0 is no limit.
type Limits struct {
	Account int64 // for accounts that have no limit of their own
	Total   int64 // for the installation
}

// Usage is what an account stores.
type Usage struct {
	Used    int64 // bytes of files that are not deleted
	Leaving int64 // bytes of deleted files that the sweep has not removed yet
	Limit   int64 // 0: no limit
	Own     bool  // the limit is the account's own
}

// availableBytes is how many more bytes the account can store, and why no more.
func (u Usage) availableBytes() (room int64, reason string) {
	if u.Limit == 0 {
		return math.MaxInt64, ""
	}
	room = u.Limit - u.Used
	if u.Leaving > u.Limit {
		return room - (u.Leaving - u.Limit), reasonDeleted
	}
	return room, reasonAccount
}

// The reasons of a refusal.
const (
	reasonAccount = "account"
	reasonDeleted = "deleted_recently"
	reasonTotal   = "installation"
)

// quotaError is the error for bytes that do not fit into an account.
func (u Usage) quotaError(bytes int64) error {
	_, reason := u.availableBytes()
	message := "The account has no room for this. Delete files, or ask the operator for more storage."
	if reason == reasonDeleted {
		message = "The account has no room for this yet: files that were deleted in the last hours still take up storage. Try again later."
	}
	return fault.New(fault.StorageQuotaExceeded, message).With("reason", reason).
		With("required_bytes", bytes).With("used_bytes", u.Used).With("limit_bytes", u.Limit)
}

var errTotal = fault.New(fault.StorageQuotaExceeded, "The storage of this installation is full. Its operator has to make room.").With("reason", reasonTotal)

// Charge counts bytes as used by an account, or refuses them. ChargeTotal with
// the same bytes has to follow in the same transaction.
func (l Limits) Charge(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	if bytes == 0 {
		return nil
	}

	charged, err := chargeAccount(ctx, tx, accountID, bytes, l.Account)
	if err != nil || charged {
		return err
	}

	// The account has no room, or no row yet.
	if err := insertAccount(ctx, tx, accountID); err != nil {
		return err
	}
	charged, err = chargeAccount(ctx, tx, accountID, bytes, l.Account)
	if err != nil || charged {
		return err
	}

	u, err := l.Of(ctx, tx, accountID)
	if err != nil {
		return err
	}
	return u.quotaError(bytes)
}

// ChargeTotal counts bytes of an account for the installation, or refuses them.
// It comes last in a transaction.
func (l Limits) ChargeTotal(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	if bytes == 0 {
		return nil
	}

	shard := shardOf(accountID)
	if l.Total > 0 {
		// A look without a lock: addAll locks all shards in order, which whoever
		// holds one already must not do.
		now, err := shardBytes(ctx, tx, shard)
		if err != nil {
			return err
		}
		if now > l.shardLimit(shard)-bytes {
			return l.addToAllShards(ctx, tx, bytes)
		}
	}

	added, err := addToShard(ctx, tx, shard, bytes, l.shardLimit(shard))
	if err != nil || added {
		return err
	}
	return l.addToAllShards(ctx, tx, bytes) // somebody was quicker
}

// shardCount is how many rows share the count of the installation.
const shardCount = 16

// shardOf spreads accounts over the shards. One account has one shard: its own
// transactions wait for each other at its row anyway.
func shardOf(accountID string) int64 {
	h := fnv.New32a()
	h.Write([]byte(accountID))
	return int64(h.Sum32() % shardCount)
}

// shardLimit is the part of the installation's limit that one shard can use without
// looking at the others.
func (l Limits) shardLimit(shard int64) int64 {
	if l.Total == 0 {
		return math.MaxInt64
	}
	return shardShare(l.Total, shard)
}

// shardShare divides a sum among the shards.
func shardShare(sum, shard int64) int64 {
	share := sum / shardCount
	if shard < sum%shardCount {
		share++
	}
	return share
}

// addToAllShards adds bytes to the count of the installation where one shard has no
// room, and divides the sum evenly.
func (l Limits) addToAllShards(ctx context.Context, tx *sqldb.Tx, bytes int64) error {
	sum, err := lockShards(ctx, tx)
	if err != nil {
		return err
	}
	if bytes > 0 && l.Total > 0 && sum > l.Total-bytes {
		return errTotal
	}

	sum += bytes
	for shard := range int64(shardCount) {
		if err := setShard(ctx, tx, shard, shardShare(sum, shard)); err != nil {
			return err
		}
	}
	return nil
}

// Rebalance divides the count of the installation evenly among its shards. It
// is needed once after the limit was changed: an uneven shard may be above its
// share of a lower one, which the other shards do not see.
func (l Limits) Rebalance(ctx context.Context, tx *sqldb.Tx) error {
	return l.addToAllShards(ctx, tx, 0)
}

// Release counts bytes by account as leaving that were used until now.
func Release(ctx context.Context, tx *sqldb.Tx, freed map[string]int64) error {
	for _, accountID := range slices.Sorted(maps.Keys(freed)) {
		if err := releaseBytes(ctx, tx, accountID, freed[accountID]); err != nil {
			return err
		}
	}
	return nil
}

// Remove stops counting bytes by account that were leaving until now. It comes
// last in a transaction.
func Remove(ctx context.Context, tx *sqldb.Tx, removed map[string]int64) error {
	perShard := map[int64]int64{}
	for _, accountID := range slices.Sorted(maps.Keys(removed)) {
		if err := removeBytes(ctx, tx, accountID, removed[accountID]); err != nil {
			return err
		}
		if err := deleteEmptyAccount(ctx, tx, accountID); err != nil {
			return err
		}
		perShard[shardOf(accountID)] += removed[accountID]
	}

	for _, shard := range slices.Sorted(maps.Keys(perShard)) {
		if _, err := addToShard(ctx, tx, shard, -perShard[shard], math.MaxInt64); err != nil {
			return err
		}
	}
	return nil
}

// Fits tells how many bytes an account can store now, and refuses where it is
// less than bytes. It reserves nothing.
func (l Limits) Fits(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) (room int64, err error) {
	u, err := l.Of(ctx, tx, accountID)
	if err != nil {
		return 0, err
	}
	room, _ = u.availableBytes()
	if room < bytes {
		return max(room, 0), u.quotaError(bytes)
	}
	if l.Total == 0 {
		return room, nil
	}

	total, err := Total(ctx, tx)
	if err != nil {
		return 0, err
	}
	left := l.Total - total
	if left < bytes {
		return max(left, 0), errTotal
	}
	return min(room, left), nil
}

// Of tells what an account stores.
func (l Limits) Of(ctx context.Context, tx *sqldb.Tx, accountID string) (Usage, error) {
	all, err := l.OfAll(ctx, tx, []string{accountID})
	return all[accountID], err
}

// OfAll tells what accounts store, by id.
func (l Limits) OfAll(ctx context.Context, tx *sqldb.Tx, accountIDs []string) (map[string]Usage, error) {
	all := make(map[string]Usage, len(accountIDs))
	if len(accountIDs) == 0 {
		return all, nil
	}
	rows, err := accountRows(ctx, tx, accountIDs)
	if err != nil {
		return nil, err
	}

	for _, id := range accountIDs {
		all[id] = Usage{Limit: l.Account}
	}
	for _, row := range rows {
		u := Usage{Used: row.used, Leaving: row.leaving, Limit: l.Account}
		if row.limit != nil {
			u.Limit = *row.limit
			u.Own = true
		}
		all[row.id] = u
	}
	return all, nil
}

// Total is how many bytes the installation stores.
func Total(ctx context.Context, tx *sqldb.Tx) (int64, error) { return total(ctx, tx) }

// Forget takes the limit of its own from an account that was deleted. What it
// stores counts until it is removed.
func Forget(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	if _, err := SetLimit(ctx, tx, accountID, nil); err != nil {
		return err
	}
	return deleteEmptyAccount(ctx, tx, accountID)
}

// SetLimit gives an account a limit of its own, nil to go by the setting again,
// and tells the one before.
func SetLimit(ctx context.Context, tx *sqldb.Tx, accountID string, limit *int64) (before *int64, err error) {
	if limit != nil && *limit < 0 {
		return nil, fault.New(fault.Invalid, "A limit is not below 0.").On("limit_bytes")
	}
	if err := insertAccount(ctx, tx, accountID); err != nil {
		return nil, err
	}
	return setLimit(ctx, tx, accountID, limit)
}
