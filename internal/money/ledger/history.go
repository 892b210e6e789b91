package ledger

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// History reads the entries of accounts for the people who use them.
type History struct {
	DB *sqldb.DB
}

// Period is the time from From up to but not including Until. A zero time means
// no limit.
type Period struct {
	From, Until time.Time
}

// Cursor is the position of the last entry of a page.
type Cursor struct {
	Created time.Time
	ID      string
}

// HistoryEntry is an entry with the tool and the person of the run that it
// settled.
type HistoryEntry struct {
	Entry
	ToolID   string // tool of the run, or "" if the entry settled no run
	PersonID string // person who started the run, or "" if the entry settled no run
}

// Day is the sum of an account's entries of one day in UTC.
type Day struct {
	Date     time.Time // midnight in UTC, with which the day begins
	Received int64     // tokens that the account received
	Spent    int64     // tokens that the account spent
	Balance  int64     // tokens at the end of the day, including those held for runs
	Entries  int64     // number of entries that moved tokens
}

// ListEntries returns at most limit entries of an account in a period, newest
// first. Entries that moved no tokens, such as settlements of free runs, are
// left out. after is the position of the last entry of the previous page, or
// nil for the first page.
func (h *History) ListEntries(ctx context.Context, accountID string, p Period, after *Cursor, limit int) (page []HistoryEntry, err error) {
	err = h.DB.Read(sqldb.WithIndexOrder(ctx), func(tx *sqldb.Tx) error {
		page, err = listHistory(ctx, tx, accountID, p, after, limit)
		return err
	})
	return page, err
}

// ListDays returns the sums of an account's entries for every day of a period
// in UTC, oldest first. The period must begin and end at midnight in UTC.
func (h *History) ListDays(ctx context.Context, accountID string, p Period) (days []Day, err error) {
	var sums map[int64]Day
	var balance int64
	err = h.DB.Read(sqldb.WithReusedPlans(ctx), func(tx *sqldb.Tx) (err error) {
		if balance, err = balanceAt(ctx, tx, accountID, p.From); err != nil {
			return err
		}
		sums, err = listDays(ctx, tx, accountID, p)
		return err
	})
	if err != nil {
		return nil, err
	}

	for date := p.From.UTC(); date.Before(p.Until); date = date.AddDate(0, 0, 1) {
		day := sums[dayNumber(date)]
		balance += day.Received - day.Spent
		day.Date = date
		day.Balance = balance
		days = append(days, day)
	}
	return days, nil
}

// StartOfDay returns the midnight in UTC with which the day of t begins.
func StartOfDay(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
