package pages

import (
	"mime"
	"net/http"

	"atelier/internal/account/dossier"
	"atelier/internal/web/httpd"
)

// leaver is who asks about themselves.
func (v *visit) leaver() dossier.Actor {
	return dossier.Actor{PersonID: v.session.PersonID, Address: v.visitor().Address}
}

// exportData sends what is kept about the person. It is a form, since a link
// could be followed from elsewhere, and the archive is not to be had often.
func (s *server) exportData(v *visit) error {
	archive, err := s.Dossier.Export(v.r.Context(), v.leaver(), v.session.PersonID)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": archive.Name()}))
	v.w.WriteHeader(http.StatusOK)
	return archive.Write(v.r.Context(), httpd.Patient(v.w, s.Wall, dossier.Patience), v.reauthorize)
}

func (s *server) deleteForm(v *visit) error { return v.show("delete", nil) }

func (s *server) deleteAccount(v *visit) error {
	if err := s.Dossier.Delete(v.r.Context(), v.leaver(), v.session.PersonID, v.form.Get("email")); err != nil {
		return v.again("delete", nil, err)
	}
	return v.leave("farewell")
}
