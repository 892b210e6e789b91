package library

import (
	"cmp"
	"context"
	"slices"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
)

// Item is one result of a run.
type Item struct {
	ID        string // library_run_id:result_uuid, which callers do not take apart
	ResultID  string
	AccountID string
	RequestID string
	PersonID  string // who made it
	ToolID    string
	TeamID    string // "" for a personal account
	Created   time.Time
	Prompt    string
	Inputs    string // of the run, JSON; Get only

	Type, MimeType string
	Width, Height  int
	Duration       time.Duration
	Size           int64
	SHA256         string
	Blurhash       string
	Names          Names
	Expired        bool   // the bytes are gone
	Note           string // what its tool says about it, "" for nothing

	Favorited bool // by the viewer
}

// Place is where the item stands in a list.
func (i Item) Place() Place { return Place{Created: i.Created, ID: i.ResultID} }

// Filter says which items a list has. The zero Filter has all.
type Filter struct {
	ToolIDs     []string // nil: of any tool; empty: of none
	Shape       string   // one of Shapes
	Resolution  string   // one of Resolutions
	Favorited   *bool
	From, Until time.Time // created from, and before
}

func (f Filter) checkValues() error {
	if f.Shape != "" && f.Shape != OtherShape && !slices.Contains(Shapes, f.Shape) {
		return fault.New(fault.Invalid, "There is no such aspect ratio.").On("aspect_ratio")
	}
	if f.Resolution != "" && !slices.Contains(Resolutions, f.Resolution) {
		return fault.New(fault.Invalid, "A resolution is 1K, 2K or 4K+.").On("resolution")
	}
	return nil
}

// errNoItem is one answer for items of others, for those that were deleted and
// for those that never were.
var errNoItem = fault.New(fault.NotFound, "There is no such library item.")

// List gives at most limit items of the viewer's accounts, newest first: those
// after a place, or the first. Texts are left out.
func (l *Library) List(ctx context.Context, v Viewer, f Filter, after *Place, limit int) (all []Item, err error) {
	if err := f.checkValues(); err != nil {
		return nil, err
	}
	if f.ToolIDs != nil {
		f.ToolIDs = slices.DeleteFunc(slices.Clone(f.ToolIDs), func(id string) bool { return !ids.Valid(id) })
		if len(f.ToolIDs) == 0 {
			return nil, nil
		}
	}
	if len(v.AccountIDs) == 0 {
		return nil, nil
	}
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all = nil
		// Each account has an index in the order of the list; all of them
		// together would have to be sorted whole.
		for _, id := range v.AccountIDs {
			some, err := queryItems(ctx, tx, Viewer{PersonID: v.PersonID, AccountIDs: []string{id}}, f, after, limit)
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Item) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ResultID, a.ResultID)) })
	return all[:min(limit, len(all))], err
}

// Get finds one item, with the inputs of its run.
func (l *Library) Get(ctx context.Context, v Viewer, id string) (i Item, err error) {
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		i, err = findItem(ctx, tx, v, id)
		return err
	})
	return i, err
}

func findItem(ctx context.Context, tx *sqldb.Tx, v Viewer, id string) (Item, error) {
	run, result, ok := splitItemID(id)
	if !ok || len(v.AccountIDs) == 0 {
		return Item{}, errNoItem
	}
	i, err := queryItem(ctx, tx, v, run, result)
	if err != nil {
		return Item{}, orNotFound(err, errNoItem)
	}
	return i, nil
}

// SetFavorite marks an item for the viewer alone, or takes the mark away. It
// may be said twice.
func (l *Library) SetFavorite(ctx context.Context, v Viewer, id string, on bool) error {
	return l.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, v.PersonID); err != nil {
			return err
		}
		i, err := findItem(ctx, tx, v, id)
		if err != nil {
			return err
		}
		return setFavorite(ctx, tx, v.PersonID, i.ResultID, on)
	})
}

// Delete deletes an item, for who made it and for managers of the account. Its
// addresses stop working at once.
func (l *Library) Delete(ctx context.Context, v Viewer, id string) error {
	return l.DB.Write(ctx, func(tx *sqldb.Tx) error {
		i, err := findItem(ctx, tx, v, id)
		if err != nil {
			return err
		}
		if err := v.authorizeRemoval(i.AccountID, i.PersonID); err != nil {
			return err
		}
		assetID, err := deleteResult(ctx, tx, i.ResultID)
		if err != nil {
			return orNotFound(err, errNoItem) // another was quicker
		}
		return releaseFiles(ctx, tx, []string{assetID})
	})
}
