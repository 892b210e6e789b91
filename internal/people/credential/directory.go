package credential

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// SCIMToken is the token with which a company's identity provider
// authenticates, without its value. A company has at most one.
type SCIMToken struct {
	CompanyID string
	Hint      string // the last four characters of the value
	MadeBy    string // id of the person who created it, "" for the operator
	Created   time.Time
	LastUsed  time.Time // zero before the first use

	hash string // hash of the value, set only by CheckSCIMToken
}

const scimPrefix = "atl_s_"

var errNoSCIMToken = fault.New(fault.NotFound, "The company has no SCIM token.")

// CreateSCIMToken creates a company's SCIM token. The new token replaces the
// previous one when tx commits. The second result is the token's value, which
// is not stored.
func CreateSCIMToken(ctx context.Context, tx *sqldb.Tx, companyID, madeBy string) (SCIMToken, string, error) {
	secret := newSecret(scimPrefix)
	t := SCIMToken{CompanyID: companyID, Hint: hintOf(secret), MadeBy: madeBy, Created: tx.Now}
	return t, secret, storeSCIMToken(ctx, tx, t, ids.Hash(secret))
}

// CheckSCIMToken returns the SCIM token with the given value, or ErrInvalid.
// The token determines the company for which the request acts.
func CheckSCIMToken(ctx context.Context, db *sqldb.DB, token string) (SCIMToken, error) {
	if !wellFormed(token, scimPrefix) {
		return SCIMToken{}, ErrInvalid
	}
	return scimTokenByHash(ctx, db, ids.Hash(token))
}

// RequireSCIMToken returns ErrInvalid if a token has been deleted or replaced
// since CheckSCIMToken returned it.
func RequireSCIMToken(ctx context.Context, tx *sqldb.Tx, t SCIMToken) error {
	live, err := hasSCIMToken(ctx, tx, t.CompanyID, t.hash)
	if err == nil && !live {
		err = ErrInvalid
	}
	return err
}
