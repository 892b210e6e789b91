// Package companyadmin administers companies: their settings, members, roles,
// teams, invitations, mail domains, budgets, audit log and SCIM connection.
//
// There is one service per resource. Each action checks the caller's permission
// (permission.go) in the transaction that makes the change and with the company
// locked, so that a role that has just been revoked no longer counts and nothing
// changes between the check and the write. Each action writes one audit entry,
// and one more for each access token that it deletes.
//
// Callers cannot grant permissions that they lack, nor change members who have
// more permissions than they do. A company that manages itself keeps at least one
// member who can manage members.
//
// Package provisioning changes companies on behalf of their identity providers.
package companyadmin

import (
	"context"
	"errors"
	"net"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/budget"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// Parts are the dependencies of the services.
type Parts struct {
	DB      *sqldb.DB
	Mail    mailqueue.Outbox
	Budgets *budget.Service
	// Resolver looks up the DNS records by which companies prove their domains.
	Resolver *net.Resolver
	// AppURL is the address of the HTML pages; links in mail lead there.
	AppURL string
}

// Services has the service for companies and one for each of their resources. All
// of them are safe for concurrent use.
type Services struct {
	*Companies
	Members         *Members
	Roles           *Roles
	Teams           *Teams
	TeamMembers     *TeamMembers
	TeamRoles       *TeamRoles
	Invitations     *Invitations
	Domains         *Domains
	Budgets         *Budgets
	SCIMConnections *SCIMConnections
}

// New builds the services.
func New(p Parts) *Services {
	db := auditedDB{p.DB}
	return &Services{
		Companies:       &Companies{db},
		Members:         &Members{db},
		Roles:           &Roles{db},
		Teams:           &Teams{db},
		TeamMembers:     &TeamMembers{db},
		TeamRoles:       &TeamRoles{db},
		Invitations:     &Invitations{db: db, mail: p.Mail, appURL: p.AppURL},
		Domains:         &Domains{db: db, resolver: p.Resolver},
		Budgets:         &Budgets{db: db, budgets: p.Budgets},
		SCIMConnections: &SCIMConnections{db},
	}
}

// auditedDB reads and changes companies and teams for callers who are allowed to,
// and records each change in the audit log.
type auditedDB struct {
	*sqldb.DB
}

// recordEntry adds an entry about a caller's action in a company to the audit log.
func recordEntry(ctx context.Context, tx *sqldb.Tx, caller principal.Principal, companyID string, e audit.Entry) error {
	e.ActorID = caller.PersonID
	e.CompanyID = companyID
	e.Address = caller.Address
	return audit.Add(ctx, tx, e)
}

// readCompany runs read for a caller whom the rule allows.
func (db auditedDB) readCompany(ctx context.Context, caller principal.Principal, companyID string, rule companyRule, read func(tx *sqldb.Tx, c companyAccess) error) error {
	return db.Read(ctx, func(tx *sqldb.Tx) error {
		c, err := authorizeCompany(ctx, tx, caller, companyID, rule)
		if err != nil {
			return err
		}
		return read(tx, c)
	})
}

// changeCompany runs change with the company locked, for a caller whom the rule
// allows, and records the entry that change returns.
func (db auditedDB) changeCompany(ctx context.Context, caller principal.Principal, companyID string, rule companyRule, change func(tx *sqldb.Tx, c companyAccess) (audit.Entry, error)) error {
	return db.changeCompanyAndPerson(ctx, caller, companyID, "", rule, change)
}

// changeCompanyAndPerson is changeCompany for changes that can add a person to
// the company. It locks the person before the company, in the same order as the
// deletion of a person does. An empty personID locks no person.
func (db auditedDB) changeCompanyAndPerson(ctx context.Context, caller principal.Principal, companyID, personID string, rule companyRule, change func(tx *sqldb.Tx, c companyAccess) (audit.Entry, error)) error {
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		// Checked before locking too, so that outsiders cannot make others wait.
		if _, err := authorizeCompany(ctx, tx, caller, companyID, rule); err != nil {
			return err
		}
		if err := lockPersonIfExists(ctx, tx, personID); err != nil {
			return err
		}
		if err := company.Lock(ctx, tx, companyID); err != nil {
			return err
		}

		c, err := authorizeCompany(ctx, tx, caller, companyID, rule)
		if err != nil {
			return err
		}
		e, err := change(tx, c)
		if err != nil {
			return err
		}
		return recordEntry(ctx, tx, caller, companyID, e)
	})
}

// readTeam runs read for a caller whom the rule allows.
func (db auditedDB) readTeam(ctx context.Context, caller principal.Principal, teamID string, rule teamRule, read func(tx *sqldb.Tx, t teamAccess) error) error {
	return db.Read(ctx, func(tx *sqldb.Tx) error {
		t, err := authorizeTeam(ctx, tx, caller, teamID, rule)
		if err != nil {
			return err
		}
		return read(tx, t)
	})
}

// changeTeam runs change with the team's company locked, for a caller whom the
// rule allows, and records the entry that change returns.
func (db auditedDB) changeTeam(ctx context.Context, caller principal.Principal, teamID string, rule teamRule, change func(tx *sqldb.Tx, t teamAccess) (audit.Entry, error)) error {
	return db.changeTeamAndPerson(ctx, caller, teamID, "", rule, change)
}

// changeTeamAndPerson is changeTeam for changes that can add a person to the
// team; see changeCompanyAndPerson for the order of the locks.
func (db auditedDB) changeTeamAndPerson(ctx context.Context, caller principal.Principal, teamID, personID string, rule teamRule, change func(tx *sqldb.Tx, t teamAccess) (audit.Entry, error)) error {
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		t, err := authorizeTeam(ctx, tx, caller, teamID, rule)
		if err != nil {
			return err
		}
		if err := lockPersonIfExists(ctx, tx, personID); err != nil {
			return err
		}
		if err := company.Lock(ctx, tx, t.team.CompanyID); err != nil {
			return err
		}

		if t, err = authorizeTeam(ctx, tx, caller, teamID, rule); err != nil {
			return err
		}
		e, err := change(tx, t)
		if err != nil {
			return err
		}
		return recordEntry(ctx, tx, caller, t.team.CompanyID, e)
	})
}

// lockPersonIfExists locks a person, so that someone who is being deleted cannot
// join a company. Whether the person exists is reported later by lockPerson, once
// the caller's permission has been checked.
func lockPersonIfExists(ctx context.Context, tx *sqldb.Tx, personID string) error {
	_, err := lockPerson(ctx, tx, personID)
	if errors.Is(err, errNoMember) {
		return nil
	}
	return err
}

// lockPerson locks and reads a person. The personID may be any text.
func lockPerson(ctx context.Context, tx *sqldb.Tx, personID string) (person.Person, error) {
	if !ids.Valid(personID) {
		return person.Person{}, errNoMember
	}

	err := person.Lock(ctx, tx, personID)
	if fault.Is(err, fault.NotFound) || errors.Is(err, person.ErrDeleted) {
		return person.Person{}, errNoMember
	}
	if err != nil {
		return person.Person{}, err
	}

	return person.ByID(ctx, tx, personID)
}

// findIDByEmail finds a person by mail address for the operator. Other callers
// must not learn which person has an address.
func (db auditedDB) findIDByEmail(ctx context.Context, caller principal.Principal, email string) (personID string, err error) {
	if !caller.Operator {
		return "", errPermission
	}
	if err := person.CheckEmail(email); err != nil {
		return "", err
	}

	err = db.Read(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByEmail(ctx, tx, email)
		personID = p.ID
		return err
	})
	return personID, err
}
