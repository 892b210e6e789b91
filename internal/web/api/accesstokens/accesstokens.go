// Package accesstokens serves the API endpoints for access tokens of people
// and companies.
package accesstokens

import (
	"net/http"

	"atelier/internal/account/accesstoken"
	"atelier/internal/base/cursor"
	"atelier/internal/people/credential"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for access tokens.
type Handler struct {
	Tokens *accesstoken.Service
	Pages  rest.Pager
	JSON   rest.JSONLimits
}

// Routes returns the routes of the operations on access tokens.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/access-tokens", access.SignedIn, h.listAccessTokens),
		rest.NewRoute("POST /api/v2/access-tokens", access.Lasting, h.createAccessToken),
		rest.NewRoute("DELETE /api/v2/access-tokens/{token_id}", access.SignedIn, h.deleteAccessToken),
		rest.NewRoute("POST /api/v2/access-tokens/{token_id}/regenerate", access.Lasting, h.regenerateAccessToken),

		rest.NewRoute("GET /api/v2/companies/{company_id}/access-tokens", access.SignedIn, h.listCompanyAccessTokens),
		rest.NewRoute("POST /api/v2/companies/{company_id}/access-tokens", access.Lasting, h.createCompanyAccessToken),
		rest.NewRoute("DELETE /api/v2/companies/{company_id}/access-tokens/{token_id}", access.SignedIn, h.deleteCompanyAccessToken),
		rest.NewRoute("POST /api/v2/companies/{company_id}/access-tokens/{token_id}/regenerate", access.Lasting, h.regenerateCompanyAccessToken),
	}
}

// listAccessTokens serves GET /api/v2/access-tokens: it lists the personal
// access tokens of the caller.
func (h *Handler) listAccessTokens(w http.ResponseWriter, r *http.Request) error {
	return h.listTokens(w, r, "", func(after *credential.After, limit int) ([]credential.Token, error) {
		return h.Tokens.ListTokens(r.Context(), rest.PrincipalOf(r).PersonID, after, limit)
	})
}

// listCompanyAccessTokens serves GET
// /api/v2/companies/{company_id}/access-tokens: it lists the access tokens of
// a company.
func (h *Handler) listCompanyAccessTokens(w http.ResponseWriter, r *http.Request) error {
	companyID := r.PathValue("company_id")
	return h.listTokens(w, r, companyID, func(after *credential.After, limit int) ([]credential.Token, error) {
		return h.Tokens.ListCompanyTokens(r.Context(), rest.PrincipalOf(r), companyID, after, limit)
	})
}

// listTokens responds with the requested page of the access tokens that list
// reads.
func (h *Handler) listTokens(w http.ResponseWriter, r *http.Request, companyID string, list func(*credential.After, int) ([]credential.Token, error)) error {
	call := rest.CallOf(r)
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("access-tokens", call.Principal.PersonID, companyID))
	if err != nil {
		return err
	}
	var after *credential.After
	if page.After != nil {
		at, err := page.AfterTime()
		if err != nil {
			return err
		}
		after = &credential.After{Created: at, ID: page.After[1]}
	}
	tokens, err := list(after, page.Limit+1)
	if err != nil {
		return err
	}
	tokens, hasMore, next := rest.Cut(page, tokens, func(t credential.Token) (string, string) { return rest.Micros(t.Created), t.ID })
	return rest.Reply(w, http.StatusOK, wire.AccessTokenList{
		Data:       rest.Convert(tokens, func(t credential.Token) wire.AccessToken { return asAccessToken(t, "") }),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// createAccessToken serves POST /api/v2/access-tokens: it creates a personal
// access token.
func (h *Handler) createAccessToken(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.AccessTokenDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	a := rest.PrincipalOf(r)
	t, secret, err := h.Tokens.CreateAccessToken(r.Context(), a, a.PersonID, req.Name)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusCreated, asAccessToken(t, secret))
}

// createCompanyAccessToken serves POST
// /api/v2/companies/{company_id}/access-tokens: it creates an access token of
// a company for one of its members.
func (h *Handler) createCompanyAccessToken(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.CompanyAccessTokenDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	t, secret, err := h.Tokens.CreateCompanyToken(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), req.UID, req.Name)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusCreated, asAccessToken(t, secret))
}

// regenerateAccessToken serves POST
// /api/v2/access-tokens/{token_id}/regenerate: it replaces the secret of a
// personal access token.
func (h *Handler) regenerateAccessToken(w http.ResponseWriter, r *http.Request) error {
	t, secret, err := h.Tokens.RegenerateAccessToken(r.Context(), rest.PrincipalOf(r), r.PathValue("token_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asAccessToken(t, secret))
}

// regenerateCompanyAccessToken serves POST
// /api/v2/companies/{company_id}/access-tokens/{token_id}/regenerate: it
// replaces the secret of a company's access token.
func (h *Handler) regenerateCompanyAccessToken(w http.ResponseWriter, r *http.Request) error {
	t, secret, err := h.Tokens.RegenerateCompanyToken(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), r.PathValue("token_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asAccessToken(t, secret))
}

// deleteAccessToken serves DELETE /api/v2/access-tokens/{token_id}: it deletes
// a personal access token.
func (h *Handler) deleteAccessToken(w http.ResponseWriter, r *http.Request) error {
	if err := h.Tokens.DeleteAccessToken(r.Context(), rest.PrincipalOf(r), r.PathValue("token_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// deleteCompanyAccessToken serves DELETE
// /api/v2/companies/{company_id}/access-tokens/{token_id}: it deletes an
// access token of a company.
func (h *Handler) deleteCompanyAccessToken(w http.ResponseWriter, r *http.Request) error {
	if err := h.Tokens.DeleteCompanyToken(r.Context(), rest.PrincipalOf(r), r.PathValue("company_id"), r.PathValue("token_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// asAccessToken converts an access token to its API representation. secret is
// "" unless the secret was just created.
func asAccessToken(t credential.Token, secret string) wire.AccessToken {
	return wire.AccessToken{
		ID:        t.ID,
		Name:      t.Name,
		Hint:      t.Hint,
		Token:     rest.TextOrNull(secret),
		Created:   rest.Moment(t.Created),
		LastUsed:  rest.MomentOrNull(t.LastUsed),
		UID:       t.PersonID,
		CompanyID: rest.TextOrNull(t.CompanyID),
	}
}
