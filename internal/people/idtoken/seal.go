package idtoken

import "atelier/internal/base/seal"

// Sealed is the table of signing keys, whose key columns are protected against
// manipulation by a keyed hash. The time of replacement is not protected:
// several nodes may replace a key at once, and a forged time could only make a
// key expire.
var Sealed = seal.Table{Name: "signing_key", Key: []string{"id"}, Columns: []string{"public", "private"}}
