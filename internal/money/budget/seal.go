package budget

import "atelier/internal/base/seal"

// Sealed describes the table of budgets, whose rows have a keyed hash to detect
// manipulation.
var Sealed = seal.Table{Name: "budget", Key: []string{"team_id"}, Columns: []string{"tokens", "hard", "webhook_url"}}
