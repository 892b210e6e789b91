package companyadmin_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/principal"
)

func (w fixture) members(companyID string) map[string]string {
	w.Helper()
	all, err := w.companies.Members.ListMembers(w.ctx(), operator, companyID, company.Key{}, 1000)
	w.ok(err)
	roles := map[string]string{}
	for _, m := range all {
		roles[m.PersonID] = m.Role
	}
	return roles
}

func TestSetMember(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		admin, bert := w.role(c, w.fresh(), company.CompanyPermissions...), w.person("bert@example.com")
		_, outside := w.companies.Members.SetMember(w.ctx(), admin, c, bert.PersonID, "member")
		_, never := w.companies.Members.SetMember(w.ctx(), admin, c, ids.New(), "member")
		if !fault.Is(outside, fault.NotFound) || outside.Error() != never.Error() {
			w.Errorf("somebody from outside = %v, nobody = %v", outside, never)
		}
		m, err := w.companies.Members.SetMember(w.ctx(), operator, c, bert.PersonID, "admin")
		w.ok(err)
		if m.PersonID != bert.PersonID || m.Email != "bert@example.com" || m.Role != "admin" || m.Joined.IsZero() {
			w.Errorf("member = %+v", m)
		}
		again, err := w.companies.Members.SetMember(w.ctx(), bert, c, bert.PersonID, "member")
		if err != nil || again.Role != "member" || !again.Joined.Equal(m.Joined) {
			w.Errorf("again = %+v, %v", again, err)
		}
		_, err = w.companies.Members.SetMember(w.ctx(), admin, c, bert.PersonID, "king")
		w.refused(err, fault.Invalid, "role")
	})
}

// TestCallersCannotGrantPermissionsTheyLack tries everything by which a member
// with one permission could get more, for themselves or for another member.
func TestCallersCannotGrantPermissionsTheyLack(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		clerk, friend := w.role(c, w.fresh(), company.ManageMembers), w.role(c, w.fresh())
		boss := w.role(c, w.fresh(), company.CompanyPermissions...)
		payer := w.role(c, w.fresh(), company.ManageBilling)
		get(w, func(tx *sqldb.Tx) (bool, error) {
			return true, company.SetRole(w.ctx(), tx, c, company.Role{Name: "idle", Permissions: []company.Permission{company.ManageTeams}})
		})
		roles, members, before := w.roles(c), w.members(c), w.seq()
		own := members[clerk.PersonID]
		set := func(who principal.Principal, role string) error {
			_, err := w.companies.Members.SetMember(w.ctx(), clerk, c, who.PersonID, role)
			return err
		}
		setRole := func(name string, perms ...company.Permission) error {
			_, err := w.companies.Roles.SetRole(w.ctx(), clerk, c, company.Role{Name: name, Permissions: perms})
			return err
		}
		invite := func(d company.Draft) error {
			d.CompanyID = c
			_, _, err := w.companies.Invitations.CreateInvitation(w.ctx(), clerk, d)
			return err
		}
		addDomain := func(teamID, role string) error {
			_, err := w.companies.Domains.AddDomain(w.ctx(), clerk, c, "fox.example", teamID, role)
			return err
		}
		for name, err := range map[string]error{
			"becomes admin":                             set(clerk, "admin"),
			"makes a friend admin":                      set(friend, "admin"),
			"gives a role that nobody has":              set(friend, "idle"),
			"sets back somebody who has more":           set(boss, "member"),
			"sets back somebody who has something else": set(payer, "member"),
			"removes somebody who has more":             w.companies.Members.RemoveMember(w.ctx(), clerk, c, boss.PersonID),
			"widens their own role":                     setRole(own, company.ManageMembers, company.ManageTeams),
			"widens the role of all":                    setRole("member", company.ManageTeams),
			"makes a wide role":                         setRole("wide", company.ManageBilling),
			"narrows a role that allows more":           setRole("idle"),
			"takes a role away that allows more":        w.companies.Roles.DeleteRole(w.ctx(), clerk, c, "idle"),
			"invites an admin":                          invite(company.Draft{CompanyRole: "admin"}),
			"invites to a team":                         invite(company.Draft{TeamID: team}),
			"opens a team to a domain":                  addDomain(team, ""),
		} {
			if !fault.Is(err, fault.Forbidden) {
				w.Errorf("somebody who only manages members %s: %v", name, err)
			}
		}
		if w.seq() != before || !slices.EqualFunc(w.roles(c), roles, sameRole) {
			w.Errorf("roles = %v, want %v and no record", w.roles(c), roles)
		}
		for id, role := range w.members(c) {
			if members[id] != role {
				w.Errorf("%s is %s, was %s", id, role, members[id])
			}
		}
		w.ok(set(friend, own))
		w.ok(setRole("helper", company.ManageMembers))
		w.ok(setRole("helper"))
		w.ok(invite(company.Draft{CompanyRole: own}))
		w.refused(setRole("helper", "FLY"), fault.Invalid, "permissions")
	})
}

// TestPermissionsOfTheRoleMemberCountToo: an invitation without a role grants
// the role member.
func TestPermissionsOfTheRoleMemberCountToo(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		clerk := w.role(c, w.fresh(), company.ManageMembers)
		_, err := w.companies.Roles.SetRole(w.ctx(), operator, c, company.Role{Name: "member", Permissions: []company.Permission{company.ManageBilling}})
		w.ok(err)
		_, err = w.companies.Members.SetMember(w.ctx(), clerk, c, clerk.PersonID, "member")
		w.refused(err, fault.Forbidden, "permission")
		_, _, err = w.companies.Invitations.CreateInvitation(w.ctx(), clerk, company.Draft{CompanyID: c})
		w.refused(err, fault.Forbidden, "permission")
		_, err = w.companies.Domains.AddDomain(w.ctx(), clerk, c, "fox.example", "", "")
		w.refused(err, fault.Forbidden, "permission")
	})
}

func (w fixture) roles(companyID string) []company.Role {
	w.Helper()
	all, err := w.companies.Roles.ListRoles(w.ctx(), operator, companyID)
	w.ok(err)
	return all
}

func sameRole(a, b company.Role) bool {
	return a.Name == b.Name && slices.Equal(a.Permissions, b.Permissions)
}

func TestTheLastAdminStays(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		admin, plain := w.role(c, w.fresh(), company.ManageMembers), w.role(c, w.fresh())
		own := w.members(c)[admin.PersonID]
		leave := func() error { return w.companies.Members.RemoveMember(w.ctx(), admin, c, admin.PersonID) }
		stepDown := func() error {
			_, err := w.companies.Members.SetMember(w.ctx(), admin, c, admin.PersonID, "member")
			return err
		}
		giveUp := func() error {
			_, err := w.companies.Roles.SetRole(w.ctx(), admin, c, company.Role{Name: own})
			return err
		}
		before := w.seq()
		for _, try := range []func() error{leave, stepDown, giveUp} {
			w.refused(try(), fault.Forbidden, "last_admin")
		}
		if w.seq() != before || w.members(c)[admin.PersonID] != own {
			w.Error("a refused act left something")
		}
		w.ok(w.companies.Members.RemoveMember(w.ctx(), plain, c, plain.PersonID)) // the others may go

		w.role(c, w.fresh(), company.CompanyPermissions...)
		w.ok(giveUp())
		w.ok(leave())
	})
}

func TestMembersCanLeaveACompanyWithoutAdmins(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		admin, plain := w.role(c, w.fresh(), company.CompanyPermissions...), w.role(c, w.fresh())
		w.ok(w.companies.Members.RemoveMember(w.ctx(), operator, c, admin.PersonID))
		w.ok(w.companies.Members.RemoveMember(w.ctx(), plain, c, plain.PersonID))
		if left := w.members(c); len(left) != 0 {
			w.Errorf("members = %v", left)
		}
	})
}

func TestAdminsWhoLeaveConcurrentlyLeaveOne(t *testing.T) {
	each(t, func(w fixture) {
		const n = 8
		c := w.company("Fox")
		var admins [n]principal.Principal
		for i := range admins {
			admins[i] = w.role(c, w.fresh(), company.CompanyPermissions...)
		}
		var gone atomic.Int64
		dbtest.Together(n, func(i int) {
			var err error
			if i%2 == 0 {
				err = w.companies.Members.RemoveMember(w.ctx(), admins[i], c, admins[i].PersonID)
			} else {
				_, err = w.companies.Members.SetMember(w.ctx(), admins[i], c, admins[i].PersonID, "member")
			}
			if err == nil {
				gone.Add(1)
			} else {
				w.refused(err, fault.Forbidden, "last_admin")
			}
		})
		if gone.Load() != n-1 {
			w.Errorf("%d of %d went", gone.Load(), n)
		}
	})
}

// TestAPromotionAndARemovalAreSerialized: a member who has become admin cannot
// be removed by a caller with fewer permissions.
func TestAPromotionAndARemovalAreSerialized(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		boss, clerk := w.role(c, w.fresh(), company.CompanyPermissions...), w.role(c, w.fresh(), company.ManageMembers)
		for range 10 {
			victim := w.role(c, w.fresh())
			var promoted, removed error
			dbtest.Together(2, func(i int) {
				if i == 0 {
					_, promoted = w.companies.Members.SetMember(w.ctx(), boss, c, victim.PersonID, "admin")
					return
				}
				removed = w.companies.Members.RemoveMember(w.ctx(), clerk, c, victim.PersonID)
			})
			// Removed first, nobody is left to be promoted; else they are safe.
			got := w.members(c)[victim.PersonID]
			if (promoted == nil) == (removed == nil) || (promoted == nil) != (got == "admin") {
				w.Errorf("the victim is %q, promotion = %v, removal = %v", got, promoted, removed)
			}
		}
	})
}

// TestOfTwoAdminsWhoDemoteEachOtherOneFails: the later one has lost the
// permission.
func TestOfTwoAdminsWhoDemoteEachOtherOneFails(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		w.role(c, w.fresh(), company.CompanyPermissions...)
		for range 10 {
			pair := [2]principal.Principal{w.role(c, w.fresh(), company.ManageMembers), w.role(c, w.fresh(), company.ManageMembers)}
			var errs [2]error
			dbtest.Together(2, func(i int) {
				_, errs[i] = w.companies.Members.SetMember(w.ctx(), pair[i], c, pair[1-i].PersonID, "member")
			})
			won := slices.Index(errs[:], nil)
			if won < 0 {
				w.Fatalf("nobody won: %v", errs)
			}
			w.refused(errs[1-won], fault.Forbidden, "permission")
		}
	})
}

func TestTokensAreDeletedWithTheMembership(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		team := w.team(c)
		admin, anna, bert := w.role(c, w.fresh(), company.CompanyPermissions...), w.fresh(), w.fresh()
		w.role(other, anna)
		w.joinTeam(team, anna, "member")
		w.joinTeam(team, bert, "member")
		secrets := map[string]string{}
		for name, d := range map[string]credential.Draft{
			"first":     {PersonID: anna.PersonID, CompanyID: c},
			"second":    {PersonID: anna.PersonID, CompanyID: c},
			"personal":  {PersonID: anna.PersonID},
			"elsewhere": {PersonID: anna.PersonID, CompanyID: other},
			"of bert":   {PersonID: bert.PersonID, CompanyID: c},
		} {
			d.Name = name
			secrets[name] = get(w, func(tx *sqldb.Tx) (string, error) {
				_, secret, err := credential.Create(w.ctx(), tx, d)
				return secret, err
			})
		}
		before := w.seq()
		w.ok(w.companies.Members.RemoveMember(w.ctx(), admin, c, anna.PersonID))
		for name, secret := range secrets {
			_, err := credential.Check(w.ctx(), w.db, secret)
			if dead := name == "first" || name == "second"; dead != fault.Is(err, fault.Unauthenticated) {
				w.Errorf("the token %s: %v", name, err)
			}
		}
		var ended []audit.Act
		for _, r := range w.log(before) {
			if r.PersonID != anna.PersonID || r.ActorID != admin.PersonID || r.CompanyID != c {
				w.Errorf("record = %+v", r)
			}
			ended = append(ended, r.Act)
		}
		if want := []audit.Act{audit.TokenDeleted, audit.TokenDeleted, audit.CompanyMemberRemoved}; !slices.Equal(ended, want) {
			w.Errorf("log = %v, want %v", ended, want)
		}
		if _, err := w.companies.Teams.GetTeam(w.ctx(), anna, team); !fault.Is(err, fault.NotFound) {
			w.Errorf("the team is still there for somebody who left: %v", err)
		}
	})
}

func TestSetMemberPermissions(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		anna := w.person("anna@example.com")
		for _, perms := range [][]company.Permission{nil, {company.ManageTeams, company.ManageAPITokens}, {company.ViewCompanyReports}, nil} {
			before := w.seq()
			uid, err := w.companies.Members.SetMemberPermissions(w.ctx(), operator, c, "Anna@example.com", perms)
			if err != nil || uid != anna.PersonID {
				w.Fatalf("uid = %s, %v", uid, err)
			}
			m, err := w.companies.GetCompany(w.ctx(), anna, c)
			slices.Sort(perms)
			if err != nil || !slices.Equal(m.Role.Permissions, perms) {
				w.Errorf("permissions = %v, %v, want %v", m.Role.Permissions, err, perms)
			}
			if log := w.log(before); len(log) != 1 || log[0].Act != audit.CompanyMemberSet || log[0].PersonID != uid {
				w.Errorf("log = %+v", log)
			}
		}
		_, err := w.companies.Members.SetMemberPermissions(w.ctx(), operator, c, "bert@example.com", nil)
		w.refused(err, fault.NotFound, "")
		_, err = w.companies.Members.SetMemberPermissions(w.ctx(), operator, c, "\x00", nil)
		w.refused(err, fault.Invalid, "email")
		_, err = w.companies.Members.SetMemberPermissions(w.ctx(), operator, c, "anna@example.com", []company.Permission{"FLY"})
		w.refused(err, fault.Invalid, "permissions")
		w.ok(w.companies.Members.RemoveMemberByEmail(w.ctx(), operator, c, "anna@example.com"))
		if left := w.members(c); len(left) != 0 {
			w.Errorf("members = %v", left)
		}
	})
}
