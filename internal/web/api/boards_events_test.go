package api_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/people/principal"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/api/wire"
)

// watch opens the stream of a board.
func (s *service) watch(boardID, query, after string) *stream {
	s.t.Helper()
	return s.listen("/api/v2/boards/"+boardID+"/events"+query, after)
}

// must gives the next event, which must have this name and id.
func (s *stream) must(name string, id int64) event {
	s.t.Helper()
	e, ok := s.next()
	if !ok || e.name != name || e.id != fmt.Sprint(id) {
		s.t.Fatalf("there comes %+v, want %s with the id %d", e, name, id)
	}
	return e
}

func TestBoardEvents(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		b := m.newBoard("")
		first := m.newNode(b.ID, `{"kind":"TEXT","text":"before"}`)
		s := m.watch(b.ID, "", "")
		if h := s.res.Header; s.res.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
			t.Fatalf("stream = %d %v", s.res.StatusCode, h)
		}
		if e := s.must("board", 2); !strings.Contains(e.data, `"name":"Board"`) || !strings.Contains(e.data, `"node_count":1`) {
			t.Errorf("it begins with %s", e.data)
		}
		up := m.upload("", picture(3, 3))
		node := m.newNode(b.ID, `{"kind":"UPLOAD_REF","ref":"`+up.ID+`"}`)
		change := decodeAnswer[wire.BoardChange](t, answer{body: []byte(s.must("nodes", 3).data)})
		if len(change.Put) != 1 || len(change.Deleted) != 0 || change.Put[0].ID != node.ID || change.Put[0].Item == nil || m.fetch("GET", change.Put[0].Item.URL).StatusCode != 200 {
			t.Errorf("a new node = %+v", change)
		}
		m.write("PATCH", "/"+b.ID, `{"name":"Winter"}`).checkStatus(t, "rename", 200, "")
		if e := s.must("board", 4); !strings.Contains(e.data, `"name":"Winter"`) {
			t.Errorf("renamed = %s", e.data)
		}
		m.sendRequest("DELETE", "/api/v2/boards/"+b.ID+"/nodes/"+first.ID).checkStatus(t, "take off", 204, "")
		if e := s.must("nodes", 5); !strings.Contains(e.data, `"put":[],"deleted":["`+first.ID+`"]`) && !strings.Contains(e.data, `"deleted":["`+first.ID+`"],"put":[]`) {
			t.Errorf("taken off = %s", e.data)
		}
		// Another node's hub is told, and not ours.
		elsewhere := &board.Boards{DB: m.db, Hub: pubsub.New()}
		me := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		if _, err := elsewhere.AddNode(t.Context(), principal.Principal{PersonID: me, AccountID: me}, b.ID, board.Match{}, board.Draft{Kind: board.Text, Text: "elsewhere"}); err != nil {
			t.Fatal(err)
		}
		if e := s.must("nodes", 6); !strings.Contains(e.data, "elsewhere") {
			t.Errorf("from elsewhere = %s", e.data)
		}
		m.sendRequest("DELETE", "/api/v2/boards/"+b.ID).checkStatus(t, "delete", 204, "")
		if e := s.must("deleted", 7); !strings.Contains(e.data, `"deleted":"20`) {
			t.Errorf("deleted = %s", e.data)
		}
		if e, ok := s.next(); ok {
			t.Errorf("after the end comes %+v", e)
		}
		m.sendRequest("POST", "/api/v2/boards/"+b.ID+"/restore").checkStatus(t, "restore", 200, "")
		if e := m.watch(b.ID, "", "7").must("board", 8); !strings.Contains(e.data, `"deleted":null`) {
			t.Errorf("restored = %s", e.data)
		}
	})
}

func TestBoardEventsResume(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		b := m.newBoard("")
		one, two := m.newNode(b.ID, `{"kind":"TEXT","text":"one"}`), m.newNode(b.ID, `{"kind":"TEXT","text":"two"}`)
		m.sendRequest("DELETE", "/api/v2/boards/"+b.ID+"/nodes/"+one.ID)
		m.write("PATCH", "/"+b.ID, `{"name":"Winter"}`)
		ids := func(e event) (put, gone string) {
			c := decodeAnswer[wire.BoardChange](t, answer{body: []byte(e.data)})
			for _, n := range c.Put {
				put += n.ID
			}
			return put, strings.Join(c.Deleted, "")
		}
		for after, want := range map[string][2]string{"0": {two.ID, one.ID}, "1": {two.ID, one.ID}, "2": {two.ID, one.ID}, "3": {"", one.ID}} {
			s := m.watch(b.ID, "", after)
			if put, gone := ids(s.must("nodes", 5)); put != want[0] || gone != want[1] {
				t.Errorf("after %s come %s and %s", after, put, gone)
			}
			s.must("board", 5)
			s.stop()
		}
		for _, after := range []string{"4", "5", "", "x", "-1", "99999999999999999999", "2 3", `"2"`} {
			s := m.watch(b.ID, "", after)
			s.must("board", 5)
			s.stop()
		}
		for _, after := range []string{"6", "9223372036854775807"} { // where the board never was
			s := m.watch(b.ID, "", after)
			s.must("reset", 5)
			s.stop()
		}
		// What is no longer known.
		err := m.db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE board_node SET deleted = 1 WHERE deleted IS NOT NULL`)
			return err
		})
		if err == nil {
			err = m.parts.Boards.SweepDeleted(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		for after, want := range map[string]string{"0": "reset", "3": "reset", "4": "board", "": "board"} {
			s := m.watch(b.ID, "", after)
			s.must(want, 5)
			s.stop()
		}
		s := m.watch(b.ID, "", "3")
		s.must("reset", 5)
		m.write("PATCH", "/"+b.ID+"/nodes/"+two.ID, `{"x":1}`).checkStatus(t, "move", 200, "")
		if put, _ := ids(s.must("nodes", 6)); put != two.ID {
			t.Errorf("after the reset comes %s", put)
		}
	})
}

// TestManyNodesComeInSeveralEvents goes away after each of them.
func TestManyNodesComeInSeveralEvents(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		b := m.newBoard("")
		drafts := strings.TrimSuffix(strings.Repeat(`{"kind":"TEXT"},`, 900), ",")
		for range 3 {
			m.write("PATCH", "/"+b.ID+"/nodes", `{"create":[`+drafts+`]}`).checkStatus(t, "900 nodes", 200, "")
		}
		mine, after := newCopy(nil), "0"
		for range 10 {
			s := m.watch(b.ID, "", after)
			e, _ := s.next()
			if mine.apply(t, e); e.name == "board" {
				t.Fatal("nothing but the board came")
			}
			s.stop()
			if after = e.id; after == "4" {
				break
			}
		}
		if _, nodes := m.whole(b.ID, 1000, func() {}); len(mine.nodes) != 2700 || !maps.Equal(newCopy(nodes).nodes, mine.nodes) {
			t.Errorf("the copy has %d nodes after %d events", len(mine.nodes), mine.events)
		}
		if mine.events < 3 {
			t.Errorf("there came %d events", mine.events)
		}
	})
}

// TestLongTextsComeInSmallPages has nodes that are too long for one answer.
func TestLongTextsComeInSmallPages(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		b := m.newBoard("")
		const count, most = 120, 2 << 20 // bytes of an answer
		drafts := strings.TrimSuffix(strings.Repeat(`{"kind":"TEXT","text":"`+strings.Repeat("\U0001f41f", 10_000)+`"},`, 20), ",")
		for range count / 20 {
			m.write("PATCH", "/"+b.ID+"/nodes", `{"create":[`+drafts+`]}`).checkStatus(t, "20 nodes", 200, "")
		}
		for _, a := range []answer{m.sendRequest("GET", "/api/v2/boards/"+b.ID), m.write("PATCH", "/"+b.ID, `{"name":"x"}`), m.sendRequest("POST", "/api/v2/boards/"+b.ID+"/restore")} {
			if page := decodeAnswer[wire.Board](t, a); len(a.body) > most || !page.HasMore || len(page.Nodes) == 0 {
				t.Errorf("a page has %d bytes and %d nodes, and there are more: %v", len(a.body), len(page.Nodes), page.HasMore)
			}
		}
		_, nodes := m.whole(b.ID, 1000, func() {})
		want := newCopy(nodes)
		if len(nodes) != count || len(want.nodes) != count {
			t.Errorf("the pages have %d nodes", len(nodes))
		}
		s, mine := m.watch(b.ID, "", "0"), newCopy(nil)
		for {
			e, ok := s.next()
			if !ok {
				t.Fatal("the stream ended")
			}
			if len(e.data) > most {
				t.Errorf("an event has %d bytes", len(e.data))
			}
			if mine.apply(t, e); e.name == "board" {
				break
			}
		}
		if !maps.Equal(mine.nodes, want.nodes) {
			t.Errorf("the copy has %d nodes", len(mine.nodes))
		}
		var all []string
		for _, n := range nodes {
			all = append(all, `{"id":"`+n.ID+`","x":1}`)
		}
		for _, x := range []struct{ count, status int }{{100, 200}, {count, 400}} {
			if a := m.write("PATCH", "/"+b.ID+"/nodes", `{"update":[`+strings.Join(all[:x.count], ",")+`]}`); a.StatusCode != x.status {
				t.Errorf("moving %d nodes = %d with %d bytes", x.count, a.StatusCode, len(a.body))
			}
		}
	})
}

func TestBoardStreamsEndWithAccess(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		_, token := m.site.Token("anna@example.com", "")
		mine := m.newBoard("")
		team, tokens := m.team("Look", "anna@example.com")
		ours := m.as(tokens[0]).newBoard("?team_id=" + team)
		alone, member := m.as(token).watch(mine.ID, "", ""), m.as(tokens[0]).watch(ours.ID, "?team_id="+team, "")
		alone.must("board", 1)
		member.must("board", 1)
		begin := time.Now()
		if _, err := m.site.Accounts.AccessTokens.DeleteTokenValue(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if err := m.site.Companies.Teams.RemoveTeam(t.Context(), principal.Operator(), team); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*stream{alone, member} {
			if e, ok := s.next(); ok {
				t.Errorf("after the end of access came %+v", e)
			}
		}
		watch.Took(t, "the streams", time.Since(begin), 9*time.Second)
		m.as(token).sendRequest("GET", "/api/v2/boards/"+mine.ID+"/events").checkStatus(t, "without the token", 401, "UNAUTHENTICATED")
	})
}

// arranger is somebody who arranges a board and has it from its events alone.
type arranger struct {
	*runFixture
	board, query string

	mu    sync.Mutex
	moved *sync.Cond
	copy  *boardCopy
	quit  bool
	done  chan struct{}
}

func (m *runFixture) arrange(boardID, query string) *arranger {
	m.t.Helper()
	a := &arranger{runFixture: m, board: boardID, query: query, copy: newCopy(nil), done: make(chan struct{})}
	a.moved = sync.NewCond(&a.mu)
	go a.listenOn(m.watch(boardID, query, "0"))
	a.at(1)
	return a
}

// listenOn takes events in. Now and then the line is cut, and the next stream
// goes on from the last event that came whole.
func (a *arranger) listenOn(s *stream) {
	defer close(a.done)
	for n := 1; ; n++ {
		e, ok := s.next()
		a.mu.Lock()
		if ok {
			a.copy.apply(a.t, e)
			a.moved.Broadcast()
		}
		quit, last := a.quit, fmt.Sprint(a.copy.revision)
		a.mu.Unlock()
		if quit {
			s.stop()
			return
		}
		if !ok || n%50 == 0 {
			s.stop()
			s = a.watch(a.board, a.query, last)
		}
	}
}

// leave ends the streams. One that says nothing is ended by a last change.
func (a *arranger) leave() {
	a.mu.Lock()
	a.quit = true
	a.mu.Unlock()
	a.write("PATCH", "/"+a.board+a.query, `{"name":"The end"}`)
	<-a.done
}

// at waits until the copy is at a revision or later, and gives it.
func (a *arranger) at(revision int64) (nodes map[string]shown, now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.copy.revision < revision {
		a.moved.Wait()
	}
	return maps.Clone(a.copy.nodes), a.copy.revision
}

// change makes a change of the board as the copy has it, again and again until
// nobody was quicker.
func (a *arranger) change(path string, body func(nodes map[string]shown) string) (conflicts int) {
	nodes, revision := a.at(0)
	for {
		got := a.write("PATCH", "/"+a.board+path+a.query, body(nodes), "If-Match", fmt.Sprintf(`"%d"`, revision))
		switch got.StatusCode {
		case 200:
			return conflicts
		case 412:
			conflicts++
			nodes, revision = a.at(int64(got.readError(a.t).Details["revision"].(float64)))
		default:
			a.t.Errorf("change = %d %s", got.StatusCode, got.body)
			return conflicts
		}
	}
}

// TestTwoArrangeOneBoard has two people move 200 nodes at once: no move gets
// lost, and both end with the same board.
func TestTwoArrangeOneBoard(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.site.Person("bert@example.com")
		team, tokens := m.team("Look", "anna@example.com", "bert@example.com")
		query := "?team_id=" + team
		anna, bert := m.as(tokens[0]), m.as(tokens[1])
		b := anna.newBoard(query)
		const count = 200
		drafts := strings.TrimSuffix(strings.Repeat(`{"kind":"TEXT","text":"0"},`, count), ",")
		var ids []string
		for _, n := range decodeAnswer[wire.NodeChangesResult](t, anna.write("PATCH", "/"+b.ID+"/nodes"+query, `{"create":[`+drafts+`]}`).checkStatus(t, "the nodes", 200, "")).Created {
			ids = append(ids, n.ID)
		}
		two := []*arranger{anna.arrange(b.ID, query), bert.arrange(b.ID, query)}
		for _, a := range two {
			defer a.leave()
		}
		both := func(do func(i int, a *arranger)) {
			var group sync.WaitGroup
			for i, a := range two {
				group.Go(func() { do(i, a) })
			}
			group.Wait()
		}
		next := func(text string) string {
			var n int
			fmt.Sscan(text, &n)
			return fmt.Sprint(n + 1)
		}

		conflicts := [2]int{}
		both(func(i int, a *arranger) { // one by one, each with what it knows
			for _, id := range ids {
				conflicts[i] += a.change("/nodes/"+id, func(nodes map[string]shown) string {
					return fmt.Sprintf(`{"x":%v,"text":%q}`, nodes[id].x+1, next(nodes[id].text))
				})
			}
		})
		const rounds = 5
		both(func(i int, a *arranger) { // all at once
			for range rounds {
				conflicts[i] += a.change("/nodes", func(nodes map[string]shown) string {
					var all []string
					for _, id := range ids {
						all = append(all, fmt.Sprintf(`{"id":%q,"x":%v,"text":%q}`, id, nodes[id].x+1, next(nodes[id].text)))
					}
					return `{"update":[` + strings.Join(all, ",") + `]}`
				})
			}
		})
		if conflicts[0]+conflicts[1] == 0 {
			t.Error("nobody was ever too late: they did not work at once")
		}
		both(func(i int, a *arranger) { // and without a look: different sides of the same nodes, and some of their own
			for j, id := range ids {
				body := []string{fmt.Sprintf(`{"y":%d}`, j+1), fmt.Sprintf(`{"width":%d,"z":%d}`, j+1, j)}[i]
				a.write("PATCH", "/"+b.ID+"/nodes/"+id+query, body).checkStatus(t, "move", 200, "")
				if j%20 == i {
					n := decodeAnswer[wire.Node](t, a.write("POST", "/"+b.ID+"/nodes"+query, `{"kind":"TEXT","text":"own"}`).checkStatus(t, "add", 201, ""))
					if j%40 == i {
						a.send("DELETE", "/api/v2/boards/"+b.ID+"/nodes/"+n.ID+query, "", nil).checkStatus(t, "take off", 204, "")
					}
				}
			}
		})

		final := getJSON[wire.Board](anna.service, "/api/v2/boards/"+b.ID+query)
		want := newCopy(final.Nodes).nodes
		if want := int64(2 + 2*count + 2*rounds + 2*count + 20 + 10); final.Revision != want || len(final.Nodes) != count+10 {
			t.Errorf("the board is at %d with %d nodes, want %d with %d", final.Revision, len(final.Nodes), want, count+10)
		}
		for i, n := range final.Nodes[:count] {
			if n.X != 2+2*rounds || n.Text != fmt.Sprint(2+2*rounds) || n.Y != float64(i+1) || n.Width != float64(i+1) {
				t.Fatalf("a move of node %d got lost: %+v", i, n)
			}
		}
		for _, a := range two {
			watch.Until(t, "the end of the board's changes", func() bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				return a.copy.revision == final.Revision
			})
			if got, _ := a.at(0); !maps.Equal(got, want) {
				t.Errorf("a copy differs from the board: %d nodes, want %d", len(got), len(want))
			}
		}
	})
}
