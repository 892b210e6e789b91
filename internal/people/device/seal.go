package device

import "atelier/internal/base/seal"

// Sealed is the table of devices, with their owners and revocations.
var Sealed = seal.Table{Name: "device", Key: []string{"id"}, Columns: []string{"person_id", "plugin_kind", "provider", "revoked"}}

// SealedRefreshTokens is the table of refresh tokens, with their devices.
var SealedRefreshTokens = seal.Table{Name: "refresh_token", Key: []string{"hash"}, Columns: []string{"device_id", "generation"}}
