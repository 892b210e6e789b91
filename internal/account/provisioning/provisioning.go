// Package provisioning lets a company's identity provider manage the company's
// people and teams, which it sees as users and groups.
package provisioning

import (
	"context"
	"time"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
)

// Service does what the package says. It is safe for concurrent use.
type Service struct {
	DB     *sqldb.DB
	Mail   mailqueue.Office
	AppURL string
	Vouch  func(ctx context.Context, tx *sqldb.Tx, email string) (p person.Person, fresh bool, entries []audit.Entry, err error)
}

// Client is a company's directory that was let in.
type Client struct {
	companyID, address string
	token              credential.DirectoryToken
}

// CompanyID names the company.
func (s Client) CompanyID() string { return s.companyID }

// usedEvery is how exact "last used" is.
const usedEvery = time.Minute

// Admit lets a company's directory in that presents its token, as long as the
// company has the plan for it. The source is known even where the plan is not
// enough, so that the request can be counted as theirs.
func (d *Service) AuthenticateClient(ctx context.Context, token, address string) (Client, error) {
	t, err := credential.CheckDirectory(ctx, d.DB, token)
	if err != nil {
		return Client{}, err
	}
	s := Client{t.CompanyID, address, t}
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error { return s.bought(ctx, tx) })
	if err == nil && d.DB.Now().Sub(t.LastUsed) >= usedEvery {
		err = d.DB.Write(ctx, func(tx *sqldb.Tx) error { return credential.TouchDirectory(ctx, tx, t.CompanyID) })
	}
	return s, err
}

// bought asks whether the company still has the plan.
func (s Client) bought(ctx context.Context, tx *sqldb.Tx) error {
	c, err := company.ByID(ctx, tx, s.companyID)
	if err != nil {
		return err
	}
	return companyadmin.CheckProvisioningPlan(c)
}

// Guard returns the check that every transaction begins with that a directory's
// request makes (sqldb.WithGuard): the token and the plan must still be there.
// It locks nothing, since people are locked before companies; what changes
// something is decided by act, with the company locked.
func (s Client) Guard() sqldb.Guard {
	return s.reauthorize
}

// reauthorize refuses a directory whose token or plan has ended.
func (s Client) reauthorize(ctx context.Context, tx *sqldb.Tx) error {
	if err := credential.StillDirectory(ctx, tx, s.token); err != nil {
		return err
	}
	return s.bought(ctx, tx)
}

// act does something for a directory with its company locked, and records it.
// Its token and its plan may have ended since it was let in: a body can take long
// to arrive. They are looked at with the company locked, without which neither
// ends.
func (d *Service) act(ctx context.Context, s Client, do func(tx *sqldb.Tx) ([]audit.Entry, error)) error {
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
			e.CompanyID = s.companyID
			e.Address = s.address
			if err := audit.Add(ctx, tx, e); err != nil {
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

func orElse(err, decided error) error {
	if err != nil {
		return err
	}
	return decided
}

// describeUser says no more than whether somebody is active.
func describeUser(active bool) string {
	if active {
		return "active"
	}
	return "switched off"
}
