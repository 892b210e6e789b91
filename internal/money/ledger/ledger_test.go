package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/ledger"
)

func grant(ctx context.Context, db *sqldb.DB, id string, tokens int64) (balance int64, err error) {
	err = db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		balance, err = ledger.Grant(ctx, tx, id, tokens, ledger.Granted, "")
		return err
	})
	return balance, err
}

func topUp(ctx context.Context, db *sqldb.DB, id string, tokens int64, window time.Duration) (balance int64, err error) {
	err = db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		balance, err = ledger.TopUp(ctx, tx, id, tokens, window)
		return err
	})
	return balance, err
}

func balances(t *testing.T, db *sqldb.DB, allowance int64, ids ...string) (all map[string]ledger.Balance) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
		all, err = ledger.Balances(t.Context(), tx, ids, allowance)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func exec(t *testing.T, db *sqldb.DB, statements ...string) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(t.Context(), s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, db *sqldb.DB, query string) (n int64) {
	t.Helper()
	if err := db.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func sound(t *testing.T, db *sqldb.DB) {
	t.Helper()
	if v, err := db.VerifyChecks(t.Context(), ledger.Checks); err != nil || len(v) != 0 {
		t.Errorf("checks = %v, %v", v, err)
	}
}

func TestGrant(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		const most = 1_000_000_000_000
		var moved int64
		for _, c := range []struct {
			name   string
			tokens int64
			want   int64 // then
			code   fault.Code
		}{
			{"nothing to take", -1, 0, fault.InsufficientBalance},
			{"first", 10, 10, ""},
			{"more", 5, 15, ""},
			{"taken back", -3, 12, ""},
			{"one too many leaves no trace", -13, 12, fault.InsufficientBalance},
			{"zero", 0, 12, fault.Invalid},
			{"all", -12, 0, ""},
			{"most", most, most, ""},
			{"beyond", most + 1, most, fault.Invalid},
			{"beyond the other way", -most - 1, most, fault.Invalid},
			{"far beyond", math.MinInt64, most, fault.Invalid},
			{"most the other way", -most, 0, ""},
		} {
			got, err := grant(t.Context(), db, "anna", c.tokens)
			if c.code == "" {
				moved++
				if err != nil || got != c.want {
					t.Errorf("%s: grant = %d, %v, want %d", c.name, got, err, c.want)
				}
			} else if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != c.code {
				t.Errorf("%s: grant = %v, want %s", c.name, err, c.code)
			}
			if b := balances(t, db, 0, "anna")["anna"]; b != (ledger.Balance{Tokens: c.want}) {
				t.Errorf("%s: balance = %+v, want %d", c.name, b, c.want)
			}
			if n := number(t, db, `SELECT count(*) FROM ledger_transaction`); n != moved {
				t.Errorf("%s: %d transactions, want %d", c.name, n, moved)
			}
			sound(t, db)
		}
	})
}

func TestRefusalsSayWhy(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		if _, err := grant(t.Context(), db, "anna", 3); err != nil {
			t.Fatal(err)
		}
		exec(t, db, `UPDATE ledger_account SET held = 1 WHERE id = 'anna'`)
		_, err := grant(t.Context(), db, "anna", -3) // what is held cannot be taken
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Details["required"] != int64(3) || f.Details["available"] != int64(2) {
			t.Errorf("grant = %#v, want 3 required and 2 available", err)
		}
		exec(t, db, `UPDATE ledger_account SET held = 0 WHERE id = 'anna'`)
		_, err = grant(t.Context(), db, "anna", 0)
		if f, ok := errors.AsType[*fault.Error](err); !ok || len(f.Fields) != 1 || f.Fields[0].Path != "tokens" {
			t.Errorf("grant = %#v, want a problem on tokens", err)
		}
		for _, id := range []string{"", "system:grants", "system:other"} {
			if _, err := grant(t.Context(), db, id, 1); err == nil {
				t.Errorf("%q was granted tokens", id)
			}
			if _, err := topUp(t.Context(), db, id, 1, time.Hour); err == nil {
				t.Errorf("%q was topped up", id)
			}
		}
		sound(t, db)
	})
}

func TestWhatIsWrittenDown(t *testing.T) {
	t.Parallel()
	const odd = "\uFFFD"
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			now := time.Date(2026, 11, 15, 9, 30, 0, 123456000, time.UTC)
			db := dbtest.OpenAt(t, dbtest.URL(t, engine), func() time.Time { return now })
			for _, c := range []struct{ note, want string }{
				{"", ""},
				{"for Zoë's début", "for Zoë's début"},
				{"a\r\nb\x00\x1b[31m\u2028\u202Ec\xff", "a" + odd + odd + "b" + odd + odd + "[31m" + odd + odd + "c" + odd},
				{strings.Repeat("ü", 250), strings.Repeat("ü", 250)},
				{strings.Repeat("ü", 251), strings.Repeat("ü", 250)},
			} {
				var kind, note string
				var at sqldb.Time
				undo := errors.New("undo")
				err := db.Write(ctx, func(tx *sqldb.Tx) error {
					if _, err := ledger.Grant(ctx, tx, "anna", 5, ledger.SignedUp, c.note); err != nil {
						return err
					}
					if err := tx.QueryRow(ctx, `SELECT kind, note, created FROM ledger_transaction`).Scan(&kind, &note, &at); err != nil {
						return err
					}
					return undo
				})
				if !errors.Is(err, undo) || kind != "signup" || note != c.want || !at.Equal(now) {
					t.Errorf("note %q = %q, %q, %v, %v, want %q", c.note, kind, note, at, err, c.want)
				}
			}
		})
	}
}

func TestTopUp(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			begin := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
			now := begin
			db := dbtest.OpenAt(t, dbtest.URL(t, engine), func() time.Time { return now })
			const day = 24 * time.Hour
			for _, c := range []struct {
				name   string
				at     time.Duration
				tokens int64
				rest   time.Duration // still to wait
			}{
				{"first", 0, 5, 0},
				{"again at once", 0, 5, day},
				{"a microsecond early", day - time.Microsecond, 5, time.Microsecond},
				{"after the window", day, 10, 0},
				{"the clock steps back", 0, 10, 2 * day},
				{"much later", 10 * day, 15, 0},
			} {
				now = begin.Add(c.at)
				var next time.Time
				var available bool
				err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
					next, available, err = ledger.TopUpAt(ctx, tx, "anna", day)
					return err
				})
				if err != nil || available != (c.rest == 0) || c.rest > 0 && !next.Equal(now.Add(c.rest)) {
					t.Errorf("%s: top up at %v, %v, %v, want it in %v", c.name, next, available, err, c.rest)
				}
				got, err := topUp(ctx, db, "anna", 5, day)
				f, refused := errors.AsType[*fault.Error](err)
				switch {
				case c.rest == 0 && (err != nil || got != c.tokens):
					t.Errorf("%s: top up = %d, %v, want %d", c.name, got, err, c.tokens)
				case c.rest > 0 && (!refused || f.Code != fault.Forbidden || f.Details["reason"] != "window" || f.RetryAfter != c.rest):
					t.Errorf("%s: top up = %#v, want a refusal for %v", c.name, err, c.rest)
				}
				if b := balances(t, db, 0, "anna")["anna"]; b.Tokens != c.tokens {
					t.Errorf("%s: balance = %+v, want %d", c.name, b, c.tokens)
				}
			}
			for _, tokens := range []int64{0, -5, 1_000_000_000_001} {
				if _, err := topUp(ctx, db, "bert", tokens, day); err == nil {
					t.Errorf("topped up by %d", tokens)
				}
			}
			if _, err := topUp(ctx, db, "bert", 5, 0); err == nil {
				t.Error("topped up without a window")
			}
			if n := number(t, db, `SELECT count(*) FROM ledger_transaction WHERE kind = 'top_up'`); n != 3 {
				t.Errorf("%d top-ups are written down, want 3", n)
			}
			sound(t, db)
		})
	}
}

func TestBalances(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 12, 1, 0, 30, 0, 0, time.FixedZone("east", 3600)) // still November in UTC
			db := dbtest.OpenAt(t, dbtest.URL(t, engine), func() time.Time { return now })
			for _, id := range []string{"plain", "held", "used", "used up", "last month", "not asked for"} {
				if _, err := grant(t.Context(), db, id, 10); err != nil {
					t.Fatal(err)
				}
			}
			exec(t, db, `UPDATE ledger_account SET held = 4 WHERE id = 'held'`,
				`UPDATE ledger_account SET allowance_month = '2026-11', allowance_used = 30 WHERE id = 'used'`,
				`UPDATE ledger_account SET allowance_month = '2026-11', allowance_used = 101 WHERE id = 'used up'`,
				`UPDATE ledger_account SET allowance_month = '2026-10', allowance_used = 30 WHERE id = 'last month'`)
			want := map[string]ledger.Balance{
				"plain":      {Tokens: 10, FreeAllowanceLeft: 100},
				"held":       {Tokens: 6, Held: 4, FreeAllowanceLeft: 100},
				"used":       {Tokens: 10, FreeAllowanceLeft: 70},
				"used up":    {Tokens: 10},
				"last month": {Tokens: 10, FreeAllowanceLeft: 100},
				"missing":    {FreeAllowanceLeft: 100},
			}
			got := balances(t, db, 100, "plain", "held", "used", "used up", "last month", "missing", "plain")
			if len(got) != len(want) {
				t.Errorf("%d balances, want %d", len(got), len(want))
			}
			for id, w := range want {
				if got[id] != w {
					t.Errorf("%s: %+v, want %+v", id, got[id], w)
				}
			}
			if got := balances(t, db, 100); got == nil || len(got) != 0 {
				t.Errorf("of nobody = %v, want an empty map", got)
			}
			for id, b := range balances(t, db, 0, "plain", "used", "missing") {
				if b.FreeAllowanceLeft != 0 {
					t.Errorf("%s: %+v, want no allowance where there is none", id, b)
				}
			}
		})
	}
}

func TestTakingBackAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		if _, err := grant(ctx, db, "anna", 3*7+6); err != nil {
			t.Fatal(err)
		}
		var taken, others atomic.Int64
		var group sync.WaitGroup
		for i := range 64 {
			group.Go(func() {
				_, err := grant(ctx, db, "anna", -7)
				f, refused := errors.AsType[*fault.Error](err)
				switch {
				case err == nil:
					taken.Add(1)
				case !refused || f.Code != fault.InsufficientBalance:
					t.Errorf("take back = %v", err)
				}
				if _, err := grant(ctx, db, fmt.Sprint("other", i%8), 1); err != nil { // new accounts at once
					t.Errorf("grant = %v", err)
				}
				others.Add(1)
			})
		}
		group.Wait()
		if b := balances(t, db, 0, "anna")["anna"]; taken.Load() != 3 || b.Tokens != 6 {
			t.Errorf("%d were taken and %+v is left, want 3 and 6", taken.Load(), b)
		}
		if got := number(t, db, `SELECT posted FROM ledger_account WHERE id = 'system:grants'`); got != -(6 + others.Load()) {
			t.Errorf("the system has %d, want %d", got, -(6 + others.Load()))
		}
		sound(t, db)
	})
}

func TestToppingUpAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		var claimed atomic.Int64
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				_, err := topUp(ctx, db, "anna", 5, time.Hour)
				f, refused := errors.AsType[*fault.Error](err)
				switch {
				case err == nil:
					claimed.Add(1)
				case !refused || f.Code != fault.Forbidden || f.RetryAfter <= 0:
					t.Errorf("top up = %v", err)
				}
			})
		}
		group.Wait()
		if b := balances(t, db, 0, "anna")["anna"]; claimed.Load() != 1 || b.Tokens != 5 {
			t.Errorf("%d claimed and have %+v, want 1 and 5", claimed.Load(), b)
		}
		sound(t, db)
	})
}

// TestRandomOperations compares the ledger with plain sums.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			ctx, r := t.Context(), rand.New(rand.NewPCG(seed, 0))
			now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
			db := dbtest.OpenAt(t, dbtest.URL(t, engine), func() time.Time { return now })
			ids := []string{"anna", "bert", "cleo"}
			tokens, topped := map[string]int64{}, map[string]time.Time{}
			const window = time.Minute
			refused := 0
			for step := range 300 {
				id := ids[r.IntN(len(ids))]
				now = now.Add(time.Duration(r.IntN(30)) * time.Second)
				var got int64
				var err error
				var ok bool
				if r.IntN(4) == 0 {
					last, before := topped[id]
					if ok = !before || now.Sub(last) >= window; ok {
						topped[id] = now
						tokens[id] += 7
					}
					got, err = topUp(ctx, db, id, 7, window)
				} else {
					n := r.Int64N(41) - 25 // more is taken than given, so that every seed runs into refusals
					if ok = n != 0 && tokens[id]+n >= 0; ok {
						tokens[id] += n
					}
					got, err = grant(ctx, db, id, n)
				}
				if (err == nil) != ok || ok && got != tokens[id] {
					t.Fatalf("step %d: %d, %v, want %d, ok %v", step, got, err, tokens[id], ok)
				}
				if !ok {
					refused++
				}
				if step%50 == 0 {
					sound(t, db)
				}
			}
			sum := int64(0)
			for id, b := range balances(t, db, 0, ids...) {
				if sum += b.Tokens; b.Tokens != tokens[id] {
					t.Errorf("%s has %+v, want %d", id, b, tokens[id])
				}
			}
			if system := number(t, db, `SELECT posted FROM ledger_account WHERE id = 'system:grants'`); system != -sum {
				t.Errorf("the system has %d, want %d", system, -sum)
			}
			if refused < 20 {
				t.Errorf("%d refusals: the operations try nothing", refused)
			}
			sound(t, db)
		})
	}
}
