package ledger

import (
	"context"
	"errors"
	"strconv"
	"time"

	"atelier/internal/base/sqldb"
)

func insertAccount(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ($1, 0, 0, '', 0)
		ON CONFLICT (id) DO NOTHING`, id)
	return err
}

// postTokens adds tokens to an account, or takes them if tokens is negative. If
// the balance would become negative, it changes nothing and returns ok = false.
// balance is the number of tokens that can be spent after the call.
func postTokens(ctx context.Context, tx *sqldb.Tx, id string, tokens int64) (balance int64, ok bool, err error) {
	err = tx.QueryRow(ctx, `
		UPDATE ledger_account SET posted = posted + $1 WHERE id = $2 AND posted - held + $1 >= 0
		RETURNING posted - held`, tokens, id).Scan(&balance)
	if !errors.Is(err, sqldb.ErrNoRows) {
		return balance, err == nil, err
	}
	err = tx.QueryRow(ctx, `SELECT posted - held FROM ledger_account WHERE id = $1`, id).Scan(&balance)
	return balance, false, err
}

// movement is a ledger transaction between a system account and the account of
// a person or a team.
type movement struct {
	id              string
	kind            Kind
	note            string
	runID           string // id of the run that is settled, or ""
	system, account string
	tokens          int64 // number of tokens that the account receives
	allowance       int64 // allowance that is used by a settlement
}

// sealedHash returns the keyed hash of the ledger transaction and its two
// entries.
func (m movement) sealedHash(tx *sqldb.Tx, created int64) string {
	return tx.SealTexts("ledger_transaction", m.id, string(m.kind), m.note, m.runID, m.system, m.account,
		strconv.FormatInt(m.tokens, 10), strconv.FormatInt(m.allowance, 10), strconv.FormatInt(created, 10))
}

// recordMovement inserts the ledger transaction. If it settles a run that is
// already settled, recordMovement inserts nothing and returns fresh = false.
func recordMovement(ctx context.Context, tx *sqldb.Tx, m movement) (fresh bool, err error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO ledger_transaction (id, kind, note, created, run_id, seal) VALUES ($1, $2, $3, $4, nullif($5, ''), $6)
		ON CONFLICT (run_id) WHERE run_id IS NOT NULL DO NOTHING`,
		m.id, string(m.kind), m.note, sqldb.At(tx.Now), m.runID, m.sealedHash(tx, tx.Now.UnixMicro()))
	return n == 1, err
}

// bookEntries inserts the two entries of a ledger transaction and updates the
// system account. The row of the system account is locked last, because all
// other transactions wait for it.
func bookEntries(ctx context.Context, tx *sqldb.Tx, m movement) error {
	if _, err := tx.Exec(ctx, `
		INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ($1, $2, 0, '', 0)
		ON CONFLICT (id) DO UPDATE SET posted = ledger_account.posted + excluded.posted`, m.system, -m.tokens); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO ledger_entry (transaction_id, account_id, amount, created) VALUES ($1, $2, $3, $6), ($1, $4, $5, $6)`,
		m.id, m.account, m.tokens, m.system, -m.tokens, sqldb.At(tx.Now))
	return err
}

// lockAccount returns the row of the account and locks it until the transaction
// ends.
func lockAccount(ctx context.Context, tx *sqldb.Tx, id string) (a account, err error) {
	err = a.scanFrom(tx.QueryRow(ctx, accountQuery+` WHERE id = $1`+tx.Dialect.ForUpdate, id))
	return a, err
}

// openAndLockAccount is like lockAccount, but creates the row if it does not
// exist. Most accounts have one, so it looks first.
func openAndLockAccount(ctx context.Context, tx *sqldb.Tx, id string) (account, error) {
	a, err := lockAccount(ctx, tx, id)
	if !errors.Is(err, sqldb.ErrNoRows) {
		return a, err
	}
	if err := openAccount(ctx, tx, id); err != nil {
		return account{}, err
	}
	return lockAccount(ctx, tx, id)
}

// holdTokens reserves tokens of a locked account and sets the allowance used in
// a month, together with the next statement. The transaction fails if the
// account has too few tokens or its allowance has changed since it was read.
func holdTokens(ctx context.Context, tx *sqldb.Tx, was account, tokens int64, month string, used int64) error {
	return tx.DeferExec(ctx, `
		UPDATE ledger_account SET held = held + $1, allowance_month = $2, allowance_used = $3
		WHERE id = $4 AND posted - held >= $1 AND allowance_month = $5 AND allowance_used = $6`,
		[]any{tokens, month, used, was.id, was.allowanceMonth, was.allowanceUsed}, func(changed int64) error {
			if changed != 1 {
				return errors.New("reserve tokens: the account changed while it was locked")
			}
			return nil
		})
}

// releaseHold ends a hold (the reservation for a run): the account loses the
// paid tokens, and the remaining tokens become available again. Unused
// allowance is released only if the account is still in the same month.
// releaseHold changes nothing if less than h is reserved.
func releaseHold(ctx context.Context, tx *sqldb.Tx, id string, h Hold, tokens, allowance int64) (ok bool, err error) {
	n, err := tx.Exec(ctx, `
		UPDATE ledger_account SET posted = posted - $1, held = held - $2,
			allowance_used = allowance_used - CASE WHEN allowance_month = $3 THEN CAST($4 AS BIGINT) ELSE 0 END
		WHERE id = $5 AND held >= $2 AND (allowance_month <> $3 OR allowance_used >= $6)`,
		tokens, h.Tokens, h.Month, h.Allowance-allowance, id, h.Allowance)
	return n == 1, err
}

// claimTopUp records that the account claimed a top-up now. If the last claim
// was within the window, it records nothing and returns claimed = false.
func claimTopUp(ctx context.Context, tx *sqldb.Tx, id string, window time.Duration) (claimed bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE ledger_account SET topped_up = $1 WHERE id = $2 AND (topped_up IS NULL OR topped_up <= $3)`,
		sqldb.At(tx.Now), id, sqldb.At(tx.Now.Add(-window)))
	return n == 1, err
}

func toppedUp(ctx context.Context, tx *sqldb.Tx, id string) (time.Time, error) {
	var at sqldb.Time
	err := tx.QueryRow(ctx, `SELECT topped_up FROM ledger_account WHERE id = $1`, id).Scan(&at)
	if errors.Is(err, sqldb.ErrNoRows) {
		return time.Time{}, nil
	}
	return at.Time, err
}

// account is a row of the table ledger_account.
type account struct {
	id             string
	posted, held   int64
	allowanceMonth string
	allowanceUsed  int64
}

const accountQuery = `SELECT id, posted, held, allowance_month, allowance_used FROM ledger_account`

func (a *account) scanFrom(s sqldb.Scanner) error {
	return s.Scan(&a.id, &a.posted, &a.held, &a.allowanceMonth, &a.allowanceUsed)
}

func listAccounts(ctx context.Context, tx *sqldb.Tx, ids []string) ([]account, error) {
	in, args := sqldb.In(ids)
	return sqldb.All(ctx, tx, accountQuery+` WHERE id IN `+in, args, func(s sqldb.Scanner) (a account, err error) {
		err = a.scanFrom(s)
		return a, err
	})
}

// Entries returns at most limit entries of an account, ordered by transaction
// id, starting after the id after. This order is not chronological.
func Entries(ctx context.Context, tx *sqldb.Tx, accountID, after string, limit int) ([]Entry, error) {
	return sqldb.All(ctx, tx, `
		SELECT t.id, t.kind, t.note, coalesce(t.run_id, ''), e.amount, t.created
		FROM ledger_entry e JOIN ledger_transaction t ON t.id = e.transaction_id
		WHERE e.account_id = $1 AND e.transaction_id > $2 ORDER BY e.transaction_id LIMIT $3`, []any{accountID, after, int64(limit)},
		func(s sqldb.Scanner) (e Entry, err error) {
			var created sqldb.Time
			err = s.Scan(&e.ID, (*string)(&e.Kind), &e.Note, &e.RunID, &e.Tokens, &created)
			e.Created = created.Time
			return e, err
		})
}

// listHistory returns at most limit entries of an account in a period that
// moved tokens, newest first, starting after the given position.
func listHistory(ctx context.Context, tx *sqldb.Tx, accountID string, p Period, after *Cursor, limit int) ([]HistoryEntry, error) {
	var args sqldb.Args
	where := `e.account_id = ` + args.Add(accountID) + ` AND e.amount <> 0` + p.conditions(&args)
	if after != nil {
		where += ` AND (e.created, e.transaction_id) < (` + args.Add(sqldb.At(after.Created)) + `, ` + args.Add(after.ID) + `)`
	}
	return sqldb.All(ctx, tx, `
		SELECT t.id, t.kind, t.note, coalesce(t.run_id, ''), e.amount, e.created, coalesce(r.tool_id, ''), coalesce(r.person_id, '')
		FROM ledger_entry e JOIN ledger_transaction t ON t.id = e.transaction_id LEFT JOIN run r ON r.id = t.run_id
		WHERE `+where+` ORDER BY e.created DESC, e.transaction_id DESC LIMIT `+args.Add(limit), args,
		func(s sqldb.Scanner) (h HistoryEntry, err error) {
			var created sqldb.Time
			err = s.Scan(&h.ID, (*string)(&h.Kind), &h.Note, &h.RunID, &h.Tokens, &created, &h.ToolID, &h.PersonID)
			h.Created = created.Time
			return h, err
		})
}

// conditions returns the SQL conditions on the creation time of entries.
func (p Period) conditions(args *sqldb.Args) (where string) {
	if !p.From.IsZero() {
		where += ` AND e.created >= ` + args.Add(sqldb.At(p.From))
	}
	if !p.Until.IsZero() {
		where += ` AND e.created < ` + args.Add(sqldb.At(p.Until))
	}
	return where
}

// dayNumber returns the number of days from 1970 to t, in UTC. The table
// ledger_day has a row for each day on which an account received or spent
// tokens; a trigger on ledger_entry writes it.
func dayNumber(t time.Time) int64 { return t.Unix() / int64(24*time.Hour/time.Second) }

// listDays returns the sums of an account's entries for each day from From up
// to but not including Until, keyed by the number of the day. Days without
// entries that moved tokens are left out.
func listDays(ctx context.Context, tx *sqldb.Tx, accountID string, p Period) (map[int64]Day, error) {
	days := map[int64]Day{}
	err := tx.EachRow(ctx, `SELECT day, received, spent, entries FROM ledger_day WHERE account_id = $1 AND day >= $2 AND day < $3`,
		[]any{accountID, dayNumber(p.From), dayNumber(p.Until)}, func(s sqldb.Scanner) error {
			var number int64
			var d Day
			err := s.Scan(&number, &d.Received, &d.Spent, &d.Entries)
			days[number] = d
			return err
		})
	return days, err
}

// balanceAt returns the tokens of an account at the beginning of a day,
// including those that were held for runs. It subtracts the days since then
// from the current balance, because periods usually end with the current day.
func balanceAt(ctx context.Context, tx *sqldb.Tx, accountID string, at time.Time) (tokens int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT coalesce((SELECT posted FROM ledger_account WHERE id = $1), 0)
			- coalesce((SELECT CAST(sum(received - spent) AS BIGINT) FROM ledger_day WHERE account_id = $1 AND day >= $2), 0)`,
		accountID, dayNumber(at)).Scan(&tokens)
	return tokens, err
}

// grantKey is an idempotency key of an operator, with the grant for which it
// was used.
type grantKey struct {
	fingerprint string // hash of the request
	receipt     Receipt
}

func findGrantKey(ctx context.Context, tx *sqldb.Tx, operatorID, key string) (k grantKey, found bool, err error) {
	r := &k.receipt
	r.Replayed = true
	var created sqldb.Time
	err = tx.QueryRow(ctx, `
		SELECT k.fingerprint, k.balance, t.id, t.kind, t.note, t.created, e.account_id, e.amount
		FROM grant_key k JOIN ledger_transaction t ON t.id = k.transaction_id JOIN ledger_entry e ON e.transaction_id = t.id
		WHERE k.person_id = $1 AND k.key = $2 AND e.account_id NOT LIKE '`+systemPrefix+`%'`, operatorID, key).
		Scan(&k.fingerprint, &r.Balance, &r.ID, (*string)(&r.Kind), &r.Note, &created, &r.AccountID, &r.Tokens)
	r.Created = created.Time
	if errors.Is(err, sqldb.ErrNoRows) {
		return grantKey{}, false, nil
	}
	return k, err == nil, err
}

func insertGrantKey(ctx context.Context, tx *sqldb.Tx, operatorID, key, fingerprint, transactionID string, balance int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO grant_key (person_id, key, fingerprint, transaction_id, balance) VALUES ($1, $2, $3, $4, $5)`,
		operatorID, key, fingerprint, transactionID, balance)
	return err
}

// Sums returns the tokens granted by the operator and the number of free
// top-ups, keyed by account id. System accounts are not included.
func Sums(ctx context.Context, tx *sqldb.Tx) (map[string]Sum, error) {
	all := map[string]Sum{}
	err := tx.EachRow(ctx, `
		SELECT e.account_id, CAST(sum(CASE t.kind WHEN '`+string(Granted)+`' THEN e.amount ELSE 0 END) AS BIGINT),
			CAST(sum(CASE t.kind WHEN '`+string(ToppedUp)+`' THEN 1 ELSE 0 END) AS BIGINT)
		FROM ledger_entry e JOIN ledger_transaction t ON t.id = e.transaction_id
		WHERE t.kind IN ('`+string(Granted)+`', '`+string(ToppedUp)+`') AND e.account_id NOT LIKE '`+systemPrefix+`%'
		GROUP BY e.account_id`, nil, func(s sqldb.Scanner) error {
		var id string
		var sum Sum
		if err := s.Scan(&id, &sum.Granted, &sum.TopUps); err != nil {
			return err
		}
		all[id] = sum
		return nil
	})
	return all, err
}

// eachMovement calls found for every ledger transaction, with its creation time
// in microseconds since 1970 and its seal. If a transaction does not have
// exactly two entries, it is passed without an account, so that its seal does
// not match.
func eachMovement(ctx context.Context, tx *sqldb.Tx, found func(m movement, created int64, seal string) error) error {
	return tx.EachRow(ctx, `
		SELECT t.id, t.kind, t.note, coalesce(t.run_id, ''), t.created, t.seal,
			coalesce((SELECT max(e.account_id) FROM ledger_entry e WHERE e.transaction_id = t.id AND e.account_id LIKE '`+systemPrefix+`%'), ''),
			coalesce((SELECT max(e.account_id) FROM ledger_entry e WHERE e.transaction_id = t.id AND e.account_id NOT LIKE '`+systemPrefix+`%'), ''),
			coalesce((SELECT CAST(sum(e.amount) AS BIGINT) FROM ledger_entry e WHERE e.transaction_id = t.id AND e.account_id NOT LIKE '`+systemPrefix+`%'), 0),
			(SELECT count(*) FROM ledger_entry e WHERE e.transaction_id = t.id),
			coalesce((SELECT r.allowance_used FROM run r WHERE r.id = t.run_id), 0)
		FROM ledger_transaction t`, nil, func(s sqldb.Scanner) error {
		var m movement
		var created, sides int64
		var seal string
		err := s.Scan(&m.id, (*string)(&m.kind), &m.note, &m.runID, &created, &seal, &m.system, &m.account, &m.tokens, &sides, &m.allowance)
		if err != nil {
			return err
		}
		if sides != 2 {
			m.account = "" // makes the verification of the seal fail
		}
		return found(m, created, seal)
	})
}

// passedOn returns the SQL expression for the part of the hold of the run r, a
// flow, that the runs of its steps hold instead.
func passedOn(column string) string {
	return `coalesce((SELECT sum(c.` + column + `) FROM flow_step s JOIN run c ON c.id = s.run_id WHERE s.flow_id = r.id AND NOT s.reused), 0)`
}

// Checks are SQL queries that find violated invariants of the ledger.
var Checks = []sqldb.Check{
	{Name: "a deleted person has no tokens", Query: `
		SELECT 'ledger_account ' || a.id FROM ledger_account a JOIN person p ON p.id = a.id WHERE p.deleted IS NOT NULL AND a.posted <> 0`},
	{Name: "the entries of a transaction sum to zero", Query: `
		SELECT 'ledger_transaction ' || t.id FROM ledger_transaction t LEFT JOIN ledger_entry e ON e.transaction_id = t.id
		GROUP BY t.id HAVING count(e.account_id) < 2 OR sum(e.amount) <> 0`},
	{Name: "an entry has the time of its transaction", Query: `
		SELECT 'ledger_entry ' || e.transaction_id FROM ledger_entry e JOIN ledger_transaction t ON t.id = e.transaction_id
		WHERE abs(e.created - t.created) > 60000000`}, // during an upgrade, older nodes leave the time to the database
	{Name: "the sums by day are those of the entries", Query: `
		SELECT 'ledger_day ' || account_id || ' ' || CAST(day AS TEXT) FROM (
			SELECT account_id, day, received - spent AS tokens, entries FROM ledger_day
			UNION ALL
			SELECT account_id, created / 86400000000, -amount, -1 FROM ledger_entry WHERE amount <> 0 AND account_id NOT LIKE '` + systemPrefix + `%') AS compared
		GROUP BY account_id, day HAVING sum(tokens) <> 0 OR sum(entries) <> 0`},
	{Name: "all entries sum to zero", Query: `
		SELECT 'ledger_entry: the sum is ' || CAST(sum(amount) AS TEXT) FROM ledger_entry HAVING sum(amount) <> 0`},
	{Name: "the balance of an account is the sum of its entries", Query: `
		SELECT 'ledger_account ' || a.id FROM ledger_account a LEFT JOIN ledger_entry e ON e.account_id = a.id
		GROUP BY a.id, a.posted HAVING a.posted <> coalesce(sum(e.amount), 0)`},
	{Name: "no account has a negative hold", Query: `
		SELECT 'ledger_account ' || id FROM ledger_account WHERE held < 0`},
	{Name: "no account of a person or team has a negative balance", Query: `
		SELECT 'ledger_account ' || id FROM ledger_account WHERE posted - held < 0 AND id NOT LIKE '` + systemPrefix + `%'`},
	{Name: "the hold of an account is the sum of the holds of its pending runs", Query: `
		SELECT 'ledger_account ' || a.id FROM ledger_account a LEFT JOIN run r ON r.account_id = a.id AND r.status = 'pending'
		GROUP BY a.id, a.held HAVING a.held <> coalesce(sum(r.tokens_held - ` + passedOn("tokens_held") + `), 0)`},
	{Name: "the account of a run with a hold exists", Query: `
		SELECT 'run ' || r.id FROM run r LEFT JOIN ledger_account a ON a.id = r.account_id
		WHERE a.id IS NULL AND r.tokens_held + r.allowance_held > 0`},
	{Name: "the used allowance of an account is the sum of its runs in the month", Query: `
		SELECT 'ledger_account ' || a.id FROM ledger_account a
			LEFT JOIN run r ON r.account_id = a.id AND r.allowance_month = a.allowance_month AND r.allowance_month <> ''
		GROUP BY a.id, a.allowance_used
		HAVING a.allowance_used <> coalesce(sum(CASE r.status WHEN 'pending' THEN r.allowance_held - ` + passedOn("allowance_held") + ` ELSE r.allowance_used END), 0)`},
	{Name: "a run is settled exactly once, when it has ended", Query: `
		SELECT 'run ' || r.id FROM run r LEFT JOIN ledger_transaction t ON t.run_id = r.id
		GROUP BY r.id, r.status HAVING count(t.id) <> CASE r.status WHEN 'pending' THEN 0 ELSE 1 END`},
	{Name: "every settlement, and no other transaction, has a run", Query: `
		SELECT 'ledger_transaction ' || t.id FROM ledger_transaction t LEFT JOIN run r ON r.id = t.run_id
		WHERE (t.kind = '` + string(Settled) + `') <> (r.id IS NOT NULL)`},
	{Name: "a settlement moves the charge of the run from the account of the run", Query: `
		SELECT DISTINCT 'run ' || r.id FROM run r JOIN ledger_transaction t ON t.run_id = r.id JOIN ledger_entry e ON e.transaction_id = t.id
		WHERE NOT (e.account_id = r.account_id AND e.amount = -coalesce(r.tokens_charged, 0)
			OR e.account_id = '` + systemRevenue + `' AND e.amount = coalesce(r.tokens_charged, 0))`},
	{Name: "the key of a grant belongs to one grant to one account", Query: `
		SELECT 'grant_key of ' || k.transaction_id FROM grant_key k
			LEFT JOIN ledger_transaction t ON t.id = k.transaction_id AND t.kind = '` + string(Granted) + `'
			LEFT JOIN ledger_entry e ON e.transaction_id = t.id AND e.account_id NOT LIKE '` + systemPrefix + `%'
		GROUP BY k.person_id, k.key, k.transaction_id HAVING count(e.account_id) <> 1`},
	{Name: "a grant has at most one key", Query: `
		SELECT 'grant_key of ' || transaction_id FROM grant_key GROUP BY transaction_id HAVING count(*) > 1`},
	{Name: "a run is charged at most its hold, and only if it succeeded", Query: `
		SELECT 'run ' || id FROM run
		WHERE tokens_charged < 0 OR tokens_charged > tokens_held OR allowance_used < 0 OR allowance_used > allowance_held
			OR status <> 'succeeded' AND (tokens_charged <> 0 OR allowance_used <> 0)`},
	{Name: "a held allowance has a month", Query: `
		SELECT 'run ' || id FROM run WHERE allowance_held > 0 AND allowance_month = ''`},
}
