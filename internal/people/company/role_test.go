package company_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
)

func (w fixture) setRole(companyID, name string, perms ...company.Permission) error {
	return w.Try(func(tx *sqldb.Tx) error {
		return company.SetRole(w.Context(), tx, companyID, company.Role{Name: name, Permissions: perms})
	})
}

func (w fixture) deleteRole(companyID, name string) error {
	return w.Try(func(tx *sqldb.Tx) error { return company.DeleteRole(w.Context(), tx, companyID, name) })
}

func (w fixture) roles(companyID string) map[string][]company.Permission {
	w.Helper()
	all := map[string][]company.Permission{}
	for _, r := range dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Role, error) { return company.Roles(w.Context(), tx, companyID) }) {
		all[r.Name] = r.Permissions
	}
	return all
}

var everything = []company.Permission{company.ManageAPITokens, company.ManageBilling, company.ManageMembers, company.ManageTeams, company.ViewCompanyReports}

func TestNewCompanyHasItsRoles(t *testing.T) {
	each(t, func(w fixture) {
		want := map[string][]company.Permission{"admin": everything, "member": {}}
		if got := w.roles(w.company("Fox").ID); !reflect.DeepEqual(got, want) {
			w.Errorf("roles = %v, want %v", got, want)
		}
	})
}

func TestSetRole(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		w.OK(w.setRole(c.ID, "keeper", company.ManageTeams, company.ManageAPITokens, company.ManageTeams))
		if got, want := w.roles(c.ID)["keeper"], []company.Permission{company.ManageAPITokens, company.ManageTeams}; !slices.Equal(got, want) {
			w.Errorf("permissions = %v, want %v: sorted, no doubles", got, want)
		}
		w.OK(w.setRole(c.ID, "keeper"))
		if got := w.roles(c.ID)["keeper"]; got == nil || len(got) != 0 {
			w.Errorf("permissions = %v after replacing them with none", got)
		}
		w.OK(w.setRole(c.ID, "member", company.ViewCompanyReports))
		w.OK(w.setRole(c.ID, strings.Repeat("x", 120)))
		for _, name := range []string{"", "Keeper", "-keeper", "+", "_x", "a b", "ä", "a\x00", strings.Repeat("x", 121)} {
			w.refused(w.setRole(c.ID, name), fault.Invalid, "name")
		}
		for _, p := range []company.Permission{"", "manage_teams", company.Generate} {
			w.refused(w.setRole(c.ID, "keeper", company.ManageTeams, p), fault.Invalid, "permissions")
		}
		w.OK(w.setRole(c.ID, "admin", everything...))
		w.refused(w.setRole(c.ID, "admin", everything[1:]...), fault.Invalid, "permissions")
		w.refused(w.setRole(ids.New(), "keeper"), fault.NotFound, "")
	})
}

func TestRolesAreBounded(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c.ID, "Film")
		for i := range 98 {
			w.OK(w.setRole(c.ID, fmt.Sprint("r", i)))
			w.OK(w.setTeamRole(team.ID, company.TeamRole{Name: fmt.Sprint("r", i)}))
		}
		w.refused(w.setRole(c.ID, "more"), fault.Invalid, "name")
		w.refused(w.setTeamRole(team.ID, company.TeamRole{Name: "more"}), fault.Invalid, "name")
		w.OK(w.setRole(c.ID, "r7", company.ManageTeams))
		w.OK(w.setTeamRole(team.ID, company.TeamRole{Name: "r7"}))
	})
}

func TestDeleteRole(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		anna := w.person("anna@example.com")
		w.role(c.ID, "keeper")
		w.join(c.ID, anna, "keeper")
		w.refused(w.deleteRole(c.ID, "keeper"), fault.Invalid, "name")
		w.join(c.ID, anna, "member")
		w.invite(company.Draft{CompanyID: c.ID, CompanyRole: "keeper", Lifetime: time.Hour})
		w.refused(w.deleteRole(c.ID, "keeper"), fault.Invalid, "name")
		w.Pass(time.Hour) // the invitation has expired
		w.OK(w.deleteRole(c.ID, "keeper"))
		w.refused(w.deleteRole(c.ID, "keeper"), fault.NotFound, "")
		w.refused(w.deleteRole(c.ID, "bad name\x00"), fault.NotFound, "")
		w.refused(w.deleteRole(ids.New(), "keeper"), fault.NotFound, "")
		for _, name := range []string{"admin", "member"} { // nobody has them
			w.refused(w.deleteRole(w.company("New").ID, name), fault.Invalid, "name")
		}

		w.role(c.ID, "keeper")
		_, secret := w.invite(company.Draft{CompanyID: c.ID, CompanyRole: "keeper", Lifetime: time.Hour})
		bert := w.person("bert@example.com")
		w.OK(w.accept(secret, bert, "bert@example.com"))
		w.join(c.ID, bert, "member")
		w.OK(w.deleteRole(c.ID, "keeper")) // the invitation is used up
	})
}

func TestRoleWith(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		with := func(perms ...company.Permission) string {
			w.Helper()
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) { return company.EnsureRole(w.Context(), tx, c.ID, perms) })
		}
		for _, test := range []struct {
			want  string
			perms []company.Permission
		}{
			{"member", nil},
			{"admin", everything},
			{"manage_api_tokens", []company.Permission{company.ManageAPITokens}},
			{"manage_api_tokens+view_company_reports", []company.Permission{company.ViewCompanyReports, company.ManageAPITokens, company.ManageAPITokens}},
			{"manage_api_tokens+manage_members+manage_teams+view_company_reports", []company.Permission{company.ManageAPITokens, company.ViewCompanyReports, company.ManageMembers, company.ManageTeams}},
		} {
			for range 2 {
				if got := with(test.perms...); got != test.want {
					w.Errorf("role with %v = %q, want %q", test.perms, got, test.want)
				}
			}
		}
		if n := len(w.roles(c.ID)); n != 5 {
			w.Errorf("there are %d roles, want 5", n)
		}
		w.role(c.ID, "bookkeeper", company.ManageBilling)
		if got := with(company.ManageBilling); got != "bookkeeper" {
			w.Errorf("role = %q, want the one that is there", got)
		}
		w.role(c.ID, "another", company.ManageAPITokens)
		if got := with(company.ManageAPITokens); got != "manage_api_tokens" {
			w.Errorf("role = %q, want the one with the plain name", got)
		}
		w.role(c.ID, "manage_teams", company.ManageMembers)
		w.role(c.ID, "manage_teams-2", company.ManageMembers)
		if got := with(company.ManageTeams); got != "manage_teams-3" || !slices.Equal(w.roles(c.ID)[got], []company.Permission{company.ManageTeams}) {
			w.Errorf("role = %q with %v, want a new one beside the changed ones", got, w.roles(c.ID)[got])
		}
		w.role(c.ID, "member", company.ViewCompanyReports)
		if got := with(); len(w.roles(c.ID)[got]) != 0 || got == "member" {
			w.Errorf("role with nothing = %q, which allows %v", got, w.roles(c.ID)[got])
		}
		for _, id := range []string{c.ID, ids.New()} {
			err := w.Try(func(tx *sqldb.Tx) error {
				_, err := company.EnsureRole(w.Context(), tx, id, []company.Permission{"EVIL PERMISSION"})
				return err
			})
			w.refused(err, fault.Invalid, "permissions")
		}
		err := w.Try(func(tx *sqldb.Tx) error { _, err := company.EnsureRole(w.Context(), tx, ids.New(), nil); return err })
		w.refused(err, fault.NotFound, "")
	})
}

func (w fixture) setTeamRole(teamID string, r company.TeamRole) error {
	return w.Try(func(tx *sqldb.Tx) error { return company.SetTeamRole(w.Context(), tx, teamID, r) })
}

func (w fixture) teamRole(teamID, name string) (r company.TeamRole, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) {
		r, err = company.TeamRoleByName(w.Context(), tx, teamID, name)
		return err
	})
	return r, err
}

func TestNewTeamHasItsRoles(t *testing.T) {
	each(t, func(w fixture) {
		team := w.team(w.company("Fox").ID, "Film")
		got := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.TeamRole, error) { return company.TeamRoles(w.Context(), tx, team.ID) })
		all := company.TeamRole{Permissions: []company.Permission{company.Generate, company.ManageTeam, company.UsePlugins},
			ToolsAllowed: []string{}, ToolsBlocked: []string{}, PluginKinds: []string{"*"}}
		manager, member := all, all
		manager.Name, member.Name = "manager", "member"
		member.Permissions = []company.Permission{company.Generate, company.UsePlugins}
		if want := []company.TeamRole{manager, member}; !reflect.DeepEqual(got, want) {
			w.Errorf("roles = %+v, want %+v", got, want)
		}
	})
}

func TestSetTeamRole(t *testing.T) {
	each(t, func(w fixture) {
		team := w.team(w.company("Fox").ID, "Film")
		a, b := "aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb"
		w.OK(w.setTeamRole(team.ID, company.TeamRole{
			Name: "intern", Permissions: []company.Permission{company.UsePlugins, company.Generate, company.UsePlugins},
			ToolsAllowed: []string{b, a, b}, ToolsBlocked: []string{a}, PluginKinds: []string{"nuke", "blender", "nuke"},
			Spend: &company.Spend{Tokens: 500, Window: 24 * time.Hour},
		}))
		want := company.TeamRole{
			Name: "intern", Permissions: []company.Permission{company.Generate, company.UsePlugins},
			ToolsAllowed: []string{a, b}, ToolsBlocked: []string{a}, PluginKinds: []string{"blender", "nuke"},
			Spend: &company.Spend{Tokens: 500, Window: 24 * time.Hour},
		}
		if got, err := w.teamRole(team.ID, "intern"); err != nil || !reflect.DeepEqual(got, want) {
			w.Errorf("role = %+v, %v, want %+v", got, err, want)
		}
		w.OK(w.setTeamRole(team.ID, company.TeamRole{Name: "intern"}))
		want = company.TeamRole{Name: "intern", Permissions: []company.Permission{}, ToolsAllowed: []string{}, ToolsBlocked: []string{}, PluginKinds: []string{}}
		if got, err := w.teamRole(team.ID, "intern"); err != nil || !reflect.DeepEqual(got, want) {
			w.Errorf("role = %+v, %v, want it replaced whole: %+v", got, err, want)
		}
		for _, where := range [][2]string{{team.ID, "extern"}, {team.ID, "\x00"}, {ids.New(), "member"}, {"\x00", "member"}} {
			_, err := w.teamRole(where[0], where[1])
			w.refused(err, fault.NotFound, "")
		}
		w.refused(w.setTeamRole(ids.New(), company.TeamRole{Name: "intern"}), fault.NotFound, "")
		w.refused(w.setTeamRole("\x00", company.TeamRole{Name: "intern"}), fault.NotFound, "")
	})
}

func TestSetTeamRoleRefuses(t *testing.T) {
	each(t, func(w fixture) {
		team := w.team(w.company("Fox").ID, "Film")
		tools, kinds := make([]string, 1001), make([]string, 101)
		for i := range tools {
			tools[i] = ids.New()
		}
		for i := range kinds {
			kinds[i] = fmt.Sprint("k", i)
		}
		spend := func(tokens int64, window time.Duration) company.TeamRole {
			return company.TeamRole{Name: "intern", Spend: &company.Spend{Tokens: tokens, Window: window}}
		}
		for field, bad := range map[string][]company.TeamRole{
			"name":          {{}, {Name: "Intern"}, {Name: "-"}, {Name: strings.Repeat("x", 121)}},
			"permissions":   {{Name: "intern", Permissions: []company.Permission{company.ManageTeams}}},
			"tools_allowed": {{Name: "intern", ToolsAllowed: []string{"x"}}, {Name: "intern", ToolsAllowed: tools}},
			"tools_blocked": {{Name: "intern", ToolsBlocked: []string{""}}, {Name: "intern", ToolsBlocked: tools}},
			"plugin_kinds": {{Name: "intern", PluginKinds: []string{"*", "nuke"}}, {Name: "intern", PluginKinds: []string{"*", "*"}}, {Name: "intern", PluginKinds: []string{"Nuke"}},
				{Name: "intern", PluginKinds: []string{""}}, {Name: "intern", PluginKinds: []string{strings.Repeat("x", 33)}}, {Name: "intern", PluginKinds: kinds}},
			"spend": {spend(-1, time.Hour), spend(1e15+1, time.Hour), spend(1, 0), spend(1, time.Second/2), spend(1, 1500*time.Millisecond), spend(1, 367*24*time.Hour)},
		} {
			for _, r := range bad {
				w.refused(w.setTeamRole(team.ID, r), fault.Invalid, field)
			}
		}
		w.OK(w.setTeamRole(team.ID, company.TeamRole{Name: "intern", ToolsAllowed: tools[1:], ToolsBlocked: tools[1:], PluginKinds: kinds[1:], Spend: &company.Spend{Window: time.Second}}))
		w.OK(w.setTeamRole(team.ID, company.TeamRole{Name: "intern", PluginKinds: []string{"*"}}))
		w.OK(w.setTeamRole(team.ID, company.TeamRole{Name: "intern", PluginKinds: []string{strings.Repeat("x", 32), "a_b-1"}}))
		err := w.setTeamRole(team.ID, company.TeamRole{Name: "", PluginKinds: []string{""}, ToolsBlocked: []string{""}})
		if f, ok := errors.AsType[*fault.Error](err); !ok || len(f.Fields) != 3 {
			w.Errorf("error = %v, want all three problems", err)
		}
	})
}

func TestDeleteTeamRole(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team, other := w.team(c.ID, "Film"), w.team(c.ID, "Print")
		anna := w.person("anna@example.com")
		remove := func(name string) error {
			return w.Try(func(tx *sqldb.Tx) error { return company.DeleteTeamRole(w.Context(), tx, team.ID, name) })
		}
		w.joinTeam(team.ID, anna, "manager")
		w.joinTeam(other.ID, anna, "manager")
		w.refused(remove("manager"), fault.Invalid, "name")
		w.joinTeam(team.ID, anna, "member")
		w.invite(company.Draft{CompanyID: c.ID, TeamID: team.ID, TeamRole: "manager", Lifetime: time.Hour})
		w.refused(remove("manager"), fault.Invalid, "name")
		w.Pass(time.Hour)
		w.domain(c.ID, "example.com", team.ID, "manager")
		w.refused(remove("manager"), fault.Invalid, "name")
		w.Do(func(tx *sqldb.Tx) error { return company.RemoveDomain(w.Context(), tx, c.ID, "example.com") })
		w.OK(remove("manager"))
		w.refused(remove("manager"), fault.NotFound, "")
		w.refused(remove("bad name\x00"), fault.NotFound, "")
		unused := w.team(c.ID, "New")
		err := w.Try(func(tx *sqldb.Tx) error { return company.DeleteTeamRole(w.Context(), tx, unused.ID, "member") })
		w.refused(err, fault.Invalid, "name")
		if _, err := w.teamRole(other.ID, "manager"); err != nil {
			w.Errorf("the role of another team = %v", err)
		}
		err = w.Try(func(tx *sqldb.Tx) error { return company.DeleteTeamRole(w.Context(), tx, ids.New(), "manager") })
		w.refused(err, fault.NotFound, "")
	})
}

func TestTeamRoleAllows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		kinds []string
		kind  string
		want  bool
	}{
		{"an empty list allows no plugin", nil, "nuke", false},
		{"what is not listed is not allowed", []string{"blender"}, "nuke", false},
		{"what is listed is allowed", []string{"nuke"}, "nuke", true},
		{"all kinds", []string{"*"}, "nuke", true},
		{"a plugin without a kind needs all kinds", []string{"*"}, "", true},
		{"a plugin without a kind is on no list", []string{"nuke", ""}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := (company.TeamRole{PluginKinds: test.kinds}).AllowsPlugin(test.kind); got != test.want {
				t.Errorf("allows plugin = %v, want %v", got, test.want)
			}
		})
	}
	r := company.TeamRole{Permissions: []company.Permission{company.Generate}}
	if !r.May(company.Generate) || r.May(company.UsePlugins) {
		t.Error("a role allows something else than it says")
	}
}
