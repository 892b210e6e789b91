package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
)

// TestKilledWhileMigrating kills the program at every step of the first
// migration, and at any moment of the first start: the next start serves.
func TestKilledWhileMigrating(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		env := s.env
		s.env = append(env, "ATELIER_CRASH=migrate.mid:1") // after the first step that is left
		kills := 0
		for ; ; kills++ {
			_, err := s.try("migrate")
			if err == nil {
				break
			}
			if !killed(err) || kills > 100 {
				t.Fatalf("after %d kills: %v", kills, err)
			}
		}
		if kills < 2 {
			t.Fatalf("the program was killed %d times, want once for every step", kills)
		}
		s.env = env
		n := s.serve()
		n.token = s.token("anna@example.com")
		if len(n.tools("", nil)) == 0 {
			t.Error("no tools")
		}
		n.stop()
		s.check()
	})
}

func TestKilledWhileStarting(t *testing.T) {
	needOneProcess(t, "it measures the start of one process")
	each(t, func(t *testing.T, s *site) {
		for range 15 {
			n, lines := s.start()
			go n.wait(lines)
			select {
			case <-time.After(time.Duration(rand.Int64N(int64(250 * time.Millisecond)))):
			case <-n.exited:
				t.Fatalf("the server ended by itself: %v", n.err)
			}
			n.kill()
		}
		start := time.Now()
		n := s.serve()
		watch.Took(t, "the start", time.Since(start), 5*time.Second)
		n.token = s.token("anna@example.com")
		if len(n.tools("", nil)) < 8 {
			t.Errorf("tools = %v", n.tools("", nil))
		}
		n.stop()
		s.check()
	})
}

// TestKilledWhileReloading kills the server in the middle of applying a changed
// catalog. Afterwards the catalog is the old or the new one, whole, and every
// id is as it was.
func TestKilledWhileReloading(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		const tools = 30
		dir := t.TempDir()
		offer := func(round int) {
			for i := range tools {
				write(t, dir, fmt.Sprintf("t%d.yaml", i), manifest(fmt.Sprintf("Tool %d of %d", i, round)))
			}
		}
		env := append(s.env, "ATELIER_CATALOG_BUILTIN=false")
		s.env = env
		offer(0)
		n := s.serve("--tools", dir)
		token := s.token("anna@example.com")
		n.token = token
		ids := map[string]bool{}
		for _, id := range n.tools("", nil) {
			ids[id] = true
		}
		if len(ids) != tools {
			t.Fatalf("%d tools, want %d", len(ids), tools)
		}
		n.stop()

		for round := 1; round <= 3; round++ {
			// Dies in the transaction, after the tags, the tools or the kits.
			offer(round)
			s.env = append(env, fmt.Sprintf("ATELIER_CRASH=catalog.mid:%d", round))
			n, lines := s.start("--tools", dir)
			go n.wait(lines)
			<-n.exited
			if !killed(n.err) {
				t.Fatalf("round %d: %v, want a kill", round, n.err)
			}
			s.env = append(env, "ATELIER_CATALOG_REFRESH=1h")
			s.verify(s.serve(), token, ids, fmt.Sprint("of ", round-1)) // without the directory nothing is applied
			s.env = env
			s.verify(s.serve("--tools", dir), token, ids, fmt.Sprint("of ", round))
		}
		for round := 4; round <= 8; round++ {
			n := s.serve("--tools", dir)
			offer(round)
			time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
			n.kill()
			s.verify(s.serve("--tools", dir), token, ids, fmt.Sprint("of ", round))
		}
		s.check()
	})
}

// verify expects the tools with these ids, all of one round, and stops the
// server.
func (s *site) verify(n *node, token string, ids map[string]bool, round string) {
	s.t.Helper()
	n.token = token
	got := map[string]bool{}
	for name, id := range n.tools("", nil) {
		got[id] = true
		if len(name) < len(round) || name[len(name)-len(round):] != round {
			s.t.Errorf("%s is not of round %s", name, round)
		}
	}
	if !maps.Equal(got, ids) {
		s.t.Errorf("%d tools with other ids than before", len(got))
	}
	n.stop()
}
