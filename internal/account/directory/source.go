package directory

import (
	"context"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/principal"
)

// errPlan is for what a company has not bought.
var errPlan = fault.New(fault.Forbidden, "This needs the plan ENTERPRISE.").With("reason", "plan")

// enterprise is for those who manage the members of a company that has bought a
// directory of its own.
func enterprise(s standing) error {
	if err := managesMembers(s); err != nil {
		return err
	}
	return s.bought()
}

func (s standing) bought() error {
	if s.Company.Plan != company.EnterprisePlan {
		return errPlan
	}
	return nil
}

// Connection tells how a company's directory is connected.
func (d *Directory) Connection(ctx context.Context, a principal.Principal, companyID string) (t credential.DirectoryToken, err error) {
	err = d.look(ctx, a, companyID, enterprise, func(tx *sqldb.Tx, _ standing) error {
		t, err = credential.DirectoryOf(ctx, tx, companyID)
		return err
	})
	return t, err
}

// Connect makes the token that a company's directory presents. The one before is
// dead.
func (d *Directory) Connect(ctx context.Context, a principal.Principal, companyID string) (t credential.DirectoryToken, secret string, err error) {
	err = d.change(ctx, a, companyID, enterprise, func(tx *sqldb.Tx, s standing) (e audit.Entry, err error) {
		if err := s.bought(); err != nil { // the operator is asked for nothing else
			return e, err
		}
		// The directory can remove and rename everybody: who connects it must have
		// what the mightiest have.
		if err := s.covers(company.CompanyPermissions); err != nil {
			return e, err
		}
		t, secret, err = credential.ConnectDirectory(ctx, tx, companyID, a.PersonID)
		return audit.Entry{Act: audit.ScimConnected, Details: map[string]string{"hint": t.Hint}}, err
	})
	return t, secret, err
}

// Disconnect ends the token. People and teams stay as they are.
func (d *Directory) Disconnect(ctx context.Context, a principal.Principal, companyID string) error {
	return d.change(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, _ standing) (audit.Entry, error) {
		t, err := credential.DisconnectDirectory(ctx, tx, companyID)
		return audit.Entry{Act: audit.ScimDisconnected, Details: map[string]string{"hint": t.Hint}}, err
	})
}

// DisconnectAll ends the tokens of all companies' directories.
func (d *Directory) DisconnectAll(ctx context.Context, a principal.Principal) error {
	var companyIDs []string
	err := d.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		companyIDs, err = credential.Directories(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range companyIDs {
		if err := d.Disconnect(ctx, a, id); err != nil {
			return err
		}
	}
	return nil
}

// Source is a company's directory that was let in.
type Source struct {
	companyID, address string
	token              credential.DirectoryToken
}

// CompanyID names the company.
func (s Source) CompanyID() string { return s.companyID }

// usedEvery is how exact "last used" is.
const usedEvery = time.Minute

// Admit lets a company's directory in that presents its token, as long as the
// company has the plan for it. The source is known even where the plan is not
// enough, so that the request can be counted as theirs.
func (d *Directory) Admit(ctx context.Context, token, address string) (Source, error) {
	t, err := credential.CheckDirectory(ctx, d.DB, token)
	if err != nil {
		return Source{}, err
	}
	s := Source{t.CompanyID, address, t}
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error { return s.bought(ctx, tx) })
	if err == nil && d.DB.Now().Sub(t.LastUsed) >= usedEvery {
		err = d.DB.Write(ctx, func(tx *sqldb.Tx) error { return credential.TouchDirectory(ctx, tx, t.CompanyID) })
	}
	return s, err
}

// bought asks whether the company still has the plan.
func (s Source) bought(ctx context.Context, tx *sqldb.Tx) error {
	c, err := company.ByID(ctx, tx, s.companyID)
	if err != nil {
		return err
	}
	return standing{Membership: company.Membership{Company: c}}.bought()
}

// Guard returns the check that every transaction begins with that a directory's
// request makes (sqldb.WithGuard): the token and the plan must still be there.
// It locks nothing, since people are locked before companies; what changes
// something is decided by act, with the company locked.
func (s Source) Guard() sqldb.Guard {
	return s.reauthorize
}

// reauthorize refuses a directory whose token or plan has ended.
func (s Source) reauthorize(ctx context.Context, tx *sqldb.Tx) error {
	if err := credential.StillDirectory(ctx, tx, s.token); err != nil {
		return err
	}
	return s.bought(ctx, tx)
}

// act does something for a directory with its company locked, and records it.
// Its token and its plan may have ended since it was let in: a body can take long
// to arrive. They are looked at with the company locked, without which neither
// ends.
func (d *Directory) act(ctx context.Context, s Source, do func(tx *sqldb.Tx) ([]audit.Entry, error)) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		entries, err := do(tx)
		if err != nil {
			return err
		}
		if err := s.reauthorize(ctx, tx); err != nil {
			return err
		}
		for _, e := range entries { // last, since all who record pass through one row
			if e.Details == nil {
				e.Details = map[string]string{}
			}
			e.Details["by"] = "scim"
			if err := record(ctx, tx, principal.Principal{Address: s.address}, s.companyID, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxScan bounds how many users or groups a filter looks at, and maxPlaces how
// many of their places.
const (
	maxScan   = 20_000
	maxPlaces = 200_000
)

var errTooMany = fault.New(fault.Invalid, "There are too many to look through with this filter. Ask by id, userName, externalId or displayName.").With("reason", "too_many")

// window cuts the page out of a list that starts with the item number 1.
func window[T any](all []T, start, count int) []T {
	from := min(max(start-1, 0), len(all))
	return all[from:min(from+max(count, 0), len(all))]
}
