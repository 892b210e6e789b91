package webhook

import "atelier/internal/base/seal"

// Sealed describes the table of webhook secrets. A keyed hash in each row
// detects manipulation.
var Sealed = seal.Table{Name: "webhook_secret", Key: []string{"account_id"}, Columns: []string{"secret", "previous", "previous_until"}}
