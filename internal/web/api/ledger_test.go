package api_test

import (
	"slices"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/web/api/wire"
)

func TestLedgerListsWhatMovedTokens(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		anna := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		grant := func(accountID string, tokens int64, note string) {
			err := m.site.DB.Write(t.Context(), func(tx *sqldb.Tx) error {
				_, err := ledger.Grant(t.Context(), tx, accountID, tokens, ledger.Granted, note)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		before := len(getJSON[wire.LedgerList](m.service, "/api/v2/ledger").Data)
		for n := range 5 {
			grant(anna, int64(10+n), "bonus")
		}
		grant(anna, -3, "taken back")
		m.addPerson("bert@example.com")
		grant(m.site.Session("bert@example.com").PersonID, 999, "not Anna's")
		m.work()
		run := m.done("", m.body("one", ""))

		var all []wire.LedgerEntry
		for path := "/api/v2/ledger?limit=2"; ; {
			page := getJSON[wire.LedgerList](m.service, path)
			all = append(all, page.Data...)
			if len(page.Days) != 0 {
				t.Fatalf("days = %+v without group_by", page.Days)
			}
			if !page.HasMore {
				break
			}
			path = "/api/v2/ledger?limit=2&cursor=" + *page.NextCursor
		}
		if len(all) != before+7 {
			t.Fatalf("%d entries, want %d: %+v", len(all), before+7, all)
		}
		if newest := all[0]; newest.Kind != "settle" || newest.RequestID == nil || *newest.RequestID != run.RequestID || newest.Tokens != -run.TokensCharged ||
			newest.ToolName == nil || *newest.ToolName != *run.ToolName || newest.ToolID == nil || *newest.ToolID != run.ToolID || newest.UID == nil || *newest.UID != anna {
			t.Errorf("newest entry = %+v, want the charge of the run, with its tool and person", newest)
		}
		if second := all[1]; second.Kind != "grant" || second.Tokens != -3 || second.Note == nil || *second.Note != "taken back" || second.RequestID != nil || second.ToolName != nil || second.UID != nil {
			t.Errorf("second entry = %+v, want the tokens that were taken back", second)
		}
		if !slices.IsSortedFunc(all, func(a, b wire.LedgerEntry) int { return b.Created.Compare(a.Created) }) {
			t.Errorf("entries are not sorted: %+v", all)
		}

		days := getJSON[wire.LedgerList](m.service, "/api/v2/ledger?group_by=day").Days
		if len(days) != 30 {
			t.Errorf("%d days, want 30", len(days))
		}
		var received, spent, entries int64
		for _, day := range days {
			received += day.Received
			spent += day.Spent
			entries += day.Entries
		}
		var wantReceived, wantSpent int64
		for _, e := range all {
			wantReceived += max(e.Tokens, 0)
			wantSpent += max(-e.Tokens, 0)
		}
		if received != wantReceived || spent != wantSpent || entries != int64(len(all)) {
			t.Errorf("days: received %d, spent %d in %d entries, want %d, %d, %d", received, spent, entries, wantReceived, wantSpent, len(all))
		}

		balance := getJSON[wire.Identity](m.service, "/api/v2/me").Accounts[0].Balance
		if last := days[len(days)-1]; last.Balance != balance.Tokens+balance.Held || last.Day != m.site.DB.Now().UTC().Format(time.DateOnly) {
			t.Errorf("last day = %+v, want today with the balance %+v", last, balance)
		}

		future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		if later := getJSON[wire.LedgerList](m.service, "/api/v2/ledger?start_utc="+future).Data; len(later) != 0 {
			t.Errorf("entries of the future = %+v", later)
		}
		for _, query := range []string{"group_by=week", "start_utc=x", "limit=0", "cursor=x", "group_by=day&start_utc=2020-01-01T00:00:00Z"} {
			m.sendRequest("GET", "/api/v2/ledger?"+query).checkStatus(t, query, 400, "INVALID_REQUEST")
		}
	})
}
