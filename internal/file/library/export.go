package library

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
)

// Kept is a result of a personal account, for whoever leaves or takes a copy.
type Kept struct {
	ID, ResultID string
	RequestID    string
	ToolID       string
	Created      time.Time
	Asset        asset.Asset // as far as it describes the bytes
	Expired      bool        // which are gone
	Note         string      // what its tool said about it
	Favorited    bool        // by its owner
	Place        KeptPlace
}

// KeptPlace is where a page of AllKept ended. The zero one is the beginning.
type KeptPlace struct {
	created time.Time
	runID   string
	place   int64
}

// AllKept gives at most limit results of a person's own account, texts too, in
// the order in which their runs began.
func AllKept(ctx context.Context, tx *sqldb.Tx, personID string, after KeptPlace, limit int) ([]Kept, error) {
	return kept(ctx, tx, personID, after, limit)
}

// Favorite is the mark that a person put on a result.
type Favorite struct {
	ResultID string
	Created  time.Time
}

// Favorites gives at most limit marks of a person by the ids of the results:
// those after one, or the first.
func Favorites(ctx context.Context, tx *sqldb.Tx, personID, after string, limit int) ([]Favorite, error) {
	return favorites(ctx, tx, personID, after, limit)
}

// ForgetFavorites takes all marks of a person away.
func ForgetFavorites(ctx context.Context, tx *sqldb.Tx, personID string) error {
	return forgetFavorites(ctx, tx, personID)
}

// EraseUploads deletes at most limit uploads of an account with their names,
// also of those that were deleted before: those after an id, or the first. It
// gives the id to go on after, "" where none is left. Sweep removes the bytes.
func EraseUploads(ctx context.Context, tx *sqldb.Tx, accountID, after string, limit int) (last string, err error) {
	return eraseUploads(ctx, tx, accountID, after, limit)
}

// EraseResults deletes what runs made, and everybody's marks on it. Sweep
// removes the bytes, those of files that only these runs worked on too.
func EraseResults(ctx context.Context, tx *sqldb.Tx, runIDs []string) error {
	if len(runIDs) == 0 {
		return nil
	}
	return eraseResults(ctx, tx, runIDs)
}
