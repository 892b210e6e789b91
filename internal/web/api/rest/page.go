package rest

import (
	"net/http"
	"strconv"
	"time"

	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/people/company"
)

// Pager reads and creates the cursors of paginated lists.
type Pager struct {
	Cursors     cursor.Sealer
	DefaultSize int
	MaxSize     int
}

// Page is the requested page of a paginated list.
type Page struct {
	Limit int
	// After is the sort key of the last item of the previous page: the value that
	// the list is ordered by, and the id. It is nil on the first page.
	After []string

	scope string
	pager Pager
}

// WithSize returns the pager for a list with a fixed page size.
func (p Pager) WithSize(size int) Pager {
	p.DefaultSize = size
	p.MaxSize = size
	return p
}

// ReadPage reads the parameters limit and cursor. A cursor is valid only in
// the scope that it was created for, such as one list of one person.
func (p Pager) ReadPage(params *Params, scope string) (Page, error) {
	page := Page{Limit: params.ReadLimit(p.DefaultSize, p.MaxSize), scope: scope, pager: p}
	sealed := params.ReadText("cursor")
	if err := params.Err(); err != nil {
		return page, err
	}
	if sealed == "" {
		return page, nil
	}

	after, err := p.Cursors.Open(scope, sealed, 2)
	page.After = after
	return page, err
}

// AfterTime returns the time in After, for lists that are ordered by time.
func (p Page) AfterTime() (time.Time, error) { return ParseMicros(p.After[0]) }

// Cut removes the item after the end of the page, which was read only to find
// out whether a next page exists. next is the cursor of the next page, or nil
// on the last page. key returns the sort key of an item.
func Cut[T any](p Page, items []T, key func(T) (string, string)) (page []T, hasMore bool, next *string) {
	if len(items) <= p.Limit {
		return items, false, nil
	}

	items = items[:p.Limit]
	text, id := key(items[p.Limit-1])
	sealed := p.pager.Cursors.SealKey(p.scope, text, id)
	return items, true, &sealed
}

// ReadNamedPage reads the requested page of a list of a company or team that
// is ordered by name.
func ReadNamedPage(p Pager, r *http.Request, list, ownerID string) (Page, company.Key, error) {
	call := CallOf(r)
	page, err := p.ReadPage(call.Params, cursor.Scope(list, call.Principal.PersonID, ownerID))
	if err != nil || page.After == nil {
		return page, company.Key{}, err
	}
	return page, company.Key{Text: page.After[0], ID: page.After[1]}, nil
}

// NameKey returns the sort key of an item of a list that is ordered by name.
func NameKey[T interface{ ListKey() company.Key }](item T) (string, string) {
	k := item.ListKey()
	return k.Text, k.ID
}

// Micros formats a time in microseconds since 1970 for a cursor.
func Micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// ParseMicros parses a time that Micros formatted.
func ParseMicros(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fault.New(fault.Invalid, "Some parameters are not valid.").Field("cursor", "This cursor does not belong to this list.")
	}
	return time.UnixMicro(n).UTC(), nil
}
