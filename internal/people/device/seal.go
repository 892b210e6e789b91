package device

import "atelier/internal/base/seal"

// Sealed is the table of devices. Its columns about the owner, the sign-in and
// the revocation are protected against manipulation by a keyed hash.
var Sealed = seal.Table{Name: "device", Key: []string{"id"}, Columns: []string{"person_id", "plugin_kind", "provider", "revoked"}}

// SealedRefreshTokens is the table of refresh tokens. Its device and generation
// columns are protected against manipulation by a keyed hash.
var SealedRefreshTokens = seal.Table{Name: "refresh_token", Key: []string{"hash"}, Columns: []string{"device_id", "generation"}}
