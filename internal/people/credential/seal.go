package credential

import "atelier/internal/base/seal"

// Sealed are access tokens: whose they are, and what they are recognised by.
var Sealed = seal.Table{Name: "access_token", Key: []string{"id"}, Columns: []string{"person_id", "company_id", "hash"}}

// SealedSCIMTokens are the tokens of companies' directories.
var SealedSCIMTokens = seal.Table{Name: "scim_token", Key: []string{"company_id"}, Columns: []string{"hash"}}
