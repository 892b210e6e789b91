package person

import (
	"context"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Notice is a message about a person's account, shown on their account page.
type Notice struct {
	ID      string
	Kind    string
	Text    string
	Created time.Time
}

// Notify adds a notice to a person's account page.
func Notify(ctx context.Context, tx *sqldb.Tx, personID, kind, text string) error {
	return insertNotice(ctx, tx, personID, Notice{ID: ids.New(), Kind: kind, Text: text, Created: tx.Now})
}
