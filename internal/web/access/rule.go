package access

import (
	"slices"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// Selection is how a route picks the account that it acts for.
type Selection int

// The ways to select an account.
const (
	// NoAccount routes are about the person; team_id says nothing to them.
	NoAccount Selection = iota
	// OneAccount routes act for the personal account or one team.
	OneAccount
	// CatalogAccount is OneAccount where a company token may leave the team out.
	CatalogAccount
	// ManyAccounts routes take a comma-separated list of teams.
	ManyAccounts
	// CompanyAccount routes are about a whole company, which company_id names.
	// Whether the person is in the team that team_id names does not matter.
	CompanyAccount
)

// Rule is what a route asks of a request. The zero rule lets nobody in.
type Rule struct {
	// Open routes need no credential, and Admit is not asked.
	Open    bool
	Kinds   []principal.Kind
	Account Selection
	// Needs is what the role in the team, or of CompanyAccount in the company,
	// must allow; the personal account allows everything.
	Needs company.Permission
	// Plan is the one that the company of CompanyAccount must have, "" for any.
	Plan company.Plan
	// Unverified lets people in whose address is not verified yet, whatever the
	// operator demands elsewhere. Reading is open to them without it.
	Unverified bool
	// Secret routes give something away that lasts: unverified people must not
	// even read it.
	Secret bool
	// NamesDevice routes take X-Device-Id as what they are about, not as a proof.
	NamesDevice bool
}

// everyKind accepts all credentials of the API.
var everyKind = []principal.Kind{principal.IDToken, principal.PersonalToken, principal.CompanyToken}

// The rules that routes choose from.
var (
	// Open is for strangers.
	Open = Rule{Open: true}
	// Catalog is for reading what there is.
	Catalog = Rule{Kinds: everyKind, Account: CatalogAccount}
	// ForAccount is for acting for an account and seeing what it has.
	ForAccount = Rule{Kinds: everyKind, Account: OneAccount}
	// ForAccounts is for looking at what several accounts have.
	ForAccounts = Rule{Kinds: everyKind, Account: ManyAccounts}
	// Generating is for starting runs that an account pays for.
	Generating = Rule{Kinds: everyKind, Account: OneAccount, Needs: company.Generate}
	// Pricing is for asking what a run would cost, and whether it could be started.
	Pricing = Rule{Kinds: everyKind, Account: OneAccount, Unverified: true}
	// Managing is for the secrets that belong to an account as a whole.
	Managing = Rule{Kinds: everyKind, Account: OneAccount, Needs: company.ManageTeam, Secret: true}
	// Reporting is for reading what a company uses.
	Reporting = Rule{Kinds: []principal.Kind{principal.IDToken, principal.CompanyToken}, Account: CompanyAccount, Plan: company.EnterprisePlan, Needs: company.ViewCompanyReports}
	// Identity is for asking who one is.
	Identity = Rule{Kinds: everyKind, Unverified: true}
	// Personal is for what only the person's own credentials may do.
	Personal = Rule{Kinds: []principal.Kind{principal.IDToken, principal.PersonalToken}}
	// SignedIn is for managing people and credentials: an access token, which
	// may lie in a script, must not be able to make others.
	SignedIn = Rule{Kinds: []principal.Kind{principal.IDToken}}
	// Leaving is for ending what one is signed in with.
	Leaving = Rule{Kinds: []principal.Kind{principal.IDToken}, Unverified: true}
	// LeavingDevice is Leaving for a device that the request names.
	LeavingDevice = Rule{Kinds: []principal.Kind{principal.IDToken}, Unverified: true, NamesDevice: true}
)

// acceptsUnverified reports whether people come in whose address has to be verified.
func (r Rule) acceptsUnverified(reads bool) bool { return r.Unverified || reads && !r.Secret }

// refusalMessage tells a caller with the wrong kind of credential what is needed.
func (r Rule) refusalMessage(k principal.Kind) string {
	if r.Account == CompanyAccount {
		return "This call needs an access token of the company."
	}
	if k == principal.CompanyToken && len(r.Kinds) > 1 {
		return "A company access token reaches its company's teams only."
	}
	return "This call needs a signed-in person: an access token cannot make it."
}

// parseTeam reads a parameter that names at most one team; "" is as good as
// absent.
func parseTeam(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || strings.Contains(values[0], ","):
		return "", selectionInvalid("several", "This call takes one team_id.")
	case values[0] != "" && !ids.Alphanumeric(values[0]):
		return "", errMalformedTeam
	}
	return values[0], nil
}

// parseCompany reads a parameter that names at most one company; "" is as good as
// absent.
func parseCompany(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", companyInvalid("Give this parameter once.")
	case values[0] != "" && !ids.Alphanumeric(values[0]):
		return "", companyInvalid("This is not an id.")
	}
	return values[0], nil
}

func companyInvalid(message string) error {
	return fault.New(fault.Invalid, "Some parameters are not valid.").Field("company_id", message)
}

// parseTeams reads a parameter that names any number of teams, none of them
// twice; "" is as good as absent.
func parseTeams(values []string) ([]string, error) {
	if len(values) > 1 {
		return nil, selectionInvalid("several", "Give team_id once, with a comma between the teams.")
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
			return nil, selectionInvalid("malformed", "These are too many teams for one call.")
		}
		if !slices.Contains(teamIDs, id) {
			teamIDs = append(teamIDs, id)
		}
	}
	return teamIDs, nil
}

var errMalformedTeam = selectionInvalid("malformed", "This team_id is not an id.")

// maxTeams is how many teams one call can look at.
const maxTeams = 100

func selectionInvalid(reason, message string) error {
	return fault.New(fault.AccountSelectionInvalid, message).With("reason", reason)
}
