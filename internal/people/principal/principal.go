// Package principal defines the authenticated caller of a request. One
// Principal is created per request, and all services use it.
//
//	credential        reaches                                 made by
//	ID token          personal account, teams whose role      access.Gate.Admit
//	                  allows the device's kind of plugin
//	personal token    personal account                        access.Gate.Admit
//	company token     teams of one company                    access.Gate.Admit
//	web token         personal account, teams                 access.Gate.Admit
//	browser session   everything of the person                ForSession
//	none              everything (a command on the machine)   Operator
//
// On routes for operators, access.Gate.Admit marks the principals of the people
// whom Operators admits as Operator, too.
package principal

import (
	"atelier/internal/base/fault"
	"atelier/internal/people/company"
)

// Kind is the kind of credential with which a request was authenticated.
type Kind string

// The kinds of credentials. The values are stored with generation runs.
const (
	IDToken        Kind = "id_token"
	PersonalToken  Kind = "personal_token"
	CompanyToken   Kind = "company_token"
	BrowserSession Kind = "browser_session"
)

// Studio is the plugin name of runs that were started in the browser, with a
// web token.
const Studio = "studio"

// Credential identifies the credential with which a request was authenticated.
type Credential struct {
	Kind Kind
	// ID is the id of the device for an ID token, of the session for a browser
	// and its web tokens, or of the access token.
	ID string
	// CompanyID is the only company for which a company access token can act.
	// It is empty for the other kinds of credentials.
	CompanyID string
	// Web marks a web token: a short-lived ID token of a browser session, for
	// the service's own pages.
	Web bool
	// App marks the ID token of an app of a third party, which a person has
	// allowed to act for them.
	App bool
	// Provider is the way in which the person signed in on the device or in the
	// browser: "password" or the name of an OpenID provider. It is empty for
	// access tokens.
	Provider string
}

// Principal is an authenticated caller acting for one account. The zero
// Principal has no permissions.
type Principal struct {
	PersonID string
	// AccountID is the account that the request acts for and that pays: the id
	// of the person or of the team. It is empty if the request concerns the
	// person or a whole company, and if a company token reads the catalog
	// without a team.
	AccountID  string
	TeamID     string           // empty for the personal account
	CompanyID  string           // company of the account, empty if there is none
	Role       company.TeamRole // the person's role in the team
	Credential Credential
	// Plugin is the kind of plugin that the device reported, or empty if it
	// reported none. UsesPlugin distinguishes a plugin that reported no kind
	// from a browser.
	Plugin  string
	Address string // IP address of the client
	// Operator marks an admin command on the server itself, which has no
	// person, or a request of an operator to a route for operators. All
	// permission checks are skipped.
	Operator bool
	// Unverified means that the installation requires a verified e-mail address
	// and the person has not verified theirs. Runs are refused.
	Unverified bool
	// Others are the caller's principals for further accounts if a request
	// concerns several accounts; see Accounts.
	Others []Principal
}

// Operator returns the principal of admin commands on the server.
func Operator() Principal { return Principal{Operator: true} }

// ForSession returns the principal of a person who is signed in with a browser.
// The principal acts for the personal account.
func ForSession(personID, sessionID, provider, address string) Principal {
	return Principal{
		PersonID:   personID,
		AccountID:  personID,
		Credential: Credential{Kind: BrowserSession, ID: sessionID, Provider: provider},
		Address:    address,
	}
}

// ErrUnverified is returned to people who must verify their e-mail address first.
var ErrUnverified = fault.New(fault.EmailNotVerified, "Verify your e-mail address first: open the link that was sent to you.")

// May reports whether the principal's team role includes perm. For the personal
// account it always returns true.
//
// Company permissions are not checked here, but in the transaction that uses
// them, which locks the membership.
func (p Principal) May(perm company.Permission) bool {
	return p.Operator || p.TeamID == "" || p.Role.May(perm)
}

// Accounts returns one principal for each account that the request concerns.
func (p Principal) Accounts() []Principal {
	first := p
	first.Others = nil
	return append([]Principal{first}, p.Others...)
}

// AccountIDs returns the ids of the accounts that the request concerns. It is
// empty if no account was selected.
func (p Principal) AccountIDs() (accountIDs []string) {
	for _, account := range p.Accounts() {
		if account.AccountID != "" {
			accountIDs = append(accountIDs, account.AccountID)
		}
	}
	return accountIDs
}

// DeviceID returns the id of the device if the credential is an ID token,
// otherwise "".
func (p Principal) DeviceID() string {
	if !p.UsesPlugin() {
		return ""
	}
	return p.Credential.ID
}

// SessionID returns the id of the browser session that the credential belongs
// to. It returns "" for credentials of devices and for access tokens.
func (p Principal) SessionID() string {
	if p.Credential.Web || p.Credential.Kind == BrowserSession {
		return p.Credential.ID
	}
	return ""
}

// UsesPlugin reports whether the request comes from an app on a device. Such a
// request can only act for teams in which the person's role allows the app's
// kind of plugin.
func (p Principal) UsesPlugin() bool { return p.Credential.Kind == IDToken && !p.Credential.Web }

var errPersonalOnly = fault.New(fault.AccountSelectionInvalid, "A personal access token can be used only for the personal account. Omit team_id.").
	With("reason", "team_not_allowed")

var errPluginNotAllowed = fault.New(fault.PluginNotAllowed, "Your role in this team does not allow this app. Ask an admin of the team.")

// CheckTeam returns an error if the credential cannot act for a team of the
// given company in which the person has the given role.
func (p Principal) CheckTeam(companyID string, role company.TeamRole) error {
	switch {
	case p.Credential.Kind == PersonalToken:
		return errPersonalOnly
	case p.Credential.Kind == CompanyToken && companyID != p.Credential.CompanyID:
		return company.ErrNotMember
	case p.UsesPlugin() && !role.AllowsApp(p.Plugin):
		return errPluginNotAllowed
	}
	return nil
}

// ReachesTeam reports whether the credential can act for a team of the given
// company in which the person has the given role.
func (p Principal) ReachesTeam(companyID string, role company.TeamRole) bool {
	return p.CheckTeam(companyID, role) == nil
}

// ReachesPersonal reports whether the credential can act for the person's
// personal account.
func (p Principal) ReachesPersonal() bool { return p.Credential.Kind != CompanyToken }

// ReachesCompany reports whether the credential can use the person's
// permissions in a company, for example to manage it or to read its reports.
func (p Principal) ReachesCompany(companyID string) bool {
	switch p.Credential.Kind {
	case IDToken, BrowserSession:
		return true
	case CompanyToken:
		return p.Credential.CompanyID == companyID
	case PersonalToken:
	}
	return false
}
