package directory

import (
	"context"
	"errors"
	"slices"
	"time"

	"atelier/internal/audit"
	"atelier/internal/company"
	"atelier/internal/fault"
	"atelier/internal/ratelog"
	"atelier/internal/report"
	"atelier/internal/sqldb"
)

// CompanyChange is what shall be different about a company. What is nil stays.
type CompanyChange struct {
	Name *string
	Zone *string       // by its IANA name
	Plan *company.Plan // the operator's to change
}

// ChangeCompany changes a company's settings, all of them or none. Another zone
// has all its days counted anew.
func (d *Directory) ChangeCompany(ctx context.Context, a Actor, companyID string, c CompanyChange) (m company.Membership, err error) {
	if c == (CompanyChange{}) {
		const message = "Give what shall be different."
		return m, fault.New(fault.Invalid, message).Field("name", message).Field("time_zone", message)
	}
	if c.Plan != nil && !a.operator() {
		return m, errPermission
	}
	if c.Zone != nil {
		ctx = sqldb.WithLimit(ctx, recountLimit)
	}
	err = d.change(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, s standing) (audit.Entry, error) {
		m = s.Membership
		details := map[string]string{}
		var problems error
		set := func(what string, is *string, to string, change func() error) {
			details[what], details[what+"_before"] = to, *is
			if to != *is {
				problems = both(problems, change())
			}
			*is = to
		}
		if c.Name != nil {
			set("name", &m.Company.Name, *c.Name, func() error { return company.Rename(ctx, tx, companyID, *c.Name) })
		}
		if c.Plan != nil {
			set("plan", (*string)(&m.Company.Plan), string(*c.Plan), func() error { return company.SetPlan(ctx, tx, companyID, *c.Plan) })
		}
		if c.Zone != nil {
			set("time_zone", &m.Company.Zone, *c.Zone, func() error { return a.setZone(ctx, tx, companyID, *c.Zone) })
		}
		return audit.Entry{Act: audit.CompanyChanged, Details: details}, problems
	})
	return m, err
}

// recountLimit is how long counting a company's days anew may take.
const recountLimit = 2 * time.Minute

// zonesPerDay bounds how often a company counts its days anew: while it does,
// nobody else writes to an embedded database.
var zonesPerDay = ratelog.Window{Most: 10, Span: 24 * time.Hour}

func (a Actor) setZone(ctx context.Context, tx *sqldb.Tx, companyID, zone string) error {
	if !a.operator() {
		id, wait, err := ratelog.Take(ctx, tx, ratelog.Daily+"zone/company/"+companyID, zonesPerDay)
		if err != nil {
			return err
		}
		if id == "" {
			return fault.New(fault.RateLimited, "The time zone was changed too often. Wait a little.").After(wait)
		}
	}
	return report.SetZone(ctx, tx, companyID, zone)
}

// both joins what is wrong with two settings, so that the caller learns all of
// it at once. An accident comes first.
func both(a, b error) error {
	if a == nil || b == nil {
		return orElse(a, b)
	}
	f, ok := errors.AsType[*fault.Error](a)
	if !ok {
		return a
	}
	g, ok := errors.AsType[*fault.Error](b)
	if !ok {
		return b
	}
	c := *f
	c.Fields = slices.Concat(f.Fields, g.Fields)
	return &c
}
