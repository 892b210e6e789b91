package budget

import "atelier/internal/base/seal"

// Sealed is the table of budgets: their tokens and whether they refuse runs
// beyond them.
var Sealed = seal.Table{Name: "budget", Key: []string{"team_id"}, Columns: []string{"tokens", "hard", "webhook_url"}}
