// Package profile returns the profile of a person for their account pages and
// for the API: the person's data, and the accounts that a credential can
// access.
package profile

import (
	"context"
	"maps"
	"slices"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/quota"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// Service reads profiles. It is safe for concurrent use.
type Service struct {
	DB      *sqldb.DB
	Devices *device.Devices
	Grants  *ledger.Grants
	Storage quota.Limits
	// Operators are the people who may operate the installation.
	Operators principal.Operators
}

// Profile describes a person and the accounts that a credential can access.
type Profile struct {
	Person   person.Person
	Provider string // how the person signed in: "password" or the name of an OpenID provider
	Operator bool   // the credential may operate the installation
	TopUp    ledger.FreeTopUp
	// Accounts begins with the personal account if the credential can access
	// it.
	Accounts []Account
	// NewTeams are the teams that the person has joined since the sign-in on a
	// device before their most recent one.
	NewTeams    []company.Team
	Permissions map[string][]company.Permission // by company id
}

// Account is an account that a person can use: their personal account or the
// account of a team.
type Account struct {
	ID          string
	Label       string
	CompanyID   string       // "" for the personal account
	Plan        company.Plan // "" for the personal account
	Permissions []company.Permission
	PluginKinds []string
	Balance     ledger.Balance
	Storage     quota.Usage
}

// GetProfile returns the principal's profile, with the accounts that the
// principal's credential can access.
func (s *Service) GetProfile(ctx context.Context, p principal.Principal) (r Profile, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		r, err = s.ReadProfile(ctx, tx, p)
		return err
	})
	return r, err
}

// ReadProfile is GetProfile in the caller's transaction.
func (s *Service) ReadProfile(ctx context.Context, tx *sqldb.Tx, p principal.Principal) (r Profile, err error) {
	personID := p.PersonID
	if r.Person, err = person.ByID(ctx, tx, personID); err != nil {
		return r, err
	}
	if r.Provider = p.Credential.Provider; r.Provider == "" {
		r.Provider = r.Person.Provider
	}
	r.Operator = s.Operators.Admits(p.Credential, r.Person.Email, r.Person.EmailVerified)
	if p.ReachesPersonal() {
		if r.TopUp, err = s.Grants.TopUpOf(ctx, tx, personID); err != nil {
			return r, err
		}
		r.Accounts = []Account{{ID: personID, Label: "Personal", Permissions: []company.Permission{company.Generate, company.UsePlugins}, PluginKinds: []string{company.AnyKind}}}
	}
	teams, err := company.TeamMemberships(ctx, tx, personID)
	if err != nil {
		return r, err
	}
	for _, t := range teams {
		if p.ReachesTeam(t.Team.CompanyID, t.Role) {
			r.Accounts = append(r.Accounts, Account{
				ID:          t.Team.ID,
				Label:       t.Team.Name,
				CompanyID:   t.Team.CompanyID,
				Plan:        t.Plan,
				Permissions: t.Role.Permissions,
				PluginKinds: t.Role.PluginKinds,
			})
		}
	}
	ids := make([]string, 0, len(r.Accounts))
	for _, a := range r.Accounts {
		ids = append(ids, a.ID)
	}
	balances, err := ledger.Balances(ctx, tx, ids, s.Grants.MonthlyAllowance)
	if err != nil {
		return r, err
	}
	stored, err := s.Storage.AccountUsages(ctx, tx, ids)
	if err != nil {
		return r, err
	}
	for i := range r.Accounts {
		id := r.Accounts[i].ID
		r.Accounts[i].Balance = balances[id]
		r.Accounts[i].Storage = stored[id]
	}
	if r.NewTeams, err = company.JoinedSince(ctx, tx, personID, r.Person.SignedInBefore); err != nil {
		return r, err
	}
	r.NewTeams = slices.DeleteFunc(r.NewTeams, func(t company.Team) bool { return !slices.Contains(ids, t.ID) })
	r.Permissions, err = company.PermissionsOf(ctx, tx, personID)
	maps.DeleteFunc(r.Permissions, func(id string, _ []company.Permission) bool { return !p.ReachesCompany(id) })
	return r, err
}

// Overview is the content of a person's account pages.
type Overview struct {
	Profile  Profile
	Devices  []device.Device
	Sessions []session.Session
	Notices  []person.Notice
}

// maxNotices is the maximum number of notices on the account page.
const maxNotices = 20

// GetOverview returns the content of a person's account pages.
func (s *Service) GetOverview(ctx context.Context, p principal.Principal) (o Overview, err error) {
	personID := p.PersonID
	p.Credential.Provider = "" // so that ReadProfile fills in the person's usual way of signing in
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		if o.Profile, err = s.ReadProfile(ctx, tx, p); err != nil {
			return err
		}
		if o.Devices, err = s.Devices.ListSignedIn(ctx, tx, personID); err != nil {
			return err
		}
		if o.Sessions, err = session.List(ctx, tx, personID); err != nil {
			return err
		}
		o.Notices, err = person.Notices(ctx, tx, personID, maxNotices)
		return err
	})
	return o, err
}

// ListCompanies returns a person's memberships in companies, ordered by the
// company's name.
func (s *Service) ListCompanies(ctx context.Context, personID string) (all []company.Membership, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = company.CompanyMemberships(ctx, tx, personID)
		return err
	})
	return all, err
}
