package asset

import "atelier/internal/base/seal"

// Sealed are files: whose they are, where their bytes lie and what these are.
var Sealed = seal.Table{Name: "asset", Key: []string{"id"}, Columns: []string{"account_id", "mime_type", "size_bytes", "sha256", "blob", "thumb", "preview"}}

// SealedUploads are whose files people brought.
var SealedUploads = seal.Table{Name: "upload", Key: []string{"id"}, Columns: []string{"account_id", "person_id", "asset_id"}}
