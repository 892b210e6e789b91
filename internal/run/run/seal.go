package run

import (
	"strconv"

	"atelier/internal/base/seal"
	"atelier/internal/base/sqldb"
)

// Sealed is the table of runs: who requested what, from which account and at
// which price.
var Sealed = seal.Table{Name: "run", Key: []string{"id"}, Columns: []string{
	"library_id", "person_id", "account_id", "team_id", "credential", "credential_id", "tool_id", "tool_hash", "num_results",
	"unit_tokens", "tokens_held", "allowance_held", "allowance_month",
}}

// SealedResults is the table of results: which run made each, and for which
// account.
var SealedResults = seal.Table{Name: "result", Key: []string{"id"}, Columns: []string{"run_id", "place", "asset_id", "account_id", "tool_id"}}

func (r Run) sealedHash(tx *sqldb.Tx) string {
	format := func(n int64) string { return strconv.FormatInt(n, 10) }
	return Sealed.SealOf(tx, r.ID, r.LibraryID, r.PersonID, r.AccountID, r.TeamID, r.Credential, r.CredentialID, r.ToolID, r.ToolHash, format(r.NumResults),
		format(r.UnitTokens), format(r.TokensHeld), format(r.AllowanceHeld), r.AllowanceMonth)
}
