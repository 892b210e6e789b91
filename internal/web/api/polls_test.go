package api_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/wire"
)

// TestSixSideBySide has a client start six runs at once, ask for each right after
// its create and give it up at the first error: it gets six results, again and
// again. ATELIER_TEST_SIDE_BY_SIDE is how many rounds, each of somebody new.
func TestSixSideBySide(t *testing.T) {
	t.Parallel()
	rounds := 1
	if text := os.Getenv("ATELIER_TEST_SIDE_BY_SIDE"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, func(s *generation.Settings) { s.PollMax = time.Second })
		m.work()
		for round := range rounds {
			email := fmt.Sprintf("client%d@example.com", round)
			client := m.as(m.addPerson(email))
			m.grant(email, "", 100)

			const runs = 6
			var asked, ended sync.WaitGroup
			asked.Add(runs)
			goOn := filepath.Join(t.TempDir(), "go on") // no run ends before all were asked for
			body := m.body("one", steps(fmt.Sprintf(`[{"hold":%q},{"output":{"kind":"png"}}]`, goOn)))
			for range runs {
				ended.Go(func() { client.pollImpatiently(body, asked.Done) })
			}
			asked.Wait()
			if err := os.WriteFile(goOn, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			ended.Wait()
			if t.Failed() {
				t.Fatalf("round %d of %d lost a run", round+1, rounds)
			}
		}
	})
}

// pollImpatiently starts a run and asks for it at once, which it tells of, then
// as it is told to, until it has succeeded. An error ends it, as it does in a
// client that never tries again.
func (m *runFixture) pollImpatiently(body string, asked func()) {
	m.t.Helper()
	tell := sync.OnceFunc(asked)
	defer tell()
	a := m.create(body)
	if a.StatusCode != http.StatusAccepted {
		m.t.Errorf("create = %d %s", a.StatusCode, a.body)
		return
	}
	path := "/api/v2/generate/" + decodeAnswer[wire.GenerationCreated](m.t, a).RequestID
	for i := range 60 {
		a := m.sendRequest("GET", path)
		tell()
		if a.StatusCode != http.StatusOK {
			m.t.Errorf("poll %d = %d %s", i+1, a.StatusCode, a.body)
			return
		}
		g := decodeAnswer[wire.Generation](m.t, a)
		if g.Status == "succeeded" && len(g.Outputs) == 1 {
			return
		}
		if g.Status != "pending" {
			m.t.Errorf("run = %s", a.body)
			return
		}
		time.Sleep(time.Duration(g.RetryAfterSeconds) * time.Second)
	}
	m.t.Error("the run does not end")
}

// TestPollsLeaveRoomForUploads has five runs created and asked for at once while
// the body of a sixth create still arrives.
func TestPollsLeaveRoomForUploads(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, keepSettings)
		kind, body := form(payload(m.body("one", `,"inputs":{"picture":{"kind":"MULTIPART","file_index":0}}`)), file(picture(64, 64)))
		whole := body.Bytes()
		arriving, rest := io.Pipe()
		before := m.arrived.Load()
		sixth := make(chan answer, 1)
		go func() { sixth <- m.send("POST", "/api/v2/generate", kind, arriving) }()
		if _, err := rest.Write(whole[:len(whole)-10]); err != nil {
			t.Fatal(err)
		}
		for m.arrived.Load() < before+int64(len(whole)-10) { // or the test's own limit
			time.Sleep(5 * time.Millisecond)
		}

		for range 5 {
			m.sendRequest("GET", "/api/v2/generate/"+m.run("", m.body("one", ""))).checkStatus(t, "poll", 200, "")
		}
		if _, err := rest.Write(whole[len(whole)-10:]); err != nil {
			t.Fatal(err)
		}
		rest.Close()
		a := (<-sixth).checkStatus(t, "the sixth", 202, "")
		if got := a.Header.Get("RateLimit"); !strings.HasPrefix(got, `"minute";r=0;`) {
			t.Errorf("RateLimit is %q, want nothing left: four of the polls count", got)
		}
	})
}
