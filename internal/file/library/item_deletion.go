package library

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
	"atelier/internal/people/principal"
)

// DeleteItem deletes an item. Only the person who created it and managers of
// the team are allowed to. Its URLs stop working and its bytes stop counting as
// used at once. RestoreItem can undo this for the time Retention.Deleted.
func (l *Library) DeleteItem(ctx context.Context, p principal.Principal, id string) error {
	return l.DB.Write(ctx, func(tx *sqldb.Tx) error {
		i, err := findItem(ctx, tx, p, id)
		if err != nil {
			return err
		}
		if err := authorizeChange(p, i.AccountID, i.PersonID, "delete"); err != nil {
			return err
		}

		var until time.Time
		if l.Retention.Deleted > 0 {
			until = tx.Now.Add(l.Retention.Deleted)
		}
		assetID, err := deleteResult(ctx, tx, i.ResultID, until)
		if err != nil {
			return orNotFound(err, errNoItem) // a concurrent request has deleted the item
		}
		return releaseFiles(ctx, tx, []string{assetID})
	})
}

// DropIntermediate deletes the intermediate results of runs that are steps of a
// flow. They cannot be restored.
func DropIntermediate(ctx context.Context, tx *sqldb.Tx, runIDs []string) error {
	if len(runIDs) == 0 {
		return nil
	}
	assetIDs, err := deleteIntermediate(ctx, tx, runIDs)
	if err != nil {
		return err
	}
	return releaseFiles(ctx, tx, assetIDs)
}

// RestoreItem restores a deleted item, and returns it without the inputs of its
// run. Those who may delete an item may restore it. An item that is not deleted
// stays unchanged. RestoreItem returns an error if the time to restore the item
// is over, or if its bytes no longer fit into the account's storage.
func (l *Library) RestoreItem(ctx context.Context, p principal.Principal, id string) (i Item, err error) {
	err = l.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		i, err = findItem(ctx, tx, p, id)
		if !fault.Is(err, fault.NotFound) {
			return err
		}
		if err := l.restoreDeleted(ctx, tx, p, id); err != nil {
			return err
		}

		i, err = findItem(ctx, tx, p, id)
		return err
	})
	i.Inputs = ""
	return i, err
}

func (l *Library) restoreDeleted(ctx context.Context, tx *sqldb.Tx, p principal.Principal, id string) error {
	run, result, ok := SplitItemID(id)
	if !ok || len(p.AccountIDs()) == 0 {
		return errNoItem
	}
	d, err := findDeleted(ctx, tx, p, run, result)
	if err != nil {
		return orNotFound(err, errNoItem)
	}
	if err := authorizeChange(p, d.accountID, d.personID, "restore"); err != nil {
		return err
	}

	restored, err := restoreResult(ctx, tx, result)
	if err != nil {
		return err
	}
	if !restored { // a concurrent request has restored the item, and may have deleted it again
		return nil
	}
	bytes, err := asset.Reclaim(ctx, tx, d.assetID)
	if err != nil {
		return orNotFound(err, errNoItem) // a node with an older release, which restores nothing, has deleted the content
	}
	return l.Storage.Reclaim(ctx, tx, d.accountID, bytes)
}

// endRestorations makes deleted items final whose time to restore them is over.
func endRestorations(ctx context.Context, db *sqldb.DB) error {
	for {
		var ended int64
		err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			ended, err = endRestoration(ctx, tx)
			return err
		})
		if err != nil || ended == 0 {
			return err
		}
	}
}
