package device

import "atelier/internal/base/seal"

// Sealed are devices: whose they are, and whether they are revoked.
var Sealed = seal.Table{Name: "device", Key: []string{"id"}, Columns: []string{"person_id", "plugin_kind", "provider", "revoked"}}

// SealedRefreshTokens are which device a refresh token is of.
var SealedRefreshTokens = seal.Table{Name: "refresh_token", Key: []string{"hash"}, Columns: []string{"device_id", "generation"}}
