package companies

import (
	"net/http"
	"strconv"

	"atelier/internal/base/audit"
	"atelier/internal/base/cursor"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// GET /api/v2/companies/{company_id}/audit lists the audit log of a company, the
// newest entry first.
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
			return err // cannot happen: the cursor is sealed
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

// readActs reads a parameter that names an act or a kind of acts, nil if it is
// absent.
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
