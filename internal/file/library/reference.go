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

// Resolve returns the file that a reference in the inputs of a run names. Its
// bytes stay at least for OrphanAge, even if the upload or result is deleted
// meanwhile. That is enough time to commit the run, which then keeps the bytes.
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
	return asset.Asset{}, fault.New(fault.Invalid, "The kind of a reference must be UPLOAD_REF or LIBRARY_REF.")
}

// splitItemID splits the ID of a library item. It validates both parts, because
// databases treat invalid bytes differently.
func splitItemID(id string) (run, result string, ok bool) {
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

// Shown describes the file behind a reference, for display.
type Shown struct {
	Kind           Kind   // kind of its signed URLs
	ID             string // ID in its signed URLs
	Type, MimeType string
	Width, Height  int
	Duration       time.Duration
	Size           int64
	Names          Names
}

// maxRefsPerQuery is the maximum number of references in one query.
const maxRefsPerQuery = 1024

// Show returns the files behind references of one kind, by reference. Files of
// other accounts, deleted files and files without bytes are left out, like
// references to nothing.
func Show(ctx context.Context, tx *sqldb.Tx, accountID, kind string, refs []string) (map[string]Shown, error) {
	valid := ids.Valid
	find := referencedUploads
	switch kind {
	case UploadRef:
	case LibraryRef:
		valid = func(ref string) bool { _, _, ok := splitItemID(ref); return ok }
		find = referencedResults
	default:
		return nil, fault.New(fault.Invalid, "The kind of a reference must be UPLOAD_REF or LIBRARY_REF.")
	}

	all := map[string]Shown{}
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return !valid(ref) })
	for page := range slices.Chunk(refs, maxRefsPerQuery) {
		if err := find(ctx, tx, accountID, page, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func resultAsset(ctx context.Context, tx *sqldb.Tx, accountID, run, result string) (assetID string, err error) {
	err = tx.QueryRow(ctx, `
		SELECT a.id FROM result r JOIN run n ON n.id = r.run_id JOIN asset a ON a.id = r.asset_id
		WHERE r.id = $1 AND n.library_id = $2 AND r.account_id = $3 AND a.account_id = $3 AND r.deleted IS NULL AND a.gone IS NULL`,
		result, run, accountID).Scan(&assetID)
	return assetID, err
}

const referencedColumns = `a.type, a.mime_type, coalesce(a.width, 0), coalesce(a.height, 0), coalesce(a.duration_ms, 0), a.size_bytes, a.blob, a.thumb, a.preview`

func (s *Shown) scanFile(row sqldb.Scanner, k *Keys, first ...any) error {
	var ms int64
	err := row.Scan(append(first, &s.Type, &s.MimeType, &s.Width, &s.Height, &ms, &s.Size, &k.Blob, &k.Thumb, &k.Preview)...)
	s.Duration = time.Duration(ms) * time.Millisecond
	return err
}

// referencedUploads adds the existing uploads among refs to all.
func referencedUploads(ctx context.Context, tx *sqldb.Tx, accountID string, refs []string, all map[string]Shown) error {
	in, args := sqldb.In(refs, accountID)
	return tx.Each(ctx, `
		SELECT u.id, u.name, `+referencedColumns+` FROM upload u JOIN asset a ON a.id = u.asset_id
		WHERE u.account_id = $1 AND a.account_id = $1 AND u.deleted IS NULL AND a.gone IS NULL AND u.id IN `+in, args,
		func(row sqldb.Scanner) error {
			s := Shown{Kind: OfUpload}
			var name string
			var k Keys
			err := s.scanFile(row, &k, &s.ID, &name)
			s.Names = namesOf(name, k)
			all[s.ID] = s
			return err
		})
}

// referencedResults adds the existing results among refs to all.
func referencedResults(ctx context.Context, tx *sqldb.Tx, accountID string, refs []string, all map[string]Shown) error {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		_, ids[i], _ = splitItemID(ref)
	}

	in, args := sqldb.In(ids, accountID)
	return tx.Each(ctx, `
		SELECT n.library_id, r.id, coalesce(t.slug, 'result'), `+referencedColumns+`
		FROM result r JOIN run n ON n.id = r.run_id JOIN asset a ON a.id = r.asset_id LEFT JOIN tool t ON t.id = r.tool_id
		WHERE r.account_id = $1 AND a.account_id = $1 AND r.deleted IS NULL AND a.gone IS NULL AND r.id IN `+in, args,
		func(row sqldb.Scanner) error {
			s := Shown{Kind: OfResult}
			var run, tool string
			var k Keys
			err := s.scanFile(row, &k, &run, &s.ID, &tool)
			s.Names = ResultNames(tool, s.ID, k)
			all[run+":"+s.ID] = s
			return err
		})
}
