package companyadmin_test

import (
	"slices"
	"testing"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

func (w fixture) teamMembers(teamID string) map[string]string {
	w.Helper()
	all, err := w.companies.TeamMembers.ListTeamMembers(w.ctx(), operator, teamID, company.Key{}, 1000)
	w.ok(err)
	roles := map[string]string{}
	for _, m := range all {
		roles[m.PersonID] = m.Role
	}
	return roles
}

func TestSetTeamMember(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		admin, bert := w.role(c, w.fresh(), company.CompanyPermissions...), w.person("bert@example.com")
		before := w.seq()
		m, err := w.companies.TeamMembers.SetTeamMember(w.ctx(), operator, team, bert.PersonID, "member")
		w.ok(err)
		if m.PersonID != bert.PersonID || m.Email != "bert@example.com" || m.Role != "member" || m.How != company.Added || m.Joined.IsZero() {
			w.Errorf("member = %+v", m)
		}
		if w.members(c)[bert.PersonID] != "member" {
			w.Error("somebody is in a team and not in its company")
		}
		log := w.log(before)
		if len(log) != 1 || log[0].Act != audit.TeamMemberSet || log[0].PersonID != bert.PersonID || log[0].Details["role"] != "member" {
			w.Errorf("log = %+v", log)
		}
		_, err = w.companies.TeamMembers.SetTeamMember(w.ctx(), admin, team, bert.PersonID, "king")
		w.refused(err, fault.Invalid, "role")
	})
}

// TestTeamManagersGrantOnlyTheirOwnPermissions: the manager here may not generate.
func TestTeamManagersGrantOnlyTheirOwnPermissions(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		chief := w.teamRole(team, w.fresh(), "chief", company.ManageTeam, company.UsePlugins)
		worker, guest := w.fresh(), w.role(c, w.fresh())
		w.joinTeam(team, worker, "member") // who may generate
		w.makeTeamRole(team, "idle", company.Generate)
		before, members := w.seq(), w.teamMembers(team)
		set := func(who principal.Principal, role string) error {
			_, err := w.companies.TeamMembers.SetTeamMember(w.ctx(), chief, team, who.PersonID, role)
			return err
		}
		setRole := func(name string, perms ...company.Permission) error {
			_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), chief, team, company.TeamRole{Name: name, Permissions: perms, PluginKinds: []string{"*"}})
			return err
		}
		change := func(name string, changes map[company.Permission]bool) error {
			_, err := w.companies.TeamRoles.SetTeamRolePermissions(w.ctx(), chief, team, name, changes)
			return err
		}
		for name, err := range map[string]error{
			"takes somebody in with more":        set(guest, "member"),
			"gives themselves more":              set(chief, "manager"),
			"changes somebody who has more":      set(worker, "chief"),
			"removes somebody who has more":      w.companies.TeamMembers.RemoveTeamMember(w.ctx(), chief, team, worker.PersonID),
			"widens their own role":              setRole("chief", company.TeamPermissions...),
			"widens their own role by a little":  change("chief", map[company.Permission]bool{company.Generate: true}),
			"makes a wide role":                  setRole("wide", company.Generate),
			"makes a role as new ones are":       change("wide", nil),
			"narrows a role that allows more":    setRole("idle"),
			"narrows it by a little":             change("idle", map[company.Permission]bool{company.Generate: false}),
			"takes a role away that allows more": w.companies.TeamRoles.DeleteTeamRole(w.ctx(), chief, team, "idle"),
		} {
			if !fault.Is(err, fault.Forbidden) {
				w.Errorf("somebody who manages a team %s: %v", name, err)
			}
		}
		if w.seq() != before {
			w.Error("a refused act is recorded")
		}
		for id, role := range w.teamMembers(team) {
			if members[id] != role {
				w.Errorf("%s is %s, was %s", id, role, members[id])
			}
		}
		w.ok(set(guest, "chief"))
		w.ok(setRole("guest", company.UsePlugins))
		w.ok(set(guest, "guest"))
		w.ok(w.companies.TeamMembers.RemoveTeamMember(w.ctx(), chief, team, guest.PersonID))
		w.ok(w.companies.TeamRoles.DeleteTeamRole(w.ctx(), chief, team, "guest"))
		w.refused(setRole("guest", "FLY"), fault.Invalid, "permissions")
		w.refused(change("guest", map[company.Permission]bool{"FLY": false, company.Generate: false}), fault.Invalid, "permissions")
	})
}

// TestAManagerOfOneTeamHasNoPermissionInAnother, even of the same company.
func TestAManagerOfOneTeamHasNoPermissionInAnother(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		own, other := w.team(c), w.team(c)
		manager := w.fresh()
		w.joinTeam(own, manager, "manager")
		_, err := w.companies.Teams.RenameTeam(w.ctx(), manager, own, "Print")
		w.ok(err)
		_, err = w.companies.Teams.RenameTeam(w.ctx(), manager, other, "Print")
		w.refused(err, fault.Forbidden, "permission")
		w.joinTeam(other, manager, "member")
		_, err = w.companies.Teams.RenameTeam(w.ctx(), manager, other, "Print")
		w.refused(err, fault.Forbidden, "permission")
	})
}

func TestTeamsAreManagedThroughAppsThatTheRoleAllows(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		manager, admin := w.fresh(), w.role(c, w.fresh(), company.ManageTeams)
		inBrowser := func(a principal.Principal) principal.Principal {
			a.Credential.Kind, a.Plugin = principal.BrowserSession, ""
			return a
		}
		set := func(perms []company.Permission, kinds ...string) {
			t.Helper()
			_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), operator, team, company.TeamRole{Name: "chief", Permissions: perms, PluginKinds: kinds})
			w.ok(err)
		}
		rename := func(a principal.Principal) error {
			_, err := w.companies.Teams.RenameTeam(w.ctx(), a, team, "Print")
			return err
		}
		list := func(a principal.Principal) error {
			_, err := w.companies.TeamMembers.ListTeamMembers(w.ctx(), a, team, company.Key{}, 10)
			return err
		}
		set(company.TeamPermissions, "*")
		w.joinTeam(team, manager, "chief")
		silent := manager
		silent.Plugin = ""
		for _, c := range []struct {
			name  string
			perms []company.Permission
			kinds []string
			ok    []principal.Principal
			no    []principal.Principal
		}{
			{"all kinds", company.TeamPermissions, []string{"*"}, []principal.Principal{manager, silent}, nil},
			{"its kind", company.TeamPermissions, []string{"blender", "krita"}, []principal.Principal{manager}, []principal.Principal{silent}},
			{"another kind", company.TeamPermissions, []string{"krita"}, nil, []principal.Principal{manager, silent}},
			{"no apps at all", []company.Permission{company.ManageTeam}, []string{"*"}, nil, []principal.Principal{manager, silent}},
		} {
			set(c.perms, c.kinds...)
			for _, act := range []func(principal.Principal) error{rename, list} {
				for _, a := range append(c.ok, inBrowser(manager), admin) {
					if err := act(a); err != nil {
						w.Errorf("%s: %+v: %v", c.name, a, err)
					}
				}
				for _, a := range c.no {
					w.refused(act(a), fault.PluginNotAllowed, "")
				}
			}
		}
		w.ok(w.companies.TeamMembers.RemoveTeamMember(w.ctx(), manager, team, manager.PersonID)) // whoever wants may leave
	})
}

func TestEverybodyMayLeaveATeam(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		anna := w.fresh()
		w.joinTeam(team, anna, "member")
		before := w.seq()
		w.ok(w.companies.TeamMembers.RemoveTeamMember(w.ctx(), anna, team, anna.PersonID))
		if log := w.log(before); len(log) != 1 || log[0].Act != audit.TeamMemberRemoved || log[0].PersonID != anna.PersonID {
			w.Errorf("log = %+v", log)
		}
		w.refused(w.companies.TeamMembers.RemoveTeamMember(w.ctx(), anna, team, anna.PersonID), fault.NotFound, "")
		if w.members(c)[anna.PersonID] == "" {
			w.Error("who left a team left its company")
		}
	})
}

func TestARemovedTeamDoesNotExist(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		w.joinTeam(team, admin, "manager")
		w.ok(w.companies.Teams.RemoveTeam(w.ctx(), admin, team))
		for _, a := range []principal.Principal{admin, operator} {
			_, err := w.companies.Teams.GetTeam(w.ctx(), a, team)
			w.refused(err, fault.NotFound, "")
			_, err = w.companies.TeamMembers.SetTeamMember(w.ctx(), a, team, admin.PersonID, "member")
			w.refused(err, fault.NotFound, "")
		}
	})
}

func TestSetTeamRolePermissions(t *testing.T) {
	each(t, func(w fixture) {
		team := w.team(w.company("Fox"))
		change := func(name string, changes map[company.Permission]bool) (company.TeamRole, error) {
			return w.companies.TeamRoles.SetTeamRolePermissions(w.ctx(), operator, team, name, changes)
		}
		r, err := change("quiet", map[company.Permission]bool{company.UsePlugins: false, company.ManageTeam: true})
		if err != nil || !slices.Equal(r.Permissions, []company.Permission{company.Generate, company.ManageTeam}) || !slices.Equal(r.PluginKinds, []string{"*"}) {
			w.Errorf("a new role = %+v, %v", r, err)
		}
		whole := company.TeamRole{
			Name: "quiet", Permissions: []company.Permission{company.Generate}, PluginKinds: []string{"blender"},
			ToolsAllowed: []string{"abcdefghij0123456789"}, ToolsBlocked: []string{"0123456789abcdefghij"}, Spend: &company.Spend{Tokens: 5, Window: time.Hour},
		}
		stored, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), operator, team, whole)
		if err != nil || *stored.Spend != *whole.Spend {
			w.Fatalf("stored = %+v, %v", stored, err)
		}
		r, err = change("quiet", map[company.Permission]bool{company.UsePlugins: true})
		if err != nil || !slices.Equal(r.Permissions, []company.Permission{company.Generate, company.UsePlugins}) || !slices.Equal(r.PluginKinds, whole.PluginKinds) ||
			!slices.Equal(r.ToolsAllowed, whole.ToolsAllowed) || !slices.Equal(r.ToolsBlocked, whole.ToolsBlocked) || r.Spend == nil || *r.Spend != *whole.Spend {
			w.Errorf("a changed role = %+v, %v", r, err)
		}
		for _, on := range []bool{true, false} {
			_, err := change("quiet", map[company.Permission]bool{"FLY": on})
			w.refused(err, fault.Invalid, "permissions")
		}
		_, err = change("Not A Name", nil)
		w.refused(err, fault.Invalid, "name")
	})
}

// TestChangesOfOneRoleAddUp, although each reads the role before it writes.
func TestChangesOfOneRoleAddUp(t *testing.T) {
	each(t, func(w fixture) {
		team := w.team(w.company("Fox"))
		for range 5 {
			w.makeTeamRole(team, "busy")
			dbtest.Together(len(company.TeamPermissions), func(i int) {
				_, err := w.companies.TeamRoles.SetTeamRolePermissions(w.ctx(), operator, team, "busy", map[company.Permission]bool{company.TeamPermissions[i]: true})
				if err != nil {
					w.Error(err)
				}
			})
			all, err := w.companies.TeamRoles.ListTeamRoles(w.ctx(), operator, team)
			w.ok(err)
			i := slices.IndexFunc(all, func(r company.TeamRole) bool { return r.Name == "busy" })
			if got := all[i].Permissions; len(got) != len(company.TeamPermissions) {
				w.Fatalf("permissions = %v, want all", got)
			}
		}
	})
}
