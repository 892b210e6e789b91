package directory

import (
	"context"
	"slices"

	"atelier/internal/company"
	"atelier/internal/fault"
	"atelier/internal/ident"
	"atelier/internal/sqldb"
)

// The answers to who may not. The first four are one each for what belongs to
// others and for what never was.
var (
	errNoCompany    = fault.New(fault.NotFound, "There is no such company.")
	errNoTeam       = fault.New(fault.NotFound, "There is no such team.")
	errNoMember     = fault.New(fault.NotFound, "There is no such member.")
	errNoInvitation = fault.New(fault.NotFound, "There is no such invitation.")

	errPermission = fault.New(fault.Forbidden, "Your role does not allow this.").With("reason", "permission")
	errLastAdmin  = fault.New(fault.Forbidden, "The company must keep somebody who can manage its members.").With("reason", "last_admin")
	errPlugin     = fault.New(fault.PluginNotAllowed, "Your role in this team does not allow this app. Ask an admin of the team.")
)

// standing is what an actor is in a company at this moment. The operator has a
// role that allows everything.
type standing struct {
	company.Membership
	actor Actor
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
func inCompany(ctx context.Context, tx *sqldb.Tx, a Actor, companyID string, may rule) (standing, error) {
	s := standing{actor: a}
	if a.operator() {
		c, err := company.ByID(ctx, tx, companyID)
		s.Company, s.Role.Permissions = c, company.CompanyPermissions
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
	if !ident.Valid(personID) {
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

// mayTakeIn refuses people from outside the company: they come in by invitation
// or by their domain, which they agree to. The operator may put anybody in.
func (s standing) mayTakeIn(ctx context.Context, tx *sqldb.Tx, personID string) error {
	if s.actor.operator() {
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
	if s.actor.operator() || !s.Role.May(company.ManageMembers) {
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
	if p.actor.ByPlugin && !(p.role.May(company.UsePlugins) && p.role.AllowsPlugin(p.actor.PluginKind)) {
		return errPlugin
	}
	return nil
}

// inTeam finds what an actor is in a team, and asks the rule. A team of a
// company that they are not in does not exist for them.
func inTeam(ctx context.Context, tx *sqldb.Tx, a Actor, teamID string, may teamRule) (p place, err error) {
	if p.team, err = company.TeamByID(ctx, tx, teamID); err == nil {
		p.standing, err = inCompany(ctx, tx, a, p.team.CompanyID, anyMember)
	}
	if fault.Is(err, fault.NotFound) {
		err = errNoTeam
	}
	if err != nil || a.operator() {
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
	if !ident.Valid(personID) {
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

// coversRole is covers for a role of the team by its name. One that does not
// exist allows nothing.
func (p place) coversRole(ctx context.Context, tx *sqldb.Tx, name string) error {
	r, err := company.TeamRoleByName(ctx, tx, p.team.ID, name)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.covers(r.Permissions)
}

// coversMember is covers for what somebody has in the team.
func (p place) coversMember(ctx context.Context, tx *sqldb.Tx, personID string) error {
	in, err := account(ctx, tx, personID, p.team.ID)
	if err != nil || in == nil {
		return err
	}
	return p.covers(in.Role.Permissions)
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
	return p.coversRole(ctx, tx, role)
}
