package directory

import (
	"context"
	"slices"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// lookTeam reads something of a team for an actor who may.
func (d *Directory) lookTeam(ctx context.Context, a principal.Principal, teamID string, may teamRule, read func(tx *sqldb.Tx, p place) error) error {
	return d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		p, err := inTeam(ctx, tx, a, teamID, may)
		if err != nil {
			return err
		}
		return read(tx, p)
	})
}

// changeTeam does something to a team for an actor who may, and records it.
func (d *Directory) changeTeam(ctx context.Context, a principal.Principal, teamID string, may teamRule, act func(tx *sqldb.Tx, p place) (audit.Entry, error)) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error { return changeTeamIn(ctx, tx, a, teamID, may, act) })
}

// changeTeamIn is changeTeam in a transaction that has begun.
func changeTeamIn(ctx context.Context, tx *sqldb.Tx, a principal.Principal, teamID string, may teamRule, act func(tx *sqldb.Tx, p place) (audit.Entry, error)) error {
	p, err := inTeam(ctx, tx, a, teamID, may)
	if err != nil {
		return err
	}
	if err := company.Lock(ctx, tx, p.team.CompanyID); err != nil {
		return err
	}
	if p, err = inTeam(ctx, tx, a, teamID, may); err != nil {
		return err
	}
	e, err := act(tx, p)
	if err != nil {
		return err
	}
	return record(ctx, tx, a, p.team.CompanyID, e)
}

// Teams gives a company's teams by name, from after on.
func (d *Directory) Teams(ctx context.Context, a principal.Principal, companyID string, after company.Key, limit int) (all []company.Team, err error) {
	err = d.look(ctx, a, companyID, anyMember, func(tx *sqldb.Tx, _ standing) error {
		all, err = company.Teams(ctx, tx, companyID, after, limit)
		return err
	})
	return all, err
}

// CreateTeam makes a team that nobody is in yet.
func (d *Directory) CreateTeam(ctx context.Context, a principal.Principal, companyID, name string) (t company.Team, err error) {
	err = d.change(ctx, a, companyID, managesTeams, func(tx *sqldb.Tx, _ standing) (audit.Entry, error) {
		t, err = company.CreateTeam(ctx, tx, companyID, name)
		return audit.Entry{Act: audit.TeamCreated, Details: map[string]string{"team": t.ID, "name": name}}, err
	})
	return t, err
}

// Team gives a team.
func (d *Directory) Team(ctx context.Context, a principal.Principal, teamID string) (t company.Team, err error) {
	err = d.lookTeam(ctx, a, teamID, seesTeam, func(_ *sqldb.Tx, p place) error {
		t = p.team
		return nil
	})
	return t, err
}

// RenameTeam gives a team another name.
func (d *Directory) RenameTeam(ctx context.Context, a principal.Principal, teamID, name string) (t company.Team, err error) {
	err = d.changeTeam(ctx, a, teamID, managesTeam, func(tx *sqldb.Tx, p place) (audit.Entry, error) {
		t = p.team
		t.Name = name
		e := audit.Entry{Act: audit.TeamChanged, Details: map[string]string{"team": teamID, "name": name, "before": p.team.Name}}
		return e.Changing(p.team.Name, name), company.RenameTeam(ctx, tx, teamID, name)
	})
	return t, err
}

// RemoveTeam ends a team.
func (d *Directory) RemoveTeam(ctx context.Context, a principal.Principal, teamID string) error {
	return d.changeTeam(ctx, a, teamID, ownsTeam, func(tx *sqldb.Tx, p place) (audit.Entry, error) {
		return audit.Entry{Act: audit.TeamRemoved, Details: map[string]string{"team": teamID, "name": p.team.Name}},
			company.RemoveTeam(ctx, tx, teamID)
	})
}

// TeamMembers gives a team's members by address, from after on.
func (d *Directory) TeamMembers(ctx context.Context, a principal.Principal, teamID string, after company.Key, limit int) (all []company.TeamMember, err error) {
	err = d.lookTeam(ctx, a, teamID, knowsTeam, func(tx *sqldb.Tx, _ place) error {
		all, err = company.TeamMembers(ctx, tx, teamID, after, limit)
		return err
	})
	return all, err
}

// SetTeamMember takes a member of the company into the team or gives them
// another role there. Somebody whom the operator takes in from outside becomes
// a plain member of the company.
func (d *Directory) SetTeamMember(ctx context.Context, a principal.Principal, teamID, personID, role string) (m company.TeamMember, err error) {
	act := func(tx *sqldb.Tx, p place) (e audit.Entry, err error) {
		if err := p.mayTakeIn(ctx, tx, personID); err != nil {
			return e, err
		}
		was, err := p.roleOfMember(ctx, tx, personID)
		if err != nil {
			return e, err
		}
		if err := p.mayGiveNamed(ctx, tx, was, role); err != nil {
			return e, err
		}
		who, err := known(ctx, tx, personID)
		if err != nil {
			return e, err
		}
		if _, err := company.SetTeamMember(ctx, tx, teamID, personID, role, company.Added); err != nil {
			return e, err
		}
		in, err := account(ctx, tx, personID, teamID)
		if err != nil || in == nil {
			return e, orElse(err, errNoMember)
		}
		m = company.TeamMember{Member: company.Member{PersonID: who.ID, Email: who.Email, Role: in.Role.Name, Joined: in.Joined}, How: in.How}
		e = audit.Entry{Act: audit.TeamMemberSet, PersonID: personID, Details: map[string]string{"team": teamID, "role": role}}
		return e.Changing(roleName(was), role), nil
	}
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		// Strangers are turned away before they can keep anybody waiting.
		if _, err := inTeam(ctx, tx, a, teamID, managesTeam); err != nil {
			return err
		}
		if err := hold(ctx, tx, personID); err != nil {
			return err
		}
		return changeTeamIn(ctx, tx, a, teamID, managesTeam, act)
	})
	return m, err
}

// AddTeamMember is SetTeamMember by mail address, with the role member unless
// it says another. It is the operator's act.
func (d *Directory) AddTeamMember(ctx context.Context, a principal.Principal, teamID, email, role string) (uid string, err error) {
	if uid, err = d.byEmail(ctx, a, email); err != nil {
		return "", err
	}
	_, err = d.SetTeamMember(ctx, a, teamID, uid, orMember(role))
	return uid, err
}

// RemoveTeamMember takes a person out of the team. Everybody may leave.
func (d *Directory) RemoveTeamMember(ctx context.Context, a principal.Principal, teamID, personID string) error {
	may := managesTeam
	if personID == a.PersonID {
		may = seesTeam
	}
	err := d.changeTeam(ctx, a, teamID, may, func(tx *sqldb.Tx, p place) (e audit.Entry, err error) {
		was, err := p.roleOfMember(ctx, tx, personID)
		if err != nil {
			return e, err
		}
		if was != nil {
			if err := p.covers(was.Permissions); err != nil {
				return e, err
			}
		}
		e = audit.Entry{Act: audit.TeamMemberRemoved, PersonID: personID, Details: map[string]string{"team": teamID}}
		return e.Changing(roleName(was), ""), company.RemoveTeamMember(ctx, tx, teamID, personID)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// RemoveTeamMemberByEmail is RemoveTeamMember by mail address. It is the
// operator's act.
func (d *Directory) RemoveTeamMemberByEmail(ctx context.Context, a principal.Principal, teamID, email string) error {
	uid, err := d.byEmail(ctx, a, email)
	if err != nil {
		return err
	}
	return d.RemoveTeamMember(ctx, a, teamID, uid)
}

// TeamRoles gives a team's roles by name.
func (d *Directory) TeamRoles(ctx context.Context, a principal.Principal, teamID string) (all []company.TeamRole, err error) {
	err = d.lookTeam(ctx, a, teamID, knowsTeam, func(tx *sqldb.Tx, _ place) error {
		all, err = company.TeamRoles(ctx, tx, teamID)
		return err
	})
	return all, err
}

// SetTeamRole makes a role of a team or replaces all of it.
func (d *Directory) SetTeamRole(ctx context.Context, a principal.Principal, teamID string, r company.TeamRole) (stored company.TeamRole, err error) {
	err = d.changeTeam(ctx, a, teamID, managesTeam, func(tx *sqldb.Tx, p place) (e audit.Entry, err error) {
		stored, e, err = p.setRole(ctx, tx, r)
		return e, err
	})
	return stored, err
}

// SetTeamRolePermissions changes what a role of a team allows and leaves the
// rest of it as it is. Where it is new it starts as one that may work with all
// tools and plugins.
func (d *Directory) SetTeamRolePermissions(ctx context.Context, a principal.Principal, teamID, name string, changes map[company.Permission]bool) (stored company.TeamRole, err error) {
	err = d.changeTeam(ctx, a, teamID, managesTeam, func(tx *sqldb.Tx, p place) (e audit.Entry, err error) {
		r, err := company.TeamRoleByName(ctx, tx, teamID, name)
		if fault.Is(err, fault.NotFound) {
			r = company.TeamRole{
				Name: name, Permissions: []company.Permission{company.UsePlugins, company.Generate}, PluginKinds: []string{company.AnyKind},
			}
			err = nil
		}
		if err != nil {
			return e, err
		}
		for perm, on := range changes {
			r.Permissions = slices.DeleteFunc(r.Permissions, func(has company.Permission) bool { return has == perm })
			if on || !slices.Contains(company.TeamPermissions, perm) { // what is no permission is refused in either case
				r.Permissions = append(r.Permissions, perm)
			}
		}
		stored, e, err = p.setRole(ctx, tx, r)
		return e, err
	})
	return stored, err
}

// setRole does what the two acts above share.
func (p place) setRole(ctx context.Context, tx *sqldb.Tx, r company.TeamRole) (stored company.TeamRole, e audit.Entry, err error) {
	was, err := p.roleNamed(ctx, tx, r.Name)
	if err != nil {
		return stored, e, err
	}
	if was != nil { // whoever may not touch it learns nothing about the draft
		if err := p.covers(was.Permissions); err != nil {
			return stored, e, err
		}
	}
	if err := company.SetTeamRole(ctx, tx, p.team.ID, r); err != nil {
		return stored, e, err
	}
	stored, err = company.TeamRoleByName(ctx, tx, p.team.ID, r.Name)
	if err != nil {
		return stored, e, err
	}
	if err := p.mayGive(was, stored); err != nil {
		return stored, e, err
	}
	e = audit.Entry{Act: audit.TeamRoleSet, Details: map[string]string{"team": p.team.ID, "role": r.Name, "permissions": names(stored.Permissions)}}
	return stored, e.Changing(describeTeamRole(was), describeTeamRole(&stored)), nil
}

// DeleteTeamRole takes a role of a team away that nobody has.
func (d *Directory) DeleteTeamRole(ctx context.Context, a principal.Principal, teamID, name string) error {
	return d.changeTeam(ctx, a, teamID, managesTeam, func(tx *sqldb.Tx, p place) (e audit.Entry, err error) {
		was, err := p.roleNamed(ctx, tx, name)
		if err != nil {
			return e, err
		}
		if was != nil {
			if err := p.covers(was.Permissions); err != nil {
				return e, err
			}
		}
		e = audit.Entry{Act: audit.TeamRoleDeleted, Details: map[string]string{"team": teamID, "role": name}}
		return e.Changing(describeTeamRole(was), ""), company.DeleteTeamRole(ctx, tx, teamID, name)
	})
}
