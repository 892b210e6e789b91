// Package library lists and serves the files of an account: its uploads and the
// results of its runs, their signed URLs, and the removal of bytes that are no
// longer needed.
//
// Every call names the accounts that it may read. Files of other accounts,
// deleted files and files that never existed return the same error.
//
//	row ──delete, retention──▶ row marked deleted ──SweepFiles──▶ asset gone ──▶ bytes removed
//
// The bytes of an asset stay while an upload or a result that is not deleted
// refers to it, or a pending run uses it as input, and for one hour longer, for
// runs that are being created from it at that moment. The row is marked as gone
// before the bytes are removed. A crash between the two leaves bytes without a
// row, which the sweep also finds.
package library

import (
	"context"
	"slices"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/quota"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// Library reads and deletes files: their rows and their bytes.
type Library struct {
	DB        *sqldb.DB
	Blobs     blob.Store
	Retention Retention
	Storage   quota.Limits
	// OrphanAge is how long bytes stay after their last use, 0 for one hour. A
	// program that stores bytes or resolves a reference must commit the row
	// that needs them within that time.
	OrphanAge time.Duration
}

// Retention is the maximum age of files, 0 for no limit.
type Retention struct {
	Uploads, Results time.Duration
}

// accountsOf returns the accounts that the call is about. The principal's access to
// them was checked before.
func accountsOf(p principal.Principal) (accountIDs []string) {
	for _, account := range p.Accounts() {
		if account.AccountID != "" {
			accountIDs = append(accountIDs, account.AccountID)
		}
	}
	return accountIDs
}

func canSee(p principal.Principal, accountID string) bool {
	return slices.Contains(accountsOf(p), accountID)
}

// authorizeRemoval fails unless the principal may delete a file that personID
// created in the account.
func authorizeRemoval(p principal.Principal, accountID, personID string) error {
	if p.PersonID == personID {
		return nil
	}
	for _, account := range p.Accounts() {
		if account.AccountID == accountID && account.May(company.ManageTeam) {
			return nil
		}
	}
	return fault.New(fault.Forbidden, "Only the person who created this, or a manager of the team, can delete it.").With("reason", "permission")
}

// Cursor is the sort key of the last entry of a page.
type Cursor = asset.Cursor

// AddUpload records a stored file as an upload of an account. On failure the
// bytes stay for the sweep, because the commit may have succeeded although its
// response was lost.
func (l *Library) AddUpload(ctx context.Context, p principal.Principal, accountID, name string, file ingest.StoredFile) (u asset.Upload, err error) {
	if !canSee(p, accountID) {
		return asset.Upload{}, errNoAccount
	}
	err = l.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, p.PersonID); err != nil {
			return err
		}

		u = asset.Upload{
			ID:        ids.New(),
			AccountID: accountID,
			PersonID:  p.PersonID,
			Name:      asset.CleanName(name),
			Asset:     file.Asset,
			Created:   tx.Now,
		}
		u.Asset.AccountID = accountID
		u.Asset.Created = tx.Now
		bytes := u.Asset.StoredBytes()
		if err := l.Storage.ChargeAccount(ctx, tx, accountID, bytes); err != nil {
			return err
		}
		if err := asset.AddUpload(ctx, tx, u); err != nil {
			return err
		}
		return l.Storage.ChargeTotal(ctx, tx, accountID, bytes)
	})
	return u, err
}

// CheckAvailable returns how many bytes an account can store now, and an error if that is
// less than bytes. It rejects an upload before the file is sent; AddUpload
// makes the final decision.
func (l *Library) CheckAvailable(ctx context.Context, accountID string, bytes int64) (available int64, err error) {
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		available, err = l.Storage.CheckAvailable(ctx, tx, accountID, bytes)
		return err
	})
	return available, err
}

// releaseFiles moves the bytes of deleted files from used to leaving in the
// quota.
func releaseFiles(ctx context.Context, tx *sqldb.Tx, assetIDs []string) error {
	freed := map[string]int64{}
	for ids := range slices.Chunk(assetIDs, sweepBatch) {
		bytes, err := asset.Release(ctx, tx, ids)
		if err != nil {
			return err
		}
		for accountID, n := range bytes {
			freed[accountID] += n
		}
	}
	return quota.Release(ctx, tx, freed)
}

var errNoAccount = fault.New(fault.Forbidden, "You do not have access to this account.").With("reason", "account")

// ListUploads returns at most limit uploads of an account, newest first.
func (l *Library) ListUploads(ctx context.Context, p principal.Principal, accountID string, after *Cursor, limit int) (all []asset.Upload, err error) {
	if !canSee(p, accountID) {
		return nil, errNoAccount
	}
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		all, err = asset.Uploads(ctx, tx, accountID, after, limit)
		return err
	})
	return all, err
}

// GetUpload returns an upload of an account.
func (l *Library) GetUpload(ctx context.Context, p principal.Principal, accountID, id string) (u asset.Upload, err error) {
	if !canSee(p, accountID) {
		return asset.Upload{}, asset.ErrNoUpload
	}
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		u, err = asset.UploadByID(ctx, tx, accountID, id)
		return err
	})
	return u, err
}

// DeleteUpload deletes an upload. Only the person who uploaded it and managers
// of the account may.
func (l *Library) DeleteUpload(ctx context.Context, p principal.Principal, accountID, id string) error {
	if !canSee(p, accountID) {
		return asset.ErrNoUpload
	}
	return l.DB.Write(ctx, func(tx *sqldb.Tx) error {
		u, err := asset.UploadByID(ctx, tx, accountID, id)
		if err != nil {
			return err
		}
		if err := authorizeRemoval(p, accountID, u.PersonID); err != nil {
			return err
		}
		if err := asset.DeleteUpload(ctx, tx, accountID, id); err != nil {
			return err
		}
		return releaseFiles(ctx, tx, []string{u.Asset.ID})
	})
}
