// Package provisioning manages a company's people and teams for the company's
// identity provider over SCIM (RFC 7643, RFC 7644), as users and groups.
//
// An identity provider authenticates by its company's SCIM token and needs the
// plan ENTERPRISE. Both are checked again in the transaction that makes a change,
// with the company locked. Each change writes its audit entries in the same
// transaction.
//
// A user is active while they are a member of the company. An inactive user keeps
// their place in groups and returns to it when they become active again.
package provisioning

import (
	"context"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/person"
)

// Service reads and changes users and groups for identity providers. It is safe
// for concurrent use.
type Service struct {
	DB   *sqldb.DB
	Mail mailqueue.Outbox
	// AppURL is the address of the HTML pages; links in mail lead there.
	AppURL string
	// EnsureAccount locks and returns the person with an address in a domain that
	// a company has verified, and creates them if there is none. The caller adds
	// the entries to the audit log at the end of the transaction.
	EnsureAccount func(ctx context.Context, tx *sqldb.Tx, email string) (p person.Person, created bool, entries []audit.Entry, err error)
}

// runChange runs change in a transaction and records the entries that it returns.
// The change must lock the company. The client's token and plan may have ended
// since it authenticated, because a request body can take long to arrive; they
// are checked again with the company locked, since ending either locks it too.
func (s *Service) runChange(ctx context.Context, client Client, change func(tx *sqldb.Tx) ([]audit.Entry, error)) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		entries, err := change(tx)
		if err != nil {
			return err
		}
		if err := client.Reauthorize(ctx, tx); err != nil {
			return err
		}

		// Last, since all writers of the audit log wait for one row.
		for _, e := range entries {
			if e.Details == nil {
				e.Details = map[string]string{}
			}
			e.Details["by"] = "scim"
			e.CompanyID = client.companyID
			e.Address = client.address
			if err := audit.Add(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// Limits of a filter: how many users or groups, and how many memberships of
// groups, it may examine.
const (
	maxScanned           = 20_000
	maxScannedMembership = 200_000
)

var errTooMany = fault.New(fault.Invalid, "There are too many resources to search with this filter. Filter by id, userName, externalId or displayName.").With("reason", "too_many")

// slicePage returns one page of a list; start counts from 1.
func slicePage[T any](all []T, start, count int) []T {
	from := min(max(start-1, 0), len(all))
	return all[from:min(from+max(count, 0), len(all))]
}

// ignoreNotFound returns nil for a fault that something was not found, and any
// other error unchanged.
func ignoreNotFound(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
