package api_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/account/devicelogin"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/testkit/sample"
	"atelier/internal/web/api"
	"atelier/internal/web/api/apitest"
	"atelier/internal/web/httpd"
)

// outcome is how a request ends. The zero outcome is to be let in.
type outcome struct {
	status       int
	code, reason string
}

// What requests are refused with that are not let in.
var (
	letIn          outcome
	noCredential   = outcome{401, "UNAUTHENTICATED", ""}
	wrongKind      = outcome{403, "FORBIDDEN", "credential"}
	noPlugin       = outcome{403, "PLUGIN_NOT_ALLOWED", ""}
	notMember      = outcome{403, "FORBIDDEN", "not_a_member"}
	teamNotAllowed = outcome{400, "ACCOUNT_SELECTION_INVALID", "team_not_allowed"}
	severalTeams   = outcome{400, "ACCOUNT_SELECTION_INVALID", "several"}
	malformedTeam  = outcome{400, "ACCOUNT_SELECTION_INVALID", "malformed"}
	teamRequired   = outcome{400, "ACCOUNT_SELECTION_INVALID", "team_required"}
	noCompany      = outcome{403, "FORBIDDEN", "company"}
	noPlan         = outcome{403, "FORBIDDEN", "plan"}
	notInBrowser   = outcome{403, "FORBIDDEN", "browser"}
	noOperator     = outcome{403, "FORBIDDEN", "operator"}
)

// What handlers answer to those who were let in, besides plain success.
var (
	fine         = outcome{200, "", ""}
	made         = outcome{201, "", ""}
	gone         = outcome{204, "", ""}
	badRequest   = outcome{400, "INVALID_REQUEST", ""}
	notFound     = outcome{404, "NOT_FOUND", ""}
	noPermission = outcome{403, "FORBIDDEN", "permission"}
	noVersion    = outcome{412, "CONFLICT", ""} // of the tus protocol
)

// The classes of routes: whom they are for.
const (
	toAll      = "to all"       // strangers too
	toCallers  = "to callers"   // every credential; team_id selects the account
	toActors   = "to actors"    // toCallers where a company token must name a team
	toManagers = "to managers"  // toActors who may manage the team, or own the account
	toViewers  = "to viewers"   // toActors who may name several teams
	toReports  = "to reports"   // of a company: company_id selects it, team_id is a filter
	toAnybody  = "to anybody"   // every credential; about the person, team_id says nothing
	toPersons  = "to persons"   // the personal account: no company tokens
	toSignedIn = "to signed-in" // managing credentials and companies: ID tokens only
	toOperator = "to operator"  // the whole installation: ID tokens of the people whom the operator names, so not of Anna
	toLeaving  = "to leaving"   // ending devices: ID tokens only, and each use ends one
	toFarewell = "to farewell"  // toLeaving where each use needs a person of its own
	toOther    = "to other"     // toLeaving where X-Device-Id is the device to end, not a proof
)

// endpoints are all routes with a harmless request to each, and what that
// answers to somebody who is let in: a plain member of company X who signed in
// with an app of the kind blender.
var endpoints = []struct {
	route, class, body string
	in                 outcome
}{
	{"POST /api/v2/auth/device/start", toAll, `{"plugin_kind":""}`, badRequest},
	{"GET /api/v2/auth/device/poll", toAll, "", badRequest},
	{"POST /api/v2/auth/device/poll", toAll, `{}`, badRequest},
	{"POST /api/v2/auth/token/refresh", toAll, `{"refresh_token":"x"}`, outcome{401, "TOKEN_INVALID", ""}},
	{"POST /api/v2/auth/session/token", toAll, "", outcome{403, "FORBIDDEN", "header"}},
	{"GET /api/v2/openapi.json", toAll, "", fine},
	{"GET /.well-known/jwks.json", toAll, "", fine},
	{"GET /catalog/{picture}", toAll, "", notFound},

	{"POST /api/v2/auth/device/revoke", toOther, "", gone},
	{"POST /api/v2/auth/sign-out-everywhere", toLeaving, "", gone},
	{"DELETE /api/v2/sessions/{session_id}", toSignedIn, "", notFound},

	{"GET /api/v2/devices", toSignedIn, "", fine},
	{"GET /api/v2/me", toAnybody, "", fine},
	{"GET /me", toAnybody, "", fine},
	{"DELETE /api/v2/me", toFarewell, `{"email":"leaver@example.com"}`, gone},
	{"GET /api/v2/me/export", toFarewell, "", fine},
	{"POST /api/v2/me/top-up", toPersons, "", outcome{403, "FORBIDDEN", "off"}},

	{"GET /api/v2/tools", toCallers, "", fine},
	{"GET /api/v2/tools/{tool_id}", toCallers, "", fine},
	{"GET /api/v2/tool-tags", toCallers, "", fine},
	{"GET /api/v2/kits", toCallers, "", fine},

	{"POST /api/v2/generate", toActors, `{}`, badRequest},
	{"POST /api/v2/generate/preview-cost", toActors, `{}`, badRequest},
	{"GET /api/v2/generate/{request_id}", toActors, "", notFound},
	{"POST /api/v2/generate/{request_id}/cancel", toActors, "", notFound},
	{"GET /api/v2/generate/{request_id}/events", toActors, "", notFound},
	{"GET /api/v2/generate/{request_id}/webhook-attempts", toActors, "", notFound},
	{"POST /api/v2/generate/{request_id}/webhook-attempts/redeliver", toActors, "", notFound},
	{"GET /api/v2/generations", toActors, "", fine},
	{"GET /api/v2/webhook-deliveries", toActors, "", fine},
	{"GET /api/v2/ledger", toActors, "", fine},
	{"GET /api/v2/webhook-secret", toManagers, "", fine},
	{"POST /api/v2/webhook-secret/rotate", toManagers, "", fine},
	{"GET /api/v2/uploads", toActors, "", fine},
	{"POST /api/v2/uploads", toActors, `{}`, outcome{415, "UNSUPPORTED_MEDIA_TYPE", ""}},
	{"GET /api/v2/uploads/{upload_id}", toActors, "", notFound},
	{"DELETE /api/v2/uploads/{upload_id}", toActors, "", notFound},
	{"OPTIONS /api/v2/uploads/resumable", toAll, "", gone},
	{"POST /api/v2/uploads/resumable", toActors, "", noVersion},
	{"HEAD /api/v2/uploads/resumable/{resumable_id}", toActors, "", noVersion},
	{"PATCH /api/v2/uploads/resumable/{resumable_id}", toActors, `{}`, noVersion},
	{"DELETE /api/v2/uploads/resumable/{resumable_id}", toActors, "", noVersion},
	{"GET /api/v2/library", toViewers, "", fine},
	{"GET /api/v2/library/marks", toViewers, "", fine},
	{"GET /api/v2/library/{library_id}", toActors, "", notFound},
	{"DELETE /api/v2/library/{library_id}", toActors, "", notFound},
	{"POST /api/v2/library/{library_id}/restore", toActors, "", notFound},
	{"PUT /api/v2/library/{library_id}/favorite", toActors, "", notFound},
	{"DELETE /api/v2/library/{library_id}/favorite", toActors, "", notFound},
	{"GET /api/v2/reports/usage", toReports, "", fine},
	{"GET /api/v2/reports/runs", toReports, "", fine},
	{"GET /api/v2/flows", toActors, "", fine},
	{"POST /api/v2/flows", toActors, `{}`, badRequest},
	{"POST /api/v2/flows/check", toActors, `{}`, badRequest},
	{"POST /api/v2/flows/draft", toActors, `{}`, badRequest},
	{"GET /api/v2/flows/{flow_id}", toActors, "", notFound},
	{"PUT /api/v2/flows/{flow_id}", toActors, `{}`, badRequest},
	{"DELETE /api/v2/flows/{flow_id}", toActors, "", notFound},
	{"GET /api/v2/flows/{flow_id}/versions", toActors, "", notFound},
	{"GET /api/v2/boards", toActors, "", fine},
	{"POST /api/v2/boards", toActors, `{}`, badRequest},
	{"GET /api/v2/boards/{board_id}", toActors, "", notFound},
	{"PATCH /api/v2/boards/{board_id}", toActors, `{"name":"x"}`, notFound},
	{"DELETE /api/v2/boards/{board_id}", toActors, "", notFound},
	{"POST /api/v2/boards/{board_id}/restore", toActors, "", notFound},
	{"POST /api/v2/boards/{board_id}/nodes", toActors, `{"kind":"TEXT"}`, notFound},
	{"PATCH /api/v2/boards/{board_id}/nodes", toActors, `{"delete":["{node_id}"]}`, notFound},
	{"PATCH /api/v2/boards/{board_id}/nodes/{node_id}", toActors, `{"x":1}`, notFound},
	{"DELETE /api/v2/boards/{board_id}/nodes/{node_id}", toActors, "", notFound},
	{"GET /api/v2/boards/{board_id}/events", toActors, "", notFound},
	{"PUT /api/v2/boards/{board_id}/presence", toActors, `{}`, notFound},
	{"GET /api/v2/events", toActors, "", notFound},
	{"GET /media/{kind}/{id}/{variant}", toAll, "", outcome{403, "FORBIDDEN", "signature"}},
	{"GET /media/{kind}/{id}/{variant}/{name}", toAll, "", outcome{403, "FORBIDDEN", "signature"}},

	{"GET /api/v2/access-tokens", toSignedIn, "", fine},
	{"POST /api/v2/access-tokens", toSignedIn, `{"name":"one more"}`, made},
	{"DELETE /api/v2/access-tokens/{token_id}", toSignedIn, "", notFound},
	{"POST /api/v2/access-tokens/{token_id}/regenerate", toSignedIn, "", notFound},
	{"GET /api/v2/companies/{company_id}/access-tokens", toSignedIn, "", noPermission},
	{"POST /api/v2/companies/{company_id}/access-tokens", toSignedIn, `{"name":"one more","uid":"{uid}"}`, noPermission},
	{"DELETE /api/v2/companies/{company_id}/access-tokens/{token_id}", toSignedIn, "", noPermission},
	{"POST /api/v2/companies/{company_id}/access-tokens/{token_id}/regenerate", toSignedIn, "", noPermission},

	{"GET /api/v2/companies", toSignedIn, "", fine},
	{"GET /api/v2/companies/{company_id}", toSignedIn, "", fine},
	{"PATCH /api/v2/companies/{company_id}", toSignedIn, `{"name":"Other"}`, noPermission},
	{"GET /api/v2/companies/{company_id}/members", toSignedIn, "", noPermission},
	{"PUT /api/v2/companies/{company_id}/members/{uid}", toSignedIn, `{"role":"member"}`, noPermission},
	{"DELETE /api/v2/companies/{company_id}/members/{uid}", toSignedIn, "", noPermission},
	{"GET /api/v2/companies/{company_id}/roles", toSignedIn, "", fine},
	{"PUT /api/v2/companies/{company_id}/roles/{role}", toSignedIn, `{"permissions":[]}`, noPermission},
	{"DELETE /api/v2/companies/{company_id}/roles/{role}", toSignedIn, "", noPermission},
	{"GET /api/v2/companies/{company_id}/domains", toSignedIn, "", noPermission},
	{"POST /api/v2/companies/{company_id}/domains", toSignedIn, `{"domain":"example.com"}`, noPermission},
	{"DELETE /api/v2/companies/{company_id}/domains/{domain}", toSignedIn, "", noPermission},
	{"POST /api/v2/companies/{company_id}/domains/{domain}/verify", toSignedIn, "", noPermission},
	{"GET /api/v2/companies/{company_id}/audit", toSignedIn, "", noPermission},
	{"GET /api/v2/companies/{company_id}/scim-token", toSignedIn, "", noPermission},
	{"POST /api/v2/companies/{company_id}/scim-token", toSignedIn, "", noPermission},
	{"DELETE /api/v2/companies/{company_id}/scim-token", toSignedIn, "", noPermission},
	{"GET /api/v2/companies/{company_id}/teams", toSignedIn, "", fine},
	{"POST /api/v2/companies/{company_id}/teams", toSignedIn, `{"name":"Other"}`, noPermission},
	{"GET /api/v2/teams/{team_id}", toSignedIn, "", fine},
	{"PATCH /api/v2/teams/{team_id}", toSignedIn, `{"name":"Other"}`, noPermission},
	{"DELETE /api/v2/teams/{team_id}", toSignedIn, "", noPermission},
	{"GET /api/v2/teams/{team_id}/members", toSignedIn, "", fine},
	{"PUT /api/v2/teams/{team_id}/members/{uid}", toSignedIn, `{"role":"member"}`, noPermission},
	{"DELETE /api/v2/teams/{team_id}/members/{uid}", toSignedIn, "", noPermission},
	{"GET /api/v2/teams/{team_id}/roles", toSignedIn, "", fine},
	{"PUT /api/v2/teams/{team_id}/roles/{role}", toSignedIn, `{"permissions":{}}`, noPermission},
	{"DELETE /api/v2/teams/{team_id}/roles/{role}", toSignedIn, "", noPermission},
	{"GET /api/v2/teams/{team_id}/budget", toSignedIn, "", noPermission},
	{"PUT /api/v2/teams/{team_id}/budget", toSignedIn, `{"tokens":100}`, noPermission},
	{"DELETE /api/v2/teams/{team_id}/budget", toSignedIn, "", noPermission},
	{"GET /api/v2/companies/{company_id}/invitations", toSignedIn, "", noPermission},
	{"POST /api/v2/companies/{company_id}/invitations", toSignedIn, `{}`, noPermission},
	{"GET /api/v2/invitations", toSignedIn, "", fine},
	{"POST /api/v2/invitations/accept", toSignedIn, `{"token":"x"}`, notFound},
	{"DELETE /api/v2/invitations/{invitation_id}", toSignedIn, "", notFound},
	{"POST /api/v2/invitations/{invitation_id}/accept", toSignedIn, "", notFound},

	{"GET /v1/models", toCallers, "", fine},
	{"GET /v1/models/{model...}", toCallers, "", fine},
	{"POST /v1/images/generations", toActors, `{"model":"nothing"}`, outcome{404, "NOT_FOUND", ""}},
	{"POST /v1/images/edits", toActors, `{"model":"nothing"}`, outcome{404, "NOT_FOUND", ""}},
	{"POST /v1/images/variations", toActors, `{"model":"nothing"}`, outcome{404, "NOT_FOUND", ""}},
	{"POST /v1/audio/speech", toActors, `{"model":"nothing"}`, outcome{404, "NOT_FOUND", ""}},
	{"POST /v1/videos", toActors, `{"model":"nothing"}`, outcome{404, "NOT_FOUND", ""}},
	{"GET /v1/videos", toActors, "", fine},
	{"GET /v1/videos/{video_id}", toActors, "", notFound},
	{"DELETE /v1/videos/{video_id}", toActors, "", notFound},
	{"GET /v1/videos/{video_id}/content", toActors, "", notFound},
	{" /v1/{path...}", toAll, "", notFound},
	{"GET /.well-known/oauth-authorization-server", toAll, "", fine},
	{"GET /.well-known/oauth-protected-resource", toAll, "", fine},
	{"GET /.well-known/oauth-protected-resource/{path...}", toAll, "", outcome{404, "", ""}},
	{"POST /oauth/token", toAll, `{}`, outcome{400, "", ""}},
	{"POST /oauth/revoke", toAll, `{}`, outcome{400, "", ""}},
	{"POST /oauth/register", toAll, `{}`, outcome{400, "", ""}},
	{"POST /mcp", toActors, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, fine},

	{"GET /api/v2/operator/status", toOperator, "", fine},
	{"GET /api/v2/operator/runs", toOperator, "", fine},
	{"POST /api/v2/operator/runs/{request_id}/cancel", toOperator, "", notFound},
	{"GET /api/v2/operator/people", toOperator, "", fine},
	{"GET /api/v2/operator/companies", toOperator, "", fine},
	{"POST /api/v2/operator/grants", toOperator, `{"account_id":"{anna}","tokens":1,"reason":"x"}`, made},
	{"GET /api/v2/operator/settings", toOperator, "", fine},
}

// queries are parameters that make a request harmless. The stream of an account
// would never end, so it is requested with a board that does not exist.
var queries = map[string]string{"GET /api/v2/events": "board_id={board_id}&"}

// lasting are the routes that make a secret which outlives a browser's
// session, or end the account. Web tokens are refused there.
var lasting = []string{
	"DELETE /api/v2/me",
	"POST /api/v2/access-tokens",
	"POST /api/v2/access-tokens/{token_id}/regenerate",
	"POST /api/v2/companies/{company_id}/access-tokens",
	"POST /api/v2/companies/{company_id}/access-tokens/{token_id}/regenerate",
	"POST /api/v2/companies/{company_id}/scim-token",
}

// The kinds of credentials, as the columns of the tables below.
const (
	byNobody    = iota // no credential, or one that counts no more
	byIDToken          // of a device of Anna, who is in X and Y
	byMisplaced        // the same with an X-Device-Id that is not its device's
	byPersonal         // an access token of hers
	byCompanyX         // an access token of X for her
	byCompanyY         // an access token of Y for her
	byWeb              // a web token of her browser's session
)

// kinds is what each class answers to each kind of credential. toCallers then
// looks at the account.
var kinds = map[string][6]outcome{
	// byNobody, byIDToken, byMisplaced, byPersonal, byCompanyX, byCompanyY
	toAll:      {letIn, letIn, letIn, letIn, letIn, letIn},
	toCallers:  {noCredential, letIn, noCredential, letIn, letIn, letIn},
	toActors:   {noCredential, letIn, noCredential, letIn, letIn, letIn},
	toManagers: {noCredential, letIn, noCredential, letIn, letIn, letIn},
	toViewers:  {noCredential, letIn, noCredential, letIn, letIn, letIn},
	toReports:  {noCredential, noCompany, noCredential, wrongKind, noPlan, letIn}, // Y has the plan, and Anna the permission there
	toAnybody:  {noCredential, letIn, noCredential, letIn, letIn, letIn},
	toPersons:  {noCredential, letIn, noCredential, letIn, wrongKind, wrongKind},
	toSignedIn: {noCredential, letIn, noCredential, wrongKind, wrongKind, wrongKind},
	toOperator: {noCredential, noOperator, noCredential, wrongKind, wrongKind, wrongKind},
	toLeaving:  {noCredential, letIn, noCredential, wrongKind, wrongKind, wrongKind},
	toFarewell: {noCredential, letIn, noCredential, wrongKind, wrongKind, wrongKind},
	toOther:    {noCredential, letIn, letIn, wrongKind, wrongKind, wrongKind},
}

// selectors name accounts, with what toCallers answers to each kind that it
// lets in. An ID token reaches the personal account and teams whose role lets
// its app in, a personal token nothing but the personal account, a company
// token its company's teams that the person is in, whatever their roles say
// about apps. The catalog is the one place where it may leave the team out.
var selectors = []struct {
	name, query                           string
	idToken, personal, companyX, companyY outcome
}{
	{"no team", "", letIn, letIn, letIn, letIn},
	{"an empty team", "team_id=", letIn, letIn, letIn, letIn},
	{"a team", "team_id={team}", letIn, teamNotAllowed, letIn, notMember},
	{"a team whose role lets no apps in", "team_id={appless}", noPlugin, teamNotAllowed, letIn, notMember},
	{"a team whose role lets other apps in", "team_id={houdini}", noPlugin, teamNotAllowed, letIn, notMember},
	{"a team in another company", "team_id={inY}", letIn, teamNotAllowed, notMember, letIn},
	{"a team of colleagues", "team_id={colleagues}", notMember, teamNotAllowed, notMember, notMember},
	{"a foreign team", "team_id={foreign}", notMember, teamNotAllowed, notMember, notMember},
	{"a team that never was", "team_id={none}", notMember, teamNotAllowed, notMember, notMember},
	{"a team that was removed", "team_id={removed}", notMember, teamNotAllowed, notMember, notMember},
	{"the person", "team_id={anna}", notMember, teamNotAllowed, notMember, notMember},
	{"the company", "team_id={x}", notMember, teamNotAllowed, notMember, notMember},
	{"an id too long", "team_id={team}x", notMember, teamNotAllowed, notMember, notMember},
	{"two teams", "team_id={team},{inY}", severalTeams, severalTeams, severalTeams, severalTeams},
	{"one team twice", "team_id={team}&team_id={team}", letIn, teamNotAllowed, letIn, notMember},
	{"two teams, each by itself", "team_id={team}&team_id={inY}", severalTeams, severalTeams, severalTeams, severalTeams},
	{"a dash", "team_id=a-b", malformedTeam, malformedTeam, malformedTeam, malformedTeam},
	{"a NUL", "team_id=%00", malformedTeam, malformedTeam, malformedTeam, malformedTeam},
	{"a space", "team_id=a%20b", malformedTeam, malformedTeam, malformedTeam, malformedTeam},
	{"a letter of others", "team_id=%C3%A9quipe", malformedTeam, malformedTeam, malformedTeam, malformedTeam},
}

// exceptions is where a class answers otherwise than the selectors say.
var exceptions = map[string]map[string]map[int]*outcome{
	toActors: {
		"no team":       {byCompanyX: &teamRequired, byCompanyY: &teamRequired},
		"an empty team": {byCompanyX: &teamRequired, byCompanyY: &teamRequired},
	},
	// Anna is a plain member, but in the team whose role lets other apps in she
	// has a role that allows everything.
	toManagers: {
		"no team":                           {byCompanyX: &teamRequired, byCompanyY: &teamRequired},
		"an empty team":                     {byCompanyX: &teamRequired, byCompanyY: &teamRequired},
		"a team":                            {byIDToken: &noPermission, byCompanyX: &noPermission},
		"one team twice":                    {byIDToken: &noPermission, byCompanyX: &noPermission},
		"a team whose role lets no apps in": {byCompanyX: &noPermission},
		"a team in another company":         {byIDToken: &noPermission, byCompanyY: &noPermission},
	},
	toReports: {
		"an id too long":     {byCompanyY: &malformedTeam},
		"two teams":          {byCompanyY: &severalTeams},
		"a dash":             {byCompanyY: &malformedTeam},
		"a NUL":              {byCompanyY: &malformedTeam},
		"a space":            {byCompanyY: &malformedTeam},
		"a letter of others": {byCompanyY: &malformedTeam},

		"two teams, each by itself": {byCompanyY: &severalTeams},
	},
	toViewers: {
		"no team":       {byCompanyX: &teamRequired, byCompanyY: &teamRequired},
		"an empty team": {byCompanyX: &teamRequired, byCompanyY: &teamRequired},
		"two teams":     {byIDToken: &letIn, byPersonal: &teamNotAllowed, byCompanyX: &notMember, byCompanyY: &notMember},
	},
}

// proof is a credential as requests present it.
type proof struct {
	name string
	kind int
	// headers presents it; live is the device that an ID token is of.
	headers func(live devicelogin.Login) http.Header
}

// cell is one request of the matrix.
type cell struct {
	name, route        string
	method, path, body string
	headers            http.Header
	want               outcome
	same               string // answers of cells with the same word here are the same bytes
	fresh              *proof // to be presented by a device made for this cell
	alone              bool   // of somebody made for it too
}

// TestMatrix holds every credential against every route and every way to name
// an account.
func TestMatrix(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newMatrix(t, db)
		m.furnish()
		var shared, fresh []cell
		for _, c := range sample.Of(m.cells(), 11) {
			if c.fresh != nil {
				fresh = append(fresh, c)
			} else {
				shared = append(shared, c)
			}
		}
		var group sync.WaitGroup
		for n := range doors {
			group.Go(func() {
				for i := n; i < len(shared); i += doors {
					m.check(shared[i])
				}
			})
		}
		for _, c := range fresh { // one by one: signing out ends all devices of the person
			who := m.ids["lea"]
			if c.alone {
				who = m.leaver()
			}
			if c.fresh.kind == byWeb {
				_, token := m.webToken(who)
				c.headers = http.Header{"Authorization": {"Bearer " + token}}
			} else {
				c.headers = c.fresh.headers(m.site.Device(who, "blender"))
			}
			m.check(c)
		}
		group.Wait()
		m.check(cell{name: "Bert at last", method: "GET", path: "/api/v2/me", headers: http.Header{"Authorization": {"Bearer " + m.bystander.Tokens.ID}}, want: fine})
		m.wrong.show(t)
	})
}

// doors is how many requests of the matrix are under way at once.
const doors = 4

func TestMatrixNamesEveryRoute(t *testing.T) {
	t.Parallel()
	var named []string
	for _, e := range endpoints {
		named = append(named, e.route)
		if !slices.Contains(api.Routes(), e.route) {
			t.Errorf("%s is in the matrix and not served", e.route)
		}
	}
	for _, route := range api.Routes() {
		if !slices.Contains(named, route) {
			t.Errorf("%s is served and not in the matrix", route)
		}
	}
}

// tally collects what is wrong in many requests and shows one of each sort.
type tally struct {
	mu    sync.Mutex
	sorts []string
	first map[string]string
	count map[string]int
}

func (y *tally) add(sort, format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.count[sort]++; y.count[sort] == 1 {
		y.sorts = append(y.sorts, sort)
		y.first[sort] = fmt.Sprintf(format, args...)
	}
}

func (y *tally) show(t *testing.T) {
	t.Helper()
	const most = 25
	for _, sort := range y.sorts[:min(most, len(y.sorts))] {
		t.Errorf("%.600s (%d such)", y.first[sort], y.count[sort])
	}
	if len(y.sorts) > most {
		t.Errorf("and %d more sorts of problems", len(y.sorts)-most)
	}
}

// matrix is an installation with somebody to try every credential of.
type matrix struct {
	*service
	ids       map[string]string // what {name} in paths, bodies and queries stands for
	fill      *strings.Replacer
	proofs    []proof
	device    devicelogin.Login // of Anna, for all cells that do not end it
	bystander devicelogin.Login // of Bert, which nobody else can end
	wrong     *tally

	handler  http.Handler // of the service, without the way over the network
	contract *apitest.Contract

	mu     sync.Mutex
	first  map[string]string // by cell.same
	judged map[string]judged // by all that its header is not
}

// newMatrix builds an installation with one person.
func newMatrix(t *testing.T, db *sqldb.DB) *matrix {
	t.Helper()
	m := &matrix{service: startService(t, db, limits), wrong: &tally{first: map[string]string{}, count: map[string]int{}}, first: map[string]string{}, judged: map[string]judged{}}
	m.setCatalog(manyTools(2))
	h, err := api.New(m.parts)
	m.must(nil, err)
	m.handler = httpd.New(h, httpd.Options{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Health: &httpd.Health{Now: time.Now}, Now: time.Now, DatabaseBudget: time.Minute})
	m.contract, err = apitest.Load()
	m.must(nil, err)
	who := getJSON[struct{ User struct{ UID string } }](m.service, "/api/v2/me")
	m.ids = map[string]string{"anna": who.User.UID}
	return m
}

// annasEmail is that of the person whom start makes.
const annasEmail = "anna@example.com"

// furnish makes the people, companies, teams and credentials of the matrix.
func (m *matrix) furnish() {
	m.t.Helper()
	named := m.ids
	named["none"], named["token_id"], named["invitation_id"] = ids.New(), ids.New(), ids.New()
	named["request_id"], named["upload_id"], named["library_id"] = uuid.NewString(), ids.New(), ids.New()+":"+uuid.NewString()
	named["board_id"], named["node_id"], named["session_id"] = ids.New(), ids.New(), ids.New()
	named["model..."], named["video_id"], named["path..."] = "t0000", uuid.NewString(), "nothing"
	named["kind"], named["id"], named["variant"] = "r", uuid.NewString(), "file"
	named["role"], named["domain"], named["picture"] = "member", "example.com", strings.Repeat("0", 64)+".png"
	for _, name := range []string{"bert", "lea", "sam", "otto", "rita"} {
		named[name] = m.site.Person(name + "@example.com")
	}
	named["uid"] = named["bert"]
	x, y, z := m.site.Company("X", company.TeamPlan), m.site.Company("Y", company.EnterprisePlan), m.site.Company("Z", company.TeamPlan)
	named["x"], named["company_id"] = x, x
	m.site.Admit(x, annasEmail)
	m.site.Admit(y, annasEmail, company.ViewCompanyReports)
	m.site.Admit(x, "rita@example.com")
	named["team"] = m.site.Team(x, "Team", "member", annasEmail)
	named["appless"] = m.site.Team(x, "Appless", "viewer", annasEmail)
	m.mayUsePlugins(named["appless"], "viewer", false)
	named["houdini"] = m.site.Team(x, "Houdini", "artist", annasEmail)
	role := company.TeamRole{Name: "artist", Permissions: company.TeamPermissions, PluginKinds: []string{"houdini"}}
	m.must(m.site.Companies.TeamRoles.SetTeamRole(m.t.Context(), principal.Operator(), named["houdini"], role))
	named["colleagues"] = m.site.Team(x, "Colleagues", "member", "rita@example.com")
	named["removed"] = m.site.Team(x, "Removed", "member", annasEmail)
	m.must(nil, m.site.Companies.Teams.RemoveTeam(m.t.Context(), principal.Operator(), named["removed"]))
	named["inY"] = m.site.Team(y, "In Y", "member", annasEmail)
	named["foreign"] = m.site.Team(z, "Foreign", "member", "bert@example.com")
	named["team_id"] = named["team"]

	tools := getJSON[struct{ Data []struct{ ID string } }](m.service, "/api/v2/tools")
	named["tool_id"] = tools.Data[0].ID

	var pairs []string
	for name, id := range named {
		pairs = append(pairs, "{"+name+"}", id)
	}
	m.fill = strings.NewReplacer(pairs...)
	m.proofs = m.present(x, y)
}

// present makes the credentials of Anna and of those who have none any more.
func (m *matrix) present(x, y string) []proof {
	site, ctx := m.site, m.t.Context()
	bearer := func(token string) func(devicelogin.Login) http.Header {
		return func(devicelogin.Login) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	}
	plain := func(name string, values ...string) func(devicelogin.Login) http.Header {
		return func(devicelogin.Login) http.Header { return http.Header{name: values} }
	}
	withDevice := func(ids ...string) func(devicelogin.Login) http.Header {
		return func(live devicelogin.Login) http.Header {
			return http.Header{"Authorization": {"Bearer " + live.Tokens.ID}, "X-Device-Id": ids}
		}
	}
	device := site.Device(m.ids["anna"], "blender")
	m.device, m.bystander = device, site.Device(m.ids["bert"], "blender")
	forger := m.forger()
	lies := func(change map[string]any) string { return forger.token(m.ids["anna"], device.DeviceID, change) }

	revoked := site.Device(m.ids["anna"], "blender")
	m.must(nil, site.Accounts.Devices.RevokeDevice(ctx, principal.Principal{}, m.ids["anna"], revoked.DeviceID))
	signedOut := site.Device(m.ids["otto"], "blender")
	m.must(nil, site.Accounts.SignIn.SignOutEverywhere(ctx, principal.Principal{}, m.ids["otto"]))
	suspended := site.Device(m.ids["sam"], "blender")
	_, suspendedToken := site.Token("sam@example.com", "")
	_, suspendedWeb := m.webToken(m.ids["sam"])
	m.must(nil, site.Accounts.SignIn.SetSuspended(ctx, "sam@example.com", true))
	me := principal.Principal{PersonID: m.ids["anna"]}
	id, deleted := site.Token(annasEmail, "")
	m.must(nil, site.Accounts.AccessTokens.DeleteAccessToken(ctx, me, id))
	id, regenerated := site.Token(annasEmail, "")
	_, fresh, err := site.Accounts.AccessTokens.RegenerateAccessToken(ctx, me, id)
	m.must(nil, err)
	_, ofX := site.Token(annasEmail, x)
	_, ofY := site.Token(annasEmail, y)
	_, former := site.Token("rita@example.com", x)
	m.must(nil, site.Companies.Members.RemoveMemberByEmail(ctx, principal.Operator(), x, "rita@example.com"))
	var cookie string
	m.must(nil, site.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		_, cookie, err = session.Start(ctx, tx, session.Session{PersonID: m.ids["anna"], Provider: "password"}, time.Hour)
		return err
	}))
	_, theirs, err := ed25519.GenerateKey(nil)
	m.must(nil, err)
	elsewhere := forger
	elsewhere.kid, elsewhere.key = ids.New(), theirs

	_, web := m.webToken(m.ids["anna"])
	endedID, ended := m.webToken(m.ids["anna"])
	m.must(nil, site.Accounts.SignIn.EndSession(ctx, me, endedID))
	otherID, _ := m.webToken(m.ids["bert"])

	return []proof{
		{"nothing", byNobody, func(devicelogin.Login) http.Header { return http.Header{} }},
		{"two Authorization headers", byNobody, plain("Authorization", "Bearer "+m.token, "Bearer "+m.token)},
		{"an empty header", byNobody, plain("Authorization", "")},
		{"another scheme", byNobody, plain("Authorization", "Basic "+m.token)},
		{"no scheme", byNobody, plain("Authorization", m.token)},
		{"a scheme alone", byNobody, plain("Authorization", "Bearer")},
		{"a malformed token", byNobody, bearer("x")},
		{"a token nobody made", byNobody, bearer(fakeAccessToken("atl_p_"))},
		{"a company token nobody made", byNobody, bearer(fakeAccessToken("atl_c_"))},
		{"an expired ID token", byNobody, bearer(lies(map[string]any{"iat": time.Now().Add(-2 * time.Hour).Unix(), "exp": time.Now().Add(-time.Second).Unix()}))},
		{"the ID token of a revoked device", byNobody, bearer(revoked.Tokens.ID)},
		{"the ID token of somebody who signed out everywhere", byNobody, bearer(signedOut.Tokens.ID)},
		{"the ID token of somebody suspended", byNobody, bearer(suspended.Tokens.ID)},
		{"the personal token of somebody suspended", byNobody, bearer(suspendedToken)},
		{"the ID token of another installation", byNobody, bearer(elsewhere.token(m.ids["anna"], device.DeviceID, nil))},
		{"an ID token for somebody else's device", byNobody, bearer(lies(map[string]any{"sub": m.ids["bert"]}))},
		{"a refresh token", byNobody, bearer(device.Tokens.Refresh)},
		{"a device code", byNobody, bearer(site.Start("blender").DeviceCode)},
		{"a deleted personal token", byNobody, bearer(deleted)},
		{"a personal token before it was regenerated", byNobody, bearer(regenerated)},
		{"the company token of somebody who was removed", byNobody, bearer(former)},
		{"a session cookie", byNobody, plain("Cookie", "__Host-atelier="+cookie+"; atelier_session="+cookie)},

		{"a web token of a session that was ended", byNobody, bearer(ended)},
		{"a web token for somebody else's session", byNobody, bearer(lies(map[string]any{"token_use": "web", "device_id": nil, "session_id": otherID}))},
		{"a web token that names a device", byNobody, bearer(lies(map[string]any{"token_use": "web"}))},
		{"an ID token that names a session", byNobody, bearer(lies(map[string]any{"device_id": nil, "session_id": otherID}))},
		{"a web token of somebody who was suspended", byNobody, bearer(suspendedWeb)},
		{"a web token", byWeb, bearer(web)},

		{"an ID token with the X-Device-Id of none", byMisplaced, withDevice(ids.New())},
		{"an ID token with the X-Device-Id of somebody else", byMisplaced, withDevice(m.bystander.DeviceID)},
		{"an ID token with an empty X-Device-Id", byMisplaced, withDevice("")},
		{"an ID token with two X-Device-Id", byMisplaced, withDevice(device.DeviceID, device.DeviceID)},
		{"an ID token", byIDToken, withDevice()},
		{"an ID token with its X-Device-Id", byIDToken, func(live devicelogin.Login) http.Header { return withDevice(live.DeviceID)(live) }},
		{"a personal token", byPersonal, bearer(fresh)},
		{"a personal token in lower-case scheme", byPersonal, plain("Authorization", "bearer "+m.token)},
		{"a company token", byCompanyX, bearer(ofX)},
		{"a company token of another company", byCompanyY, bearer(ofY)},
	}
}

// cells lists the matrix.
func (m *matrix) cells() (all []cell) {
	for _, e := range endpoints {
		method, path, _ := strings.Cut(m.fill.Replace(e.route), " ")
		for _, p := range m.proofs {
			for _, s := range selectors {
				c := cell{name: p.name + ", " + e.route + ", " + s.name, route: e.route, method: method, path: path + "?" + m.fill.Replace(queries[e.route]+s.query), body: m.fill.Replace(e.body)}
				c.headers = p.headers(m.device)
				kind := p.kind
				if kind == byWeb { // the same as an ID token, except as wantOfWeb says
					kind = byIDToken
				}
				c.want = kinds[e.class][kind]
				if c.want == letIn && slices.Contains([]string{toCallers, toActors, toManagers, toViewers}, e.class) {
					c.want = [...]outcome{byIDToken: s.idToken, byPersonal: s.personal, byCompanyX: s.companyX, byCompanyY: s.companyY}[kind]
				}
				if other := exceptions[e.class][s.name][kind]; other != nil {
					c.want = *other
				}
				if p.kind == byWeb {
					c.want = wantOfWeb(e.route, e.class, s.name, c.want)
				}
				switch {
				case c.want == wrongKind: // it says what would do instead
				case c.want == badRequest: // it says what is wrong
				case c.want == severalTeams: // it says how many may be named
					c.same = fmt.Sprint(c.want, e.class == toViewers)
				case c.want != letIn:
					c.same = fmt.Sprint(c.want)
				case e.class == toOther && p.kind == byMisplaced:
					c.want, c.same = notFound, e.route // one answer for devices of others and none
				case e.class == toOther && p.kind == byWeb:
					c.want = notFound // a browser is no device
				case e.class == toOther || e.class == toLeaving:
					c.want, c.fresh = e.in, &p
				case e.class == toFarewell:
					c.want, c.fresh, c.alone = e.in, &p, true
				case e.class == toAll:
					c.want, c.same = e.in, e.route
				default:
					c.want = e.in
				}
				if c.same != "" && strings.HasPrefix(path, "/v1/") { // in another form
					c.same += " under /v1"
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// wantOfWeb is what a web token gets where an ID token of a device gets want.
// It cannot make what lasts, and no role asks which app it is.
func wantOfWeb(route, class, selector string, want outcome) outcome {
	switch {
	case slices.Contains(lasting, route):
		return notInBrowser
	case want != noPlugin:
		return want
	case class == toManagers && selector == "a team whose role lets no apps in":
		return noPermission
	}
	return letIn
}

// webToken makes a browser session of a person and gives a token of it.
func (m *matrix) webToken(personID string) (sessionID, token string) {
	ctx := m.t.Context()
	m.must(nil, m.site.DB.Write(ctx, func(tx *sqldb.Tx) error {
		s, _, err := session.Start(ctx, tx, session.Session{PersonID: personID, Provider: "password"}, time.Hour)
		if err != nil {
			return err
		}
		sessionID = s.ID
		token, _, err = m.site.Tokens.SignToken(ctx, tx, idtoken.Claims{PersonID: personID, SessionID: s.ID})
		return err
	}))
	return sessionID, token
}

// leaver makes somebody with the address of those who leave, which whoever had
// it before gives up.
func (m *matrix) leaver() (id string) {
	ctx := m.t.Context()
	m.must(nil, m.site.DB.Write(ctx, func(tx *sqldb.Tx) error {
		const email = "leaver@example.com"
		before, err := person.ByEmail(ctx, tx, email)
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE person SET email = id || '@example.com', email_key = lower(id) || '@example.com' WHERE id = $1`, before.ID)
		} else if fault.Is(err, fault.NotFound) {
			err = nil
		}
		if err != nil {
			return err
		}
		p, err := person.Create(ctx, tx, person.Draft{Email: email, EmailVerified: true, PasswordHash: "x"})
		id = p.ID
		return err
	}))
	return id
}

// check makes the request of a cell and holds the answer against what it must
// be.
func (m *matrix) check(c cell) {
	got, body := m.send(c.method, c.path, c.body, c.headers)
	if got != c.want {
		m.wrong.add(fmt.Sprint(c.route, got, c.want), "%s = %v, want %v: %s", c.name, got, c.want, body)
		return
	}
	if c.same == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, seen := m.first[c.same]; !seen {
		m.first[c.same] = body
	} else if body != first {
		m.wrong.add(c.route+c.same, "%s answers %s, elsewhere it is %s", c.name, body, first)
	}
}

// send makes a request and gives how it ended, and the body without the trace
// id.
func (m *matrix) send(method, path, body string, headers http.Header) (outcome, string) {
	r, err := http.NewRequestWithContext(m.t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		m.wrong.add("request", "%s %s: %v", method, path, err)
		return outcome{}, ""
	}
	r.RemoteAddr, r.Header = "192.0.2.1:1234", headers.Clone()
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if r.URL.Path == "/mcp" {
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r)
	a := w.Result()
	trace := a.Header.Get("X-Trace-Id")
	a.Header.Del("X-Trace-Id")
	plain := strings.Replace(w.Body.String(), trace, "", 1)
	key := fmt.Sprint(method, r.URL.Path, a.StatusCode, plain)
	m.mu.Lock()
	known, seen := m.judged[key]
	m.mu.Unlock()
	if seen && maps.EqualFunc(known.header, a.Header, slices.Equal) {
		return known.outcome, plain
	}
	got := outcome{status: a.StatusCode}
	if isOAuth := strings.Contains(r.URL.Path, "/oauth"); isOAuth && got.status >= 400 { // errors in another form
		var e struct{ Error string }
		if err := json.Unmarshal([]byte(plain), &e); err != nil || e.Error == "" {
			m.wrong.add("envelope", "%s %s = %d %s", method, path, got.status, plain)
		}
	} else if got.status >= 400 {
		type problem struct {
			Code    string
			Details struct{ Reason string }
		}
		var e struct {
			Error struct {
				problem
				Atelier problem // under /v1
			}
		}
		if err := json.Unmarshal([]byte(plain), &e); err != nil {
			m.wrong.add("envelope", "%s %s = %d %s", method, path, got.status, plain)
		}
		found := e.Error.problem
		if strings.HasPrefix(path, "/v1/") {
			found = e.Error.Atelier
		}
		got.code, got.reason = found.Code, found.Details.Reason
	}
	want := "Bearer"
	if r.URL.Path == "/mcp" {
		want = `Bearer resource_metadata="https://atelier.example/.well-known/oauth-protected-resource/mcp"`
	}
	if challenge := a.Header.Get("WWW-Authenticate"); got.status == 401 && challenge != want {
		m.wrong.add("challenge", "%s %s = 401 with the challenge %q", method, path, challenge)
	}
	m.mu.Lock()
	m.judged[key] = judged{got, a.Header.Clone()}
	m.mu.Unlock()
	a.Header.Set("X-Trace-Id", trace)
	if err := m.contract.CheckResponse(method, r.URL.Path, a.StatusCode, a.Header, w.Body.Bytes()); err != nil && strings.HasPrefix(path, "/api/") {
		m.wrong.add("contract "+method+r.URL.Path, "%s %s breaks the contract: %v\n%s", method, path, err, plain)
	}
	return got, plain
}

// judged is an answer that was held against the OpenAPI document. One that
// differs in nothing but its trace id need not be again.
type judged struct {
	outcome
	header http.Header
}

// must ends the test after an accident.
func (m *matrix) must(_ any, err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// mayUsePlugins tells a team's role whether it lets apps in.
func (m *matrix) mayUsePlugins(teamID, role string, may bool) {
	m.t.Helper()
	m.must(m.site.Companies.TeamRoles.SetTeamRolePermissions(m.t.Context(), principal.Operator(), teamID, role, map[company.Permission]bool{company.UsePlugins: may}))
}
