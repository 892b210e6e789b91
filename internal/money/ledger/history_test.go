package ledger_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
)

// book grants tokens to an account at a given time.
func (w fixture) book(account string, at time.Time, tokens int64) {
	w.Helper()
	w.Pass(at.Sub(w.Now()))
	w.give(account, tokens)
}

func TestHistoryByDay(t *testing.T) {
	eachFixture(t, func(w fixture) {
		date := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }
		w.book("a", date(1, 12), 100)
		w.book("a", date(2, 0), 10)
		w.book("a", date(2, 23), -30)
		w.book("b", date(2, 12), 1000)
		w.book("a", date(4, 5), -5)
		w.book("a", date(5, 0), 7) // after the period

		history := ledger.History{DB: w.DB}
		days, err := history.ListDays(w.Context(), "a", ledger.Period{From: date(2, 0), Until: date(5, 0)})
		w.OK(err)
		want := []ledger.Day{
			{Date: date(2, 0), Received: 10, Spent: 30, Balance: 80, Entries: 2},
			{Date: date(3, 0), Balance: 80},
			{Date: date(4, 0), Spent: 5, Balance: 75, Entries: 1},
		}
		if !reflect.DeepEqual(days, want) {
			w.Errorf("days = %+v, want %+v", days, want)
		}

		days, err = history.ListDays(w.Context(), "nobody", ledger.Period{From: date(2, 0), Until: date(3, 0)})
		w.OK(err)
		if want := []ledger.Day{{Date: date(2, 0)}}; !reflect.DeepEqual(days, want) {
			w.Errorf("days of an account without entries = %+v, want %+v", days, want)
		}
	})
}

func TestHistoryNamesTools(t *testing.T) {
	eachFixture(t, func(w fixture) {
		w.give("p", 100)
		w.Pass(time.Hour)
		free := w.mustBegin("free", "p", 5, 0)
		paid := w.mustBegin("paid", "p", 5, 0)
		w.mustEnd(free, "failed", 0)
		w.mustEnd(paid, "succeeded", 4)

		history := ledger.History{DB: w.DB}
		all, err := history.ListEntries(w.Context(), "p", ledger.Period{}, nil, 10)
		w.OK(err)
		if len(all) != 2 {
			w.Fatalf("entries = %+v, want the charge and the grant; failed runs move no tokens", all)
		}
		if e := all[0]; e.Kind != ledger.Settled || e.Tokens != -4 || e.RunID != "paid" || e.ToolID != "t" || e.PersonID != "p" {
			w.Errorf("newest entry = %+v, want the charge of the run", e)
		}
		if e := all[1]; e.Kind != ledger.Granted || e.Tokens != 100 || e.RunID != "" || e.ToolID != "" || e.PersonID != "" {
			w.Errorf("oldest entry = %+v, want the grant", e)
		}
	})
}

// TestHistoryIsReadByIndex holds that a page reads only the entries that it
// returns, and that the days read no entries: among many entries, no plan goes
// through the table or sorts entries.
func TestHistoryIsReadByIndex(t *testing.T) {
	eachFixture(t, func(w fixture) {
		numbers := `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) `
		w.Exec(numbers + `INSERT INTO ledger_transaction (id, kind, note, created, seal) SELECT 't' || i, 'grant', '', i * CAST(1000000 AS BIGINT), '' FROM n`)
		w.Exec(`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ('a', 5000, 0, '', 0), ('system:grants', -5000, 0, '', 0)`)
		w.Exec(numbers + `INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT 't' || i, 'a', 1, i * CAST(1000000 AS BIGINT) FROM n`)
		w.Exec(numbers + `INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT 't' || i, 'system:grants', -1, i * CAST(1000000 AS BIGINT) FROM n`)
		w.Exec(`ANALYZE`)

		type statement struct {
			query string
			args  []any
		}
		var read []statement
		db, err := sqldb.Open(w.Context(), w.URL, sqldb.Options{
			MaxConns: 4,
			Now:      w.Now,
			Trace:    func(query string, args []any) { read = append(read, statement{query, slices.Clone(args)}) },
		})
		w.OK(err)
		defer db.Close()

		history := ledger.History{DB: db}
		at := func(second int64) time.Time { return time.Unix(second, 0).UTC() }
		page, err := history.ListEntries(w.Context(), "a", ledger.Period{}, &ledger.Cursor{Created: at(3000), ID: "t3000"}, 10)
		w.OK(err)
		if len(page) != 10 || page[0].ID != "t2999" {
			w.Errorf("page = %+v, want ten entries from t2999", page)
		}
		days, err := history.ListDays(w.Context(), "a", ledger.Period{From: at(0), Until: at(86400)})
		w.OK(err)
		if len(days) != 1 || days[0].Entries != 5000 || days[0].Balance != 5000 {
			w.Errorf("days = %+v, want one with all entries", days)
		}

		read = slices.Clone(read)
		if len(read) < 3 {
			w.Fatalf("statements = %v, want the page, the balance and the sums", read)
		}
		for _, s := range read[1:] {
			if strings.Contains(s.query, "ledger_entry") {
				w.Errorf("the days are summed from entries:\n%s", s.query)
			}
		}
		for _, s := range read {
			plan := strings.Join(w.Explain("", s.query, s.args), "\n")
			if strings.Contains(plan, "Seq Scan on ledger_entry") || strings.Contains(plan, "SCAN e") || strings.Contains(plan, "TEMP B-TREE FOR ORDER BY") {
				w.Errorf("%s\nreads more than it returns:\n%s", s.query, plan)
			}
		}
	})
}
