package credential

import "atelier/internal/base/seal"

// Sealed is the table of access tokens. Its owner and hash columns are
// protected against manipulation by a keyed hash.
var Sealed = seal.Table{Name: "access_token", Key: []string{"id"}, Columns: []string{"person_id", "company_id", "hash"}}

// SealedSCIMTokens is the table of companies' SCIM tokens. Its hash column is
// protected against manipulation by a keyed hash.
var SealedSCIMTokens = seal.Table{Name: "scim_token", Key: []string{"company_id"}, Columns: []string{"hash"}}
