package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// visit is a credential that works on a path, and how it ends there after a
// change.
type visit struct {
	token, path string
	then        outcome
}

// TestChangesCountAtOnce makes changes over and over: the very next request is
// refused, and nobody else notices.
func TestChangesCountAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newMatrix(t, db)
		site, ctx := m.site, t.Context()
		x := site.Company("X", company.TeamPlan)
		team := site.Team(x, "Team", "member", annasEmail)
		const tools = "/api/v2/tools"
		inTeam := tools + "?team_id=" + team
		operator := principal.Operator()

		const carl, eve, fred, gus = "carl@example.com", "eve@example.com", "fred@example.com", "gus@example.com"
		uid := map[string]string{}
		for _, email := range []string{carl, eve, fred, gus} {
			uid[email] = site.Person(email)
		}
		site.Join(team, carl, "artist")
		device := site.Device(uid[carl], "blender").Tokens.ID
		_, own := site.Token(carl, "")
		_, ofX := site.Token(carl, x)
		_, evesOwn := site.Token(eve, "")
		_, fredsOwn := site.Token(fred, "")
		gusDevice := site.Device(uid[gus], "").Tokens.ID
		_, annasOfX := site.Token(annasEmail, x)
		others := []visit{
			{m.token, tools, letIn}, {annasOfX, inTeam, letIn}, {site.Device(m.ids["anna"], "houdini").Tokens.ID, inTeam, letIn},
			{own, tools, letIn}, {device, tools, letIn},
		}

		for _, c := range []struct {
			name string
			// ready undoes what the round before did, and gives what the change is
			// about and the change.
			ready func() ([]visit, func())
		}{
			{"a token is deleted", func() ([]visit, func()) {
				id, token := site.Token(carl, "")
				return []visit{{token, tools, noCredential}}, func() { m.act(gone, "DELETE", "/api/v2/access-tokens/"+id, device) }
			}},
			{"a token is regenerated", func() ([]visit, func()) {
				id, token := site.Token(carl, "")
				return []visit{{token, tools, noCredential}}, func() { m.act(fine, "POST", "/api/v2/access-tokens/"+id+"/regenerate", device) }
			}},
			{"a device is revoked", func() ([]visit, func()) {
				lost := site.Device(uid[carl], "blender")
				return []visit{{lost.Tokens.ID, tools, noCredential}},
					func() { m.act(gone, "POST", "/api/v2/auth/device/revoke", device, lost.DeviceID) }
			}},
			{"somebody signs out everywhere", func() ([]visit, func()) {
				left := site.Device(uid[eve], "").Tokens.ID
				return []visit{{left, tools, noCredential}, {evesOwn, tools, letIn}},
					func() { m.act(gone, "POST", "/api/v2/auth/sign-out-everywhere", left) }
			}},
			{"a role lets no apps in", func() ([]visit, func()) {
				m.mayUsePlugins(team, "artist", true)
				return []visit{{device, inTeam, noPlugin}, {ofX, inTeam, letIn}}, func() { m.mayUsePlugins(team, "artist", false) }
			}},
			{"somebody is taken out of a team", func() ([]visit, func()) {
				m.mayUsePlugins(team, "artist", true)
				site.Join(team, carl, "artist")
				return []visit{{device, inTeam, notMember}, {ofX, inTeam, notMember}},
					func() { m.must(nil, site.Companies.TeamMembers.RemoveTeamMemberByEmail(ctx, operator, team, carl)) }
			}},
			{"somebody is taken out of a company", func() ([]visit, func()) {
				site.Join(team, gus, "member") // and so into the company
				_, token := site.Token(gus, x)
				return []visit{{token, inTeam, noCredential}, {token, tools, noCredential}, {gusDevice, inTeam, notMember}, {gusDevice, tools, letIn}},
					func() { m.must(nil, site.Companies.Members.RemoveMemberByEmail(ctx, operator, x, gus)) }
			}},
			{"somebody is suspended", func() ([]visit, func()) {
				m.must(nil, site.Accounts.SignIn.SetSuspended(ctx, fred, false))
				return []visit{{site.Device(uid[fred], "").Tokens.ID, tools, noCredential}, {fredsOwn, tools, noCredential}},
					func() { m.must(nil, site.Accounts.SignIn.SetSuspended(ctx, fred, true)) }
			}},
		} {
			for round := range 50 {
				visits, change := c.ready()
				for i, v := range visits {
					m.expect(fmt.Sprintf("before %s, visit %d", c.name, i), round, v, letIn)
				}
				change()
				for i, v := range append(visits, others...) {
					m.expect(fmt.Sprintf("after %s, visit %d", c.name, i), round, v, v.then)
				}
			}
		}
		m.wrong.show(t)
	})
}

func (m *matrix) expect(when string, round int, v visit, want outcome) {
	if want == letIn {
		want = fine
	}
	if got, body := m.send("GET", v.path, "", http.Header{"Authorization": {"Bearer " + v.token}}); got != want {
		m.wrong.add(when, "%s, round %d = %v, want %v: %s", when, round, got, want, body)
	}
}

// act makes a call that must succeed, about a device where one is named.
func (m *matrix) act(want outcome, method, path, token string, device ...string) {
	m.t.Helper()
	if got, body := m.send(method, path, "", http.Header{"Authorization": {"Bearer " + token}, "X-Device-Id": device}); got != want {
		m.t.Fatalf("%s %s = %v, want %v: %s", method, path, got, want, body)
	}
}
