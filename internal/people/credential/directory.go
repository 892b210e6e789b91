package credential

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// SCIMToken authenticates a company's identity provider. A company has at most
// one.
type SCIMToken struct {
	CompanyID string
	Hint      string // the last characters of the value
	MadeBy    string // a person's id, "" for the operator
	Created   time.Time
	LastUsed  time.Time // zero before the first use

	hash string // of a checked token
}

const scimPrefix = "atl_s_"

var errNoSCIMToken = fault.New(fault.NotFound, "The company has no token for its directory.")

// CreateSCIMToken creates a company's SCIM token. A previous token is refused
// once tx commits. The second result is the token's value, which is not stored.
func CreateSCIMToken(ctx context.Context, tx *sqldb.Tx, companyID, madeBy string) (SCIMToken, string, error) {
	secret := newSecret(scimPrefix)
	t := SCIMToken{CompanyID: companyID, Hint: hintOf(secret), MadeBy: madeBy, Created: tx.Now}
	return t, secret, storeSCIMToken(ctx, tx, t, ids.Hash(secret))
}

// CheckSCIMToken returns the SCIM token with a presented value, which names its
// company.
func CheckSCIMToken(ctx context.Context, db *sqldb.DB, token string) (SCIMToken, error) {
	if !wellFormed(token, scimPrefix) {
		return SCIMToken{}, ErrInvalid
	}
	return scimTokenByHash(ctx, db, ids.Hash(token))
}

// RequireSCIMToken refuses a checked token that has been deleted or replaced
// since.
func RequireSCIMToken(ctx context.Context, tx *sqldb.Tx, t SCIMToken) error {
	live, err := hasSCIMToken(ctx, tx, t.CompanyID, t.hash)
	if err == nil && !live {
		err = ErrInvalid
	}
	return err
}
