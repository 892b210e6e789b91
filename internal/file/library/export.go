package library

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
)

// Kept is a result of a personal account, for the export of a person's data.
type Kept struct {
	ID, ResultID string
	RequestID    string
	ToolID       string
	Created      time.Time
	Asset        asset.Asset // only the fields that describe the bytes
	Expired      bool        // the bytes are removed
	Note         string      // the tool's note on the result
	Favorited    bool        // by the owner of the account
	Place        KeptPlace
}

// KeptPlace is the position after a page of AllKept. The zero value is the
// beginning.
type KeptPlace struct {
	created time.Time
	runID   string
	place   int64
}

// Favorite is a person's mark on a result.
type Favorite struct {
	ResultID string
	Created  time.Time
}

// AllKept returns at most limit results of a person's own account, including
// texts, in the order in which their runs were created.
func AllKept(ctx context.Context, tx *sqldb.Tx, personID string, after KeptPlace, limit int) ([]Kept, error) {
	return sqldb.All(ctx, tx, `
		SELECT n.created, n.id, n.library_id, n.tool_id, r.place, r.id, r.created, a.type, a.mime_type, a.size_bytes, a.sha256,
			coalesce(a.width, 0), coalesce(a.height, 0), coalesce(a.duration_ms, 0), a.blob, a.gone IS NOT NULL, r.note,
			EXISTS (SELECT 1 FROM favorite f WHERE f.person_id = $1 AND f.result_id = r.id)
		FROM run n JOIN result r ON r.run_id = n.id JOIN asset a ON a.id = r.asset_id
		WHERE n.account_id = $1 AND r.deleted IS NULL AND (n.created, n.id) >= ($2, $3) AND (n.created, n.id, r.place) > ($2, $3, $4)
		ORDER BY n.created, n.id, r.place LIMIT $5`,
		[]any{personID, after.created.UnixMicro(), after.runID, after.place, int64(limit)}, func(row sqldb.Scanner) (k Kept, err error) {
			var started, created sqldb.Time
			var library string
			var ms int64
			err = row.Scan(&started, &k.RequestID, &library, &k.ToolID, &k.Place.place, &k.ResultID, &created, &k.Asset.Type, &k.Asset.MimeType, &k.Asset.Size, &k.Asset.SHA256,
				&k.Asset.Width, &k.Asset.Height, &ms, &k.Asset.Blob, &k.Expired, &k.Note, &k.Favorited)
			k.ID = library + ":" + k.ResultID
			k.Created = created.Time
			k.Asset.Duration = time.Duration(ms) * time.Millisecond
			k.Place.created = started.Time
			k.Place.runID = k.RequestID
			return k, err
		})
}

// Favorites returns at most limit favorites of a person with result IDs above
// after, in the order of result IDs.
func Favorites(ctx context.Context, tx *sqldb.Tx, personID, after string, limit int) ([]Favorite, error) {
	return sqldb.All(ctx, tx, `SELECT result_id, created FROM favorite WHERE person_id = $1 AND result_id > $2 ORDER BY result_id LIMIT $3`,
		[]any{personID, after, int64(limit)}, func(row sqldb.Scanner) (f Favorite, err error) {
			var created sqldb.Time
			err = row.Scan(&f.ResultID, &created)
			f.Created = created.Time
			return f, err
		})
}
