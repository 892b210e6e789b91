package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"atelier/internal/base/ids"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/web/api/wire"
)

// write sends JSON.
func (s *service) write(method, path, body string, header ...string) answer {
	s.t.Helper()
	return s.send(method, "/api/v2/boards"+path, "application/json", strings.NewReader(body), header...)
}

// newBoard makes a board; query is "?team_id=…" or "".
func (s *service) newBoard(query string) wire.Board {
	s.t.Helper()
	return decodeAnswer[wire.Board](s.t, s.write("POST", query, `{"name":"Board"}`).checkStatus(s.t, "a new board", 201, ""))
}

func (s *service) newNode(boardID, body string) wire.Node {
	s.t.Helper()
	return decodeAnswer[wire.Node](s.t, s.write("POST", "/"+boardID+"/nodes", body).checkStatus(s.t, "a new node "+body, 201, ""))
}

// whole reads a board in pages.
func (s *service) whole(boardID string, limit int, between func()) (first wire.Board, nodes []wire.Node) {
	s.t.Helper()
	path := fmt.Sprintf("/api/v2/boards/%s?limit=%d", boardID, limit)
	first = getJSON[wire.Board](s, path)
	page := first
	for nodes = append(nodes, page.Nodes...); page.HasMore; nodes = append(nodes, page.Nodes...) {
		between()
		page = getJSON[wire.Board](s, path+"&cursor="+*page.NextCursor)
	}
	return first, nodes
}

func TestBoards(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		me := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		a := m.write("POST", "", `{"name":"Autumn"}`).checkStatus(t, "make", 201, "")
		b := decodeAnswer[wire.Board](t, a)
		if b.Name != "Autumn" || b.Revision != 1 || b.UID != me || b.TeamID != nil || b.Deleted != nil || len(b.Nodes) != 0 || b.HasMore || a.Header.Get("ETag") != `"1"` {
			t.Errorf("a new board = %s with %s", a.body, a.Header.Get("ETag"))
		}
		at := "/" + b.ID
		if a := m.write("PATCH", at, `{"name":"Winter"}`).checkStatus(t, "rename", 200, ""); a.Header.Get("ETag") != `"2"` || decodeAnswer[wire.Board](t, a).Name != "Winter" {
			t.Errorf("renamed = %s", a.body)
		}
		a = m.write("POST", at+"/nodes", `{"kind":"TEXT","text":"Mood","x":120.5,"y":-0.1,"width":1e-300,"z":7}`).checkStatus(t, "add", 201, "")
		n := decodeAnswer[wire.Node](t, a)
		if a.Header.Get("ETag") != `"3"` || n.X != 120.5 || n.Y != -0.1 || n.Width != 1e-300 || n.Z != 7 || n.Ref != nil || n.Revision != 3 || n.Missing {
			t.Errorf("a new node = %s", a.body)
		}
		a = m.write("PATCH", at+"/nodes/"+n.ID, `{"x":1,"text":""}`).checkStatus(t, "move", 200, "")
		if n = decodeAnswer[wire.Node](t, a); a.Header.Get("ETag") != `"4"` || n.X != 1 || n.Y != -0.1 || n.Text != "" || n.Z != 7 {
			t.Errorf("moved = %s", a.body)
		}
		a = m.write("PATCH", at+"/nodes", `{"create":[{"kind":"TEXT","text":"b"},{"kind":"TEXT","text":"c"}],"update":[{"id":"`+n.ID+`","z":1}],"delete":[]}`).checkStatus(t, "bulk", 200, "")
		all := decodeAnswer[wire.NodeChangesResult](t, a)
		if a.Header.Get("ETag") != `"5"` || all.Revision != 5 || len(all.Created) != 2 || all.Created[1].Text != "c" || all.Created[0].Z != 2 || len(all.Updated) != 1 || all.Updated[0].Z != 1 || len(all.Deleted) != 0 {
			t.Errorf("bulk = %s", a.body)
		}
		if a := m.sendRequest("DELETE", "/api/v2/boards"+at+"/nodes/"+n.ID).checkStatus(t, "take off", 204, ""); a.Header.Get("ETag") != `"6"` {
			t.Errorf("taken off at %s", a.Header.Get("ETag"))
		}
		m.sendRequest("DELETE", "/api/v2/boards"+at+"/nodes/"+n.ID).checkStatus(t, "take off again", 404, "NOT_FOUND")
		a = m.sendRequest("GET", "/api/v2/boards"+at)
		got := decodeAnswer[wire.Board](t, a)
		if a.Header.Get("ETag") != `"6"` || got.Revision != 6 || got.NodeCount != 2 || len(got.Nodes) != 2 || got.Nodes[0].ID != all.Created[0].ID || got.Nodes[1].ID != all.Created[1].ID {
			t.Errorf("the board = %s", a.body)
		}
		if list := getJSON[wire.BoardList](m.service, "/api/v2/boards"); len(list.Data) != 1 || list.Data[0].NodeCount != 2 || list.Data[0].Revision != 6 {
			t.Errorf("the list = %+v", list)
		}
		// The trash.
		m.sendRequest("DELETE", "/api/v2/boards"+at).checkStatus(t, "delete", 204, "")
		m.sendRequest("DELETE", "/api/v2/boards"+at).checkStatus(t, "delete again", 404, "NOT_FOUND")
		m.sendRequest("GET", "/api/v2/boards"+at).checkStatus(t, "get a deleted one", 404, "NOT_FOUND")
		m.write("PATCH", at, `{"name":"x"}`).checkStatus(t, "rename a deleted one", 404, "NOT_FOUND")
		m.write("POST", at+"/nodes", `{"kind":"TEXT"}`).checkStatus(t, "add to a deleted one", 404, "NOT_FOUND")
		m.sendRequest("GET", "/api/v2/boards"+at+"/events").checkStatus(t, "follow a deleted one", 404, "NOT_FOUND")
		for query, want := range map[string]int{"": 0, "?deleted=false": 0, "?deleted=true": 1} {
			if list := getJSON[wire.BoardList](m.service, "/api/v2/boards"+query); len(list.Data) != want || want == 1 && list.Data[0].Deleted == nil {
				t.Errorf("boards%s = %+v", query, list.Data)
			}
		}
		for what := range 2 {
			a := m.sendRequest("POST", "/api/v2/boards"+at+"/restore").checkStatus(t, "restore", 200, "")
			if back := decodeAnswer[wire.Board](t, a); back.Revision != 8 || len(back.Nodes) != 2 || back.Deleted != nil || a.Header.Get("ETag") != `"8"` {
				t.Errorf("restored %d = %s", what, a.body)
			}
		}
		// Lists in pages.
		for range 4 {
			m.newBoard("")
		}
		page := getJSON[wire.BoardList](m.service, "/api/v2/boards?limit=3")
		rest := getJSON[wire.BoardList](m.service, "/api/v2/boards?limit=3&cursor="+*page.NextCursor)
		if len(page.Data) != 3 || len(rest.Data) != 2 || rest.HasMore || rest.Data[1].ID != b.ID {
			t.Errorf("the pages have %d and %d", len(page.Data), len(rest.Data))
		}
		m.sendRequest("GET", "/api/v2/boards?deleted=true&cursor="+*page.NextCursor).checkStatus(t, "a cursor of another list", 400, "INVALID_REQUEST")
		m.sendRequest("GET", "/api/v2/boards"+at+"?cursor="+*page.NextCursor).checkStatus(t, "a cursor of boards for nodes", 400, "INVALID_REQUEST")
	})
}

func TestNodesShowTheLibrary(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		made := m.done("", m.body("one", ""))
		up := m.upload("", picture(30, 20))
		pending := m.run("", m.body("one", steps(`[{"hang":true}]`)))
		b := m.newBoard("")
		result := m.newNode(b.ID, `{"kind":"LIBRARY_REF","ref":"`+made.Outputs[0].ID+`"}`)
		upload := m.newNode(b.ID, `{"kind":"UPLOAD_REF","ref":"`+up.ID+`"}`)
		running := m.newNode(b.ID, `{"kind":"GENERATION","ref":"`+pending+`"}`)
		ended := m.newNode(b.ID, `{"kind":"GENERATION","ref":"`+made.RequestID+`"}`)
		if result.Item == nil || result.Item.Type != "IMG" || result.Item.SizeBytes != made.Outputs[0].SizeBytes || result.Status != nil || *result.Ref != made.Outputs[0].ID {
			t.Errorf("a result = %+v", result)
		}
		if upload.Item == nil || *upload.Item.Width != 30 || upload.Item.DurationSeconds != nil {
			t.Errorf("an upload = %+v", upload)
		}
		for _, n := range []wire.Node{result, upload} {
			if a := m.fetch("GET", n.Item.URL); a.StatusCode != 200 || int64(len(a.body)) != n.Item.SizeBytes {
				t.Errorf("its file = %d", a.StatusCode)
			}
			if n.Item.Blurhash == nil || *n.Item.Blurhash == "" {
				t.Errorf("node %s has no blurhash", n.ID)
			}
			if a := m.fetch("GET", *n.Item.ThumbURL); a.StatusCode != 200 {
				t.Errorf("its small picture = %d", a.StatusCode)
			}
		}
		if running.Status == nil || *running.Status != "pending" || running.Item != nil || *ended.Status != "succeeded" {
			t.Errorf("runs = %+v and %+v", running, ended)
		}
		m.sendRequest("DELETE", "/api/v2/library/"+made.Outputs[0].ID).checkStatus(t, "delete the result", 204, "")
		m.sendRequest("DELETE", "/api/v2/uploads/"+up.ID).checkStatus(t, "delete the upload", 204, "")
		after, nodes := m.whole(b.ID, 1000, nil)
		if after.Revision != 5 || len(nodes) != 4 || !nodes[0].Missing || nodes[0].Item != nil || !nodes[1].Missing || nodes[2].Missing || nodes[3].Missing {
			t.Errorf("without them = %+v", nodes)
		}
		if moved := decodeAnswer[wire.Node](t, m.write("PATCH", "/"+b.ID+"/nodes/"+result.ID, `{"x":5}`).checkStatus(t, "move a missing one", 200, "")); !moved.Missing || moved.X != 5 {
			t.Errorf("moved = %+v", moved)
		}
		m.write("POST", "/"+b.ID+"/nodes", `{"kind":"UPLOAD_REF","ref":"`+up.ID+`"}`).checkStatus(t, "a deleted ref", 400, "INVALID_REQUEST")
	})
}

// paths are where an INVALID_REQUEST sees problems.
func (a answer) paths(t *testing.T) (all []string) {
	t.Helper()
	var e struct {
		Error struct {
			Details struct{ Fields []struct{ Path string } }
		}
	}
	if err := json.Unmarshal(a.body, &e); err != nil {
		t.Fatal(err)
	}
	for _, f := range e.Error.Details.Fields {
		all = append(all, f.Path)
	}
	return all
}

func TestBadNodes(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		bert := m.as(m.addPerson("bert@example.com"))
		foreign := bert.upload("", picture(3, 3)).ID
		mine := m.upload("", picture(4, 4)).ID
		b := m.newBoard("")
		n := m.newNode(b.ID, `{"kind":"TEXT","text":"keep"}`)
		long := strings.Repeat("x", 10_001)
		bulk := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
		for _, x := range []struct{ body, paths string }{
			{`{}`, "kind"}, {`[]`, "body"}, {`null`, "body"}, {`{"kind":"PICTURE"}`, "kind"}, {`{"kind":"text"}`, "kind"}, {`{"kind":1}`, "kind"},
			{`{"kind":"TEXT","ref":"` + mine + `"}`, "ref"}, {`{"kind":"UPLOAD_REF"}`, "ref"}, {`{"kind":"UPLOAD_REF","ref":null}`, "ref"}, {`{"kind":"UPLOAD_REF","ref":""}`, "ref"},
			{`{"kind":"UPLOAD_REF","ref":"` + foreign + `"}`, "ref"}, {`{"kind":"UPLOAD_REF","ref":"` + ids.New() + `"}`, "ref"}, {`{"kind":"LIBRARY_REF","ref":"` + mine + `"}`, "ref"},
			{`{"kind":"GENERATION","ref":"` + mine + `"}`, "ref"}, {`{"kind":"UPLOAD_REF","ref":7}`, "ref"}, {`{"kind":"UPLOAD_REF","ref":["` + mine + `"]}`, "ref"},
			{`{"kind":"TEXT","text":"` + long + `"}`, "text"}, {`{"kind":"TEXT","text":5}`, "text"}, {`{"kind":"TEXT","text":"a\u0000b"}`, "body"}, {"{\"kind\":\"TEXT\",\"text\":\"\xff\"}", "body"},
			{`{"kind":"TEXT","x":1e400}`, "x"}, {`{"kind":"TEXT","x":-1e400}`, "x"}, {`{"kind":"TEXT","x":1e10}`, "x"}, {`{"kind":"TEXT","y":-1000000000.5}`, "y"}, {`{"kind":"TEXT","x":NaN}`, "body"},
			{`{"kind":"TEXT","x":"NaN"}`, "x"}, {`{"kind":"TEXT","x":"1"}`, "x"}, {`{"kind":"TEXT","x":Infinity}`, "body"}, {`{"kind":"TEXT","width":-1}`, "width"}, {`{"kind":"TEXT","height":-1e-300}`, "height"},
			{`{"kind":"TEXT","z":1.5}`, "z"}, {`{"kind":"TEXT","z":1000000001}`, "z"}, {`{"kind":"TEXT","z":99999999999999999999}`, "z"}, {`{"kind":"TEXT","z":"1"}`, "z"},
			{`{"kind":"TEXT","x":1,"x":2}`, "body"}, {`{"kind":"TEXT"`, "body"}, {``, "body"},
			{`{"kind":"UPLOAD_REF","ref":"` + foreign + `","x":1e10,"width":-1,"text":"` + long + `"}`, "text x width ref"},
		} {
			a := m.write("POST", "/"+b.ID+"/nodes", x.body).checkStatus(t, fmt.Sprintf("%.80s", x.body), 400, "INVALID_REQUEST")
			if got := strings.Join(a.paths(t), " "); got != x.paths {
				t.Errorf("%.80s has problems with %q, want %q", x.body, got, x.paths)
			}
		}
		for _, x := range []struct{ body, paths string }{
			{`{}`, "body"}, {`{"kind":"TEXT"}`, "body"}, {`{"x":null}`, "body"}, {`{"ref":"` + mine + `"}`, "ref"}, {`{"x":1e400}`, "x"}, {`{"width":-1}`, "width"}, {`{"z":1e-3}`, "z"}, {`{"z":1e10}`, "z"}, {`{"text":"` + long + `"}`, "text"},
		} {
			a := m.write("PATCH", "/"+b.ID+"/nodes/"+n.ID, x.body).checkStatus(t, fmt.Sprintf("%.80s", x.body), 400, "INVALID_REQUEST")
			if got := strings.Join(a.paths(t), " "); got != x.paths {
				t.Errorf("%.80s has problems with %q, want %q", x.body, got, x.paths)
			}
		}
		one, none := `{"id":"`+n.ID+`","x":1}`, ids.New()
		for _, x := range []struct{ body, paths string }{
			{`{}`, "body"}, {`{"create":[],"update":[],"delete":[]}`, "body"}, {`{"create":[` + bulk(1001, `{"kind":"TEXT"}`) + `]}`, "body"},
			{`{"create":[` + bulk(999, `{"kind":"TEXT"}`) + `],"update":[` + one + `],"delete":["` + none + `"]}`, "body"},
			{`{"create":{}}`, "create"}, {`{"create":[{"kind":"TEXT"},{"kind":"TEXT","x":"1"}]}`, "create.1.x"}, {`{"delete":[7]}`, "delete.0"}, {`{"create":[7]}`, "create.0"}, {`{"update":[{"x":1}]}`, "update.0.id"},
			{`{"update":[` + one + `,` + one + `]}`, "update.1.id"}, {`{"update":[` + one + `],"delete":["` + n.ID + `"]}`, "delete.0"}, {`{"delete":["` + n.ID + `","` + n.ID + `"]}`, "delete.1"},
			{`{"update":[{"id":"` + n.ID + `"}]}`, "update.0"}, {`{"update":[{"id":"` + none + `","x":1}],"delete":["` + none + `x"]}`, "update.0.id delete.0"},
			{`{"create":[{"kind":"TEXT"},{"kind":"UPLOAD_REF","ref":"` + foreign + `"},{"kind":"UPLOAD_REF","ref":"` + mine + `"},{"kind":"TEXT","ref":"x"}],"update":[{"id":"` + n.ID + `","y":-1e10}]}`, "create.3.ref update.0.y create.1.ref"},
		} {
			a := m.write("PATCH", "/"+b.ID+"/nodes", x.body).checkStatus(t, fmt.Sprintf("%.80s", x.body), 400, "INVALID_REQUEST")
			if got := strings.Join(a.paths(t), " "); got != x.paths {
				t.Errorf("%.80s has problems with %q, want %q", x.body, got, x.paths)
			}
		}
		m.write("PATCH", "/"+b.ID+"/nodes/"+none, `{"x":1}`).checkStatus(t, "a node that is not", 404, "NOT_FOUND")
		m.write("PATCH", "/"+b.ID+"/nodes/x", `{"x":1}`).checkStatus(t, "a node that can't be", 404, "NOT_FOUND")
		m.send("POST", "/api/v2/boards/"+b.ID+"/nodes", "text/plain", strings.NewReader(`{"kind":"TEXT"}`)).checkStatus(t, "no JSON", 415, "UNSUPPORTED_MEDIA_TYPE")
		m.write("POST", "/"+b.ID+"/nodes", `{"kind":"TEXT","text":"`+strings.Repeat("x", 1<<20)+`"}`).checkStatus(t, "too much", 413, "PAYLOAD_TOO_LARGE")
		for _, body := range []string{`{}`, `{"name":""}`, `{"name":7}`, `{"name":null}`, `{"name":"` + strings.Repeat("x", 201) + `"}`, `{"name":"a\nb"}`, `[]`} {
			m.write("POST", "", body).checkStatus(t, body, 400, "INVALID_REQUEST")
			m.write("PATCH", "/"+b.ID, body).checkStatus(t, body, 400, "INVALID_REQUEST")
		}
		for _, query := range []string{"limit=0", "limit=1001", "limit=x", "cursor=x", "limit=1&limit=2", "x=%zz"} {
			m.sendRequest("GET", "/api/v2/boards/"+b.ID+"?"+query).checkStatus(t, query, 400, "INVALID_REQUEST")
		}
		for _, query := range []string{"limit=0", "limit=101", "deleted=1", "cursor=x"} {
			m.sendRequest("GET", "/api/v2/boards?"+query).checkStatus(t, query, 400, "INVALID_REQUEST")
		}
		if after, nodes := m.whole(b.ID, 1000, nil); after.Revision != 2 || after.Name != "Board" || len(nodes) != 1 || nodes[0].Text != "keep" || nodes[0].X != 0 {
			t.Errorf("after all that %+v", after)
		}
	})
}

// TestNumbersStayAsTheyAre sends numbers that are hard to write down.
func TestNumbersStayAsTheyAre(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		b := m.newBoard("")
		var drafts []string
		numbers := []float64{0.1, 0.1 + 0.2, 1.0 / 3, math.SmallestNonzeroFloat64, 999999999.9999999, 1e9, -1e9, 123456.789e-12, math.Nextafter(1, 2), math.Pi, 5e-324, 1e-7}
		for _, n := range numbers {
			text, _ := json.Marshal(n)
			drafts = append(drafts, `{"kind":"TEXT","x":`+string(text)+`,"width":`+strings.TrimPrefix(string(text), "-")+`}`)
		}
		m.write("PATCH", "/"+b.ID+"/nodes", `{"create":[`+strings.Join(drafts, ",")+`,{"kind":"TEXT","x":-0}]}`).checkStatus(t, "numbers", 200, "")
		a := m.sendRequest("GET", "/api/v2/boards/"+b.ID)
		for i, n := range decodeAnswer[wire.Board](t, a).Nodes[:len(numbers)] {
			if n.X != numbers[i] || n.Width != math.Abs(numbers[i]) {
				t.Errorf("%v came back as %v and %v", numbers[i], n.X, n.Width)
			}
		}
		if strings.Contains(string(a.body), `:-0,`) {
			t.Error("a zero has a sign")
		}
	})
}

func TestIfMatch(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		b := m.newBoard("")
		n := m.newNode(b.ID, `{"kind":"TEXT"}`)
		revision := int64(2)
		const conflict, invalid = 412, 400
		for _, x := range []struct {
			header string // %d is the revision, %p the one before
			status int
		}{
			{"", 200}, {`"%d"`, 200}, {`"%p"`, conflict}, {`*`, 200}, {` * `, 200}, {`"%p", "%d"`, 200}, {`"x","%d"`, 200}, {`"a,b" , "%d"`, 200}, {`,, "%d" ,`, 200}, {"\"%d\"\t,\"7000\"", 200},
			{`"%p","x"`, conflict}, {`W/"%d"`, conflict}, {`W/"%d", "%p"`, conflict}, {`W/"%p", "%d"`, 200}, {`"0%d"`, conflict}, {`"+%d"`, conflict}, {`""`, conflict}, {`"ü"`, conflict},
			{`%d`, invalid}, {`"%d`, invalid}, {`%d"`, invalid}, {`"%d" "%p"`, invalid}, {`"%d"x`, invalid}, {`*, "%d"`, invalid}, {`"%d", *`, invalid}, {`w/"%d"`, invalid}, {`W/%d`, invalid}, {`,`, invalid}, {`"a b"`, invalid},
			{`W/ "%d"`, invalid}, {`'%d'`, invalid}, {strings.Repeat(`"1",`, 101) + `"%d"`, invalid}, {strings.Repeat(`"1",`, 99) + `"%d"`, 200},
		} {
			for _, w := range []struct{ method, path, body string }{
				{"PATCH", "/nodes/" + n.ID, `{"x":1}`}, {"PATCH", "", `{"name":"x"}`}, {"PATCH", "/nodes", `{"update":[{"id":"` + n.ID + `","x":1}]}`}, {"POST", "/nodes", `{"kind":"TEXT"}`},
			} {
				var header []string
				if x.header != "" {
					header = []string{"If-Match", strings.NewReplacer("%d", fmt.Sprint(revision), "%p", fmt.Sprint(revision-1)).Replace(x.header)}
				}
				a := m.write(w.method, "/"+b.ID+w.path, w.body, header...)
				what := fmt.Sprintf("%s %s with %.60q", w.method, w.path, header)
				switch x.status {
				case 200:
					if a.StatusCode/100 != 2 {
						t.Fatalf("%s = %d %s", what, a.StatusCode, a.body)
					}
					if revision++; a.Header.Get("ETag") != fmt.Sprintf(`"%d"`, revision) {
						t.Errorf("%s has the tag %s, want %d", what, a.Header.Get("ETag"), revision)
					}
				case conflict:
					if a.checkStatus(t, what, 412, "CONFLICT"); a.readError(t).Details["revision"] != float64(revision) || a.readError(t).Retryable || a.Header.Get("ETag") != "" {
						t.Errorf("%s = %s", what, a.body)
					}
				case invalid:
					a.checkStatus(t, what, 400, "INVALID_REQUEST")
				}
			}
		}
		// In two lines it is one list.
		m.write("PATCH", "/"+b.ID, `{"name":"x"}`, "If-Match", `"1"`, "If-Match", fmt.Sprintf(`"%d"`, revision)).checkStatus(t, "two lines", 200, "")
		m.write("PATCH", "/"+b.ID, `{"name":"x"}`, "If-Match", `*`, "If-Match", `*`).checkStatus(t, "two stars", 400, "INVALID_REQUEST")
		m.write("PATCH", "/"+b.ID, `{"name":"x"}`, "If-Match", "").checkStatus(t, "an empty header", 400, "INVALID_REQUEST")
		for _, path := range []string{"/nodes/" + n.ID, ""} {
			m.send("DELETE", "/api/v2/boards/"+b.ID+path, "", nil, "If-Match", `"1"`).checkStatus(t, "delete with a stale tag", 412, "CONFLICT")
		}
		m.write("PATCH", "/"+ids.New(), `{"name":"x"}`, "If-Match", `"1"`).checkStatus(t, "no board", 404, "NOT_FOUND")
		m.write("PATCH", "/"+ids.New(), `{"name":"x"}`, "If-Match", `*`).checkStatus(t, "no board with a star", 404, "NOT_FOUND")
		now := getJSON[wire.Board](m.service, "/api/v2/boards/"+b.ID).Revision
		m.send("DELETE", "/api/v2/boards/"+b.ID, "", nil, "If-Match", fmt.Sprintf(`"%d"`, now)).checkStatus(t, "delete", 204, "")
	})
}

// TestNodesInPagesWhileTheyComeAndGo reads a board in small pages while it
// changes: with what changed since the first page it is the board as it is.
func TestNodesInPagesWhileTheyComeAndGo(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		b := m.newBoard("")
		var ids []string
		for i := range 12 {
			ids = append(ids, m.newNode(b.ID, fmt.Sprintf(`{"kind":"TEXT","text":"%d"}`, i)).ID)
		}
		turn := 0
		first, nodes := m.whole(b.ID, 3, func() {
			if turn++; turn > 6 {
				return
			}
			m.newNode(b.ID, `{"kind":"TEXT","text":"new"}`)
			m.sendRequest("DELETE", "/api/v2/boards/"+b.ID+"/nodes/"+ids[len(ids)-turn]).checkStatus(t, "take off", 204, "")
			m.write("PATCH", "/"+b.ID+"/nodes/"+ids[0], fmt.Sprintf(`{"x":%d}`, turn)).checkStatus(t, "move", 200, "")
		})
		mine := newCopy(nodes)
		s := m.listen("/api/v2/boards/"+b.ID+"/events", fmt.Sprint(first.Revision))
		for {
			e, ok := s.next()
			if !ok {
				t.Fatal("the stream ended")
			}
			if mine.apply(t, e); e.name == "board" {
				break
			}
		}
		_, want := m.whole(b.ID, 1000, nil)
		if !maps.Equal(mine.nodes, newCopy(want).nodes) {
			t.Errorf("the copy has %v, the board %v", mine.nodes, want)
		}
		bert := m.as(m.addPerson("bert@example.com"))
		page := getJSON[wire.Board](m.service, "/api/v2/boards/"+b.ID+"?limit=1")
		other := m.newBoard("")
		m.sendRequest("GET", "/api/v2/boards/"+other.ID+"?cursor="+*page.NextCursor).checkStatus(t, "the cursor of another board", 400, "INVALID_REQUEST")
		bert.sendRequest("GET", "/api/v2/boards/"+b.ID+"?cursor="+*page.NextCursor).checkStatus(t, "another's cursor", 400, "INVALID_REQUEST")
	})
}

func TestBoardsOfOthers(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		annaID := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		bertID, chiefID := m.site.Person("bert@example.com"), m.site.Person("chief@example.com")
		look, _ := m.team("Look", "anna@example.com", "bert@example.com", "chief@example.com")
		foreign, _ := m.team("Foreign", "bert@example.com")
		if _, err := m.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), look, company.TeamRole{
			Name: "chief", Permissions: []company.Permission{company.ManageTeam, company.UsePlugins}, PluginKinds: []string{company.AnyKind},
		}); err != nil {
			t.Fatal(err)
		}
		m.site.Join(look, "chief@example.com", "chief")
		device := func(id string) *runFixture { return m.as(m.site.Device(id, "blender").Tokens.ID) }
		anna, bert, chief := device(annaID), device(bertID), device(chiefID)
		mine, in := anna.newBoard(""), "?team_id="+look
		ours, theirs := anna.newBoard(in), bert.newBoard("?team_id="+foreign)
		if ours.TeamID == nil || *ours.TeamID != look || ours.UID != annaID {
			t.Errorf("the team's board = %+v", ours)
		}
		node := anna.newNode(mine.ID, `{"kind":"TEXT","text":"mine"}`)
		requests := func(m *runFixture, id, query string) (all []answer) {
			for _, x := range []struct{ method, path, body string }{
				{"GET", "", ""}, {"PATCH", "", `{"name":"x"}`}, {"DELETE", "", ""}, {"POST", "/restore", ""}, {"POST", "/nodes", `{"kind":"TEXT"}`}, {"PATCH", "/nodes", `{"delete":["` + node.ID + `"]}`},
				{"PATCH", "/nodes/" + node.ID, `{"x":1}`}, {"DELETE", "/nodes/" + node.ID, ""}, {"GET", "/events", ""},
			} {
				all = append(all, m.write(x.method, "/"+id+x.path+query, x.body))
			}
			return all
		}
		// What is another account's is what never was.
		for _, x := range []struct {
			who       *runFixture
			id, query string
		}{{bert, mine.ID, ""}, {bert, mine.ID, in}, {anna, mine.ID, in}, {anna, ours.ID, ""}, {anna, theirs.ID, in}, {chief, theirs.ID, ""}, {chief, mine.ID, in}} {
			never := requests(x.who, ids.New(), x.query)
			for i, a := range requests(x.who, x.id, x.query) {
				if a.checkStatus(t, fmt.Sprint(i, x.id, x.query), 404, "NOT_FOUND"); a.comparableText(t) != never[i].comparableText(t) {
					t.Errorf("a foreign board = %s, one that never was %s", a.body, never[i].body)
				}
			}
		}
		for _, a := range requests(bert, theirs.ID, "?team_id="+look) {
			a.checkStatus(t, "another team's", 404, "NOT_FOUND")
		}
		for _, a := range requests(anna, theirs.ID, "?team_id="+foreign) {
			a.checkStatus(t, "a team one is not in", 403, "FORBIDDEN")
		}
		// Members change, and see each other's; who made it or manages deletes.
		bert.write("POST", "/"+ours.ID+"/nodes"+in, `{"kind":"TEXT","text":"bert"}`).checkStatus(t, "a member's node", 201, "")
		up := bert.upload("", picture(3, 3))
		bert.write("POST", "/"+ours.ID+"/nodes"+in, `{"kind":"UPLOAD_REF","ref":"`+up.ID+`"}`).checkStatus(t, "a personal upload on a team's board", 400, "INVALID_REQUEST")
		shared := bert.upload(in, picture(3, 3))
		bert.write("POST", "/"+ours.ID+"/nodes"+in, `{"kind":"UPLOAD_REF","ref":"`+shared.ID+`"}`).checkStatus(t, "the team's upload", 201, "")
		seen := getJSON[wire.Board](anna.service, "/api/v2/boards/"+ours.ID+in)
		if len(seen.Nodes) != 2 || seen.Nodes[1].Item == nil {
			t.Fatalf("the team's board = %+v", seen)
		}
		if a := m.fetch("GET", seen.Nodes[1].Item.URL); a.StatusCode != 200 {
			t.Errorf("its file = %d", a.StatusCode)
		}
		for _, x := range []struct{ method, path string }{{"DELETE", ""}, {"POST", "/restore"}} {
			if a := bert.sendRequest(x.method, "/api/v2/boards/"+ours.ID+x.path+in).checkStatus(t, x.method+" by another", 403, "FORBIDDEN"); a.readError(t).Details["reason"] != "permission" {
				t.Errorf("by another = %s", a.body)
			}
		}
		chief.sendRequest("DELETE", "/api/v2/boards/"+ours.ID+in).checkStatus(t, "delete by a manager", 204, "")
		bert.sendRequest("POST", "/api/v2/boards/"+ours.ID+"/restore"+in).checkStatus(t, "restore by another", 403, "FORBIDDEN")
		if list := getJSON[wire.BoardList](bert.service, "/api/v2/boards"+in+"&deleted=true"); len(list.Data) != 1 {
			t.Errorf("the team's trash = %+v", list)
		}
		anna.sendRequest("POST", "/api/v2/boards/"+ours.ID+"/restore"+in).checkStatus(t, "restore by who made it", 200, "")
		anna.sendRequest("DELETE", "/api/v2/boards/"+ours.ID+in).checkStatus(t, "delete by who made it", 204, "")
		if list := getJSON[wire.BoardList](bert.service, "/api/v2/boards"); len(list.Data) != 0 {
			t.Errorf("Bert's own boards = %+v", list)
		}
		if _, nodes := anna.whole(mine.ID, 1000, nil); len(nodes) != 1 || nodes[0].Text != "mine" {
			t.Errorf("after all that = %+v", nodes)
		}
	})
}

// shown is what a client keeps of a node.
type shown struct {
	kind, text          string
	x, y, width, height float64
	z, revision         int64
}

// boardCopy is a board as a client has it.
type boardCopy struct {
	nodes    map[string]shown
	name     string
	revision int64
	events   int
}

func newCopy(nodes []wire.Node) *boardCopy {
	c := &boardCopy{nodes: map[string]shown{}}
	c.put(nodes)
	return c
}

func (c *boardCopy) put(nodes []wire.Node) {
	for _, n := range nodes {
		c.nodes[n.ID] = shown{string(n.Kind), n.Text, n.X, n.Y, n.Width, n.Height, n.Z, n.Revision}
	}
}

// apply takes an event in as a client would.
func (c *boardCopy) apply(t *testing.T, e event) {
	t.Helper()
	c.events++
	var id int64
	if _, err := fmt.Sscan(e.id, &id); err != nil || id < c.revision {
		t.Errorf("after %d comes the id %q", c.revision, e.id)
	}
	c.revision = id
	switch e.name {
	case "nodes":
		var change wire.BoardChange
		if err := json.Unmarshal([]byte(e.data), &change); err != nil || change.Revision != id || change.Put == nil || change.Deleted == nil {
			t.Errorf("%s: %v", e.data, err)
		}
		c.put(change.Put)
		for _, id := range change.Deleted {
			delete(c.nodes, id)
		}
	case "board", "reset", "deleted":
		var b wire.BoardSummary
		if err := json.Unmarshal([]byte(e.data), &b); err != nil {
			t.Error(err)
		}
		c.name = b.Name
	default:
		t.Errorf("there is an event %q", e.name)
	}
}
