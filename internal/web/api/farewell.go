package api

import (
	"mime"
	"net/http"

	"atelier/internal/account/dossier"
	"atelier/internal/web/access"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// farewellRoutes are those about what is kept of a person, and its end.
func (s *Server) farewellRoutes() []route {
	return []route{
		{"GET", prefix + "/me/export", access.SignedIn, s.exportMe},
		{"DELETE", prefix + "/me", access.SignedIn, s.deleteMe},
	}
}

// exportMe sends the archive while it is written. Whoever only asks what it
// would be is not counted.
func (s *Server) exportMe(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	if r.Method == http.MethodHead {
		h.Set("Content-Type", "application/zip")
		w.WriteHeader(http.StatusOK)
		return nil
	}
	who := principalOf(r)
	archive, err := s.Dossier.Export(r.Context(), who, who.PersonID)
	if err != nil {
		return err
	}
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": archive.Name()}))
	w.WriteHeader(http.StatusOK)
	return archive.Write(r.Context(), httpd.Patient(w, s.Now, dossier.Patience), callOf(r).reauthorize)
}

func (s *Server) deleteMe(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.Farewell](w, r, s.Limits)
	if err != nil {
		return err
	}
	who := principalOf(r)
	if err := s.Dossier.Delete(r.Context(), who, who.PersonID, req.Email); err != nil {
		return err
	}
	return done(w)
}
