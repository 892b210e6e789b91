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
)

// The kinds of references to stored files in the inputs of a run.
const (
	UploadRef  = "UPLOAD_REF"
	LibraryRef = "LIBRARY_REF"
)

// ResolveReference returns the file that a reference in the inputs of a run
// refers to. Its content stays at least for OrphanAge, even if the upload or
// result is deleted meanwhile. That is enough time to commit the run, which
// then protects the content from deletion.
func ResolveReference(ctx context.Context, tx *sqldb.Tx, accountID, kind, id string) (asset.Asset, error) {
	switch kind {
	case UploadRef:
		u, err := asset.UploadByID(ctx, tx, accountID, id)
		if err == nil && !u.Asset.Gone.IsZero() {
			err = asset.ErrNoUpload
		}
		return u.Asset, err
	case LibraryRef:
		run, result, ok := SplitItemID(id)
		if !ok {
			return asset.Asset{}, errNoItem
		}

		assetID, err := resultAsset(ctx, tx, accountID, run, result)
		if err != nil {
			return asset.Asset{}, orNotFound(err, errNoItem)
		}
		return asset.Get(ctx, tx, assetID)
	}
	return asset.Asset{}, fault.New(fault.Invalid, "The kind of a reference must be UPLOAD_REF or LIBRARY_REF.")
}

// SplitItemID splits the ID of a library item into the run's library ID and
// the result's UUID. It validates both, because databases treat invalid bytes
// differently.
func SplitItemID(id string) (run, result string, ok bool) {
	run, result, _ = strings.Cut(id, ":")
	return run, result, ids.Valid(run) && validUUID(result)
}

// validUUID reports whether s is a UUID in canonical lower-case form.
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

// ReferencedFile describes the file that a reference refers to, for display.
type ReferencedFile struct {
	Kind           URLKind // kind of the file's signed URLs
	ID             string  // ID in the file's signed URLs
	Type, MimeType string
	Width, Height  int
	Duration       time.Duration
	Size           int64
	Blurhash       string
	Names          Names
}

// maxRefsPerQuery is the maximum number of references in one database query.
const maxRefsPerQuery = 1024

// DescribeReferences returns the files that references of one kind refer to,
// by reference. It leaves out files of other accounts, deleted files, and
// references to files that never existed.
func DescribeReferences(ctx context.Context, tx *sqldb.Tx, accountID, kind string, refs []string) (map[string]ReferencedFile, error) {
	valid := ids.Valid
	find := referencedUploads
	switch kind {
	case UploadRef:
	case LibraryRef:
		valid = func(ref string) bool { _, _, ok := SplitItemID(ref); return ok }
		find = referencedResults
	default:
		return nil, fault.New(fault.Invalid, "The kind of a reference must be UPLOAD_REF or LIBRARY_REF.")
	}

	all := map[string]ReferencedFile{}
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return !valid(ref) })
	for page := range slices.Chunk(refs, maxRefsPerQuery) {
		if err := find(ctx, tx, accountID, page, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}
