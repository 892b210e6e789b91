package device

import (
	"slices"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

var testOptions = Options{Key: []byte("a key for tests"), ExpiresIn: 10 * time.Minute, Interval: 5 * time.Second, MaxInterval: time.Minute, MaxGrants: 1000, MaxPerNetwork: 1000, Now: time.Now}

// TestMoves walks every pair of states.
func TestMoves(t *testing.T) {
	t.Parallel()
	states := []State{Pending, Approved, Claimed, Gone}
	allowed := map[[2]State]bool{
		{Pending, Approved}: true, {Pending, Gone}: true, {Approved, Claimed}: true, {Approved, Gone}: true,
	}
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx, d := t.Context(), New(testOptions)
		for _, is := range states {
			for _, from := range states {
				for _, to := range states {
					var now string
					var n int64
					err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
						if _, err := tx.Exec(ctx, `DELETE FROM device_grant`); err != nil {
							return err
						}
						if _, err := d.StartGrant(ctx, tx, Request{}); err != nil {
							return err
						}
						if _, err := tx.Exec(ctx, `UPDATE device_grant SET state = $1`, string(is)); err != nil {
							return err
						}
						n, err = moveState(ctx, tx, from, to, ``, `TRUE`)
						if allowed[[2]State{from, to}] != (err == nil) {
							t.Errorf("move from %s to %s = %v", from, to, err)
						}
						return tx.QueryRow(ctx, `SELECT state FROM device_grant`).Scan(&now)
					})
					if err != nil {
						t.Fatal(err)
					}
					want, moved := is, int64(0)
					if is == from && allowed[[2]State{from, to}] {
						want, moved = to, 1
					}
					if State(now) != want || n != moved {
						t.Errorf("from %s to %s of one that is %s: %d moved, now %s", from, to, is, n, now)
					}
				}
			}
		}
	})
}

// TestATakenUserCodeIsDrawnAgain has codes collide with grants that wait, that
// were approved, and whose time is over.
func TestATakenUserCodeIsDrawnAgain(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			ctx, now := t.Context(), time.Unix(1_800_000_000, 0)
			db := dbtest.OpenAt(t, dbtest.URL(t, engine), func() time.Time { return now })
			d := New(testOptions)
			var codes []string
			d.userCode = func() string { c := codes[0]; codes = codes[1:]; return c }
			start := func(draw ...string) (shown string) {
				t.Helper()
				codes = draw
				err := db.Write(ctx, func(tx *sqldb.Tx) error {
					c, err := d.StartGrant(ctx, tx, Request{})
					shown = c.UserCode
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return shown
			}
			if got := start("BBBBBBBB"); got != "BBBB-BBBB" {
				t.Errorf("first = %s", got)
			}
			if got := start("BBBBBBBB", "BBBBBBBB", "CCCCCCCC"); got != "CCCC-CCCC" {
				t.Errorf("taken by one that waits = %s", got)
			}
			now = now.Add(time.Hour)
			if got := start("BBBBBBBB", "DDDDDDDD"); got != "DDDD-DDDD" {
				t.Errorf("taken by one whose time is over = %s", got)
			}
			err := db.Write(ctx, func(tx *sqldb.Tx) error {
				id := ids.New()
				if _, err := tx.Exec(ctx, `INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, '', 0)`, id); err != nil {
					return err
				}
				_, err := d.DecideGrant(ctx, tx, Decision{UserCode: "dddd dddd", PersonID: id})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := start("DDDDDDDD"); got != "DDDD-DDDD" {
				t.Errorf("of one that was refused = %s", got)
			}
		})
	}
}

// TestIntervalsOnlyGrow has two hasty polls read the same row and a third one
// come between: the last to write must not take back what the third did.
func TestIntervalsOnlyGrow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx, d := t.Context(), New(testOptions)
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			c, err := d.StartGrant(ctx, tx, Request{})
			if err != nil {
				return err
			}
			read, err := d.waitingGrant(ctx, tx, c.UserCode)
			if err != nil {
				return err
			}
			if err := slowDown(ctx, tx, read, 20*time.Second, 15*time.Second); err != nil {
				return err
			}
			if err := slowDown(ctx, tx, read, 10*time.Second, 10*time.Second); err != nil {
				return err
			}
			if g, err := d.waitingGrant(ctx, tx, c.UserCode); err != nil || g.told != 20*time.Second || g.wait != 15*time.Second {
				t.Errorf("told %v, held to %v, %v", g.told, g.wait, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestCodesAreRandom draws many codes: none twice, and no character, at any
// place, more often than chance has it.
func TestCodesAreRandom(t *testing.T) {
	t.Parallel()
	const n = 10_000
	for name, c := range map[string]struct {
		draw     func() string
		alphabet int
		// limit of chi-square at one in a million for alphabet - 1 degrees of
		// freedom.
		limit float64
	}{
		"user codes":   {newUserCode, 20, 63},
		"device codes": {func() string { return newSecret(devicePrefix)[len(devicePrefix):] }, 62, 127},
	} {
		seen := map[string]bool{}
		var at []map[byte]int
		all := map[byte]int{}
		for range n {
			code := c.draw()
			if seen[code] {
				t.Fatalf("%s: %s came twice", name, code)
			}
			seen[code] = true
			for i := range len(code) {
				if i == len(at) {
					at = append(at, map[byte]int{})
				}
				at[i][code[i]]++
				all[code[i]]++
			}
		}
		for i, counts := range append(slices.Clip(at), all) {
			total := n
			if i == len(at) {
				total = n * len(at)
			}
			want := float64(total) / float64(c.alphabet)
			chi := want * float64(c.alphabet-len(counts)) // characters that never came
			for _, got := range counts {
				chi += (float64(got) - want) * (float64(got) - want) / want
			}
			if chi > c.limit {
				t.Errorf("%s: chi-square at place %d is %.1f, want below %.0f", name, i, chi, c.limit)
			}
		}
	}
}

// TestSuccessorsFollowFromTheirToken holds what the grace needs, and that the
// key matters.
func TestSuccessorsFollowFromTheirToken(t *testing.T) {
	t.Parallel()
	d, token := New(testOptions), newSecret(refreshPrefix)
	other := testOptions
	other.Key = []byte("another key")
	next := d.successorToken(token, 2)
	if next != d.successorToken(token, 2) || !wellFormed(refreshPrefix, next) {
		t.Errorf("successor = %s, then %s", next, d.successorToken(token, 2))
	}
	for name, s := range map[string]string{
		"of another generation": d.successorToken(token, 3), "of another token": d.successorToken(newSecret(refreshPrefix), 2), "with another key": New(other).successorToken(token, 2),
	} {
		if s == next {
			t.Errorf("the successor %s is the same", name)
		}
	}
	for range 1000 {
		if s := d.successorToken(ids.Text(49), 2); !wellFormed(refreshPrefix, s) {
			t.Fatalf("successor = %s", s)
		}
	}
}
