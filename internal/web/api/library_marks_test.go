package api_test

import (
	"fmt"
	"testing"

	"atelier/internal/web/api/wire"
)

// multiply adds copies of the person's only result, each a second older, with
// prompts that end in "even" and "odd" in turn.
func (m *runFixture) multiply(copies int) {
	m.t.Helper()
	for i := 1; i <= copies; i++ {
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		words := []string{"even", "odd"}[i%2]
		m.exec(`
			INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob, thumb, preview, created)
			SELECT $1, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob || $1, thumb, preview, created FROM asset
			WHERE id IN (SELECT asset_id FROM result WHERE place = 0)`, id)
		m.exec(`
			INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, created, search_text)
			SELECT $1, run_id, CAST($2 AS BIGINT), $1, account_id, tool_id, type, shape, resolution, created - 1000000 * CAST($2 AS BIGINT), $3
			FROM result WHERE place = 0`, id, int64(i), words)
	}
}

// TestLibraryMarks enters the list at each of its places.
func TestLibraryMarks(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		if empty := getJSON[wire.LibraryMarks](m.service, "/api/v2/library/marks"); empty.Total != 0 || empty.Marks == nil || len(empty.Marks) != 0 {
			t.Errorf("the marks of an empty library = %+v", empty)
		}
		m.done("", m.body("one", ""))
		m.multiply(44)
		for query, want := range map[string]int64{"": 45, "sort=oldest": 45, "q=ODD": 22, "q=odd&sort=oldest&type=IMG": 22, "type=VID": 0, "favorited=true": 0} {
			whole := m.library(query, 100, func() {})
			marks := getJSON[wire.LibraryMarks](m.service, "/api/v2/library/marks?every=20&"+query)
			if marks.Total != want || len(marks.Marks) != int(want+19)/20 || len(whole) != int(want) {
				t.Errorf("%s: total %d with %d marks, want %d", query, marks.Total, len(marks.Marks), want)
				continue
			}
			for i, mark := range marks.Marks {
				cursor := ""
				if mark.Cursor != nil {
					cursor = "&cursor=" + *mark.Cursor
				}
				page := getJSON[wire.LibraryList](m.service, "/api/v2/library?limit=3&"+query+cursor)
				if mark.Index != int64(20*i) || (mark.Cursor == nil) != (i == 0) || len(page.Data) == 0 || page.Data[0].ID != whole[20*i].ID || !mark.Created.Equal(whole[20*i].Created) {
					t.Errorf("%s: mark %+v leads to %+v, want %s", query, mark, page.Data, whole[20*i].ID)
				}
			}
		}
		marks := getJSON[wire.LibraryMarks](m.service, "/api/v2/library/marks?every=20")
		cursor := "&cursor=" + *marks.Marks[1].Cursor
		for _, query := range []string{"q=odd", "sort=oldest", "type=IMG"} {
			m.sendRequest("GET", "/api/v2/library?"+query+cursor).checkStatus(t, "a cursor of another list", 400, "INVALID_REQUEST")
		}
		m.sendRequest("GET", "/api/v2/library?sort=newest"+cursor).checkStatus(t, "the default order by its name", 200, "")
		m.site.Person("bert@example.com")
		_, bert := m.site.Token("bert@example.com", "")
		m.as(bert).sendRequest("GET", "/api/v2/library?limit=3"+cursor).checkStatus(t, "a cursor of somebody else", 400, "INVALID_REQUEST")
		for _, query := range []string{"every=19", "every=1001", "every=x", "every=", "every=1e2", "every=20&every=30", "type=x", "q=%00", "resolution=9K"} {
			m.sendRequest("GET", "/api/v2/library/marks?"+query).checkStatus(t, query, 400, "INVALID_REQUEST")
		}
		if got := getJSON[wire.LibraryMarks](m.service, "/api/v2/library/marks"); len(got.Marks) != 1 || got.Total != 45 {
			t.Errorf("every 100 by default = %+v", got)
		}
	})
}

// TestRestoringResults deletes a result and brings it back, wherever it is
// shown.
func TestRestoringResults(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		run := m.done("", m.body("one", steps(`[{"output":{"kind":"png","note":"Nearly."}}]`)))
		id := run.Outputs[0].ID
		path := "/api/v2/library/" + id
		m.sendRequest("PUT", path+"/favorite").checkStatus(t, "favourite", 204, "")
		b := m.newBoard("")
		m.newNode(b.ID, `{"kind":"LIBRARY_REF","ref":"`+id+`"}`)
		before := getJSON[wire.LibraryList](m.service, "/api/v2/library").Data[0]

		m.sendRequest("DELETE", path).checkStatus(t, "delete", 204, "")
		m.sendRequest("GET", path).checkStatus(t, "a deleted result", 404, "NOT_FOUND")
		m.sendRequest("DELETE", path).checkStatus(t, "delete twice", 404, "NOT_FOUND")
		if a := m.fetch("GET", before.URL); a.StatusCode != 404 || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("the file of a deleted result = %d, %s", a.StatusCode, a.Header.Get("Cache-Control"))
		}
		if o := getJSON[wire.Generation](m.service, "/api/v2/generate/"+run.RequestID).Outputs[0]; !o.Expired || o.Note != nil {
			t.Errorf("the output of a deleted result = %+v", o)
		}
		if _, nodes := m.whole(b.ID, 10, func() {}); len(nodes) != 1 || nodes[0].Item != nil {
			t.Errorf("the node of a deleted result = %+v", nodes)
		}
		if got := m.stored(); got.UsedBytes != 0 {
			t.Errorf("storage = %+v, want none", got)
		}

		m.site.Person("bert@example.com")
		_, bert := m.site.Token("bert@example.com", "")
		m.as(bert).sendRequest("POST", path+"/restore").checkStatus(t, "a result of somebody else", 404, "NOT_FOUND")
		for range 2 {
			a := m.sendRequest("POST", path+"/restore").checkStatus(t, "restore", 200, "")
			if got := decodeAnswer[wire.LibraryItem](t, a); got.ID != id || !got.Favorited || got.Note == nil || *got.Note != "Nearly." || got.URL != before.URL {
				t.Errorf("restored %+v, want %+v", got, before)
			}
		}
		if a := m.fetch("GET", before.URL); a.StatusCode != 200 {
			t.Errorf("the file of a restored result = %d", a.StatusCode)
		}
		if o := getJSON[wire.Generation](m.service, "/api/v2/generate/"+run.RequestID).Outputs[0]; o.Expired || o.Note == nil {
			t.Errorf("the output of a restored result = %+v", o)
		}
		if _, nodes := m.whole(b.ID, 10, func() {}); len(nodes) != 1 || nodes[0].Item == nil {
			t.Errorf("the node of a restored result = %+v", nodes)
		}

		m.sendRequest("DELETE", path).checkStatus(t, "delete again", 204, "")
		m.exec(`UPDATE result SET restorable_until = 1 WHERE deleted IS NOT NULL`)
		m.sendRequest("POST", path+"/restore").checkStatus(t, "too late", 404, "NOT_FOUND")
		m.sendRequest("POST", "/api/v2/library/marks/restore").checkStatus(t, "no id", 404, "NOT_FOUND")
	})
}
