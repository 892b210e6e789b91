// Package provisioning manages a company's people and teams on behalf of the
// company's identity provider, as users and groups of SCIM (RFC 7643, RFC
// 7644).
//
// An identity provider authenticates with its company's SCIM token, and the
// company needs the plan ENTERPRISE. Token and plan are checked again in the
// transaction that makes a change, after the company is locked. Each change
// adds its audit log entries in the same transaction.
//
// A user is active while they are a member of the company. The team memberships
// of an inactive user are stored, and restored when the user becomes active
// again.
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
	// AppURL is the base URL of the HTML pages, for links in mail.
	AppURL string
	// EnsureAccount locks and returns the person with the given e-mail address,
	// and creates an account if there is none. The address must be in a domain
	// that a company has verified. The caller adds the returned entries to the
	// audit log at the end of the transaction.
	EnsureAccount func(ctx context.Context, tx *sqldb.Tx, email string) (p person.Person, created bool, entries []audit.Entry, err error)
}

// runChange runs change in a transaction and adds the entries that change
// returns to the audit log. The function change must lock the company. A
// request body can take long to arrive, so the client's token may have been
// revoked, or the plan changed, since the client authenticated. Token and plan
// are checked again while the company is locked, because revoking the token and
// changing the plan take the same lock.
func (s *Service) runChange(ctx context.Context, client Client, change func(tx *sqldb.Tx) ([]audit.Entry, error)) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		entries, err := change(tx)
		if err != nil {
			return err
		}
		if err := client.Reauthorize(ctx, tx); err != nil {
			return err
		}

		// The entries are added last, because adding one locks a row for which
		// all other writers of the audit log wait.
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

// Maximum numbers of users or groups, and of group memberships, that the
// evaluation of one filter may read.
const (
	maxScanned           = 20_000
	maxScannedMembership = 200_000
)

var errTooMany = fault.New(fault.Invalid, "There are too many resources to search with this filter. Filter by id, userName, externalId or displayName.").With("reason", "too_many")

// slicePage returns at most count elements of a list, beginning with element
// number start, counted from 1.
func slicePage[T any](all []T, start, count int) []T {
	from := min(max(start-1, 0), len(all))
	return all[from:min(from+max(count, 0), len(all))]
}

// ignoreNotFound returns nil for a fault.NotFound, and any other error
// unchanged.
func ignoreNotFound(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
