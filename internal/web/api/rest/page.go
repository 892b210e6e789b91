package api

import (
	"strconv"
	"time"

	"atelier/internal/base/fault"
)

// listing is the page of a list that a request asks for.
type listing struct {
	scope string
	limit int
	// after is the key of the last item of the page before, nil on the first
	// page: what the list is ordered by, and the id.
	after []string
}

// page reads limit and cursor. A cursor opens for the scope that it was made
// in.
func (s *Server) page(p *params, scope string) (listing, error) {
	return s.pageOf(p, scope, s.Limits.PageDefault, s.Limits.PageSize)
}

// pageOf is page for lists that have limits of their own.
func (s *Server) pageOf(p *params, scope string, def, most int) (listing, error) {
	l := listing{scope: scope, limit: p.limit(def, most)}
	sealed := p.one("cursor")
	err := p.failed()
	if err == nil && sealed != "" {
		l.after, err = s.Cursors.Open(scope, sealed, 2)
	}
	return l, err
}

// time reads the key of a list that is ordered by time.
func (l listing) time() (time.Time, error) { return microsOf(l.after[0]) }

func micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// microsOf reads what micros has written.
func microsOf(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fault.New(fault.Invalid, "Some parameters are not valid.").Field("cursor", "This cursor is not one of ours.")
	}
	return time.UnixMicro(n).UTC(), nil
}

// cut takes the page off a list that was read one item longer, and makes the
// cursor of the next.
func cut[T any](s *Server, l listing, items []T, key func(T) (string, string)) (page []T, more bool, next *string) {
	if len(items) <= l.limit {
		return items, false, nil
	}
	items = items[:l.limit]
	text, id := key(items[l.limit-1])
	sealed := s.Cursors.Seal(l.scope, text, id)
	return items, true, &sealed
}
