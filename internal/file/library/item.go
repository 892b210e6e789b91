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
	"atelier/internal/people/principal"
)

// Item is one result of a run, as the library lists it.
type Item struct {
	ID        string // library_run_id:result_uuid; opaque for clients
	ResultID  string
	AccountID string
	RequestID string
	PersonID  string // the person who started the run
	ToolID    string
	TeamID    string // empty for a personal account
	Created   time.Time
	Prompt    string
	Inputs    string // inputs of the run as JSON; set only by GetItem

	Type, MimeType string
	Width, Height  int
	Duration       time.Duration
	Size           int64
	SHA256         string
	Blurhash       string
	Names          Names
	Expired        bool   // the content has been deleted
	Note           string // the tool's note on the result; may be empty

	FlowID       string // run of the flow of which the run is a step, or ""
	Step         string // id of the step in the flow, or ""
	Intermediate bool   // the result is no result of the flow

	Favorited bool // the person who requests the item has marked it as a favorite
}

// Filter selects the items of a list. The zero Filter selects all items.
type Filter struct {
	Search      string   // words that the prompt must contain, all of them
	Type        string   // one of the types of asset.Asset
	ToolIDs     []string // nil selects all tools, an empty slice none
	AspectRatio string   // one of AspectRatios
	Resolution  string   // one of Resolutions
	Favorited   *bool
	FlowID      string    // run of a flow: only results of its steps, also intermediate ones, which are left out otherwise
	From, Until time.Time // items created at or after From and before Until
	OldestFirst bool      // the order of the list; otherwise the newest are first
}

func (f Filter) checkValues() error {
	if err := f.checkSearch(); err != nil {
		return err
	}
	if f.AspectRatio != "" && f.AspectRatio != OtherAspectRatio && !slices.Contains(AspectRatios, f.AspectRatio) {
		return fault.New(fault.Invalid, "The aspect ratio is not one of the supported values.").On("aspect_ratio")
	}
	if f.Resolution != "" && !slices.Contains(Resolutions, f.Resolution) {
		return fault.New(fault.Invalid, "The resolution must be 1K, 2K or 4K+.").On("resolution")
	}
	return nil
}

// normalize checks a filter for a list of the principal's accounts and removes
// invalid IDs of tools from it. isEmpty reports that the filter selects no item.
func (f Filter) normalize(p principal.Principal) (_ Filter, isEmpty bool, err error) {
	if err := f.checkValues(); err != nil {
		return f, false, err
	}
	if f.ToolIDs != nil {
		f.ToolIDs = slices.DeleteFunc(slices.Clone(f.ToolIDs), func(id string) bool { return !ids.Valid(id) })
		isEmpty = len(f.ToolIDs) == 0
	}
	return f, isEmpty || len(p.AccountIDs()) == 0, nil
}

// hasIndexOrder reports whether an index has the items of an account that the
// filter selects in the order of the list. The items of a search are in the
// order of the index that has all items.
func (f Filter) hasIndexOrder() bool {
	conditions := 0
	for _, isSet := range []bool{f.Type != "", len(f.ToolIDs) > 0, f.AspectRatio != "", f.Resolution != ""} {
		if isSet {
			conditions++
		}
	}
	return conditions <= 1 && len(f.ToolIDs) <= 1 && f.Favorited == nil && f.FlowID == ""
}

// errNoItem is the error for items of other accounts, deleted items, and IDs
// that never existed. It is the same for all, so that clients cannot
// distinguish them.
var errNoItem = fault.New(fault.NotFound, "There is no such library item.")

// ListItems returns at most limit items of the principal's accounts in the
// order of the filter, without the inputs of their runs. after is the position
// of the last item of the previous page, or nil for the first page.
func (l *Library) ListItems(ctx context.Context, p principal.Principal, f Filter, after *Cursor, limit int) (all []Item, err error) {
	f, isEmpty, err := f.normalize(p)
	if err != nil || isEmpty {
		return nil, err
	}

	if f.hasIndexOrder() {
		ctx = sqldb.WithIndexOrder(ctx)
	}
	err = sqldb.ReadList(ctx, l.DB, after == nil, func(tx *sqldb.Tx) error {
		all = nil
		// There is one query per account: each uses an index in list order,
		// while a query over all accounts would sort all of their rows.
		for _, id := range p.AccountIDs() {
			page, err := queryItems(ctx, tx, p.PersonID, []string{id}, f, after, limit)
			if err != nil {
				return err
			}
			all = append(all, page...)
		}
		return nil
	})

	slices.SortFunc(all, func(a, b Item) int {
		if f.OldestFirst {
			a, b = b, a
		}
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ResultID, a.ResultID))
	})
	return all[:min(limit, len(all))], err
}

// GetItem returns one item together with the inputs of its run.
func (l *Library) GetItem(ctx context.Context, p principal.Principal, id string) (i Item, err error) {
	err = l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		i, err = findItem(ctx, tx, p, id)
		return err
	})
	return i, err
}

func findItem(ctx context.Context, tx *sqldb.Tx, p principal.Principal, id string) (Item, error) {
	run, result, ok := SplitItemID(id)
	if !ok || len(p.AccountIDs()) == 0 {
		return Item{}, errNoItem
	}

	i, err := queryItem(ctx, tx, p, run, result)
	if err != nil {
		return Item{}, orNotFound(err, errNoItem)
	}
	return i, nil
}

// SetFavorite adds or removes the person's favorite mark on an item. Repeating
// a call changes nothing.
func (l *Library) SetFavorite(ctx context.Context, p principal.Principal, id string, on bool) error {
	return l.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, p.PersonID); err != nil {
			return err
		}

		i, err := findItem(ctx, tx, p, id)
		if err != nil {
			return err
		}
		return setFavorite(ctx, tx, p.PersonID, i.ResultID, on)
	})
}
