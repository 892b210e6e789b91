package person

import (
	"context"
	"slices"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// CreateSetupToken returns a new set-up token, which permits the first sign-up
// on an installation. It returns "" if the installation already has a person.
// The first sign-up invalidates all set-up tokens.
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

// IsSetupToken reports whether token is a valid set-up token.
func IsSetupToken(ctx context.Context, tx *sqldb.Tx, token string) (bool, error) {
	if len(token) != secretChars {
		return false, nil
	}
	return hasSetup(ctx, tx, ids.Hash(token))
}

// UseSetupToken deletes all set-up tokens and reports whether the given token
// was one of them. Of several concurrent calls only one returns true, even with
// different tokens.
func UseSetupToken(ctx context.Context, tx *sqldb.Tx, token string) (bool, error) {
	offers, err := takeSetups(ctx, tx)
	return slices.Contains(offers, ids.Hash(token)), err
}
