package asset

import "atelier/internal/base/seal"

// SealedAssets are the columns of the table asset that a row's seal (a keyed
// hash that reveals changes) covers: owner, content and blob keys.
var SealedAssets = seal.Table{Name: "asset", Key: []string{"id"}, Columns: []string{"account_id", "mime_type", "size_bytes", "sha256", "blob", "thumb", "preview"}}

// SealedUploads are the columns of the table upload that a row's seal (a keyed
// hash that reveals changes) covers: the account, the person and the file.
var SealedUploads = seal.Table{Name: "upload", Key: []string{"id"}, Columns: []string{"account_id", "person_id", "asset_id"}}
