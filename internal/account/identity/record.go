package identity

import (
	"context"
	"maps"
	"slices"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/quota"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// Record is who somebody is here, and for which accounts they can act.
type Record struct {
	Person   person.Person
	Provider string // how they signed in
	TopUp    TopUp
	// Accounts begin with the personal one, where the credential reaches it.
	Accounts []Account
	// NewTeams are those joined since the sign-in before the newest.
	NewTeams    []company.Team
	Permissions map[string][]company.Permission // by company
}

// TopUp is the free tokens that a person can claim.
type TopUp struct {
	Available bool
	Tokens    int64
}

// Account is one that a person can act for.
type Account struct {
	ID          string
	Label       string
	CompanyID   string       // "" for the personal one
	Plan        company.Plan // "" for the personal one
	Permissions []company.Permission
	PluginKinds []string
	Balance     ledger.Balance
	Storage     quota.Usage
}

// Reach is what a record is about: all that the credential which asks can act
// for, and nothing else.
type Reach struct {
	Personal bool
	// Team decides about each of the person's teams by its company and their role.
	Team func(companyID string, role company.TeamRole) bool
	// Company decides about each company that they are in.
	Company func(companyID string) bool
}

// Everything is the reach of a person in a browser.
var Everything = Reach{
	Personal: true,
	Team:     func(string, company.TeamRole) bool { return true },
	Company:  anyCompany,
}

// reachOfDevice is the reach of an app on a device: without the teams whose role
// refuses such apps.
func reachOfDevice(pluginKind string) Reach {
	return Reach{
		Personal: true,
		Team:     func(_ string, role company.TeamRole) bool { return role.AllowsApp(pluginKind) },
		Company:  anyCompany,
	}
}

func anyCompany(string) bool { return true }

// Record tells a person who they are, as far as a credential reaches.
func (d *Desk) Record(ctx context.Context, personID, provider string, reach Reach) (r Record, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		r, err = d.record(ctx, tx, personID, provider, reach)
		return err
	})
	return r, err
}

func (d *Desk) record(ctx context.Context, tx *sqldb.Tx, personID, provider string, reach Reach) (r Record, err error) {
	if r.Person, err = person.ByID(ctx, tx, personID); err != nil {
		return r, err
	}
	if r.Provider = provider; provider == "" {
		r.Provider = r.Person.Provider
	}
	if reach.Personal {
		if r.TopUp, err = d.topUp(ctx, tx, personID); err != nil {
			return r, err
		}
		r.Accounts = []Account{{ID: personID, Label: "Personal", Permissions: []company.Permission{company.Generate, company.UsePlugins}, PluginKinds: []string{company.AnyKind}}}
	}
	teams, err := company.Accounts(ctx, tx, personID)
	if err != nil {
		return r, err
	}
	for _, t := range teams {
		if reach.Team(t.Team.CompanyID, t.Role) {
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
	balances, err := ledger.Balances(ctx, tx, ids, d.Settings.MonthlyAllowance)
	if err != nil {
		return r, err
	}
	stored, err := d.Settings.Storage.OfAll(ctx, tx, ids)
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
	maps.DeleteFunc(r.Permissions, func(id string, _ []company.Permission) bool { return !reach.Company(id) })
	return r, err
}

func (d *Desk) topUp(ctx context.Context, tx *sqldb.Tx, personID string) (TopUp, error) {
	if d.Settings.TopUp == 0 {
		return TopUp{}, nil
	}
	_, available, err := ledger.TopUpAt(ctx, tx, personID, d.Settings.TopUpWindow)
	return TopUp{available, d.Settings.TopUp}, err
}

// ClaimTopUp gives a person the free tokens of this window, once.
func (d *Desk) ClaimTopUp(ctx context.Context, personID string, v Visitor) (t TopUp, balance ledger.Balance, err error) {
	if d.Settings.TopUp == 0 {
		return t, balance, fault.New(fault.Forbidden, "There is no free top-up here.").With("reason", "off")
	}
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		spendable, err := ledger.TopUp(ctx, tx, personID, d.Settings.TopUp, d.Settings.TopUpWindow)
		if err != nil {
			return err
		}
		all, err := ledger.Balances(ctx, tx, []string{personID}, d.Settings.MonthlyAllowance)
		if err != nil {
			return err
		}
		t = TopUp{false, d.Settings.TopUp}
		balance = all[personID]
		e := audit.Entry{Act: audit.TokensToppedUp, ActorID: personID, PersonID: personID, Address: v.Address}
		return audit.Add(ctx, tx, moved(e, d.Settings.TopUp, spendable))
	})
	return t, balance, err
}

// Overview is what a person's account pages show.
type Overview struct {
	Record   Record
	Devices  []device.Device
	Sessions []session.Session
	Notices  []person.Notice
}

// noticesShown is how many notices the account page has.
const noticesShown = 20

// Overview gathers all that a person can see about their account.
func (d *Desk) Overview(ctx context.Context, personID string) (o Overview, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		if o.Record, err = d.record(ctx, tx, personID, "", Everything); err != nil {
			return err
		}
		if o.Devices, err = d.Devices.List(ctx, tx, personID); err != nil {
			return err
		}
		if o.Sessions, err = session.List(ctx, tx, personID); err != nil {
			return err
		}
		o.Notices, err = person.Notices(ctx, tx, personID, noticesShown)
		return err
	})
	return o, err
}

// Companies gives the companies that a person is in.
func (d *Desk) Companies(ctx context.Context, personID string) (all []company.Membership, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = company.OfPerson(ctx, tx, personID)
		return err
	})
	return all, err
}
