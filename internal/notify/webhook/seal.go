package webhook

import "atelier/internal/base/seal"

// Sealed describes the table of webhook secrets, whose rows are sealed.
var Sealed = seal.Table{Name: "webhook_secret", Key: []string{"account_id"}, Columns: []string{"secret", "previous", "previous_until"}}
