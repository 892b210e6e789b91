package person

import (
	"context"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Notice is something a person was told about their account.
type Notice struct {
	ID      string
	Kind    string
	Text    string
	Created time.Time
}

// Notify tells a person something that their account page shows.
func Notify(ctx context.Context, tx *sqldb.Tx, personID, kind, text string) error {
	return insertNotice(ctx, tx, personID, Notice{ID: ids.New(), Kind: kind, Text: text, Created: tx.Now})
}
