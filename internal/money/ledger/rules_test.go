package ledger_test

import (
	"strings"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/ledger"
)

func TestRowsCannotBeChanged(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		if _, err := grant(t.Context(), db, "anna", 5); err != nil {
			t.Fatal(err)
		}
		for statement, want := range map[string]string{
			`UPDATE ledger_entry SET amount = 50`:                       "append only",
			`DELETE FROM ledger_entry`:                                  "append only",
			`UPDATE ledger_transaction SET note = 'x'`:                  "append only",
			`DELETE FROM ledger_transaction`:                            "append only",
			`UPDATE ledger_account SET posted = -1 WHERE id = 'anna'`:   "",
			`UPDATE ledger_account SET held = 6 WHERE id = 'anna'`:      "",
			`UPDATE ledger_account SET held = -1 WHERE id LIKE 'syst%'`: "",
		} {
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := tx.Exec(t.Context(), statement); return err })
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s = %v, want a refusal", statement, err)
			}
		}
		sound(t, db)
	})
}

// TestChecksSeeWhatIsWrong breaks each rule and looks for its name.
func TestChecksSeeWhatIsWrong(t *testing.T) {
	t.Parallel()
	// What the tables refuse comes about only where their rules are off.
	off := map[string][]string{
		"sqlite":   {`PRAGMA ignore_check_constraints = 1`},
		"postgres": {`ALTER TABLE ledger_account DROP CONSTRAINT ledger_account_check`, `ALTER TABLE ledger_account DROP CONSTRAINT ledger_account_held_check`},
	}
	for _, c := range []struct {
		name      string
		statement string
		want      map[string]string
	}{
		{"a transaction without entries", `INSERT INTO ledger_transaction (id, kind, note, created) VALUES ('t', 'grant', '', 1)`,
			map[string]string{"the entries of a transaction sum to zero": "ledger_transaction t"}},
		{"a third side", `INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT id, 'bert', 2, created FROM ledger_transaction WHERE kind = 'grant'`,
			map[string]string{"the entries of a transaction sum to zero": "", "all entries sum to zero": "ledger_entry: the sum is 2", "the balance of an account is the sum of its entries": "ledger_account bert"}},
		{"an entry of another time", `INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT id, 'bert', 0, created + 120000000 FROM ledger_transaction WHERE kind = 'grant'`,
			map[string]string{"an entry has the time of its transaction": "ledger_entry "}},
		{"tokens from nowhere", `UPDATE ledger_account SET posted = posted + 1 WHERE id = 'anna'`,
			map[string]string{"the balance of an account is the sum of its entries": "ledger_account anna"}},
		{"below zero", `UPDATE ledger_account SET held = 6 WHERE id = 'anna'`,
			map[string]string{"no account of a person or team has a negative balance": "ledger_account anna", "the hold of an account is the sum of the holds of its pending runs": "ledger_account anna"}},
		{"less than nothing held", `UPDATE ledger_account SET held = -1 WHERE id = 'anna'`,
			map[string]string{"no account has a negative hold": "ledger_account anna", "the hold of an account is the sum of the holds of its pending runs": "ledger_account anna"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
				if _, err := grant(t.Context(), db, "anna", 5); err != nil {
					t.Fatal(err)
				}
				exec(t, db, `INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ('bert', 0, 0, '', 0)`)
				sound(t, db)
				exec(t, db, append(off[db.Dialect.Name], c.statement)...)
				found, err := db.VerifyChecks(t.Context(), ledger.Checks)
				if err != nil || len(found) != len(c.want) {
					t.Errorf("checks = %v, %v, want %v", found, err, c.want)
				}
				for _, v := range found {
					if row, ok := c.want[v.Check]; !ok || !strings.HasPrefix(v.Row, row) {
						t.Errorf("violation %v, want %v", v, c.want)
					}
				}
			})
		})
	}
}

// TestChecksOfGrantKeys breaks the relation between the key of a grant and the
// grant.
func TestChecksOfGrantKeys(t *testing.T) {
	const (
		belongs = "the key of a grant belongs to one grant to one account"
		single  = "a grant has at most one key"
	)
	eachFixture(t, func(w fixture) {
		w.give("anna", 20)
		w.mustEnd(w.mustBegin("done", "anna", 5, 0), "succeeded", 5)
		w.Exec(`INSERT INTO grant_key (person_id, key, fingerprint, transaction_id, balance) SELECT 'p', 'k', '', id, 20 FROM ledger_transaction WHERE kind = 'grant'`)
		w.Exec(`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ('bert', 0, 0, '', 0)`)
		sound(w.T, w.DB)

		for damage, want := range map[string]string{
			`UPDATE grant_key SET transaction_id = (SELECT id FROM ledger_transaction WHERE run_id = 'done')`:                                                               belongs,
			`INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT id, 'bert', 0, created FROM ledger_transaction WHERE kind = 'grant'`:             belongs,
			`INSERT INTO grant_key (person_id, key, fingerprint, transaction_id, balance) SELECT person_id, 'another', fingerprint, transaction_id, balance FROM grant_key`: single,
		} {
			if found := w.Damage(ledger.Checks, damage); len(found) != 1 || !found[want] {
				w.Errorf("%s: found %v, want %q", damage, found, want)
			}
		}
	})
}
