package api

import (
	"net/http"

	"atelier/internal/people/credential"
	"atelier/internal/web/access"
	"atelier/internal/web/api/wire"
)

// directoryRoutes are those about the connection of a company's own directory.
func (s *Server) directoryRoutes() []route {
	return []route{
		{"GET", prefix + "/companies/{company_id}/scim-token", access.SignedIn, s.getScimToken},
		{"POST", prefix + "/companies/{company_id}/scim-token", access.SignedIn, s.createScimToken},
		{"DELETE", prefix + "/companies/{company_id}/scim-token", access.SignedIn, s.deleteScimToken},
	}
}

func (s *Server) getScimToken(w http.ResponseWriter, r *http.Request) error {
	t, err := s.Directory.Connection(r.Context(), principalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, s.asScimToken(t, ""))
}

func (s *Server) createScimToken(w http.ResponseWriter, r *http.Request) error {
	t, secret, err := s.Directory.Connect(r.Context(), principalOf(r), r.PathValue("company_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, s.asScimToken(t, secret))
}

func (s *Server) deleteScimToken(w http.ResponseWriter, r *http.Request) error {
	if err := s.Directory.Disconnect(r.Context(), principalOf(r), r.PathValue("company_id")); err != nil {
		return err
	}
	return done(w)
}

// asScimToken shows a connection, with the token where it was just made.
func (s *Server) asScimToken(t credential.DirectoryToken, secret string) wire.ScimToken {
	return wire.ScimToken{
		URL:      s.BaseURL + "/scim/v2",
		Token:    orNull(secret),
		Hint:     t.Hint,
		Created:  moment(t.Created),
		LastUsed: momentOrNull(t.LastUsed),
	}
}
