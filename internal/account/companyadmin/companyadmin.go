// Package companyadmin manages companies: their settings, members, roles,
// teams, invitations, mail domains, budgets, audit log and SCIM connection.
//
// There is one service per resource. Each action checks the caller's permission
// (permission.go) in the transaction that makes the change, after it has locked
// the company, so that a role that has just been revoked no longer counts and
// nothing changes between the check and the write. Each action adds one entry
// to the audit log, and one more for each access token that it deletes.
//
// Callers cannot grant permissions that they do not have, nor change members
// who have more permissions than they do. The members of a company cannot
// remove the last member who can manage members; only the operator can.
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

// Parts are the dependencies of the services that New creates.
type Parts struct {
	DB      *sqldb.DB
	Mail    mailqueue.Outbox
	Budgets *budget.Service
	// Resolver looks up the DNS records with which companies prove that they
	// own mail domains.
	Resolver *net.Resolver
	// AppURL is the base URL of the HTML pages, for links in mail.
	AppURL string
}

// Services contains the service for companies and one service for each of their
// resources. All of them are safe for concurrent use.
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

// New creates the services for companies and their resources.
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

// auditedDB reads and changes companies and teams on behalf of authorized
// callers, and adds each change to the audit log.
type auditedDB struct {
	*sqldb.DB
}

// recordEntry adds an audit log entry about a caller's action in a company.
func recordEntry(ctx context.Context, tx *sqldb.Tx, caller principal.Principal, companyID string, e audit.Entry) error {
	e.ActorID = caller.PersonID
	e.CompanyID = companyID
	e.Address = caller.Address
	return audit.Add(ctx, tx, e)
}

// readCompany runs read in a transaction if the rule allows the caller to read
// the company.
func (db auditedDB) readCompany(ctx context.Context, caller principal.Principal, companyID string, rule companyRule, read func(tx *sqldb.Tx, c companyAccess) error) error {
	return db.Read(ctx, func(tx *sqldb.Tx) error {
		c, err := authorizeCompany(ctx, tx, caller, companyID, rule)
		if err != nil {
			return err
		}
		return read(tx, c)
	})
}

// changeCompany locks the company and runs change if the rule allows the caller
// to make it. It adds the audit log entry that change returns.
func (db auditedDB) changeCompany(ctx context.Context, caller principal.Principal, companyID string, rule companyRule, change func(tx *sqldb.Tx, c companyAccess) (audit.Entry, error)) error {
	return db.changeCompanyAndPerson(ctx, caller, companyID, "", rule, change)
}

// changeCompanyAndPerson is changeCompany for changes that can add a person to
// the company. To avoid deadlocks, it locks the person before the company, as
// the deletion of a person does. If personID is empty, it locks no person.
func (db auditedDB) changeCompanyAndPerson(ctx context.Context, caller principal.Principal, companyID, personID string, rule companyRule, change func(tx *sqldb.Tx, c companyAccess) (audit.Entry, error)) error {
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		// The rule is also checked before locking, so that callers without
		// permission cannot block others with the lock.
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

// readTeam runs read in a transaction if the rule allows the caller to read the
// team.
func (db auditedDB) readTeam(ctx context.Context, caller principal.Principal, teamID string, rule teamRule, read func(tx *sqldb.Tx, t teamAccess) error) error {
	return db.Read(ctx, func(tx *sqldb.Tx) error {
		t, err := authorizeTeam(ctx, tx, caller, teamID, rule)
		if err != nil {
			return err
		}
		return read(tx, t)
	})
}

// changeTeam locks the team's company and runs change if the rule allows the
// caller to make it. It adds the audit log entry that change returns.
func (db auditedDB) changeTeam(ctx context.Context, caller principal.Principal, teamID string, rule teamRule, change func(tx *sqldb.Tx, t teamAccess) (audit.Entry, error)) error {
	return db.changeTeamAndPerson(ctx, caller, teamID, "", rule, change)
}

// changeTeamAndPerson is changeTeam for changes that can add a person to the
// team. It locks in the same order as changeCompanyAndPerson.
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

// lockPersonIfExists locks a person, so that a person who is being deleted
// cannot join a company. If the person is unknown, it returns nil; lockPerson
// returns the error later, after the caller's permission has been checked.
func lockPersonIfExists(ctx context.Context, tx *sqldb.Tx, personID string) error {
	_, err := lockPerson(ctx, tx, personID)
	if errors.Is(err, errNoMember) {
		return nil
	}
	return err
}

// lockPerson locks and returns a person. The personID comes from the request
// and can be any string.
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

// findIDByEmail returns the id of the person with the given e-mail address. Only
// the operator may call it, because it reveals whether an account with the
// address exists.
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
