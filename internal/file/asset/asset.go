// Package asset knows the files of accounts: what people brought and what tools
// made, and which of them are uploads.
//
// A row says what the bytes are; the bytes themselves lie in the blob store
// under keys that follow from no name of theirs. A row is never removed. What
// was deleted is marked, its bytes go with a later sweep, and from then on the
// row is gone too.
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

// Asset is a file of an account.
type Asset struct {
	ID        string
	AccountID string // a person's or a team's id
	Type      string // IMG, VID, AUDIO, ASSET_3D or TEXT
	MimeType  string
	Size      int64
	SHA256    string // in hex
	// Width, Height and Duration are 0 where it has none.
	Width, Height int
	Duration      time.Duration
	Blurhash      string
	// Blob, Thumb and Preview are keys of the blob store: the bytes, a small
	// picture of them, and the first frame of a video. The last two may be "".
	Blob, Thumb, Preview string
	PictureBytes         int64 // of Thumb and Preview together
	Created              time.Time
	Gone                 time.Time // when the bytes were removed, zero while they are there
}

// StoredBytes is how much of the store the file takes, with the pictures of it.
func (a Asset) StoredBytes() int64 { return a.Size + a.PictureBytes }

// Place is where a page of a list ended: newest first, and by id among those
// of one moment.
type Place struct {
	Created time.Time
	ID      string
}

// Insert adds a file. It is created now where it does not say when.
func Insert(ctx context.Context, tx *sqldb.Tx, a Asset) error {
	if a.AccountID == "" || a.Blob == "" {
		return fmt.Errorf("insert asset %s: it has no account or no bytes", a.ID)
	}
	if a.Created.IsZero() {
		a.Created = tx.Now
	}
	if err := insertAsset(ctx, tx, a); err != nil {
		return fmt.Errorf("insert asset: %w", err)
	}
	return nil
}

// Get finds a file, gone ones too. It asks nobody whose it is.
func Get(ctx context.Context, tx *sqldb.Tx, id string) (Asset, error) {
	if !ids.Valid(id) {
		return Asset{}, errNoAsset
	}
	return byID(ctx, tx, id)
}

var errNoAsset = fault.New(fault.NotFound, "There is no such file.")

// Upload is a file that somebody brought.
type Upload struct {
	ID        string
	AccountID string
	PersonID  string // who brought it
	Name      string // as they called it, for people to read
	Asset     Asset
	Created   time.Time
}

// Place is where the upload stands in a list.
func (u Upload) Place() Place { return Place{u.Created, u.ID} }

// ErrNoUpload is one answer for uploads of others, for those that were deleted
// and for those that never were.
var ErrNoUpload = fault.New(fault.NotFound, "There is no such upload.")

// AddUpload adds an upload together with its file, which belongs to the same
// account. The name is made what Name makes of it.
func AddUpload(ctx context.Context, tx *sqldb.Tx, u Upload) error {
	if u.Created.IsZero() {
		u.Created = tx.Now
	}
	u.Asset.AccountID = u.AccountID
	u.Name = Name(u.Name)
	if err := Insert(ctx, tx, u.Asset); err != nil {
		return err
	}
	if err := insertUpload(ctx, tx, u); err != nil {
		return fmt.Errorf("add upload: %w", err)
	}
	return nil
}

// UploadByID finds an upload of an account.
func UploadByID(ctx context.Context, tx *sqldb.Tx, accountID, id string) (Upload, error) {
	if !ids.Valid(id) {
		return Upload{}, ErrNoUpload
	}
	return uploadByID(ctx, tx, accountID, id)
}

// Uploads gives at most limit uploads of an account, newest first: those after
// a place, or the first.
func Uploads(ctx context.Context, tx *sqldb.Tx, accountID string, after *Place, limit int) ([]Upload, error) {
	return uploads(ctx, tx, accountID, after, limit)
}

// Release marks files as deleted that were not, and gives their stored bytes by
// account.
func Release(ctx context.Context, tx *sqldb.Tx, ids []string) (map[string]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return release(ctx, tx, ids)
}

// DeleteUpload takes an upload out of every list at once. The bytes stay until
// the sweep finds that no run needs them.
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
	maxName     = 255               // characters
	maxNameRead = 4 * (maxName + 1) // bytes
)

// Name makes what somebody called a file one clean line of at most 255
// characters. It is for people: no path may be made of it.
func Name(s string) string {
	s = strings.TrimSpace(sanitize.Line(s, maxNameRead))
	if utf8.RuneCountInString(s) > maxName {
		s = strings.TrimSpace(string([]rune(s)[:maxName]))
	}
	return s
}
