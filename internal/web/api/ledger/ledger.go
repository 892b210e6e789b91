// Package ledger serves /api/v2/ledger: the tokens that an account received and
// spent.
package ledger

import (
	"net/http"
	"time"

	"atelier/internal/base/cursor"
	"atelier/internal/catalog/catalog"
	"atelier/internal/money/ledger"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// maxDays is the longest period in days for which sums by day are returned.
const maxDays = 366

// defaultDays is the length in days of the period of sums by day if the request
// does not name its start.
const defaultDays = 30

// Handler serves the API endpoint for the history of an account's tokens.
type Handler struct {
	History *ledger.History
	Catalog *catalog.Catalog
	Pages   rest.Pager
	Now     func() time.Time
}

// Routes returns the route of the history.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/ledger", access.ForAccount, h.listLedger),
	}
}

// listLedger serves GET /api/v2/ledger: it lists the entries of an account,
// newest first, or their sums by day.
func (h *Handler) listLedger(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	p := call.Params
	period := ledger.Period{From: p.ReadTime("start_utc"), Until: p.ReadTime("end_utc")}
	group := wire.LedgerGroup(p.ReadText("group_by"))
	if group != "" && !group.Valid() {
		p.AddProblem("group_by", "Must be day.")
	}
	if group != "" {
		return h.listDays(w, r, period)
	}

	scope := cursor.Scope("ledger", call.Principal.PersonID, call.Principal.AccountID, p.Values.Get("start_utc"), p.Values.Get("end_utc"))
	page, err := h.Pages.ReadPage(p, scope)
	if err != nil {
		return err
	}
	var after *ledger.Cursor
	if page.After != nil {
		at, err := page.AfterTime()
		if err != nil {
			return err
		}
		after = &ledger.Cursor{Created: at, ID: page.After[1]}
	}

	entries, err := h.History.ListEntries(r.Context(), call.Principal.AccountID, period, after, page.Limit+1)
	if err != nil {
		return err
	}
	entries, hasMore, next := rest.Cut(page, entries, func(e ledger.HistoryEntry) (string, string) { return rest.Micros(e.Created), e.ID })
	tools, err := h.Catalog.ToolNames(r.Context(), rest.Convert(entries, func(e ledger.HistoryEntry) string { return e.ToolID }))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.LedgerList{
		Data:       rest.Convert(entries, func(e ledger.HistoryEntry) wire.LedgerEntry { return asEntry(e, tools) }),
		Days:       []wire.LedgerDay{},
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// listDays responds with the sums by day of a period, which it extends to whole
// days. The period ends with the current day at the latest, because there are
// no entries of the future.
func (h *Handler) listDays(w http.ResponseWriter, r *http.Request, period ledger.Period) error {
	call := rest.CallOf(r)
	tomorrow := ledger.StartOfDay(h.Now()).AddDate(0, 0, 1)
	if period.Until.IsZero() || period.Until.After(tomorrow) {
		period.Until = tomorrow
	}
	if until := ledger.StartOfDay(period.Until); until.Before(period.Until) {
		period.Until = until.AddDate(0, 0, 1)
	}
	if period.From.IsZero() {
		period.From = period.Until.AddDate(0, 0, -defaultDays)
	}
	period.From = ledger.StartOfDay(period.From)
	if period.Until.Sub(period.From) > maxDays*24*time.Hour {
		call.Params.AddProblem("start_utc", "Sums by day are available for at most 366 days. Choose a later start.")
	}
	if err := call.Params.Err(); err != nil {
		return err
	}

	days, err := h.History.ListDays(r.Context(), call.Principal.AccountID, period)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.LedgerList{
		Data: []wire.LedgerEntry{},
		Days: rest.Convert(days, asDay),
	})
}

// asEntry converts an entry to its API representation. tools has the current
// names of tools by id.
func asEntry(e ledger.HistoryEntry, tools map[string]string) wire.LedgerEntry {
	return wire.LedgerEntry{
		ID:        e.ID,
		Kind:      wire.LedgerKind(e.Kind),
		Tokens:    e.Tokens,
		Note:      rest.TextOrNull(e.Note),
		RequestID: rest.TextOrNull(e.RunID),
		ToolID:    rest.TextOrNull(e.ToolID),
		ToolName:  rest.TextOrNull(tools[e.ToolID]),
		UID:       rest.TextOrNull(e.PersonID),
		Created:   rest.Moment(e.Created),
	}
}

func asDay(d ledger.Day) wire.LedgerDay {
	return wire.LedgerDay{
		Day:      d.Date.Format(time.DateOnly),
		Received: d.Received,
		Spent:    d.Spent,
		Balance:  d.Balance,
		Entries:  d.Entries,
	}
}
