package pages

import (
	"atelier/internal/account/profile"
	"atelier/internal/people/company"
)

// accountPage is the template data of the account page.
type accountPage struct {
	profile.Overview
	Companies []company.Company // the companies whose access tokens the person manages
}

// showAccount handles GET /account: it shows the account page.
func (s accountPages) showAccount(v *pageRequest) error {
	o, err := s.Accounts.Profiles.GetOverview(v.r.Context(), v.currentPrincipal())
	if err != nil {
		return err
	}
	in, err := s.Accounts.Profiles.ListCompanies(v.r.Context(), v.session.PersonID)
	if err != nil {
		return err
	}
	shown := accountPage{Overview: o}
	for _, m := range in {
		if m.Role.May(company.ManageAPITokens) {
			shown.Companies = append(shown.Companies, m.Company)
		}
	}
	return v.showPage("account", shown)
}

// resendVerification handles POST /account/verification: it sends the link
// that verifies the e-mail address again.
func (s accountPages) resendVerification(v *pageRequest) error {
	if err := s.Accounts.Verification.ResendLink(v.r.Context(), v.currentPrincipal()); err != nil {
		return err
	}
	return v.redirectTo(accountPath + "?done=sent")
}
