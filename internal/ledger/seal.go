package ledger

import (
	"context"
	"crypto/hmac"
	"crypto/subtle"
	"encoding/hex"
	"fmt"

	"atelier/internal/sqldb"
)

// VerifySeals tells of every transaction whose seal does not fit it and its
// entries. Those without one must be those that old names, what Old gave when
// seals began.
func VerifySeals(ctx context.Context, tx *sqldb.Tx, old string, tell func(problem string)) error {
	var unsealed legacy
	err := movements(ctx, tx, func(m movement, created int64, seal string) error {
		switch {
		case seal == "":
			unsealed.add(m.seal(tx, created))
		case !hmac.Equal([]byte(seal), []byte(m.seal(tx, created))):
			tell("ledger_transaction " + m.id + " is not as it was sealed")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify the seals of the ledger: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(unsealed.String()), []byte(old)) != 1 {
		tell("ledger_transaction: those without a seal are not those from before there were seals")
	}
	return nil
}

// Old names the transactions without a seal as they are, "" where there are
// none. The table refuses changes, so they cannot be given one.
func Old(ctx context.Context, tx *sqldb.Tx) (string, error) {
	var unsealed legacy
	err := movements(ctx, tx, func(m movement, created int64, seal string) error {
		if seal == "" {
			unsealed.add(m.seal(tx, created))
		}
		return nil
	})
	return unsealed.String(), err
}

// Sum is what an account got otherwise than by runs.
type Sum struct {
	Granted int64 // tokens, by the operator
	TopUps  int64 // how many
}

// Sums gives them by account.
func Sums(ctx context.Context, tx *sqldb.Tx) (map[string]Sum, error) {
	all := map[string]Sum{}
	err := tx.Each(ctx, `
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

// legacy is a set of rows: how many, and the sum of their seals, which does not
// depend on their order.
type legacy struct {
	count int
	sum   [32]byte
}

func (l *legacy) add(seal string) {
	l.count++
	raw, _ := hex.DecodeString(seal) // as Tx.Seal writes it
	subtle.XORBytes(l.sum[:], l.sum[:], raw)
}

func (l *legacy) String() string {
	if l.count == 0 {
		return ""
	}
	return fmt.Sprintf("%d %x", l.count, l.sum)
}

// movements reads every transaction with its entries as it was booked. One with
// other than two sides has no seal that fits.
func movements(ctx context.Context, tx *sqldb.Tx, found func(m movement, created int64, seal string) error) error {
	return tx.Each(ctx, `
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
			m.account = "" // nobody's
		}
		return found(m, created, seal)
	})
}
