package idtoken

import "atelier/internal/base/seal"

// Sealed is the table of keys that verify ID tokens. The time of replacement is
// not sealed: several nodes may replace a key at once, and the time can only
// end a key.
var Sealed = seal.Table{Name: "signing_key", Key: []string{"id"}, Columns: []string{"public", "private"}}
