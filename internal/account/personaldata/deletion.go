package personaldata

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/queue"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/run/run"
)

var (
	errEmail     = fault.New(fault.Invalid, "This is not the e-mail address of the account.").On("email")
	errActive    = fault.New(fault.Forbidden, "There are unfinished runs. Cancel them or wait until they have finished.").With("reason", "runs_active")
	errLastAdmin = fault.New(fault.Forbidden, "You are the only member of a company who can manage its members. Give another member that permission first.").With("reason", "last_admin")
)

// DeletePerson deletes a person. As a safeguard against mistakes, email must be
// their e-mail address. When DeletePerson returns, every node refuses all
// credentials of the person; a background job erases their contents shortly
// after.
//
// It locks rows in this order: person, companies by id, rate-limit keys, the
// account's storage row, the account's ledger row.
func (s *Service) DeletePerson(ctx context.Context, caller principal.Principal, personID, email string) error {
	if err := requireOwner(caller, personID); err != nil {
		return err
	}

	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		p, err := person.ByID(ctx, tx, personID)
		if err != nil {
			return err
		}
		if !p.HasEmail(email) {
			return errEmail
		}
		// No run can start at the same time, because creating a run locks the
		// person.
		active, err := run.CountActive(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if active > 0 {
			return errActive
		}

		left, err := leaveCompanies(ctx, tx, caller, p.ID)
		if err != nil {
			return err
		}
		tokens, err := credential.DeleteAll(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if err := s.revokeAccess(ctx, tx, p); err != nil {
			return err
		}
		return recordDeletion(ctx, tx, caller, p.ID, left, tokens)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// formerMembership is a membership in a company from which the person has just
// been removed.
type formerMembership struct {
	role  string
	teams []string // ids of the teams
}

// leaveCompanies removes a person from all companies, and returns their former
// memberships by company id.
func leaveCompanies(ctx context.Context, tx *sqldb.Tx, caller principal.Principal, personID string) (map[string]formerMembership, error) {
	memberships, err := company.CompanyMemberships(ctx, tx, personID)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(memberships, func(a, b company.Membership) int { return cmp.Compare(a.Company.ID, b.Company.ID) })

	left := map[string]formerMembership{}
	for _, m := range memberships {
		id := m.Company.ID
		if err := company.Lock(ctx, tx, id); err != nil {
			return nil, err
		}
		hadAdmin, err := company.HasAdmin(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		// An admin may have removed the person while this transaction waited
		// for the company's lock.
		teams, err := company.RemoveMember(ctx, tx, id, personID)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		left[id] = formerMembership{role: m.Role.Name, teams: teams}

		if caller.Operator || !hadAdmin {
			continue
		}
		hasAdmin, err := company.HasAdmin(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		hasMembers, err := company.HasMembers(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if hasMembers && !hasAdmin {
			return nil, errLastAdmin
		}
	}
	return left, nil
}

// revokeAccess deletes the person's sessions, devices, e-mail address and other
// small data, and adds the background job that erases the person's contents.
func (s *Service) revokeAccess(ctx context.Context, tx *sqldb.Tx, p person.Person) error {
	if _, err := session.EndAll(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := device.Erase(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := company.DeleteProfiles(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := company.DeleteInvitationsFor(ctx, tx, p.Email); err != nil {
		return err
	}

	if err := ratelimit.ForgetSubject(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := ratelimit.ForgetSubject(ctx, tx, strings.ToLower(p.Email)); err != nil {
		return err
	}
	if err := eraseSmallRows(ctx, tx, p.ID); err != nil {
		return err
	}
	if err := person.Erase(ctx, tx, p.ID); err != nil {
		return err
	}
	if _, err := ledger.Clear(ctx, tx, p.ID, ledger.Expired, ""); err != nil {
		return err
	}

	args, err := json.Marshal(p.ID)
	if err != nil {
		return err
	}
	_, err = s.Queue.Add(ctx, tx, queue.Job{Kind: EraseKind, Args: args, Unique: p.ID})
	return err
}

// recordDeletion adds the deletion to the audit log. The entries contain ids
// but no e-mail address.
func recordDeletion(ctx context.Context, tx *sqldb.Tx, caller principal.Principal, personID string, left map[string]formerMembership, tokens []credential.Token) error {
	entry := audit.Entry{ActorID: caller.PersonID, PersonID: personID, Address: caller.Address}
	for _, t := range tokens {
		e := entry
		e.Act = audit.TokenDeleted
		e.CompanyID = t.CompanyID
		e.Details = map[string]string{"token": t.ID}
		if err := audit.Add(ctx, tx, e); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		e := entry
		e.Act = audit.CompanyMemberRemoved
		e.CompanyID = id
		e.Details = map[string]string{"teams": strings.Join(left[id].teams, " ")}
		if err := audit.Add(ctx, tx, e.WithChange(left[id].role, "")); err != nil {
			return err
		}
	}
	entry.Act = audit.PersonDeleted
	return audit.Add(ctx, tx, entry)
}
