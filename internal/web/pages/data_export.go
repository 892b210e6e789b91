package pages

import (
	"mime"
	"net/http"

	"atelier/internal/account/personaldata"
	"atelier/internal/web/httpd"
)

// exportData handles POST /account/export: it responds with an archive of the
// person's data. The page has a form instead of a link, because other sites
// could open a link and exhaust the rate limit.
func (s accountPages) exportData(v *pageRequest) error {
	archive, err := s.PersonalData.ExportPerson(v.r.Context(), v.currentPrincipal(), v.session.PersonID)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": archive.FileName()}))
	v.w.WriteHeader(http.StatusOK)
	return archive.Write(v.r.Context(), httpd.NewDeadlineWriter(v.w, s.WallClock, personaldata.WriteTimeout), v.reauthorizeSession)
}
