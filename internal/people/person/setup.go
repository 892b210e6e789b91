package person

import (
	"context"
	"slices"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// CreateSetupToken returns a token for the first sign-up of a service without
// people, or "" if there are people already. The first sign-up ends all tokens.
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

// IsSetupToken reports whether a token was created and is still valid.
func IsSetupToken(ctx context.Context, tx *sqldb.Tx, token string) (bool, error) {
	if len(token) != secretChars {
		return false, nil
	}
	return hasSetup(ctx, tx, ids.Hash(token))
}

// UseSetupToken deletes all set-up tokens and reports whether the given token
// was one of them. Of several concurrent calls, with one token or several, only
// one succeeds.
func UseSetupToken(ctx context.Context, tx *sqldb.Tx, token string) (bool, error) {
	offers, err := takeSetups(ctx, tx)
	return slices.Contains(offers, ids.Hash(token)), err
}
