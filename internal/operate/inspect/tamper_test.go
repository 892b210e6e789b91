package inspect

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atelier/internal/base/audit"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
	"atelier/internal/file/quota"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/run/generation/generationtest"
)

// uncommitted reads in a transaction that is never committed.
type uncommitted struct{ tx *sqldb.Tx }

func (u uncommitted) Read(_ context.Context, fn func(*sqldb.Tx) error) error { return fn(u.tx) }

// tamperings are what somebody can do who can write the database and drop its
// triggers, but does not have the installation's secret. Where named is "", it
// cannot be noticed, and why says so. $V is a victim, $M the intruder, who both
// have accounts; $C is a company and $T its team, $R a run.
var tamperings = []struct {
	name  string
	done  []string
	named string
	why   string
}{
	{"a forged but balanced grant", []string{
		`INSERT INTO ledger_transaction (id, kind, note, created) VALUES ('forged', 'grant', '', 1)`,
		`INSERT INTO ledger_entry (transaction_id, account_id, amount, created) VALUES ('forged', '$M', 1000, 1), ('forged', 'system:grants', -1000, 1)`,
		`UPDATE ledger_account SET posted = posted + 1000 WHERE id = '$M'`,
		`UPDATE ledger_account SET posted = posted - 1000 WHERE id = 'system:grants'`}, "ledger_transaction", ""},
	{"a grant with another's seal", []string{
		`INSERT INTO ledger_transaction (id, kind, note, created, seal) SELECT 'forged', kind, note, created, seal FROM ledger_transaction WHERE seal <> '' AND kind = 'grant' LIMIT 1`,
		`INSERT INTO ledger_entry (transaction_id, account_id, amount) VALUES ('forged', '$M', 1000), ('forged', 'system:grants', -1000)`,
		`UPDATE ledger_account SET posted = posted + 1000 WHERE id = '$M'`,
		`UPDATE ledger_account SET posted = posted - 1000 WHERE id = 'system:grants'`}, "ledger_transaction forged", ""},
	{"a larger grant, balanced", []string{
		`UPDATE ledger_entry SET amount = amount * 2 WHERE transaction_id IN (SELECT id FROM ledger_transaction WHERE kind = 'grant')`,
		`UPDATE ledger_account SET posted = (SELECT sum(amount) FROM ledger_entry e WHERE e.account_id = ledger_account.id)`}, "does not match its seal", ""},
	{"a grant moved to another account", []string{
		`UPDATE ledger_entry SET account_id = '$M' WHERE account_id = '$V' AND transaction_id IN (SELECT id FROM ledger_transaction WHERE kind = 'grant')`,
		`UPDATE ledger_account SET posted = coalesce((SELECT sum(amount) FROM ledger_entry e WHERE e.account_id = ledger_account.id), 0)`}, "does not match its seal", ""},
	{"a taking back deleted, balanced", []string{
		`DELETE FROM ledger_entry WHERE transaction_id IN (SELECT id FROM ledger_transaction WHERE note = 'back')`,
		`DELETE FROM ledger_transaction WHERE note = 'back'`,
		`UPDATE ledger_account SET posted = coalesce((SELECT sum(amount) FROM ledger_entry e WHERE e.account_id = ledger_account.id), 0)`}, "ledger_account $M was granted", ""},
	{"a movement's note", []string{`UPDATE ledger_transaction SET note = 'x' WHERE note = 'back'`}, "does not match its seal", ""},
	{"a movement's kind", []string{`UPDATE ledger_transaction SET kind = 'signup' WHERE note = 'back'`}, "does not match its seal", ""},
	{"the seal of a movement removed", []string{`UPDATE ledger_transaction SET seal = '' WHERE note = 'back'`}, "the rows without a seal", ""},
	{"an account's balance alone", []string{`UPDATE ledger_account SET posted = posted + 5 WHERE id = '$M'`}, "ledger_account $M", ""},
	{"an old movement", []string{`UPDATE ledger_transaction SET note = 'x' WHERE note = 'old'`}, "the rows without a seal", ""},

	{"unit_tokens of a run", []string{`UPDATE run SET unit_tokens = 0 WHERE id = '$R'`}, "run $R", ""},
	{"tokens_held of a run, and its account's", []string{`UPDATE run SET tokens_held = 0 WHERE id = '$R'`, `UPDATE ledger_account SET held = 0`}, "run $R", ""},
	{"who pays for a run", []string{`UPDATE run SET account_id = '$M' WHERE id = '$R'`}, "run $R", ""},
	{"whose run it is", []string{`UPDATE run SET person_id = '$M' WHERE id = '$R'`}, "run $R", ""},
	{"how many results a run has", []string{`UPDATE run SET num_results = 9 WHERE id = '$R'`}, "run $R", ""},

	{"a file's digest", []string{`UPDATE asset SET sha256 = 'x'`}, "asset ", ""},
	{"a file's length", []string{`UPDATE asset SET size_bytes = size_bytes + 1`}, "asset ", ""},
	{"whose upload it is", []string{`UPDATE upload SET account_id = '$M', person_id = '$M'`}, "upload ", ""},
	{"whose file it is", []string{`UPDATE asset SET account_id = '$M'`}, "asset ", ""},

	{"a victim's password swapped", []string{`UPDATE person SET password_hash = 'mine' WHERE id = '$V'`}, "person $V", ""},
	{"a victim's row with the intruder's seal", []string{`UPDATE person SET password_hash = 'mine', seal = (SELECT seal FROM person WHERE id = '$M') WHERE id = '$V'`}, "person $V", ""},
	{"an address verified", []string{`UPDATE person SET email_verified = TRUE WHERE id = '$M'`}, "person $M", ""},
	{"a suspension ended", []string{`UPDATE person SET suspended = NOT suspended WHERE id = '$M'`}, "person $M", ""},
	{"a person put in", []string{`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ('p', 'p', 'p', TRUE, 'x', 1)`}, "person p", ""},

	{"an access token put in", []string{`INSERT INTO access_token (id, person_id, name, hash, hint, created) VALUES ('forged', '$V', 'n', 'h2', '', 1)`}, "access_token forged", ""},
	{"an access token for another", []string{`UPDATE access_token SET person_id = '$V'`}, "access_token t", ""},
	{"an access token's hash", []string{`UPDATE access_token SET hash = 'mine'`}, "access_token t", ""},
	{"a device put in", []string{`INSERT INTO device (id, person_id, plugin_kind, agent, address, provider, created, last_used, revoked_why) VALUES ('forged', '$V', '', '', '', '', 1, 1, '')`}, "device forged", ""},
	{"a device for another", []string{`UPDATE device SET person_id = '$V'`}, "device d", ""},
	{"a revoked device brought back", []string{`UPDATE device SET revoked = NULL`}, "device d", ""},
	{"a refresh token put in", []string{`INSERT INTO refresh_token (hash, device_id, generation, created) VALUES ('mine', 'd', 9, 1)`}, "refresh_token mine", ""},
	{"a key to sign with put in", []string{`INSERT INTO signing_key (id, public, private, created, replaced) VALUES ('forged', 'p', 's', 1, 2)`}, "signing_key forged", ""},
	{"a webhook secret of another", []string{`UPDATE webhook_secret SET secret = 'mine'`}, "webhook_secret $V", ""},
	{"a directory's token", []string{`UPDATE scim_token SET hash = 'mine'`}, "scim_token $C", ""},

	{"a member promoted", []string{`UPDATE company_member SET role = 'admin' WHERE person_id = '$M'`}, "company_member $C $M", ""},
	{"a member put in", []string{`INSERT INTO company_member (company_id, person_id, role, created) VALUES ('$C', '$V', 'admin', 1)`}, "company_member $C $V", ""},
	{"permissions of a role", []string{`UPDATE company_role SET permissions = '["MANAGE_BILLING"]' WHERE name = 'member'`}, "company_role $C member", ""},
	{"a spending window", []string{`UPDATE team_role SET spend_tokens = 999999 , spend_seconds = 1 WHERE name = 'member'`}, "team_role $T member", ""},
	{"a team member promoted", []string{`UPDATE team_member SET role = 'manager'`}, "team_member $T $M", ""},
	{"a company's plan", []string{`UPDATE company SET plan = 'TEAM'`}, "company $C", ""},
	{"a domain claimed", []string{`INSERT INTO company_domain (company_id, domain, proof, team_role, created, verified) VALUES ('$C', 'x.example', '', '', 1, 1)`}, "company_domain $C x.example", ""},
	{"an invitation put in", []string{`INSERT INTO invitation (id, hash, company_id, company_role, team_role, email, email_key, uses_left, invited_by, created, expires)
		VALUES ('forged', '0123456789012345678901234567890123456789012345678901234567890123', '$C', 'admin', '', '', '', 1, '', 1, 9000000000000000)`}, "invitation forged", ""},

	{"an entry of the log changed", []string{`UPDATE audit SET person_id = 'x' WHERE seq = 2`}, "audit entry 2", ""},
	{"an entry deleted", []string{`DELETE FROM audit WHERE seq = 2`}, "audit entry 2 is missing", ""},
	{"the newest entry cut off, with the head", []string{
		`DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)`,
		`UPDATE audit_head SET seq = (SELECT max(seq) FROM audit), hash = (SELECT hash FROM audit ORDER BY seq DESC LIMIT 1)`}, headUnsealed, ""},
	{"an entry put in behind", []string{
		`INSERT INTO audit (seq, at, act, actor_id, person_id, company_id, address, details, hash) SELECT max(seq) + 1, 1, 'token.created', '', '', '', '', '{}', 'x' FROM audit`}, "newer than the head", ""},
	{"two entries swapped", []string{`UPDATE audit SET seq = -1 WHERE seq = 2`, `UPDATE audit SET seq = 2 WHERE seq = 3`, `UPDATE audit SET seq = 3 WHERE seq = -1`}, "audit entry 2", ""},
	{"the head's seal removed", []string{`UPDATE audit_head SET seal = ''`}, headUnsealed, ""},

	{"rate_log rows deleted", []string{`DELETE FROM rate_log`}, "",
		"these rows are swept by the program as well and say only what happened within the last hours: limits can be reset by whoever can write the database"},
	{"a token revoked", []string{`DELETE FROM access_token`}, "",
		"a row takes its seal along: the owner loses something, and nobody gains; the log has token.created without token.deleted"},
	{"every seal and the chain made anew as if there had never been seals", nil, "",
		"the next start would seal what it finds, and writes seals.begun: only a head that was kept elsewhere (audit verify --head) tells"},
}

// headUnsealed is what is said of a head that was moved or stripped.
const headUnsealed = "does not match its seal: the head was changed"

func TestTamperings(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *generationtest.Installation) {
		ctx := h.Context()
		victim := makePerson(h, "victim@example.com")
		intruder := makePerson(h, "intruder@example.com")
		h.Do(func(tx *sqldb.Tx) error { // from before there were seals
			_, err := ledger.Grant(ctx, tx, victim, 7, ledger.SignedUp, "old")
			return err
		})
		disarmed(h, `UPDATE ledger_transaction SET seal = ''`)
		for _, query := range []string{
			`INSERT INTO access_token (id, person_id, name, hash, hint, created) VALUES ('t', '$M', 'n', 'h', '', 1)`,
			`INSERT INTO device (id, person_id, plugin_kind, agent, address, provider, created, last_used, revoked, revoked_why) VALUES ('d', '$M', '', '', '', '', 1, 1, 2, 'gone')`,
			`INSERT INTO signing_key (id, public, private, created) VALUES ('k', 'p', 's', 1)`,
			`INSERT INTO webhook_secret (account_id, secret, created, previous) VALUES ('$V', 's', 1, '')`,
		} {
			h.Exec(strings.NewReplacer("$M", intruder, "$V", victim).Replace(query))
		}
		h.OK(BeginSeals(ctx, h.DB))

		var c company.Company
		var team company.Team
		h.Do(func(tx *sqldb.Tx) (err error) {
			if c, err = company.Create(ctx, tx, "Fox", company.EnterprisePlan); err != nil {
				return err
			}
			if team, err = company.CreateTeam(ctx, tx, c.ID, "Film"); err != nil {
				return err
			}
			_, err = company.SetTeamMember(ctx, tx, team.ID, intruder, company.RoleMember, company.Added)
			return err
		})
		h.Exec(`INSERT INTO scim_token (company_id, hash, hint, made_by, created, seal) VALUES ($1, 'h', '', '', 1, 'x')`, c.ID)
		grant := func(account string, tokens int64, note string) {
			h.Do(func(tx *sqldb.Tx) error {
				if _, err := ledger.Grant(ctx, tx, account, tokens, ledger.Granted, note); err != nil {
					return err
				}
				e := audit.Entry{Act: audit.TokensGranted, PersonID: account, Details: map[string]string{"account": account, "tokens": strconv.FormatInt(tokens, 10)}}
				return audit.Add(ctx, tx, e.WithChange("", ""))
			})
		}
		grant(victim, 100, "")
		grant(intruder, 50, "")
		grant(intruder, -20, "back")
		run := h.Create(h.Draft(generationtest.Own(victim), "cost"))
		names := strings.NewReplacer("$V", victim, "$M", intruder, "$C", c.ID, "$T", team.ID, "$R", run.ID)
		h.Do(func(tx *sqldb.Tx) error { // as credential.ConnectDirectory would
			for _, t := range tables {
				if t.Name == "scim_token" {
					return t.RenewSeals(ctx, tx, `company_id = $1`, c.ID)
				}
			}
			return nil
		})
		upload(h, victim)

		inspect := func(tx *sqldb.Tx) (found []string) {
			problems, err := verifySeals(ctx, tx)
			h.OK(err)
			for _, p := range problems {
				found = append(found, p.Row)
			}
			_, log, err := audit.Verify(ctx, uncommitted{tx}, nil)
			h.OK(err)
			found = append(found, log...)
			for _, check := range slices.Concat(ledger.Checks, audit.Checks) {
				rows, err := sqldb.All(ctx, tx, check.Query, nil, func(s sqldb.Scanner) (row string, err error) { err = s.Scan(&row); return row, err })
				h.OK(err)
				found = append(found, rows...)
			}
			return found
		}
		h.OK(h.DB.Read(ctx, func(tx *sqldb.Tx) error {
			if found := inspect(tx); len(found) > 0 {
				h.Fatalf("untouched: %q", found)
			}
			return nil
		}))
		if len(tamperings) < 35 {
			h.Errorf("%d kinds", len(tamperings))
		}
		for _, x := range tamperings {
			if (x.named == "") == (x.why == "") {
				h.Errorf("%s: want what is named, or why not", x.name)
			}
			undo := errors.New("undo")
			err := h.Try(func(tx *sqldb.Tx) error {
				if err := disarm(h, tx); err != nil {
					return err
				}
				for _, query := range x.done {
					if _, err := tx.Exec(ctx, names.Replace(query)); err != nil {
						return err
					}
				}
				want := func(when string) {
					found := inspect(tx)
					if x.named != "" && !slices.ContainsFunc(found, func(row string) bool { return strings.Contains(row, names.Replace(x.named)) }) {
						h.Errorf("%s%s: found %q, want %q", x.name, when, found, names.Replace(x.named))
					}
				}
				want("")
				if x.named == headUnsealed { // and the next entry must not mend it
					if err := audit.Add(ctx, tx, audit.Entry{Act: audit.TokenCreated}); err != nil {
						return err
					}
					want(", after one more entry")
				}
				return undo
			})
			if !errors.Is(err, undo) {
				h.Errorf("%s: %v", x.name, err)
			}
		}
	})
}

// TestSealsBeginOnce: what is put in after seals began is not sealed at the next
// start, nor by a change of another part of the row.
func TestSealsBeginOnce(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *generationtest.Installation) {
		ctx := h.Context()
		id := makePerson(h, "anna@example.com")
		h.OK(BeginSeals(ctx, h.DB))
		h.Exec(`UPDATE person SET email_verified = FALSE, seal = '' WHERE id = $1`, id)
		h.Exec(`UPDATE audit_head SET seal = ''`)
		h.Do(func(tx *sqldb.Tx) error {
			return audit.Add(ctx, tx, audit.Entry{Act: audit.TokenCreated})
		})
		h.OK(BeginSeals(ctx, h.DB))
		h.Do(func(tx *sqldb.Tx) error { return person.SetPassword(ctx, tx, id, "$argon2id$x") })
		problems, kept, err := VerifySeals(ctx, h.DB)
		h.OK(err)
		if !kept || len(problems) != 1 || !strings.Contains(problems[0].Row, id) {
			h.Errorf("problems = %v, %v", problems, kept)
		}
	})
}

func makePerson(h *generationtest.Installation, email string) (id string) {
	h.Do(func(tx *sqldb.Tx) error {
		p, err := person.Create(h.Context(), tx, person.Draft{Email: email, PasswordHash: "x"})
		id = p.ID
		return err
	})
	return id
}

// upload puts a file of somebody down.
func upload(h *generationtest.Installation, owner string) {
	h.Do(func(tx *sqldb.Tx) error {
		a := asset.Asset{ID: ids.New(), AccountID: owner, Type: "TEXT", MimeType: "text/plain", Size: 1, SHA256: strings.Repeat("0", 64), Blob: "b/" + owner, Created: tx.Now}
		err := asset.AddUpload(h.Context(), tx, asset.Upload{ID: ids.New(), AccountID: owner, PersonID: owner, Asset: a, Name: "n", Created: tx.Now})
		if err == nil {
			err = quota.Limits{}.ChargeAccount(h.Context(), tx, owner, a.StoredBytes())
		}
		if err == nil {
			err = quota.Limits{}.ChargeTotal(h.Context(), tx, owner, a.StoredBytes())
		}
		return err
	})
}

// disarm takes the triggers away that keep rows as they are. The trigger that
// sums entries by day stays: nobody needs to get past it.
func disarm(h *generationtest.Installation, tx *sqldb.Tx) error {
	query, statement := `SELECT name FROM sqlite_master WHERE type = 'trigger' AND name <> 'ledger_entry_day'`, `DROP TRIGGER `
	if h.DB.Dialect.Name == "postgres" {
		query = `SELECT 'ALTER TABLE ' || c.relname || ' DISABLE TRIGGER ' || t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
			WHERE NOT t.tgisinternal AND t.tgname <> 'ledger_entry_day'`
		statement = ``
	}
	names, err := sqldb.All(h.Context(), tx, query, nil, func(s sqldb.Scanner) (name string, err error) { err = s.Scan(&name); return name, err })
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := tx.Exec(h.Context(), statement+name); err != nil {
			return err
		}
	}
	return nil
}

// disarmed changes something for good past the triggers.
func disarmed(h *generationtest.Installation, query string) {
	h.Do(func(tx *sqldb.Tx) error {
		if err := disarm(h, tx); err != nil {
			return err
		}
		_, err := tx.Exec(h.Context(), query)
		return err
	})
}
