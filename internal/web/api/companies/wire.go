package companies

import (
	"atelier/internal/base/audit"
	"atelier/internal/people/company"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

func asCompany(m company.Membership) wire.Company {
	return wire.Company{
		ID:          m.Company.ID,
		Name:        m.Company.Name,
		Plan:        wire.CompanyPlan(m.Company.Plan),
		TimeZone:    m.Company.Zone,
		Created:     rest.Moment(m.Company.Created),
		Role:        m.Role.Name,
		Permissions: rest.Convert(m.Role.Permissions, rest.ConvertText[wire.CompanyPermission]),
		Joined:      rest.Moment(m.Joined),
	}
}

func asCompanyRole(r company.Role) wire.CompanyRole {
	return wire.CompanyRole{Name: r.Name, Permissions: rest.Convert(r.Permissions, rest.ConvertText[wire.CompanyPermission])}
}

func asMember(m company.Member) wire.Member {
	return wire.Member{UID: m.PersonID, Email: m.Email, Role: m.Role, Joined: rest.Moment(m.Joined)}
}

func asDomain(d company.Domain) wire.Domain {
	out := wire.Domain{
		Domain:   d.Name,
		Record:   company.DomainRecord(d.Name),
		Proof:    d.Proof,
		TeamID:   rest.TextOrNull(d.TeamID),
		TeamRole: rest.TextOrNull(d.TeamRole),
		Created:  rest.Moment(d.Created),
	}
	if d.Verified != nil {
		at := rest.Moment(*d.Verified)
		out.Verified = &at
	}
	return out
}

func asAuditRecord(r audit.Record) wire.AuditRecord {
	return wire.AuditRecord{
		Seq:      r.Seq,
		At:       rest.Moment(r.At),
		Act:      string(r.Act),
		ActorID:  rest.TextOrNull(r.ActorID),
		PersonID: rest.TextOrNull(r.PersonID),
		Address:  rest.TextOrNull(r.Address),
		Details:  r.Details,
	}
}
