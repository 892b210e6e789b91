// Package quota counts the bytes that each account and the whole installation
// store, and refuses files that exceed a limit.
//
//	stored ──▶ used ──delete──▶ leaving ──sweep──▶ gone
//	           used ◀──restore── leaving
//	           └ the account's limit                      used ≤ limit
//	           └─── used + leaving ──┘                    ≤ twice the limit
//	           └─── the installation's limit ┘            used + leaving ≤ limit
//
// Bytes of files that people have deleted are called leaving until the content
// is deleted from the disk, which library.SweepFiles does later. A deletion
// frees space in the account at once. The limit on used and leaving bytes
// together keeps accounts that alternately upload and delete from filling the
// disk.
//
// Counts change in the transaction that stores or deletes the file, by
// conditional updates, so they are exact on any number of nodes. The count of
// the installation is divided over several rows, the shards. Lock order:
// accounts by ID, then shards by number. Shards are locked last in a
// transaction, because transactions of other accounts wait for them.
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

// Limits are the maximum numbers of stored bytes. 0 means no limit.
type Limits struct {
	Account int64 // limit of accounts without a limit of their own
	Total   int64 // limit of the whole installation
}

// Usage is the storage that an account uses, and its limit.
type Usage struct {
	Used        int64 // bytes of files that are not deleted
	Leaving     int64 // bytes of deleted files whose content is not deleted yet
	Limit       int64 // in bytes; 0 means no limit
	HasOwnLimit bool  // the account has a limit of its own
}

// availableBytes returns how many more bytes the account can store, and which
// limit is the reason.
func (u Usage) availableBytes() (available int64, reason string) {
	if u.Limit == 0 {
		return math.MaxInt64, ""
	}

	available = u.Limit - u.Used
	if u.Leaving > u.Limit {
		return available - (u.Leaving - u.Limit), reasonDeleted
	}
	return available, reasonAccount
}

// Values of the detail "reason" in errors about exceeded storage limits.
const (
	reasonAccount = "account"
	reasonDeleted = "deleted_recently"
	reasonTotal   = "installation"
)

// quotaError returns the error for a file of the given size that exceeds the
// account's limit.
func (u Usage) quotaError(bytes int64) error {
	_, reason := u.availableBytes()
	message := "The account does not have enough storage for this file. Delete files, or ask the operator for more storage."
	if reason == reasonDeleted {
		message = "The account does not have enough storage yet: recently deleted files still take up space. Try again later."
	}
	return fault.New(fault.StorageQuotaExceeded, message).With("reason", reason).
		With("required_bytes", bytes).With("used_bytes", u.Used).With("limit_bytes", u.Limit)
}

var errTotal = fault.New(fault.StorageQuotaExceeded, "The storage of this installation is full. Its operator must free space.").With("reason", reasonTotal)

// ChargeAccount adds bytes to the usage of an account. It returns an error if
// they exceed the account's limit. The same transaction must call ChargeTotal
// with the same bytes afterwards.
func (l Limits) ChargeAccount(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	if bytes == 0 {
		return nil
	}

	charged, err := chargeAccount(ctx, tx, accountID, bytes, l.Account)
	if err != nil || charged {
		return err
	}

	// The account has too little space, or has no row yet.
	if err := insertAccount(ctx, tx, accountID); err != nil {
		return err
	}

	charged, err = chargeAccount(ctx, tx, accountID, bytes, l.Account)
	if err != nil || charged {
		return err
	}

	u, err := l.AccountUsage(ctx, tx, accountID)
	if err != nil {
		return err
	}
	return u.quotaError(bytes)
}

// ChargeTotal adds bytes that an account stores to the usage of the
// installation. It returns an error if they exceed the installation's limit.
// Call it last in a transaction, because it locks a row that other accounts
// need.
func (l Limits) ChargeTotal(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	if bytes == 0 {
		return nil
	}

	shard := shardOf(accountID)
	if l.Total > 0 {
		// The shard is read without a lock. addToAllShards locks all shards in
		// order, so it must not be called in a transaction that has already
		// locked one.
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
	return l.addToAllShards(ctx, tx, bytes) // a concurrent transaction used the remaining space
}

// shardCount is the number of database rows over which the usage of the
// installation is divided, so that transactions wait less for each other.
const shardCount = 16

// shardOf returns the number of the shard that an account uses. One shard per
// account is enough, because the account's transactions already wait for each
// other at the account's row.
func shardOf(accountID string) int64 {
	h := fnv.New32a()
	h.Write([]byte(accountID))
	return int64(h.Sum32() % shardCount)
}

// shardLimit returns the part of the installation's limit, in bytes, that one
// shard can use without reading the others.
func (l Limits) shardLimit(shard int64) int64 {
	if l.Total == 0 {
		return math.MaxInt64
	}
	return shardShare(l.Total, shard)
}

// shardShare returns the part of sum that one shard gets when sum is divided
// evenly.
func shardShare(sum, shard int64) int64 {
	share := sum / shardCount
	if shard < sum%shardCount {
		share++
	}
	return share
}

// addToAllShards adds bytes to the usage of the installation when one shard
// has no space left, and divides the sum evenly among the shards. It returns
// an error if the sum exceeds the installation's limit.
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

// RebalanceShards divides the usage of the installation evenly among its
// shards. It must run once after the limit has changed: with a lower limit,
// one shard may exceed its part although the others have space.
func (l Limits) RebalanceShards(ctx context.Context, tx *sqldb.Tx) error {
	return l.addToAllShards(ctx, tx, 0)
}

// Release records that files were deleted: their bytes, by account, no longer
// count as used but as leaving.
func Release(ctx context.Context, tx *sqldb.Tx, freed map[string]int64) error {
	for _, accountID := range slices.Sorted(maps.Keys(freed)) {
		if err := releaseBytes(ctx, tx, accountID, freed[accountID]); err != nil {
			return err
		}
	}
	return nil
}

// Reclaim records that a deleted file was restored: its bytes count as used
// again. It returns an error if they exceed the account's limit. The usage of
// the installation does not change, because leaving bytes are part of it.
func (l Limits) Reclaim(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	reclaimed, err := reclaimBytes(ctx, tx, accountID, bytes, l.Account)
	if err != nil || reclaimed {
		return err
	}

	u, err := l.AccountUsage(ctx, tx, accountID)
	if err != nil {
		return err
	}
	return u.quotaError(bytes)
}

// Remove subtracts leaving bytes, by account, whose content has been deleted.
// Call it last in a transaction, because it locks rows that other accounts
// need.
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

// Unreserve subtracts bytes that were charged for a file which is not stored
// after all, or is smaller. Unlike the bytes of a deleted file, they do not count
// as leaving. Call it last in a transaction, because it locks a row that other
// accounts need.
func Unreserve(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	if err := unreserveBytes(ctx, tx, accountID, bytes); err != nil {
		return err
	}
	if err := deleteEmptyAccount(ctx, tx, accountID); err != nil {
		return err
	}
	_, err := addToShard(ctx, tx, shardOf(accountID), -bytes, math.MaxInt64)
	return err
}

// CheckAvailable returns how many bytes an account can store now, and an error
// if that is less than bytes. It does not reserve them.
func (l Limits) CheckAvailable(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) (available int64, err error) {
	u, err := l.AccountUsage(ctx, tx, accountID)
	if err != nil {
		return 0, err
	}

	available, _ = u.availableBytes()
	if available < bytes {
		return max(available, 0), u.quotaError(bytes)
	}
	if l.Total == 0 {
		return available, nil
	}

	total, err := TotalBytes(ctx, tx)
	if err != nil {
		return 0, err
	}

	left := l.Total - total
	if left < bytes {
		return max(left, 0), errTotal
	}
	return min(available, left), nil
}

// DeferCheck makes the transaction fail, with the error of CheckAvailable, if an
// account can store fewer bytes. The check is made with the next statement of tx
// (see sqldb.Tx.DeferQueryRow).
func (l Limits) DeferCheck(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	err := deferAccountRow(ctx, tx, accountID, func(row *accountRow) error {
		u := l.usageOf(row)
		if available, _ := u.availableBytes(); available < bytes {
			return u.quotaError(bytes)
		}
		return nil
	})
	if err != nil || l.Total == 0 {
		return err
	}
	return deferTotalBytes(ctx, tx, func(total int64) error {
		if l.Total-total < bytes {
			return errTotal
		}
		return nil
	})
}

// AccountUsage returns the storage usage of one account.
func (l Limits) AccountUsage(ctx context.Context, tx *sqldb.Tx, accountID string) (Usage, error) {
	all, err := l.AccountUsages(ctx, tx, []string{accountID})
	return all[accountID], err
}

// AccountUsages returns the storage usage of several accounts, by account ID.
func (l Limits) AccountUsages(ctx context.Context, tx *sqldb.Tx, accountIDs []string) (map[string]Usage, error) {
	all := make(map[string]Usage, len(accountIDs))
	if len(accountIDs) == 0 {
		return all, nil
	}

	rows, err := accountRows(ctx, tx, accountIDs)
	if err != nil {
		return nil, err
	}

	for _, id := range accountIDs {
		all[id] = l.usageOf(nil)
	}

	for _, row := range rows {
		all[row.id] = l.usageOf(&row)
	}
	return all, nil
}

// usageOf returns the usage of the account with the given row, which is nil if
// the account stores nothing.
func (l Limits) usageOf(row *accountRow) Usage {
	if row == nil {
		return Usage{Limit: l.Account}
	}
	u := Usage{Used: row.used, Leaving: row.leaving, Limit: l.Account}
	if row.limit != nil {
		u.Limit = *row.limit
		u.HasOwnLimit = true
	}
	return u
}

// DeleteLimit removes the own limit of a deleted account. The bytes that the
// account stores still count until their content is deleted.
func DeleteLimit(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	if _, err := SetLimit(ctx, tx, accountID, nil); err != nil {
		return err
	}
	return deleteEmptyAccount(ctx, tx, accountID)
}

// SetLimit sets an account's own limit, in bytes, and returns the previous
// one. nil means that the account has none and the general setting applies.
func SetLimit(ctx context.Context, tx *sqldb.Tx, accountID string, limit *int64) (before *int64, err error) {
	if limit != nil && *limit < 0 {
		return nil, fault.New(fault.Invalid, "The limit must not be negative.").On("limit_bytes")
	}
	if err := insertAccount(ctx, tx, accountID); err != nil {
		return nil, err
	}
	return setLimit(ctx, tx, accountID, limit)
}
