package ledger_test

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/ledger"
)

const (
	most     = 1_000_000_000_000
	november = "2026-11"
)

func TestReserve(t *testing.T) {
	eachFixture(t, func(w fixture) {
		for i, c := range []struct {
			name             string
			tokens           int64 // of the account before
			price, allowance int64
			hold             ledger.Hold
			enough           bool
		}{
			{"nothing costs nothing", 0, 0, 0, ledger.Hold{}, true},
			{"and takes no allowance", 0, 0, 10, ledger.Hold{}, true},
			{"one too few", 4, 5, 0, ledger.Hold{Tokens: 5}, false},
			{"just enough", 5, 5, 0, ledger.Hold{Tokens: 5}, true},
			{"one to spare", 6, 5, 0, ledger.Hold{Tokens: 5}, true},
			{"nobody knows the account", 0, 1, 0, ledger.Hold{Tokens: 1}, false},
			{"all of it is free", 0, 5, 6, ledger.Hold{Allowance: 5, Month: november}, true},
			{"the last of the allowance", 0, 5, 5, ledger.Hold{Allowance: 5, Month: november}, true},
			{"one beyond the allowance", 1, 5, 4, ledger.Hold{Tokens: 1, Allowance: 4, Month: november}, true},
			{"one beyond the allowance and none there", 0, 5, 4, ledger.Hold{Tokens: 1, Allowance: 4, Month: november}, false},
			{"the allowance first", 5, 5, 4, ledger.Hold{Tokens: 1, Allowance: 4, Month: november}, true},
			{"an allowance below zero is none", 5, 5, -7, ledger.Hold{Tokens: 5}, true},
			{"an allowance far below zero is none", 5, 5, math.MinInt64, ledger.Hold{Tokens: 5}, true},
			{"an allowance without an end", 0, 5, math.MaxInt64, ledger.Hold{Allowance: 5, Month: november}, true},
			{"the highest price", most, most, 0, ledger.Hold{Tokens: most}, true},
			{"the highest price for free", 0, most, most, ledger.Hold{Allowance: most, Month: november}, true},
		} {
			account := fmt.Sprint("account", i)
			if c.tokens > 0 {
				w.give(account, c.tokens)
			}
			rows := number(w.T, w.DB, `SELECT count(*) FROM ledger_account`)
			if q, want := w.quote(account, c.price, c.allowance), (quoted{c.hold, c.enough, c.tokens}); q != want {
				w.Errorf("%s: quote = %+v, want %+v", c.name, q, want)
			}
			before := w.balance(account, c.allowance)
			r, err := w.begin(account, account, c.price, c.allowance)
			after := ledger.Balance{Tokens: before.Tokens - c.hold.Tokens, Held: c.hold.Tokens, FreeAllowanceLeft: before.FreeAllowanceLeft - c.hold.Allowance}
			if !c.enough {
				after = before
				f, ok := errors.AsType[*fault.Error](err)
				if !ok || f.Code != fault.InsufficientBalance || f.Details["required"] != c.hold.Tokens || f.Details["available"] != c.tokens {
					w.Errorf("%s: reserve = %#v, want %d required and %d available", c.name, err, c.hold.Tokens, c.tokens)
				}
			} else if err != nil || r.hold != c.hold {
				w.Errorf("%s: reserve = %+v, %v, want %+v", c.name, r.hold, err, c.hold)
			}
			if got := w.balance(account, c.allowance); got != after {
				w.Errorf("%s: balance = %+v, want %+v", c.name, got, after)
			}
			if n := number(w.T, w.DB, `SELECT count(*) FROM ledger_account`); n != rows && (!c.enough || c.price == 0) {
				w.Errorf("%s: an account came into being", c.name)
			}
		}
		if n := number(w.T, w.DB, `SELECT count(*) FROM ledger_transaction WHERE kind <> 'grant'`); n != 0 {
			w.Errorf("%d movements, want none: a hold is no movement", n)
		}
	})
}

func TestHoldsAddUp(t *testing.T) {
	eachFixture(t, func(w fixture) {
		w.give("anna", 10)
		for i, c := range []struct {
			price, allowance int64
			hold             ledger.Hold
			left             ledger.Balance
		}{
			{3, 5, ledger.Hold{Allowance: 3, Month: november}, ledger.Balance{Tokens: 10, FreeAllowanceLeft: 2}},
			{4, 5, ledger.Hold{Tokens: 2, Allowance: 2, Month: november}, ledger.Balance{Tokens: 8, Held: 2}},
			{1, 5, ledger.Hold{Tokens: 1}, ledger.Balance{Tokens: 7, Held: 3}},
			{2, 4, ledger.Hold{Tokens: 2}, ledger.Balance{Tokens: 5, Held: 5}}, // the operator lowered it below what was used
			{2, 6, ledger.Hold{Tokens: 1, Allowance: 1, Month: november}, ledger.Balance{Tokens: 4, Held: 6}},
			{4, 0, ledger.Hold{Tokens: 4}, ledger.Balance{Held: 10}},
		} {
			r := w.mustBegin(fmt.Sprint("run", i), "anna", c.price, c.allowance)
			if got := w.balance("anna", c.allowance); r.hold != c.hold || got != c.left {
				w.Errorf("%d of %d: %+v, then %+v, want %+v, then %+v", c.price, c.allowance, r.hold, got, c.hold, c.left)
			}
		}
		if _, err := w.begin("more", "anna", 1, 0); !fault.Is(err, fault.InsufficientBalance) {
			w.Errorf("reserve = %v, want %s", err, fault.InsufficientBalance)
		}
		if _, err := grant(w.Context(), w.DB, "anna", -1); !fault.Is(err, fault.InsufficientBalance) {
			w.Errorf("what is held was taken back: %v", err)
		}
	})
}

func TestAccidents(t *testing.T) {
	eachFixture(t, func(w fixture) {
		w.give("anna", 10)
		held := w.mustBegin("held", "anna", 4, 1)
		was := w.balance("anna", 1)
		accident := func(what string, err error) {
			w.Helper()
			if _, ok := errors.AsType[*fault.Error](err); err == nil || ok {
				w.Errorf("%s = %v, want an accident", what, err)
			}
		}
		for _, c := range []struct {
			account string
			price   int64
		}{
			{"anna", -1}, {"anna", math.MinInt64}, {"anna", most + 1}, {"anna", math.MaxInt64},
			{"", 1}, {"", 0}, {"system:revenue", 1}, {"system:revenue", 0}, {"system:other", 1},
		} {
			_, err := w.begin("no", c.account, c.price, math.MaxInt64)
			accident(fmt.Sprintf("reserve %d of %q", c.price, c.account), err)
			accident(fmt.Sprintf("quote %d of %q", c.price, c.account), w.DB.Read(w.Context(), func(tx *sqldb.Tx) error {
				_, _, _, err := ledger.Quote(w.Context(), tx, c.account, c.price, math.MaxInt64)
				return err
			}))
		}
		for _, c := range []struct {
			name        string
			account, id string
			hold        ledger.Hold
			charge      int64
		}{
			{name: "a charge below zero", account: "anna", id: "held", hold: held.hold, charge: -1},
			{name: "one more than is held", account: "anna", id: "held", hold: held.hold, charge: 5},
			{name: "far more than is held", account: "anna", id: "held", hold: held.hold, charge: math.MaxInt64},
			{name: "no run", account: "anna", id: "", hold: held.hold},
			{name: "tokens below zero", account: "anna", id: "held", hold: ledger.Hold{Tokens: -1}},
			{name: "an allowance below zero", account: "anna", id: "held", hold: ledger.Hold{Tokens: 3, Allowance: -1, Month: november}},
			{name: "an allowance without a month", account: "anna", id: "held", hold: ledger.Hold{Tokens: 3, Allowance: 1}},
			{name: "a month without an allowance", account: "anna", id: "held", hold: ledger.Hold{Tokens: 3, Month: november}},
			{name: "beyond the highest", account: "anna", id: "held", hold: ledger.Hold{Tokens: math.MaxInt64, Allowance: 1, Month: november}},
			{name: "one more than the account holds", account: "anna", id: "held", hold: ledger.Hold{Tokens: 4, Allowance: 1, Month: november}},
			{name: "one more than it has used", account: "anna", id: "held", hold: ledger.Hold{Tokens: 3, Allowance: 2, Month: november}},
			{name: "another's hold", account: "bert", id: "held", hold: ledger.Hold{Tokens: 3}},
			{name: "nobody's account", account: "", id: "held"},
			{name: "the system's account", account: "system:revenue", id: "held"},
		} {
			_, _, err := w.end(run{c.id, c.account, c.hold}, "succeeded", c.charge)
			accident(c.name, err)
		}
		if got := w.balance("anna", 1); got != was {
			w.Errorf("balance = %+v, want %+v", got, was)
		}
		w.mustEnd(held, "succeeded", 4)
	})
}

// TestReservingAtOnce has many begin runs on a balance for three.
func TestReservingAtOnce(t *testing.T) {
	eachFixture(t, func(w fixture) {
		const price = 7
		w.give("anna", 3*price+price-1)
		var begun atomic.Int64
		dbtest.Together(64, func(i int) {
			_, err := w.begin(fmt.Sprint("run", i), "anna", price, 0)
			switch {
			case err == nil:
				begun.Add(1)
			case !fault.Is(err, fault.InsufficientBalance):
				w.Errorf("reserve = %v", err)
			}
		})
		if b := w.balance("anna", 0); begun.Load() != 3 || b != (ledger.Balance{Tokens: price - 1, Held: 3 * price}) {
			w.Errorf("%d began and %+v is left, want 3", begun.Load(), b)
		}
	})
}

// TestTheLastFreeResult has many race for an allowance of one.
func TestTheLastFreeResult(t *testing.T) {
	eachFixture(t, func(w fixture) {
		w.give("rich", 64)
		for _, c := range []struct {
			account string
			begun   int64
		}{{"poor", 1}, {"rich", 64}} {
			var free, begun atomic.Int64
			dbtest.Together(64, func(i int) {
				r, err := w.begin(fmt.Sprint(c.account, i), c.account, 1, 1)
				switch {
				case err == nil:
					begun.Add(1)
					free.Add(r.hold.Allowance)
				case !fault.Is(err, fault.InsufficientBalance):
					w.Errorf("reserve = %v", err)
				}
			})
			if begun.Load() != c.begun || free.Load() != 1 {
				w.Errorf("%s: %d began and %d were free, want %d and 1", c.account, begun.Load(), free.Load(), c.begun)
			}
		}
	})
}
