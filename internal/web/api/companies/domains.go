package companies

import (
	"net/http"

	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// listDomains serves GET /api/v2/companies/{company_id}/domains: it lists the
// e-mail domains of a company.
func (h *Handler) listDomains(w http.ResponseWriter, r *http.Request) error {
	all, err := h.Companies.Domains.ListDomains(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.DomainList{Data: rest.Convert(all, asDomain)})
}

// addDomain serves POST /api/v2/companies/{company_id}/domains: it adds an
// e-mail domain to a company.
func (h *Handler) addDomain(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.DomainDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	d, err := h.Companies.Domains.AddDomain(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), req.Domain, rest.ValueOrZero(req.TeamID), rest.ValueOrZero(req.TeamRole))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusCreated, asDomain(d))
}

// verifyDomain serves POST
// /api/v2/companies/{company_id}/domains/{domain}/verify: it looks up the DNS
// record that proves that the company owns the domain.
func (h *Handler) verifyDomain(w http.ResponseWriter, r *http.Request) error {
	d, err := h.Companies.Domains.VerifyDomain(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), r.PathValue("domain"), false)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asDomain(d))
}

// removeDomain serves DELETE /api/v2/companies/{company_id}/domains/{domain}:
// it removes an e-mail domain from a company.
func (h *Handler) removeDomain(w http.ResponseWriter, r *http.Request) error {
	if err := h.Companies.Domains.RemoveDomain(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), r.PathValue("domain")); err != nil {
		return err
	}
	return rest.NoContent(w)
}
