package run_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/run"
)

func (w fixture) answer(r run.Run, p poller) (early int64) {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (int64, error) {
		return run.RecordPoll(w.Context(), tx, r, p.person, p.kind, p.credential)
	})
}

// poller is a credential that polls a run.
type poller struct{ person, kind, credential string }

// maker is who made a run, with the credential that did.
func maker(r run.Run) poller {
	return poller{r.PersonID, r.Credential, r.CredentialID}
}

func TestEarlyPolls(t *testing.T) {
	eachFixture(t, func(w fixture) {
		r := w.get(w.add(w.person())) // is to be asked about every two seconds
		anna := maker(r)
		phone := poller{anna.person, anna.kind, "the phone"}
		script := poller{anna.person, "personal_token", anna.credential}
		bert := poller{w.person(), "device", "his"}
		for i, c := range []struct {
			who   poller
			wait  time.Duration // since the answer before
			early int64
		}{
			{anna, 2*time.Second - time.Microsecond, 1}, // the create was an answer
			{anna, 2 * time.Second, 0},
			{anna, 0, 2},
			{anna, 2*time.Second - time.Microsecond, 3},
			{anna, 2*time.Second + time.Microsecond, 0},
			{bert, 0, 0}, // nobody told him anything yet
			{bert, time.Second, 1},
			{bert, 2 * time.Second, 0},
			{phone, 0, 0}, // nor the phone
			{script, 0, 0},
			{anna, 0, 0},
			{phone, 2 * time.Second, 0},
			{script, 0, 0},
			{anna, 0, 0},
			{phone, time.Second, 1},
			{script, 0, 1},
			{anna, 0, 4},
		} {
			w.Pass(c.wait)
			if early := w.answer(r, c.who); early != c.early {
				w.Errorf("answer %d: early = %d, want %d", i, early, c.early)
			}
		}
		w.end(r, outcome(run.Cancelled))
		if w.answer(r, anna) != 0 {
			w.Error("an answer after the end is early")
		}
		var rows int64
		w.OK(w.DB.QueryRow(w.Context(), `SELECT count(*) FROM run_poll`).Scan(&rows))
		if rows != 0 {
			w.Errorf("%d answers are kept after the end", rows)
		}
	})
}

// TestPollsAtOnce has many ask at the moment when one may.
func TestPollsAtOnce(t *testing.T) {
	eachFixture(t, func(w fixture) {
		r := w.get(w.add(w.person()))
		w.Pass(r.PollAfter)
		early := make([]int64, 16)
		dbtest.Together(len(early), func(i int) {
			err := w.Try(func(tx *sqldb.Tx) (err error) {
				early[i], err = run.RecordPoll(w.Context(), tx, r, r.PersonID, r.Credential, r.CredentialID)
				return err
			})
			if err != nil {
				w.Errorf("answer: %v", err)
			}
		})
		slices.Sort(early)
		for i, n := range early {
			if n != int64(i) {
				w.Fatalf("early = %v, want one that is not and every number of those that are", early)
			}
		}
	})
}

func TestListsGoByKey(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna, bert, other := w.person(), w.person(), ids.New()
		w.tool(other)
		var want []string // newest first
		for i := range 12 {
			d := w.draft(anna)
			d.ID = fmt.Sprintf("%08d-0000-7000-8000-000000000000", 50-i) // against the time
			if i%3 == 0 {
				d.ToolID = other
			}
			if i%4 == 0 { // four have the same time
				w.Pass(time.Second)
			}
			want = append(want, w.insert(d))
		}
		slices.Reverse(want)
		for i := range 3 { // among equal times by id
			slices.SortFunc(want[4*i:4*i+4], func(a, b string) int { return -compare(a, b) })
		}
		w.add(bert)
		list := func(account string, f run.Filter, size int) (ids []string) {
			w.Helper()
			var after *run.Cursor
			for {
				page := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]run.Run, error) { return run.List(w.Context(), tx, account, f, after, size) })
				for _, r := range page {
					ids = append(ids, r.ID)
					after = &run.Cursor{Created: r.Created, ID: r.ID}
				}
				if len(page) < size {
					return ids
				}
			}
		}
		for _, size := range []int{1, 2, 3, 5, 12, 13} {
			if got := list(anna, run.Filter{}, size); !slices.Equal(got, want) {
				w.Errorf("pages of %d: %v, want %v", size, got, want)
			}
		}
		if n := len(list(anna, run.Filter{ToolID: other}, 3)); n != 4 {
			w.Errorf("%d of the other tool, want 4", n)
		}
		w.end(w.get(want[5]), outcome(run.Cancelled))
		if got := list(anna, run.Filter{Status: "cancelled"}, 5); !slices.Equal(got, want[5:6]) {
			w.Errorf("cancelled = %v, want %v", got, want[5:6])
		}
		if n := len(list(anna, run.Filter{Status: run.Pending, ToolID: w.toolID}, 5)) + len(list(anna, run.Filter{Status: run.Pending, ToolID: other}, 5)); n != 11 {
			w.Errorf("%d are pending, want 11", n)
		}
		if got := list("nobody", run.Filter{}, 5); got != nil {
			w.Errorf("nobody has %v", got)
		}
	})
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func TestPositions(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		var ids []string
		for i := range 4 {
			ids = append(ids, w.add([]string{anna, bert}[i%2]))
			if i != 1 { // two at once
				w.Pass(time.Second)
			}
		}
		if ids[2] < ids[1] {
			ids[1], ids[2] = ids[2], ids[1]
		}
		d := w.draft(anna)
		d.Engine = "other"
		elsewhere := w.insert(d)
		at := func(id string, want int64) {
			w.Helper()
			all := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (map[string]int64, error) { return run.Positions(w.Context(), tx, id) })
			if got := all[id]; got != want {
				w.Errorf("position = %d, want %d", got, want)
			}
		}
		for i, id := range ids {
			at(id, int64(i+1))
		}
		at(elsewhere, 1)
		w.claim("worker")
		at(ids[3], 3)

		together := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (map[string]int64, error) {
			return run.Positions(w.Context(), tx, append(ids, elsewhere)...)
		})
		// The first one has been claimed. It keeps the position that it had.
		if want := map[string]int64{ids[0]: 1, ids[1]: 1, ids[2]: 2, ids[3]: 3, elsewhere: 1}; !maps.Equal(together, want) {
			w.Errorf("positions = %v, want %v", together, want)
		}
	})
}

func TestCountsOfAPerson(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		since := w.Now()
		w.bring(anna, run.Running) // holds 4
		w.bring(anna, run.Failed)
		w.Pass(time.Second)
		w.add(anna)
		r := w.claim("worker")
		w.end(r, run.Outcome{State: run.Succeeded, TokensCharged: 3})
		w.add(anna)
		w.add(bert)
		active := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (int64, error) { return run.CountActive(w.Context(), tx, anna) })
		if active != 2 {
			w.Errorf("%d go on, want 2", active)
		}
		for _, c := range []struct {
			account string
			since   time.Time
			want    int64
		}{
			{anna, since.Add(-time.Microsecond), 4 + 0 + 3 + 4},
			{anna, since, 3 + 4}, // what is as old as the window is outside
			{anna, since.Add(time.Second), 0},
			{bert, since, 0}, // her runs that others pay
		} {
			if got := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (int64, error) { return run.Spent(w.Context(), tx, c.account, anna, c.since) }); got != c.want {
				w.Errorf("spent of %s since %v = %d, want %d", c.account, c.since, got, c.want)
			}
		}
	})
}

func TestKeysLive(t *testing.T) {
	eachFixture(t, func(w fixture) {
		const lifetime = time.Hour
		anna, bert := w.person(), w.person()
		find := func(who, key string) (k run.Key, ok bool) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error {
				found, err := run.FindKey(w.Context(), tx, who, key, lifetime)
				if found != nil {
					k = *found
					ok = true
				}
				return err
			})
			return k, ok
		}
		store := func(who, key string) run.Key {
			w.Helper()
			k := run.Key{Fingerprint: "f", RunID: w.add(who), Created: w.Now()}
			w.Do(func(tx *sqldb.Tx) error { return run.StoreKey(w.Context(), tx, who, key, k) })
			return k
		}
		rows := func() (n int64) {
			w.Helper()
			w.OK(w.DB.QueryRow(w.Context(), `SELECT count(*) FROM idempotency`).Scan(&n))
			return n
		}
		forget := func() { w.Helper(); w.OK(run.DeleteExpired(w.Context(), w.DB, lifetime)) }
		want := store(anna, "k")
		if k, ok := find(anna, "k"); !ok || k != want {
			w.Errorf("found = %+v, %v, want %+v", k, ok, want)
		}
		for _, c := range []struct{ who, key string }{{bert, "k"}, {anna, "K"}, {anna, ""}} {
			if k, ok := find(c.who, c.key); ok {
				w.Errorf("%q has %+v", c.key, k)
			}
		}
		w.Pass(lifetime - time.Microsecond)
		forget()
		if _, ok := find(anna, "k"); !ok || rows() != 1 {
			w.Error("a key was forgotten in its time")
		}
		w.Pass(time.Microsecond)
		if _, ok := find(anna, "k"); ok {
			w.Error("a key outlived its time")
		}
		want = store(anna, "k")
		if k, ok := find(anna, "k"); !ok || k != want || rows() != 1 {
			w.Errorf("a key that is used again = %+v, %v", k, ok)
		}
		w.Pass(lifetime)
		kept := store(bert, "k")
		w.Pass(time.Microsecond)
		forget()
		if k, ok := find(bert, "k"); !ok || k != kept || rows() != 1 {
			w.Errorf("%d keys are left, the young one is there: %v", rows(), ok)
		}
		err := w.Try(func(tx *sqldb.Tx) error {
			_, err := tx.Exec(w.Context(), `UPDATE idempotency SET response = 'x'`)
			return err
		})
		if err == nil {
			w.Error("an answer was changed")
		}
	})
}

// TestPollDuringTheEnd has a poll noted after the end has removed all of them and
// before it is committed, which only PostgreSQL lets happen.
func TestPollDuringTheEnd(t *testing.T) {
	eachFixture(t, func(w fixture) {
		r, going := w.get(w.add(w.person())), w.get(w.add(w.person()))
		w.answer(going, maker(going))
		w.end(r, outcome(run.Cancelled))
		w.Exec(`INSERT INTO run_poll (run_id, credential, credential_id, person_id, answered, early) VALUES ($1, 'id_token', 'd', $2, 1, 0)`, r.ID, r.PersonID)
		w.OK(run.DeleteExpired(w.Context(), w.DB, time.Hour))
		var all, kept int64
		w.OK(w.DB.QueryRow(w.Context(), `SELECT count(*), count(CASE WHEN run_id = $1 THEN 1 END) FROM run_poll`, going.ID).Scan(&all, &kept))
		if all != 1 || kept != 1 {
			w.Errorf("%d polls are left, %d of them of the run that goes on; want 1 and 1", all, kept)
		}
	})
}

func TestForgettingTakesAllBatches(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna := w.person()
		for batch := range 11 { // a transaction has a limit of time
			w.Do(func(tx *sqldb.Tx) error {
				for i := range 91 { // 11 times 91 is 1001
					d := w.draft(anna)
					if err := add(w.Context(), tx, d, nil); err != nil {
						return err
					}
					if err := run.StoreKey(w.Context(), tx, anna, fmt.Sprint(batch, i), run.Key{RunID: d.ID}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		w.Pass(time.Hour + time.Microsecond)
		w.OK(run.DeleteExpired(w.Context(), w.DB, time.Hour))
		var left int64
		w.OK(w.DB.QueryRow(w.Context(), `SELECT count(*) FROM idempotency`).Scan(&left))
		if left != 0 {
			w.Errorf("%d keys are left", left)
		}
	})
}
