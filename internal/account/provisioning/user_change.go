package provisioning

import (
	"context"
	"errors"
	"strings"
	"time"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
)

// CreateUser adds the person with the e-mail address draft.Name to the company,
// and creates an account if none has the address. The address must be in a
// domain that the company has verified.
func (s *Service) CreateUser(ctx context.Context, client Client, draft UserDraft) (u User, err error) {
	if person.CheckEmail(draft.Name) != nil {
		return u, errDomain
	}

	err = s.runChange(ctx, client, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		if err := client.requireDomain(ctx, tx, draft.Name, errDomain); err != nil {
			return nil, err
		}
		// EnsureAccount locks the person before the company is locked. Every
		// other transaction uses the same order.
		p, created, entries, err := s.EnsureAccount(ctx, tx, draft.Name)
		if errors.Is(err, person.ErrEmailTaken) {
			return nil, errUserTaken
		}
		if err != nil {
			return nil, err
		}
		if err := company.Lock(ctx, tx, client.companyID); err != nil {
			return nil, err
		}
		// The domain is checked again, because it may have been removed before
		// the company was locked.
		if err := client.requireDomain(ctx, tx, draft.Name, errDomain); err != nil {
			return nil, err
		}

		_, err = company.ProfileOf(ctx, tx, client.companyID, p.ID)
		if err == nil {
			return nil, errUserTaken
		}
		if !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		if err := company.StoreProfile(ctx, tx, client.companyID, newProfile(p.ID, tx.Now, draft)); err != nil {
			return nil, err
		}
		entries = append(entries, audit.Entry{Act: audit.ScimUserMade, PersonID: p.ID})

		if draft.Active {
			activation, err := client.activateUser(ctx, tx, p.ID)
			if err != nil {
				return nil, err
			}
			entries = append(entries, activation)
			if err := s.mailMembership(ctx, tx, client, p, created); err != nil {
				return nil, err
			}
		}
		u, err = client.readUser(ctx, tx, p.ID)
		return entries, err
	})
	return u, err
}

func newProfile(id string, created time.Time, draft UserDraft) company.Profile {
	return company.Profile{PersonID: id, ExternalID: draft.ExternalID, Attributes: draft.Attributes, Created: created}
}

// requireDomain returns the error refusal if the e-mail address is not in a
// domain that the company has verified.
func (c Client) requireDomain(ctx context.Context, tx *sqldb.Tx, email string, refusal error) error {
	owns, err := company.OwnsDomain(ctx, tx, c.companyID, email)
	if err == nil && !owns {
		err = refusal
	}
	return err
}

// ChangeUser calls change with the current user and stores the draft that
// change returns. The function may be called more than once.
func (s *Service) ChangeUser(ctx context.Context, client Client, id string, change func(User) (UserDraft, error)) (u User, err error) {
	deactivated := false
	err = s.runChange(ctx, client, func(tx *sqldb.Tx) ([]audit.Entry, error) {
		before, err := client.lockUser(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		draft, err := change(before)
		if err != nil {
			return nil, err
		}

		var entries []audit.Entry
		if draft.Name != before.Name {
			e, err := s.changeAddress(ctx, tx, client, before, draft.Name)
			if err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}

		deactivated = before.Active && !draft.Active
		if draft != (UserDraft{before.Name, before.ExternalID, before.Active, before.Attributes}) {
			if err := company.StoreProfile(ctx, tx, client.companyID, newProfile(id, before.Created, draft)); err != nil {
				return nil, err
			}
			e := audit.Entry{Act: audit.ScimUserChanged, PersonID: id}
			entries = append(entries, e.WithChange(describeUser(before.Active), describeUser(draft.Active)))
			verification, err := s.verifyAddress(ctx, tx, client, draft.Name)
			if err != nil {
				return nil, err
			}
			entries = append(entries, verification...)
		}

		switch {
		case deactivated:
			removal, err := client.removeMember(ctx, tx, id, company.Deactivate)
			if err != nil {
				return nil, err
			}
			entries = append(entries, removal...)
		case draft.Active && !before.Active:
			activation, err := client.activateUser(ctx, tx, id)
			if err != nil {
				return nil, err
			}
			entries = append(entries, activation)
			if err := s.mailReturn(ctx, tx, client, id); err != nil {
				return nil, err
			}
		}

		u, err = client.readUser(ctx, tx, id)
		return entries, err
	})
	if err == nil && deactivated {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return u, err
}

// describeUser returns the state of a user for the audit log: only whether they
// are active. Everything else that the identity provider sends is personal
// data, and the log is never erased.
func describeUser(active bool) string {
	if active {
		return "active"
	}
	return "switched off"
}

// verifyAddress marks the e-mail address of an account as verified if the company
// owns its domain. Someone else may have signed up with the address before, so
// EnsureAccount first ends their access to the account.
func (s *Service) verifyAddress(ctx context.Context, tx *sqldb.Tx, client Client, email string) ([]audit.Entry, error) {
	owns, err := company.OwnsDomain(ctx, tx, client.companyID, email)
	if err != nil || !owns {
		return nil, err
	}
	_, _, entries, err := s.EnsureAccount(ctx, tx, email)
	return entries, err
}

// lockUser locks the user's person and then the company, and returns the user.
func (c Client) lockUser(ctx context.Context, tx *sqldb.Tx, id string) (User, error) {
	// The id is checked before locking, so that requests with unknown ids do
	// not block others.
	if _, err := company.ProfileOf(ctx, tx, c.companyID, id); err != nil {
		return User{}, err
	}
	// If the person was deleted by a concurrent request, readUser returns an
	// error.
	if err := person.Lock(ctx, tx, id); err != nil && !errors.Is(err, person.ErrDeleted) {
		return User{}, err
	}
	if err := company.Lock(ctx, tx, c.companyID); err != nil {
		return User{}, err
	}
	return c.readUser(ctx, tx, id)
}

// changeAddress changes the e-mail address of a user's account. The company must
// own the domains of both e-mail addresses, because the owner of an e-mail address
// can take over the account.
func (s *Service) changeAddress(ctx context.Context, tx *sqldb.Tx, client Client, before User, email string) (e audit.Entry, err error) {
	if person.CheckEmail(email) != nil {
		return e, errDomain
	}
	if err := client.requireDomain(ctx, tx, before.Name, errOldDomain); err != nil {
		return e, err
	}
	if err := client.requireDomain(ctx, tx, email, errDomain); err != nil {
		return e, err
	}

	err = person.SetEmail(ctx, tx, before.ID, email)
	if errors.Is(err, person.ErrEmailTaken) {
		return e, errUserTaken
	}
	if err != nil {
		return e, err
	}
	if err := s.notifyAddressChange(ctx, tx, before, email); err != nil {
		return e, err
	}

	e = audit.Entry{Act: audit.PersonEmailChanged, PersonID: before.ID, Details: map[string]string{"email": person.MaskEmail(email), "before": person.MaskEmail(before.Name)}}
	return e.WithChange(person.MaskEmail(before.Name), person.MaskEmail(email)), nil
}

// DeleteUser removes a user from the company and deletes the attributes that
// the identity provider has sent about them. Their account remains.
func (s *Service) DeleteUser(ctx context.Context, client Client, id string) error {
	err := s.runChange(ctx, client, func(tx *sqldb.Tx) (entries []audit.Entry, err error) {
		before, err := client.lockUser(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if before.Active {
			if entries, err = client.removeMember(ctx, tx, id, company.RemoveMember); err != nil {
				return nil, err
			}
		}
		return append(entries, audit.Entry{Act: audit.ScimUserDeleted, PersonID: id}), company.DropProfile(ctx, tx, client.companyID, id)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// removeMember calls remove to remove a member from the company and its teams,
// and deletes the company's access tokens that act for them.
func (c Client) removeMember(ctx context.Context, tx *sqldb.Tx, id string, remove func(context.Context, *sqldb.Tx, string, string) ([]string, error)) (entries []audit.Entry, err error) {
	before, err := companyadmin.FindMembership(ctx, tx, id, c.companyID)
	if err != nil {
		return nil, err
	}
	teams, err := remove(ctx, tx, c.companyID, id)
	if err != nil {
		return nil, err
	}
	tokens, err := credential.DeleteOf(ctx, tx, id, c.companyID)
	if err != nil {
		return nil, err
	}

	role := ""
	if before != nil {
		role = before.Role.Name
	}
	if before != nil && before.Role.May(company.ManageMembers) {
		left, err := company.HasAdmin(ctx, tx, c.companyID)
		if err != nil {
			return nil, err
		}
		if !left {
			return nil, companyadmin.ErrLastAdmin
		}
	}

	for _, t := range tokens {
		entries = append(entries, audit.Entry{Act: audit.TokenDeleted, PersonID: id, Details: map[string]string{"token": t.ID, "name": t.Name}})
	}
	e := audit.Entry{Act: audit.CompanyMemberRemoved, PersonID: id, Details: map[string]string{"teams": strings.Join(teams, " ")}}
	return append(entries, e.WithChange(role, "")), nil
}

// activateUser makes a user a member of the company again, with the roles that
// they had before.
func (c Client) activateUser(ctx context.Context, tx *sqldb.Tx, id string) (audit.Entry, error) {
	role, teams, err := company.Activate(ctx, tx, c.companyID, id)
	e := audit.Entry{Act: audit.CompanyMemberSet, PersonID: id, Details: map[string]string{"role": role, "teams": strings.Join(teams, " ")}}
	return e.WithChange("", role), err
}
