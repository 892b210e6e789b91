package companies

import (
	"net/http"

	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// listMembers serves GET /api/v2/companies/{company_id}/members: it lists the
// members of a company.
func (h *Handler) listMembers(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("company_id")
	page, after, err := rest.ReadNamedPage(h.Pages, r, "members", id)
	if err != nil {
		return err
	}
	all, err := h.Companies.Members.ListMembers(r.Context(), rest.PrincipalOf(r), id, after, page.Limit+1)
	if err != nil {
		return err
	}
	all, hasMore, next := rest.Cut(page, all, rest.NameKey)
	return rest.ReplyCompressed(w, r, wire.MemberList{Data: rest.Convert(all, asMember), HasMore: hasMore, NextCursor: next})
}

// setMember serves PUT /api/v2/companies/{company_id}/members/{uid}: it sets
// the role of a company's member.
func (h *Handler) setMember(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.RoleAssignment](w, r, h.JSON)
	if err != nil {
		return err
	}
	m, err := h.Companies.Members.SetMember(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), r.PathValue("uid"), req.Role)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asMember(m))
}

// removeMember serves DELETE /api/v2/companies/{company_id}/members/{uid}: it
// removes a member from a company and its teams.
func (h *Handler) removeMember(w http.ResponseWriter, r *http.Request) error {
	if err := h.Companies.Members.RemoveMember(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), r.PathValue("uid")); err != nil {
		return err
	}
	return rest.NoContent(w)
}
