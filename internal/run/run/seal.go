package run

import (
	"strconv"

	"atelier/internal/base/seal"
	"atelier/internal/base/sqldb"
)

// Sealed describes the columns of the table run that are protected by a keyed
// hash: who requested the run, which account pays for it, and its price.
var Sealed = seal.Table{Name: "run", Key: []string{"id"}, Columns: []string{
	"library_id", "person_id", "account_id", "team_id", "credential", "credential_id", "tool_id", "tool_hash", "num_results",
	"unit_tokens", "tokens_held", "allowance_held", "allowance_month",
}}

// SealedResults describes the columns of the table result that are protected by
// a keyed hash: the run, the file and the account of the result.
var SealedResults = seal.Table{Name: "result", Key: []string{"id"}, Columns: []string{"run_id", "place", "asset_id", "account_id", "tool_id"}}

func (r Run) sealedHash(tx *sqldb.Tx) string {
	format := func(n int64) string { return strconv.FormatInt(n, 10) }
	return Sealed.SealOf(tx, r.ID, r.LibraryID, r.PersonID, r.AccountID, r.TeamID, r.Credential, r.CredentialID, r.ToolID, r.ToolHash, format(r.NumResults),
		format(r.UnitTokens), format(r.TokensHeld), format(r.AllowanceHeld), r.AllowanceMonth)
}
