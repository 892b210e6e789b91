package api_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/testkit/sample"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/api"
	"atelier/internal/web/api/wire"
)

// errand is a route of companies and their teams, with a request that succeeds
// for a member of the company who may.
type errand struct {
	route string
	by    company.Permission // empty: everybody in the company
	want  int                // to those who may
	// ready makes what the request is about, and gives the parameters of the
	// path, names and values, and the body.
	ready func(o *companyFixture) (path []string, body string)
}

// allOfThem stands for every permission of a company.
const allOfThem company.Permission = "all"

// errands are all routes under /companies, /teams and /invitations.
var errands = []errand{
	{"GET /api/v2/companies", "", 200, nil},
	{"GET /api/v2/companies/{company_id}", "", 200, nil},
	{"PATCH /api/v2/companies/{company_id}", company.ManageMembers, 200, with(`{"name":"Hound"}`)},
	{"GET /api/v2/companies/{company_id}/audit", company.ManageMembers, 200, nil},

	{"GET /api/v2/companies/{company_id}/members", company.ManageMembers, 200, nil},
	{"PUT /api/v2/companies/{company_id}/members/{uid}", company.ManageMembers, 200, aColleague(`{"role":"member"}`)},
	{"DELETE /api/v2/companies/{company_id}/members/{uid}", company.ManageMembers, 204, aColleague("")},
	{"GET /api/v2/companies/{company_id}/roles", "", 200, nil},
	{"PUT /api/v2/companies/{company_id}/roles/{role}", company.ManageMembers, 200, aRole(`{"permissions":[]}`)},
	{"DELETE /api/v2/companies/{company_id}/roles/{role}", company.ManageMembers, 204, aRole("")},

	{"GET /api/v2/companies/{company_id}/domains", company.ManageMembers, 200, nil},
	{"POST /api/v2/companies/{company_id}/domains", company.ManageMembers, 201, func(o *companyFixture) ([]string, string) {
		return nil, `{"domain":"` + o.word() + `.example"}`
	}},
	{"DELETE /api/v2/companies/{company_id}/domains/{domain}", company.ManageMembers, 204, aDomain},
	{"POST /api/v2/companies/{company_id}/domains/{domain}/verify", company.ManageMembers, 200, aDomain},

	{"GET /api/v2/companies/{company_id}/invitations", company.ManageMembers, 200, nil},
	{"POST /api/v2/companies/{company_id}/invitations", company.ManageMembers, 201, with(`{}`)},
	{"DELETE /api/v2/invitations/{invitation_id}", company.ManageMembers, 204, func(o *companyFixture) ([]string, string) {
		return []string{"invitation_id", o.invite(company.Draft{CompanyID: o.company}).ID}, ""
	}},
	{"GET /api/v2/invitations", "", 200, nil},
	{"POST /api/v2/invitations/{invitation_id}/accept", "", 204, func(o *companyFixture) ([]string, string) {
		return []string{"invitation_id", o.invite(company.Draft{CompanyID: o.site.Company("Elsewhere", company.TeamPlan), Email: o.email}).ID}, ""
	}},
	{"POST /api/v2/invitations/accept", "", 204, func(o *companyFixture) ([]string, string) {
		_, link, err := o.site.Companies.Invitations.CreateInvitation(o.t.Context(), principal.Operator(), company.Draft{CompanyID: o.site.Company("Elsewhere", company.TeamPlan)})
		o.must(err)
		u, err := url.Parse(link)
		o.must(err)
		return nil, `{"token":"` + u.Query().Get("token") + `"}`
	}},

	{"GET /api/v2/companies/{company_id}/access-tokens", company.ManageAPITokens, 200, nil},
	{"POST /api/v2/companies/{company_id}/access-tokens", company.ManageAPITokens, 201, func(o *companyFixture) ([]string, string) {
		return nil, `{"name":"farm","uid":"` + o.addMember() + `"}`
	}},
	{"DELETE /api/v2/companies/{company_id}/access-tokens/{token_id}", company.ManageAPITokens, 204, aToken},
	{"POST /api/v2/companies/{company_id}/access-tokens/{token_id}/regenerate", company.ManageAPITokens, 200, aToken},

	{"GET /api/v2/companies/{company_id}/scim-token", company.ManageMembers, 200, aConnection},
	{"POST /api/v2/companies/{company_id}/scim-token", allOfThem, 201, nil},
	{"DELETE /api/v2/companies/{company_id}/scim-token", company.ManageMembers, 204, aConnection},

	{"GET /api/v2/companies/{company_id}/teams", "", 200, nil},
	{"POST /api/v2/companies/{company_id}/teams", company.ManageTeams, 201, with(`{"name":"Print"}`)},
	{"GET /api/v2/teams/{team_id}", "", 200, nil},
	{"PATCH /api/v2/teams/{team_id}", company.ManageTeams, 200, with(`{"name":"Print"}`)},
	{"DELETE /api/v2/teams/{team_id}", company.ManageTeams, 204, func(o *companyFixture) ([]string, string) {
		return []string{"team_id", o.site.Team(o.company, "Short", "member")}, ""
	}},
	{"GET /api/v2/teams/{team_id}/members", company.ManageTeams, 200, nil},
	{"PUT /api/v2/teams/{team_id}/members/{uid}", company.ManageTeams, 200, aTeammate(`{"role":"spare"}`)},
	{"DELETE /api/v2/teams/{team_id}/members/{uid}", company.ManageTeams, 204, aTeammate("")},
	{"GET /api/v2/teams/{team_id}/roles", company.ManageTeams, 200, nil},
	{"PUT /api/v2/teams/{team_id}/roles/{role}", company.ManageTeams, 200, aTeamRole(`{"permissions":{}}`)},
	{"DELETE /api/v2/teams/{team_id}/roles/{role}", company.ManageTeams, 204, aTeamRole("")},

	{"GET /api/v2/teams/{team_id}/budget", company.ManageBilling, 200, aBudget("")},
	{"PUT /api/v2/teams/{team_id}/budget", company.ManageBilling, 200, aBudget(`{"tokens":7}`)},
	{"DELETE /api/v2/teams/{team_id}/budget", company.ManageBilling, 204, aBudget("")},
}

func with(body string) func(*companyFixture) ([]string, string) {
	return func(*companyFixture) ([]string, string) { return nil, body }
}

func aColleague(body string) func(*companyFixture) ([]string, string) {
	return func(o *companyFixture) ([]string, string) { return []string{"uid", o.addMember()}, body }
}

func aTeammate(body string) func(*companyFixture) ([]string, string) {
	return func(o *companyFixture) ([]string, string) {
		uid := o.addMember()
		o.site.Join(o.team, o.other, "spare")
		return []string{"uid", uid}, body
	}
}

func aRole(body string) func(*companyFixture) ([]string, string) {
	return func(o *companyFixture) ([]string, string) {
		name := o.word()
		_, err := o.site.Companies.Roles.SetRole(o.t.Context(), principal.Operator(), o.company, company.Role{Name: name})
		o.must(err)
		return []string{"role", name}, body
	}
}

func aTeamRole(body string) func(*companyFixture) ([]string, string) {
	return func(o *companyFixture) ([]string, string) {
		name := o.word()
		_, err := o.site.Companies.TeamRoles.SetTeamRole(o.t.Context(), principal.Operator(), o.team, company.TeamRole{Name: name})
		o.must(err)
		return []string{"role", name}, body
	}
}

// aDomain is one that the operator vouches for.
func aDomain(o *companyFixture) ([]string, string) {
	name := o.word() + ".example"
	_, err := o.site.Companies.Domains.AddDomain(o.t.Context(), principal.Operator(), o.company, name, "", "")
	o.must(err)
	_, err = o.site.Companies.Domains.VerifyDomain(o.t.Context(), principal.Operator(), o.company, name, true)
	o.must(err)
	return []string{"domain", name}, ""
}

func aToken(o *companyFixture) ([]string, string) {
	o.addMember()
	id, _ := o.site.Token(o.other, o.company)
	return []string{"token_id", id}, ""
}

func aConnection(o *companyFixture) ([]string, string) {
	o.boss.do(201, "POST", "/companies/"+o.company+"/scim-token", "")
	return nil, ""
}

func aBudget(body string) func(*companyFixture) ([]string, string) {
	return func(o *companyFixture) ([]string, string) {
		o.boss.do(200, "PUT", "/teams/"+o.team+"/budget", `{"tokens":5}`)
		return nil, body
	}
}

// companyFixture is a company with a team, and somebody to try things there.
type companyFixture struct {
	*runFixture
	company, team string
	boss          caller // who may do everything in the company
	email         string // of who tries
	other, uid    string // a colleague who may do nothing
	words         int
	items         []string // of a manager's, each for one use
}

func newCompanyFixture(m *runFixture) *companyFixture {
	o := &companyFixture{runFixture: m, company: m.site.Company("Fox", company.EnterprisePlan), other: "other@example.com"}
	o.team = m.site.Team(o.company, "Film", "member")
	m.grant("", o.team, 10_000)
	o.boss = m.signedIn("boss@example.com")
	m.site.Admit(o.company, "boss@example.com", company.CompanyPermissions...)
	o.uid = m.site.Person(o.other)
	_, err := m.site.Companies.TeamRoles.SetTeamRole(m.t.Context(), principal.Operator(), o.team, company.TeamRole{Name: "spare"})
	o.must(err)
	return o
}

func (o *companyFixture) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// word is one that was not used yet.
func (o *companyFixture) word() string {
	o.words++
	return fmt.Sprint("word", o.words)
}

// addMember makes sure that the colleague is in the company.
func (o *companyFixture) addMember() (uid string) {
	o.site.Admit(o.company, o.other)
	return o.uid
}

func (o *companyFixture) invite(d company.Draft) company.Invitation {
	o.t.Helper()
	inv, _, err := o.site.Companies.Invitations.CreateInvitation(o.t.Context(), principal.Operator(), d)
	o.must(err)
	return inv
}

// try makes the request of a route with a credential and gives how it ends.
func (o *companyFixture) try(token, route, query string, ready func(*companyFixture) ([]string, string)) (outcome, answer) {
	o.t.Helper()
	var fill []string
	body := ""
	if ready != nil {
		fill, body = ready(o)
	}
	for i := 0; i < len(fill); i += 2 {
		fill[i] = "{" + fill[i] + "}"
	}
	fill = append(fill, "{company_id}", o.company, "{team_id}", o.team)
	method, path, _ := strings.Cut(strings.NewReplacer(fill...).Replace(route), " ")
	kind := ""
	switch {
	case strings.HasPrefix(body, "{"):
		kind = "application/json"
	case body != "":
		kind = "application/octet-stream"
	}
	s := *o.service
	s.token = token
	a := s.send(method, path+query, kind, strings.NewReader(body))
	return outcomeOf(o.t, a), a
}

func outcomeOf(t *testing.T, a answer) outcome {
	t.Helper()
	got := outcome{status: a.StatusCode}
	if got.status >= 400 {
		p := a.readError(t)
		got.code = string(p.Code)
		got.reason, _ = p.Details["reason"].(string)
	}
	return got
}

func served(route string) bool { return slices.Contains(api.Routes(), route) }

func TestErrandsNameEveryRoute(t *testing.T) {
	t.Parallel()
	for _, route := range api.Routes() {
		_, path, _ := strings.Cut(route, " /api/v2")
		for _, of := range []string{"/companies", "/teams", "/invitations"} {
			if strings.HasPrefix(path, of) && !slices.ContainsFunc(errands, func(e errand) bool { return e.route == route }) {
				t.Errorf("nothing says which permission %s needs", route)
			}
		}
	}
}

// TestEveryPermissionOfCompanies has somebody with each permission alone, with
// none and with all try every route.
func TestEveryPermissionOfCompanies(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		o := newCompanyFixture(m)
		sets := map[string][]company.Permission{"none": nil, "all": company.CompanyPermissions}
		for _, p := range company.CompanyPermissions {
			sets[strings.ToLower(string(p))] = []company.Permission{p}
		}
		for _, name := range sample.Of(slices.Sorted(maps.Keys(sets)), 3) {
			perms := sets[name]
			o.email = name + "@example.com"
			who := m.signedIn(o.email)
			m.site.Admit(o.company, o.email, perms...)
			for _, e := range errands {
				if !served(e.route) {
					continue
				}
				want := noPermission
				if e.by == "" || slices.Contains(perms, e.by) || e.by == allOfThem && len(perms) == len(company.CompanyPermissions) {
					want = outcome{status: e.want}
				}
				if got, a := o.try(who.bearer, e.route, "", e.ready); got != want {
					t.Errorf("%s, %s = %v, want %v: %s", name, e.route, got, want, a.body)
				}
			}
		}
	})
}

// chore is something to do in a team.
type chore struct {
	route string
	by    company.Permission // in the team; empty: everybody in it
	want  int
	ready func(o *companyFixture) (path []string, body string)
}

// chores are done for the account of a team, by any credential.
var chores = []chore{
	{"POST /api/v2/generate", company.Generate, 202, func(o *companyFixture) ([]string, string) { return nil, o.body("one", "") }},
	{"POST /api/v2/generate/preview-cost", "", 200, func(o *companyFixture) ([]string, string) { return nil, o.body("one", "") }},
	{"GET /api/v2/generate/{request_id}", "", 200, othersRun},
	{"POST /api/v2/generate/{request_id}/cancel", company.ManageTeam, 202, othersRun},
	{"GET /api/v2/generations", "", 200, nil},
	{"GET /api/v2/webhook-secret", company.ManageTeam, 200, nil},
	{"POST /api/v2/webhook-secret/rotate", company.ManageTeam, 200, nil},
	{"GET /api/v2/tools", "", 200, nil},
	{"GET /api/v2/kits", "", 200, nil},
	{"GET /api/v2/tool-tags", "", 200, nil},
	{"GET /api/v2/uploads", "", 200, nil},
	{"POST /api/v2/uploads", "", 201, func(*companyFixture) ([]string, string) { return nil, string(picture(3, 3)) }},
	{"GET /api/v2/uploads/{upload_id}", "", 200, othersUpload},
	{"DELETE /api/v2/uploads/{upload_id}", company.ManageTeam, 204, othersUpload},
	{"GET /api/v2/library", "", 200, nil},
	{"GET /api/v2/library/{library_id}", "", 200, othersItem},
	{"PUT /api/v2/library/{library_id}/favorite", "", 204, othersItem},
	{"DELETE /api/v2/library/{library_id}/favorite", "", 204, othersItem},
	{"DELETE /api/v2/library/{library_id}", company.ManageTeam, 204, othersItem},
	{"GET /api/v2/boards", "", 200, nil},
	{"POST /api/v2/boards", "", 201, with(`{"name":"Autumn"}`)},
	{"GET /api/v2/boards/{board_id}", "", 200, othersBoard},
	{"DELETE /api/v2/boards/{board_id}", company.ManageTeam, 204, othersBoard},
}

// visits are done about a team by somebody who signed in with an app.
var visits = []struct {
	chore
	noApp bool // whether the team's role lets the app in does not matter
	never bool // no role in the team is enough
}{
	{chore{"GET /api/v2/teams/{team_id}", "", 200, nil}, true, false},
	{chore{"PATCH /api/v2/teams/{team_id}", company.ManageTeam, 200, with(`{"name":"Print"}`)}, false, false},
	{chore{"DELETE /api/v2/teams/{team_id}", "", 204, nil}, true, true},
	{chore{"GET /api/v2/teams/{team_id}/members", "", 200, nil}, false, false},
	{chore{"PUT /api/v2/teams/{team_id}/members/{uid}", company.ManageTeam, 200, aTeammate(`{"role":"spare"}`)}, false, false},
	{chore{"DELETE /api/v2/teams/{team_id}/members/{uid}", company.ManageTeam, 204, aTeammate("")}, false, false},
	{chore{"GET /api/v2/teams/{team_id}/roles", "", 200, nil}, false, false},
	{chore{"PUT /api/v2/teams/{team_id}/roles/{role}", company.ManageTeam, 200, aTeamRole(`{"permissions":{}}`)}, false, false},
	{chore{"DELETE /api/v2/teams/{team_id}/roles/{role}", company.ManageTeam, 204, aTeamRole("")}, false, false},
	{chore{"GET /api/v2/teams/{team_id}/budget", company.ManageTeam, 200, aBudget("")}, false, false},
	{chore{"PUT /api/v2/teams/{team_id}/budget", "", 200, aBudget(`{"tokens":7}`)}, true, true},
	{chore{"DELETE /api/v2/teams/{team_id}/budget", "", 204, aBudget("")}, true, true},
}

// manager is the service for a manager of the team.
func (o *companyFixture) manager() *runFixture {
	o.t.Helper()
	o.site.Join(o.team, "boss@example.com", "manager")
	s := *o.service
	s.token = o.boss.bearer
	return &runFixture{service: &s, made: o.made}
}

func (o *companyFixture) inTeam() string { return "?team_id=" + o.team }

func othersRun(o *companyFixture) ([]string, string) {
	return []string{"request_id", o.manager().run(o.inTeam(), o.body("one", ""))}, ""
}

func othersUpload(o *companyFixture) ([]string, string) {
	return []string{"upload_id", o.manager().upload(o.inTeam(), picture(4, 4)).ID}, ""
}

func othersItem(o *companyFixture) ([]string, string) {
	id := o.items[0]
	o.items = o.items[1:]
	return []string{"library_id", id}, ""
}

// addRuns has a manager make results, and then keeps everybody who works busy, so
// that further runs wait.
func (o *companyFixture) addRuns(n int) {
	o.t.Helper()
	o.work()
	for boss := o.manager(); len(o.items) < n; {
		for _, out := range boss.done(o.inTeam(), o.body("wide", `,"num_results":64`)).Outputs {
			o.items = append(o.items, out.ID)
		}
	}
	for range 4 {
		id := o.manager().run(o.inTeam(), o.body("one", steps(`[{"hang":true}]`)))
		watch.Until(o.t, "the run is worked on", func() bool {
			return *getJSON[wire.Generation](o.manager().service, "/api/v2/generate/"+id+o.inTeam()).Stage == "running"
		})
	}
}

func othersBoard(o *companyFixture) ([]string, string) {
	s := o.manager().service
	a := s.send("POST", "/api/v2/boards"+o.inTeam(), "application/json", strings.NewReader(`{"name":"Autumn"}`)).checkStatus(o.t, "a board", 201, "")
	return []string{"board_id", decodeAnswer[struct{ ID string }](o.t, a).ID}, ""
}

// TestEveryPermissionOfTeams has somebody with every set of permissions in a
// team try what there is to do, by access token and by app. The personal
// account allows everything to both.
func TestEveryPermissionOfTeams(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		o := newCompanyFixture(m)
		var sets []int // bits, one for each permission
		for set := range 1 << len(company.TeamPermissions) {
			sets = append(sets, set)
		}
		sets = sample.Of(sets, 5)
		o.addRuns(2 * 4 * len(sets))
		for _, set := range sets {
			var perms []company.Permission
			for i, p := range company.TeamPermissions {
				if set>>i&1 == 1 {
					perms = append(perms, p)
				}
			}
			name := fmt.Sprint("role", set)
			o.email = name + "@example.com"
			who := m.signedIn(o.email)
			_, err := m.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), o.team, company.TeamRole{Name: name, Permissions: perms, PluginKinds: []string{company.AnyKind}})
			o.must(err)
			_, err = m.site.Companies.TeamMembers.AddTeamMember(t.Context(), principal.Operator(), o.team, o.email, name)
			o.must(err)
			_, script := m.site.Token(o.email, o.company)
			for _, c := range chores {
				if !served(c.route) {
					continue
				}
				byToken := outcome{status: c.want}
				if c.by != "" && !slices.Contains(perms, c.by) {
					byToken = noPermission
				}
				byApp := byToken
				if !slices.Contains(perms, company.UsePlugins) {
					byApp = noPlugin
				}
				if got, a := o.try(script, c.route, o.inTeam(), c.ready); got != byToken {
					t.Errorf("%v, %s by token = %v, want %v: %s", perms, c.route, got, byToken, a.body)
				}
				if got, a := o.try(who.bearer, c.route, o.inTeam(), c.ready); got != byApp {
					t.Errorf("%v, %s by app = %v, want %v: %s", perms, c.route, got, byApp, a.body)
				}
			}
			for _, v := range visits {
				if !served(v.route) {
					continue
				}
				want := outcome{status: v.want}
				switch {
				case v.never, v.by != "" && !slices.Contains(perms, v.by):
					want = noPermission
				case !v.noApp && !slices.Contains(perms, company.UsePlugins):
					want = noPlugin
				}
				if got, a := o.try(who.bearer, v.route, "", v.ready); got != want {
					t.Errorf("%v, %s = %v, want %v: %s", perms, v.route, got, want, a.body)
				}
			}
			// Prices can be asked for by everybody, and say what cannot be run.
			_, a := o.try(script, "POST /api/v2/generate/preview-cost", o.inTeam(), func(o *companyFixture) ([]string, string) { return nil, o.body("one", "") })
			if may := decodeAnswer[wire.CostPreview](t, a).CanRun; may != slices.Contains(perms, company.Generate) {
				t.Errorf("%v: can_run = %v", perms, may)
			}
		}
	})
}
