package library

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
)

// Mark is a place in a list of items.
type Mark struct {
	Index   int64     // number of the item at this place, from 0
	After   *Cursor   // position of the item before it, with which ListItems continues here; nil for the first item
	Created time.Time // when the item at this place was created
}

// maxMarks is the maximum number of marks in a list. A longer list has fewer
// marks for its length.
const maxMarks = 10_000

// ListMarks counts the items that ListItems lists for a filter, and returns
// places in that list: one for each number of items in every, which must be at
// least 2. The count may be a few seconds old.
func (l *Library) ListMarks(ctx context.Context, p principal.Principal, f Filter, every int64) (total int64, marks []Mark, err error) {
	f, isEmpty, err := f.normalize(p)
	if err != nil || isEmpty {
		return 0, nil, err
	}

	var ends []numberedItem
	step := every
	err = l.DB.ReadStale(ctx, func(tx *sqldb.Tx) (err error) {
		// Most lists are numbered once. The items after the last marked one are
		// less than a section.
		step = every
		ends, err = markedItems(ctx, tx, p.PersonID, p.AccountIDs(), f, step, 2*maxMarks+1)
		if err != nil {
			return err
		}
		if len(ends) == 0 {
			total = 0
			return nil
		}
		if len(ends) <= 2*maxMarks {
			last := ends[len(ends)-1]
			rest, err := countItems(ctx, tx, p.PersonID, p.AccountIDs(), f, &last.cursor)
			total = last.index + 1 + rest
			return err
		}

		total, err = countItems(ctx, tx, p.PersonID, p.AccountIDs(), f, nil)
		if err != nil {
			return err
		}
		for total > step*maxMarks {
			step *= 2
		}
		ends, err = markedItems(ctx, tx, p.PersonID, p.AccountIDs(), f, step, 2*maxMarks)
		return err
	})

	var previous *Cursor
	for i := range ends {
		if ends[i].index%step == 0 {
			marks = append(marks, Mark{Index: ends[i].index, After: previous, Created: ends[i].cursor.Created})
		}
		previous = &ends[i].cursor
	}
	return total, marks, err
}
