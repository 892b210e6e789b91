package person

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"atelier/internal/ident"
	"atelier/internal/sqldb"
)

// setupChars makes a set-up token that nobody guesses: 238 bits.
const setupChars = 40

// OfferSetup makes a token for whoever sets up a service that has nobody yet.
// It is "" when there is somebody. Tokens die with the first person.
func OfferSetup(ctx context.Context, tx *sqldb.Tx) (string, error) {
	some, err := exists(ctx, tx)
	if err != nil || some {
		return "", err
	}
	token := ident.Text(setupChars)
	return token, insertSetup(ctx, tx, setupHash(token))
}

// MaySetup tells whether a token was offered and still counts.
func MaySetup(ctx context.Context, tx *sqldb.Tx, token string) (bool, error) {
	if len(token) != setupChars {
		return false, nil
	}
	return hasSetup(ctx, tx, setupHash(token))
}

func setupHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
