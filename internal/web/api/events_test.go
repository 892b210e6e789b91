package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/board"
	"atelier/internal/people/principal"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/api"
	"atelier/internal/web/api/wire"
)

// account opens the stream of an account. query is "?team_id=…", "?board_id=…"
// or "".
func (s *service) account(query, after string) *stream {
	s.t.Helper()
	return s.listen("/api/v2/events"+query, after)
}

// otherNode is the same installation served by another process: it hears of
// changes only through the database.
func (m *runFixture) otherNode() *runFixture {
	m.t.Helper()
	other := m.with(func(p *api.Parts) {
		p.Hub = pubsub.New()
		p.Boards = &board.Boards{DB: m.db, Hub: pubsub.New(), Keep: time.Hour}
	}, nil)
	return &runFixture{service: other, made: m.made}
}

// until reads events until one has the name and satisfies ok.
func (s *stream) until(name string, ok func(event) bool) (e event, all []event) {
	s.t.Helper()
	for {
		e, more := s.next()
		if !more {
			s.t.Fatalf("the stream ended before a %s event; it sent %s", name, names(all))
		}
		all = append(all, e)
		if e.name == name && ok(e) {
			return e, all
		}
	}
}

// begin reads the beginning of a stream: the runs, then the balance.
func (s *stream) begin() (balance wire.Balance, all []event) {
	s.t.Helper()
	if s.res.StatusCode != 200 {
		s.t.Fatalf("the stream answers %d", s.res.StatusCode)
	}
	e, all := s.until("balance", anyEvent)
	if e.id == "" {
		s.t.Error("a client cannot resume after the first balance")
	}
	return decodeEvent[wire.Balance](s.t, e), all[:len(all)-1]
}

func anyEvent(event) bool { return true }

func decodeEvent[T any](t *testing.T, e event) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), &v); err != nil {
		t.Fatalf("%s %s: %v", e.name, e.data, err)
	}
	return v
}

// isRun matches the event of a run with a status.
func isRun(id, status string) func(event) bool {
	return func(e event) bool {
		return strings.Contains(e.data, `"request_id":"`+id+`"`) && strings.Contains(e.data, `"status":"`+status+`"`)
	}
}

// shows matches the presence of exactly these people.
func shows(uids ...string) func(event) bool {
	return func(e event) bool {
		var p wire.BoardPresence
		if json.Unmarshal([]byte(e.data), &p) != nil {
			return false
		}
		got := []string{}
		for _, one := range p.People {
			got = append(got, one.UID)
		}
		slices.Sort(uids)
		return slices.Equal(got, uids)
	}
}

func TestAccountEvents(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		here := m.account("", "")
		if h := here.res.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("headers = %v", h)
		}
		if balance, runs := here.begin(); balance.Tokens != 1000 || len(runs) != 0 {
			t.Errorf("it begins with %+v and %s", balance, names(runs))
		}
		elsewhere := m.otherNode().account("", "")
		elsewhere.begin()

		step, release := hold(t)
		id := m.run("", m.body("one", steps(`[{"progress":0.25},{"preview":true},`+step+`,{"output":{"kind":"png"}}]`)))
		for name, s := range map[string]*stream{"this node": here, "the other node": elsewhere} {
			s.until("run", isRun(id, "pending"))
			preview, _ := s.until("preview", anyEvent)
			if p := decodeEvent[wire.RunPreview](t, preview); p.RequestID != id || p.MimeType == "" || m.fetch("GET", p.URL).StatusCode != 200 {
				t.Errorf("a preview on %s = %+v", name, p)
			}
			late := m.account("", "")
			if _, runs := late.begin(); len(runs) == 0 || !isRun(id, "pending")(runs[0]) {
				t.Errorf("a stream opened during the run begins with %+v", runs)
			}
			late.stop()
		}
		release()
		for name, s := range map[string]*stream{"this node": here, "the other node": elsewhere} {
			e, _ := s.until("run", isRun(id, "succeeded"))
			if run := decodeEvent[wire.Generation](t, e); len(run.Outputs) != 1 || run.ToolName == nil || *run.ToolName != "one" || run.UID == "" {
				t.Errorf("the end on %s = %s", name, e.data)
			}
			s.until("balance", func(e event) bool { return decodeEvent[wire.Balance](t, e) == wire.Balance{Tokens: 997} })
		}
		want := getJSON[wire.GenerationList](m.service, "/api/v2/generations").Data[0]
		fresh := m.account("", "")
		_, runs := fresh.begin()
		if len(runs) != 1 || decodeEvent[wire.Generation](t, runs[0]).Status != want.Status {
			t.Errorf("a run that has just ended begins a stream as %+v", runs)
		}
	})
}

// TestEndsAreSeenOnOtherNodes measures how long the end of a run takes to reach
// a client of another node.
func TestEndsAreSeenOnOtherNodes(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		s := m.otherNode().account("", "")
		s.begin()
		best := time.Hour
		for range 5 {
			id := m.run("", m.body("one", steps(`[{"output":{"kind":"png"}}]`)))
			m.finish("", id)
			ended := time.Now()
			s.until("run", isRun(id, "succeeded"))
			best = min(best, time.Since(ended))
		}
		t.Logf("the quickest of five ends took %v", best)
		if best > time.Second {
			t.Errorf("the quickest of five ends took %v, want at most a second", best)
		}
	})
}

// TestAccountEventsResume cuts the stream after every number of events, in the
// middle of a batch too, while runs end and a board changes. The client that
// resumes must end with the state of the service.
func TestAccountEventsResume(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		b := m.newBoard("")
		other := m.otherNode()
		statuses := map[string]string{}
		texts := map[string]string{}
		last := ""
		for cut := range 12 {
			node := m
			if cut%2 == 1 {
				node = other
			}
			s := node.account("?board_id="+b.ID+"&board_revision=0", last)
			ids := []string{
				m.run("", m.body("one", steps(`[{"output":{"kind":"png"}}]`))),
				m.run("", m.body("one", steps(`[{"progress":0.5},{"output":{"kind":"png"}}]`))),
			}
			m.newNode(b.ID, fmt.Sprintf(`{"kind":"TEXT","text":"%d"}`, cut))
			for range cut {
				e, ok := s.next()
				if !ok {
					t.Fatal("the stream ended")
				}
				learn(t, e, statuses, texts, &last)
			}
			s.stop()
			for _, id := range ids { // they end while nobody listens
				m.finish("", id)
			}
		}

		s := other.account("?board_id="+b.ID+"&board_revision=0", last)
		_, all := s.until("board", anyEvent)
		for _, e := range all {
			learn(t, e, statuses, texts, &last)
		}
		want := map[string]string{}
		for _, one := range getJSON[wire.GenerationList](m.service, "/api/v2/generations?limit=100").Data {
			want[one.RequestID] = string(one.Status)
		}
		if !maps.Equal(statuses, want) {
			t.Errorf("the client knows %v, want %v", statuses, want)
		}
		_, there := m.whole(b.ID, 1000, func() {})
		if len(there) != 12 || len(texts) != 12 {
			t.Errorf("the client knows %d nodes, the board has %d, want 12", len(texts), len(there))
		}
		for _, n := range there {
			if texts[n.ID] != n.Text {
				t.Errorf("node %s = %q, want %q", n.ID, texts[n.ID], n.Text)
			}
		}
	})
}

// learn applies an event of an account to a client's copy.
func learn(t *testing.T, e event, statuses, texts map[string]string, last *string) {
	t.Helper()
	switch e.name {
	case "run":
		run := decodeEvent[wire.Generation](t, e)
		if was := statuses[run.RequestID]; was != "" && was != "pending" && string(run.Status) != was {
			t.Errorf("run %s goes back from %s to %s", run.RequestID, was, run.Status)
		}
		statuses[run.RequestID] = string(run.Status)
	case "nodes":
		for _, n := range decodeEvent[wire.BoardChange](t, e).Put {
			texts[n.ID] = n.Text
		}
	case "reset":
		t.Errorf("a reset: %s", e.data)
	}
	if e.id != "" {
		*last = e.id
	}
}

func TestAccountEventsOfBoards(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		me := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		first, second := m.newBoard(""), m.newBoard("")
		before := m.newNode(first.ID, `{"kind":"TEXT","text":"before"}`)
		if before.UID == nil || *before.UID != me {
			t.Errorf("a new node was changed by %v", before.UID)
		}
		s := m.account("?board_id="+first.ID+","+second.ID+"&board_revision=1", "")
		s.begin()
		e, _ := s.until("nodes", anyEvent)
		if c := decodeEvent[wire.BoardChange](t, e); c.BoardID != first.ID || c.Revision != 2 || len(c.Put) != 1 || c.Put[0].UID == nil || *c.Put[0].UID != me {
			t.Errorf("the first changes = %s", e.data)
		}
		for _, id := range []string{first.ID, second.ID} {
			isBoard := func(e event) bool { return strings.Contains(e.data, id) }
			s.until("board", isBoard)
			s.until("presence", func(e event) bool { return isBoard(e) && shows(me)(e) })
		}

		m.newNode(second.ID, `{"kind":"TEXT","text":"after"}`)
		e, _ = s.until("nodes", anyEvent)
		if c := decodeEvent[wire.BoardChange](t, e); c.BoardID != second.ID || c.Revision != 2 {
			t.Errorf("the next changes = %s", e.data)
		}
		m.sendRequest("DELETE", "/api/v2/boards/"+first.ID).checkStatus(t, "delete", 204, "")
		if e, _ := s.until("deleted", anyEvent); !strings.Contains(e.data, first.ID) {
			t.Errorf("deleted = %+v", e)
		}
		m.newNode(second.ID, `{"kind":"TEXT","text":"still followed"}`)
		last, _ := s.until("nodes", anyEvent)

		resumed := m.account("?board_id="+second.ID+"&board_revision=1", last.id)
		if _, all := resumed.until("board", anyEvent); strings.Contains(names(all), "nodes") {
			t.Errorf("nodes that the client has come again: %+v", all)
		}
		for _, bad := range []string{"x", first.ID + "," + first.ID, strings.Repeat(first.ID+",", 8) + first.ID, "," + first.ID} {
			m.sendRequest("GET", "/api/v2/events?board_id="+bad).checkStatus(t, "boards "+bad, 400, "INVALID_REQUEST")
		}
		m.sendRequest("GET", "/api/v2/events?board_id="+second.ID+"&board_revision=x").checkStatus(t, "a wrong revision", 400, "INVALID_REQUEST")
		m.sendRequest("GET", "/api/v2/events?board_id="+first.ID).checkStatus(t, "a deleted board", 404, "NOT_FOUND")
	})
}

func TestAccountEventsReset(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		b := m.newBoard("")
		future := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
		for _, after := range []string{"x", "-1", "1,2", future, "1," + b.ID, strings.Repeat("1,", 20)} {
			s := m.account("", after)
			if _, all := s.begin(); names(all) != "reset" || !strings.Contains(all[0].data, `"board_id":null`) {
				t.Errorf("after %s the stream begins with %+v", after, all)
			}
			s.stop()
		}
		for query, after := range map[string]string{"&board_revision=99": "", "": fmt.Sprintf("%d,%s:99", time.Now().UnixMicro(), b.ID)} {
			s := m.account("?board_id="+b.ID+query, after)
			if e, _ := s.until("reset", anyEvent); !strings.Contains(e.data, b.ID) {
				t.Errorf("reset = %s", e.data)
			}
			s.until("board", anyEvent)
			s.stop()
		}
	})
}

// TestAccountEventsAreApart has three accounts with runs at the same time, each
// followed by streams that must show no other run.
func TestAccountEventsAreApart(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		bert := m.as(m.addPerson("bert@example.com"))
		m.grant("bert@example.com", "", 1000)
		team, tokens := m.team("Look", "anna@example.com")
		ours := m.as(tokens[0])
		query := "?team_id=" + team
		theirs := bert.newBoard("")
		m.sendRequest("GET", "/api/v2/events?board_id="+theirs.ID).checkStatus(t, "a board of another person", 404, "NOT_FOUND")
		ours.sendRequest("GET", "/api/v2/events"+query+"&board_id="+theirs.ID).checkStatus(t, "a board of another account", 404, "NOT_FOUND")
		bert.sendRequest("GET", "/api/v2/events"+query).checkStatus(t, "a team of others", 400, "ACCOUNT_SELECTION_INVALID")

		type follower struct {
			*stream
			own   string
			start func() string
		}
		marked := func(tag string) string {
			text := steps(`[{"output":{"kind":"png"}}]`)
			return m.body("one", text[:len(text)-1]+`,"prompt":"`+tag+`"}`)
		}
		all := []follower{
			{m.account("", ""), "of-anna", func() string { return m.run("", marked("of-anna")) }},
			{bert.account("", ""), "of-bert", func() string { return bert.run("", marked("of-bert")) }},
			{ours.account(query, ""), "of-team", func() string { return ours.run(query, marked("of-team")) }},
		}
		for _, f := range all {
			f.begin()
		}
		for range 5 {
			for _, f := range all {
				f.start()
			}
		}
		for _, f := range all {
			final := f.start()
			_, seen := f.until("run", isRun(final, "succeeded"))
			for _, e := range seen {
				if e.name == "run" && !strings.Contains(e.data, `"prompt":"`+f.own+`"`) {
					t.Errorf("a stream of runs %s has %s", f.own, e.data)
				}
			}
			if len(seen) < 5 {
				t.Errorf("the stream %s has only %d events", f.own, len(seen))
			}
		}
	})
}

func TestAccountStreamsEndWithAccess(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		me := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		session, cookie := m.startSession(me)
		browser := m.as(m.webToken(cookie).IDToken)
		b := m.newBoard("")
		team, tokens := m.team("Look", "anna@example.com")
		alone, member := browser.account("?board_id="+b.ID, ""), m.as(tokens[0]).account("?team_id="+team, "")
		watcher := m.otherNode().account("?board_id="+b.ID, "")
		alone.begin()
		member.begin()
		watcher.until("presence", shows(me))

		m.sendRequest("GET", "/api/v2/me").checkStatus(t, "me", 200, "")
		device := m.as(m.site.Device(me, "blender").Tokens.ID)
		device.sendRequest("DELETE", "/api/v2/sessions/"+session).checkStatus(t, "sign the browser out", 204, "")
		if err := m.site.Companies.Teams.RemoveTeam(t.Context(), principal.Operator(), team); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for _, s := range []*stream{alone, member} {
			for _, e := range s.rest() {
				if e.name == "run" || e.name == "nodes" {
					t.Errorf("after the end of access came %+v", e)
				}
			}
		}
		t.Logf("the streams lasted %s", time.Since(begin))
		browser.sendRequest("GET", "/api/v2/events").checkStatus(t, "without the session", 401, "UNAUTHENTICATED")
	})
}

func TestPresenceOnTwoNodes(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.site.Person("bert@example.com")
		team, tokens := m.team("Look", "anna@example.com", "bert@example.com")
		query := "?team_id=" + team
		anna, bert := m.as(tokens[0]), m.otherNode().as(tokens[1])
		uid := func(s *runFixture) string { return getJSON[wire.Identity](s.service, "/api/v2/me").User.UID }
		annaID, bertID := uid(anna), uid(bert)
		b := anna.newBoard(query)
		node := decodeAnswer[wire.Node](t, anna.write("POST", "/"+b.ID+"/nodes"+query, `{"kind":"TEXT"}`).checkStatus(t, "a node", 201, ""))
		follow := query + "&board_id=" + b.ID

		first := anna.account(follow, "")
		first.until("presence", shows(annaID))
		second := bert.account(follow, "")
		second.until("presence", shows(annaID, bertID))
		first.until("presence", shows(annaID, bertID))

		path := "/" + b.ID + "/presence" + query
		bert.write("PUT", path, fmt.Sprintf(`{"cursor":{"x":12.5,"y":-3},"selected":[%q]}`, node.ID)).checkStatus(t, "a cursor", 204, "")
		e, _ := first.until("presence", func(e event) bool { return strings.Contains(e.data, "12.5") })
		people := decodeEvent[wire.BoardPresence](t, e).People
		at := slices.IndexFunc(people, func(p wire.BoardViewer) bool { return p.UID == bertID })
		if p := people[at]; p.Name != "bert" || p.Cursor == nil || p.Cursor.Y != -3 || !slices.Equal(p.Selected, []string{node.ID}) {
			t.Errorf("bert is shown as %+v", p)
		}
		bert.write("PUT", path, `{}`).checkStatus(t, "no cursor", 204, "")
		first.until("presence", func(e event) bool { return shows(annaID, bertID)(e) && !strings.Contains(e.data, "12.5") })

		third := bert.account(follow, "") // another tab
		third.until("presence", shows(annaID, bertID))
		second.stop()
		bert.write("PUT", path, `{"cursor":{"x":77,"y":0}}`).checkStatus(t, "a cursor of the other tab", 204, "")
		first.until("presence", func(e event) bool { return shows(annaID, bertID)(e) && strings.Contains(e.data, "77") })
		third.stop()
		begin := time.Now()
		first.until("presence", shows(annaID))
		t.Logf("leaving took %v", time.Since(begin))

		for body, code := range map[string]int{
			`{"cursor":{"x":1e10,"y":0}}`: 400, `{"cursor":{"x":1}}`: 400, `{"selected":["x"]}`: 400, `[]`: 400,
			`{"selected":[` + strings.TrimSuffix(strings.Repeat(`"`+node.ID+`",`, 101), ",") + `]}`: 400,
		} {
			if a := anna.write("PUT", path, body); a.StatusCode != code {
				t.Errorf("%.60s = %d %s", body, a.StatusCode, a.body)
			}
		}
		m.as(m.addPerson("cara@example.com")).write("PUT", "/"+b.ID+"/presence", `{}`).checkStatus(t, "somebody else", 404, "NOT_FOUND")
	})
}

// TestSlowReadersAreDropped has a client that follows a large board and reads
// nothing.
func TestSlowReadersAreDropped(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		b := m.newBoard("")
		drafts := strings.TrimSuffix(strings.Repeat(`{"kind":"TEXT","text":"`+strings.Repeat("\U0001f41f", 10_000)+`"},`, 20), ",")
		for range 12 {
			m.write("PATCH", "/"+b.ID+"/nodes", `{"create":[`+drafts+`]}`).checkStatus(t, "20 nodes", 200, "")
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(m.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /api/v2/events?board_id=%s&board_revision=0 HTTP/1.1\r\nHost: atelier.example\r\nAuthorization: Bearer %s\r\n\r\n", b.ID, m.token)
		if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("the stream answers %q, %v", line, err)
		}

		count := func() (n int64) {
			if err := m.db.QueryRow(t.Context(), `SELECT count(*) FROM board_presence`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := count(); n != 1 {
			t.Fatalf("%d viewers while the stream is open, want 1", n)
		}
		watch.Until(t, "the end of the stream", func() bool { return count() == 0 })
	})
}

func TestAccountStreamsAreLimited(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		var all []*stream
		for range 32 {
			s := m.account("", "")
			s.begin()
			all = append(all, s)
		}
		m.sendRequest("GET", "/api/v2/events").checkStatus(t, "one stream too many", 429, "RATE_LIMITED")
		m.sendRequest("HEAD", "/api/v2/events")
		m.as(m.addPerson("bert@example.com")).account("", "").begin()
		all[0].stop()
		watch.Until(t, "a free stream", func() bool {
			s := m.account("", "")
			defer s.stop()
			return s.res.StatusCode == http.StatusOK
		})
	})
}

// TestIdleStreamsAreCheap compares the statements of a node with few and with
// many idle streams.
func TestIdleStreamsAreCheap(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			var shared, others atomic.Int64
			db, err := sqldb.Open(t.Context(), dbtest.URL(t, engine), sqldb.Options{MaxConns: 8, Now: time.Now, Trace: func(query string, _ []any) {
				if strings.Contains(query, "IN (") && (strings.Contains(query, "FROM run WHERE") || strings.Contains(query, "FROM ledger_account")) {
					shared.Add(1)
				} else {
					others.Add(1)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			s := startService(t, db, limits)
			opened := 0
			open := func(people int) {
				for range people {
					opened++
					one := s.by(s.addPerson(fmt.Sprintf("viewer%d@example.com", opened)))
					for range 10 {
						one.account("", "").begin()
					}
				}
			}
			measure := func() (perSecond float64) {
				const window = 4 * time.Second
				before, rest := shared.Load(), others.Load()
				<-time.After(window)
				perSecond = float64(shared.Load()-before) / window.Seconds()
				t.Logf("%d streams: %.1f statements a second read for all streams, %.1f others in transactions, %d goroutines",
					opened*10, perSecond, float64(others.Load()-rest)/window.Seconds(), runtime.NumGoroutine())
				return perSecond
			}

			open(1)
			few := measure()
			open(19)
			many := measure()
			if few == 0 || many > 2*few {
				t.Errorf("10 streams need %.1f statements a second, 200 streams %.1f", few, many)
			}
		})
	}
}
