package webhook

import "atelier/internal/base/seal"

// Sealed is the table of the secrets that sign events.
var Sealed = seal.Table{Name: "webhook_secret", Key: []string{"account_id"}, Columns: []string{"secret", "previous", "previous_until"}}
