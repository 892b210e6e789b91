// Package library lists and serves the files of an account: its uploads and
// the results of its runs. It also creates their signed URLs, and deletes
// content that is no longer needed.
//
// Callers pass the accounts that a method may read. Files of other accounts,
// deleted files and files that never existed result in the same error.
//
//	row ──delete, retention──▶ row marked deleted ──SweepFiles──▶ asset gone ──▶ content deleted
//	 ▲                               │
//	 └────────── restore ────────────┘ results only, for a time
//
// The content of an asset stays while an upload or a result that is not deleted
// refers to it, a deleted result that refers to it can be restored, or a pending
// run uses it as input. It stays for one hour
// longer, because a run that uses the asset may be about to be created. The row
// is marked as gone before the content is deleted. A crash between the two
// leaves content without a row, which SweepFiles also finds.
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

// Library reads and deletes files: their database rows and their content.
type Library struct {
	DB        *sqldb.DB
	Blobs     blob.Store
	Retention Retention
	Storage   quota.Limits
	// OrphanAge is how long content stays after its last use. Default: one
	// hour. A program that stores content or resolves a reference must commit
	// the row that needs it within that time.
	OrphanAge time.Duration

	orphanWalk walk
}

// Retention is how long files are kept.
type Retention struct {
	// Uploads and Results are counted from the creation. 0 means no limit.
	Uploads, Results time.Duration
	// Deleted is how long a result that a person deleted can be restored. 0
	// means not at all.
	Deleted time.Duration
}

func canSee(p principal.Principal, accountID string) bool {
	return slices.Contains(p.AccountIDs(), accountID)
}

// authorizeChange returns an error unless the principal may delete or restore a
// file that personID created in the account. verb is the change, for the error.
func authorizeChange(p principal.Principal, accountID, personID, verb string) error {
	if p.PersonID == personID {
		return nil
	}
	for _, account := range p.Accounts() {
		if account.AccountID == accountID && account.May(company.ManageTeam) {
			return nil
		}
	}
	return fault.New(fault.Forbidden, "Only the person who created this, or a manager of the team, can "+verb+" it.").With("reason", "permission")
}

// Cursor is the position of the last entry of a page in a list.
type Cursor = asset.Cursor

// AddUpload records a stored file as an upload of an account. If it fails, the
// content stays until SweepFiles deletes it, because the commit may have
// succeeded although its response was lost.
func (l *Library) AddUpload(ctx context.Context, p principal.Principal, accountID, name string, file ingest.StoredFile) (u asset.Upload, err error) {
	if !canSee(p, accountID) {
		return asset.Upload{}, errNoAccount
	}
	err = l.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		u, err = InsertUpload(ctx, tx, l.Storage, p, UploadDraft{AccountID: accountID, Name: name, File: file})
		return err
	})
	return u, err
}

// UploadDraft describes a new upload.
type UploadDraft struct {
	AccountID string
	Name      string // name of the file
	File      ingest.StoredFile
	// Reserved is the number of bytes that were charged to the account for this
	// file before. Only the difference is charged.
	Reserved int64
}

// InsertUpload records a stored file as an upload of an account, in a
// transaction of the caller. The caller must have checked that the person may
// use the account. Call it last in the transaction, because it locks a row that
// other accounts need.
func InsertUpload(ctx context.Context, tx *sqldb.Tx, limits quota.Limits, p principal.Principal, d UploadDraft) (asset.Upload, error) {
	if err := person.Lock(ctx, tx, p.PersonID); err != nil {
		return asset.Upload{}, err
	}

	u := asset.Upload{
		ID:        ids.New(),
		AccountID: d.AccountID,
		PersonID:  p.PersonID,
		Name:      asset.CleanName(d.Name),
		Asset:     d.File.Asset,
		Created:   tx.Now,
	}
	u.Asset.AccountID = d.AccountID
	u.Asset.Created = tx.Now
	more := u.Asset.StoredBytes() - d.Reserved
	if err := limits.ChargeAccount(ctx, tx, d.AccountID, max(more, 0)); err != nil {
		return asset.Upload{}, err
	}
	if err := asset.AddUpload(ctx, tx, u); err != nil {
		return asset.Upload{}, err
	}
	if more < 0 {
		return u, quota.Unreserve(ctx, tx, d.AccountID, -more)
	}
	return u, limits.ChargeTotal(ctx, tx, d.AccountID, more)
}

// CheckAvailable returns how many bytes an account can store now, and an error
// if that is less than bytes. Callers use it to refuse an upload before the
// file is sent; AddUpload checks again when it stores the file.
func (l *Library) CheckAvailable(ctx context.Context, accountID string, bytes int64) (available int64, err error) {
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		available, err = l.Storage.CheckAvailable(ctx, tx, accountID, bytes)
		return err
	})
	return available, err
}

// releaseFiles marks files as deleted and updates the quota of their accounts:
// their bytes no longer count as used, but as waiting for deletion.
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

// ListUploads returns at most limit uploads of an account, newest first. medium
// is the type of the uploads; "" means all types. after is the position of the
// last upload of the previous page, or nil for the first page.
func (l *Library) ListUploads(ctx context.Context, p principal.Principal, accountID, medium string, after *Cursor, limit int) (all []asset.Upload, err error) {
	if !canSee(p, accountID) {
		return nil, errNoAccount
	}
	err = sqldb.ReadList(sqldb.WithIndexOrder(ctx), l.DB, after == nil, func(tx *sqldb.Tx) (err error) {
		all, err = asset.Uploads(ctx, tx, accountID, medium, after, limit)
		return err
	})
	return all, err
}

// GetUpload returns an upload of an account by its ID.
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
// of the team are allowed to.
func (l *Library) DeleteUpload(ctx context.Context, p principal.Principal, accountID, id string) error {
	if !canSee(p, accountID) {
		return asset.ErrNoUpload
	}
	return l.DB.Write(ctx, func(tx *sqldb.Tx) error {
		u, err := asset.UploadByID(ctx, tx, accountID, id)
		if err != nil {
			return err
		}
		if err := authorizeChange(p, accountID, u.PersonID, "delete"); err != nil {
			return err
		}
		if err := asset.DeleteUpload(ctx, tx, accountID, id); err != nil {
			return err
		}
		return releaseFiles(ctx, tx, []string{u.Asset.ID})
	})
}
