package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/web/api/wire"
)

// library lists what a query finds, page by page.
func (s *service) library(query string, limit int, between func()) (all []wire.LibraryItem) {
	s.t.Helper()
	next := ""
	for range 100 {
		list := getJSON[wire.LibraryList](s, fmt.Sprintf("/api/v2/library?limit=%d&%s%s", limit, query, next))
		all = append(all, list.Data...)
		if !list.HasMore {
			return all
		}
		next = "&cursor=" + *list.NextCursor
		between()
	}
	s.t.Fatal("the pages do not end")
	return nil
}

func idsOf(all []wire.LibraryItem) (ids []string) {
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestLibraryFilters(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		sized := func(tool string, w, h int) wire.Generation {
			return m.done("", m.body(tool, `,"inputs":{"prompt":"p","script":"[{\"output\":{\"kind\":\"png\",\"width\":`+fmt.Sprint(w)+`,\"height\":`+fmt.Sprint(h)+`}}]"}`))
		}
		square, wide, large := sized("one", 8, 8), sized("wide", 160, 90), sized("wide", 2048, 1024)
		middle := time.Now().UTC().Format(time.RFC3339Nano)
		sound := m.done("", m.body("tones", `,"num_results":2,"inputs":{"script":"[{\"output\":{\"kind\":\"wav\",\"seconds\":1,\"times\":2}}]"}`))
		text := m.done("", m.body("words", steps(`[{"output":{"kind":"text","text":"hello"}}]`)))
		m.run("", m.body("one", steps(`[{"hang":true}]`)))
		if len(text.Outputs) != 1 || text.Outputs[0].Type != "TEXT" || len(sound.Outputs) != 2 {
			t.Fatalf("outputs = %+v, %+v", text.Outputs, sound.Outputs)
		}
		id := func(g wire.Generation) string { return g.Outputs[0].ID }
		m.sendRequest("PUT", "/api/v2/library/"+id(wide)+"/favorite").checkStatus(t, "favourite", 204, "")
		m.sendRequest("PUT", "/api/v2/library/"+id(wide)+"/favorite").checkStatus(t, "favourite again", 204, "")
		all := []string{id(square), id(wide), id(large), sound.Outputs[0].ID, sound.Outputs[1].ID}
		for _, item := range m.library("", 100, func() {}) {
			one := getJSON[wire.LibraryItemDetail](m.service, "/api/v2/library/"+item.ID)
			if hasHash := item.Blurhash != nil && *item.Blurhash != ""; hasHash != (item.Type == "IMG") || hasHash && *one.Blurhash != *item.Blurhash || item.PreviewURL != nil {
				t.Errorf("item %s of type %s: blurhash %v, preview %v", item.ID, item.Type, item.Blurhash, item.PreviewURL)
			}
		}
		tags := map[string]string{}
		for _, tag := range getJSON[wire.ToolTagList](m.service, "/api/v2/tool-tags").Data {
			tags[tag.Label] = tag.ID
		}
		for query, want := range map[string][]string{
			"":                                         all,
			"tool_id=" + m.made["one"].ID:              {id(square)},
			"tool_id=" + ids.New():                     nil,
			"aspect_ratio=1:1":                         {id(square)},
			"aspect_ratio=16:9":                        {id(wide)},
			"aspect_ratio=2:1":                         {id(large)},
			"aspect_ratio=OTHER":                       nil,
			"resolution=1K":                            {id(square), id(wide)},
			"resolution=2K":                            {id(large)},
			"resolution=" + "4K%2B":                    nil,
			"favorited=true":                           {id(wide)},
			"favorited=false":                          {id(square), id(large), all[3], all[4]},
			"start_utc=" + middle:                      {all[3], all[4]},
			"end_utc=" + middle:                        all[:3],
			"start_utc=2020-01-01T00:00:00Z":           all,
			"end_utc=2020-01-01T00:00:00%2B02:00":      nil,
			"media_tool_tag_id=" + tags["Pictures"]:    {id(wide), id(large)},
			"model_family_tool_tag_id=" + tags["Fast"]: {id(wide), id(large), all[3], all[4]},
			"model_family_tool_tag_id=" + tags["Fast"] + "&media_tool_tag_id=" + tags["Pictures"] + "&resolution=1K": {id(wide)},
			"media_tool_tag_id=" + tags["Pictures"] + "&tool_id=" + m.made["one"].ID:                                 nil,
			"media_tool_tag_id=" + ids.New(): nil,
			"unknown=1&favorited=&tool_id=":  all,
			"start_utc=0001-01-01T00:00:00Z": all,
			"end_utc=0001-01-01t00:00:00z":   nil,
			"type=IMG":                       all[:3],
			"type=AUDIO&sort=oldest":         all[3:],
			"type=TEXT":                      nil,
			"type=&q=&sort=":                 all,
			"q=P":                            {id(square), id(wide), id(large)},
			"q=p%20p&sort=oldest&type=IMG":   {id(square), id(wide), id(large)},
			"q=p%25":                         nil,
		} {
			want = slices.Sorted(slices.Values(want))
			for _, limit := range []int{1, 2, 100} {
				if got := idsOf(m.library(query, limit, func() {})); !slices.Equal(got, want) {
					t.Errorf("%s finds %v, want %v", query, got, want)
				}
			}
		}
		for _, query := range []string{"aspect_ratio=5:4", "aspect_ratio=x", "resolution=8K", "resolution=4K+", "favorited=yes", "favorited=1", "start_utc=yesterday", "start_utc=2026-13-01T00:00:00Z", "end_utc=1",
			"tool_id=x", "media_tool_tag_id=%00", "limit=0", "limit=101", "limit=1e9", "tool_id=" + ids.New() + "&tool_id=" + ids.New(), "cursor=x", "x=%zz",
			"type=img", "type=IMG&type=VID", "sort=best", "q=" + strings.Repeat("x", 201), "q=%00", "q=%ff", "q=" + strings.Repeat("x+", 11)} {
			m.sendRequest("GET", "/api/v2/library?"+query).checkStatus(t, query, 400, "INVALID_REQUEST")
		}
		item := getJSON[wire.LibraryItemDetail](m.service, "/api/v2/library/"+id(wide))
		if !item.Favorited || item.Prompt == nil || *item.Prompt != "p" || !strings.Contains(string(item.Inputs), `"prompt":"p"`) || item.RequestID != wide.RequestID || item.TeamID != nil || *item.Width != 160 {
			t.Errorf("item = %+v", item)
		}
		if item.Sha256 != wide.Outputs[0].Sha256 {
			t.Errorf("sha256 = %s, want the output's %s", item.Sha256, wide.Outputs[0].Sha256)
		}
		if item.Note != nil {
			t.Errorf("note = %q, want none", *item.Note)
		}
		if got := getJSON[wire.LibraryItemDetail](m.service, "/api/v2/library/"+id(text)); got.Type != "TEXT" {
			t.Errorf("a text by its id = %+v", got)
		}
		m.sendRequest("DELETE", "/api/v2/library/"+id(wide)+"/favorite").checkStatus(t, "no favourite", 204, "")
		if got := m.library("favorited=true", 10, func() {}); len(got) != 0 {
			t.Errorf("%d favourites are left", len(got))
		}
		again := m.create(m.body("one", `,"inputs":{"picture":{"kind":"LIBRARY_REF","id":"`+id(wide)+`"},"script":"[{\"output\":{\"echo\":\"picture\"}}]"}`)).checkStatus(t, "a run with a result", 202, "")
		if rec := m.finish("", decodeAnswer[wire.GenerationCreated](t, again).RequestID); len(rec.Outputs) != 1 || rec.Outputs[0].Sha256 != wide.Outputs[0].Sha256 {
			t.Errorf("the echo of a result = %+v", rec)
		}
	})
}

// TestNotes follows what a tool says about a result wherever the result is shown.
func TestNotes(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		const note = `1 of 2 words is unknown: "<b>zeppelin</b>".`
		text, err := json.Marshal(note)
		if err != nil {
			t.Fatal(err)
		}
		run := m.done("", m.body("wide", `,"num_results":2`+steps(`[{"output":{"kind":"png","note":`+string(text)+`}},{"output":{"kind":"png","width":9}}]`)))
		if len(run.Outputs) != 2 || run.Outputs[0].Note == nil || *run.Outputs[0].Note != note || run.Outputs[1].Note != nil {
			t.Fatalf("outputs = %+v", run.Outputs)
		}
		id := run.Outputs[0].ID
		if one := getJSON[wire.LibraryItemDetail](m.service, "/api/v2/library/"+id); one.Note == nil || *one.Note != note {
			t.Errorf("item = %+v", one)
		}
		for _, one := range m.library("", 10, func() {}) {
			if (one.ID == id) != (one.Note != nil) {
				t.Errorf("listed = %+v", one)
			}
		}
		m.sendRequest("DELETE", "/api/v2/library/"+id).checkStatus(t, "delete", 204, "")
		run = getJSON[wire.Generation](m.service, "/api/v2/generate/"+run.RequestID)
		if o := run.Outputs[0]; !o.Expired || o.Note != nil {
			t.Errorf("a deleted result = %+v", o)
		}
	})
}

func TestLibraryPagesUnderInserts(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		var want []string
		for range 3 {
			for _, o := range m.done("", m.body("many", `,"num_results":3`)).Outputs {
				want = append(want, o.ID)
			}
		}
		slices.Sort(want)
		inserted := 0
		got := m.library("", 2, func() {
			if inserted++; inserted < 3 {
				m.done("", m.body("one", ""))
			}
		})
		if !slices.Equal(idsOf(got), want) {
			t.Errorf("the pages have %v, want %v", idsOf(got), want)
		}
		if !slices.IsSortedFunc(got, func(a, b wire.LibraryItem) int { return b.Created.Compare(a.Created) }) {
			t.Error("the newest is not first")
		}
	})
}

func TestLibraryOfTeams(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		bertID, chiefID := m.site.Person("bert@example.com"), m.site.Person("chief@example.com")
		annaID := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		look, _ := m.team("Look", "anna@example.com", "bert@example.com", "chief@example.com")
		sound, _ := m.team("Sound", "anna@example.com")
		foreign, _ := m.team("Foreign")
		if _, err := m.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), look, company.TeamRole{
			Name: "chief", Permissions: []company.Permission{company.ManageTeam, company.UsePlugins}, PluginKinds: []string{company.AnyKind},
		}); err != nil {
			t.Fatal(err)
		}
		m.site.Join(look, "chief@example.com", "chief")
		device := func(id string) *runFixture { return m.as(m.site.Device(id, "blender").Tokens.ID) }
		anna, bert, chief := device(annaID), device(bertID), device(chiefID)
		mine := anna.done("", m.body("one", "")).Outputs[0].ID
		first := anna.done("?team_id="+look, m.body("many", "")).Outputs
		second := anna.done("?team_id="+sound, m.body("one", "")).Outputs[0].ID
		for query, want := range map[string][]string{
			"": {mine}, "team_id=": {mine}, "team_id=" + look: {first[0].ID, first[1].ID}, "team_id=" + sound: {second},
			"team_id=" + look + "," + sound: {first[0].ID, first[1].ID, second}, "team_id=" + look + "%2C" + look: {first[0].ID, first[1].ID},
		} {
			slices.Sort(want)
			if got := idsOf(anna.library(query, 2, func() {})); !slices.Equal(got, want) {
				t.Errorf("%s finds %v, want %v", query, got, want)
			}
		}
		for query, want := range map[string]outcome{
			look + "," + foreign: notMember, foreign + "," + look: notMember, look + "," + ids.New(): notMember, look + ",": malformedTeam, "," + look: malformedTeam, look + ",," + sound: malformedTeam,
			look + ", " + sound: malformedTeam, look + "&team_id=" + sound: severalTeams, annaID: notMember, look + "," + annaID: notMember,
		} {
			a := anna.sendRequest("GET", "/api/v2/library?team_id="+strings.ReplaceAll(query, " ", "%20")).checkStatus(t, query, want.status, want.code)
			if a.readError(t).Details["reason"] != want.reason {
				t.Errorf("%s = %s, want %s", query, a.body, want.reason)
			}
		}
		// Marks are of people.
		in := "?team_id=" + look
		anna.sendRequest("PUT", "/api/v2/library/"+first[0].ID+"/favorite"+in).checkStatus(t, "favourite", 204, "")
		if got := bert.library("favorited=true&team_id="+look, 10, func() {}); len(got) != 0 {
			t.Errorf("another's favourites are %+v", got)
		}
		// Whose they are.
		for _, id := range []string{mine, second, ids.New() + ":01a1de95-0504-7cf9-98e5-dc2c78966646", "x", first[0].ID + "x", first[0].ID[:20] + ":" + second[21:], "%00", "a:b"} {
			for _, x := range []struct{ method, more string }{{"GET", ""}, {"DELETE", ""}, {"PUT", "/favorite"}, {"DELETE", "/favorite"}} {
				bert.sendRequest(x.method, "/api/v2/library/"+id+x.more+in).checkStatus(t, x.method+" "+id, 404, "NOT_FOUND")
			}
		}
		if a := bert.sendRequest("DELETE", "/api/v2/library/"+first[0].ID+in).checkStatus(t, "delete by another", 403, "FORBIDDEN"); a.readError(t).Details["reason"] != "permission" {
			t.Errorf("delete by another = %s", a.body)
		}
		chief.sendRequest("DELETE", "/api/v2/library/"+first[0].ID+in).checkStatus(t, "delete by a manager", 204, "")
		anna.sendRequest("DELETE", "/api/v2/library/"+first[1].ID+in).checkStatus(t, "delete by who made it", 204, "")
		anna.sendRequest("DELETE", "/api/v2/library/"+first[1].ID+in).checkStatus(t, "delete again", 404, "NOT_FOUND")
		if got := anna.library("team_id="+look, 10, func() {}); len(got) != 0 {
			t.Errorf("after all were deleted there are %+v", got)
		}
		rec := getJSON[wire.GenerationList](anna.service, "/api/v2/generations"+in).Data[0]
		if len(rec.Outputs) != 2 || !rec.Outputs[0].Expired || rec.Outputs[0].URL != nil || rec.Outputs[0].ThumbURL != nil {
			t.Errorf("the run of deleted results = %+v", rec.Outputs)
		}
	})
}

// TestLibraryCursors changes cursors in many ways.
func TestLibraryCursors(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		m.done("", m.body("wide", `,"num_results":4`))
		page := getJSON[wire.LibraryList](m.service, "/api/v2/library?limit=2")
		c := *page.NextCursor
		same := string(m.sendRequest("GET", "/api/v2/library?limit=2&cursor="+c).checkStatus(t, "the cursor", 200, "").body)
		ids := func(body string) string {
			var all []string
			for _, i := range decodeAnswer[wire.LibraryList](t, answer{body: []byte(body)}).Data {
				all = append(all, i.ID)
			}
			return strings.Join(all, " ")
		}
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 200 {
			b := []byte(c)
			switch i % 4 {
			case 0:
				b[random.IntN(len(b))] ^= byte(1 + random.IntN(255))
			case 1:
				b = b[:random.IntN(len(b))]
			case 2:
				b = slices.Insert(b, random.IntN(len(b)), byte(random.IntN(256)))
			case 3:
				at := random.IntN(len(b) - 1)
				b[at], b[at+1] = b[at+1], b[at]
			}
			a := m.sendRequest("GET", "/api/v2/library?limit=2&cursor="+url.QueryEscape(string(b)))
			if a.StatusCode == 200 && len(b) > 0 && ids(string(a.body)) == ids(same) || a.StatusCode == 200 && len(b) == 0 {
				continue
			}
			a.checkStatus(t, fmt.Sprintf("%q", b), 400, "INVALID_REQUEST")
		}
		for _, query := range []string{"favorited=true", "resolution=1K", "tool_id=" + m.made["one"].ID, "start_utc=2020-01-01T00:00:00Z"} {
			m.sendRequest("GET", "/api/v2/library?limit=2&cursor="+c+"&"+query).checkStatus(t, "the cursor with "+query, 400, "INVALID_REQUEST")
		}
		bert := m.as(m.addPerson("bert@example.com"))
		bert.sendRequest("GET", "/api/v2/library?limit=2&cursor="+c).checkStatus(t, "another's cursor", 400, "INVALID_REQUEST")
	})
}
