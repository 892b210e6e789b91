package api_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/api/wire"
)

// TestLostPermissionsCountAtOnce takes permissions of a company away one by one:
// the next call that needs it is refused, and all that do not need it go on.
func TestLostPermissionsCountAtOnce(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		o := newCompanyFixture(m)
		o.email = "clerk@example.com"
		who := m.signedIn(o.email)
		m.site.Admit(o.company, o.email)
		may := func(perms []company.Permission) {
			t.Helper()
			_, err := m.site.Companies.Roles.SetRole(t.Context(), principal.Operator(), o.company, company.Role{Name: "clerk", Permissions: perms})
			o.must(err)
		}
		may(company.CompanyPermissions)
		_, err := m.site.Companies.Members.SetMember(t.Context(), principal.Operator(), o.company, who.uid, "clerk")
		o.must(err)
		elsewhere := m.site.Company("Elsewhere", company.TeamPlan)
		m.site.Admit(elsewhere, o.email, company.CompanyPermissions...)
		for _, lost := range company.CompanyPermissions {
			left := slices.DeleteFunc(slices.Clone(company.CompanyPermissions), func(p company.Permission) bool { return p == lost })
			for _, e := range errands {
				if !served(e.route) || !strings.HasPrefix(e.route, "GET ") {
					continue
				}
				may(company.CompanyPermissions)
				if got, a := o.try(who.bearer, e.route, "", e.ready); got.status != e.want {
					t.Errorf("%s before = %v: %s", e.route, got, a.body)
				}
				may(left)
				want := outcome{status: e.want}
				if e.by == lost {
					want = noPermission
				}
				if got, a := o.try(who.bearer, e.route, "", e.ready); got != want {
					t.Errorf("%s without %s = %v, want %v: %s", e.route, lost, got, want, a.body)
				}
			}
			who.do(200, "GET", "/me", "")
			who.do(200, "GET", "/tools", "")
			who.do(200, "GET", "/companies/"+elsewhere+"/members", "")
		}
	})
}

// said is what a role says, or was found to say, between two ticks of a clock.
type said struct {
	begin, end int64
	may        bool
}

// TestAppsWhileTheirRoleChanges lets a role let apps in and out during many
// calls: each answer is what the role said at some instant of the call.
func TestAppsWhileTheirRoleChanges(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		who := m.signedIn("carl@example.com")
		team := m.site.Team(m.site.Company("Fox", company.TeamPlan), "Film", "artist", "carl@example.com")
		var clock atomic.Int64
		var writes []said
		set := func(may bool) {
			w := said{begin: clock.Add(1), may: may}
			if _, err := m.site.Companies.TeamRoles.SetTeamRolePermissions(t.Context(), principal.Operator(), team, "artist", map[company.Permission]bool{company.UsePlugins: may}); err != nil {
				t.Error(err)
			}
			w.end = clock.Add(1)
			writes = append(writes, w)
		}
		set(true)

		const callers, calls = 4, 100
		read := make([][]said, callers) // what each call was told
		turn := make(chan struct{}, callers*calls)
		var group sync.WaitGroup
		for n := range callers {
			group.Go(func() {
				for i := range calls {
					r, err := http.NewRequestWithContext(t.Context(), "GET", m.url+"/api/v2/tools?limit=1&team_id="+team, nil)
					if err != nil {
						t.Error(err)
						return
					}
					r.Header.Set("Authorization", "Bearer "+who.bearer)
					one := said{begin: clock.Add(1)}
					res, err := m.client.Do(r)
					one.end = clock.Add(1)
					if err != nil {
						t.Error(err)
						return
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if one.may = res.StatusCode == http.StatusOK; !one.may && res.StatusCode != http.StatusForbidden {
						t.Errorf("call = %d", res.StatusCode)
					}
					read[n] = append(read[n], one)
					if i%5 == n {
						turn <- struct{}{}
					}
				}
			})
		}
		var changing sync.WaitGroup
		changing.Go(func() {
			may := false
			for range turn {
				set(may)
				may = !may
			}
		})
		group.Wait()
		close(turn)
		changing.Wait()

		seen := map[bool]int{}
		for _, one := range slices.Concat(read...) {
			seen[one.may]++
			possible := map[bool]bool{}
			for _, w := range writes { // in order
				if w.end < one.begin {
					clear(possible)
				}
				if w.begin < one.end {
					possible[w.may] = true
				}
			}
			if !possible[one.may] {
				t.Errorf("a call from %d to %d was told %v, which the role did not say then", one.begin, one.end, one.may)
			}
		}
		if seen[true]+seen[false] != callers*calls || seen[true] < 10 || seen[false] < 10 {
			t.Errorf("the calls were told %v", seen)
		}
	})
}

// TestTokenMadeForAMember: somebody else's token in one's name is known, can be
// ended, and reaches nothing of one's own.
func TestTokenMadeForAMember(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		o := newCompanyFixture(m)
		member := m.signedIn("member@example.com")
		m.site.Join(o.team, "member@example.com", "member")
		m.grant("member@example.com", "", 100)
		mine := as[wire.AccessToken](member, 201, "POST", "/access-tokens", `{"name":"my own"}`)
		made := as[wire.AccessToken](o.boss, 201, "POST", "/companies/"+o.company+"/access-tokens", `{"name":"farm","uid":"`+member.uid+`"}`)
		if made.UID != member.uid || *made.CompanyID != o.company || made.Token == nil {
			t.Fatalf("made = %+v", made)
		}
		var told []person.Notice
		o.must(m.db.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
			told, err = person.Notices(t.Context(), tx, member.uid, 10)
			return err
		}))
		// The other is of the device they signed in on.
		if len(told) != 2 || told[0].Kind != "token" || !strings.Contains(told[0].Text, `"farm"`) {
			t.Errorf("notices = %+v", told)
		}
		list := as[wire.AccessTokenList](member, 200, "GET", "/access-tokens", "")
		if len(list.Data) != 2 || list.Data[0].ID != made.ID || *list.Data[0].CompanyID != o.company || list.Data[1].ID != mine.ID || list.Data[1].CompanyID != nil {
			t.Errorf("the member's tokens = %+v", list)
		}
		for _, one := range list.Data {
			if one.Token != nil {
				t.Errorf("the list shows the value of %s", one.Name)
			}
		}
		if theirs := as[wire.AccessTokenList](o.boss, 200, "GET", "/companies/"+o.company+"/access-tokens", ""); len(theirs.Data) != 1 || theirs.Data[0].ID != made.ID {
			t.Errorf("the company's tokens = %+v", theirs)
		}

		token := *made.Token
		for route, want := range map[string]outcome{
			"GET /api/v2/generations": teamRequired, "GET /api/v2/library": teamRequired, "GET /api/v2/uploads": teamRequired, "GET /api/v2/webhook-secret": teamRequired,
			"POST /api/v2/generate": teamRequired, "POST /api/v2/me/top-up": wrongKind, "GET /api/v2/access-tokens": wrongKind, "GET /api/v2/companies": wrongKind,
			"DELETE /api/v2/access-tokens/" + mine.ID: wrongKind,
		} {
			if got, a := o.try(token, route, "", func(o *companyFixture) ([]string, string) {
				if strings.HasPrefix(route, "POST /api/v2/generate") {
					return nil, o.body("one", "")
				}
				return nil, ""
			}); got != want {
				t.Errorf("%s = %v, want %v: %s", route, got, want, a.body)
			}
		}
		script := m.as(token)
		id := script.run(o.inTeam(), m.body("one", ""))
		var kind, credential, whose string
		o.must(m.db.QueryRow(t.Context(), `SELECT credential, credential_id, person_id FROM run WHERE id = $1`, id).Scan(&kind, &credential, &whose))
		if kind != "company_token" || credential != made.ID || whose != member.uid {
			t.Errorf("the run was made by %s %s for %s", kind, credential, whose)
		}

		member.do(403, "POST", "/access-tokens/"+made.ID+"/regenerate", "") // its value is the company's
		member.do(204, "DELETE", "/access-tokens/"+made.ID, "")
		script.sendRequest("GET", "/api/v2/me").checkStatus(t, "after its end", 401, "UNAUTHENTICATED")
		o.boss.do(404, "DELETE", "/companies/"+o.company+"/access-tokens/"+made.ID, "")
		log := as[wire.AuditList](o.boss, 200, "GET", "/companies/"+o.company+"/audit?act=token", "").Data
		want := []struct {
			act   audit.Act
			actor string
		}{{audit.TokenDeleted, member.uid}, {audit.TokenFirstUsed, member.uid}, {audit.TokenCreated, o.boss.uid}}
		if len(log) != len(want) {
			t.Fatalf("log = %+v", log)
		}
		for i, r := range log {
			if r.Act != string(want[i].act) || *r.PersonID != member.uid || r.Details["token"] != made.ID || r.Act != string(audit.TokenFirstUsed) && *r.ActorID != want[i].actor {
				t.Errorf("record = %+v, want %v", r, want[i])
			}
		}
	})
}

// TestExMembers: nothing that somebody kept works once they were put out of the
// company, and their personal account goes on.
func TestExMembers(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		o := newCompanyFixture(m)
		m.work()
		member := m.signedIn("member@example.com")
		m.site.Join(o.team, "member@example.com", "member")
		_, token := m.site.Token("member@example.com", o.company)
		device, script := m.as(member.bearer), m.as(token)
		file := *script.done(o.inTeam(), m.body("one", "")).Outputs[0].URL
		upload := device.upload(o.inTeam(), picture(3, 3)).URL
		step, release := hold(t)
		defer release()
		a := device.send("POST", "/api/v2/generate"+o.inTeam(), "application/json", strings.NewReader(m.body("one", steps("["+step+"]"))))
		run := decodeAnswer[wire.GenerationCreated](t, a)
		status := strings.TrimPrefix(run.StatusURL, "https://atelier.example")
		streams := []*stream{device.follow(run.RequestID, o.inTeam(), ""), script.follow(run.RequestID, o.inTeam(), "")}
		for _, s := range streams {
			if e, ok := s.next(); !ok || e.name != "status" {
				t.Fatalf("the stream begins with %+v", e)
			}
		}
		for _, who := range []*runFixture{device, script} {
			who.sendRequest("GET", status).checkStatus(t, "the status of a member's run", 200, "")
		}
		for _, address := range []string{file, upload} {
			if a := m.fetch("GET", address); a.StatusCode != 200 {
				t.Errorf("a member's file = %d %s", a.StatusCode, a.body)
			}
		}

		o.boss.do(204, "DELETE", "/companies/"+o.company+"/members/"+member.uid, "")
		for _, path := range []string{status, "/api/v2/generations" + o.inTeam(), "/api/v2/library" + o.inTeam(), "/api/v2/uploads" + o.inTeam(), "/api/v2/tools" + o.inTeam()} {
			if got := outcomeOf(t, device.sendRequest("GET", path)); got != notMember {
				t.Errorf("%s by app = %v", path, got)
			}
			if got := outcomeOf(t, script.sendRequest("GET", path)); got != noCredential {
				t.Errorf("%s by token = %v", path, got)
			}
		}
		for _, address := range []string{file, upload} {
			if a := m.fetch("GET", address); a.StatusCode != 403 {
				t.Errorf("an ex-member's file = %d", a.StatusCode)
			}
		}
		member.do(404, "GET", "/companies/"+o.company, "")
		member.do(404, "GET", "/teams/"+o.team, "")
		begin := time.Now()
		for _, s := range streams {
			if all := names(s.rest()); strings.Contains(all, "done") {
				t.Errorf("an ex-member's stream went on with %s", all)
			}
		}
		watch.Took(t, "the streams", time.Since(begin), 15*time.Second)
		device.sendRequest("GET", "/api/v2/library").checkStatus(t, "the personal account", 200, "")
	})
}

// TestBlockedTools: a tool that a role may not use does not exist, for exactly
// those with the role, from the next request on.
func TestBlockedTools(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		f := files("a.yaml", manifest("A", "tags: [fast]"), "b.yaml", manifest("B", "tags: [fast]"), "c.yaml", manifest("C", "tags: [fast]"), "d.yaml", manifest("D", ""),
			"tags.yaml", "fast: {type: MODEL_FAMILY, label: Fast}\n", "kits.yaml", "k: {label: Both, default: b, tools: [{tool: a}, {tool: b}]}\nl: {label: Only, tools: [{tool: b}]}")
		m.setCatalog(f)
		m.made = map[string]wire.ToolDetail{}
		for _, one := range getJSON[wire.ToolList](m.service, "/api/v2/tools").Data {
			m.made[one.Name] = getJSON[wire.ToolDetail](m.service, "/api/v2/tools/"+one.ID)
		}
		blocked := m.made["B"].ID
		fast := getJSON[wire.ToolTagList](m.service, "/api/v2/tool-tags").Data[0].ID
		m.site.Person("bert@example.com")
		fox := m.site.Company("Fox", company.TeamPlan)
		team := m.site.Team(fox, "Film", "artist", "anna@example.com")
		m.site.Join(team, "bert@example.com", "member")
		second := m.site.Team(fox, "Print", "artist", "anna@example.com")
		for _, id := range []string{team, second} {
			m.grant("", id, 100)
		}
		_, annas := m.site.Token("anna@example.com", fox)
		_, berts := m.site.Token("bert@example.com", fox)
		anna, bert := m.as(annas), m.as(berts)
		uid := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		device := m.as(m.site.Device(uid, "blender").Tokens.ID)
		role := func(blocked ...string) {
			t.Helper()
			if _, err := m.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), team, company.TeamRole{
				Name: "artist", Permissions: company.TeamPermissions, PluginKinds: []string{company.AnyKind}, ToolsBlocked: blocked,
			}); err != nil {
				t.Fatal(err)
			}
		}
		in := "?team_id=" + team
		check := func(what string, who *runFixture, query string, sees bool) {
			t.Helper()
			want, status := []string{"A", "C", "D"}, 404
			if sees {
				want, status = []string{"A", "B", "C", "D"}, 200
			}
			and := strings.Replace(query, "?", "&", 1)
			if got := who.pageThrough("limit=1"+and, func(int) {}); !slices.Equal(got, want) {
				t.Errorf("%s lists %v, want %v", what, got, want)
			}
			if got := who.pageThrough("limit=1&tool_tag="+fast+and, func(int) {}); !slices.Equal(got, want[:len(want)-1]) {
				t.Errorf("%s finds by tag %v", what, got)
			}
			kits := getJSON[wire.KitList](who.service, "/api/v2/kits"+query)
			for _, k := range kits.Data {
				for _, one := range k.Tools {
					if one.Tool.ID == blocked && !sees {
						t.Errorf("%s: the kit %s has the tool", what, k.Label)
					}
				}
				if k.DefaultToolID == blocked && !sees {
					t.Errorf("%s: the kit %s begins with the tool", what, k.Label)
				}
			}
			if want := map[bool]int{true: 2, false: 1}[sees]; len(kits.Data) != want {
				t.Errorf("%s: %d kits, want %d", what, len(kits.Data), want)
			}
			if a := who.sendRequest("GET", "/api/v2/tools/"+blocked+query); a.StatusCode != status {
				t.Errorf("%s: detail = %d, want %d", what, a.StatusCode, status)
			}
			body := m.body("B", "")
			post := func(path string) answer {
				return who.send("POST", path+query, "application/json", strings.NewReader(body))
			}
			preview, create := post("/api/v2/generate/preview-cost"), post("/api/v2/generate")
			if sees {
				preview.checkStatus(t, what+": price", 200, "")
				create.checkStatus(t, what+": create", 202, "")
				return
			}
			preview.checkStatus(t, what+": price", 404, "NOT_FOUND")
			create.checkStatus(t, what+": create", 404, "NOT_FOUND")
			never := who.sendRequest("GET", "/api/v2/tools/abcdefghij0123456789"+query)
			if a := who.sendRequest("GET", "/api/v2/tools/"+blocked+query); a.readError(t).Message != never.readError(t).Message {
				t.Errorf("%s: a blocked tool answers %s, one that never was %s", what, a.body, never.body)
			}
		}
		tag := func(who *runFixture, path string) (string, string) {
			a := who.sendRequest("GET", path)
			return a.Header.Get("ETag"), string(a.body)
		}
		paths := []string{"/api/v2/tools" + in, "/api/v2/tools" + in + "&tool_tag=" + fast, "/api/v2/kits" + in}

		for round := range 3 { // so that nothing that is kept comes back
			role()
			check("anna, nothing blocked", anna, in, true)
			open := map[string]string{}
			for _, path := range paths {
				open[path], _ = tag(anna, path)
			}
			next := *getJSON[wire.ToolList](anna.service, "/api/v2/tools"+in+"&limit=1").NextCursor

			role(blocked)
			check("anna", anna, in, false)
			check("anna by app", device, in, false)
			check("bert, who has another role", bert, in, true)
			check("anna in another team", anna, "?team_id="+second, true)
			check("anna herself", m, "", true)
			for _, path := range paths {
				for who, sees := range map[*runFixture]bool{anna: false, bert: true} {
					a := who.sendRequest("GET", path, "If-None-Match", open[path])
					if want := map[bool]int{true: 304, false: 200}[sees]; a.StatusCode != want || strings.Contains(string(a.body), blocked) {
						t.Errorf("%s with the tag of before = %d %s, want %d", path, a.StatusCode, a.body, want)
					}
				}
			}
			// A cursor of before goes on in what is there now, and is nobody else's.
			rest := getJSON[wire.ToolList](anna.service, "/api/v2/tools"+in+"&limit=1&cursor="+next)
			if rest.Data[0].Name != "C" {
				t.Errorf("round %d: the page after A is %+v", round, rest.Data)
			}
			bert.sendRequest("GET", "/api/v2/tools"+in+"&limit=1&cursor="+next).checkStatus(t, "another's cursor", 400, "INVALID_REQUEST")

			// Another role, and the person who has it now.
			m.site.Join(team, "anna@example.com", "member")
			m.site.Join(team, "bert@example.com", "artist")
			check("anna with another role", anna, in, true)
			check("bert with the role", bert, in, false)
			m.site.Join(team, "anna@example.com", "artist")
			m.site.Join(team, "bert@example.com", "member")
		}
		// What was made before stays.
		role()
		id := anna.run(in, m.body("B", ""))
		role(blocked)
		anna.sendRequest("GET", "/api/v2/generate/"+id+in).checkStatus(t, "an old run", 200, "")
	})
}

// TestSpendingWindowsOfRoles: each person with the role may spend so much in
// any span, whatever they speak with.
func TestSpendingWindowsOfRoles(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		fox := m.site.Company("Fox", company.TeamPlan)
		m.site.Person("bert@example.com")
		team := m.site.Team(fox, "Film", "artist", "anna@example.com", "bert@example.com")
		m.grant("", team, 1000)
		limit := func(s *company.Spend) {
			t.Helper()
			if _, err := m.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), team, company.TeamRole{
				Name: "artist", Permissions: company.TeamPermissions, PluginKinds: []string{company.AnyKind}, Spend: s,
			}); err != nil {
				t.Fatal(err)
			}
		}
		_, annas := m.site.Token("anna@example.com", fox)
		_, berts := m.site.Token("bert@example.com", fox)
		anna, bert := m.as(annas), m.as(berts)
		device := m.as(m.site.Device(getJSON[wire.Identity](m.service, "/api/v2/me").User.UID, "blender").Tokens.ID)
		in := "?team_id=" + team
		post := func(who *runFixture, path, query string) answer {
			return who.send("POST", path+query, "application/json", strings.NewReader(m.body("one", "")))
		}
		blocked := func(what string, who *runFixture, available float64) {
			t.Helper()
			p := post(who, "/api/v2/generate", in).checkStatus(t, what, 402, "INSUFFICIENT_BALANCE").readError(t)
			if p.Details["reason"] != "spending_window" || p.Details["required"] != 3.0 || p.Details["available"] != available {
				t.Errorf("%s: details = %v", what, p.Details)
			}
			if c := decodeAnswer[wire.CostPreview](t, post(who, "/api/v2/generate/preview-cost", in)); c.CanRun || c.BlockingReason == nil || !strings.Contains(*c.BlockingReason, "role") {
				t.Errorf("%s: price = %+v", what, c)
			}
		}
		fits := func(what string, who *runFixture, query string) {
			t.Helper()
			if c := decodeAnswer[wire.CostPreview](t, post(who, "/api/v2/generate/preview-cost", query)); !c.CanRun || c.BlockingReason != nil {
				t.Errorf("%s: price = %+v", what, c)
			}
			post(who, "/api/v2/generate", query).checkStatus(t, what, 202, "")
		}

		limit(&company.Spend{Tokens: 7, Window: time.Hour}) // two runs of 3; nobody works, so they are held
		fits("the first", anna, in)
		fits("the second, by app", device, in)
		blocked("the third", anna, 1)
		blocked("the third, by app", device, 1)
		fits("another person", bert, in)
		fits("another account", m, "")
		limit(&company.Spend{Tokens: 9, Window: time.Hour})
		fits("after the role allows more", anna, in)
		blocked("and beyond that", anna, 0)
		limit(nil)
		fits("without a limit", anna, in)
		limit(&company.Spend{Tokens: 0, Window: time.Hour})
		blocked("nothing at all", bert, 0)

		// What is released can be spent again, and what is charged counts on.
		limit(&company.Spend{Tokens: 3, Window: time.Hour})
		blocked("bert's run is held", bert, 0)
		pending := getJSON[wire.GenerationList](bert.service, "/api/v2/generations"+in+"&status=pending").Data
		i := slices.IndexFunc(pending, func(g wire.Generation) bool { return *g.TeamID == team })
		for _, g := range pending[i:] {
			bert.sendRequest("POST", "/api/v2/generate/"+g.RequestID+"/cancel"+in)
		}
		fits("bert's run was cancelled", bert, in)
		m.work()
		id := getJSON[wire.GenerationList](bert.service, "/api/v2/generations"+in+"&limit=1").Data[0].RequestID
		if rec := bert.finish(in, id); rec.Status != "succeeded" || rec.TokensCharged != 3 {
			t.Errorf("run = %+v", rec)
		}
		blocked("what was charged counts", bert, 0)

		// The window passes.
		const window = 2 * time.Second
		limit(&company.Spend{Tokens: 3, Window: window})
		var accepted []time.Time
		for range 2 {
			watch.Until(t, "the window has passed", func() bool {
				a := post(bert, "/api/v2/generate", in)
				if a.StatusCode != http.StatusAccepted {
					return false
				}
				accepted = append(accepted, decodeAnswer[wire.GenerationCreated](t, a).Created)
				return true
			})
		}
		if apart := accepted[1].Sub(accepted[0]); apart < window-time.Second || apart > window+15*time.Second { // times are whole seconds
			t.Errorf("two runs are %s apart, want %s", apart, window)
		}
	})
}
