// Package directory manages companies: their teams, roles, members, invitations
// and mail domains.
//
// Every act asks anew what its actor may do (permit.go), in the transaction that
// changes something and with the company locked: what was taken from somebody a
// moment ago is gone, and nobody changes what the decision was made on. With it
// goes exactly one audit entry, and one more for each access token that it ended.
//
// Nobody can hand on what they do not have, nor touch those who have more, and
// a company that its own people manage keeps somebody who can.
//
// A company of the plan ENTERPRISE can have its own directory manage its people
// and teams (source.go, user.go, group.go).
package directory

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

// Directory does what the package says. It is safe for concurrent use.
type Directory struct {
	DB   *sqldb.DB
	Post mailqueue.Office
	// Budgets keeps those of teams.
	Budgets *budget.Keeper
	// Resolver finds the records by which companies prove their domains.
	Resolver *net.Resolver
	// AppURL is where the pages are that links in mail lead to.
	AppURL string
	// Vouch gives the person with an address in a domain that a company has
	// proven, and makes them where nobody has it. The entries are to be recorded
	// at the end of the transaction.
	Vouch func(ctx context.Context, tx *sqldb.Tx, email string) (p person.Person, fresh bool, entries []audit.Entry, err error)
}

// record writes the audit entry of a principal's act in a company.
func record(ctx context.Context, tx *sqldb.Tx, p principal.Principal, companyID string, e audit.Entry) error {
	e.ActorID = p.PersonID
	e.CompanyID = companyID
	e.Address = p.Address
	return audit.Add(ctx, tx, e)
}

// look reads something of a company for an actor who may.
func (d *Directory) look(ctx context.Context, a principal.Principal, companyID string, may rule, read func(tx *sqldb.Tx, s standing) error) error {
	return d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		s, err := inCompany(ctx, tx, a, companyID, may)
		if err != nil {
			return err
		}
		return read(tx, s)
	})
}

// change does something to a company for an actor who may, and records it.
func (d *Directory) change(ctx context.Context, a principal.Principal, companyID string, may rule, act func(tx *sqldb.Tx, s standing) (audit.Entry, error)) error {
	return d.changeOf(ctx, a, companyID, "", may, act)
}

// changeOf is change for what takes a person in, "" for nobody: they are locked
// before the company, as whoever deletes them does.
func (d *Directory) changeOf(ctx context.Context, a principal.Principal, companyID, personID string, may rule, act func(tx *sqldb.Tx, s standing) (audit.Entry, error)) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		// Strangers are turned away before they can keep anybody waiting.
		if _, err := inCompany(ctx, tx, a, companyID, may); err != nil {
			return err
		}
		if err := hold(ctx, tx, personID); err != nil {
			return err
		}
		if err := company.Lock(ctx, tx, companyID); err != nil {
			return err
		}
		s, err := inCompany(ctx, tx, a, companyID, may)
		if err != nil {
			return err
		}
		e, err := act(tx, s)
		if err != nil {
			return err
		}
		return record(ctx, tx, a, companyID, e)
	})
}

// CreateCompany makes a company that nobody is in yet. Only the operator can.
func (d *Directory) CreateCompany(ctx context.Context, a principal.Principal, name string, plan company.Plan) (c company.Company, err error) {
	if !a.Operator {
		return c, errPermission
	}
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if c, err = company.Create(ctx, tx, name, plan); err != nil {
			return err
		}
		return record(ctx, tx, a, c.ID, audit.Entry{Act: audit.CompanyCreated, Details: map[string]string{"name": name, "plan": string(plan)}})
	})
	return c, err
}

// Companies gives the companies that the actor is in, by name.
func (d *Directory) Companies(ctx context.Context, a principal.Principal) (all []company.Membership, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = company.OfPerson(ctx, tx, a.PersonID)
		return err
	})
	return all, err
}

// Company gives a company and what the actor is in it.
func (d *Directory) Company(ctx context.Context, a principal.Principal, companyID string) (m company.Membership, err error) {
	err = d.look(ctx, a, companyID, anyMember, func(_ *sqldb.Tx, s standing) error {
		m = s.Membership
		return nil
	})
	return m, err
}

// Audit gives what was done in a company and the filter chooses, newest first.
func (d *Directory) Audit(ctx context.Context, a principal.Principal, companyID string, f audit.Filter) (all []audit.Record, err error) {
	f.CompanyID = companyID
	err = d.look(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, _ standing) error {
		all, err = audit.List(ctx, tx, f)
		return err
	})
	return all, err
}

// hold has a person stay, where there is one: who is being deleted must not come
// into a company again.
func hold(ctx context.Context, tx *sqldb.Tx, personID string) error {
	_, err := known(ctx, tx, personID)
	if errors.Is(err, errNoMember) { // for known to say, once it is clear who may ask
		err = nil
	}
	return err
}

// known finds a person by what may or may not be an id. They are held by now.
func known(ctx context.Context, tx *sqldb.Tx, personID string) (person.Person, error) {
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

// byEmail finds a person for the operator. Nobody else may ask who has an
// address.
func (d *Directory) byEmail(ctx context.Context, a principal.Principal, email string) (uid string, err error) {
	if !a.Operator {
		return "", errPermission
	}
	if err := person.CheckEmail(email); err != nil {
		return "", err
	}
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByEmail(ctx, tx, email)
		uid = p.ID
		return err
	})
	return uid, err
}
