package api

import (
	"net/http"
	"strconv"

	"atelier/internal/account/directory"
	"atelier/internal/base/audit"
	"atelier/internal/base/cursor"
	"atelier/internal/people/company"
	"atelier/internal/web/access"
	"atelier/internal/web/api/wire"
)

// companyRoutes are those about companies, teams and invitations.
func (s *Server) companyRoutes() []route {
	return []route{
		{"GET", prefix + "/companies", access.SignedIn, s.listCompanies},
		{"GET", prefix + "/companies/{company_id}", access.SignedIn, s.getCompany},
		{"PATCH", prefix + "/companies/{company_id}", access.SignedIn, s.changeCompany},
		{"GET", prefix + "/companies/{company_id}/members", access.SignedIn, s.listMembers},
		{"PUT", prefix + "/companies/{company_id}/members/{uid}", access.SignedIn, s.setMember},
		{"DELETE", prefix + "/companies/{company_id}/members/{uid}", access.SignedIn, s.removeMember},
		{"GET", prefix + "/companies/{company_id}/roles", access.SignedIn, s.listRoles},
		{"PUT", prefix + "/companies/{company_id}/roles/{role}", access.SignedIn, s.setRole},
		{"DELETE", prefix + "/companies/{company_id}/roles/{role}", access.SignedIn, s.deleteRole},
		{"GET", prefix + "/companies/{company_id}/domains", access.SignedIn, s.listDomains},
		{"POST", prefix + "/companies/{company_id}/domains", access.SignedIn, s.addDomain},
		{"DELETE", prefix + "/companies/{company_id}/domains/{domain}", access.SignedIn, s.removeDomain},
		{"POST", prefix + "/companies/{company_id}/domains/{domain}/verify", access.SignedIn, s.verifyDomain},
		{"GET", prefix + "/companies/{company_id}/audit", access.SignedIn, s.listAudit},

		{"GET", prefix + "/companies/{company_id}/teams", access.SignedIn, s.listTeams},
		{"POST", prefix + "/companies/{company_id}/teams", access.SignedIn, s.createTeam},
		{"GET", prefix + "/teams/{team_id}", access.SignedIn, s.getTeam},
		{"PATCH", prefix + "/teams/{team_id}", access.SignedIn, s.renameTeam},
		{"DELETE", prefix + "/teams/{team_id}", access.SignedIn, s.removeTeam},
		{"GET", prefix + "/teams/{team_id}/members", access.SignedIn, s.listTeamMembers},
		{"PUT", prefix + "/teams/{team_id}/members/{uid}", access.SignedIn, s.setTeamMember},
		{"DELETE", prefix + "/teams/{team_id}/members/{uid}", access.SignedIn, s.removeTeamMember},
		{"GET", prefix + "/teams/{team_id}/roles", access.SignedIn, s.listTeamRoles},
		{"PUT", prefix + "/teams/{team_id}/roles/{role}", access.SignedIn, s.setTeamRole},
		{"DELETE", prefix + "/teams/{team_id}/roles/{role}", access.SignedIn, s.deleteTeamRole},

		{"GET", prefix + "/companies/{company_id}/invitations", access.SignedIn, s.listInvitations},
		{"POST", prefix + "/companies/{company_id}/invitations", access.SignedIn, s.createInvitation},
		{"GET", prefix + "/invitations", access.SignedIn, s.listMyInvitations},
		{"POST", prefix + "/invitations/accept", access.SignedIn, s.acceptInvitation},
		{"DELETE", prefix + "/invitations/{invitation_id}", access.SignedIn, s.revokeInvitation},
		{"POST", prefix + "/invitations/{invitation_id}/accept", access.SignedIn, s.acceptMyInvitation},
	}
}

// named reads the page of a list of a company or team that is ordered by text.
func (s *Server) named(r *http.Request, list, of string) (listing, company.Key, error) {
	c := callOf(r)
	pg, err := s.page(c.params, cursor.Scope(list, c.caller.PersonID, of))
	if err != nil || pg.after == nil {
		return pg, company.Key{}, err
	}
	return pg, company.Key{Text: pg.after[0], ID: pg.after[1]}, nil
}

func key[T interface{ Key() company.Key }](item T) (string, string) {
	k := item.Key()
	return k.Text, k.ID
}

func (s *Server) listCompanies(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Directory.Companies(r.Context(), principalOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wire.CompanyList{Data: every(all, asCompany)})
}

func (s *Server) getCompany(w http.ResponseWriter, r *http.Request) error {
	m, err := s.Directory.Company(r.Context(), principalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asCompany(m))
}

func (s *Server) changeCompany(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.CompanyChange](w, r, s.Limits)
	if err != nil {
		return err
	}
	m, err := s.Directory.ChangeCompany(r.Context(), principalOf(r), r.PathValue("company_id"), directory.CompanyChange{Name: req.Name, Zone: req.TimeZone})
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asCompany(m))
}

func (s *Server) listMembers(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("company_id")
	pg, after, err := s.named(r, "members", id)
	if err != nil {
		return err
	}
	all, err := s.Directory.Members(r.Context(), principalOf(r), id, after, pg.limit+1)
	if err != nil {
		return err
	}
	var answer wire.MemberList
	all, answer.HasMore, answer.NextCursor = cut(s, pg, all, key)
	answer.Data = every(all, asMember)
	return replyCompressed(w, r, answer)
}

func (s *Server) setMember(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.RoleChoice](w, r, s.Limits)
	if err != nil {
		return err
	}
	m, err := s.Directory.SetMember(r.Context(), principalOf(r), r.PathValue("company_id"), r.PathValue("uid"), req.Role)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asMember(m))
}

func (s *Server) removeMember(w http.ResponseWriter, r *http.Request) error {
	if err := s.Directory.RemoveMember(r.Context(), principalOf(r), r.PathValue("company_id"), r.PathValue("uid")); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) listRoles(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Directory.Roles(r.Context(), principalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wire.CompanyRoleList{Data: every(all, asCompanyRole)})
}

func (s *Server) setRole(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.CompanyRoleDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	if req.Permissions == nil {
		return missing("permissions")
	}
	role := company.Role{Name: r.PathValue("role"), Permissions: every(req.Permissions, fromText[company.Permission])}
	if role, err = s.Directory.SetRole(r.Context(), principalOf(r), r.PathValue("company_id"), role); err != nil {
		return err
	}
	return reply(w, http.StatusOK, asCompanyRole(role))
}

func (s *Server) deleteRole(w http.ResponseWriter, r *http.Request) error {
	if err := s.Directory.DeleteRole(r.Context(), principalOf(r), r.PathValue("company_id"), r.PathValue("role")); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) listDomains(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Directory.Domains(r.Context(), principalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wire.DomainList{Data: every(all, asDomain)})
}

func (s *Server) addDomain(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.DomainDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	d, err := s.Directory.AddDomain(r.Context(), principalOf(r), r.PathValue("company_id"), req.Domain, orNone(req.TeamID), orNone(req.TeamRole))
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, asDomain(d))
}

func (s *Server) verifyDomain(w http.ResponseWriter, r *http.Request) error {
	d, err := s.Directory.VerifyDomain(r.Context(), principalOf(r), r.PathValue("company_id"), r.PathValue("domain"), false)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asDomain(d))
}

func (s *Server) removeDomain(w http.ResponseWriter, r *http.Request) error {
	if err := s.Directory.RemoveDomain(r.Context(), principalOf(r), r.PathValue("company_id"), r.PathValue("domain")); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) listAudit(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	id := r.PathValue("company_id")
	p := c.params
	f := audit.Filter{PersonID: p.id("uid"), Acts: p.acts("act"), From: p.moment("start_utc"), Until: p.moment("end_utc")}
	scope := []string{"audit", c.caller.PersonID, id}
	for _, name := range []string{"uid", "act", "start_utc", "end_utc"} {
		scope = append(scope, p.values.Get(name))
	}
	pg, err := s.page(p, cursor.Scope(scope...))
	if err != nil {
		return err
	}
	if pg.after != nil {
		if f.Before, err = strconv.ParseInt(pg.after[0], 10, 64); err != nil {
			return err // we sealed it ourselves
		}
	}
	f.Limit = pg.limit + 1
	all, err := s.Directory.Audit(r.Context(), principalOf(r), id, f)
	if err != nil {
		return err
	}
	var answer wire.AuditList
	all, answer.HasMore, answer.NextCursor = cut(s, pg, all, func(rec audit.Record) (string, string) { return strconv.FormatInt(rec.Seq, 10), "" })
	answer.Data = every(all, asAuditRecord)
	return replyCompressed(w, r, answer)
}

// acts reads a parameter that names an act or a kind of acts, nil for none.
func (p *params) acts(name string) []audit.Act {
	text := p.one(name)
	if text == "" {
		return nil
	}
	acts := audit.Named(text)
	if len(acts) == 0 {
		p.problem(name, "This is no act, such as company.member_set, nor a kind of them, such as company.")
	}
	return acts
}
