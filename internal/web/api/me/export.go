package me

import (
	"mime"
	"net/http"

	"atelier/internal/account/personaldata"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// exportMe serves GET /api/v2/me/export: it streams an archive of the caller's
// data. A HEAD request does not count as an export.
func (h *Handler) exportMe(w http.ResponseWriter, r *http.Request) error {
	header := w.Header()
	if r.Method == http.MethodHead {
		header.Set("Content-Type", "application/zip")
		w.WriteHeader(http.StatusOK)
		return nil
	}

	p := rest.PrincipalOf(r)
	archive, err := h.PersonalData.ExportPerson(r.Context(), p, p.PersonID)
	if err != nil {
		return err
	}
	header.Set("Content-Type", "application/zip")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": archive.FileName()}))
	w.WriteHeader(http.StatusOK)
	return archive.Write(r.Context(), httpd.NewDeadlineWriter(w, h.Now, personaldata.WriteTimeout), rest.CallOf(r).Reauthorize)
}

// deleteMe serves DELETE /api/v2/me: it deletes the account of the caller, who
// confirms it with their e-mail address.
func (h *Handler) deleteMe(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.AccountDeletion](w, r, h.JSON)
	if err != nil {
		return err
	}
	p := rest.PrincipalOf(r)
	if err := h.PersonalData.DeletePerson(r.Context(), p, p.PersonID, req.Email); err != nil {
		return err
	}
	return rest.NoContent(w)
}
