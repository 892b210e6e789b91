package idtoken

import "atelier/internal/base/seal"

// Sealed are the keys that ID tokens are verified with. When one was replaced is
// left out: many nodes may do that at once, and it only ends a key.
var Sealed = seal.Table{Name: "signing_key", Key: []string{"id"}, Columns: []string{"public", "private"}}
