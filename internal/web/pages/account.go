package pages

import (
	"atelier/internal/account/profile"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// accountPage is the data of the account page.
type accountPage struct {
	profile.Overview
	Companies []company.Company // those whose access tokens the person manages
}

// showAccount handles GET /account.
func (s *server) showAccount(v *pageRequest) error {
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

// resendVerification handles POST /account/verification.
func (s *server) resendVerification(v *pageRequest) error {
	if err := s.Accounts.Verification.ResendLink(v.r.Context(), v.currentPrincipal()); err != nil {
		return err
	}
	return v.redirectTo(homePath + "?done=sent")
}

// passwordPage is the data of the page to change a password.
type passwordPage struct {
	First bool // the person has no password yet
}

// passwordForm handles GET /password.
func (s *server) passwordForm(v *pageRequest) error {
	return v.showPage("password", newPasswordPage(v))
}

func newPasswordPage(v *pageRequest) passwordPage {
	return passwordPage{First: v.session.Person.Provider != person.Password}
}

// changePassword handles POST /password.
func (s *server) changePassword(v *pageRequest) error {
	in, err := s.Accounts.SignIn.ChangePassword(v.r.Context(), v.session, v.form.Get("old"), v.form.Get("password"), v.requestClient())
	if err != nil {
		return v.showFormAgain("password", newPasswordPage(v), err)
	}
	return v.startSession(in, homePath+"?done=password")
}

// devicesPage is the data of the page of devices and browsers.
type devicesPage struct {
	profile.Overview
	Here string // the id of this browser's session
}

// showDevices handles GET /devices.
func (s *server) showDevices(v *pageRequest) error {
	o, err := s.Accounts.Profiles.GetOverview(v.r.Context(), v.currentPrincipal())
	if err != nil {
		return err
	}
	return v.showPage("devices", devicesPage{o, v.session.ID})
}

// revokeDevice handles POST /devices/revoke.
func (s *server) revokeDevice(v *pageRequest) error {
	if err := s.Accounts.Devices.RevokeDevice(v.r.Context(), v.currentPrincipal(), v.session.PersonID, v.form.Get("id")); err != nil {
		return err
	}
	return v.redirectTo("/devices?done=revoked")
}

// endSession handles POST /devices/signout.
func (s *server) endSession(v *pageRequest) error {
	id := v.form.Get("id")
	if err := s.Accounts.SignIn.SignOut(v.r.Context(), v.currentPrincipal(), id); err != nil {
		return err
	}
	if id == v.session.ID {
		return v.redirectSignedOut("signed-out")
	}
	return v.redirectTo("/devices?done=ended")
}

// signOutEverywhere handles POST /devices/signout-everywhere.
func (s *server) signOutEverywhere(v *pageRequest) error {
	if err := s.Accounts.SignIn.SignOutEverywhere(v.r.Context(), v.currentPrincipal(), v.session.PersonID); err != nil {
		return err
	}
	return v.redirectSignedOut("everywhere")
}
