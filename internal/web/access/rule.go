package access

import (
	"slices"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// Selection is the way in which a route selects the account that it acts for.
type Selection int

// The ways in which a route can select an account.
const (
	// NoAccount routes concern the person and ignore team_id.
	NoAccount Selection = iota
	// OneAccount routes act for the personal account or one team.
	OneAccount
	// CatalogAccount is OneAccount, except that a company token may omit the
	// team.
	CatalogAccount
	// ManyAccounts routes accept a comma-separated list of teams.
	ManyAccounts
	// CompanyAccount routes concern a whole company, named by company_id. The
	// person need not be a member of the team that team_id names.
	CompanyAccount
)

// Rule has the access requirements of a route. The zero rule refuses every
// request.
type Rule struct {
	// Open routes need no credential; Admit is not called for them.
	Open    bool
	Kinds   []principal.Kind
	Account Selection
	// Needs is the permission that the person's role must include: the role in
	// the company for CompanyAccount, otherwise the role in the team. The
	// personal account has all permissions.
	Needs company.Permission
	// Plan is the plan that the company must have on a CompanyAccount route.
	// "" accepts any plan.
	Plan company.Plan
	// Unverified allows people whose e-mail address is not verified, even if
	// the operator requires verification. Routes that only read allow them
	// anyway.
	Unverified bool
	// Secret routes return a long-lived secret, which people whose e-mail
	// address is not verified must not read.
	Secret bool
	// Lasting routes create a secret that outlives a browser session, or delete
	// the account. They refuse web tokens.
	Lasting bool
	// Operator routes concern the whole installation. They are only for the
	// people whom the setting operators names, with a verified e-mail address.
	Operator bool
	// NamesDevice routes use the X-Device-Id header as the device to act on,
	// and do not compare it with the credential.
	NamesDevice bool
}

// everyKind lists all kinds of credentials that the API accepts.
var everyKind = []principal.Kind{principal.IDToken, principal.PersonalToken, principal.CompanyToken}

// The rules of the service's routes.
var (
	// Open is for requests without a credential.
	Open = Rule{Open: true}
	// Catalog is for reading the catalog of tools.
	Catalog = Rule{Kinds: everyKind, Account: CatalogAccount}
	// ForAccount is for routes that act for an account or read its data.
	ForAccount = Rule{Kinds: everyKind, Account: OneAccount}
	// ForAccounts is for reading the data of several accounts.
	ForAccounts = Rule{Kinds: everyKind, Account: ManyAccounts}
	// Generating is for starting runs that an account pays for.
	Generating = Rule{Kinds: everyKind, Account: OneAccount, Needs: company.Generate}
	// Pricing is for requesting the price of a run and whether it could be
	// started.
	Pricing = Rule{Kinds: everyKind, Account: OneAccount, Unverified: true}
	// Managing is for managing the secrets that belong to a whole account.
	Managing = Rule{Kinds: everyKind, Account: OneAccount, Needs: company.ManageTeam, Secret: true}
	// Reporting is for reading the usage reports of a company.
	Reporting = Rule{Kinds: []principal.Kind{principal.IDToken, principal.CompanyToken}, Account: CompanyAccount, Plan: company.EnterprisePlan, Needs: company.ViewCompanyReports}
	// Identity is for reading the caller's own identity.
	Identity = Rule{Kinds: everyKind, Unverified: true}
	// Personal is for actions that company tokens must not perform.
	Personal = Rule{Kinds: []principal.Kind{principal.IDToken, principal.PersonalToken}}
	// SignedIn is for managing people and credentials. Access tokens are
	// refused: a token may be stored in a script, and must not be able to
	// create further credentials.
	SignedIn = Rule{Kinds: []principal.Kind{principal.IDToken}}
	// Lasting is for creating and replacing credentials, and for deleting the
	// account.
	Lasting = Rule{Kinds: []principal.Kind{principal.IDToken}, Lasting: true}
	// Operating is for operating the installation: its state, and the work and
	// accounts of all people.
	Operating = Rule{Kinds: []principal.Kind{principal.IDToken}, Operator: true}
	// Leaving is for signing out, which revokes the caller's own credential.
	Leaving = Rule{Kinds: []principal.Kind{principal.IDToken}, Unverified: true}
	// LeavingDevice is for signing out a device that the request names.
	LeavingDevice = Rule{Kinds: []principal.Kind{principal.IDToken}, Unverified: true, NamesDevice: true}
)

// acceptsUnverified reports whether the rule allows people whose e-mail
// address is not yet verified. reads reports that the request changes nothing.
func (r Rule) acceptsUnverified(reads bool) bool { return r.Unverified || reads && !r.Secret }

// refusalMessage returns the error message for a caller with the wrong kind of
// credential.
func (r Rule) refusalMessage(k principal.Kind) string {
	if r.Account == CompanyAccount {
		return "This request requires an access token of the company."
	}
	if k == principal.CompanyToken && len(r.Kinds) > 1 {
		return "A company access token can be used only for the teams of its company."
	}
	return "This request requires a signed-in person. Access tokens are not accepted."
}

// parseTeam parses a team_id parameter that names at most one team. It returns
// "" if the parameter is absent or empty.
func parseTeam(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || strings.Contains(values[0], ","):
		return "", selectionInvalid("several", "This request accepts only one team_id.")
	case values[0] != "" && !ids.Alphanumeric(values[0]):
		return "", errMalformedTeam
	}
	return values[0], nil
}

// parseCompany parses a company_id parameter that names at most one company.
// It returns "" if the parameter is absent or empty.
func parseCompany(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", companyInvalid("Send this parameter only once.")
	case values[0] != "" && !ids.Alphanumeric(values[0]):
		return "", companyInvalid("Must be a valid id.")
	}
	return values[0], nil
}

func companyInvalid(message string) error {
	return fault.New(fault.Invalid, "Some parameters are not valid.").Field("company_id", message)
}

// parseTeams parses a comma-separated team_id parameter and drops duplicates.
// If the parameter is absent or empty, the returned list contains only "".
func parseTeams(values []string) ([]string, error) {
	if len(values) > 1 {
		return nil, selectionInvalid("several", "Send team_id only once, with commas between the teams.")
	}
	if len(values) == 0 || values[0] == "" {
		return []string{""}, nil
	}
	var teamIDs []string
	for id := range strings.SplitSeq(values[0], ",") {
		if !ids.Alphanumeric(id) {
			return nil, errMalformedTeam
		}
		if len(teamIDs) == maxTeams {
			return nil, selectionInvalid("malformed", "The request names too many teams.")
		}
		if !slices.Contains(teamIDs, id) {
			teamIDs = append(teamIDs, id)
		}
	}
	return teamIDs, nil
}

var errMalformedTeam = selectionInvalid("malformed", "team_id must be a valid id.")

// maxTeams is the maximum number of teams in the team_id of one request.
const maxTeams = 100

func selectionInvalid(reason, message string) error {
	return fault.New(fault.AccountSelectionInvalid, message).With("reason", reason)
}
