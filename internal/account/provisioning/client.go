package provisioning

import (
	"context"
	"time"

	"atelier/internal/account/companyadmin"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
)

// Client is a company's identity provider, authenticated by its SCIM token.
type Client struct {
	companyID string
	address   string // IP address
	token     credential.SCIMToken
}

// CompanyID returns the id of the client's company.
func (c Client) CompanyID() string { return c.companyID }

// lastUsedPrecision is the minimum time between two updates of the last use of
// a SCIM token.
const lastUsedPrecision = time.Minute

// AuthenticateClient authenticates an identity provider by its SCIM token. If
// the token is valid but the company's plan does not include provisioning, it
// returns the client together with the error, so that the request counts
// towards the company's rate limit.
func (s *Service) AuthenticateClient(ctx context.Context, token, address string) (Client, error) {
	t, err := credential.CheckSCIMToken(ctx, s.DB, token)
	if err != nil {
		return Client{}, err
	}

	c := Client{companyID: t.CompanyID, address: address, token: t}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error { return c.checkPlan(ctx, tx) })
	if err == nil && s.DB.Now().Sub(t.LastUsed) >= lastUsedPrecision {
		err = s.DB.Write(ctx, func(tx *sqldb.Tx) error { return credential.TouchSCIMToken(ctx, tx, t.CompanyID) })
	}
	return c, err
}

func (c Client) checkPlan(ctx context.Context, tx *sqldb.Tx) error {
	found, err := company.ByID(ctx, tx, c.companyID)
	if err != nil {
		return err
	}
	return companyadmin.CheckProvisioningPlan(found)
}

// Reauthorize refuses a client whose SCIM token was revoked or whose company's
// plan no longer includes provisioning. It is the guard (sqldb.WithGuard) of
// every transaction of a client's request. It does not lock the company,
// because the transaction must lock people before companies; runChange calls it
// again when the company is locked.
func (c Client) Reauthorize(ctx context.Context, tx *sqldb.Tx) error {
	if err := credential.RequireSCIMToken(ctx, tx, c.token); err != nil {
		return err
	}
	return c.checkPlan(ctx, tx)
}
