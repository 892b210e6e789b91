// Package asset stores the database rows that describe the files of accounts:
// uploads of people and files that tools generated.
//
// A row describes a file; its content is in the blob store, under keys that
// are never derived from a file's name. Rows are never deleted. A deleted file
// is marked as released; later its content is deleted and the column gone is
// set.
package asset

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// Asset describes one file of an account.
type Asset struct {
	ID        string
	AccountID string // ID of a person or a team
	Type      string // IMG, VID, AUDIO, ASSET_3D or TEXT
	MimeType  string
	Size      int64
	SHA256    string // hash of the content, in hexadecimal
	// Width and Height, in pixels, and Duration are 0 if the file has none.
	Width, Height int
	Duration      time.Duration
	Blurhash      string
	// Blob, Thumb and Preview are the blob store keys of the file, of its
	// thumbnail, and of the first frame of a video. Thumb and Preview are
	// empty if there is none.
	Blob, Thumb, Preview string
	PictureBytes         int64 // size of Thumb and Preview together
	Created              time.Time
	Gone                 time.Time // when the content was deleted; zero until then
}

// StoredBytes returns the size of the file together with its thumbnail and
// preview, in bytes.
func (a Asset) StoredBytes() int64 { return a.Size + a.PictureBytes }

// Cursor is the position of the last entry of a page in a list. Lists are
// sorted by creation time, newest first, then by ID.
type Cursor struct {
	Created time.Time
	ID      string
}

// Insert adds the row of a file. If Created is zero, it is set to the time of
// the transaction.
func Insert(ctx context.Context, tx *sqldb.Tx, a Asset) error {
	if a.AccountID == "" || a.Blob == "" {
		return fmt.Errorf("insert asset %s: the account and the blob key must not be empty", a.ID)
	}
	if a.Created.IsZero() {
		a.Created = tx.Now
	}
	if err := insertAsset(ctx, tx, a); err != nil {
		return fmt.Errorf("insert asset: %w", err)
	}
	return nil
}

// Get returns a file by ID, even if its content has been deleted. It does not
// check which account owns the file.
func Get(ctx context.Context, tx *sqldb.Tx, id string) (Asset, error) {
	if !ids.Valid(id) {
		return Asset{}, errNoAsset
	}
	return byID(ctx, tx, id)
}

var errNoAsset = fault.New(fault.NotFound, "There is no such file.")

// Upload is a file that a person uploaded.
type Upload struct {
	ID        string
	AccountID string
	PersonID  string // the person who uploaded the file
	Name      string // the name that the person gave the file; for display only
	Asset     Asset
	Created   time.Time
}

// PageCursor returns the upload's position in paginated lists.
func (u Upload) PageCursor() Cursor { return Cursor{u.Created, u.ID} }

// ErrNoUpload is the error for uploads of other accounts, deleted uploads, and
// IDs that never existed. It is the same for all, so that clients cannot
// distinguish them.
var ErrNoUpload = fault.New(fault.NotFound, "There is no such upload.")

// AddUpload inserts an upload and its file for the same account. It sanitizes
// the name with CleanName.
func AddUpload(ctx context.Context, tx *sqldb.Tx, u Upload) error {
	if u.Created.IsZero() {
		u.Created = tx.Now
	}

	u.Asset.AccountID = u.AccountID
	u.Name = CleanName(u.Name)
	if err := Insert(ctx, tx, u.Asset); err != nil {
		return err
	}
	if err := insertUpload(ctx, tx, u); err != nil {
		return fmt.Errorf("add upload: %w", err)
	}
	return nil
}

// UploadByID returns an upload of the account. It returns ErrNoUpload if the
// account has no such upload.
func UploadByID(ctx context.Context, tx *sqldb.Tx, accountID, id string) (Upload, error) {
	if !ids.Valid(id) {
		return Upload{}, ErrNoUpload
	}
	return uploadByID(ctx, tx, accountID, id)
}

// DeleteUpload marks an upload as deleted, which removes it from all lists.
// Its content is deleted later, when no run needs it any more.
func DeleteUpload(ctx context.Context, tx *sqldb.Tx, accountID, id string) error {
	if !ids.Valid(id) {
		return ErrNoUpload
	}

	deleted, err := deleteUpload(ctx, tx, accountID, id)
	if err == nil && !deleted {
		return ErrNoUpload
	}
	return err
}

const (
	maxName     = 255               // maximum length of a name, in characters
	maxNameRead = 4 * (maxName + 1) // maximum number of bytes of a client's name that are used
)

// CleanName converts a file name from a client to one line of at most 255
// characters without control characters. The result is only for display; never
// build a path from it.
func CleanName(s string) string {
	s = strings.TrimSpace(sanitize.Line(s, maxNameRead))
	if utf8.RuneCountInString(s) > maxName {
		s = strings.TrimSpace(string([]rune(s)[:maxName]))
	}
	return s
}
