package api

import (
	"net/http"

	"atelier/internal/base/cursor"
	"atelier/internal/people/credential"
	"atelier/internal/web/api/wire"
)

func (s *Server) listAccessTokens(w http.ResponseWriter, r *http.Request) error {
	return s.listTokens(w, r, "", func(after *credential.After, limit int) ([]credential.Token, error) {
		return s.Accounts.AccessTokens.ListTokens(r.Context(), callOf(r).caller.PersonID, after, limit)
	})
}

func (s *Server) listCompanyAccessTokens(w http.ResponseWriter, r *http.Request) error {
	companyID := r.PathValue("company_id")
	return s.listTokens(w, r, companyID, func(after *credential.After, limit int) ([]credential.Token, error) {
		return s.Accounts.AccessTokens.ListCompanyTokens(r.Context(), principalOf(r), companyID, after, limit)
	})
}

func (s *Server) listTokens(w http.ResponseWriter, r *http.Request, companyID string, list func(*credential.After, int) ([]credential.Token, error)) error {
	c := callOf(r)
	pg, err := s.page(c.params, cursor.Scope("access-tokens", c.caller.PersonID, companyID))
	if err != nil {
		return err
	}
	var after *credential.After
	if pg.after != nil {
		at, err := pg.time()
		if err != nil {
			return err
		}
		after = &credential.After{Created: at, ID: pg.after[1]}
	}
	tokens, err := list(after, pg.limit+1)
	if err != nil {
		return err
	}
	answer := wire.AccessTokenList{Data: []wire.AccessToken{}}
	tokens, answer.HasMore, answer.NextCursor = cut(s, pg, tokens, func(t credential.Token) (string, string) { return micros(t.Created), t.ID })
	for _, t := range tokens {
		answer.Data = append(answer.Data, asAccessToken(t, ""))
	}
	return reply(w, http.StatusOK, answer)
}

func (s *Server) createAccessToken(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.AccessTokenDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	a := principalOf(r)
	t, secret, err := s.Accounts.AccessTokens.CreateAccessToken(r.Context(), a, a.PersonID, req.Name)
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, asAccessToken(t, secret))
}

func (s *Server) createCompanyAccessToken(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.CompanyAccessTokenDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	t, secret, err := s.Accounts.AccessTokens.CreateCompanyToken(r.Context(), principalOf(r), r.PathValue("company_id"), req.UID, req.Name)
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, asAccessToken(t, secret))
}

func (s *Server) regenerateAccessToken(w http.ResponseWriter, r *http.Request) error {
	t, secret, err := s.Accounts.AccessTokens.RegenerateAccessToken(r.Context(), principalOf(r), r.PathValue("token_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asAccessToken(t, secret))
}

func (s *Server) regenerateCompanyAccessToken(w http.ResponseWriter, r *http.Request) error {
	t, secret, err := s.Accounts.AccessTokens.RegenerateCompanyToken(r.Context(), principalOf(r), r.PathValue("company_id"), r.PathValue("token_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asAccessToken(t, secret))
}

func (s *Server) deleteAccessToken(w http.ResponseWriter, r *http.Request) error {
	if err := s.Accounts.AccessTokens.DeleteAccessToken(r.Context(), principalOf(r), r.PathValue("token_id")); err != nil {
		return err
	}
	return done(w)
}

func (s *Server) deleteCompanyAccessToken(w http.ResponseWriter, r *http.Request) error {
	if err := s.Accounts.AccessTokens.DeleteCompanyToken(r.Context(), principalOf(r), r.PathValue("company_id"), r.PathValue("token_id")); err != nil {
		return err
	}
	return done(w)
}

// asAccessToken shows a token, with its value where it was just made.
func asAccessToken(t credential.Token, secret string) wire.AccessToken {
	a := wire.AccessToken{
		ID:      t.ID,
		Name:    t.Name,
		Hint:    t.Hint,
		Created: moment(t.Created),
		UID:     t.PersonID,
	}
	if secret != "" {
		a.Token = &secret
	}
	if t.CompanyID != "" {
		a.CompanyID = &t.CompanyID
	}
	if !t.LastUsed.IsZero() {
		used := moment(t.LastUsed)
		a.LastUsed = &used
	}
	return a
}
