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
	"atelier/internal/people/principal"
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

// Record tells a person who they are, as far as the principal's credential
// reaches.
func (d *Desk) Record(ctx context.Context, p principal.Principal) (r Record, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		r, err = d.record(ctx, tx, p)
		return err
	})
	return r, err
}

func (d *Desk) record(ctx context.Context, tx *sqldb.Tx, p principal.Principal) (r Record, err error) {
	personID := p.PersonID
	if r.Person, err = person.ByID(ctx, tx, personID); err != nil {
		return r, err
	}
	if r.Provider = p.Credential.Provider; r.Provider == "" {
		r.Provider = r.Person.Provider
	}
	if p.ReachesPersonal() {
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
	maps.DeleteFunc(r.Permissions, func(id string, _ []company.Permission) bool { return !p.ReachesCompany(id) })
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
func (d *Desk) ClaimTopUp(ctx context.Context, personID string, v session.Client) (t TopUp, balance ledger.Balance, err error) {
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
func (d *Desk) Overview(ctx context.Context, p principal.Principal) (o Overview, err error) {
	personID := p.PersonID
	p.Credential.Provider = "" // the page names the person's own way to sign in
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		if o.Record, err = d.record(ctx, tx, p); err != nil {
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
