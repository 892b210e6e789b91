package directory

import (
	"context"
	"slices"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// The answers to who may not. The first four are one each for what belongs to
// others and for what never was.
var (
	errNoCompany    = fault.New(fault.NotFound, "There is no such company.")
	errNoTeam       = fault.New(fault.NotFound, "There is no such team.")
	errNoMember     = fault.New(fault.NotFound, "There is no such member.")
	errNoInvitation = fault.New(fault.NotFound, "There is no such invitation.")

	errPermission = fault.New(fault.Forbidden, "Your role does not allow this.").With("reason", "permission")
	errLimits     = fault.New(fault.Forbidden, "Your own role has narrower limits than this. Who manages all teams of the company can set wider ones.").With("reason", "limits")
	errLastAdmin  = fault.New(fault.Forbidden, "The company must keep somebody who can manage its members.").With("reason", "last_admin")
	errPlugin     = fault.New(fault.PluginNotAllowed, "Your role in this team does not allow this app. Ask an admin of the team.")
)

// standing is what an actor is in a company at this moment. The operator has a
// role that allows everything.
type standing struct {
	company.Membership
	actor principal.Principal
}

// rule tells whether a standing is enough for something.
type rule func(standing) error

func anyMember(standing) error { return nil }

func managesMembers(s standing) error { return s.need(company.ManageMembers) }

func managesTeams(s standing) error { return s.need(company.ManageTeams) }

func (s standing) need(p company.Permission) error {
	if !s.Role.May(p) {
		return errPermission
	}
	return nil
}

// inCompany finds what an actor is in a company, and asks the rule. A company
// that they are not in does not exist for them.
func inCompany(ctx context.Context, tx *sqldb.Tx, a principal.Principal, companyID string, may rule) (standing, error) {
	s := standing{actor: a}
	if a.Operator {
		c, err := company.ByID(ctx, tx, companyID)
		s.Company = c
		s.Role.Permissions = company.CompanyPermissions
		return s, err
	}
	m, err := membership(ctx, tx, a.PersonID, companyID)
	if err != nil {
		return s, err
	}
	if m == nil {
		return s, errNoCompany
	}
	s.Membership = *m
	return s, may(s)
}

// membership finds a person's place in a company, nil where they have none.
func membership(ctx context.Context, tx *sqldb.Tx, personID, companyID string) (*company.Membership, error) {
	if !ids.Valid(personID) {
		return nil, nil
	}
	all, err := company.OfPerson(ctx, tx, personID)
	if i := slices.IndexFunc(all, func(m company.Membership) bool { return m.Company.ID == companyID }); i >= 0 {
		return &all[i], nil
	}
	return nil, err
}

// covers refuses to hand on permissions, or to touch somebody who has them,
// that the actor does not have.
func (s standing) covers(perms []company.Permission) error {
	for _, p := range perms {
		if err := s.need(p); err != nil {
			return err
		}
	}
	return nil
}

// coversRole is covers for a role by its name.
func (s standing) coversRole(ctx context.Context, tx *sqldb.Tx, name string) error {
	r, err := roleOf(ctx, tx, s.Company.ID, name)
	if err != nil {
		return err
	}
	return s.covers(r.Permissions)
}

// roleNameOf is what somebody is in the company, "" where they are not in it.
func (s standing) roleNameOf(ctx context.Context, tx *sqldb.Tx, personID string) (string, error) {
	m, err := membership(ctx, tx, personID, s.Company.ID)
	if err != nil || m == nil {
		return "", err
	}
	return m.Role.Name, nil
}

// mayTakeIn refuses people from outside the company: they come in by invitation
// or by their domain, which they agree to. The operator may put anybody in.
func (s standing) mayTakeIn(ctx context.Context, tx *sqldb.Tx, personID string) error {
	if s.actor.Operator {
		return nil
	}
	m, err := membership(ctx, tx, personID, s.Company.ID)
	if err == nil && m == nil {
		err = errNoMember
	}
	return err
}

// coversMember is covers for what somebody has in the company.
func (s standing) coversMember(ctx context.Context, tx *sqldb.Tx, personID string) error {
	m, err := membership(ctx, tx, personID, s.Company.ID)
	if err != nil || m == nil {
		return err
	}
	return s.covers(m.Role.Permissions)
}

// keepsAdmin refuses a change, made already in tx, by which an actor who could
// manage members leaves nobody who can. The operator may.
func (s standing) keepsAdmin(ctx context.Context, tx *sqldb.Tx) error {
	if s.actor.Operator || !s.Role.May(company.ManageMembers) {
		return nil
	}
	left, err := company.HasAdmin(ctx, tx, s.Company.ID)
	if err == nil && !left {
		err = errLastAdmin
	}
	return err
}

// place is what an actor is in a team and its company at this moment.
type place struct {
	standing
	team company.Team
	role *company.TeamRole // in the team; nil where they are not in it
}

// teamRule tells whether a place is enough for something.
type teamRule func(place) error

// seesTeam lets everybody in who is in the company.
func seesTeam(place) error { return nil }

// ownsTeam is for making and ending teams.
func ownsTeam(p place) error { return managesTeams(p.standing) }

// knowsTeam is for those who are in the team or manage all of them.
func knowsTeam(p place) error {
	if p.Role.May(company.ManageTeams) {
		return nil
	}
	if p.role == nil {
		return errPermission
	}
	return p.byPlugin()
}

// managesTeam is for those who manage this team or all of them.
func managesTeam(p place) error {
	if p.Role.May(company.ManageTeams) {
		return nil
	}
	if p.role == nil || !p.role.May(company.ManageTeam) {
		return errPermission
	}
	return p.byPlugin()
}

// paysFor is for those who manage what the company pays.
func paysFor(p place) error { return p.need(company.ManageBilling) }

// seesBudget is for those who manage what the company pays, or this team.
func seesBudget(p place) error {
	if p.Role.May(company.ManageBilling) {
		return nil
	}
	if p.role == nil || !p.role.May(company.ManageTeam) {
		return errPermission
	}
	return p.byPlugin()
}

// byPlugin refuses an app that the actor's role in the team does not let in.
func (p place) byPlugin() error {
	if p.actor.UsesPlugin() && !p.role.AllowsApp(p.actor.Plugin) {
		return errPlugin
	}
	return nil
}

// inTeam finds what an actor is in a team, and asks the rule. A team of a
// company that they are not in does not exist for them.
func inTeam(ctx context.Context, tx *sqldb.Tx, a principal.Principal, teamID string, may teamRule) (p place, err error) {
	if p.team, err = company.TeamByID(ctx, tx, teamID); err == nil {
		p.standing, err = inCompany(ctx, tx, a, p.team.CompanyID, anyMember)
	}
	if fault.Is(err, fault.NotFound) {
		err = errNoTeam
	}
	if err != nil || a.Operator {
		return p, err
	}
	in, err := account(ctx, tx, a.PersonID, teamID)
	if err != nil {
		return p, err
	}
	if in != nil {
		p.role = &in.Role
	}
	return p, may(p)
}

// account finds a person's place in a team, nil where they have none.
func account(ctx context.Context, tx *sqldb.Tx, personID, teamID string) (*company.Account, error) {
	if !ids.Valid(personID) {
		return nil, nil
	}
	all, err := company.Accounts(ctx, tx, personID)
	if i := slices.IndexFunc(all, func(a company.Account) bool { return a.Team.ID == teamID }); i >= 0 {
		return &all[i], nil
	}
	return nil, err
}

// covers is standing.covers over the permissions of teams. Who manages all
// teams has them all.
func (p place) covers(perms []company.Permission) error {
	if p.Role.May(company.ManageTeams) {
		return nil
	}
	for _, perm := range perms {
		if p.role == nil || !p.role.May(perm) {
			return errPermission
		}
	}
	return nil
}

// mayGive decides whether the actor may have somebody hold, or a role be, what
// was before and shall be now; was is nil where there was nothing. Every act by
// which a role of a team changes or reaches somebody asks it: nobody gives more
// than their own role has, in permissions or in limits, themselves included.
// Taking away is no gift. Who manages all teams sets the limits of all.
func (p place) mayGive(was *company.TeamRole, now company.TeamRole) error {
	if was != nil {
		if err := p.covers(was.Permissions); err != nil { // nobody touches those who have more
			return err
		}
	}
	if err := p.covers(now.Permissions); err != nil {
		return err
	}
	if p.Role.May(company.ManageTeams) || p.role != nil && p.role.Covers(now) || was != nil && was.Covers(now) {
		return nil
	}
	return errLimits
}

// mayGiveNamed is mayGive for a role of the team by its name. Whether there is
// one is for others to say.
func (p place) mayGiveNamed(ctx context.Context, tx *sqldb.Tx, was *company.TeamRole, name string) error {
	now, err := p.roleNamed(ctx, tx, name)
	if err != nil {
		return err
	}
	if now != nil {
		return p.mayGive(was, *now)
	}
	if was != nil {
		return p.covers(was.Permissions)
	}
	return nil
}

// roleNamed finds a role of the team, nil where there is none.
func (p place) roleNamed(ctx context.Context, tx *sqldb.Tx, name string) (*company.TeamRole, error) {
	r, err := company.TeamRoleByName(ctx, tx, p.team.ID, name)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// roleOfMember gives what somebody has in the team, nil where they are not in
// it.
func (p place) roleOfMember(ctx context.Context, tx *sqldb.Tx, personID string) (*company.TeamRole, error) {
	in, err := account(ctx, tx, personID, p.team.ID)
	if err != nil || in == nil {
		return nil, err
	}
	return &in.Role, nil
}

// mayLeadTo refuses a way into a team, an invitation or a domain, to whoever
// could not put people there themselves. Whether the company has the team and
// the team the role is for others to say.
func (s standing) mayLeadTo(ctx context.Context, tx *sqldb.Tx, teamID, role string) error {
	if teamID == "" {
		return nil
	}
	t, err := company.TeamByID(ctx, tx, teamID)
	if fault.Is(err, fault.NotFound) || err == nil && t.CompanyID != s.Company.ID {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := inTeam(ctx, tx, s.actor, teamID, managesTeam)
	if err != nil {
		return err
	}
	return p.mayGiveNamed(ctx, tx, nil, role)
}
