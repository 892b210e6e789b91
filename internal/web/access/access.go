// Package access decides who is asking, as what, and for which account. It is
// the one place where that is decided: every route names a Rule, and Admit
// holds the request against it and against the records as they are now.
//
//	credential       reaches                              rules it is refused by
//	ID token         personal account; teams whose role   (none)
//	                 has USE_PLUGINS and takes the
//	                 device's kind of plugin
//	personal token   personal account                     SignedIn, Leaving
//	company token    teams of its company that the        SignedIn, Leaving,
//	                 person is in                         Personal
//
// Reports are of a whole company. What stands in the way is asked in the order
// of the columns, and refused as FORBIDDEN with the column's name as reason:
//
//	credential                     company                     plan        permission
//	ID token: unless the operator  the one that company_id     ENTERPRISE  VIEW_COMPANY_REPORTS
//	  refuses it                     names, with the person               of the person's role
//	                                 in it                                in the company
//	personal token: never
//	company token                  its own; company_id may     as above    as above
//	                                 be left out
//
// Nothing about a credential is remembered between requests except that a
// signature was right: one that was revoked is dead at the next request, on
// every node. A request that takes long is decided about again, by every
// transaction that it makes (guard.go).
package access

import (
	"context"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
)

// Kind is what sort of credential speaks.
type Kind string

// The kinds of credentials.
const (
	IDToken       Kind = "id_token"
	PersonalToken Kind = "personal_token"
	CompanyToken  Kind = "company_token"
)

// Caller is who is asking.
type Caller struct {
	PersonID string
	Kind     Kind

	DeviceID   string // of an ID token
	PluginKind string // of its device, "" where it did not say
	Provider   string // how the person signed in there

	TokenID   string // of an access token
	CompanyID string // of a company token
}

// Presented is what a request shows of itself. Headers come with all their
// values: two of one are no credential, as nobody could say which one counts.
type Presented struct {
	Authorization []string
	DeviceID      []string // X-Device-Id
	TeamID        []string // team_id, as often as it was given
	CompanyID     []string // company_id, likewise
	Address       string
	// Reads says that the request changes nothing (RFC 9110 section 9.2.1).
	Reads bool
}

// Gate admits requests.
type Gate struct {
	DB      *sqldb.DB
	Devices *device.Devices
	Tokens  *idtoken.Issuer
	// RequireVerified lets people whose mail address is not verified read, and
	// refuses them everything else.
	RequireVerified bool
	// RefuseOAuthReports keeps ID tokens from reports.
	RefuseOAuthReports bool
	Now                func() time.Time
}

// Admit decides about a request. The caller is known even when the request is
// refused for another reason, so that it can be counted as theirs.
func (g *Gate) Admit(ctx context.Context, r Rule, p Presented) (Caller, Account, error) {
	id, err := g.authenticate(ctx, r, p)
	if err != nil {
		return Caller{}, Account{}, err
	}
	a, err := g.authorize(ctx, g.DB, r, id, p)
	return id.Caller, a, err
}

// identity is what the rows of a credential and its person say.
type identity struct {
	Caller
	verified bool // the mail address
	used     time.Time
}

// authorize decides what an authenticated caller may: the rule against the kind
// of the credential, the person and the account. It reads through q.
func (g *Gate) authorize(ctx context.Context, q sqldb.Querier, r Rule, id identity, p Presented) (Account, error) {
	if !g.takes(r, id.Kind) {
		return Account{}, fault.New(fault.Forbidden, r.instead(id.Kind)).With("reason", "credential")
	}
	unverified := g.RequireVerified && !id.verified
	if unverified && !r.takesUnverified(p.Reads) {
		return Account{}, ErrUnverified
	}

	var a Account
	var err error
	if r.Account == CompanyAccount {
		a, err = companyAccount(ctx, q, r, id.Caller, p)
	} else {
		a, err = account(ctx, q, r, id.Caller, p.TeamID)
	}
	if err != nil {
		return Account{}, err
	}
	a.Unverified = unverified
	return a, nil
}

// ErrUnverified refuses people whose address has to be verified first.
var ErrUnverified = fault.New(fault.EmailNotVerified, "Verify your mail address first: open the link that was sent to you.")

// takes tells whether a rule lets a kind of credential in here.
func (g *Gate) takes(r Rule, k Kind) bool {
	if r.Account == CompanyAccount && k == IDToken && g.RefuseOAuthReports {
		return false
	}
	return slices.Contains(r.Kinds, k)
}

// authenticate finds who presents a credential, and notes that it is in use.
func (g *Gate) authenticate(ctx context.Context, r Rule, p Presented) (identity, error) {
	token, ok := bearer(p.Authorization)
	if !ok {
		return identity{}, credential.ErrNone
	}
	if credential.WellFormed(token) {
		id, err := identifyToken(ctx, g.DB, token)
		if err == nil && g.stale(id.used) {
			err = g.touchToken(ctx, id.Caller)
		}
		return id, err
	}

	claims, err := g.Tokens.Verify(ctx, token)
	if err != nil {
		return identity{}, err
	}
	if !r.NamesDevice && !sameDevice(p.DeviceID, claims.DeviceID) {
		return identity{}, credential.ErrNone
	}
	id, err := g.identifyDevice(ctx, g.DB, claims.PersonID, claims.DeviceID)
	if err == nil && g.stale(id.used) {
		err = g.DB.Write(ctx, func(tx *sqldb.Tx) error { return g.Devices.Touch(ctx, tx, claims.DeviceID, p.Address) })
	}
	return id, err
}

// identifyDevice reads the rows behind an ID token.
func (g *Gate) identifyDevice(ctx context.Context, q sqldb.Querier, personID, deviceID string) (identity, error) {
	d, err := g.Devices.Check(ctx, q, deviceID)
	if err != nil {
		return identity{}, err
	}
	if d.PersonID != personID || d.Suspended {
		return identity{}, credential.ErrNone
	}
	c := Caller{
		PersonID:   d.PersonID,
		Kind:       IDToken,
		DeviceID:   deviceID,
		PluginKind: d.PluginKind,
		Provider:   d.Provider,
	}
	return identity{Caller: c, verified: d.Verified, used: d.LastUsed}, nil
}

// identifyToken reads the rows behind an access token.
func identifyToken(ctx context.Context, q sqldb.Querier, token string) (identity, error) {
	h, err := credential.Check(ctx, q, token)
	if err != nil {
		return identity{}, err
	}
	c := Caller{PersonID: h.PersonID, Kind: PersonalToken, TokenID: h.ID, CompanyID: h.CompanyID}
	if h.CompanyID != "" {
		c.Kind = CompanyToken
	}
	return identity{Caller: c, verified: h.EmailVerified, used: h.LastUsed}, nil
}

// usedEvery is how exact "last used" is: a write for every call would cost more
// than the calls.
const usedEvery = time.Minute

func (g *Gate) stale(used time.Time) bool { return g.Now().Sub(used) >= usedEvery }

func (g *Gate) touchToken(ctx context.Context, c Caller) error {
	return g.DB.Write(ctx, func(tx *sqldb.Tx) error {
		first, err := credential.Touch(ctx, tx, c.TokenID)
		if err != nil || !first {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{
			Act:       audit.TokenFirstUsed,
			ActorID:   c.PersonID,
			PersonID:  c.PersonID,
			CompanyID: c.CompanyID,
			Details:   map[string]string{"token": c.TokenID},
		})
	})
}

// bearer takes the token out of the Authorization header (RFC 6750 section
// 2.1). The scheme has no case (RFC 9110 section 11.1).
func bearer(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return token, ok && strings.EqualFold(scheme, "Bearer")
}

// sameDevice tells whether the header, where there is one, names the device.
func sameDevice(header []string, deviceID string) bool {
	return len(header) == 0 || len(header) == 1 && header[0] == deviceID
}

// Account is for whom a request acts, and who pays.
type Account struct {
	// ID is the person's id for the personal account, else the team's. It is ""
	// where a company token reads the catalog without naming a team, and where a
	// call is about a company as a whole.
	ID        string
	TeamID    string
	CompanyID string
	Role      company.TeamRole // in the team
	// Also are the others, where a call takes several.
	Also []Account
	// Unverified says that the operator demands a verified address, which the
	// person does not have yet: nothing may be run.
	Unverified bool
}

// May tells whether the account lets the caller do p: a person everything with
// what is theirs, a member what the role allows.
func (a Account) May(p company.Permission) bool { return a.TeamID == "" || a.Role.May(p) }

// account selects the account that the request names with team_id.
func account(ctx context.Context, q sqldb.Querier, r Rule, c Caller, team []string) (Account, error) {
	if r.Account == NoAccount {
		return Account{}, nil
	}
	if r.Account == ManyAccounts {
		return accounts(ctx, q, r, c, team)
	}
	id, err := oneTeam(team)
	if err != nil {
		return Account{}, err
	}
	return oneAccount(ctx, q, r, c, id)
}

// accounts selects all that a list names. One that is refused refuses the whole.
func accounts(ctx context.Context, q sqldb.Querier, r Rule, c Caller, team []string) (Account, error) {
	ids, err := manyTeams(team)
	if err != nil {
		return Account{}, err
	}
	var all []Account
	for _, id := range ids {
		a, err := oneAccount(ctx, q, r, c, id)
		if err != nil {
			return Account{}, err
		}
		all = append(all, a)
	}
	first := all[0]
	first.Also = all[1:]
	return first, nil
}

func oneAccount(ctx context.Context, q sqldb.Querier, r Rule, c Caller, id string) (Account, error) {
	switch {
	case c.Kind == PersonalToken && id != "":
		return Account{}, errNoTeams
	case c.Kind == CompanyToken && id == "" && r.Account == CatalogAccount:
		return Account{CompanyID: c.CompanyID}, nil
	case c.Kind == CompanyToken && id == "":
		return Account{}, selectionInvalid("team_required", "A company access token acts on a team. Name it with team_id.")
	case id == "":
		return Account{ID: c.PersonID}, nil
	}
	s, err := company.StandingOf(ctx, q, c.PersonID, id)
	if err != nil {
		return Account{}, err
	}
	if err := c.refuseTeam(s.CompanyID, s.Role); err != nil {
		return Account{}, err
	}
	if r.Needs != "" && !s.Role.May(r.Needs) {
		return Account{}, fault.New(fault.Forbidden, "Your role in this team does not allow this. Ask an admin of the team.").With("reason", "permission")
	}
	return Account{ID: id, TeamID: id, CompanyID: s.CompanyID, Role: s.Role}, nil
}

// errNoTeams refuses a team to a credential that reaches none.
var errNoTeams = selectionInvalid("team_not_allowed", "A personal access token reaches the personal account only. Leave team_id out.")

// refuseTeam is why the credential cannot act for a team of a company in which
// the person has a role, nil where it can.
func (c Caller) refuseTeam(companyID string, role company.TeamRole) error {
	switch {
	case c.Kind == PersonalToken:
		return errNoTeams
	case c.Kind == CompanyToken && companyID != c.CompanyID:
		return company.ErrNotMember
	case c.Kind == IDToken && !role.AllowsApp(c.PluginKind):
		return fault.New(fault.PluginNotAllowed, "Your role in this team does not allow this app. Ask an admin of the team.")
	}
	return nil
}

// ReachesTeam tells whether the credential can act for a team of a company in
// which the person has a role.
func (c Caller) ReachesTeam(companyID string, role company.TeamRole) bool {
	return c.refuseTeam(companyID, role) == nil
}

// ReachesPersonal tells whether the credential can act for the personal account.
func (c Caller) ReachesPersonal() bool { return c.Kind != CompanyToken }

// ReachesCompany tells whether the credential can make use of the person's
// permissions in a company: to manage it, or to read its reports.
func (c Caller) ReachesCompany(id string) bool {
	return c.Kind == IDToken || c.Kind == CompanyToken && c.CompanyID == id
}

// errNotYours is one answer for companies of others and for those that never
// were.
var errNotYours = fault.New(fault.Forbidden, "You are not a member of this company.").With("reason", "company")

// companyAccount selects the company that the request names with company_id.
// One statement tells what the person is in it at this moment.
func companyAccount(ctx context.Context, q sqldb.Querier, r Rule, c Caller, p Presented) (Account, error) {
	id, err := oneCompany(p.CompanyID)
	switch {
	case err != nil:
		return Account{}, err
	case c.Kind == CompanyToken && id == "":
		id = c.CompanyID
	case c.Kind == CompanyToken && id != c.CompanyID:
		return Account{}, errNotYours
	case id == "":
		return Account{}, fault.New(fault.Forbidden, "Name the company with company_id.").With("reason", "company")
	}
	role, of, err := company.CompanyStanding(ctx, q, c.PersonID, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return Account{}, errNotYours
	case err != nil:
		return Account{}, err
	case r.Plan != "" && of.Plan != r.Plan:
		return Account{}, fault.New(fault.Forbidden, "The plan of this company does not have this.").With("reason", "plan")
	case r.Needs != "" && !role.May(r.Needs):
		return Account{}, fault.New(fault.Forbidden, "Your role in this company does not allow this. Ask an admin of the company.").With("reason", "permission")
	}

	// The team is a filter here. Any id is as good as one of a team without runs.
	team, err := oneTeam(p.TeamID)
	if err != nil {
		return Account{}, err
	}
	if team != "" && !ids.Valid(team) {
		return Account{}, errMalformedTeam
	}
	return Account{CompanyID: of.ID}, nil
}
