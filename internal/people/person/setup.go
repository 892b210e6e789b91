package person

import (
	"context"
	"slices"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// CreateSetupToken makes a token for whoever sets up a service that has nobody yet.
// It is "" when there is somebody. Tokens die with the first person.
func CreateSetupToken(ctx context.Context, tx *sqldb.Tx) (string, error) {
	if err := lockSetups(ctx, tx); err != nil {
		return "", err
	}
	some, err := hasPeople(ctx, tx)
	if err != nil || some {
		return "", err
	}
	token := ids.Text(secretChars)
	return token, insertSetup(ctx, tx, ids.Hash(token))
}

// IsSetupToken reports whether a token was offered and still counts.
func IsSetupToken(ctx context.Context, tx *sqldb.Tx, token string) (bool, error) {
	if len(token) != secretChars {
		return false, nil
	}
	return hasSetup(ctx, tx, ids.Hash(token))
}

// UseSetupToken ends all offers and reports whether the token was one of them: of those
// who come at once, with one token or with several, one is first.
func UseSetupToken(ctx context.Context, tx *sqldb.Tx, token string) (bool, error) {
	offers, err := takeSetups(ctx, tx)
	return slices.Contains(offers, ids.Hash(token)), err
}
