// Package companies serves /api/v2/companies: companies with their members,
// roles, e-mail domains, audit log and SCIM token.
package companies

import (
	"net/http"

	"atelier/internal/account/companyadmin"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for companies.
type Handler struct {
	Companies *companyadmin.Services
	Pages     rest.Pager
	JSON      rest.JSONLimits
	BaseURL   string
}

// Routes returns the routes of the operations on companies.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/companies", access.SignedIn, h.listCompanies),
		rest.NewRoute("GET /api/v2/companies/{company_id}", access.SignedIn, h.getCompany),
		rest.NewRoute("PATCH /api/v2/companies/{company_id}", access.SignedIn, h.changeCompany),

		rest.NewRoute("GET /api/v2/companies/{company_id}/members", access.SignedIn, h.listMembers),
		rest.NewRoute("PUT /api/v2/companies/{company_id}/members/{uid}", access.SignedIn, h.setMember),
		rest.NewRoute("DELETE /api/v2/companies/{company_id}/members/{uid}", access.SignedIn, h.removeMember),

		rest.NewRoute("GET /api/v2/companies/{company_id}/roles", access.SignedIn, h.listRoles),
		rest.NewRoute("PUT /api/v2/companies/{company_id}/roles/{role}", access.SignedIn, h.setRole),
		rest.NewRoute("DELETE /api/v2/companies/{company_id}/roles/{role}", access.SignedIn, h.deleteRole),

		rest.NewRoute("GET /api/v2/companies/{company_id}/domains", access.SignedIn, h.listDomains),
		rest.NewRoute("POST /api/v2/companies/{company_id}/domains", access.SignedIn, h.addDomain),
		rest.NewRoute("DELETE /api/v2/companies/{company_id}/domains/{domain}", access.SignedIn, h.removeDomain),
		rest.NewRoute("POST /api/v2/companies/{company_id}/domains/{domain}/verify", access.SignedIn, h.verifyDomain),

		rest.NewRoute("GET /api/v2/companies/{company_id}/audit", access.SignedIn, h.listAudit),

		rest.NewRoute("GET /api/v2/companies/{company_id}/scim-token", access.SignedIn, h.getScimToken),
		rest.NewRoute("POST /api/v2/companies/{company_id}/scim-token", access.Lasting, h.createScimToken),
		rest.NewRoute("DELETE /api/v2/companies/{company_id}/scim-token", access.SignedIn, h.deleteScimToken),
	}
}

// listCompanies serves GET /api/v2/companies: it lists the companies of the
// caller.
func (h *Handler) listCompanies(w http.ResponseWriter, r *http.Request) error {
	all, err := h.Companies.ListCompanies(r.Context(), rest.PrincipalOf(r))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.CompanyList{Data: rest.Convert(all, asCompany)})
}

// getCompany serves GET /api/v2/companies/{company_id}: it returns a company.
func (h *Handler) getCompany(w http.ResponseWriter, r *http.Request) error {
	m, err := h.Companies.GetCompany(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asCompany(m))
}

// changeCompany serves PATCH /api/v2/companies/{company_id}: it changes the
// name or the time zone of a company.
func (h *Handler) changeCompany(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.CompanyChange](w, r, h.JSON)
	if err != nil {
		return err
	}
	change := companyadmin.CompanyChange{Name: req.Name, Zone: req.TimeZone}
	m, err := h.Companies.ChangeCompany(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), change)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asCompany(m))
}
