package access

import (
	"strings"

	"atelier/internal/fault"
	"atelier/internal/ident"
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
)

// Rule is what a route asks of a request. The zero rule lets nobody in.
type Rule struct {
	// Open routes need no credential, and Admit is not asked.
	Open    bool
	Kinds   []Kind
	Account Selection
	// Unverified lets people in whose address is not verified yet, whatever the
	// operator demands elsewhere.
	Unverified bool
	// NamesDevice routes take X-Device-Id as what they are about, not as a proof.
	NamesDevice bool
}

// The rules that routes choose from.
var (
	// Open is for strangers.
	Open = Rule{Open: true}
	// Catalog is for reading what there is.
	Catalog = Rule{Kinds: []Kind{IDToken, PersonalToken, CompanyToken}, Account: CatalogAccount}
	// Identity is for asking who one is.
	Identity = Rule{Kinds: []Kind{IDToken, PersonalToken, CompanyToken}, Unverified: true}
	// Personal is for what only the person's own credentials may do.
	Personal = Rule{Kinds: []Kind{IDToken, PersonalToken}}
	// SignedIn is for managing people and credentials: an access token, which
	// may lie in a script, must not be able to make others.
	SignedIn = Rule{Kinds: []Kind{IDToken}}
	// Leaving is for ending what one is signed in with.
	Leaving = Rule{Kinds: []Kind{IDToken}, Unverified: true}
	// LeavingDevice is Leaving for a device that the request names.
	LeavingDevice = Rule{Kinds: []Kind{IDToken}, Unverified: true, NamesDevice: true}
)

// instead tells a caller with the wrong kind of credential what is needed.
func (r Rule) instead(k Kind) string {
	if k == CompanyToken && len(r.Kinds) > 1 {
		return "A company access token reaches its company's teams only."
	}
	return "This call needs a signed-in person: an access token cannot make it."
}

// oneTeam reads a parameter that names at most one team; "" is as good as
// absent.
func oneTeam(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || strings.Contains(values[0], ","):
		return "", selectionInvalid("several", "This call takes one team_id.")
	case values[0] != "" && !ident.Alphanumeric(values[0]):
		return "", selectionInvalid("malformed", "This team_id is not an id.")
	}
	return values[0], nil
}

func selectionInvalid(reason, message string) error {
	return fault.New(fault.AccountSelectionInvalid, message).With("reason", reason)
}
