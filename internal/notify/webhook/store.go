package webhook

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// secretRow is a row of the table webhook_secret. Its secrets are encrypted.
type secretRow struct {
	secret, previous       string
	created, previousUntil time.Time
}

// insertSecret stores an encrypted secret unless the account already has one.
// fresh reports whether the secret was stored.
func insertSecret(ctx context.Context, tx *sqldb.Tx, accountID, sealed string) (fresh bool, err error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO webhook_secret (account_id, secret, created, previous) VALUES ($1, $2, $3, '')
		ON CONFLICT (account_id) DO NOTHING`, accountID, sealed, sqldb.At(tx.Now))
	if err != nil || n == 0 {
		return false, err
	}
	return true, Sealed.RenewSeals(ctx, tx, `account_id = $1`, accountID)
}

func replaceSecret(ctx context.Context, tx *sqldb.Tx, accountID, sealed string, until time.Time) error {
	return Sealed.ChangeRows(ctx, tx, `account_id = $1`, []any{accountID}, func() error {
		_, err := tx.Exec(ctx, `
			INSERT INTO webhook_secret (account_id, secret, created, previous) VALUES ($1, $2, $3, '')
			ON CONFLICT (account_id) DO UPDATE SET secret = $2, created = $3,
				previous = webhook_secret.secret, previous_until = $4`,
			accountID, sealed, sqldb.At(tx.Now), sqldb.At(until))
		return err
	})
}

func findSecret(ctx context.Context, tx *sqldb.Tx, accountID string) (k secretRow, err error) {
	var created, until sqldb.Time
	err = tx.QueryRow(ctx, `SELECT secret, created, previous, previous_until FROM webhook_secret WHERE account_id = $1`, accountID).
		Scan(&k.secret, &created, &k.previous, &until)
	k.created = created.Time
	k.previousUntil = until.Time
	return k, err
}

// EraseSecret deletes the webhook secret of an account.
func EraseSecret(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM webhook_secret WHERE account_id = $1`, accountID)
	return err
}

// Erase deletes the events of the given runs and the attempts to deliver them.
// It locks the events first, so that it waits for a transaction that is storing
// the outcome of an attempt.
func Erase(ctx context.Context, tx *sqldb.Tx, runIDs []string) error {
	if len(runIDs) == 0 {
		return nil
	}
	runs, args := sqldb.In(runIDs)
	events, err := sqldb.All(ctx, tx, `SELECT id FROM webhook_event WHERE run_id IN `+runs+tx.Dialect.ForUpdate, args, func(row sqldb.Scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	})
	if err != nil || len(events) == 0 {
		return err
	}
	of, ids := sqldb.In(events)
	for _, query := range []string{`DELETE FROM webhook_attempt WHERE event_id IN ` + of, `DELETE FROM webhook_event WHERE id IN ` + of} {
		if _, err := tx.Exec(ctx, query, ids...); err != nil {
			return err
		}
	}
	return nil
}

func insertEvent(ctx context.Context, tx *sqldb.Tx, id, host string, e Event) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO webhook_event (id, run_id, account_id, url, host, state, attempts, next_at, created)
		VALUES ($1, $2, $3, $4, $5, 'waiting', 0, $6, $6)`,
		id, e.RunID, e.AccountID, e.URL, host, sqldb.At(tx.Now))
	return err
}

func insertNotice(ctx context.Context, tx *sqldb.Tx, id, host string, n Notice) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO webhook_event (id, body, account_id, url, host, state, attempts, next_at, created)
		VALUES ($1, $2, $3, $4, $5, 'waiting', 0, $6, $6)`,
		id, string(n.Body), n.AccountID, n.URL, host, sqldb.At(tx.Now))
	return err
}

// noticeBody returns the JSON body of a notice (an event that is not about a
// run).
func noticeBody(ctx context.Context, tx *sqldb.Tx, id string) (body string, err error) {
	err = tx.QueryRow(ctx, `SELECT body FROM webhook_event WHERE id = $1 AND run_id IS NULL`, id).Scan(&body)
	return body, err
}

func readStates(ctx context.Context, tx *sqldb.Tx, runIDs []string) (map[string]*State, error) {
	placeholders, args := sqldb.In(runIDs)
	all := map[string]*State{}
	err := tx.EachRow(ctx, `
		SELECT e.run_id, CASE WHEN EXISTS (SELECT 1 FROM webhook_attempt a WHERE a.event_id = e.id AND a.status_code BETWEEN 200 AND 299)
			THEN 'delivered' ELSE e.state END,
			(SELECT count(*) FROM webhook_attempt a WHERE a.event_id = e.id)
		FROM webhook_event e WHERE e.run_id IN `+placeholders, args, func(row sqldb.Scanner) error {
		var runID string
		s := &State{}
		err := row.Scan(&runID, &s.State, &s.Attempts)
		all[runID] = s
		return err
	})
	return all, err
}

func listAttempts(ctx context.Context, tx *sqldb.Tx, runID string) ([]Attempt, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+attemptColumns+` FROM webhook_attempt a JOIN webhook_event e ON e.id = a.event_id
		WHERE e.run_id = $1 ORDER BY a.at DESC, a.id DESC`,
		[]any{runID}, func(row sqldb.Scanner) (Attempt, error) { return scanAttempt(row) })
}

const attemptColumns = `a.id, a.at, coalesce(a.status_code, 0), a.duration_ms, a.error`

// scanAttempt scans a row of attemptColumns. others are the destinations of the
// columns that precede them.
func scanAttempt(row sqldb.Scanner, others ...any) (a Attempt, err error) {
	var at sqldb.Time
	var ms int64
	err = row.Scan(append(others, &a.ID, &at, &a.StatusCode, &ms, &a.Error)...)
	a.At = at.Time
	a.Duration = time.Duration(ms) * time.Millisecond
	return a, err
}

// SQL conditions on the attempts to deliver the event e.
const (
	hasAttempt  = `EXISTS (SELECT 1 FROM webhook_attempt a WHERE a.event_id = e.id)`
	isDelivered = `EXISTS (SELECT 1 FROM webhook_attempt a WHERE a.event_id = e.id AND a.status_code BETWEEN 200 AND 299)`
)

// deliveryStates are the SQL conditions for the public states of the event e.
var deliveryStates = map[string]string{
	"":           `TRUE`,
	statePending: `e.state = 'waiting' AND NOT ` + hasAttempt,
	stateFailing: `e.state = 'waiting' AND ` + hasAttempt + ` AND NOT ` + isDelivered,
	Delivered:    `(e.state = 'delivered' OR e.state = 'waiting' AND ` + isDelivered + `)`,
	Exhausted:    `e.state = 'exhausted'`,
	Gone:         `e.state = 'gone'`,
}

// listDeliveries returns a page of the deliveries of an account. The attempts
// are read by a second query, because PostgreSQL would join all attempts of all
// accounts with the events before it cuts off the page.
func listDeliveries(ctx context.Context, tx *sqldb.Tx, accountID, state string, after *DeliveryCursor, limit int) ([]Delivery, error) {
	args := sqldb.Args{accountID}
	query := `SELECT e.id, e.run_id, e.host, e.state, e.created, e.next_at FROM webhook_event e
		WHERE e.account_id = $1 AND e.run_id IS NOT NULL AND ` + deliveryStates[state]
	if after != nil {
		query += ` AND (e.created, e.id) < (` + args.Add(after.Created.UnixMicro()) + `, ` + args.Add(after.ID) + `)`
	}
	all, err := sqldb.All(ctx, tx, query+` ORDER BY e.created DESC, e.id DESC LIMIT `+args.Add(limit), args, func(row sqldb.Scanner) (d Delivery, err error) {
		var created, next sqldb.Time
		err = row.Scan(&d.ID, &d.RunID, &d.Host, &d.State.State, &created, &next)
		d.Created = created.Time
		d.Next = next.Time
		return d, err
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all, addAttempts(ctx, tx, all)
}

// addAttempts adds to deliveries the number of their attempts and the last one.
func addAttempts(ctx context.Context, tx *sqldb.Tx, deliveries []Delivery) error {
	byID := map[string]*Delivery{}
	var eventIDs []string
	for i := range deliveries {
		byID[deliveries[i].ID] = &deliveries[i]
		eventIDs = append(eventIDs, deliveries[i].ID)
	}

	in, args := sqldb.In(eventIDs)
	return tx.EachRow(ctx, `SELECT a.event_id, `+attemptColumns+` FROM webhook_attempt a WHERE a.event_id IN `+in+` ORDER BY a.at, a.id`, args, func(row sqldb.Scanner) error {
		var eventID string
		a, err := scanAttempt(row, &eventID)
		if err != nil {
			return err
		}

		d := byID[eventID]
		d.Attempts++
		d.Last = a
		if a.StatusCode >= 200 && a.StatusCode <= 299 {
			d.State.State = Delivered
		}
		return nil
	})
}

// makeDue makes the event of a run due now, unless it is being sent. found
// reports whether the run has an event.
func makeDue(ctx context.Context, tx *sqldb.Tx, runID string) (found bool, err error) {
	n, err := tx.Exec(ctx, `
		UPDATE webhook_event SET state = 'waiting', next_at = $2
		WHERE run_id = $1 AND (lease_until IS NULL OR lease_until <= $2)`, runID, sqldb.At(tx.Now))
	if err != nil || n > 0 {
		return n > 0, err
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM webhook_event WHERE run_id = $1)`, runID).Scan(&found)
	return found, err
}

// dueEvent is an event that is due for delivery.
type dueEvent struct {
	id, accountID, url, host string
	runID                    string // empty for a notice

	failing bool // the last attempt for the host failed
	rank    int  // position among the due events of the same host, from 1

	at    time.Time // when the event was leased
	until time.Time // when the lease expires
}

// dueEvents returns at most limit events that can be sent now, and at most
// perHost of them per host. The longest overdue event of every host comes
// first, then the second of every host, and so on. Hosts with an open circuit
// breaker and the hosts in without are skipped.
func dueEvents(ctx context.Context, tx *sqldb.Tx, without []string, perHost, limit int) ([]dueEvent, error) {
	args := sqldb.Args{sqldb.At(tx.Now), perHost, limit}
	exclude := ""
	if len(without) > 0 {
		exclude = ` AND e.host NOT IN ` + sqldb.AddList(&args, without)
	}
	return sqldb.All(ctx, tx, `
		SELECT id, run_id, account_id, url, host, failing, place FROM (
			SELECT e.id, coalesce(e.run_id, '') AS run_id, e.account_id, e.url, e.host, e.next_at, h.host IS NOT NULL AS failing,
				row_number() OVER (PARTITION BY e.host ORDER BY e.next_at, e.id) AS place
			FROM webhook_event e LEFT JOIN webhook_host h ON h.host = e.host
			WHERE e.next_at <= $1 AND (e.lease_until IS NULL OR e.lease_until <= $1)
				AND (h.open_until IS NULL OR h.open_until <= $1)`+exclude+`
		) AS ready WHERE place <= $2 ORDER BY place, next_at, id LIMIT $3`,
		args, func(row sqldb.Scanner) (e dueEvent, err error) {
			err = row.Scan(&e.id, &e.runID, &e.accountID, &e.url, &e.host, &e.failing, &e.rank)
			return e, err
		})
}

// takeLease leases an event until e.until. It returns false if another sender
// has leased the event: concurrent senders wait for the lock on the event's
// row, and only one gets the lease.
func takeLease(ctx context.Context, tx *sqldb.Tx, e dueEvent) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE webhook_event SET lease_until = $2
		WHERE id = $1 AND next_at <= $3 AND (lease_until IS NULL OR lease_until <= $3)`,
		e.id, sqldb.At(e.until), sqldb.At(tx.Now))
	return n == 1, err
}

// endLease releases the lease of an event and changes nothing else.
func endLease(ctx context.Context, tx *sqldb.Tx, e dueEvent) error {
	_, err := tx.Exec(ctx, `UPDATE webhook_event SET lease_until = NULL WHERE id = $1 AND lease_until = $2`, e.id, sqldb.At(e.until))
	return err
}

// lockLeased locks the row of an event if the lease of e is still valid, and
// returns the event's history. held is false if another sender has taken over
// the event.
func lockLeased(ctx context.Context, tx *sqldb.Tx, e dueEvent) (s history, held bool, err error) {
	err = tx.QueryRow(ctx, `SELECT attempts FROM webhook_event WHERE id = $1 AND lease_until = $2`+tx.Dialect.ForUpdate,
		e.id, sqldb.At(e.until)).Scan(&s.attempts)
	if errors.Is(err, sqldb.ErrNoRows) {
		return s, false, nil
	}
	if err == nil {
		err = tx.QueryRow(ctx, `
			SELECT EXISTS (SELECT 1 FROM webhook_attempt WHERE event_id = $1 AND status_code BETWEEN 200 AND 299),
				EXISTS (SELECT 1 FROM webhook_attempt WHERE event_id = $1 AND status_code = 410)`, e.id).
			Scan(&s.delivered, &s.gone)
	}
	return s, err == nil, err
}

func insertAttempt(ctx context.Context, tx *sqldb.Tx, e dueEvent, o outcome) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO webhook_attempt (id, event_id, at, status_code, duration_ms, error)
		VALUES ($1, $2, $3, nullif(CAST($4 AS BIGINT), 0), $5, $6)`,
		ids.New(), e.id, sqldb.At(e.at), o.status, o.took.Milliseconds(), o.word)
	return err
}

func setOutcome(ctx context.Context, tx *sqldb.Tx, e dueEvent, c step) error {
	_, err := tx.Exec(ctx, `
		UPDATE webhook_event SET state = $2, attempts = $3, next_at = $4, lease_until = NULL WHERE id = $1`,
		e.id, c.state, c.attempts, sqldb.At(c.next))
	return err
}

// addFailure counts a failure of a host and returns the number of consecutive
// failures. If the circuit breaker of the host is open, it counts nothing and
// returns 0.
func addFailure(ctx context.Context, tx *sqldb.Tx, host string) (failures int, err error) {
	err = tx.QueryRow(ctx, `
		INSERT INTO webhook_host (host, failures) VALUES ($1, 1)
		ON CONFLICT (host) DO UPDATE SET failures = webhook_host.failures + 1
		WHERE webhook_host.open_until IS NULL OR webhook_host.open_until <= $2
		RETURNING failures`, host, sqldb.At(tx.Now)).Scan(&failures)
	if errors.Is(err, sqldb.ErrNoRows) {
		return 0, nil
	}
	return failures, err
}

func openCircuit(ctx context.Context, tx *sqldb.Tx, host string, until time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE webhook_host SET open_until = $2 WHERE host = $1`, host, sqldb.At(until))
	return err
}

// deleteFailures deletes the row of a host after a successful delivery, because
// only hosts whose last attempt failed have a row.
func deleteFailures(ctx context.Context, tx *sqldb.Tx, host string) error {
	_, err := tx.Exec(ctx, `DELETE FROM webhook_host WHERE host = $1`, host)
	return err
}

func countEvents(ctx context.Context, tx *sqldb.Tx) (n int64, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT 1 AS one FROM webhook_event WHERE next_at IS NOT NULL LIMIT $1) AS counted`, int64(countedEvents)).Scan(&n)
	return n, err
}

func firstDue(ctx context.Context, tx *sqldb.Tx) (time.Time, error) {
	var at sqldb.Time
	err := tx.QueryRow(ctx, `SELECT min(next_at) FROM webhook_event WHERE next_at IS NOT NULL`).Scan(&at)
	return at.Time, err
}

func countPaused(ctx context.Context, tx *sqldb.Tx) (n int64, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT 1 AS one FROM webhook_host WHERE open_until > $1 LIMIT $2) AS counted`,
		sqldb.At(tx.Now), int64(countedEvents)).Scan(&n)
	return n, err
}

// Checks are the invariants of the webhook tables.
var Checks = []sqldb.Check{{
	Name: "a finished run with a webhook has an event",
	Query: `SELECT 'run ' || r.id FROM run r WHERE r.status <> 'pending' AND r.webhook_url <> ''
		AND NOT EXISTS (SELECT 1 FROM webhook_event e WHERE e.run_id = r.id)`,
}, {
	Name: "the run of an event has ended and has the account and the webhook of the event",
	Query: `SELECT 'webhook_event ' || e.id FROM webhook_event e JOIN run r ON r.id = e.run_id
		WHERE r.status = 'pending' OR r.webhook_url = '' OR e.url <> r.webhook_url OR e.account_id <> r.account_id`,
}, {
	Name:  "a run has one event",
	Query: `SELECT 'run ' || run_id FROM webhook_event WHERE run_id IS NOT NULL GROUP BY run_id HAVING count(*) > 1`,
}, {
	Name:  "an event has either a run or a body",
	Query: `SELECT 'webhook_event ' || id FROM webhook_event WHERE (run_id IS NULL) <> (body <> '')`,
}, {
	Name: "the host of an event is the host of its URL",
	Query: `SELECT 'webhook_event ' || id FROM webhook_event
		WHERE host = '' OR substr(lower(url), 1, 8 + length(host)) <> 'https://' || host`,
}, {
	Name:  "only waiting events have a time of the next attempt, and each has one",
	Query: `SELECT 'webhook_event ' || id FROM webhook_event WHERE (state = 'waiting') <> (next_at IS NOT NULL)`,
}, {
	Name:  "only waiting events have a lease",
	Query: `SELECT 'webhook_event ' || id FROM webhook_event WHERE lease_until IS NOT NULL AND state <> 'waiting'`,
}, {
	Name: "an ended event is delivered if and only if a receiver answered with 2xx",
	Query: `SELECT 'webhook_event ' || e.id FROM webhook_event e
		WHERE e.state <> 'waiting' AND (e.state = 'delivered') <> EXISTS (
			SELECT 1 FROM webhook_attempt a WHERE a.event_id = e.id AND a.status_code BETWEEN 200 AND 299)`,
}, {
	Name: "an event is gone only if a receiver answered with 410",
	Query: `SELECT 'webhook_event ' || e.id FROM webhook_event e
		WHERE e.state = 'gone' AND NOT EXISTS (
			SELECT 1 FROM webhook_attempt a WHERE a.event_id = e.id AND a.status_code = 410)`,
}, {
	Name:  "an exhausted event has at least one attempt",
	Query: `SELECT 'webhook_event ' || id FROM webhook_event WHERE attempts < 0 OR state = 'exhausted' AND attempts = 0`,
}, {
	Name: "every attempt is recorded, and no attempt follows a success",
	Query: `SELECT 'webhook_event ' || e.id FROM webhook_event e
		WHERE e.attempts > (SELECT count(*) FROM webhook_attempt a WHERE a.event_id = e.id AND NOT EXISTS (
			SELECT 1 FROM webhook_attempt s WHERE s.event_id = e.id AND s.status_code BETWEEN 200 AND 299 AND s.at < a.at))`,
}, {
	Name: "an attempt has an error unless it was answered with 2xx",
	Query: `SELECT 'webhook_attempt ' || id FROM webhook_attempt
		WHERE (coalesce(status_code, 0) BETWEEN 200 AND 299) <> (error = '')`,
}, {
	Name: "the circuit breaker of a host is open only after 20 failures",
	Query: `SELECT 'webhook_host ' || host FROM webhook_host
		WHERE failures < 1 OR (open_until IS NOT NULL) <> (failures >= 20)`,
}}
