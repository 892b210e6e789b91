package report

import (
	"context"

	"atelier/internal/base/sqldb"
)

// TeamStorage is what a team stores now.
type TeamStorage struct {
	TeamID, Name string
	Used         int64  // bytes
	Limit        *int64 // the team's own, nil: it has none
}

// maxStorageTeams bounds how many teams Storage tells of.
const maxStorageTeams = 1000

// Storage tells what the teams of a company store, or one of them, the one with
// the most first.
func Storage(ctx context.Context, tx *sqldb.Tx, companyID, teamID string) ([]TeamStorage, error) {
	return teamStorage(ctx, tx, companyID, teamID)
}
