package pages

import (
	"mime"
	"net/http"

	"atelier/internal/account/dossier"
	"atelier/internal/web/httpd"
)

// exportData handles POST /account/export: it sends the archive of the person's data.
// A link would not do, because other sites could open it and use up the rate limit.
func (s *server) exportData(v *visit) error {
	archive, err := s.Dossier.Export(v.r.Context(), v.principal(), v.session.PersonID)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": archive.Name()}))
	v.w.WriteHeader(http.StatusOK)
	return archive.Write(v.r.Context(), httpd.Patient(v.w, s.Wall, dossier.Patience), v.reauthorize)
}

// deleteForm handles GET /account/delete.
func (s *server) deleteForm(v *visit) error { return v.show("delete", nil) }

// deleteAccount handles POST /account/delete.
func (s *server) deleteAccount(v *visit) error {
	if err := s.Dossier.Delete(v.r.Context(), v.principal(), v.session.PersonID, v.form.Get("email")); err != nil {
		return v.again("delete", nil, err)
	}
	return v.leave("farewell")
}
