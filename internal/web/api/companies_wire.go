package api

import (
	"errors"
	"slices"
	"time"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/people/company"
	"atelier/internal/web/api/wire"
)

func asCompany(m company.Membership) wire.Company {
	return wire.Company{
		ID:          m.Company.ID,
		Name:        m.Company.Name,
		Plan:        wire.CompanyPlan(m.Company.Plan),
		TimeZone:    m.Company.Zone,
		Created:     moment(m.Company.Created),
		Role:        m.Role.Name,
		Permissions: every(m.Role.Permissions, fromText[wire.CompanyPermission]),
		Joined:      moment(m.Joined),
	}
}

func asCompanyRole(r company.Role) wire.CompanyRole {
	return wire.CompanyRole{Name: r.Name, Permissions: every(r.Permissions, fromText[wire.CompanyPermission])}
}

func asMember(m company.Member) wire.Member {
	return wire.Member{UID: m.PersonID, Email: m.Email, Role: m.Role, Joined: moment(m.Joined)}
}

func asDomain(d company.Domain) wire.Domain {
	out := wire.Domain{
		Domain:   d.Name,
		Record:   company.DomainRecord(d.Name),
		Proof:    d.Proof,
		TeamID:   orNull(d.TeamID),
		TeamRole: orNull(d.TeamRole),
		Created:  moment(d.Created),
	}
	if d.Verified != nil {
		at := moment(*d.Verified)
		out.Verified = &at
	}
	return out
}

func asAuditRecord(r audit.Record) wire.AuditRecord {
	return wire.AuditRecord{
		Seq:      r.Seq,
		At:       moment(r.At),
		Act:      string(r.Act),
		ActorID:  orNull(r.ActorID),
		PersonID: orNull(r.PersonID),
		Address:  orNull(r.Address),
		Details:  r.Details,
	}
}

func asTeam(t company.Team) wire.Team {
	return wire.Team{ID: t.ID, CompanyID: t.CompanyID, Name: t.Name, Created: moment(t.Created)}
}

func asTeamMember(m company.TeamMember) wire.TeamMember {
	return wire.TeamMember{
		UID:    m.PersonID,
		Email:  m.Email,
		Role:   m.Role,
		Joined: moment(m.Joined),
		How:    string(m.How),
	}
}

func asTeamRole(r company.TeamRole) wire.TeamRole {
	out := wire.TeamRole{
		Name:         r.Name,
		Permissions:  asPermissions(company.TeamPermissions, r.Permissions),
		ToolsAllowed: words(r.ToolsAllowed),
		ToolsBlocked: words(r.ToolsBlocked),
		PluginKinds:  words(r.PluginKinds),
	}
	if r.Spend != nil {
		out.Spend = &wire.Spend{Tokens: r.Spend.Tokens, WindowSeconds: int64(r.Spend.Window / time.Second)}
	}
	return out
}

// teamRoleOf is the role that a draft stands for: where it says nothing, one
// with all tools, all apps and no limit.
func teamRoleOf(name string, d wire.TeamRoleDraft) company.TeamRole {
	r := company.TeamRole{Name: name, PluginKinds: []string{company.AnyKind}}
	for perm, on := range d.Permissions {
		if p := company.Permission(perm); on || !slices.Contains(company.TeamPermissions, p) { // what is no permission is refused in either case
			r.Permissions = append(r.Permissions, p)
		}
	}
	if d.ToolsAllowed != nil {
		r.ToolsAllowed = *d.ToolsAllowed
	}
	if d.ToolsBlocked != nil {
		r.ToolsBlocked = *d.ToolsBlocked
	}
	if d.PluginKinds != nil {
		r.PluginKinds = *d.PluginKinds
	}
	if d.Spend != nil {
		r.Spend = &company.Spend{Tokens: d.Spend.Tokens, Window: span(d.Spend.WindowSeconds)}
	}
	return r
}

// asInvitation shows an invitation, with its link where it was just made.
func asInvitation(i company.Invitation, link string) wire.Invitation {
	return wire.Invitation{
		ID:          i.ID,
		CompanyID:   i.CompanyID,
		CompanyRole: i.CompanyRole,
		TeamID:      orNull(i.TeamID),
		TeamRole:    orNull(i.TeamRole),
		Email:       orNull(i.Email),
		UsesLeft:    i.UsesLeft,
		InvitedBy:   orNull(i.InvitedBy),
		Created:     moment(i.Created),
		Expires:     moment(i.Expires),
		URL:         orNull(link),
	}
}

func asOffer(o companyadmin.Offer) wire.Offer {
	return wire.Offer{
		ID:          o.ID,
		CompanyID:   o.CompanyID,
		CompanyName: o.Company,
		TeamID:      orNull(o.TeamID),
		TeamName:    orNull(o.Team),
		Created:     moment(o.Created),
		Expires:     moment(o.Expires),
	}
}

// every converts a list. The result is never nil, which JSON would write as
// null.
func every[T, U any](list []T, as func(T) U) []U {
	out := make([]U, 0, len(list))
	for _, item := range list {
		out = append(out, as(item))
	}
	return out
}

// fromText turns one kind of text into another.
func fromText[U, T ~string](s T) U { return U(s) }

// orNone is a text that was left out as "".
func orNone(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// span is a time that a caller gave in seconds. It is cut off far beyond all
// bounds, before it is too long to be counted.
func span(n int64) time.Duration {
	const century = 100 * 366 * 24 * 60 * 60
	return time.Duration(max(-century, min(n, century))) * time.Second
}

// onField names a field of a refused request as the caller knows it.
func onField(err error, path, known string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	c := *f
	c.Fields = slices.Clone(f.Fields)
	for i := range c.Fields {
		if c.Fields[i].Path == path {
			c.Fields[i].Path = known
		}
	}
	return &c
}
