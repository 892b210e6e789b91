package companyadmin

import (
	"context"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/principal"
)

// SCIMConnections manages the SCIM tokens, with which the identity providers of
// companies authenticate.
type SCIMConnections struct {
	db auditedDB
}

var errPlan = fault.New(fault.Forbidden, "This requires the plan ENTERPRISE.").With("reason", "plan")

// CheckProvisioningPlan refuses companies whose plan does not include SCIM
// provisioning.
func CheckProvisioningPlan(c company.Company) error {
	if c.Plan != company.EnterprisePlan {
		return errPlan
	}
	return nil
}

// requireManageProvisioning refuses callers who cannot manage members, and
// companies whose plan does not include SCIM provisioning.
func requireManageProvisioning(c companyAccess) error {
	if err := requireManageMembers(c); err != nil {
		return err
	}
	return CheckProvisioningPlan(c.Company)
}

// GetConnection returns the company's SCIM token, without its value.
func (s *SCIMConnections) GetConnection(ctx context.Context, caller principal.Principal, companyID string) (t credential.SCIMToken, err error) {
	err = s.db.readCompany(ctx, caller, companyID, requireManageProvisioning, func(tx *sqldb.Tx, _ companyAccess) error {
		t, err = credential.SCIMTokenOf(ctx, tx, companyID)
		return err
	})
	return t, err
}

// ConnectProvider creates the SCIM token for the company's identity provider
// and returns it with its value. The previous token is revoked.
func (s *SCIMConnections) ConnectProvider(ctx context.Context, caller principal.Principal, companyID string) (t credential.SCIMToken, secret string, err error) {
	err = s.db.changeCompany(ctx, caller, companyID, requireManageProvisioning, func(tx *sqldb.Tx, c companyAccess) (e audit.Entry, err error) {
		// The plan is checked here too, because rules do not apply to the
		// operator.
		if err := CheckProvisioningPlan(c.Company); err != nil {
			return e, err
		}
		// The identity provider can remove and rename every member, so the
		// caller needs all permissions.
		if err := c.requirePermissions(company.CompanyPermissions); err != nil {
			return e, err
		}

		t, secret, err = credential.CreateSCIMToken(ctx, tx, companyID, caller.PersonID)
		return audit.Entry{Act: audit.ScimConnected, Details: map[string]string{"hint": t.Hint}}, err
	})
	return t, secret, err
}

// DisconnectProvider revokes the company's SCIM token. Its members and teams
// remain unchanged.
func (s *SCIMConnections) DisconnectProvider(ctx context.Context, caller principal.Principal, companyID string) error {
	return s.db.changeCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, _ companyAccess) (audit.Entry, error) {
		t, err := credential.DeleteSCIMToken(ctx, tx, companyID)
		return audit.Entry{Act: audit.ScimDisconnected, Details: map[string]string{"hint": t.Hint}}, err
	})
}

// DisconnectAllProviders revokes the SCIM tokens of all companies.
func (s *SCIMConnections) DisconnectAllProviders(ctx context.Context, caller principal.Principal) error {
	var companyIDs []string
	err := s.db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		companyIDs, err = credential.CompaniesWithSCIMToken(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}

	for _, id := range companyIDs {
		if err := s.DisconnectProvider(ctx, caller, id); err != nil {
			return err
		}
	}
	return nil
}
