package budget

import "atelier/internal/base/seal"

// Sealed describes the table of budgets. A keyed hash in each row detects
// manipulation.
var Sealed = seal.Table{
	Name:     "budget",
	Key:      []string{"team_id"},
	Columns:  []string{"tokens", "hard", "webhook_url"},
	Booleans: []string{"hard"},
}
