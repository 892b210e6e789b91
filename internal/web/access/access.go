// Package access authenticates requests, selects the account that they act
// for, and authorizes them. No other package does so: every route has a Rule,
// and Admit checks the request against the rule and the current rows of the
// database.
//
//	credential       can act for                          refused by the rules
//	ID token         personal account; teams whose role   (none)
//	                 has USE_PLUGINS and accepts the
//	                 device's kind of plugin
//	web token        personal account; teams              Lasting
//	personal token   personal account                     SignedIn, Leaving,
//	                                                      Operating
//	company token    teams of its company that the        SignedIn, Leaving,
//	                 person is a member of                Operating, Personal
//
// The ID token of an app of a third party, which signed in with the
// authorization code flow, acts for the accounts that other ID tokens act for.
// The rules that refuse personal tokens refuse it.
//
// A web token is an ID token of a browser session, for the service's own
// pages. It lives for minutes in the memory of a script, so it must not create
// anything that lasts longer than the session.
//
// Routes for operators (Operating) concern all accounts. They accept ID tokens
// and web tokens of the people whom the setting operators names, if their
// e-mail address is verified. Others get FORBIDDEN with the reason operator.
//
// Reports cover a whole company. The checks for them run in the order of the
// columns below. If a check fails, the response is FORBIDDEN with the name of
// the column as the reason:
//
//	credential                     company                     plan        permission
//	ID token of a device: unless   the one that company_id     ENTERPRISE  VIEW_COMPANY_REPORTS
//	  the operator refuses it        names, if the person is               of the person's role
//	                                 a member                              in the company
//	personal token: never
//	company token                  its own; company_id may     as above    as above
//	                                 be left out
//
// Nothing about a credential is cached between requests except that its
// signature was valid: a revoked credential is refused at the next request, on
// every node. A long request is authorized again by each of its transactions
// (see Guard).
package access

import (
	"context"
	"errors"
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
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// Presented has the credentials and account parameters of a request. Headers
// are kept with all their values: a credential header that is sent twice is
// refused, because it is unclear which value applies.
type Presented struct {
	Authorization []string
	DeviceID      []string // all values of the header X-Device-Id
	TeamID        []string // all values of the query parameter team_id
	CompanyID     []string // all values of the query parameter company_id
	Address       string
	// Reads reports that the request uses a safe method, which changes nothing
	// (RFC 9110 section 9.2.1).
	Reads bool
}

// Gate authenticates and authorizes requests.
type Gate struct {
	DB      *sqldb.DB
	Devices *device.Devices
	Tokens  *idtoken.Issuer
	// RequireVerified restricts people whose e-mail address is not verified to
	// requests that only read.
	RequireVerified bool
	// Operators are the people who may operate the installation.
	Operators principal.Operators
	// RefuseOAuthReports refuses ID tokens for usage reports.
	RefuseOAuthReports bool
	Now                func() time.Time
}

// Admit authenticates and authorizes a request. If only the authorization
// fails, the returned principal still has the person and the credential, so
// that the request counts towards that person's rate limit.
func (g *Gate) Admit(ctx context.Context, r Rule, p Presented) (principal.Principal, error) {
	who, err := g.authenticateRequest(ctx, r, p)
	if err != nil {
		return principal.Principal{}, err
	}
	return g.authorizeRequest(ctx, g.DB, r, who, p)
}

// authenticated is the owner of a credential before an account is selected,
// with the data from the database that authorization needs.
type authenticated struct {
	principal.Principal
	email    string // empty for access tokens
	verified bool   // whether the e-mail address is verified
	used     time.Time
}

// authorizeRequest checks the kind of the credential, the person and the
// account against the rule. It returns the principal with the selected
// account; if the request is refused, the principal has no account. It reads
// the database through q.
func (g *Gate) authorizeRequest(ctx context.Context, q sqldb.Querier, r Rule, who authenticated, p Presented) (principal.Principal, error) {
	if !g.acceptsKind(r, who.Principal) {
		return who.Principal, fault.New(fault.Forbidden, r.refusalMessage(who.Credential.Kind)).With("reason", "credential")
	}
	if who.Credential.App && !slices.Contains(r.Kinds, principal.PersonalToken) {
		return who.Principal, errApp
	}
	if r.Lasting && who.Credential.Web {
		return who.Principal, errBrowser
	}
	unverified := g.RequireVerified && !who.verified
	if unverified && !r.acceptsUnverified(p.Reads) {
		return who.Principal, principal.ErrUnverified
	}
	if r.Operator && !g.Operators.Admits(who.Credential, who.email, who.verified) {
		return who.Principal, errNoOperator
	}

	var admitted principal.Principal
	var err error
	if r.Account == CompanyAccount {
		admitted, err = selectCompany(ctx, q, r, who.Principal, p)
	} else {
		admitted, err = selectAccount(ctx, q, r, who.Principal, p.TeamID)
	}
	if err != nil {
		return who.Principal, err
	}
	admitted.Unverified = unverified
	admitted.Operator = r.Operator
	for i := range admitted.Others {
		admitted.Others[i].Unverified = unverified
	}
	return admitted, nil
}

// errBrowser is returned to web tokens on routes that create a lasting secret
// or delete the account.
var errBrowser = fault.New(fault.Forbidden, "A page in the browser cannot do this for you. Use the account pages.").With("reason", "browser")

// errApp is returned to apps of third parties where access tokens are refused,
// too: they cannot manage people and credentials.
var errApp = fault.New(fault.Forbidden, "An app cannot do this for you. Use the account pages.").With("reason", "credential")

// errNoOperator is returned to people who do not operate the installation. It
// does not say whether they lack the permission or a verified e-mail address,
// so that it reveals no address of an operator.
var errNoOperator = fault.New(fault.Forbidden, "Only operators of this installation can do this.").With("reason", "operator")

// acceptsKind reports whether a rule accepts the caller's kind of credential.
func (g *Gate) acceptsKind(r Rule, who principal.Principal) bool {
	if r.Account == CompanyAccount && who.UsesPlugin() && g.RefuseOAuthReports {
		return false
	}
	return slices.Contains(r.Kinds, who.Credential.Kind)
}

// authenticateRequest returns the owner of the request's credential, and
// records when the credential was last used.
func (g *Gate) authenticateRequest(ctx context.Context, r Rule, p Presented) (authenticated, error) {
	token, ok := bearerToken(p.Authorization)
	if !ok {
		return authenticated{}, credential.ErrInvalid
	}
	if credential.WellFormed(token) {
		who, err := identifyToken(ctx, g.DB, token, p.Address)
		if err == nil && g.isStale(who.used) {
			err = g.touchToken(ctx, who.Principal)
		}
		return who, err
	}

	claims, err := g.Tokens.VerifyToken(ctx, token)
	if err != nil {
		return authenticated{}, err
	}
	if !r.NamesDevice && !sameDevice(p.DeviceID, claims.DeviceID) {
		return authenticated{}, credential.ErrInvalid
	}
	if claims.SessionID != "" {
		who, err := g.identifySession(ctx, g.DB, claims.PersonID, claims.SessionID, p.Address)
		if err == nil && g.isStale(who.used) {
			err = g.DB.Write(ctx, func(tx *sqldb.Tx) error { return session.Touch(ctx, tx, claims.SessionID, p.Address) })
		}
		return who, err
	}
	who, err := g.identifyDevice(ctx, g.DB, claims.PersonID, claims.DeviceID, p.Address)
	if err == nil && g.isStale(who.used) {
		err = g.DB.Write(ctx, func(tx *sqldb.Tx) error { return g.Devices.TouchDevice(ctx, tx, claims.DeviceID, p.Address) })
	}
	return who, err
}

// identifyDevice reads the device and the person of an ID token from the
// database, and checks that both are still valid.
func (g *Gate) identifyDevice(ctx context.Context, q sqldb.Querier, personID, deviceID, address string) (authenticated, error) {
	d, err := g.Devices.CheckDevice(ctx, q, deviceID)
	if err != nil {
		return authenticated{}, err
	}
	if d.PersonID != personID || d.Suspended {
		return authenticated{}, credential.ErrInvalid
	}
	who := principal.Principal{
		PersonID:   d.PersonID,
		Credential: principal.Credential{Kind: principal.IDToken, ID: deviceID, Provider: d.Provider, App: d.IsApp},
		Plugin:     d.PluginKind,
		Address:    address,
	}
	return authenticated{Principal: who, email: d.Email, verified: d.Verified, used: d.LastUsed}, nil
}

// identifySession reads the browser session and the person of a web token from
// the database, and checks that both are still valid.
func (g *Gate) identifySession(ctx context.Context, q sqldb.Querier, personID, sessionID, address string) (authenticated, error) {
	s, err := session.Check(ctx, q, sessionID, g.Now())
	if errors.Is(err, session.ErrSignedOut) || err == nil && s.PersonID != personID {
		return authenticated{}, credential.ErrInvalid
	}
	if err != nil {
		return authenticated{}, err
	}
	who := principal.Principal{
		PersonID:   s.PersonID,
		Credential: principal.Credential{Kind: principal.IDToken, ID: sessionID, Web: true, Provider: s.Provider},
		Plugin:     principal.Studio,
		Address:    address,
	}
	return authenticated{Principal: who, email: s.Email, verified: s.Verified, used: s.LastUsed}, nil
}

// identifyToken reads an access token and its owner from the database, and
// checks that both are still valid.
func identifyToken(ctx context.Context, q sqldb.Querier, token, address string) (authenticated, error) {
	h, err := credential.Check(ctx, q, token)
	if err != nil {
		return authenticated{}, err
	}
	c := principal.Credential{Kind: principal.PersonalToken, ID: h.ID, CompanyID: h.CompanyID}
	if h.CompanyID != "" {
		c.Kind = principal.CompanyToken
	}
	who := principal.Principal{PersonID: h.PersonID, Credential: c, Address: address}
	return authenticated{Principal: who, verified: h.EmailVerified, used: h.LastUsed}, nil
}

// usedPrecision is the precision of the time at which a credential was last
// used. It is recorded at most this often, because a write at every request
// would cost more than the request itself.
const usedPrecision = time.Minute

func (g *Gate) isStale(used time.Time) bool { return g.Now().Sub(used) >= usedPrecision }

func (g *Gate) touchToken(ctx context.Context, who principal.Principal) error {
	return g.DB.Write(ctx, func(tx *sqldb.Tx) error {
		first, err := credential.Touch(ctx, tx, who.Credential.ID)
		if err != nil || !first {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{
			Act:       audit.TokenFirstUsed,
			ActorID:   who.PersonID,
			PersonID:  who.PersonID,
			CompanyID: who.Credential.CompanyID,
			Details:   map[string]string{"token": who.Credential.ID},
		})
	})
}

// bearerToken returns the token in the Authorization header (RFC 6750 section
// 2.1). The scheme is case-insensitive (RFC 9110 section 11.1).
func bearerToken(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return token, ok && strings.EqualFold(scheme, "Bearer")
}

// sameDevice reports whether the X-Device-Id header, if present, is deviceID.
func sameDevice(header []string, deviceID string) bool {
	return len(header) == 0 || len(header) == 1 && header[0] == deviceID
}

// selectAccount selects the account that the request names with the parameter
// team_id.
func selectAccount(ctx context.Context, q sqldb.Querier, r Rule, who principal.Principal, team []string) (principal.Principal, error) {
	if r.Account == NoAccount {
		return who, nil
	}
	if r.Account == ManyAccounts {
		return selectAccounts(ctx, q, r, who, team)
	}
	id, err := parseTeam(team)
	if err != nil {
		return who, err
	}
	return selectTeam(ctx, q, r, who, id)
}

// selectAccounts selects all accounts in a comma-separated team_id. If one of
// them is refused, the whole request is refused.
func selectAccounts(ctx context.Context, q sqldb.Querier, r Rule, who principal.Principal, team []string) (principal.Principal, error) {
	ids, err := parseTeams(team)
	if err != nil {
		return who, err
	}
	var all []principal.Principal
	for _, id := range ids {
		one, err := selectTeam(ctx, q, r, who, id)
		if err != nil {
			return who, err
		}
		all = append(all, one)
	}
	first := all[0]
	first.Others = all[1:]
	return first, nil
}

// selectTeam selects the team with the given id, or the personal account if
// teamID is "".
func selectTeam(ctx context.Context, q sqldb.Querier, r Rule, who principal.Principal, teamID string) (principal.Principal, error) {
	isCompanyToken := who.Credential.Kind == principal.CompanyToken
	switch {
	case teamID == "" && isCompanyToken && r.Account == CatalogAccount:
		who.CompanyID = who.Credential.CompanyID
		return who, nil
	case teamID == "" && isCompanyToken:
		return who, selectionInvalid("team_required", "A company access token requires a team. Set it with team_id.")
	case teamID == "":
		who.AccountID = who.PersonID
		return who, nil
	case who.Credential.Kind == principal.PersonalToken:
		return who, who.CheckTeam("", company.TeamRole{}) // personal tokens cannot act for teams, so the membership is not read
	}
	in, err := company.TeamMembershipOf(ctx, q, who.PersonID, teamID)
	if err != nil {
		return who, err
	}
	if err := who.CheckTeam(in.Team.CompanyID, in.Role); err != nil {
		return who, err
	}
	if r.Needs != "" && !in.Role.May(r.Needs) {
		return who, fault.New(fault.Forbidden, "Your role in this team does not allow this. Ask an admin of the team.").With("reason", "permission")
	}
	who.AccountID = teamID
	who.TeamID = teamID
	who.CompanyID = in.Team.CompanyID
	who.Role = in.Role
	return who, nil
}

// errNotInCompany is returned both for unknown companies and for companies that
// the person is not a member of, so that it does not reveal which companies
// exist.
var errNotInCompany = fault.New(fault.Forbidden, "You are not a member of this company.").With("reason", "company")

// selectCompany selects the company that the request names with company_id,
// and checks the company's plan and the person's current role in it.
func selectCompany(ctx context.Context, q sqldb.Querier, r Rule, who principal.Principal, p Presented) (principal.Principal, error) {
	isCompanyToken := who.Credential.Kind == principal.CompanyToken
	id, err := parseCompany(p.CompanyID)
	switch {
	case err != nil:
		return who, err
	case isCompanyToken && id == "":
		id = who.Credential.CompanyID
	case isCompanyToken && id != who.Credential.CompanyID:
		return who, errNotInCompany
	case id == "":
		return who, fault.New(fault.Forbidden, "A company is required. Set it with company_id.").With("reason", "company")
	}
	role, of, err := company.CompanyMembershipOf(ctx, q, who.PersonID, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return who, errNotInCompany
	case err != nil:
		return who, err
	case r.Plan != "" && of.Plan != r.Plan:
		return who, fault.New(fault.Forbidden, "The plan of this company does not include this feature.").With("reason", "plan")
	case r.Needs != "" && !role.May(r.Needs):
		return who, fault.New(fault.Forbidden, "Your role in this company does not allow this. Ask an admin of the company.").With("reason", "permission")
	}

	// In reports the team is only a filter, so an unknown id is not an error:
	// it selects no runs.
	team, err := parseTeam(p.TeamID)
	if err != nil {
		return who, err
	}
	if team != "" && !ids.Valid(team) {
		return who, errMalformedTeam
	}
	who.CompanyID = of.ID
	return who, nil
}
