package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"atelier/internal/base/ids"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/web/api/wire"
)

// caller is somebody who is signed in on a device.
type caller struct {
	*service
	uid, bearer string
}

func (s *service) signedIn(email string) caller {
	s.t.Helper()
	uid := s.site.Person(email)
	return caller{s, uid, s.site.Device(uid, "blender").Tokens.ID}
}

// do sends a request and wants a status.
func (c caller) do(status int, method, path, body string) answer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+"/api/v2"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.bearer)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if res.StatusCode != status {
		c.t.Fatalf("%s %s %s = %d %s, want %d", method, path, body, res.StatusCode, b, status)
	}
	return answer{res, b}
}

// as does the request and reads the answer.
func as[T any](c caller, status int, method, path, body string) (v T) {
	c.t.Helper()
	if err := json.Unmarshal(c.do(status, method, path, body).body, &v); err != nil {
		c.t.Fatal(err)
	}
	return v
}

// invalid wants the request refused because of these fields.
func (c caller) invalid(method, path, body string, fields ...string) {
	c.t.Helper()
	var got []string
	for _, f := range c.do(400, method, path, body).readError(c.t).Details["fields"].([]any) {
		got = append(got, f.(map[string]any)["path"].(string))
	}
	slices.Sort(got)
	if !slices.Equal(got, fields) {
		c.t.Errorf("%s %s %s: fields = %v, want %v", method, path, body, got, fields)
	}
}

// TestCompaniesOverHTTP goes through every route that there is about companies
// once; the client holds the answers against the document.
func TestCompaniesOverHTTP(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		boss, bert := s.signedIn("boss@fox.example"), s.signedIn("bert@example.com")
		id := s.site.Company("Fox", company.TeamPlan)
		s.site.Admit(id, "boss@fox.example", company.CompanyPermissions...)
		at := "/companies/" + id

		mine := as[wire.CompanyList](boss, 200, "GET", "/companies", "")
		if len(mine.Data) != 1 || mine.Data[0].ID != id || mine.Data[0].TimeZone != "UTC" || mine.Data[0].Role != "admin" || len(mine.Data[0].Permissions) != len(company.CompanyPermissions) {
			t.Errorf("companies = %+v", mine)
		}
		if none := as[wire.CompanyList](bert, 200, "GET", "/companies", ""); none.Data == nil || len(none.Data) != 0 {
			t.Errorf("companies of somebody who is in none = %+v", none)
		}
		if c := as[wire.Company](boss, 200, "PATCH", at, `{"name":"Hound"}`); c.Name != "Hound" {
			t.Errorf("renamed = %+v", c)
		}
		if c := as[wire.Company](boss, 200, "PATCH", at, `{"time_zone":"Asia/Tokyo"}`); c.TimeZone != "Asia/Tokyo" || c.Name != "Hound" {
			t.Errorf("moved = %+v", c)
		}
		if c := as[wire.Company](boss, 200, "GET", at, ""); c.Name != "Hound" || c.Plan != "TEAM" || c.TimeZone != "Asia/Tokyo" {
			t.Errorf("company = %+v", c)
		}
		if mine = as[wire.CompanyList](boss, 200, "GET", "/companies", ""); mine.Data[0].TimeZone != "Asia/Tokyo" {
			t.Errorf("companies = %+v", mine)
		}

		role := as[wire.CompanyRole](boss, 200, "PUT", at+"/roles/clerk", `{"permissions":["MANAGE_TEAMS","MANAGE_BILLING","MANAGE_TEAMS"]}`)
		if role.Name != "clerk" || !slices.Equal(role.Permissions, []wire.CompanyPermission{"MANAGE_BILLING", "MANAGE_TEAMS"}) {
			t.Errorf("role = %+v", role)
		}
		if all := as[wire.CompanyRoleList](boss, 200, "GET", at+"/roles", ""); len(all.Data) != 3 || all.HasMore || all.NextCursor != nil {
			t.Errorf("roles = %+v", all)
		}
		boss.do(404, "PUT", at+"/members/"+bert.uid, `{"role":"clerk"}`) // people come in by their own will
		s.site.Admit(id, "bert@example.com")
		if m := as[wire.Member](boss, 200, "PUT", at+"/members/"+bert.uid, `{"role":"clerk"}`); m.UID != bert.uid || m.Role != "clerk" || m.Email != "bert@example.com" {
			t.Errorf("member = %+v", m)
		}
		if all := as[wire.MemberList](boss, 200, "GET", at+"/members", ""); len(all.Data) != 2 {
			t.Errorf("members = %+v", all)
		}

		team := as[wire.Team](bert, 201, "POST", at+"/teams", `{"name":"Film"}`)
		in := "/teams/" + team.ID
		if got := as[wire.Team](boss, 200, "GET", in, ""); got != team || got.CompanyID != id {
			t.Errorf("team = %+v, want %+v", got, team)
		}
		if got := as[wire.Team](bert, 200, "PATCH", in, `{"name":"Print"}`); got.Name != "Print" {
			t.Errorf("renamed = %+v", got)
		}
		if all := as[wire.TeamList](boss, 200, "GET", at+"/teams", ""); len(all.Data) != 1 {
			t.Errorf("teams = %+v", all)
		}
		tr := as[wire.TeamRole](bert, 200, "PUT", in+"/roles/guest",
			`{"permissions":{"USE_PLUGINS":true,"GENERATE":false},"tools_blocked":["abcdefghij0123456789"],"plugin_kinds":["krita"],"spend":{"tokens":5,"window_seconds":60}}`)
		if !tr.Permissions["USE_PLUGINS"] || tr.Permissions["GENERATE"] || len(tr.Permissions) != 3 || tr.Spend.WindowSeconds != 60 || tr.ToolsAllowed == nil || tr.ToolsBlocked[0] != "abcdefghij0123456789" {
			t.Errorf("role = %+v", tr)
		}
		if tr = as[wire.TeamRole](bert, 200, "PUT", in+"/roles/guest", `{"permissions":{},"spend":null}`); tr.Spend != nil || tr.PluginKinds[0] != "*" || len(tr.ToolsBlocked) != 0 {
			t.Errorf("replaced = %+v", tr)
		}
		if all := as[wire.TeamRoleList](bert, 200, "GET", in+"/roles", ""); len(all.Data) != 3 {
			t.Errorf("roles = %+v", all)
		}
		if m := as[wire.TeamMember](bert, 200, "PUT", in+"/members/"+boss.uid, `{"role":"guest"}`); m.UID != boss.uid || m.Role != "guest" || m.How != "added" {
			t.Errorf("member = %+v", m)
		}
		if all := as[wire.TeamMemberList](bert, 200, "GET", in+"/members", ""); len(all.Data) != 1 {
			t.Errorf("members = %+v", all)
		}
		bert.do(204, "DELETE", in+"/members/"+boss.uid, "")
		bert.do(204, "DELETE", in+"/roles/guest", "")

		d := as[wire.Domain](boss, 201, "POST", at+"/domains", `{"domain":"Fox.example","team_id":"`+team.ID+`"}`)
		if d.Domain != "fox.example" || d.Record != "_atelier.fox.example" || d.Proof == "" || d.Verified != nil || *d.TeamID != team.ID || *d.TeamRole != "member" {
			t.Errorf("domain = %+v", d)
		}
		if _, err := s.site.Companies.Domains.VerifyDomain(t.Context(), principal.Operator(), id, "fox.example", true); err != nil {
			t.Fatal(err)
		}
		if d := as[wire.Domain](boss, 200, "POST", at+"/domains/fox.example/verify", ""); d.Verified == nil {
			t.Errorf("verified = %+v", d)
		}
		if all := as[wire.DomainList](boss, 200, "GET", at+"/domains", ""); len(all.Data) != 1 {
			t.Errorf("domains = %+v", all)
		}
		boss.do(204, "DELETE", at+"/domains/fox.example", "")

		bert.do(204, "DELETE", in, "")
		bert.do(204, "DELETE", at+"/members/"+bert.uid, "")
		boss.do(204, "DELETE", at+"/roles/clerk", "")
		bert.do(404, "GET", at, "")
		if p := boss.do(403, "DELETE", at+"/members/"+boss.uid, "").readError(t); p.Details["reason"] != "last_admin" {
			t.Errorf("the last admin leaves: %+v", p)
		}

		log := as[wire.AuditList](boss, 200, "GET", at+"/audit?limit=100", "")
		var acts []string
		for _, r := range log.Data {
			acts = append(acts, r.Act)
		}
		slices.Reverse(acts)
		want := []string{
			"company.created", "company.member_set", "company.changed", "company.changed", "company.role_set", "company.member_set", "company.member_set", "team.created", "team.changed",
			"team.role_set", "team.role_set", "team.member_set", "team.member_removed", "team.role_deleted", "domain.added", "domain.verified",
			"domain.removed", "team.removed", "company.member_removed", "company.role_deleted",
		}
		if !slices.Equal(acts, want) {
			t.Errorf("log = %v, want %v", acts, want)
		}
		if first := log.Data[len(log.Data)-1]; first.ActorID != nil || first.Address != nil || first.Details["name"] != "Fox" {
			t.Errorf("the operator's act = %+v", first)
		}
	})
}

func TestInvitationsOverHTTP(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		boss, bert, carl := s.signedIn("boss@example.com"), s.signedIn("bert@example.com"), s.signedIn("carl@example.com")
		id := s.site.Company("Fox", company.TeamPlan)
		s.site.Admit(id, "boss@example.com", company.CompanyPermissions...)
		team := s.site.Team(id, "Film", "member")
		at := "/companies/" + id + "/invitations"

		link := as[wire.Invitation](boss, 201, "POST", at, `{"team_id":"`+team+`","uses":2,"lifetime_seconds":3600}`)
		if link.URL == nil || link.Email != nil || *link.TeamID != team || link.UsesLeft != 2 || *link.InvitedBy != boss.uid || link.Expires.Sub(link.Created).Seconds() != 3600 {
			t.Fatalf("invitation = %+v", link)
		}
		toBert := as[wire.Invitation](boss, 201, "POST", at, `{"email":"bert@example.com"}`)
		if toBert.URL != nil || *toBert.Email != "bert@example.com" || toBert.TeamID != nil || toBert.TeamRole != nil {
			t.Errorf("invitation = %+v", toBert)
		}
		for _, i := range as[wire.InvitationList](boss, 200, "GET", at, "").Data {
			if i.URL != nil {
				t.Errorf("the list shows the link %s", *i.URL)
			}
		}

		offers := as[wire.ReceivedInvitationList](bert, 200, "GET", "/invitations", "")
		if len(offers.Data) != 1 || offers.Data[0].ID != toBert.ID || offers.Data[0].CompanyName != "Fox" || offers.Data[0].TeamName != nil {
			t.Errorf("offers = %+v", offers)
		}
		if none := as[wire.ReceivedInvitationList](carl, 200, "GET", "/invitations", ""); len(none.Data) != 0 {
			t.Errorf("offers for somebody else = %+v", none)
		}
		carl.do(404, "POST", "/invitations/"+toBert.ID+"/accept", "")
		carl.do(404, "POST", "/invitations/"+link.ID+"/accept", "") // needs its secret
		bert.do(204, "POST", "/invitations/"+toBert.ID+"/accept", "")
		as[wire.Company](bert, 200, "GET", "/companies/"+id, "")

		u, err := url.Parse(*link.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := json.Marshal(map[string]string{"token": u.Query().Get("token")})
		carl.do(204, "POST", "/invitations/accept", string(body))
		as[wire.Team](carl, 200, "GET", "/teams/"+team, "")
		carl.invalid("POST", "/invitations/accept", `{}`, "token")
		carl.do(404, "POST", "/invitations/accept", `{"token":"x"}`)

		carl.do(403, "DELETE", "/invitations/"+link.ID, "")
		stranger := s.signedIn("dora@example.com")
		foreign := stranger.do(404, "DELETE", "/invitations/"+link.ID, "").readError(t)
		never := stranger.do(404, "DELETE", "/invitations/"+ids.New(), "").readError(t)
		if foreign.Message != never.Message {
			t.Errorf("%q and %q tell apart what is and what is not", foreign.Message, never.Message)
		}
		boss.do(204, "DELETE", "/invitations/"+link.ID, "")
		stranger.do(404, "POST", "/invitations/accept", string(body))
	})
}

func TestCompanyBodies(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		boss := s.signedIn("boss@example.com")
		id := s.site.Company("Fox", company.TeamPlan)
		s.site.Admit(id, "boss@example.com", company.CompanyPermissions...)
		team := s.site.Team(id, "Film", "member")
		at, in := "/companies/"+id, "/teams/"+team
		for _, c := range []struct {
			method, path, body string
			fields             []string
		}{
			{"PATCH", at, `{}`, []string{"name", "time_zone"}},
			{"PATCH", at, `{"name":null}`, []string{"name", "time_zone"}},
			{"PATCH", at, `{"name":" ","time_zone":"Mars/Olympus"}`, []string{"name", "time_zone"}},
			{"PATCH", at, `{"time_zone":""}`, []string{"time_zone"}},
			{"PATCH", at, `{"time_zone":"Local"}`, []string{"time_zone"}},
			{"PATCH", at, `{"time_zone":"../etc/passwd"}`, []string{"time_zone"}},
			{"PUT", at + "/members/" + boss.uid, `{}`, []string{"role"}},
			{"PUT", at + "/roles/clerk", `{}`, []string{"permissions"}},
			{"PUT", at + "/roles/clerk", `{"permissions":null}`, []string{"permissions"}},
			{"PUT", at + "/roles/clerk", `{"permissions":["FLY"]}`, []string{"permissions"}},
			{"PUT", at + "/roles/Clerk!", `{"permissions":[]}`, []string{"name"}},
			{"POST", at + "/teams", `{"name":" x"}`, []string{"name"}},
			{"PATCH", in, `{}`, []string{"name"}},
			{"PUT", in + "/roles/guest", `{}`, []string{"permissions"}},
			{"PUT", in + "/roles/guest", `{"permissions":{"FLY":false}}`, []string{"permissions"}},
			{"PUT", in + "/roles/guest", `{"permissions":{},"tools_allowed":["x"],"tools_blocked":["x"],"plugin_kinds":["X"],"spend":{"tokens":1,"window_seconds":9223372036854775807}}`,
				[]string{"plugin_kinds", "spend", "tools_allowed", "tools_blocked"}},
			{"POST", at + "/domains", `{}`, []string{"domain"}},
			{"POST", at + "/domains", `{"domain":"gmail.com"}`, []string{"domain"}},
			{"POST", at + "/domains", `{"domain":"fox.example","team_role":"member"}`, []string{"team_role"}},
			{"POST", at + "/invitations", `{"email":""}`, []string{"email"}},
			{"POST", at + "/invitations", `{"email":"x","uses":0,"lifetime_seconds":0}`, []string{"email", "lifetime_seconds", "uses"}},
			{"POST", at + "/invitations", `{"lifetime_seconds":9223372036854775807}`, []string{"lifetime_seconds"}},
			{"POST", at + "/invitations", `{"team_id":"` + ids.New() + `"}`, []string{"team_id"}},
		} {
			boss.invalid(c.method, c.path, c.body, c.fields...)
		}
		for _, path := range []string{"/companies/x", "/companies/%00", "/teams/x", "/teams/%00", "/companies/x/members", "/companies/x/audit"} {
			boss.do(404, "GET", path, "")
		}
		for _, path := range []string{at + "/members/x", at + "/members/%00", at + "/roles/%00", at + "/domains/%00", in + "/members/%00", in + "/roles/%00", "/invitations/%00"} {
			boss.do(404, "DELETE", path, "")
		}
	})
}

// TestCompanyListsPage: each list gives everything once, and its cursors are
// good for nobody and nothing else.
func TestCompanyListsPage(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		boss, other := s.signedIn("boss@example.com"), s.signedIn("other@example.com")
		id, second := s.site.Company("Fox", company.TeamPlan), s.site.Company("Hound", company.TeamPlan)
		for _, c := range []string{id, second} {
			s.site.Admit(c, "boss@example.com", company.CompanyPermissions...)
			s.site.Admit(c, "other@example.com", company.CompanyPermissions...)
		}
		team := s.site.Team(id, "Film", "member", "boss@example.com", "other@example.com")
		for range 2 {
			s.site.Team(id, "Film", "member")
			boss.do(201, "POST", "/companies/"+id+"/invitations", `{}`)
		}
		boss.do(201, "POST", "/companies/"+id+"/invitations", `{}`)
		type list struct {
			Data       []json.RawMessage
			HasMore    bool    `json:"has_more"`
			NextCursor *string `json:"next_cursor"`
		}
		for path, want := range map[string]int{
			"/companies/" + id + "/members": 2, "/companies/" + id + "/teams": 3, "/companies/" + id + "/invitations": 3,
			"/companies/" + id + "/audit": 0, "/teams/" + team + "/members": 2,
		} {
			whole := as[list](boss, 200, "GET", path+"?limit=100", "")
			if want > 0 && len(whole.Data) != want || len(whole.Data) < 2 {
				t.Errorf("%s has %d, want %d", path, len(whole.Data), want)
			}
			var got []json.RawMessage
			next := ""
			for {
				page := as[list](boss, 200, "GET", path+"?limit=1&cursor="+next, "")
				got = append(got, page.Data...)
				if page.HasMore != (page.NextCursor != nil) {
					t.Fatalf("%s: has_more = %v, next_cursor = %v", path, page.HasMore, page.NextCursor)
				}
				if !page.HasMore || len(got) > len(whole.Data) {
					break
				}
				if next == "" {
					other.invalid("GET", path+"?cursor="+*page.NextCursor, "", "cursor")
					if elsewhere := strings.Replace(path, id, second, 1); elsewhere != path {
						boss.invalid("GET", elsewhere+"?cursor="+*page.NextCursor, "", "cursor")
					}
				}
				next = *page.NextCursor
			}
			if !slices.EqualFunc(got, whole.Data, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				t.Errorf("%s in pages = %s, want %s", path, got, whole.Data)
			}
		}
	})
}
