package budget

import "atelier/internal/base/seal"

// Sealed are budgets: how much, and whether they refuse what goes beyond.
var Sealed = seal.Table{Name: "budget", Key: []string{"team_id"}, Columns: []string{"tokens", "hard", "webhook_url"}}
