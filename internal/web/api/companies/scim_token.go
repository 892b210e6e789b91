package companies

import (
	"net/http"

	"atelier/internal/people/credential"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// getScimToken serves GET /api/v2/companies/{company_id}/scim-token: it
// returns the SCIM token of a company without its secret.
func (h *Handler) getScimToken(w http.ResponseWriter, r *http.Request) error {
	t, err := h.Companies.SCIMConnections.GetConnection(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, h.asScimToken(t, ""))
}

// createScimToken serves POST /api/v2/companies/{company_id}/scim-token: it
// creates the SCIM token of a company, or replaces it.
func (h *Handler) createScimToken(w http.ResponseWriter, r *http.Request) error {
	t, secret, err := h.Companies.SCIMConnections.ConnectProvider(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusCreated, h.asScimToken(t, secret))
}

// deleteScimToken serves DELETE /api/v2/companies/{company_id}/scim-token: it
// deletes the SCIM token of a company, after which the identity provider can
// no longer manage the company.
func (h *Handler) deleteScimToken(w http.ResponseWriter, r *http.Request) error {
	if err := h.Companies.SCIMConnections.DisconnectProvider(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// asScimToken converts a SCIM token to its API representation. secret is ""
// unless the secret was just created.
func (h *Handler) asScimToken(t credential.SCIMToken, secret string) wire.ScimToken {
	return wire.ScimToken{
		URL:      h.BaseURL + "/scim/v2",
		Token:    rest.TextOrNull(secret),
		Hint:     t.Hint,
		Created:  rest.Moment(t.Created),
		LastUsed: rest.MomentOrNull(t.LastUsed),
	}
}
