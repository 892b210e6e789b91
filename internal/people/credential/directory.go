package credential

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// SCIMToken is by what a company's own directory is known here. A company
// has one at most.
type SCIMToken struct {
	CompanyID string
	Hint      string // its last characters
	MadeBy    string // a person's id, "" for the operator
	Created   time.Time
	LastUsed  time.Time // zero before the first use

	hash string // of one that was checked
}

const scimPrefix = "atl_s_"

var errNoSCIMToken = fault.New(fault.NotFound, "The company has no token for its directory.")

// CreateSCIMToken makes the token of a company's directory. One from before is
// dead once tx commits. The second result is the token itself, which exists
// nowhere else.
func CreateSCIMToken(ctx context.Context, tx *sqldb.Tx, companyID, madeBy string) (SCIMToken, string, error) {
	secret := newSecret(scimPrefix)
	t := SCIMToken{CompanyID: companyID, Hint: hintOf(secret), MadeBy: madeBy, Created: tx.Now}
	return t, secret, storeSCIMToken(ctx, tx, t, ids.Hash(secret))
}

// CheckSCIMToken returns the company whose directory presents a token.
func CheckSCIMToken(ctx context.Context, db *sqldb.DB, token string) (SCIMToken, error) {
	if !wellFormed(token, scimPrefix) {
		return SCIMToken{}, ErrInvalid
	}
	return scimTokenByHash(ctx, db, ids.Hash(token))
}

// RequireSCIMToken refuses a token that was checked and has ended since.
func RequireSCIMToken(ctx context.Context, tx *sqldb.Tx, t SCIMToken) error {
	live, err := hasSCIMToken(ctx, tx, t.CompanyID, t.hash)
	if err == nil && !live {
		err = ErrInvalid
	}
	return err
}
