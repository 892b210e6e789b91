package api

import (
	"strings"

	"atelier/internal/catalog"
	"atelier/internal/fault"
	"atelier/internal/ident"
)

// account is for whom a request acts.
type account struct {
	audience catalog.Audience
}

// account selects the account that the request names with team_id. A personal
// token, the only credential so far, has the personal account.
func (p *params) account() (account, error) {
	team := p.values["team_id"]
	switch {
	case len(team) == 0 || len(team) == 1 && team[0] == "":
		return account{}, nil
	case len(team) > 1 || strings.Contains(team[0], ","):
		return account{}, selectionInvalid("several", "This call takes one team_id.")
	case !ident.Alphanumeric(team[0]):
		return account{}, selectionInvalid("malformed", "This team_id is not an id.")
	}
	return account{}, selectionInvalid("team_not_allowed", "A personal access token reaches the personal account only. Leave team_id out.")
}

func selectionInvalid(reason, message string) error {
	return fault.New(fault.AccountSelectionInvalid, message).With("reason", reason)
}
