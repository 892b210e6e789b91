package companies

import (
	"net/http"

	"atelier/internal/people/company"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// listRoles serves GET /api/v2/companies/{company_id}/roles: it lists the
// roles of a company.
func (h *Handler) listRoles(w http.ResponseWriter, r *http.Request) error {
	all, err := h.Companies.Roles.ListRoles(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.CompanyRoleList{Data: rest.Convert(all, asCompanyRole)})
}

// setRole serves PUT /api/v2/companies/{company_id}/roles/{role}: it creates
// or replaces a role of a company.
func (h *Handler) setRole(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.CompanyRoleDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	if req.Permissions == nil {
		return rest.RequiredField("permissions")
	}
	role := company.Role{Name: r.PathValue("role"), Permissions: rest.Convert(req.Permissions, rest.ConvertText[company.Permission])}
	role, err = h.Companies.Roles.SetRole(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), role)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asCompanyRole(role))
}

// deleteRole serves DELETE /api/v2/companies/{company_id}/roles/{role}: it
// deletes a role of a company.
func (h *Handler) deleteRole(w http.ResponseWriter, r *http.Request) error {
	if err := h.Companies.Roles.DeleteRole(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), r.PathValue("role")); err != nil {
		return err
	}
	return rest.NoContent(w)
}
