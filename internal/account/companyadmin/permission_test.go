package companyadmin_test

import (
	"strings"
	"testing"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/budget"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// scene is a company with a team, made anew whenever an act changed it.
type scene struct {
	fixture
	company, team string
	actor         principal.Principal
	victim        principal.Principal // a plain member of both
	member        principal.Principal // a plain member of the company alone
	outsider      principal.Principal // somebody who is in neither
}

// people are who may try, and what they are in the company and in the team.
var people = []struct {
	name  string
	in    bool
	perms []company.Permission
	team  string
}{
	{"stranger", false, nil, ""},
	{"member", true, nil, ""},
	{"teammate", true, nil, "member"},
	{"manager", true, nil, "manager"},
	{"tokens", true, []company.Permission{company.ManageAPITokens}, ""},
	{"reports", true, []company.Permission{company.ViewCompanyReports}, ""},
	{"billing", true, []company.Permission{company.ManageBilling}, ""},
	{"members", true, []company.Permission{company.ManageMembers}, ""},
	{"teams", true, []company.Permission{company.ManageTeams}, ""},
	{"admin", true, company.CompanyPermissions, ""},
	{"operator", false, nil, ""},
}

const (
	everybody   = "member teammate manager tokens reports billing members teams admin operator"
	peopleDesk  = "members admin operator"
	payDesk     = "billing admin operator"
	teamDesk    = "manager teams admin operator"
	teamOwners  = "teams admin operator"
	teamReaders = "teammate manager teams admin operator"
)

// acts are all that can be tried, but for those that only the operator has.
var acts = []struct {
	name string
	by   string    // who may
	none string    // who is told that there is no such thing, besides strangers
	done audit.Act // what is recorded; "" for reading
	try  func(s scene) error
}{
	{"read the company", everybody, "", "", func(s scene) error {
		_, err := s.companies.GetCompany(s.ctx(), s.actor, s.company)
		return err
	}},
	{"rename the company", peopleDesk, "", audit.CompanyChanged, func(s scene) error {
		_, err := s.companies.ChangeCompany(s.ctx(), s.actor, s.company, companyadmin.CompanyChange{Name: new("Hound")})
		return err
	}},
	{"give the company another clock", peopleDesk, "", audit.CompanyChanged, func(s scene) error {
		_, err := s.companies.ChangeCompany(s.ctx(), s.actor, s.company, companyadmin.CompanyChange{Zone: new("Europe/Paris")})
		return err
	}},
	{"read the audit log", peopleDesk, "", "", func(s scene) error {
		_, err := s.companies.ListAuditRecords(s.ctx(), s.actor, s.company, audit.Filter{Limit: 10})
		return err
	}},
	{"list members", peopleDesk, "", "", func(s scene) error {
		_, err := s.companies.Members.ListMembers(s.ctx(), s.actor, s.company, company.Key{}, 10)
		return err
	}},
	{"set a member", peopleDesk, "", audit.CompanyMemberSet, func(s scene) error {
		_, err := s.companies.Members.SetMember(s.ctx(), s.actor, s.company, s.victim.PersonID, "member")
		return err
	}},
	{"take somebody in", "operator", "members admin", audit.CompanyMemberSet, func(s scene) error {
		_, err := s.companies.Members.SetMember(s.ctx(), s.actor, s.company, s.outsider.PersonID, "member")
		return err
	}},
	{"remove a member", peopleDesk, "", audit.CompanyMemberRemoved, func(s scene) error {
		return s.companies.Members.RemoveMember(s.ctx(), s.actor, s.company, s.victim.PersonID)
	}},
	{"remove somebody who is not in", "", "members admin operator", "", func(s scene) error {
		return s.companies.Members.RemoveMember(s.ctx(), s.actor, s.company, s.outsider.PersonID)
	}},
	{"list roles", everybody, "", "", func(s scene) error {
		_, err := s.companies.Roles.ListRoles(s.ctx(), s.actor, s.company)
		return err
	}},
	{"make a role", peopleDesk, "", audit.CompanyRoleSet, func(s scene) error {
		_, err := s.companies.Roles.SetRole(s.ctx(), s.actor, s.company, company.Role{Name: "guest"})
		return err
	}},
	{"delete a role", peopleDesk, "", audit.CompanyRoleDeleted, func(s scene) error {
		return s.companies.Roles.DeleteRole(s.ctx(), s.actor, s.company, "spare")
	}},
	{"list invitations", peopleDesk, "", "", func(s scene) error {
		_, err := s.companies.Invitations.ListInvitations(s.ctx(), s.actor, s.company, nil, 10)
		return err
	}},
	{"invite to the company", peopleDesk, "", audit.InvitationCreated, func(s scene) error {
		_, _, err := s.companies.Invitations.CreateInvitation(s.ctx(), s.actor, company.Draft{CompanyID: s.company})
		return err
	}},
	{"invite to the team", "admin operator", "", audit.InvitationCreated, func(s scene) error {
		_, _, err := s.companies.Invitations.CreateInvitation(s.ctx(), s.actor, company.Draft{CompanyID: s.company, TeamID: s.team})
		return err
	}},
	{"revoke an invitation", peopleDesk, "", audit.InvitationRevoked, func(s scene) error {
		inv := get(s.fixture, func(tx *sqldb.Tx) (company.Invitation, error) {
			inv, _, err := company.Invite(s.ctx(), tx, company.Draft{CompanyID: s.company, Lifetime: 1e10})
			return inv, err
		})
		return s.companies.Invitations.RevokeInvitation(s.ctx(), s.actor, inv.ID)
	}},
	{"list domains", peopleDesk, "", "", func(s scene) error {
		_, err := s.companies.Domains.ListDomains(s.ctx(), s.actor, s.company)
		return err
	}},
	{"add a domain", peopleDesk, "", audit.DomainAdded, func(s scene) error {
		_, err := s.companies.Domains.AddDomain(s.ctx(), s.actor, s.company, "hound.example", "", "")
		return err
	}},
	{"add a domain for the team", "admin operator", "", audit.DomainAdded, func(s scene) error {
		_, err := s.companies.Domains.AddDomain(s.ctx(), s.actor, s.company, "hound.example", s.team, "")
		return err
	}},
	{"verify a domain", peopleDesk, "", audit.DomainVerified, func(s scene) error {
		s.useResolver(nameServer(s.T, func(string) []string { return []string{domainOf(s.fixture, s.company).Proof} }))
		_, err := s.companies.Domains.VerifyDomain(s.ctx(), s.actor, s.company, "fox.example", false)
		return err
	}},
	{"remove a domain", peopleDesk, "", audit.DomainRemoved, func(s scene) error {
		return s.companies.Domains.RemoveDomain(s.ctx(), s.actor, s.company, "fox.example")
	}},
	{"list teams", everybody, "", "", func(s scene) error {
		_, err := s.companies.Teams.ListTeams(s.ctx(), s.actor, s.company, company.Key{}, 10)
		return err
	}},
	{"make a team", teamOwners, "", audit.TeamCreated, func(s scene) error {
		_, err := s.companies.Teams.CreateTeam(s.ctx(), s.actor, s.company, "Print")
		return err
	}},
	{"read the team", everybody, "", "", func(s scene) error {
		_, err := s.companies.Teams.GetTeam(s.ctx(), s.actor, s.team)
		return err
	}},
	{"rename the team", teamDesk, "", audit.TeamChanged, func(s scene) error {
		_, err := s.companies.Teams.RenameTeam(s.ctx(), s.actor, s.team, "Print")
		return err
	}},
	{"end the team", teamOwners, "", audit.TeamRemoved, func(s scene) error {
		return s.companies.Teams.RemoveTeam(s.ctx(), s.actor, s.team)
	}},
	{"list team members", teamReaders, "", "", func(s scene) error {
		_, err := s.companies.TeamMembers.ListTeamMembers(s.ctx(), s.actor, s.team, company.Key{}, 10)
		return err
	}},
	{"set a team member", teamDesk, "", audit.TeamMemberSet, func(s scene) error {
		_, err := s.companies.TeamMembers.SetTeamMember(s.ctx(), s.actor, s.team, s.victim.PersonID, "manager")
		return err
	}},
	{"take a member into the team", teamDesk, "", audit.TeamMemberSet, func(s scene) error {
		_, err := s.companies.TeamMembers.SetTeamMember(s.ctx(), s.actor, s.team, s.member.PersonID, "member")
		return err
	}},
	{"take an outsider into the team", "operator", "manager teams admin", audit.TeamMemberSet, func(s scene) error {
		_, err := s.companies.TeamMembers.SetTeamMember(s.ctx(), s.actor, s.team, s.outsider.PersonID, "member")
		return err
	}},
	{"remove a team member", teamDesk, "", audit.TeamMemberRemoved, func(s scene) error {
		return s.companies.TeamMembers.RemoveTeamMember(s.ctx(), s.actor, s.team, s.victim.PersonID)
	}},
	{"list team roles", teamReaders, "", "", func(s scene) error {
		_, err := s.companies.TeamRoles.ListTeamRoles(s.ctx(), s.actor, s.team)
		return err
	}},
	{"make a team role", teamDesk, "", audit.TeamRoleSet, func(s scene) error {
		_, err := s.companies.TeamRoles.SetTeamRole(s.ctx(), s.actor, s.team, company.TeamRole{Name: "guest"})
		return err
	}},
	{"change a team role", teamDesk, "", audit.TeamRoleSet, func(s scene) error {
		_, err := s.companies.TeamRoles.SetTeamRolePermissions(s.ctx(), s.actor, s.team, "spare", map[company.Permission]bool{company.Generate: false})
		return err
	}},
	{"read the budget", "manager billing admin operator", "", "", func(s scene) error {
		_, err := s.companies.Budgets.GetBudget(s.ctx(), s.actor, s.team)
		return err
	}},
	{"set the budget", payDesk, "", audit.BudgetSet, func(s scene) error {
		_, err := s.companies.Budgets.SetBudget(s.ctx(), s.actor, s.team, budget.Draft{Tokens: 20})
		return err
	}},
	{"remove the budget", payDesk, "", audit.BudgetRemoved, func(s scene) error {
		return s.companies.Budgets.RemoveBudget(s.ctx(), s.actor, s.team)
	}},
	{"delete a team role", teamDesk, "", audit.TeamRoleDeleted, func(s scene) error {
		return s.companies.TeamRoles.DeleteTeamRole(s.ctx(), s.actor, s.team, "spare")
	}},
}

// TestPermissionsOfEveryAction walks all actions and all roles. An action
// leaves exactly one audit record and a refused one leaves none. Outsiders get
// the same answers for a company or team as for one that does not exist.
func TestPermissionsOfEveryAction(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		for _, who := range people {
			t.Run(engine+"/"+who.name, func(t *testing.T) {
				t.Parallel()
				w := open(t, engine)
				victim, member := w.person("victim@example.com"), w.person("member@example.com")
				actor := operator
				if who.name != "operator" {
					actor = w.person("actor@example.com")
				}
				if actor.PersonID != "" {
					w.role(w.company("Elsewhere"), actor, company.CompanyPermissions...)
				}
				stage := func() scene {
					s := scene{fixture: w, company: w.company("Fox"), actor: actor, victim: victim, member: member, outsider: w.fresh()}
					s.team = w.team(s.company)
					w.role(s.company, w.fresh(), company.CompanyPermissions...) // somebody who stays
					w.role(s.company, member)
					w.joinTeam(s.team, victim, "member")
					w.makeTeamRole(s.team, "spare", company.UsePlugins, company.Generate)
					if who.in {
						w.role(s.company, actor, who.perms...)
					}
					if who.team != "" {
						w.joinTeam(s.team, actor, who.team)
					}
					get(w, func(tx *sqldb.Tx) (budget.Budget, error) {
						return w.parts.Budgets.Set(w.ctx(), tx, s.team, budget.Draft{Tokens: 10})
					})
					get(w, func(tx *sqldb.Tx) (company.Domain, error) {
						if err := company.SetRole(w.ctx(), tx, s.company, company.Role{Name: "spare"}); err != nil {
							return company.Domain{}, err
						}
						return company.AddDomain(w.ctx(), tx, s.company, "fox.example", "", "")
					})
					return s
				}
				s := stage()
				for _, act := range acts {
					before := w.seq()
					err := act.try(s)
					may := contains(act.by, who.name)
					switch {
					case may && err != nil:
						t.Errorf("%s: %v", act.name, err)
					case may:
						s.recorded(act.name, before, act.done)
					case who.name == "stranger" || contains(act.none, who.name):
						if !fault.Is(err, fault.NotFound) {
							t.Errorf("%s: %v, want NOT_FOUND", act.name, err)
						}
					default:
						w.refused(err, fault.Forbidden, "permission")
					}
					if !may && w.seq() != before {
						t.Errorf("%s: refused, and yet recorded", act.name)
					}
					if who.name == "stranger" && act.done != audit.InvitationRevoked { // which has a test of its own
						s := s
						s.company, s.team = ids.New(), ids.New()
						if never := act.try(s); never == nil || never.Error() != err.Error() {
							t.Errorf("%s: strangers are told %q of what is, and %q of what is not", act.name, err, never)
						}
					}
					if act.done == audit.DomainVerified && may { // a verified domain belongs to one company
						w.ok(w.companies.Domains.RemoveDomain(w.ctx(), operator, s.company, "fox.example"))
					}
					if may && act.done != "" {
						s = stage()
					}
				}
			})
		}
	}
}

func contains(list, name string) bool {
	return strings.Contains(" "+list+" ", " "+name+" ")
}

// recorded wants exactly one record of an act, or none of reading.
func (s scene) recorded(name string, before int64, done audit.Act) {
	s.Helper()
	log := s.log(before)
	if done == "" {
		if len(log) != 0 {
			s.Errorf("%s left %v", name, log)
		}
		return
	}
	if len(log) != 1 || log[0].Act != done || log[0].CompanyID != s.company || log[0].ActorID != s.actor.PersonID || log[0].Address != s.actor.Address {
		s.Errorf("%s left %+v, want one %s", name, log, done)
	}
}

func TestInvalidIDsAreNotFound(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		for _, a := range []principal.Principal{operator, admin} {
			for _, id := range []string{"", "x", "\x00", "../..", ids.New(), admin.PersonID + "\x00"} {
				for _, try := range []func() error{
					func() error { _, err := w.companies.GetCompany(w.ctx(), a, id); return err },
					func() error {
						_, err := w.companies.ChangeCompany(w.ctx(), a, id, companyadmin.CompanyChange{Name: new("Fox")})
						return err
					},
					func() error { _, err := w.companies.Teams.GetTeam(w.ctx(), a, id); return err },
					func() error { return w.companies.Teams.RemoveTeam(w.ctx(), a, id) },
					func() error { _, err := w.companies.Members.SetMember(w.ctx(), a, c, id, "member"); return err },
					func() error { return w.companies.Members.RemoveMember(w.ctx(), a, c, id) },
					func() error {
						_, err := w.companies.TeamMembers.SetTeamMember(w.ctx(), a, team, id, "member")
						return err
					},
					func() error { return w.companies.TeamMembers.RemoveTeamMember(w.ctx(), a, team, id) },
					func() error { return w.companies.Invitations.RevokeInvitation(w.ctx(), a, id) },
					func() error { _, err := w.companies.Domains.VerifyDomain(w.ctx(), a, c, id, true); return err },
					func() error { return w.companies.Domains.RemoveDomain(w.ctx(), a, c, id) },
					func() error { return w.companies.Roles.DeleteRole(w.ctx(), a, c, id+"\x00") },
					func() error { return w.companies.TeamRoles.DeleteTeamRole(w.ctx(), a, team, id+"\x00") },
				} {
					w.refused(try(), fault.NotFound, "")
				}
			}
		}
	})
}

func TestRevokedPermissionsEndAtOnce(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		a := w.role(c, w.fresh(), company.ManageTeams)
		_, err := w.companies.Teams.CreateTeam(w.ctx(), a, c, "Film")
		w.ok(err)
		w.role(c, a)
		_, err = w.companies.Teams.CreateTeam(w.ctx(), a, c, "Film")
		w.refused(err, fault.Forbidden, "permission")
		w.ok(w.companies.Members.RemoveMember(w.ctx(), operator, c, a.PersonID))
		_, err = w.companies.Teams.CreateTeam(w.ctx(), a, c, "Film")
		w.refused(err, fault.NotFound, "")
	})
}

func TestOnlyTheOperatorCreatesCompanies(t *testing.T) {
	each(t, func(w fixture) {
		before := w.seq()
		_, err := w.companies.CreateCompany(w.ctx(), w.fresh(), "Fox", company.TeamPlan)
		w.refused(err, fault.Forbidden, "permission")
		_, err = w.companies.CreateCompany(w.ctx(), operator, "Fox", "GOLD")
		w.refused(err, fault.Invalid, "plan")
		if w.seq() != before {
			t.Error("a refused company is recorded")
		}
		c := w.company("Fox")
		if log := w.log(before); len(log) != 1 || log[0].Act != audit.CompanyCreated || log[0].CompanyID != c || log[0].ActorID != "" {
			t.Errorf("log = %+v", log)
		}
	})
}

// TestOnlyTheOperatorFindsPeopleByAddress: for other callers the answer would
// reveal who has an account.
func TestOnlyTheOperatorFindsPeopleByAddress(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		w.person("here@example.com")
		for _, act := range []struct {
			done audit.Act
			try  func(a principal.Principal, email string) error
		}{
			{audit.CompanyMemberSet, func(a principal.Principal, email string) error {
				_, err := w.companies.Members.SetMemberPermissions(w.ctx(), a, c, email, nil)
				return err
			}},
			{audit.TeamMemberSet, func(a principal.Principal, email string) error {
				_, err := w.companies.TeamMembers.AddTeamMember(w.ctx(), a, team, email, "")
				return err
			}},
			{audit.TeamMemberRemoved, func(a principal.Principal, email string) error {
				return w.companies.TeamMembers.RemoveTeamMemberByEmail(w.ctx(), a, team, email)
			}},
			{audit.CompanyMemberRemoved, func(a principal.Principal, email string) error {
				return w.companies.Members.RemoveMemberByEmail(w.ctx(), a, c, email)
			}},
		} {
			before := w.seq()
			for _, email := range []string{"here@example.com", "nobody@example.com"} {
				w.refused(act.try(admin, email), fault.Forbidden, "permission")
			}
			w.refused(act.try(operator, "nobody@example.com"), fault.NotFound, "")
			w.ok(act.try(operator, "HERE@example.com"))
			if log := w.log(before); len(log) != 1 || log[0].Act != act.done {
				w.Errorf("log = %+v, want one %s", log, act.done)
			}
		}
	})
}
