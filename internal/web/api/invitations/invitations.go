// Package invitations serves the API endpoints for invitations of new members
// to companies.
package invitations

import (
	"cmp"
	"net/http"

	"atelier/internal/account/companyadmin"
	"atelier/internal/account/signup"
	"atelier/internal/base/cursor"
	"atelier/internal/people/company"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for invitations.
type Handler struct {
	SignUp    *signup.Service
	Companies *companyadmin.Services
	Pages     rest.Pager
	JSON      rest.JSONLimits
}

// Routes returns the routes of the operations on invitations.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/companies/{company_id}/invitations", access.SignedIn, h.listInvitations),
		rest.NewRoute("POST /api/v2/companies/{company_id}/invitations", access.SignedIn, h.createInvitation),
		rest.NewRoute("GET /api/v2/invitations", access.SignedIn, h.listMyInvitations),
		rest.NewRoute("POST /api/v2/invitations/accept", access.SignedIn, h.acceptInvitation),
		rest.NewRoute("DELETE /api/v2/invitations/{invitation_id}", access.SignedIn, h.revokeInvitation),
		rest.NewRoute("POST /api/v2/invitations/{invitation_id}/accept", access.SignedIn, h.acceptMyInvitation),
	}
}

// listInvitations serves GET /api/v2/companies/{company_id}/invitations: it
// lists the open invitations of a company.
func (h *Handler) listInvitations(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	id := r.PathValue("company_id")
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("invitations", call.Principal.PersonID, id))
	if err != nil {
		return err
	}
	var after *company.After
	if page.After != nil {
		at, err := page.AfterTime()
		if err != nil {
			return err
		}
		after = &company.After{Created: at, ID: page.After[1]}
	}
	all, err := h.Companies.Invitations.ListInvitations(r.Context(), rest.PrincipalOf(r), id, after, page.Limit+1)
	if err != nil {
		return err
	}
	all, hasMore, next := rest.Cut(page, all, func(i company.Invitation) (string, string) { return rest.Micros(i.Created), i.ID })
	return rest.Reply(w, http.StatusOK, wire.InvitationList{
		Data:       rest.Convert(all, func(i company.Invitation) wire.Invitation { return asInvitation(i, "") }),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// createInvitation serves POST /api/v2/companies/{company_id}/invitations: it
// invites a person by e-mail, or creates an invitation link.
func (h *Handler) createInvitation(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.InvitationDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	d := company.Draft{
		CompanyID:   r.PathValue("company_id"),
		CompanyRole: rest.ValueOrZero(req.CompanyRole),
		TeamID:      rest.ValueOrZero(req.TeamID),
		TeamRole:    rest.ValueOrZero(req.TeamRole),
		Email:       rest.ValueOrZero(req.Email),
	}
	if req.Email != nil && d.Email == "" { // an invitation without an e-mail address is a link that anyone can use
		return rest.InvalidFields().Field("email", "This is not an e-mail address.")
	}

	// An absent field means the default. Zero is invalid, so it is passed as
	// -1, which is refused.
	if req.Uses != nil {
		d.Uses = cmp.Or(*req.Uses, -1)
	}
	if req.LifetimeSeconds != nil {
		d.Lifetime = rest.ClampedSeconds(cmp.Or(*req.LifetimeSeconds, -1))
	}
	inv, link, err := h.Companies.Invitations.CreateInvitation(r.Context(), rest.PrincipalOf(r), d)
	if err != nil {
		return renameField(err, "lifetime", "lifetime_seconds")
	}
	return rest.Reply(w, http.StatusCreated, asInvitation(inv, link))
}

// revokeInvitation serves DELETE /api/v2/invitations/{invitation_id}: it
// revokes an invitation.
func (h *Handler) revokeInvitation(w http.ResponseWriter, r *http.Request) error {
	if err := h.Companies.Invitations.RevokeInvitation(r.Context(), rest.PrincipalOf(r), r.PathValue("invitation_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// listMyInvitations serves GET /api/v2/invitations: it lists the open
// invitations to the caller.
func (h *Handler) listMyInvitations(w http.ResponseWriter, r *http.Request) error {
	all, err := h.Companies.Invitations.ListOffers(r.Context(), rest.PrincipalOf(r))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.ReceivedInvitationList{Data: rest.Convert(all, asReceivedInvitation)})
}

// acceptInvitation serves POST /api/v2/invitations/accept: it accepts the
// invitation whose link contains the token in the request body.
func (h *Handler) acceptInvitation(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.InvitationToken](w, r, h.JSON)
	if err != nil {
		return err
	}
	if req.Token == "" {
		return rest.RequiredField("token")
	}
	if err := h.SignUp.AcceptInvitation(r.Context(), rest.PrincipalOf(r), req.Token); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// acceptMyInvitation serves POST /api/v2/invitations/{invitation_id}/accept:
// it accepts an invitation to the caller by its id.
func (h *Handler) acceptMyInvitation(w http.ResponseWriter, r *http.Request) error {
	if err := h.SignUp.AcceptInvitationByID(r.Context(), rest.PrincipalOf(r), r.PathValue("invitation_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}
