package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
	"atelier/internal/web/api/wire"
)

// stream is an open stream of events.
type stream struct {
	t    *testing.T
	res  *http.Response
	from *bufio.Reader
	stop context.CancelFunc
}

type event struct{ id, name, data string }

// follow opens a run's stream. after is Last-Event-ID, "" for none.
func (s *service) follow(id, query, after string) *stream {
	s.t.Helper()
	return s.listen("/api/v2/generate/"+id+"/events"+query, after)
}

// listen opens a stream.
func (s *service) listen(path, after string) *stream {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), 3*time.Minute)
	s.t.Cleanup(stop)
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	return &stream{s.t, res, bufio.NewReader(res.Body), stop}
}

// next gives the next event; ok is false at the end.
func (s *stream) next() (e event, ok bool) {
	s.t.Helper()
	for {
		line, err := s.from.ReadString('\n')
		if err != nil {
			return e, false
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data += value
		case "retry":
		case "":
			if e != (event{}) && value == "" {
				return e, true
			}
		default:
			s.t.Fatalf("there is a line %q", line)
		}
	}
}

// rest gives all events until the stream ends.
func (s *stream) rest() (all []event) {
	s.t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			return all
		}
		all = append(all, e)
	}
}

// names gives the names of events, each once in a row.
func names(all []event) string {
	var list []string
	for _, e := range all {
		list = append(list, e.name)
	}
	return strings.Join(slices.Compact(list), " ")
}

// hold gives a step that waits until release is called.
func hold(t *testing.T) (step string, release func()) {
	path := filepath.Join(t.TempDir(), "go")
	return fmt.Sprintf(`{"hold":%q}`, path), func() {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
}

func TestEventsTellTheWholeStory(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		first, release := hold(t)
		id := m.run("", m.body("one", steps(`[{"progress":0.25},`+first+`,{"progress":0.5},{"preview":true},{"wait":"700ms"},{"output":{"kind":"png"}}]`)))
		s := m.follow(id, "", "")
		if h := s.res.Header; s.res.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
			t.Fatalf("stream = %d %v", s.res.StatusCode, h)
		}
		e, _ := s.next()
		if e.name != "status" || e.id == "" || !strings.Contains(e.data, `"stage":"queued"`) {
			t.Fatalf("the first event is %+v", e)
		}
		m.work()
		var all []event
		for len(all) == 0 || all[len(all)-1].name != "progress" {
			if e, ok := s.next(); ok {
				all = append(all, e)
			}
		}
		release()
		all = append(all, s.rest()...)
		if got := names(all); !strings.HasPrefix(got, "status progress") || !strings.Contains(got, "preview") || !strings.HasSuffix(got, "status done") {
			t.Errorf("the events are %s", got)
		}
		last := 0
		for _, e := range all {
			var n int
			if fmt.Sscan(e.id, &n); e.id != "" && n <= last {
				t.Errorf("the id %s comes after %d", e.id, last)
			} else if e.id != "" {
				last = n
			}
			if e.name == "preview" {
				var p wire.GenerationPreview
				if err := json.Unmarshal([]byte(e.data), &p); err != nil || p.MimeType != "image/png" || !strings.Contains(p.URL, "/media/p/"+id+"/preview/run-preview.png?") {
					t.Errorf("preview = %s", e.data)
				}
			}
		}
		done := all[len(all)-1]
		rec := getJSON[json.RawMessage](m.service, "/api/v2/generate/"+id)
		var told, asked wire.Generation
		if json.Unmarshal([]byte(done.data), &told) != nil || json.Unmarshal(rec, &asked) != nil || told.Status != "succeeded" || len(told.Outputs) != 1 || told.Outputs[0].ID != asked.Outputs[0].ID {
			t.Errorf("done says %s, the run %s", done.data, rec)
		}

		if s := m.follow(id, "", done.id); s.res.StatusCode != http.StatusNoContent {
			t.Errorf("with the last id = %d, want 204", s.res.StatusCode)
		}
		for _, after := range []string{"", "0", "x", "-1", "999999", "99999999999999999999", fmt.Sprint(last - 1)} {
			if got := names(m.follow(id, "", after).rest()); !strings.HasSuffix(got, "done") {
				t.Errorf("after %q the events are %s", after, got)
			}
		}
	})
}

// TestNobodyListensToAHead asks for nothing but the header, again and again on
// one connection.
func TestNobodyListensToAHead(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		for _, path := range []string{"/api/v2/boards/" + m.newBoard("").ID, "/api/v2/generate/" + m.run("", m.body("one", ""))} {
			for range 40 {
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
				defer stop()
				r, err := http.NewRequestWithContext(ctx, "HEAD", m.url+path+"/events", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+m.token)
				res, err := m.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if res.Body.Close(); res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
					t.Fatalf("HEAD %s = %d %v", path, res.StatusCode, res.Header)
				}
			}
		}
	})
}

// TestEventsResume goes away after every event and comes back: nothing that
// was seen whole comes again, and nothing is lost.
func TestEventsResume(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		first, release := hold(t)
		id := m.run("", m.body("one", steps(`[{"progress":0.25},`+first+`,{"progress":0.75},{"wait":"600ms"},{"output":{"kind":"png"}}]`)))
		last, seen, progress := "", map[string]bool{}, ""
		for range 50 {
			s := m.follow(id, "", last)
			if s.res.StatusCode == http.StatusNoContent {
				break
			}
			for {
				e, ok := s.next()
				if !ok {
					break
				}
				if e.name == "progress" {
					progress = e.data
					release()
				}
				if e.id != "" {
					if seen[e.id] {
						t.Errorf("the event %s comes twice", e.id)
					}
					seen[e.id], last = true, e.id
					s.stop()
				}
			}
		}
		if len(seen) < 3 || !strings.Contains(progress, "0.75") && !strings.Contains(progress, "0.25") {
			t.Errorf("%d events were seen whole, the last progress is %s", len(seen), progress)
		}
		if s := m.follow(id, "", last); s.res.StatusCode != http.StatusNoContent {
			t.Errorf("the last id %s is not the end", last)
		}
	})
}

// TestForgedEventID has an id that the run never sent: the stream ends all the
// same.
func TestForgedEventID(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		id := m.run("", m.body("one", ""))
		s := m.follow(id, "", "1000000")
		if e, ok := s.next(); !ok || e.name != "status" {
			t.Errorf("the first event is %+v", e)
		}
		m.work()
		if all := s.rest(); len(all) == 0 || all[len(all)-1].name != "done" {
			t.Errorf("the events are %v", all)
		}
	})
}

func TestStreamsEndWithTheirToken(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		_, token := m.site.Token("anna@example.com", "")
		id := m.run("", m.body("one", ""))
		s := m.as(token).follow(id, "", "")
		s.next()
		begin := time.Now()
		if _, err := m.site.Accounts.AccessTokens.DeleteTokenValue(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if e, ok := s.next(); ok {
			t.Errorf("after the token's end came %+v", e)
		}
		watch.Took(t, "the stream", time.Since(begin), 9*time.Second)
		m.as(token).sendRequest("GET", "/api/v2/generate/"+id+"/events").checkStatus(t, "without the token", 401, "UNAUTHENTICATED")
	})
}

func TestStreamsAreCountedAndLeaveNothing(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		id := m.run("", m.body("one", ""))
		m.unchanged("streams are no polls", func() {
			all := m.fillStreams(id)
			a := m.sendRequest("GET", "/api/v2/generate/"+id+"/events").checkStatus(t, "one more", 429, "RATE_LIMITED")
			if a.Header.Get("Retry-After") == "" {
				t.Error("without Retry-After")
			}
			for range 2 { // a place is free again when its handler has returned
				for _, s := range all {
					s.stop()
				}
				all = m.fillStreams(id)
			}
		})
	})
}

// fillStreams opens as many streams as one person may have.
func (m *runFixture) fillStreams(id string) (all []*stream) {
	m.t.Helper()
	for range 500 {
		s := m.follow(id, "", "")
		if s.res.StatusCode == http.StatusOK {
			s.next()
			if all = append(all, s); len(all) == 32 {
				return all
			}
			continue
		}
		<-time.After(20 * time.Millisecond) // the server hears of the end a little later
	}
	m.t.Fatalf("only %d places are free", len(all))
	return nil
}

func TestStreamsOfOthers(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		id := m.run("", m.body("one", ""))
		bert := m.as(m.addPerson("bert@example.com"))
		for _, one := range []string{id, "01a1de95-0504-7cf9-98e5-dc2c78966646", "x", strings.ToUpper(id)} {
			bert.sendRequest("GET", "/api/v2/generate/"+one+"/events").checkStatus(t, one, 404, "NOT_FOUND")
		}
	})
}

// TestEventsWhileARunWaitsAtItsServer follows a run through the queue of its
// model server: each position is a status of a queued run, and the work after
// it one of a running run.
func TestEventsWhileARunWaitsAtItsServer(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		first, goOn := hold(t)
		second, begin := hold(t)
		id := m.run("", m.body("one", steps(`[{"progress":0},{"queued":5},`+first+`,{"queued":2},`+second+`,{"progress":0.5},{"wait":"700ms"},{"output":{"kind":"png"}}]`)))
		m.work()
		s := m.follow(id, "", "")
		seen := func(what string, is func(wire.Generation) bool) wire.Generation {
			t.Helper()
			for {
				e, ok := s.next()
				if !ok {
					t.Fatalf("the stream ended before %s", what)
				}
				var rec wire.Generation
				if e.name == "status" && json.Unmarshal([]byte(e.data), &rec) == nil && is(rec) {
					return rec
				}
				if e.name == "done" {
					t.Fatalf("the run ended before %s", what)
				}
			}
		}
		at := func(position int64) func(wire.Generation) bool {
			return func(rec wire.Generation) bool { return rec.QueuePosition != nil && *rec.QueuePosition == position }
		}
		isQueued := func(what string, rec wire.Generation) {
			t.Helper()
			if rec.Stage == nil || *rec.Stage != "queued" || rec.Progress != nil || rec.Started != nil || rec.Status != "pending" {
				t.Errorf("%s: %+v, want a queued run", what, rec)
			}
		}
		isQueued("position 5", seen("position 5", at(5)))
		isQueued("the status record", getJSON[wire.Generation](m.service, "/api/v2/generate/"+id))
		for _, one := range getJSON[wire.GenerationList](m.service, "/api/v2/generations").Data {
			isQueued("the list", one)
		}
		goOn()
		isQueued("position 2", seen("position 2", at(2)))
		begin()
		rec := seen("the work", func(rec wire.Generation) bool { return rec.Stage != nil && *rec.Stage == "running" })
		if rec.QueuePosition != nil || rec.Started == nil {
			t.Errorf("at work: %+v", rec)
		}
		if got := names(s.rest()); !strings.HasSuffix(got, "done") {
			t.Errorf("the last events are %s", got)
		}
	})
}

// TestEventsOfAFlow follows a flow whose second step waits until its follower has
// seen the result of the first.
func TestEventsOfAFlow(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		first, drawn := hold(t)
		second, enlarged := hold(t)
		script := func(wait string) string {
			return fmt.Sprintf("%q", `[{"progress":0.5},`+wait+`,{"output":{"kind":"png"}}]`)
		}
		a := m.writeFlow("POST", "", `{"name":"Poster","steps":[
			{"id":"draft","tool":"one","inputs":{"script":`+script(first)+`}},
			{"id":"large","tool":"one","inputs":{"picture":{"step":"draft"},"script":`+script(second)+`}}]}`).checkStatus(t, "a new flow", 201, "")
		tool := getJSON[wire.ToolDetail](m.service, "/api/v2/tools/"+decodeAnswer[wire.Flow](t, a).ID)
		id := m.run("", fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":%q}`, tool.ID, tool.ToolFieldsHash))
		s := m.follow(id, "", "")
		if e, _ := s.next(); e.name != "status" || !strings.Contains(e.data, `"stage":"queued"`) {
			t.Fatalf("the first event is %+v", e)
		}
		m.workFlows()

		// seen reads until an event about a step in a state.
		var all []event
		seen := func(step string, is func(wire.GenerationStep) bool) (wire.GenerationStep, event) {
			t.Helper()
			for {
				e, ok := s.next()
				if !ok {
					t.Fatalf("the stream ended: %s", names(all))
				}
				all = append(all, e)
				var told struct{ Steps []wire.GenerationStep }
				switch e.name {
				case "done":
					t.Fatalf("the flow ended before %s was seen: %s", step, names(all))
				case "status":
					_ = json.Unmarshal([]byte(e.data), &told) // without steps if it is not JSON
				case "step":
					told.Steps = make([]wire.GenerationStep, 1)
					_ = json.Unmarshal([]byte(e.data), &told.Steps[0])
				}
				for _, one := range told.Steps {
					if one.Step == step && is(one) {
						return one, e
					}
				}
			}
		}
		isRunning := func(one wire.GenerationStep) bool { return one.Stage != nil && *one.Stage == "running" }
		seen("draft", isRunning)
		drawn()
		draft, at := seen("draft", func(one wire.GenerationStep) bool { return one.Status == "succeeded" })
		if at.name != "step" || len(draft.Outputs) != 1 || draft.Outputs[0].URL == nil || !draft.Intermediate || draft.TokensCharged != 3 {
			t.Errorf("%s: draft = %+v", at.name, draft)
		}
		seen("large", isRunning)
		if !slices.ContainsFunc(all, func(e event) bool { return e.name == "status" && strings.Contains(e.data, `"stage":"running"`) }) {
			t.Errorf("no status says that the flow runs: %s", names(all))
		}
		enlarged()
		if rest := s.rest(); len(rest) == 0 || rest[len(rest)-1].name != "done" || !strings.Contains(rest[len(rest)-1].data, `"status":"succeeded"`) {
			t.Errorf("the last events are %+v", rest)
		}
	})
}
