package audit_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

func write(t *testing.T, db *sqldb.DB, fn func(ctx context.Context, tx *sqldb.Tx) error) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return fn(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

func listRows(t *testing.T, db *sqldb.DB, f audit.Filter) (all []audit.Record) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *sqldb.Tx) (err error) { all, err = audit.List(t.Context(), tx, f); return err })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fill adds n entries.
func fill(t *testing.T, db *sqldb.DB, n int) {
	t.Helper()
	const batch = 100 // a transaction has a limit of time
	for first := 0; first < n; first += batch {
		write(t, db, func(ctx context.Context, tx *sqldb.Tx) error {
			for i := first; i < min(first+batch, n); i++ {
				e := audit.Entry{Act: audit.TokenCreated, PersonID: fmt.Sprint("person", i%3), CompanyID: fmt.Sprint("company", i%2)}
				if err := audit.Add(ctx, tx, e); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// intact fails unless the log verifies and has n rows.
func intact(t *testing.T, db *sqldb.DB, n int64) audit.Head {
	t.Helper()
	head, problems, err := audit.Verify(t.Context(), db, nil)
	if err != nil || len(problems) != 0 || head.Seq != n {
		t.Errorf("verify = %+v, %v, %v, want %d rows intact", head, problems, err, n)
	}
	if v, err := db.VerifyChecks(t.Context(), audit.Checks); err != nil || len(v) != 0 {
		t.Errorf("checks = %v, %v", v, err)
	}
	return head
}

func TestAddAndList(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 11, 15, 9, 30, 0, 123456000, time.UTC)
			at := func(i int) time.Time {
				return time.Date(2026, 11, 15, 9, 30+i, 0, 123456000, time.UTC)
			}
			db := dbtest.OpenAt(t, dbtest.URL(t, engine), func() time.Time { return now })
			intact(t, db, 0)
			entries := []audit.Entry{
				{Act: audit.PersonCreated, PersonID: "anna", Details: map[string]string{}},
				{Act: audit.CompanyMemberSet, ActorID: "anna", PersonID: "bert", CompanyID: "acme", Address: "203.0.113.7",
					Details: map[string]string{"role": "admin", "a": "<&>", "from": "", "to": "admin"}},
				{Act: audit.TeamCreated, ActorID: "anna", CompanyID: "acme", Details: map[string]string{}},
				{Act: audit.TeamCreated, ActorID: "cleo", CompanyID: "other", Details: map[string]string{}},
			}
			for _, e := range entries {
				write(t, db, func(ctx context.Context, tx *sqldb.Tx) error { return audit.Add(ctx, tx, e) })
				now = now.Add(time.Minute)
			}
			head := intact(t, db, 4)

			all := listRows(t, db, audit.Filter{Limit: 10})
			for i, r := range all {
				want := entries[len(entries)-1-i]
				if r.Seq != int64(4-i) || !r.At.Equal(at(3-i)) || r.At.Location() != time.UTC || !reflect.DeepEqual(r.Entry, want) {
					t.Errorf("record %d = %+v, want %+v at %v", i, r, want, at(3-i))
				}
			}
			if len(all) != 4 || all[0].Hash != head.Hash {
				t.Errorf("%d records, newest %+v, want 4 and the head %+v", len(all), all[0], head)
			}
			for _, c := range []struct {
				name   string
				filter audit.Filter
				want   []int64
			}{
				{"newest", audit.Filter{Limit: 2}, []int64{4, 3}},
				{"next page", audit.Filter{Limit: 2, Before: 3}, []int64{2, 1}},
				{"past the end", audit.Filter{Limit: 2, Before: 1}, nil},
				{"of a company", audit.Filter{Limit: 9, CompanyID: "acme"}, []int64{3, 2}},
				{"of a person", audit.Filter{Limit: 9, PersonID: "bert"}, []int64{2}},
				{"of a person who did it or whom it concerns", audit.Filter{Limit: 9, PersonID: "anna"}, []int64{3, 2, 1}},
				{"of nobody", audit.Filter{Limit: 9, PersonID: "dora"}, nil},
				{"of an act", audit.Filter{Limit: 9, Acts: audit.Named("team.created")}, []int64{4, 3}},
				{"of a kind", audit.Filter{Limit: 9, Acts: audit.Named("company")}, []int64{2}},
				{"of acts in a company", audit.Filter{Limit: 9, CompanyID: "acme", Acts: []audit.Act{audit.TeamCreated, audit.CompanyMemberSet}}, []int64{3, 2}},
				{"from a time", audit.Filter{Limit: 9, From: at(2)}, []int64{4, 3}},
				{"before a time", audit.Filter{Limit: 9, Until: at(2)}, []int64{2, 1}},
				{"in a span", audit.Filter{Limit: 9, From: at(1), Until: at(3)}, []int64{3, 2}},
				{"in no span", audit.Filter{Limit: 9, From: at(3), Until: at(1)}, nil},
				{"of all at once", audit.Filter{Limit: 9, CompanyID: "acme", PersonID: "anna", Acts: audit.Named("team"), From: at(1), Until: at(3), Before: 4}, []int64{3}},
				{"of both", audit.Filter{Limit: 9, CompanyID: "acme", PersonID: "bert"}, []int64{2}},
				{"of neither", audit.Filter{Limit: 9, CompanyID: "other", PersonID: "bert"}, nil},
				{"of a company before", audit.Filter{Limit: 9, CompanyID: "acme", Before: 3}, []int64{2}},
				{"no limit gives none", audit.Filter{}, nil},
				{"nor a broken one", audit.Filter{Limit: -1}, nil},
			} {
				var got []int64
				for _, r := range listRows(t, db, c.filter) {
					got = append(got, r.Seq)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%s: %v, want %v", c.name, got, c.want)
				}
			}
		})
	}
}

// TestChangesSayFromWhatToWhat: an entry of a change that does not is refused.
func TestChangesSayFromWhatToWhat(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		add := func(e audit.Entry) error {
			return db.Write(t.Context(), func(tx *sqldb.Tx) error { return audit.Add(t.Context(), tx, e) })
		}
		for _, act := range audit.Changes {
			e := audit.Entry{Act: act, Details: map[string]string{"role": "admin", "to": "admin"}}
			if add(e) == nil {
				t.Errorf("%s is recorded without what was before", act)
			}
			if err := add(e.WithChange("", "admin")); err != nil {
				t.Error(err)
			}
			if _, changed := e.Details["from"]; changed {
				t.Error("Changing writes to the details that it was given")
			}
		}
		intact(t, db, int64(len(audit.Changes)))
	})
}

func TestUnknownActsAreRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		for _, act := range []audit.Act{"", "person", "person.eaten"} {
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				return audit.Add(t.Context(), tx, audit.Entry{Act: act})
			})
			if err == nil {
				t.Errorf("act %q was accepted", act)
			}
		}
		intact(t, db, 0)
	})
}

// TestOddTexts holds that nothing a stranger sends keeps an entry from being
// written, and that one entry stays one line wherever it is shown.
func TestOddTexts(t *testing.T) {
	t.Parallel()
	odd := []string{"a\r\nfake entry", "\x1b]0;title\a\x1b[2J", "a\x00b", "\xff\xfe", "\u202Eevil", "\u2028", `"},"x":{"`, `\u0000`, strings.Repeat("\U0001F600", 10_000)}
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		for _, s := range odd {
			write(t, db, func(ctx context.Context, tx *sqldb.Tx) error {
				return audit.Add(ctx, tx, audit.Entry{Act: audit.SessionSignInFailed, ActorID: s, PersonID: s, CompanyID: s, Address: s,
					Details: map[string]string{s: s, "agent": s, "a\x00": "1", "a\x01": "2"}})
			})
		}
		intact(t, db, int64(len(odd)))
		for _, r := range listRows(t, db, audit.Filter{Limit: len(odd)}) {
			texts := []string{r.ActorID, r.PersonID, r.CompanyID, r.Address}
			for k, v := range r.Details {
				texts = append(texts, k, v)
			}
			for _, s := range texts {
				if len(s) > 500 || strings.ContainsAny(s, "\r\n\x1b\a\x00\u2028\u202E") || strings.ToValidUTF8(s, "") != s {
					t.Errorf("audit %d holds %q", r.Seq, s)
				}
			}
			if r.Details["a\uFFFD"] != "2" {
				t.Errorf("audit %d: of two keys that became equal it kept %q, want the last", r.Seq, r.Details["a\uFFFD"])
			}
		}
	})
}

func TestRowsCannotBeChanged(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		fill(t, db, 3)
		for _, statement := range []string{`UPDATE audit SET act = 'x' WHERE seq = 2`, `DELETE FROM audit WHERE seq = 2`, `DELETE FROM audit`} {
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := tx.Exec(t.Context(), statement); return err })
			if err == nil || !strings.Contains(err.Error(), "append only") {
				t.Errorf("%s = %v, want a refusal", statement, err)
			}
		}
		intact(t, db, 3)
	})
}

// unlock takes the triggers away, as somebody with the database's password can.
func unlock(t *testing.T, db *sqldb.DB) {
	t.Helper()
	statements := []string{`DROP TRIGGER audit_fixed`, `DROP TRIGGER audit_kept`}
	if db.Dialect.Name == "postgres" {
		statements = []string{`DROP TRIGGER audit_fixed ON audit`}
	}
	tamper(t, db, statements...)
}

func tamper(t *testing.T, db *sqldb.DB, statements ...string) {
	t.Helper()
	write(t, db, func(ctx context.Context, tx *sqldb.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestVerifyNamesWhatWasDone(t *testing.T) {
	t.Parallel()
	const copy5 = `(SELECT hash FROM audit WHERE seq = 5)`
	for _, c := range []struct {
		name   string
		done   []string
		want   []string
		checks int // violations that SQL sees too
	}{
		{"act", []string{`UPDATE audit SET act = 'token.deleted' WHERE seq = 4`}, []string{"audit entry 4 was changed, or entry 3 and its hash were changed"}, 0},
		{"time", []string{`UPDATE audit SET at = at + 1 WHERE seq = 4`}, []string{"audit entry 4 was changed, or entry 3 and its hash were changed"}, 0},
		{"actor", []string{`UPDATE audit SET actor_id = 'x' WHERE seq = 4`}, []string{"audit entry 4 was changed, or entry 3 and its hash were changed"}, 0},
		{"person", []string{`UPDATE audit SET person_id = 'x' WHERE seq = 4`}, []string{"audit entry 4 was changed, or entry 3 and its hash were changed"}, 0},
		{"company", []string{`UPDATE audit SET company_id = '' WHERE seq = 4`}, []string{"audit entry 4 was changed, or entry 3 and its hash were changed"}, 0},
		{"address", []string{`UPDATE audit SET address = 'x' WHERE seq = 4`}, []string{"audit entry 4 was changed, or entry 3 and its hash were changed"}, 0},
		{"details", []string{`UPDATE audit SET details = '{"a":"b"}' WHERE seq = 4`}, []string{"audit entry 4 was changed, or entry 3 and its hash were changed"}, 0},
		{"the first row", []string{`UPDATE audit SET act = 'x' WHERE seq = 1`}, []string{"audit entry 1 was changed"}, 0},
		{"the newest row", []string{`UPDATE audit SET act = 'x' WHERE seq = 7`}, []string{"audit entry 7 was changed, or entry 6 and its hash were changed"}, 0},
		{"a hash", []string{`UPDATE audit SET hash = 'x' WHERE seq = 4`},
			[]string{"audit entry 4 was changed, or entry 3 and its hash were changed", "audit entry 5 was changed, or entry 4 and its hash were changed"}, 0},
		{"two rows", []string{`UPDATE audit SET act = 'x' WHERE seq IN (2, 5)`},
			[]string{"audit entry 2 was changed, or entry 1 and its hash were changed", "audit entry 5 was changed, or entry 4 and its hash were changed"}, 0},
		{"one removed", []string{`DELETE FROM audit WHERE seq = 4`}, []string{"audit entry 4 is missing"}, 1},
		{"the first removed", []string{`DELETE FROM audit WHERE seq = 1`}, []string{"audit entry 1 is missing"}, 1},
		{"some removed", []string{`DELETE FROM audit WHERE seq IN (3, 4)`}, []string{"audit entries 3 to 4 are missing"}, 1},
		{"the rest moved up", []string{`DELETE FROM audit WHERE seq = 6`, `UPDATE audit SET seq = 6 WHERE seq = 7`, `UPDATE audit_head SET seq = 6`},
			[]string{"audit entry 6 was changed, or entry 5 and its hash were changed"}, 0},
		{"the newest removed", []string{`DELETE FROM audit WHERE seq > 5`},
			[]string{"the newest audit entries are missing: the log ends at entry 5, but its head is entry 7"}, 1},
		{"all removed", []string{`DELETE FROM audit`}, []string{"the newest audit entries are missing: the log ends at entry 0, but its head is entry 7"}, 1},
		{"two swapped", []string{`UPDATE audit SET seq = 100 WHERE seq = 4`, `UPDATE audit SET seq = 4 WHERE seq = 5`, `UPDATE audit SET seq = 5 WHERE seq = 100`},
			[]string{"audit entry 4 was changed, or entry 3 and its hash were changed", "audit entry 5 was changed, or entry 4 and its hash were changed", "audit entry 6 was changed, or entry 5 and its hash were changed"}, 0},
		{"one put in before", []string{`INSERT INTO audit (seq, at, act, actor_id, person_id, company_id, address, details, hash) SELECT 0, at, act, actor_id, person_id, company_id, address, details, hash FROM audit WHERE seq = 3`},
			[]string{"audit entry 0 was inserted"}, 1},
		{"one put in behind", []string{`INSERT INTO audit (seq, at, act, actor_id, person_id, company_id, address, details, hash) SELECT 8, at, act, actor_id, person_id, company_id, address, details, hash FROM audit WHERE seq = 3`},
			[]string{"audit entry 8 was changed, or entry 7 and its hash were changed", "audit entry 8 is newer than the head of the log, entry 7"}, 1},
		{"head moved back", []string{`UPDATE audit_head SET seq = 5, hash = ` + copy5}, []string{"audit entry 7 is newer than the head of the log, entry 5"}, 1},
		{"head changed", []string{`UPDATE audit_head SET hash = ''`}, []string{"audit entry 7 or the head of the log was changed: their hashes differ"}, 1},
		{"head removed", []string{`DELETE FROM audit_head`}, []string{"audit entry 7 is newer than the head of the log, entry 0"}, 1},
		{"the newest removed with the head", []string{`DELETE FROM audit WHERE seq > 5`, `UPDATE audit_head SET seq = 5, hash = ` + copy5}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
				db.SetSealKey(nil) // what the chain alone tells; package inspect tries the seals
				fill(t, db, 7)
				exported := intact(t, db, 7)
				unlock(t, db)
				tamper(t, db, c.done...)
				_, problems, err := audit.Verify(t.Context(), db, nil)
				if err != nil || !slices.Equal(problems, c.want) {
					t.Errorf("problems = %q, %v, want %q", problems, err, c.want)
				}
				if v, err := db.VerifyChecks(t.Context(), audit.Checks); err != nil || len(v) != c.checks {
					t.Errorf("checks = %v, %v, want %d", v, err, c.checks)
				}
				if _, problems, err := audit.Verify(t.Context(), db, &exported); err != nil || len(problems) == 0 {
					t.Errorf("with the exported head: %q, %v, want a problem", problems, err)
				}
			})
		})
	}
}

func TestExportedHead(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		fill(t, db, 3)
		third := intact(t, db, 3)
		fill(t, db, 2)
		fifth := intact(t, db, 5)
		for _, c := range []struct {
			name string
			head audit.Head
			ok   bool
		}{
			{"older", third, true},
			{"newest", fifth, true},
			{"of the empty log", audit.Head{}, true},
			{"of a longer log", audit.Head{Seq: 6, Hash: fifth.Hash}, false},
			{"of another log", audit.Head{Seq: 3, Hash: fifth.Hash}, false},
			{"of no log", audit.Head{Hash: "x"}, false},
		} {
			head, problems, err := audit.Verify(t.Context(), db, &c.head)
			if err != nil || head != fifth {
				t.Errorf("%s: verify = %+v, %v, want the head %+v", c.name, head, err, fifth)
			}
			var want []string
			if !c.ok {
				want = []string{fmt.Sprintf("the exported head, entry %d with the hash %s, is not in the audit log", c.head.Seq, c.head.Hash)}
			}
			if !slices.Equal(problems, want) {
				t.Errorf("%s: problems = %q, want %q", c.name, problems, want)
			}
		}
	})
}

func TestLongLog(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		fill(t, db, 1000)
		intact(t, db, 1000) // a page
		fill(t, db, 3)
		intact(t, db, 1003)
		unlock(t, db)
		tamper(t, db, `UPDATE audit SET act = 'x' WHERE seq IN (1000, 1001, 1003)`)
		_, problems, err := audit.Verify(t.Context(), db, nil)
		if err != nil || len(problems) != 3 || !strings.HasPrefix(problems[0], "audit entry 1000 ") || !strings.HasPrefix(problems[1], "audit entry 1001 ") || !strings.HasPrefix(problems[2], "audit entry 1003 ") {
			t.Errorf("problems = %q, %v, want 1000, 1001 and 1003", problems, err)
		}
		tamper(t, db, `UPDATE audit SET act = 'x'`)
		_, problems, err = audit.Verify(t.Context(), db, nil)
		if err != nil || len(problems) > 1002 || problems[len(problems)-1] != "the verification stopped at audit entry 1000; there may be more problems" {
			t.Errorf("%d problems, %v, want the search to end after a page", len(problems), err)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		const goroutines, each = 64, 5
		var adding, verifying sync.WaitGroup
		done := make(chan struct{})
		verifying.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, problems, err := audit.Verify(ctx, db, nil); err != nil || len(problems) != 0 {
					t.Errorf("verify meanwhile = %q, %v", problems, err)
				}
			}
		})
		for g := range goroutines {
			adding.Go(func() {
				for i := range each {
					err := db.Write(ctx, func(tx *sqldb.Tx) error {
						return audit.Add(ctx, tx, audit.Entry{Act: audit.TokenFirstUsed, PersonID: fmt.Sprint(g), Details: map[string]string{"n": fmt.Sprint(i)}})
					})
					if err != nil {
						t.Errorf("add = %v", err)
					}
				}
			})
		}
		adding.Wait()
		close(done)
		verifying.Wait()
		intact(t, db, goroutines*each)
		for g := range goroutines {
			if n := len(listRows(t, db, audit.Filter{PersonID: fmt.Sprint(g), Limit: 10})); n != each {
				t.Errorf("person %d has %d records, want %d", g, n, each)
			}
		}
	})
}
