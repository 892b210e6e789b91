package device_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/device"
)

func TestStart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		c := w.start()
		if len(c.DeviceCode) != 49 || !strings.HasPrefix(c.DeviceCode, "atl_d_") || !ids.Alphanumeric(c.DeviceCode[6:]) {
			t.Errorf("device code = %q", c.DeviceCode)
		}
		if len(c.UserCode) != 9 || c.UserCode[4] != '-' || strings.Trim(c.UserCode, "BCDFGHJKLMNPQRSTVWXZ-") != "" {
			t.Errorf("user code = %q", c.UserCode)
		}
		if c.ExpiresIn != 600*time.Second || c.Interval != 5*time.Second {
			t.Errorf("codes = %+v", c)
		}
		for kind, want := range map[string]fault.Code{
			"": "", "a": "", "blender": "", "after_effects-2": "", strings.Repeat("a", 32): "",
			strings.Repeat("a", 33): fault.Invalid, "Blender": fault.Invalid, "a b": fault.Invalid, "a\n": fault.Invalid, "é": fault.Invalid, "a\x00": fault.Invalid,
			"<b>": fault.Invalid, "*": fault.Invalid,
		} {
			_, err := w.tryStart(device.Request{PluginKind: kind})
			w.want(fmt.Sprintf("kind %q", kind), err, want)
			if f, ok := errors.AsType[*fault.Error](err); ok && (len(f.Fields) != 1 || f.Fields[0].Path != "plugin_kind") {
				t.Errorf("kind %q: problem with %+v", kind, f.Fields)
			}
		}
	})
}

func TestPluginKindLength(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		o := w.options()
		o.PluginKindLength = 7
		w.Devices = device.New(o)
		_, err := w.tryStart(device.Request{PluginKind: "blender"})
		w.want("seven letters", err, "")
		_, err = w.tryStart(device.Request{PluginKind: "blender2"})
		w.want("eight letters", err, fault.Invalid)

		o.PluginKindLength = 64
		w.Devices = device.New(o)
		_, err = w.tryStart(device.Request{PluginKind: strings.Repeat("a", 33)})
		w.want("more than the API allows", err, fault.Invalid)
	})
}

func TestTextFromOutsideIsCleaned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who := w.person()
		for sent, want := range map[string]string{
			"":                                 "",
			"Blender/5.0 (Linux; de) Ω 日本":     "Blender/5.0 (Linux; de) Ω 日本",
			"<script>alert(1)</script>":        "<script>alert(1)</script>", // the page escapes it
			"a\r\nb\x00c\x1b[31m\u0085":        "a\ufffd\ufffdb\ufffdc\ufffd[31m\ufffd",
			"a\xff\xfeb":                       "a\ufffd\ufffdb",
			"a\u202eb\u2066\u200b\ue000":       "a\ufffdb\ufffd\ufffd\ufffd",
			strings.Repeat("a", 300):           strings.Repeat("a", 256),
			strings.Repeat("a", 255) + "é":     strings.Repeat("a", 255),
			strings.Repeat("é", 200):           strings.Repeat("é", 128),
			strings.Repeat("\xff", 1<<16):      strings.Repeat("\ufffd", 85),
			"a" + strings.Repeat("日本", 10_000): "a" + strings.Repeat("日本", 42) + "日",
		} {
			c, err := w.tryStart(device.Request{Agent: sent, Address: sent})
			if err != nil {
				t.Errorf("%.40q: %v", sent, err)
				continue
			}
			g, err := w.open(c.UserCode, who)
			if err != nil || g.Agent != want {
				t.Errorf("%.40q is kept as %q, %v, want %q", sent, g.Agent, err, want)
			}
			if len(g.Address) > 64 || !utf8.ValidString(g.Address) {
				t.Errorf("%.40q as an address is kept as %q", sent, g.Address)
			}
		}
	})
}

// Where too many wait the network with most of them loses its oldest, so that
// nobody is kept from starting.
func TestGrantsAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		o := w.options()
		o.MaxGrants = 20
		w.Devices = device.New(o)
		live := func() int {
			return w.count(`SELECT count(*) FROM device_grant WHERE state IN ('pending', 'approved') AND expires > $1`, w.now().UnixMicro())
		}
		who := w.person()
		mine, err := w.tryStart(device.Request{Network: "192.0.2.1"})
		w.want("mine", err, "")
		dbtest.Together(40, func(int) {
			if _, err := w.tryStart(device.Request{Network: "2001:db8::/64"}); err != nil {
				t.Errorf("a start of the others = %v", err)
			}
		})
		if n := live(); n != 20 {
			t.Errorf("%d wait, want 20", n)
		}
		for i := range 5 {
			if _, err := w.tryStart(device.Request{Network: fmt.Sprintf("192.0.2.%d", 10+i)}); err != nil {
				t.Errorf("somebody else = %v", err)
			}
		}
		if n := w.count(`SELECT count(*) FROM device_grant WHERE state = 'pending' AND network = '2001:db8::/64'`); n != 14 || live() != 20 {
			t.Errorf("%d of %d are theirs, want 14 of 20", n, live())
		}
		w.approve(mine.UserCode, who)
		if _, _, err := w.poll(mine.DeviceCode); err != nil {
			t.Errorf("mine = %v", err)
		}
	})
}

// What somebody approved goes last, and goes too: otherwise who approves their
// own could fill all places.
func TestNetworksHaveAShare(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		o := w.options()
		o.MaxPerNetwork = 3
		w.Devices = device.New(o)
		who := w.person()
		start := func(network string) device.Codes {
			t.Helper()
			w.pass(time.Second)
			c, err := w.tryStart(device.Request{Network: network})
			w.want("start", err, "")
			return c
		}
		approved := start("192.0.2.1")
		w.approve(approved.UserCode, who)
		other := start("192.0.2.2")
		pending := start("192.0.2.1")
		newer := start("192.0.2.1")
		start("192.0.2.1")

		_, _, err := w.poll(pending.DeviceCode)
		w.want("the oldest that waits", err, fault.DeviceCodeExpired)
		_, _, err = w.poll(newer.DeviceCode)
		w.want("a newer one", err, fault.AuthorizationPending)
		_, _, err = w.poll(other.DeviceCode)
		w.want("another network's", err, fault.AuthorizationPending)
		_, _, err = w.poll(approved.DeviceCode)
		w.want("what was approved", err, "")

		for range 4 {
			w.approve(start("192.0.2.3").UserCode, who)
		}
		if n := w.count(`SELECT count(*) FROM device_grant WHERE state = 'approved' AND network = '192.0.2.3'`); n != 3 {
			t.Errorf("%d approved ones wait, want 3", n)
		}
	})
}

// TestGrantsOfManyNetworks has all places taken by 250 networks, and everybody
// else gets in. ATELIER_TEST_GRANTS=50000 is the figure of the service.
func TestGrantsOfManyNetworks(t *testing.T) {
	t.Parallel()
	most, err := strconv.Atoi(cmp.Or(os.Getenv("ATELIER_TEST_GRANTS"), "2000"))
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, w *fixture) {
		o := w.options()
		o.MaxGrants = most
		w.Devices = device.New(o)
		w.exec(`
			INSERT INTO device_grant (id, device_hash, user_hash, state, plugin_kind, agent, address, provider, seen_by, locked, wrong, wait_ms, told_s, created, expires, network)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < `+strconv.Itoa(most)+`)
			SELECT 'g' || CAST(i AS TEXT), substr('`+strings.Repeat("0", 64)+`' || CAST(i AS TEXT), length(CAST(i AS TEXT)) + 1), substr('`+strings.Repeat("0", 64)+`' || CAST(i AS TEXT), length(CAST(i AS TEXT)) + 1),
				'pending', '', '', '', '', '', FALSE, 0, 5000, 5, $1, CAST($2 AS BIGINT) + i, '203.0.113.' || CAST(i % 250 AS TEXT) FROM n`,
			w.now().UnixMicro(), w.now().Add(5*time.Minute).UnixMicro())
		began := time.Now()
		for i := range 20 {
			if _, err := w.tryStart(device.Request{Network: fmt.Sprintf("192.0.2.%d", i)}); err != nil {
				t.Fatalf("start %d = %v", i, err)
			}
		}
		t.Logf("%v for a start where %d wait", time.Since(began)/20, most)
		if n := w.count(`SELECT count(*) FROM device_grant WHERE state = 'pending'`); n != most {
			t.Errorf("%d wait, want %d", n, most)
		}
		if n := w.count(`SELECT count(*) FROM device_grant WHERE state = 'pending' AND network LIKE '192.0.2.%'`); n != 20 {
			t.Errorf("%d of the newcomers wait, want 20", n)
		}
	})
}

func TestUserCodesAreReadKindly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		c, who := w.start(), w.person()
		bare := strings.ReplaceAll(c.UserCode, "-", "")
		for _, typed := range []string{c.UserCode, strings.ToLower(c.UserCode), bare, strings.ToLower(bare), " " + c.UserCode + "\n", bare[:2] + " " + bare[2:4] + "\u00a0- " + bare[4:], "-" + bare + "-"} {
			g, err := w.open(typed, who)
			if err != nil || g.PluginKind != "blender" || g.Agent != "Blender/5.0" || g.Address != "203.0.113.7" || !g.Created.Equal(start) || !g.Expires.Equal(start.Add(600*time.Second)) || g.Locked {
				t.Errorf("%q = %+v, %v", typed, g, err)
			}
		}
		other := []byte(bare)
		if other[0]++; !strings.ContainsRune("BCDFGHJKLMNPQRSTVWXZ", rune(other[0])) {
			other[0] = 'B'
			if bare[0] == 'B' {
				other[0] = 'C'
			}
		}
		for _, typed := range []string{"", "-", bare[1:], bare + "B", string(other), "A" + bare[1:], "0" + bare[1:], "ſ" + bare[1:], "ß" + bare[1:], bare[:7] + "\x00", bare + "\xff",
			bare[:4] + "–" + bare[4:], bare + strings.Repeat(" ", 100), strings.Repeat("B", 1<<20), "' OR 1=1"} {
			_, err := w.open(typed, who)
			w.want(fmt.Sprintf("open %.30q", typed), err, fault.NotFound)
			_, err = w.decide(typed, who, true)
			w.want(fmt.Sprintf("approve %.30q", typed), err, fault.NotFound)
		}
		o := w.options()
		o.Key = []byte("another key")
		w.Devices = device.New(o)
		_, err := w.open(c.UserCode, who)
		w.want("with another key", err, fault.NotFound)
	})
}

// TestFinishedGrantsLookAlike holds that the page has one answer for codes
// that nobody waits with. Only those who decided themselves see what they did.
func TestFinishedGrantsLookAlike(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who, other := w.person(), w.person()
		refused, approved, claimed := w.start(), w.start(), w.start()
		w.decide(refused.UserCode, who, false)
		w.approve(approved.UserCode, who)
		w.approve(claimed.UserCode, who)
		w.poll(claimed.DeviceCode)
		unknown := "BBBB-BBBB" // as good as certain
		texts := map[string]bool{}
		for name, code := range map[string]string{"refused": refused.UserCode, "approved": approved.UserCode, "claimed": claimed.UserCode, "unknown": unknown} {
			_, err := w.open(code, other)
			w.want(name, err, fault.NotFound)
			texts[fmt.Sprint(err)] = true
		}
		for code, want := range map[string]string{refused.UserCode: "refused", approved.UserCode: "approved", claimed.UserCode: "approved"} {
			_, err := w.open(code, who)
			w.want(want, err, fault.Forbidden)
			if f, _ := errors.AsType[*fault.Error](err); f == nil || f.Details["reason"] != want {
				t.Errorf("what the person is told = %v, want %s", err, want)
			}
		}
		ended := w.start()
		w.approve(ended.UserCode, other)
		err := w.write(func(tx *sqldb.Tx) error {
			_, err := w.RevokeAll(t.Context(), tx, other, "signed out everywhere")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.open(ended.UserCode, other)
		w.want("approved, then signed out everywhere", err, fault.NotFound)
		old := w.start()
		w.pass(600 * time.Second)
		_, err = w.open(old.UserCode, who)
		w.want("old", err, fault.NotFound)
		if texts[fmt.Sprint(err)] = true; len(texts) != 1 {
			t.Errorf("texts = %v, want one", texts)
		}
	})
}

func TestASecondPersonLocks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		c, anna, bert, cora := w.start(), w.person(), w.person(), w.person()
		for n, s := range []struct {
			who          string
			locked, just bool
		}{{anna, false, false}, {anna, false, false}, {bert, true, true}, {bert, true, false}, {anna, true, false}, {cora, true, false}} {
			g, err := w.open(c.UserCode, s.who)
			if err != nil || g.Locked != s.locked || g.JustLocked != s.just {
				t.Errorf("opening %d = locked %v, just %v, %v, want %v, %v", n+1, g.Locked, g.JustLocked, err, s.locked, s.just)
			}
		}
		for name, who := range map[string]string{"the first": anna, "the second": bert, "one who never opened it": cora} {
			_, err := w.decide(c.UserCode, who, true)
			if code(err) != fault.Forbidden || reason(err) != "locked" {
				t.Errorf("approved by %s = %v, want %s", name, err, fault.Forbidden)
			}
		}
		_, _, err := w.poll(c.DeviceCode)
		w.want("poll", err, fault.AuthorizationPending)
		if _, err := w.decide(c.UserCode, bert, false); err != nil {
			t.Errorf("refusing a locked one: %v", err)
		}
		// Who did not open it is a second person too.
		c = w.start()
		w.open(c.UserCode, anna)
		if _, err := w.decide(c.UserCode, bert, true); code(err) != fault.Forbidden || reason(err) != "locked" {
			t.Errorf("approved behind the first one's back = %v", err)
		}
		w.approve(c.UserCode, anna)
	})
}

func TestManyPersonsLockOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		c := w.start()
		people := make([]string, 16)
		for n := range people {
			people[n] = w.person()
		}
		var mu sync.Mutex
		just, free := 0, 0
		dbtest.Together(64, func(n int) {
			g, err := w.open(c.UserCode, people[n%len(people)])
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if g.JustLocked {
				just++
			}
			if !g.Locked {
				free++
			}
		})
		if just != 1 || free > 4 {
			t.Errorf("locked %d times, open for %d, want once and for one person at most", just, free)
		}
	})
}

// TestOneDecisionCounts has 32 people click at once, approving and refusing.
func TestOneDecisionCounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		people := make([]string, 32)
		for n := range people {
			people[n] = w.person()
		}
		for range 5 {
			c := w.start()
			var mu sync.Mutex
			var winners []int
			dbtest.Together(32, func(n int) {
				_, err := w.decide(c.UserCode, people[n], n%2 == 0)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					winners = append(winners, n)
				case code(err) == fault.Forbidden && reason(err) == "decided", code(err) == fault.NotFound:
				default:
					t.Errorf("a loser was told %v", err)
				}
			})
			if len(winners) != 1 {
				t.Fatalf("%d decisions counted, want 1", len(winners))
			}
			dev, _, err := w.poll(c.DeviceCode)
			if winners[0]%2 == 0 {
				if err != nil || dev.PersonID != people[winners[0]] {
					t.Errorf("approved by %d, claimed by %s, %v", winners[0], dev.PersonID, err)
				}
			} else {
				w.want("refused", err, fault.DeviceCodeExpired)
			}
		}
	})
}

func TestWrongConfirmationsKill(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		c, who := w.start(), w.person()
		spared := w.start()
		wrong := func(id string) (dead bool, err error) {
			err = w.write(func(tx *sqldb.Tx) (err error) { dead, err = w.CountWrongCode(t.Context(), tx, id); return err })
			return dead, err
		}
		g, err := w.open(c.UserCode, who)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 5; n++ {
			if dead, err := wrong(g.ID); err != nil || dead != (n == 5) {
				t.Errorf("confirmation %d = %v, %v", n, dead, err)
			}
		}
		_, err = wrong(g.ID)
		w.want("one more", err, fault.NotFound)
		_, err = w.decide(c.UserCode, who, true)
		w.want("approve", err, fault.NotFound)
		_, _, err = w.poll(c.DeviceCode)
		w.want("poll", err, fault.DeviceCodeExpired)
		if _, err := w.open(spared.UserCode, who); err != nil {
			t.Errorf("another grant: %v", err)
		}
		// At once: the fifth kills, whoever that is.
		c = w.start()
		g, err = w.open(c.UserCode, who)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		deaths, late := 0, 0
		dbtest.Together(16, func(int) {
			dead, err := wrong(g.ID)
			mu.Lock()
			defer mu.Unlock()
			if dead {
				deaths++
			}
			if code(err) == fault.NotFound {
				late++
			}
		})
		if deaths != 1 || late != 11 {
			t.Errorf("died %d times, %d came late, want 1 and 11", deaths, late)
		}
	})
}

func TestSweepKeepsTheLastDay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who := w.person()
		sweep := func() (n int64) {
			t.Helper()
			if err := w.write(func(tx *sqldb.Tx) (err error) { n, err = w.DeleteExpiredGrants(t.Context(), tx); return err }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		claimed := w.start()
		w.approve(claimed.UserCode, who)
		dev, _, err := w.poll(claimed.DeviceCode)
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		w.pass(24*time.Hour + 600*time.Second)
		young := w.start()
		if n := sweep(); n != 0 {
			t.Errorf("%d deleted within a day", n)
		}
		w.pass(time.Second)
		if n := sweep(); n != 2 {
			t.Errorf("%d deleted after a day, want 2", n)
		}
		if !w.alive(dev.ID) {
			t.Error("the device went with its grant")
		}
		_, _, err = w.poll(claimed.DeviceCode)
		w.want("a code that was forgotten", err, fault.DeviceCodeExpired)
		_, _, err = w.poll(young.DeviceCode)
		w.want("a young one", err, fault.AuthorizationPending)
	})
}

// TestSecretsAreNotStored looks for codes and tokens in all that is kept.
func TestSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who := w.person()
		var secrets []string
		for range 20 {
			c := w.start()
			w.open(c.UserCode, who)
			w.approve(c.UserCode, who)
			_, first, err := w.poll(c.DeviceCode)
			if err != nil {
				t.Fatal(err)
			}
			w.pass(25 * time.Hour)
			second, err := w.refresh(first)
			if err != nil || second.Token == first {
				t.Fatalf("not rotated: %v", err)
			}
			for _, s := range []string{c.DeviceCode, c.UserCode, strings.ReplaceAll(c.UserCode, "-", ""), first, second.Token} {
				secrets = append(secrets, s, s[len(s)/2:])
			}
		}
		kept := w.dump()
		for _, s := range secrets {
			if len(s) > 4 && strings.Contains(kept, s) {
				t.Errorf("%s is kept in clear", s)
			}
		}
	})
}
