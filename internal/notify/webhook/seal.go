package webhook

import "atelier/internal/base/seal"

// Sealed are the secrets that events are signed with.
var Sealed = seal.Table{Name: "webhook_secret", Key: []string{"account_id"}, Columns: []string{"secret", "previous", "previous_until"}}
