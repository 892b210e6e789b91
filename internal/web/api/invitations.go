package api

import (
	"cmp"
	"net/http"

	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/people/company"
	"atelier/internal/web/api/wire"
)

func (s *Server) listInvitations(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	id := r.PathValue("company_id")
	pg, err := s.page(c.params, cursor.Scope("invitations", c.caller.PersonID, id))
	if err != nil {
		return err
	}
	var after *company.After
	if pg.after != nil {
		at, err := pg.time()
		if err != nil {
			return err
		}
		after = &company.After{Created: at, ID: pg.after[1]}
	}
	all, err := s.Directory.Invitations(r.Context(), principalOf(r), id, after, pg.limit+1)
	if err != nil {
		return err
	}
	var answer wire.InvitationList
	all, answer.HasMore, answer.NextCursor = cut(s, pg, all, func(i company.Invitation) (string, string) { return micros(i.Created), i.ID })
	answer.Data = every(all, func(i company.Invitation) wire.Invitation { return asInvitation(i, "") })
	return reply(w, http.StatusOK, answer)
}

func (s *Server) createInvitation(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.InvitationDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	d := company.Draft{
		CompanyID:   r.PathValue("company_id"),
		CompanyRole: orNone(req.CompanyRole),
		TeamID:      orNone(req.TeamID),
		TeamRole:    orNone(req.TeamRole),
		Email:       orNone(req.Email),
	}
	if req.Email != nil && d.Email == "" { // not a link for everybody by an oversight
		return fault.New(fault.Invalid, "Some fields are not valid.").Field("email", "This is not a mail address.")
	}
	// Here zero is not the default but wrong.
	if req.Uses != nil {
		d.Uses = cmp.Or(*req.Uses, -1)
	}
	if req.LifetimeSeconds != nil {
		d.Lifetime = span(cmp.Or(*req.LifetimeSeconds, -1))
	}
	inv, link, err := s.Directory.Invite(r.Context(), principalOf(r), d)
	if err != nil {
		return onField(err, "lifetime", "lifetime_seconds")
	}
	return reply(w, http.StatusCreated, asInvitation(inv, link))
}

func (s *Server) revokeInvitation(w http.ResponseWriter, r *http.Request) error {
	if err := s.Directory.RevokeInvitation(r.Context(), principalOf(r), r.PathValue("invitation_id")); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) listMyInvitations(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Directory.Offers(r.Context(), principalOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wire.OfferList{Data: every(all, asOffer)})
}

func (s *Server) acceptInvitation(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.InvitationToken](w, r, s.Limits)
	if err != nil {
		return err
	}
	if req.Token == "" {
		return missing("token")
	}
	if err := s.Accounts.SignUp.AcceptInvitation(r.Context(), principalOf(r), req.Token); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) acceptMyInvitation(w http.ResponseWriter, r *http.Request) error {
	if err := s.Accounts.SignUp.AcceptInvitationByID(r.Context(), principalOf(r), r.PathValue("invitation_id")); err != nil {
		return err
	}
	return done(w)
}
