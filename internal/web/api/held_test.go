package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/web/api/apitest"
	"atelier/internal/web/api/wire"
)

// The sorts of routes with a body, by what lets a caller in.
const (
	ofPerson  = "person"  // an ID token
	ofCompany = "company" // an ID token, and what its person may in the company
	ofAccount = "account" // any credential; team_id selects the account
	ofLeaver  = "leaver"  // an ID token of somebody who is in no company

	ofOperator = "operator" // an ID token of an operator
)

// heldRoutes are all routes with a credential and a body, with a request to each
// that succeeds.
var heldRoutes = []struct {
	route, sort, body string
}{
	{"DELETE /me", ofLeaver, `{"email":"{email}"}`},
	{"POST /access-tokens", ofPerson, `{"name":"one more"}`},
	{"POST /companies/{company_id}/access-tokens", ofCompany, `{"name":"one more","uid":"{anna}"}`},
	{"PATCH /companies/{company_id}", ofCompany, `{"name":"Other"}`},
	{"PUT /companies/{company_id}/members/{uid}", ofCompany, `{"role":"clerk"}`},
	{"PUT /companies/{company_id}/roles/{role}", ofCompany, `{"permissions":[]}`},
	{"POST /companies/{company_id}/domains", ofCompany, `{"domain":"{company_id}.example.com"}`},
	{"POST /companies/{company_id}/teams", ofCompany, `{"name":"Other"}`},
	{"PATCH /teams/{team_id}", ofCompany, `{"name":"Other"}`},
	{"PUT /teams/{team_id}/budget", ofCompany, `{"tokens":100}`},
	{"PUT /teams/{team_id}/members/{uid}", ofCompany, `{"role":"lead"}`},
	{"PUT /teams/{team_id}/roles/{role}", ofCompany, `{"permissions":{}}`},
	{"POST /companies/{company_id}/invitations", ofCompany, `{}`},
	{"POST /invitations/accept", ofPerson, `{"token":"{invitation}"}`},
	{"POST /generate", ofAccount, `{create}`},
	{"POST /generate/preview-cost", ofAccount, `{create}`},
	{"POST /uploads", ofAccount, `{picture}`},
	{"PATCH /uploads/resumable/{resumable_id}", ofAccount, `{picture}`},
	{"POST /flows", ofAccount, `{"name":"Other","steps":[{"id":"draw","tool":"one"}]}`},
	{"POST /flows/check", ofAccount, `{"name":"Other","steps":[{"id":"draw","tool":"one"}]}`},
	{"POST /flows/draft", ofAccount, `{"library_id":"{library_id}"}`},
	{"PUT /flows/{flow_id}", ofAccount, `{"version":1,"name":"Other","steps":[{"id":"draw","tool":"one"}]}`},
	{"POST /boards", ofAccount, `{"name":"Other"}`},
	{"PATCH /boards/{board_id}", ofAccount, `{"name":"Other"}`},
	{"POST /boards/{board_id}/nodes", ofAccount, `{"kind":"TEXT","text":"x"}`},
	{"PATCH /boards/{board_id}/nodes", ofAccount, `{"update":[{"id":"{node_id}","x":1}]}`},
	{"PATCH /boards/{board_id}/nodes/{node_id}", ofAccount, `{"x":1}`},
	{"PUT /boards/{board_id}/presence", ofAccount, `{"cursor":{"x":1,"y":2}}`},
	{"POST /operator/grants", ofOperator, `{"account_id":"{anna}","tokens":1,"reason":"x"}`},
}

// heldWay is one way to take something away.
type heldWay struct {
	name  string
	sorts []string // of routes
	kind  int      // of the credential
	team  bool     // the account is the team
	only  string   // the one route that it matters to, "" for all
	do    func(h *held, c *revokedCaller) error
	want  outcome
}

func (w heldWay) takes(route, sort string) bool {
	return slices.Contains(w.sorts, sort) && (w.only == "" || w.only == route)
}

// roleChanged is for requests that would be let in with another role.
var roleChanged = outcome{503, "UPSTREAM_UNAVAILABLE", "role_changed"}

// heldWays are all ways to take from a caller what lets their request in, with
// what the request is answered then. "nothing" proves that it would succeed.
var heldWays = []heldWay{
	{"nothing", []string{ofPerson, ofCompany, ofAccount, ofLeaver, ofOperator}, byIDToken, false, "", nil, letIn},
	{"nothing, for the team", []string{ofAccount}, byIDToken, true, "", nil, letIn},
	{"nothing, by personal token", []string{ofAccount}, byPersonal, false, "", nil, letIn},
	{"nothing, by company token", []string{ofAccount}, byCompanyX, true, "", nil, letIn},

	{"the device is revoked", []string{ofPerson, ofCompany, ofAccount, ofLeaver, ofOperator}, byIDToken, false, "", (*held).revokeDevice, noCredential},
	{"signed out everywhere", []string{ofPerson, ofCompany, ofAccount, ofLeaver, ofOperator}, byIDToken, false, "", (*held).signOut, noCredential},
	{"another password", []string{ofPerson, ofCompany, ofAccount, ofLeaver, ofOperator}, byIDToken, false, "", (*held).resetPassword, noCredential},
	{"suspended", []string{ofPerson, ofCompany, ofAccount, ofLeaver, ofOperator}, byIDToken, false, "", (*held).suspend, noCredential},

	{"the address is another", []string{ofOperator}, byIDToken, false, "", (*held).changeAddress, noOperator},
	{"company permissions are taken", []string{ofCompany}, byIDToken, false, "", (*held).takePermissions, noPermission},
	{"removed from the company", []string{ofCompany}, byIDToken, false, "", (*held).removeFromCompany, notFound},
	{"removed from the team", []string{ofAccount}, byIDToken, true, "", (*held).removeFromTeam, notMember},
	{"removed from the team's company", []string{ofAccount}, byIDToken, true, "", (*held).removeFromCompany, notMember},
	{"the team is removed", []string{ofAccount}, byIDToken, true, "", (*held).removeTeam, notMember},
	{"the role lets no apps in", []string{ofAccount}, byIDToken, true, "", (*held).refuseApps, noPlugin},
	{"the role may not generate", []string{ofAccount}, byIDToken, true, "POST /generate", (*held).refuseRuns, noPermission},
	{"the role may spend less", []string{ofAccount}, byIDToken, true, "POST /generate", (*held).limitSpending, roleChanged},
	{"another role", []string{ofAccount}, byIDToken, true, "POST /generate", (*held).changeRole, roleChanged},

	{"the personal token is deleted", []string{ofAccount}, byPersonal, false, "", (*held).deleteToken, noCredential},
	{"the personal token is regenerated", []string{ofAccount}, byPersonal, false, "", (*held).regenerateToken, noCredential},
	{"suspended, by personal token", []string{ofAccount}, byPersonal, false, "", (*held).suspend, noCredential},
	{"the company token is deleted", []string{ofAccount}, byCompanyX, true, "", (*held).deleteToken, noCredential},
	{"the company token is regenerated", []string{ofAccount}, byCompanyX, true, "", (*held).regenerateToken, noCredential},
	{"removed from the team, by company token", []string{ofAccount}, byCompanyX, true, "", (*held).removeFromTeam, notMember},
	{"removed from the company, by company token", []string{ofAccount}, byCompanyX, true, "", (*held).removeFromCompany, noCredential},
}

// held is an installation with two nodes: requests go to the first, and the
// second takes away what lets them in.
type held struct {
	*runFixture
	second *accounttest.Site
	next   atomic.Int64
	client *http.Client
}

// revokedCaller is somebody with a company, a team and a board of their own.
type revokedCaller struct {
	email, id, company, team string
	other                    string // somebody else in both
	kind                     int
	device                   devicelogin.Login
	tokenID, token           string
	fill                     *strings.Replacer
}

// TestRevokedWhileTheBodyArrives is the column of the matrix for requests that
// take long: all but the last byte of the body is sent, the caller is revoked
// through another node, and then the last byte follows.
// PostgreSQL, where rows are locked, gets every pair of a route and a way. The
// short form has SQLite, which has one writer at a time, try every route with one
// way and every way with one route. ATELIER_TEST_HELD_PAIRS is how many pairs the
// long form tries.
func TestRevokedWhileTheBodyArrives(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := dbtest.URL(t, engine)
			h := &held{
				runFixture: newRunFixture(t, dbtest.Open(t, address), limits, setHighLimits),
				second:     accounttest.New(t, dbtest.Open(t, address), accounttest.Options{}),
				client:     apitest.Client(t),
			}
			var operators []string
			for n := range 10_000 {
				operators = append(operators, castawayEmail(int64(n)))
			}
			h.site.Gate.Operators = principal.NewOperators(operators)
			h.client.Transport = &http.Transport{ExpectContinueTimeout: time.Minute}
			rounds := heldRounds(t)
			h.tryAll(rounds, engine == "postgres" || rounds > 1)
		})
	}
}

// heldRounds is how often each pair of a route and a way is tried.
func heldRounds(t *testing.T) int {
	text := os.Getenv("ATELIER_TEST_HELD_PAIRS")
	if text == "" {
		return 1
	}
	pairs, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	cells := 0
	for _, w := range heldWays {
		for _, rt := range heldRoutes {
			if w.do != nil && w.takes(rt.route, rt.sort) {
				cells++
			}
		}
	}
	return (pairs + cells - 1) / cells
}

// TestHeldNamesEveryRouteWithABody compares the table with the document.
func TestHeldNamesEveryRouteWithABody(t *testing.T) {
	t.Parallel()
	contract, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, rt := range heldRoutes {
		named = append(named, rt.route)
	}
	for _, route := range contract.ListOperationsWithBody() {
		if !slices.Contains(named, route) {
			t.Errorf("%s takes a body and is not in the table", route)
		}
	}
}

// tryAll tries every pair of a route and a way, or every route and every way once,
// the given number of times.
func (h *held) tryAll(rounds int, every bool) {
	type try struct{ way, route int }
	var all []try
	tried := map[string]bool{}
	for round := range rounds {
		for i, w := range heldWays {
			for j, rt := range heldRoutes {
				if !w.takes(rt.route, rt.sort) || w.do == nil && round > 0 {
					continue
				}
				if every || w.do == nil || !tried[w.name] || !tried[rt.route] {
					all = append(all, try{i, j})
				}
				if w.do != nil {
					tried[w.name], tried[rt.route] = true, true
				}
			}
		}
	}

	h.work()
	var group sync.WaitGroup
	var pairs, refused atomic.Int64
	for n := range doors {
		group.Go(func() {
			for i := n; i < len(all); i += doors {
				w, rt := heldWays[all[i].way], heldRoutes[all[i].route]
				got, body, err := h.try(all[i].way, all[i].route)
				name := w.name + ", " + rt.route
				switch {
				case err != nil:
					h.t.Errorf("%s: %v", name, err)
				case w.do == nil && got.status/100 != 2:
					h.t.Errorf("%s = %v, want success: %s", name, got, body)
				case w.do != nil:
					pairs.Add(1)
					if got == w.want {
						refused.Add(1)
						continue
					}
					h.t.Errorf("%s = %v, want %v: %s", name, got, w.want, body)
				}
			}
		})
	}
	group.Wait()
	h.t.Logf("%d held bodies: %d refused after the revoking answer", pairs.Load(), refused.Load())
}

// try sends one request and takes away what lets it in before its last byte.
func (h *held) try(way, route int) (outcome, string, error) {
	w, rt := heldWays[way], heldRoutes[route]
	c, err := h.castaway(w.kind, w.team, rt.sort == ofLeaver)
	if err != nil {
		return outcome{}, "", err
	}
	method, path, _ := strings.Cut(c.fill.Replace(rt.route), " ")
	kind, text := "application/json", c.fill.Replace(rt.body)
	if rt.route == "POST /uploads" {
		kind, text = "image/png", string(picture(8, 8))
	}
	resumes := strings.Contains(rt.route, "/resumable/")
	if resumes {
		kind, text = "application/offset+octet-stream", string(picture(8, 8))
	}
	query := ""
	if w.team && rt.sort == ofAccount {
		query = "?" + url.Values{"team_id": {c.team}}.Encode()
	}
	if strings.Contains(text, "{library_id}") {
		made := h.as(c.token).done(query, h.body("one", ""))
		text = strings.ReplaceAll(text, "{library_id}", made.Outputs[0].ID)
	}
	revoked := false
	body := &lateBody{text: text, before: func() error {
		revoked = true
		if w.do == nil {
			return nil
		}
		return w.do(h, c)
	}}
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+"/api/v2"+path+query, body)
	if err != nil {
		return outcome{}, "", err
	}
	r.ContentLength = int64(len(text))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "Bearer "+c.token)
	if rt.sort == ofOperator {
		r.Header.Set("Idempotency-Key", c.id)
	}
	if resumes {
		r.Header.Set("Tus-Resumable", "1.0.0")
		r.Header.Set("Upload-Offset", "0")
	}
	// The server asks for the body when the handler reads it: from then on the
	// request has been let in.
	r.Header.Set("Expect", "100-continue")
	res, err := h.client.Do(r)
	if err != nil {
		return outcome{}, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && !revoked {
		err = fmt.Errorf("the body was not asked for: %d %s", res.StatusCode, answer)
	}
	got := outcome{status: res.StatusCode}
	if got.status >= 400 && err == nil {
		var e wire.Error
		err = json.Unmarshal(answer, &e)
		got.code = string(e.Error.Code)
		got.reason, _ = e.Error.Details["reason"].(string)
	}
	return got, string(answer), err
}

// lateBody is a body whose last byte comes after something has happened.
type lateBody struct {
	text   string
	before func() error
	sent   bool
}

func (b *lateBody) Read(p []byte) (int, error) {
	if !b.sent {
		n := copy(p, b.text[:len(b.text)-1])
		b.text = b.text[n:]
		b.sent = len(b.text) == 1
		return n, nil
	}
	if b.text == "" {
		return 0, io.EOF
	}
	if err := b.before(); err != nil {
		return 0, err
	}
	n := copy(p, b.text)
	b.text = ""
	return n, nil
}

func castawayEmail(n int64) string { return fmt.Sprintf("castaway%d@example.com", n) }

// castaway makes somebody with everything that the requests need.
func (h *held) castaway(kind int, team, alone bool) (*revokedCaller, error) {
	ctx, n := h.t.Context(), h.next.Add(1)
	c := &revokedCaller{email: castawayEmail(n), kind: kind}
	other := fmt.Sprintf("other%d@example.com", n)
	err := h.db.Write(ctx, func(tx *sqldb.Tx) error {
		for email, id := range map[string]*string{c.email: &c.id, other: &c.other} {
			p, err := person.Create(ctx, tx, person.Draft{Email: email, EmailVerified: true, PasswordHash: "x"})
			if err != nil {
				return err
			}
			*id = p.ID
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !alone {
		c.company = h.site.Company("X", company.EnterprisePlan)
		h.site.Admit(c.company, c.email, company.CompanyPermissions...)
		h.site.Admit(c.company, other)
		if _, err := h.site.Companies.Roles.SetRole(ctx, principal.Operator(), c.company, company.Role{Name: "clerk"}); err != nil {
			return nil, err
		}
		c.team = h.site.Team(c.company, "Team", "lead")
		for _, role := range []string{"lead", "deputy"} {
			if _, err := h.site.Companies.TeamRoles.SetTeamRole(ctx, principal.Operator(), c.team, everything(role)); err != nil {
				return nil, err
			}
		}
		h.site.Join(c.team, c.email, "lead")
		h.site.Join(c.team, other, "deputy")
		h.grant("", c.team, 1000)
	}
	h.grant(c.email, "", 1000)
	if err := h.present(c); err != nil {
		return nil, err
	}
	return c, h.fillIn(c, team && !alone)
}

// everything is a role that allows all.
func everything(name string) company.TeamRole {
	return company.TeamRole{Name: name, Permissions: company.TeamPermissions, PluginKinds: []string{company.AnyKind}}
}

// present makes the credential that the request comes with.
func (h *held) present(c *revokedCaller) error {
	switch c.kind {
	case byPersonal:
		c.tokenID, c.token = h.site.Token(c.email, "")
	case byCompanyX:
		c.tokenID, c.token = h.site.Token(c.email, c.company)
	default:
		c.device = h.site.Device(c.id, "blender")
		c.token = c.device.Tokens.ID
	}
	return nil
}

// fillIn makes what the requests are about: a board with a node, a
// flow, an invitation.
func (h *held) fillIn(c *revokedCaller, team bool) error {
	s := *h.service
	s.token = c.token
	query := ""
	if team {
		query = "?team_id=" + c.team
	}
	var b wire.Board
	var n wire.Node
	var f wire.Flow
	if c.company != "" {
		b = s.newBoard(query)
		a := s.write("POST", "/"+b.ID+"/nodes"+query, `{"kind":"TEXT","text":"x"}`)
		n = decodeAnswer[wire.Node](h.t, a.checkStatus(h.t, "a new node", 201, ""))
		f = s.newFlow(query, "Flow")
	}
	resumable := ""
	if c.company != "" {
		length := strconv.Itoa(len(picture(8, 8)))
		a := s.sendRequest("POST", "/api/v2/uploads/resumable"+query, "Tus-Resumable", "1.0.0", "Upload-Length", length)
		resumable = resumableID(a.checkStatus(h.t, "a new resumable upload", 201, ""))
	}
	elsewhere := h.site.Company("Y", company.TeamPlan)
	_, link, err := h.site.Companies.Invitations.CreateInvitation(h.t.Context(), principal.Operator(), company.Draft{CompanyID: elsewhere, Uses: 1})
	if err != nil {
		return err
	}
	secret, err := tokenOf(link)
	if err != nil {
		return err
	}
	c.fill = strings.NewReplacer(
		"{email}", c.email, "{company_id}", c.company, "{team_id}", c.team, "{uid}", c.other, "{anna}", c.id, "{role}", "spare",
		"{board_id}", b.ID, "{flow_id}", f.ID, "{node_id}", n.ID, "{resumable_id}", resumable, "{invitation}", secret, "{create}", h.body("one", steps(`[]`)))
	return nil
}

// The ways to take away what lets a caller in, all through the second node.

func (h *held) changeAddress(c *revokedCaller) error {
	return h.second.DB.Write(h.t.Context(), func(tx *sqldb.Tx) error {
		return person.SetEmail(h.t.Context(), tx, c.id, "another-"+c.email)
	})
}

func (h *held) revokeDevice(c *revokedCaller) error {
	return h.second.Accounts.Devices.RevokeDevice(h.t.Context(), principal.Principal{}, c.id, c.device.DeviceID)
}

func (h *held) signOut(c *revokedCaller) error {
	return h.second.Accounts.SignIn.SignOutEverywhere(h.t.Context(), principal.Principal{}, c.id)
}

func (h *held) resetPassword(c *revokedCaller) error {
	link, err := h.second.Accounts.SignIn.OperatorResetLink(h.t.Context(), c.email)
	if err != nil {
		return err
	}
	secret, err := tokenOf(link)
	if err != nil {
		return err
	}
	_, err = h.second.Accounts.SignIn.ResetPassword(h.t.Context(), secret, "another horse battery", h.second.Client())
	return err
}

// tokenOf reads the secret of a link that goes out by mail.
func tokenOf(link string) (string, error) {
	address, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	return address.Query().Get("token"), nil
}

func (h *held) suspend(c *revokedCaller) error {
	return h.second.Accounts.SignIn.SetSuspended(h.t.Context(), c.email, true)
}

func (h *held) takePermissions(c *revokedCaller) error {
	if _, err := h.second.Companies.Members.SetMemberPermissions(h.t.Context(), principal.Operator(), c.company, c.email, nil); err != nil {
		return err
	}
	_, err := h.second.Companies.TeamRoles.SetTeamRolePermissions(h.t.Context(), principal.Operator(), c.team, "lead", map[company.Permission]bool{company.ManageTeam: false})
	return err
}

func (h *held) removeFromCompany(c *revokedCaller) error {
	return h.second.Companies.Members.RemoveMemberByEmail(h.t.Context(), principal.Operator(), c.company, c.email)
}

func (h *held) removeFromTeam(c *revokedCaller) error {
	return h.second.Companies.TeamMembers.RemoveTeamMemberByEmail(h.t.Context(), principal.Operator(), c.team, c.email)
}

func (h *held) removeTeam(c *revokedCaller) error {
	return h.second.Companies.Teams.RemoveTeam(h.t.Context(), principal.Operator(), c.team)
}

func (h *held) refuseApps(c *revokedCaller) error { return h.allow(c, company.UsePlugins, false) }

func (h *held) refuseRuns(c *revokedCaller) error { return h.allow(c, company.Generate, false) }

func (h *held) allow(c *revokedCaller, p company.Permission, may bool) error {
	_, err := h.second.Companies.TeamRoles.SetTeamRolePermissions(h.t.Context(), principal.Operator(), c.team, "lead", map[company.Permission]bool{p: may})
	return err
}

func (h *held) limitSpending(c *revokedCaller) error {
	role := everything("lead")
	role.Spend = &company.Spend{Tokens: 1, Window: time.Hour}
	_, err := h.second.Companies.TeamRoles.SetTeamRole(h.t.Context(), principal.Operator(), c.team, role)
	return err
}

func (h *held) changeRole(c *revokedCaller) error {
	_, err := h.second.Companies.TeamMembers.AddTeamMember(h.t.Context(), principal.Operator(), c.team, c.email, "deputy")
	return err
}

func (h *held) deleteToken(c *revokedCaller) error {
	_, err := h.second.Accounts.AccessTokens.DeleteTokenValue(h.t.Context(), c.token)
	return err
}

func (h *held) regenerateToken(c *revokedCaller) error {
	if c.kind == byPersonal {
		_, _, err := h.second.Accounts.AccessTokens.RegenerateAccessToken(h.t.Context(), principal.Principal{PersonID: c.id}, c.tokenID)
		return err
	}
	_, _, err := h.second.Accounts.AccessTokens.RegenerateCompanyToken(h.t.Context(), principal.Principal{PersonID: c.id}, c.company, c.tokenID)
	return err
}
