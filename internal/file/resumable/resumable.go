// Package resumable receives uploads in parts, so that a client can continue
// after a failure, at any node.
//
//	created ──parts──▶ unfinished ──last byte, accepted──▶ finished ──time──▶ deleted
//	   │                   │
//	   └───────────────────┴──time, termination, refused file──▶ deleted
//
// The bytes of a request are stored as blobs of at most 8 MiB. A blob counts
// when a transaction has added its row and moved the offset; the transaction is
// conditional on the old offset, so of two requests for the same bytes one wins
// and the other gets UploadOffsetConflict. There are no locks to expire: if a
// node dies, its blobs without a row are deleted later.
//
// The last part is not counted before the file has been accepted: the offset
// reaches the length in the transaction that adds the upload to the library. An
// unfinished upload uses the account's storage with its whole length.
package resumable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/quota"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// Folder is the folder of the parts of unfinished uploads in the blob store.
const Folder = "resumable"

// Service receives resumable uploads.
type Service struct {
	DB      *sqldb.DB
	Library *library.Library
	// Intake validates and stores finished files. Its blob store also has the
	// parts.
	Intake   *ingest.Pipeline
	Settings Settings
}

// Settings are the limits of resumable uploads.
type Settings struct {
	Lifetime      time.Duration // of an unfinished upload after its last bytes, and of the record of a finished one
	MaxUnfinished int           // unfinished uploads of a person at a time
	MaxBytes      int64         // of a file
	DecodeWait    time.Duration // the longest time that a file waits for memory to decode it
	OrphanAge     time.Duration // the age at which a part without a row is deleted
}

// Upload is a file of which a part has arrived, or all of it.
type Upload struct {
	ID        string
	AccountID string
	PersonID  string
	Name      string // name of the file
	Metadata  string // the Upload-Metadata header of the creation
	Length    int64
	Offset    int64  // bytes that have arrived
	Key       string // the idempotency key of the creation; may be empty
	UploadID  string // the upload in the library; empty until it is finished
	Created   time.Time
	Expires   time.Time

	parts int64 // stored parts of an unfinished upload
}

// Finished reports whether the whole file has arrived and was accepted.
func (u Upload) Finished() bool { return u.UploadID != "" }

// errNoUpload is the error for uploads of other people, expired uploads, and
// IDs that never existed.
var errNoUpload = fault.New(fault.NotFound, "There is no such resumable upload.")

// Draft describes a new upload.
type Draft struct {
	Name     string
	Metadata string
	Length   int64
	Key      string // the idempotency key; may be empty
}

// Create begins an upload to the principal's account, and reserves storage for
// the whole file. If the person has an upload with the same key, Create returns
// that one, and replayed is true.
func (s *Service) Create(ctx context.Context, p principal.Principal, d Draft) (u Upload, replayed bool, err error) {
	if d.Length > s.Settings.MaxBytes {
		return Upload{}, false, fault.New(fault.UploadTooLarge, "The file is too large.").With("limit_bytes", s.Settings.MaxBytes)
	}

	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		replayed = false
		if err := person.Lock(ctx, tx, p.PersonID); err != nil {
			return err
		}
		before, err := findReplay(ctx, tx, p, d)
		if err != nil {
			return err
		}
		if before != nil {
			u = *before
			replayed = true
			return nil
		}

		n, err := countUnfinished(ctx, tx, p.PersonID)
		if err != nil {
			return err
		}
		if n >= s.Settings.MaxUnfinished {
			return fault.TooMany("You have too many unfinished uploads. Finish or delete one of them first.", s.Settings.MaxUnfinished, 0, retryUnfinished)
		}

		u = Upload{
			ID:        ids.New(),
			AccountID: p.AccountID,
			PersonID:  p.PersonID,
			Name:      asset.CleanName(d.Name),
			Metadata:  d.Metadata,
			Length:    d.Length,
			Key:       d.Key,
			Created:   tx.Now,
			Expires:   tx.Now.Add(s.Settings.Lifetime),
		}
		if err := s.Library.Storage.ChargeAccount(ctx, tx, u.AccountID, u.Length); err != nil {
			return err
		}
		if err := insertUpload(ctx, tx, u); err != nil {
			return err
		}
		return s.Library.Storage.ChargeTotal(ctx, tx, u.AccountID, u.Length)
	})
	if err != nil {
		return Upload{}, false, err
	}
	return u, replayed, nil
}

// findReplay returns the upload that the person created with the key of the
// draft, or nil. It returns an error if that upload differs from the draft. An
// expired upload loses its key.
func findReplay(ctx context.Context, tx *sqldb.Tx, p principal.Principal, d Draft) (*Upload, error) {
	if d.Key == "" {
		return nil, nil
	}

	u, err := byKey(ctx, tx, p.PersonID, d.Key)
	switch {
	case errors.Is(err, sqldb.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case !u.Expires.After(tx.Now):
		return nil, clearKey(ctx, tx, u.ID)
	case u.AccountID != p.AccountID || u.Length != d.Length || u.Metadata != d.Metadata:
		return nil, fault.New(fault.IdempotencyKeyConflict, "This key was used for another upload.")
	}
	return &u, nil
}

// retryUnfinished is the Retry-After for a person with too many unfinished
// uploads. Only the person can end the wait, so it is no more than a hint.
const retryUnfinished = time.Minute

// Get returns an upload of the principal. Expired uploads are not returned.
func (s *Service) Get(ctx context.Context, p principal.Principal, id string) (u Upload, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		u, err = findUpload(ctx, tx, p, id, "")
		return err
	})
	return u, err
}

// findUpload returns an upload of the principal that has not expired. locking
// is the SQL clause that locks its row, or "".
func findUpload(ctx context.Context, tx *sqldb.Tx, p principal.Principal, id, locking string) (Upload, error) {
	if !ids.Valid(id) {
		return Upload{}, errNoUpload
	}

	u, err := byID(ctx, tx, id, locking)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Upload{}, errNoUpload
	}
	if err == nil && (u.PersonID != p.PersonID || u.AccountID != p.AccountID || !u.Expires.After(tx.Now)) {
		return Upload{}, errNoUpload
	}
	return u, err
}

// Delete abandons an upload, and frees its storage. The file of a finished
// upload stays in the library.
func (s *Service) Delete(ctx context.Context, p principal.Principal, id string) error {
	var removed []string
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		u, err := findUpload(ctx, tx, p, id, tx.Dialect.ForUpdate)
		if err != nil {
			return err
		}
		removed, err = removeUpload(ctx, tx, u)
		return err
	})
	if err != nil {
		return err
	}
	s.deleteBlobs(ctx, removed)
	return nil
}

// removeUpload deletes the rows of an upload, frees the storage that it
// reserved, and returns the keys of its parts. The caller deletes them after the
// commit. Call it last in a transaction, because it locks a row that other
// accounts need.
func removeUpload(ctx context.Context, tx *sqldb.Tx, u Upload) (keys []string, err error) {
	parts, err := partsOf(ctx, tx, u.ID)
	if err != nil {
		return nil, err
	}
	if err := deleteUpload(ctx, tx, u.ID); err != nil {
		return nil, err
	}
	if u.Finished() {
		return nil, nil
	}
	return keysOf(parts), quota.Unreserve(ctx, tx, u.AccountID, u.Length)
}

// part is a sequence of bytes of an unfinished upload.
type part struct {
	start, size int64
	sha256      string // in hexadecimal
	blob        string
}

func keysOf(parts []part) []string {
	keys := make([]string, len(parts))
	for i, one := range parts {
		keys[i] = one.blob
	}
	return keys
}

// newKey returns a new blob key for the part of an upload that begins at start.
func newKey(uploadID string, start int64) string {
	sum := sha256.Sum256([]byte(uploadID))
	return Folder + "/" + hex.EncodeToString(sum[:1]) + "/" + uploadID + "-" + strconv.FormatInt(start, 10) + "-" + ids.New()
}

// cleanupTimeout is the time limit for deleting blobs that are not needed.
const cleanupTimeout = 30 * time.Second

// deleteBlobs deletes parts that no row refers to. It ignores errors and works
// even after ctx is cancelled; SweepExpired deletes what remains.
func (s *Service) deleteBlobs(ctx context.Context, keys []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	for _, key := range keys {
		_ = s.Intake.Blobs.Delete(ctx, key)
	}
}
