package credential

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// DirectoryToken is by what a company's own directory is known here. A company
// has one at most.
type DirectoryToken struct {
	CompanyID string
	Hint      string // its last characters
	MadeBy    string // a person's id, "" for the operator
	Created   time.Time
	LastUsed  time.Time // zero before the first use

	hash string // of one that was checked
}

const scimPrefix = "atl_s_"

var errNoSCIMToken = fault.New(fault.NotFound, "The company has no token for its directory.")

// ConnectDirectory makes the token of a company's directory. One from before is
// dead once tx commits. The second result is the token itself, which exists
// nowhere else.
func ConnectDirectory(ctx context.Context, tx *sqldb.Tx, companyID, madeBy string) (DirectoryToken, string, error) {
	secret := newSecret(scimPrefix)
	t := DirectoryToken{CompanyID: companyID, Hint: hintOf(secret), MadeBy: madeBy, Created: tx.Now}
	return t, secret, storeSCIMToken(ctx, tx, t, ids.Hash(secret))
}

// CheckDirectory returns the company whose directory presents a token.
func CheckDirectory(ctx context.Context, db *sqldb.DB, token string) (DirectoryToken, error) {
	if !wellFormed(token, scimPrefix) {
		return DirectoryToken{}, ErrNone
	}
	return scimTokenByHash(ctx, db, ids.Hash(token))
}

// StillDirectory refuses a token that was checked and has ended since.
func StillDirectory(ctx context.Context, tx *sqldb.Tx, t DirectoryToken) error {
	live, err := hasSCIMToken(ctx, tx, t.CompanyID, t.hash)
	if err == nil && !live {
		err = ErrNone
	}
	return err
}
