package companyadmin_test

import (
	"errors"
	"maps"
	"testing"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

func TestChangesOfACompany(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		for _, x := range []struct {
			name   string
			actor  principal.Principal
			change companyadmin.CompanyChange
			want   map[string]string
			is     company.Company
		}{
			{"name", admin, companyadmin.CompanyChange{Name: new("Hound")}, map[string]string{"name": "Hound", "name_before": "Fox"},
				company.Company{Name: "Hound", Plan: company.TeamPlan, Zone: "UTC"}},
			{"zone", admin, companyadmin.CompanyChange{Zone: new("Europe/Paris")}, map[string]string{"time_zone": "Europe/Paris", "time_zone_before": "UTC"},
				company.Company{Name: "Hound", Plan: company.TeamPlan, Zone: "Europe/Paris"}},
			{"the same again", admin, companyadmin.CompanyChange{Zone: new("Europe/Paris")}, map[string]string{"time_zone": "Europe/Paris", "time_zone_before": "Europe/Paris"},
				company.Company{Name: "Hound", Plan: company.TeamPlan, Zone: "Europe/Paris"}},
			{"all", operator, companyadmin.CompanyChange{Name: new("Fox"), Zone: new("UTC"), Plan: new(company.EnterprisePlan)},
				map[string]string{"name": "Fox", "name_before": "Hound", "time_zone": "UTC", "time_zone_before": "Europe/Paris", "plan": "ENTERPRISE", "plan_before": "TEAM"},
				company.Company{Name: "Fox", Plan: company.EnterprisePlan, Zone: "UTC"}},
		} {
			before := w.seq()
			m, err := w.companies.ChangeCompany(w.ctx(), x.actor, c, x.change)
			w.ok(err)
			log := w.log(before)
			for _, entry := range log { // which have a test of their own
				delete(entry.Details, "from")
				delete(entry.Details, "to")
			}
			if len(log) != 1 || log[0].Act != audit.CompanyChanged || log[0].ActorID != x.actor.PersonID || log[0].CompanyID != c || !maps.Equal(log[0].Details, x.want) {
				w.Errorf("%s: log = %+v, want %v", x.name, log, x.want)
			}
			read, err := w.companies.GetCompany(w.ctx(), admin, c)
			w.ok(err)
			x.is.ID, x.is.Created = c, read.Company.Created
			if read.Company != x.is || m.Company != x.is {
				w.Errorf("%s: company = %+v, then %+v, want %+v", x.name, m.Company, read.Company, x.is)
			}
		}
	})
}

func TestTheTimeZoneCanChangeTenTimesADay(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		zones := []string{"Europe/Paris", "UTC"}
		for i := range 10 {
			_, err := w.companies.ChangeCompany(w.ctx(), admin, c, companyadmin.CompanyChange{Zone: &zones[i%2]})
			w.ok(err)
		}
		_, err := w.companies.ChangeCompany(w.ctx(), admin, c, companyadmin.CompanyChange{Zone: &zones[0]})
		if !fault.Is(err, fault.RateLimited) {
			w.Errorf("an eleventh time: %v", err)
		}
		_, err = w.companies.ChangeCompany(w.ctx(), admin, c, companyadmin.CompanyChange{Name: new("Hound"), Zone: &zones[1]}) // as it is
		w.ok(err)
		_, err = w.companies.ChangeCompany(w.ctx(), operator, c, companyadmin.CompanyChange{Zone: &zones[0]})
		w.ok(err)
	})
}

// TestRefusedChangesOfACompany: a change with an invalid part changes nothing,
// and the caller learns of every problem.
func TestRefusedChangesOfACompany(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		before := w.seq()
		for _, x := range []struct {
			name   string
			change companyadmin.CompanyChange
			fields []string
		}{
			{"nothing", companyadmin.CompanyChange{}, []string{"name", "time_zone"}},
			{"a bad name", companyadmin.CompanyChange{Name: new(" "), Zone: new("Asia/Tokyo")}, []string{"name"}},
			{"a bad zone", companyadmin.CompanyChange{Name: new("Hound"), Zone: new("Mars/Olympus")}, []string{"time_zone"}},
			{"no zone", companyadmin.CompanyChange{Zone: new("")}, []string{"time_zone"}},
			{"the zone of the machine", companyadmin.CompanyChange{Zone: new("Local")}, []string{"time_zone"}},
			{"both bad", companyadmin.CompanyChange{Name: new(""), Zone: new("../UTC")}, []string{"name", "time_zone"}},
		} {
			_, err := w.companies.ChangeCompany(w.ctx(), admin, c, x.change)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != fault.Invalid || len(f.Fields) != len(x.fields) {
				w.Errorf("%s: %v, want %v", x.name, err, x.fields)
				continue
			}
			for i, field := range f.Fields {
				if field.Path != x.fields[i] {
					w.Errorf("%s: field %s, want %s", x.name, field.Path, x.fields[i])
				}
			}
		}
		_, err := w.companies.ChangeCompany(w.ctx(), admin, c, companyadmin.CompanyChange{Name: new("Hound"), Plan: new(company.EnterprisePlan)})
		w.refused(err, fault.Forbidden, "permission")
		_, err = w.companies.ChangeCompany(w.ctx(), operator, c, companyadmin.CompanyChange{Name: new("Hound"), Plan: new(company.Plan("GOLD"))})
		w.refused(err, fault.Invalid, "plan")
		m, err := w.companies.GetCompany(w.ctx(), admin, c)
		if err != nil || m.Company.Name != "Fox" || m.Company.Zone != "UTC" || m.Company.Plan != company.TeamPlan || w.seq() != before {
			w.Errorf("after refusals = %+v, %v", m, err)
		}
	})
}
