package companies

import (
	"net/http"
	"strconv"

	"atelier/internal/base/audit"
	"atelier/internal/base/cursor"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// listAudit serves GET /api/v2/companies/{company_id}/audit: it lists the
// audit log of a company, newest entry first.
func (h *Handler) listAudit(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	companyID := r.PathValue("company_id")
	p := call.Params
	filter := audit.Filter{
		PersonID: p.ReadID("uid"),
		Acts:     readActs(p, "act"),
		From:     p.ReadTime("start_utc"),
		Until:    p.ReadTime("end_utc"),
	}
	scope := []string{"audit", call.Principal.PersonID, companyID}
	for _, name := range []string{"uid", "act", "start_utc", "end_utc"} {
		scope = append(scope, p.Values.Get(name))
	}
	page, err := h.Pages.ReadPage(p, cursor.Scope(scope...))
	if err != nil {
		return err
	}
	if page.After != nil {
		if filter.Before, err = strconv.ParseInt(page.After[0], 10, 64); err != nil {
			return err // cannot happen, because the cursor is authenticated
		}
	}

	filter.Limit = page.Limit + 1
	all, err := h.Companies.ListAuditRecords(r.Context(), rest.PrincipalOf(r), companyID, filter)
	if err != nil {
		return err
	}
	all, hasMore, next := rest.Cut(page, all, func(rec audit.Record) (string, string) { return strconv.FormatInt(rec.Seq, 10), "" })
	return rest.ReplyCompressed(w, r, wire.AuditList{Data: rest.Convert(all, asAuditRecord), HasMore: hasMore, NextCursor: next})
}

// readActs reads a parameter that names one kind of audit log entry, such as
// company.member_set, or a group of kinds, such as company. It returns nil if
// the parameter is absent.
func readActs(p *rest.Params, name string) []audit.Act {
	text := p.ReadText(name)
	if text == "" {
		return nil
	}
	acts := audit.Named(text)
	if len(acts) == 0 {
		p.AddProblem(name, "Must be an act such as company.member_set, or a kind of acts such as company.")
	}
	return acts
}
