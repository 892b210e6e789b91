package library

import (
	"context"
	"slices"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Shown is the file behind a reference, for those who show it.
type Shown struct {
	Kind           Kind   // of its addresses
	ID             string // in its addresses
	Type, MimeType string
	Width, Height  int
	Duration       time.Duration
	Size           int64
	Names          Names
}

// maxRefsPerQuery is how many references one query looks for.
const maxRefsPerQuery = 1024

// Show finds the files behind references of one kind, by the reference. What
// belongs to another account, was deleted or has lost its bytes is not among
// them, nor is what never was.
func Show(ctx context.Context, tx *sqldb.Tx, accountID, kind string, refs []string) (map[string]Shown, error) {
	valid := ids.Valid
	find := referencedUploads
	switch kind {
	case UploadRef:
	case LibraryRef:
		valid = func(ref string) bool { _, _, ok := splitItemID(ref); return ok }
		find = referencedResults
	default:
		return nil, fault.New(fault.Invalid, "A reference is an UPLOAD_REF or a LIBRARY_REF.")
	}
	all := map[string]Shown{}
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return !valid(ref) })
	for some := range slices.Chunk(refs, maxRefsPerQuery) {
		if err := find(ctx, tx, accountID, some, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}
