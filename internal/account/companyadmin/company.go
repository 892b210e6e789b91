package companyadmin

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
	"atelier/internal/people/principal"
)

// Companies creates companies, changes their settings and reads their audit log.
type Companies struct {
	db auditedDB
}

// CreateCompany creates a company without members. Only the operator may call
// it.
func (s *Companies) CreateCompany(ctx context.Context, caller principal.Principal, name string, plan company.Plan) (c company.Company, err error) {
	if !caller.Operator {
		return c, errPermission
	}
	err = s.db.Write(ctx, func(tx *sqldb.Tx) error {
		if c, err = company.Create(ctx, tx, name, plan); err != nil {
			return err
		}
		return recordEntry(ctx, tx, caller, c.ID, audit.Entry{Act: audit.CompanyCreated, Details: map[string]string{"name": name, "plan": string(plan)}})
	})
	return c, err
}

// ListCompanies returns the caller's memberships in companies, ordered by the
// companies' names.
func (s *Companies) ListCompanies(ctx context.Context, caller principal.Principal) (all []company.Membership, err error) {
	err = s.db.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = company.CompanyMemberships(ctx, tx, caller.PersonID)
		return err
	})
	return all, err
}

// GetCompany returns a company and the caller's role in it.
func (s *Companies) GetCompany(ctx context.Context, caller principal.Principal, companyID string) (m company.Membership, err error) {
	err = s.db.readCompany(ctx, caller, companyID, allowMembers, func(_ *sqldb.Tx, c companyAccess) error {
		m = c.Membership
		return nil
	})
	return m, err
}

// CompanyChange contains the new values of a company's settings. A setting
// whose value is nil stays unchanged.
type CompanyChange struct {
	Name *string
	Zone *string       // IANA name of the time zone
	Plan *company.Plan // only the operator may change it
}

// ChangeCompany changes all given settings of a company, or none of them if one
// is refused. If the time zone changes, the company's daily usage totals are
// recomputed.
func (s *Companies) ChangeCompany(ctx context.Context, caller principal.Principal, companyID string, change CompanyChange) (m company.Membership, err error) {
	if change == (CompanyChange{}) {
		const message = "At least one setting to change is required."
		return m, fault.New(fault.Invalid, message).Field("name", message).Field("time_zone", message)
	}
	if change.Plan != nil && !caller.Operator {
		return m, errPermission
	}
	if change.Zone != nil {
		ctx = sqldb.WithLimit(ctx, recountTimeout)
	}

	err = s.db.changeCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, c companyAccess) (audit.Entry, error) {
		m = c.Membership
		details := map[string]string{}
		before := map[string]string{}
		after := map[string]string{}
		var problems error
		set := func(name string, current *string, value string, store func() error) {
			details[name] = value
			details[name+"_before"] = *current
			before[name] = *current
			after[name] = value
			if value != *current {
				problems = joinFaults(problems, store())
			}
			*current = value
		}

		if change.Name != nil {
			set("name", &m.Company.Name, *change.Name, func() error { return company.Rename(ctx, tx, companyID, *change.Name) })
		}
		if change.Plan != nil {
			set("plan", (*string)(&m.Company.Plan), string(*change.Plan), func() error { return company.SetPlan(ctx, tx, companyID, *change.Plan) })
		}
		if change.Zone != nil {
			set("time_zone", &m.Company.Zone, *change.Zone, func() error { return c.setTimeZone(ctx, tx, *change.Zone) })
		}

		e := audit.Entry{Act: audit.CompanyChanged, Details: details}
		return e.WithChange(FormatValues(before), FormatValues(after)), problems
	})
	return m, err
}

// recountTimeout is the time limit for recomputing a company's daily usage
// totals.
const recountTimeout = 2 * time.Minute

// zoneChangesPerDay limits how often a company can change its time zone. In
// SQLite, all other writers wait while the daily usage totals are recomputed.
var zoneChangesPerDay = ratelimit.Window{Max: 10, Span: 24 * time.Hour}

// setTimeZone changes the company's time zone. If a team has a hard budget, the
// caller must be allowed to set budgets: a new time zone shifts the end of the
// month, so spending close to it could count against another month's budget.
func (c companyAccess) setTimeZone(ctx context.Context, tx *sqldb.Tx, zone string) error {
	if !c.Role.May(company.ManageBilling) {
		hard, err := budget.AnyHard(ctx, tx, c.Company.ID)
		if err != nil {
			return err
		}
		if hard {
			return errPermission
		}
	}

	if !c.caller.Operator {
		_, full, err := ratelimit.Take(ctx, tx, ratelimit.Key{Name: ratelimit.Daily + "zone/company/" + c.Company.ID}, zoneChangesPerDay)
		if err != nil {
			return err
		}
		if full.Wait > 0 {
			return full.Fault("The time zone was changed too often. Try again later.")
		}
	}

	return report.SetZone(ctx, tx, c.Company.ID, zone)
}

// joinFaults combines the errors of two settings, so that one response reports
// all problems. An error that is not a fault.Error takes precedence.
func joinFaults(a, b error) error {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}

	first, ok := errors.AsType[*fault.Error](a)
	if !ok {
		return a
	}
	second, ok := errors.AsType[*fault.Error](b)
	if !ok {
		return b
	}
	joined := *first
	joined.Fields = slices.Concat(first.Fields, second.Fields)
	return &joined
}
