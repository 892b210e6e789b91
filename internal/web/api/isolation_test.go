package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/people/company"
	"atelier/internal/testkit/sample"
	"atelier/internal/web/api"
	"atelier/internal/web/api/wire"
)

// furnish makes things of a tenant, all of them marked with the tag, and gives
// their ids by the names of the parameters in paths.
func (m *runFixture) furnish(tag, query string) map[string][]string {
	m.t.Helper()
	ids := map[string][]string{}
	and := "?"
	if query != "" {
		and = query + "&"
	}
	ids["upload_id"] = []string{m.upload(and+"name="+tag+"-name.png", picture(5, 5)).ID}
	b := decodeAnswer[wire.Board](m.t, m.write("POST", query, `{"name":"`+tag+`-board"}`).checkStatus(m.t, "a board", 201, ""))
	m.write("POST", "/"+b.ID+"/nodes"+query, `{"kind":"TEXT","text":"`+tag+`-note"}`).checkStatus(m.t, "a node", 201, "")
	ids["board_id"] = []string{b.ID}
	f := m.newFlow(query, tag+"-flow")
	ids["flow_id"] = []string{f.ID}
	ids["tool_id"] = []string{f.ID}
	marked := `,"metadata":{"note":"` + tag + `-metadata"},"plugin":"` + tag + `-plugin"`
	for tool, script := range map[string]string{
		"one": `[{"output":{"kind":"png"}}]`, "words": `[{"output":{"kind":"text","text":"` + tag + `-text"}}]`, "wide": `[{"fail":{"message":"` + tag + `-failure"}}]`,
	} {
		text := steps(script)
		rec := m.done(query, m.body(tool, text[:len(text)-1]+`,"prompt":"`+tag+`-prompt"}`+marked))
		ids["request_id"] = append(ids["request_id"], rec.RequestID)
		for _, o := range rec.Outputs {
			ids["library_id"] = append(ids["library_id"], o.ID)
		}
	}
	return ids
}

// credential is what somebody shows, and whose things that opens.
type credential struct {
	name, token string
	sees        []string
}

var parameter = regexp.MustCompile(`\{[a-z_.]+\}`)

// TestNobodySeesOthersThings walks every route that reads with every
// credential, every selector and every id, and looks for marks of others.
func TestNobodySeesOthersThings(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		people := map[string]string{"anna": getJSON[wire.Identity](m.service, "/api/v2/me").User.UID}
		for _, name := range []string{"bert", "cara", "dora"} {
			people[name] = m.site.Person(name + "@example.com")
			m.grant(name+"@example.com", "", 1000)
		}
		c := m.site.Company("TENANT-T-company", company.TeamPlan)
		team := m.site.Team(c, "TENANT-T-team", "member", "cara@example.com")
		d := m.site.Company("TENANT-U-company", company.TeamPlan)
		other := m.site.Team(d, "TENANT-U-team", "member", "dora@example.com")
		m.grant("", team, 1000)
		m.grant("", other, 1000)
		token := func(name, company string) string { _, s := m.site.Token(name+"@example.com", company); return s }
		device := func(name string) string { return m.site.Device(people[name], "blender").Tokens.ID }
		anna, bert, cara, caras, doras := m.token, token("bert", ""), device("cara"), token("cara", c), token("dora", d)
		tenants := []map[string][]string{
			m.as(anna).furnish("TENANT-A", ""), m.as(bert).furnish("TENANT-B", ""), m.as(cara).furnish("TENANT-C", ""),
			m.as(caras).furnish("TENANT-T", "?team_id="+team), m.as(doras).furnish("TENANT-U", "?team_id="+other),
		}
		credentials := []credential{
			{"nobody", "", nil}, {"anna's token", anna, []string{"TENANT-A"}}, {"anna's device", device("anna"), []string{"TENANT-A"}}, {"bert's token", bert, []string{"TENANT-B"}},
			{"cara's device", cara, []string{"TENANT-C", "TENANT-T"}}, {"cara's token", token("cara", ""), []string{"TENANT-C", "TENANT-T"}}, {"cara's company token", caras, []string{"TENANT-T"}}, {"dora's company token", doras, []string{"TENANT-U"}},
		}
		ids := map[string][]string{
			"company_id": {c, d}, "team_id": {team, other}, "uid": slices.Collect(maps.Values(people)), "tool_id": {m.made["one"].ID}, "role": {"member"}, "invitation_id": {ids.New()}, "token_id": {ids.New()},
			"picture": {"x.png"}, "model...": {"one"}, "path...": {"mcp"}, "kind": {"u", "r", "p"}, "name": {"any.png"}, "variant": {"file", "thumb", "preview"},
		}
		for _, x := range tenants {
			for name, some := range x {
				ids[name] = append(ids[name], some...)
			}
			for _, id := range x["library_id"] {
				ids["id"] = append(ids["id"], id[21:])
			}
			ids["id"] = append(ids["id"], x["upload_id"]...)
		}
		ids["video_id"] = ids["request_id"]
		selectors := []string{"", "team_id=" + team, "team_id=" + other, "team_id=" + team + "," + other, "team_id=" + people["bert"], "limit=100&company_id=" + c, "q=tenant&sort=oldest"}
		seen := map[string]int{}
		requests := 0
		for i, who := range credentials {
			for _, rt := range api.Routes() {
				method, path, _ := strings.Cut(rt, " ")
				if method != http.MethodGet || strings.HasPrefix(path, "/media/") && i > 1 { // files look at no credential
					continue
				}
				for _, one := range sample.Of(fill(path, ids), 5) {
					for _, selector := range selectors {
						if selector != "" && !strings.HasPrefix(path, "/api/v2/") && !strings.HasPrefix(path, "/v1/") {
							continue
						}
						requests++
						text := m.peek(who.token, one+"?"+selector)
						for _, tag := range []string{"TENANT-A", "TENANT-B", "TENANT-C", "TENANT-T", "TENANT-U"} {
							if !strings.Contains(text, tag) {
								continue
							}
							if seen[who.name]++; !slices.Contains(who.sees, tag) {
								t.Errorf("%s sees %s at %s?%s: %.600s", who.name, tag, one, selector, text)
							}
						}
					}
				}
			}
		}
		for _, who := range credentials[1:] {
			if seen[who.name] < 4 {
				t.Errorf("%s saw their own things %d times only", who.name, seen[who.name])
			}
		}
		t.Logf("%d requests", requests)
	})
}

// fill puts every id into a path.
func fill(path string, ids map[string][]string) []string {
	name := parameter.FindString(path)
	if name == "" {
		return []string{path}
	}
	var all []string
	for _, id := range ids[strings.Trim(name, "{}")] {
		all = append(all, fill(strings.Replace(path, name, id, 1), ids)...)
	}
	if all == nil {
		panic("no id for " + path)
	}
	return all
}

// peek gives all of an answer, headers too. All runs have ended, and so do
// their streams; those of boards and accounts are left when they have told how
// things stand.
func (m *runFixture) peek(token, path string) string {
	m.t.Helper()
	ctx, stop := context.WithTimeout(m.t.Context(), 20*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, "GET", m.url+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Last-Event-ID", "0")
	res, err := m.client.Do(r)
	if err != nil {
		m.t.Fatal(err)
	}
	defer res.Body.Close()
	if (strings.Contains(path, "/boards/") || strings.HasPrefix(path, "/api/v2/events")) && res.Header.Get("Content-Type") == "text/event-stream" {
		s, all := &stream{t: m.t, from: bufio.NewReader(res.Body)}, fmt.Sprint(res.Header)
		for e, ok := s.next(); ok; e, ok = s.next() {
			if all += e.data; e.name == "board" || e.name == "balance" {
				break
			}
		}
		return all
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		m.t.Fatalf("%s: %v", path, err)
	}
	if res.StatusCode >= 500 {
		m.t.Errorf("%s = %d %s", path, res.StatusCode, b)
	}
	return fmt.Sprint(res.Header, string(b))
}
