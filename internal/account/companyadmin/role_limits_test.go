package companyadmin_test

import (
	"testing"
	"time"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/budget"
	"atelier/internal/money/report"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// Ids of tools that no role knows of but those below.
const (
	toolA = "aaaaaaaaaaaaaaaaaaaa"
	toolB = "bbbbbbbbbbbbbbbbbbbb"
	toolC = "cccccccccccccccccccc"
)

// limitedRole is the role of a team manager whom an admin has limited.
func limitedRole(name string) company.TeamRole {
	return company.TeamRole{
		Name:         name,
		Permissions:  company.TeamPermissions,
		ToolsAllowed: []string{toolA, toolB},
		ToolsBlocked: []string{toolC},
		PluginKinds:  []string{"blender", "krita"},
		Spend:        &company.Spend{Tokens: 100, Window: time.Hour},
	}
}

// widerRoles are limitedRole with one limit loosened each.
var widerRoles = map[string]func(r *company.TeamRole){
	"no spending window":       func(r *company.TeamRole) { r.Spend = nil },
	"more tokens":              func(r *company.TeamRole) { r.Spend = &company.Spend{Tokens: 101, Window: time.Hour} },
	"a shorter window":         func(r *company.TeamRole) { r.Spend = &company.Spend{Tokens: 100, Window: time.Hour - time.Second} },
	"fewer tokens more often":  func(r *company.TeamRole) { r.Spend = &company.Spend{Tokens: 51, Window: 30 * time.Minute} },
	"all kinds of plugins":     func(r *company.TeamRole) { r.PluginKinds = []string{company.AnyKind} },
	"one more kind of plugin":  func(r *company.TeamRole) { r.PluginKinds = []string{"blender", "gimp", "krita"} },
	"all tools":                func(r *company.TeamRole) { r.ToolsAllowed = nil },
	"one more tool":            func(r *company.TeamRole) { r.ToolsAllowed = []string{toolA, toolB, "dddddddddddddddddddd"} },
	"the tool that is blocked": func(r *company.TeamRole) { r.ToolsAllowed, r.ToolsBlocked = []string{toolC}, nil },
	"all tools but the one":    func(r *company.TeamRole) { r.ToolsAllowed, r.ToolsBlocked = nil, []string{toolC} },
	"all tools and no limit": func(r *company.TeamRole) {
		*r = company.TeamRole{Name: r.Name, Permissions: r.Permissions, PluginKinds: []string{"*"}}
	},
	"no permission and no limit": func(r *company.TeamRole) { *r = company.TeamRole{Name: r.Name, PluginKinds: []string{"*"}} },
}

// narrowerRoles are limitedRole with one limit tightened, or as it is.
var narrowerRoles = map[string]func(r *company.TeamRole){
	"the same":                func(*company.TeamRole) {},
	"fewer tokens":            func(r *company.TeamRole) { r.Spend = &company.Spend{Tokens: 99, Window: time.Hour} },
	"a longer window":         func(r *company.TeamRole) { r.Spend = &company.Spend{Tokens: 100, Window: 2 * time.Hour} },
	"half as many, twice":     func(r *company.TeamRole) { r.Spend = &company.Spend{Tokens: 50, Window: 30 * time.Minute} },
	"nothing at all to spend": func(r *company.TeamRole) { r.Spend = &company.Spend{Window: time.Second} },
	"one kind of plugin":      func(r *company.TeamRole) { r.PluginKinds = []string{"krita"} },
	"one tool":                func(r *company.TeamRole) { r.ToolsAllowed, r.ToolsBlocked = []string{toolA}, nil },
	"fewer permissions":       func(r *company.TeamRole) { r.Permissions = []company.Permission{company.UsePlugins} },
}

// TestCallersCannotGrantWiderLimitsThanTheirOwn walks every way by which a team
// manager can change or assign a role: with each limit of their own role
// loosened it is refused, and no record is written.
func TestCallersCannotGrantWiderLimitsThanTheirOwn(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		set := func(r company.TeamRole) {
			w.Helper()
			_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), operator, team, r)
			w.ok(err)
		}
		set(limitedRole("chief"))
		chief := w.role(c, w.fresh(), company.ManageMembers) // may invite and add domains besides
		w.joinTeam(team, chief, "chief")
		mate := w.role(c, w.fresh())
		newcomer := w.role(c, w.fresh())
		w.joinTeam(team, mate, "chief")

		ways := map[string]func(r company.TeamRole) error{
			"changes their own role": func(r company.TeamRole) error {
				r.Name = "chief"
				_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), chief, team, r)
				return err
			},
			"makes a role": func(r company.TeamRole) error {
				r.Name = "fresh"
				_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), chief, team, r)
				return err
			},
			"takes a role of their own": func(company.TeamRole) error {
				_, err := w.companies.TeamMembers.SetTeamMember(w.ctx(), chief, team, chief.PersonID, "given")
				return err
			},
			"gives a role to somebody in the team": func(company.TeamRole) error {
				_, err := w.companies.TeamMembers.SetTeamMember(w.ctx(), chief, team, mate.PersonID, "given")
				return err
			},
			"takes somebody in": func(company.TeamRole) error {
				_, err := w.companies.TeamMembers.SetTeamMember(w.ctx(), chief, team, newcomer.PersonID, "given")
				return err
			},
			"invites": func(company.TeamRole) error {
				_, _, err := w.companies.Invitations.CreateInvitation(w.ctx(), chief, company.Draft{CompanyID: c, TeamID: team, TeamRole: "given"})
				return err
			},
			"adds a domain": func(company.TeamRole) error {
				_, err := w.companies.Domains.AddDomain(w.ctx(), chief, c, "fox.example", team, "given")
				return err
			},
		}
		for wider, loosen := range widerRoles {
			r := limitedRole("given")
			loosen(&r)
			set(r)
			before := w.seq()
			for way, try := range ways {
				if err := try(r); !fault.Is(err, fault.Forbidden) {
					w.Errorf("somebody with limits %s with %s: %v", way, wider, err)
				} else {
					w.refused(err, fault.Forbidden, "limits")
				}
			}
			if w.seq() != before {
				w.Errorf("%s: a refused act is recorded", wider)
			}
		}
		for narrower, tighten := range narrowerRoles {
			r := limitedRole("given")
			tighten(&r)
			set(r)
			for way, try := range ways {
				if err := try(r); err != nil {
					w.Errorf("somebody with limits %s with %s: %v", way, narrower, err)
				}
				// As it was.
				set(limitedRole("chief"))
				w.joinTeam(team, chief, "chief")
				w.joinTeam(team, mate, "chief")
				if way == "adds a domain" {
					w.ok(w.companies.Domains.RemoveDomain(w.ctx(), operator, c, "fox.example"))
				}
				if way == "takes somebody in" {
					w.ok(w.companies.TeamMembers.RemoveTeamMember(w.ctx(), operator, team, newcomer.PersonID))
				}
			}
		}
	})
}

// TestRolesBeyondOnesOwnLimitsAreOnlyNarrowed: a role with wider limits than
// the manager's can be narrowed and taken from members, but not widened.
func TestRolesBeyondOnesOwnLimitsAreOnlyNarrowed(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		rich := company.TeamRole{Name: "rich", Permissions: []company.Permission{company.Generate}, PluginKinds: []string{"*"}}
		for _, r := range []company.TeamRole{limitedRole("chief"), rich} {
			_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), operator, team, r)
			w.ok(err)
		}
		chief, worker := w.fresh(), w.fresh()
		w.joinTeam(team, chief, "chief")
		w.joinTeam(team, worker, "rich")

		more := rich
		more.Permissions = []company.Permission{company.Generate, company.UsePlugins} // which the manager has
		_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), chief, team, more)
		w.refused(err, fault.Forbidden, "limits")

		less := rich
		less.Spend = &company.Spend{Tokens: 1000, Window: time.Hour} // more than the manager's, less than it was
		_, err = w.companies.TeamRoles.SetTeamRole(w.ctx(), chief, team, less)
		w.ok(err)
		_, err = w.companies.TeamRoles.SetTeamRole(w.ctx(), chief, team, rich) // and not back
		w.refused(err, fault.Forbidden, "limits")

		_, err = w.companies.TeamMembers.SetTeamMember(w.ctx(), chief, team, worker.PersonID, "rich") // as they are
		w.ok(err)
		_, err = w.companies.TeamMembers.SetTeamMember(w.ctx(), chief, team, worker.PersonID, "chief")
		w.ok(err)
		_, err = w.companies.TeamMembers.SetTeamMember(w.ctx(), chief, team, worker.PersonID, "rich")
		w.refused(err, fault.Forbidden, "limits")
		w.ok(w.companies.TeamMembers.RemoveTeamMember(w.ctx(), chief, team, worker.PersonID))
	})
}

// TestManagersOfAllTeamsSetAnyLimits, and so does the operator.
func TestManagersOfAllTeamsSetAnyLimits(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), operator, team, limitedRole("chief"))
		w.ok(err)
		admin := w.role(c, w.fresh(), company.ManageTeams)
		w.joinTeam(team, admin, "chief")
		for _, a := range []principal.Principal{admin, operator} {
			r := limitedRole("chief")
			r.Spend = nil
			_, err = w.companies.TeamRoles.SetTeamRole(w.ctx(), a, team, r)
			w.ok(err)
			_, err = w.companies.TeamMembers.SetTeamMember(w.ctx(), a, team, admin.PersonID, "manager")
			w.ok(err)
			w.joinTeam(team, admin, "chief")
		}
	})
}

// TestAHardBudgetLimitsTimeZoneChangesToBilling: another time zone moves the
// end of the month, and with it the rest of a hard budget.
func TestAHardBudgetLimitsTimeZoneChangesToBilling(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		members := w.role(c, w.fresh(), company.ManageMembers)
		both := w.role(c, w.fresh(), company.ManageMembers, company.ManageBilling)
		change := func(a principal.Principal, draft companyadmin.CompanyChange) error {
			_, err := w.companies.ChangeCompany(w.ctx(), a, c, draft)
			return err
		}
		w.ok(change(members, companyadmin.CompanyChange{Zone: new("Europe/Paris")}))
		_, err := w.companies.Budgets.SetBudget(w.ctx(), operator, team, budget.Draft{Tokens: 10})
		w.ok(err)
		w.ok(change(members, companyadmin.CompanyChange{Zone: new("UTC")})) // which binds nobody

		_, err = w.companies.Budgets.SetBudget(w.ctx(), operator, team, budget.Draft{Tokens: 10, Hard: true})
		w.ok(err)
		w.refused(change(members, companyadmin.CompanyChange{Zone: new("Pacific/Kiritimati")}), fault.Forbidden, "permission")
		w.ok(change(members, companyadmin.CompanyChange{Name: new("Hound"), Zone: new("UTC")})) // as it is
		w.ok(change(both, companyadmin.CompanyChange{Zone: new("Pacific/Kiritimati")}))
		w.ok(change(operator, companyadmin.CompanyChange{Zone: new("UTC")}))
		month := get(w, func(tx *sqldb.Tx) (string, error) {
			month, _, err := report.Spent(w.ctx(), tx, c, team, tx.Now)
			return month, err
		})
		if month != "2026-11" {
			w.Errorf("month = %s", month)
		}
	})
}

// TestAuditEntriesHaveTheValuesBeforeAndAfter reads the records of all changes
// of limits, roles, memberships, budgets and settings.
func TestAuditEntriesHaveTheValuesBeforeAndAfter(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		bert := w.role(c, w.fresh())
		w.role(c, w.fresh(), company.CompanyPermissions...)
		role := func(r company.TeamRole) func() error {
			return func() error { _, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), operator, team, r); return err }
		}
		limited := company.TeamRole{
			Name: "guest", Permissions: []company.Permission{company.Generate}, PluginKinds: []string{"krita"},
			ToolsAllowed: []string{toolA}, ToolsBlocked: []string{toolB}, Spend: &company.Spend{Tokens: 5, Window: time.Hour},
		}
		const (
			wide   = `{"permissions":"GENERATE USE_PLUGINS","plugin_kinds":"*","spend":"unlimited","tools_allowed":"all","tools_blocked":"none"}`
			narrow = `{"permissions":"GENERATE","plugin_kinds":"krita","spend":"5 tokens in 3600 s","tools_allowed":"` + toolA + `","tools_blocked":"` + toolB + `"}`
		)
		for _, step := range []struct {
			act      audit.Act
			from, to string
			do       func() error
		}{
			{audit.CompanyChanged, `{"name":"Fox"}`, `{"name":"Hound"}`, func() error {
				_, err := w.companies.ChangeCompany(w.ctx(), operator, c, companyadmin.CompanyChange{Name: new("Hound")})
				return err
			}},
			{audit.CompanyChanged, `{"plan":"TEAM","time_zone":"UTC"}`, `{"plan":"ENTERPRISE","time_zone":"Europe/Paris"}`, func() error {
				_, err := w.companies.ChangeCompany(w.ctx(), operator, c, companyadmin.CompanyChange{Plan: new(company.EnterprisePlan), Zone: new("Europe/Paris")})
				return err
			}},
			{audit.CompanyRoleSet, "", "MANAGE_TEAMS VIEW_COMPANY_REPORTS", func() error {
				_, err := w.companies.Roles.SetRole(w.ctx(), operator, c, company.Role{Name: "boss", Permissions: []company.Permission{company.ViewCompanyReports, company.ManageTeams}})
				return err
			}},
			{audit.CompanyRoleSet, "MANAGE_TEAMS VIEW_COMPANY_REPORTS", "none", func() error {
				_, err := w.companies.Roles.SetRole(w.ctx(), operator, c, company.Role{Name: "boss"})
				return err
			}},
			{audit.CompanyMemberSet, "member", "boss", func() error {
				_, err := w.companies.Members.SetMember(w.ctx(), operator, c, bert.PersonID, "boss")
				return err
			}},
			{audit.TeamMemberSet, "", "member", func() error {
				_, err := w.companies.TeamMembers.SetTeamMember(w.ctx(), operator, team, bert.PersonID, "member")
				return err
			}},
			{audit.TeamMemberSet, "member", "manager", func() error {
				_, err := w.companies.TeamMembers.SetTeamMember(w.ctx(), operator, team, bert.PersonID, "manager")
				return err
			}},
			{audit.TeamMemberRemoved, "manager", "", func() error { return w.companies.TeamMembers.RemoveTeamMember(w.ctx(), bert, team, bert.PersonID) }},
			{audit.CompanyMemberRemoved, "boss", "", func() error { return w.companies.Members.RemoveMember(w.ctx(), bert, c, bert.PersonID) }},
			{audit.CompanyRoleDeleted, "none", "", func() error { return w.companies.Roles.DeleteRole(w.ctx(), operator, c, "boss") }},
			{audit.TeamChanged, "Film", "Print", func() error { _, err := w.companies.Teams.RenameTeam(w.ctx(), operator, team, "Print"); return err }},
			{audit.TeamRoleSet, "", wide, func() error {
				_, err := w.companies.TeamRoles.SetTeamRolePermissions(w.ctx(), operator, team, "guest", nil)
				return err
			}},
			{audit.TeamRoleSet, wide, narrow, role(limited)},
			{audit.TeamRoleDeleted, narrow, "", func() error { return w.companies.TeamRoles.DeleteTeamRole(w.ctx(), operator, team, "guest") }},
			{audit.BudgetSet, "", `{"hard":"false","tokens":"10"}`, func() error {
				_, err := w.companies.Budgets.SetBudget(w.ctx(), operator, team, budget.Draft{Tokens: 10})
				return err
			}},
			{audit.BudgetSet, `{"hard":"false","tokens":"10"}`, `{"hard":"true","tokens":"20"}`, func() error {
				_, err := w.companies.Budgets.SetBudget(w.ctx(), operator, team, budget.Draft{Tokens: 20, Hard: true})
				return err
			}},
			{audit.BudgetRemoved, `{"hard":"true","tokens":"20"}`, "", func() error { return w.companies.Budgets.RemoveBudget(w.ctx(), operator, team) }},
		} {
			before := w.seq()
			w.ok(step.do())
			log := w.log(before)
			if len(log) != 1 || log[0].Act != step.act {
				w.Fatalf("%s: log = %+v", step.act, log)
			}
			from, said := log[0].Details["from"]
			to, alsoSaid := log[0].Details["to"]
			if !said || !alsoSaid || from != step.from || to != step.to {
				w.Errorf("%s: from %q to %q, want from %q to %q", step.act, from, to, step.from, step.to)
			}
		}
	})
}

// TestLongListsInAuditEntriesAreHashed, because texts in the log are cut.
func TestLongListsInAuditEntriesAreHashed(t *testing.T) {
	each(t, func(w fixture) {
		team := w.team(w.company("Fox"))
		tools := func(last byte) (all []string) {
			for i := range 1000 {
				all = append(all, "tttttttttttttttt"+string([]byte{'a' + byte(i/100%10), 'a' + byte(i/10%10), 'a' + byte(i%10), last}))
			}
			return all
		}
		seen := map[string]bool{}
		for _, last := range []byte("xy") {
			before := w.seq()
			_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), operator, team, company.TeamRole{Name: "guest", ToolsAllowed: tools(last)})
			w.ok(err)
			to := w.log(before)[0].Details["to"]
			if seen[to] || len(to) >= 500 {
				w.Errorf("two lists have one name: %s", to)
			}
			seen[to] = true
		}
	})
}
