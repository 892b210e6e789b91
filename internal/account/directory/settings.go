package directory

import (
	"context"
	"errors"
	"slices"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/budget"
	"atelier/internal/money/report"
	"atelier/internal/people/company"
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
		from := map[string]string{}
		to := map[string]string{}
		var problems error
		set := func(what string, is *string, want string, change func() error) {
			details[what] = want
			details[what+"_before"] = *is
			from[what] = *is
			to[what] = want
			if want != *is {
				problems = both(problems, change())
			}
			*is = want
		}
		if c.Name != nil {
			set("name", &m.Company.Name, *c.Name, func() error { return company.Rename(ctx, tx, companyID, *c.Name) })
		}
		if c.Plan != nil {
			set("plan", (*string)(&m.Company.Plan), string(*c.Plan), func() error { return company.SetPlan(ctx, tx, companyID, *c.Plan) })
		}
		if c.Zone != nil {
			set("time_zone", &m.Company.Zone, *c.Zone, func() error { return s.setZone(ctx, tx, *c.Zone) })
		}
		e := audit.Entry{Act: audit.CompanyChanged, Details: details}
		return e.Changing(asText(from), asText(to)), problems
	})
	return m, err
}

// recountLimit is how long counting a company's days anew may take.
const recountLimit = 2 * time.Minute

// zonesPerDay bounds how often a company counts its days anew: while it does,
// nobody else writes to an embedded database.
var zonesPerDay = ratelimit.Window{Most: 10, Span: 24 * time.Hour}

// setZone gives the company another clock. Where a team has a hard budget it is
// for those who set budgets: another clock moves the end of the month, and what
// was spent in the last hours of one would count in the other.
func (s standing) setZone(ctx context.Context, tx *sqldb.Tx, zone string) error {
	if !s.Role.May(company.ManageBilling) {
		hard, err := budget.AnyHard(ctx, tx, s.Company.ID)
		if err != nil {
			return err
		}
		if hard {
			return errPermission
		}
	}
	if !s.actor.operator() {
		_, full, err := ratelimit.Take(ctx, tx, ratelimit.Key{Name: ratelimit.Daily + "zone/company/" + s.Company.ID}, zonesPerDay)
		if err != nil {
			return err
		}
		if full.Wait > 0 {
			return full.Fault("The time zone was changed too often. Wait a little.")
		}
	}
	return report.SetZone(ctx, tx, s.Company.ID, zone)
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
