// Package library is what an account has to look at: its uploads and the
// results of its runs, the addresses under which their bytes are fetched, and
// the end of those bytes.
//
// Every question says for which accounts it asks. What belongs to another
// account, what was deleted and what never was get one answer.
//
//	row ──delete, retention──▶ row marked deleted ──Sweep──▶ asset gone ──▶ bytes removed
//
// The bytes of an asset are there as long as an upload or a result that is not
// deleted has it, or a run that is pending works on it, and an hour longer, for
// runs that are being created from it at that moment. The row says so first
// and the bytes follow: whatever dies between leaves bytes that no row names,
// and Sweep finds those too.
package library

import (
	"context"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/quota"
	"atelier/internal/people/person"
)

// Library joins the rows and the bytes.
type Library struct {
	DB        *sqldb.DB
	Blobs     blob.Store
	Retention Retention
	Storage   quota.Limits
	// OrphanAge is how long bytes outlive their need, 0 for an hour. Whoever
	// stores bytes, or finds some to work on, commits a row that needs them
	// within that time.
	OrphanAge time.Duration
}

// Retention is how long things are kept, 0 for ever.
type Retention struct {
	Uploads, Results time.Duration
}

// Viewer is who asks, and for what.
type Viewer struct {
	PersonID string
	// AccountIDs are the accounts that the request selected. That the person
	// may is settled.
	AccountIDs []string
	// Manager has the accounts where the viewer may remove what others made.
	Manager map[string]bool
}

func (v Viewer) canSee(accountID string) bool { return slices.Contains(v.AccountIDs, accountID) }

// authorizeRemoval tells whether the viewer may remove what a person made in an account.
func (v Viewer) authorizeRemoval(accountID, personID string) error {
	if v.PersonID == personID || v.Manager[accountID] {
		return nil
	}
	return fault.New(fault.Forbidden, "Only who made this, or who manages the team, can delete it.").With("reason", "permission")
}

// Place is where a page ended.
type Place = asset.Place

// AddUpload makes what was taken in an upload of an account. Where it fails the
// bytes are left to Sweep: a commit whose answer got lost may have happened.
func (l *Library) AddUpload(ctx context.Context, v Viewer, accountID, name string, taken ingest.Taken) (u asset.Upload, err error) {
	if !v.canSee(accountID) {
		return asset.Upload{}, errNoAccount
	}
	err = l.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, v.PersonID); err != nil {
			return err
		}
		u = asset.Upload{
			ID:        ids.New(),
			AccountID: accountID,
			PersonID:  v.PersonID,
			Name:      asset.Name(name),
			Asset:     taken.Asset,
			Created:   tx.Now,
		}
		u.Asset.AccountID = accountID
		u.Asset.Created = tx.Now
		bytes := u.Asset.StoredBytes()
		if err := l.Storage.Charge(ctx, tx, accountID, bytes); err != nil {
			return err
		}
		if err := asset.AddUpload(ctx, tx, u); err != nil {
			return err
		}
		return l.Storage.ChargeTotal(ctx, tx, accountID, bytes)
	})
	return u, err
}

// Room tells how many bytes an account can store now, and refuses where it is
// less than bytes. It is for saying no before a file is sent: AddUpload decides.
func (l *Library) Room(ctx context.Context, accountID string, bytes int64) (room int64, err error) {
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		room, err = l.Storage.Fits(ctx, tx, accountID, bytes)
		return err
	})
	return room, err
}

// releaseFiles counts deleted files as leaving.
func releaseFiles(ctx context.Context, tx *sqldb.Tx, assetIDs []string) error {
	freed := map[string]int64{}
	for some := range slices.Chunk(assetIDs, sweepBatch) {
		bytes, err := asset.Release(ctx, tx, some)
		if err != nil {
			return err
		}
		for accountID, n := range bytes {
			freed[accountID] += n
		}
	}
	return quota.Release(ctx, tx, freed)
}

var errNoAccount = fault.New(fault.Forbidden, "You have no access to this account.").With("reason", "account")

// Uploads gives at most limit uploads of an account, newest first.
func (l *Library) Uploads(ctx context.Context, v Viewer, accountID string, after *Place, limit int) (all []asset.Upload, err error) {
	if !v.canSee(accountID) {
		return nil, errNoAccount
	}
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		all, err = asset.Uploads(ctx, tx, accountID, after, limit)
		return err
	})
	return all, err
}

// Upload finds an upload of an account.
func (l *Library) Upload(ctx context.Context, v Viewer, accountID, id string) (u asset.Upload, err error) {
	if !v.canSee(accountID) {
		return asset.Upload{}, asset.ErrNoUpload
	}
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		u, err = asset.UploadByID(ctx, tx, accountID, id)
		return err
	})
	return u, err
}

// DeleteUpload deletes an upload, for who brought it and for managers of the
// account.
func (l *Library) DeleteUpload(ctx context.Context, v Viewer, accountID, id string) error {
	if !v.canSee(accountID) {
		return asset.ErrNoUpload
	}
	return l.DB.Write(ctx, func(tx *sqldb.Tx) error {
		u, err := asset.UploadByID(ctx, tx, accountID, id)
		if err != nil {
			return err
		}
		if err := v.authorizeRemoval(accountID, u.PersonID); err != nil {
			return err
		}
		if err := asset.DeleteUpload(ctx, tx, accountID, id); err != nil {
			return err
		}
		return releaseFiles(ctx, tx, []string{u.Asset.ID})
	})
}

// The kinds of references that inputs of a run can be.
const (
	UploadRef  = "UPLOAD_REF"
	LibraryRef = "LIBRARY_REF"
)

// Resolve finds the file behind a reference for a run of an account. Its bytes
// stay for OrphanAge whatever happens to the reference: time enough to commit
// the run that works on it, which then keeps them.
func Resolve(ctx context.Context, tx *sqldb.Tx, accountID, kind, id string) (asset.Asset, error) {
	switch kind {
	case UploadRef:
		u, err := asset.UploadByID(ctx, tx, accountID, id)
		if err == nil && !u.Asset.Gone.IsZero() {
			err = asset.ErrNoUpload
		}
		return u.Asset, err
	case LibraryRef:
		run, result, ok := splitItemID(id)
		if !ok {
			return asset.Asset{}, errNoItem
		}
		assetID, err := resultAsset(ctx, tx, accountID, run, result)
		if err != nil {
			return asset.Asset{}, orNotFound(err, errNoItem)
		}
		return asset.Get(ctx, tx, assetID)
	}
	return asset.Asset{}, fault.New(fault.Invalid, "A reference is an UPLOAD_REF or a LIBRARY_REF.")
}

// splitItemID takes the id of a library item apart. Both parts are checked here,
// since databases differ in what they do with odd bytes.
func splitItemID(id string) (run, result string, ok bool) {
	run, result, _ = strings.Cut(id, ":")
	return run, result, ids.Valid(run) && validUUID(result)
}

// validUUID tells whether s is written the way we write UUIDs.
func validUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
