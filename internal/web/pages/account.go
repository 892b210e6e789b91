package pages

import (
	"atelier/internal/account/profile"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// overview is the data of the account page.
type overview struct {
	profile.Overview
	Companies []company.Company // those whose access tokens the person manages
}

// account handles GET /account.
func (s *server) account(v *visit) error {
	o, err := s.Accounts.Profiles.GetOverview(v.r.Context(), v.principal())
	if err != nil {
		return err
	}
	in, err := s.Accounts.Profiles.ListCompanies(v.r.Context(), v.session.PersonID)
	if err != nil {
		return err
	}
	shown := overview{Overview: o}
	for _, m := range in {
		if m.Role.May(company.ManageAPITokens) {
			shown.Companies = append(shown.Companies, m.Company)
		}
	}
	return v.show("account", shown)
}

// resendVerification handles POST /account/verification.
func (s *server) resendVerification(v *visit) error {
	if err := s.Accounts.Verification.ResendLink(v.r.Context(), v.principal()); err != nil {
		return err
	}
	return v.to(home + "?done=sent")
}

// passwordPage is the data of the page to change a password.
type passwordPage struct {
	First bool // the person has no password yet
}

// passwordForm handles GET /password.
func (s *server) passwordForm(v *visit) error { return v.show("password", passwordOf(v)) }

func passwordOf(v *visit) passwordPage {
	return passwordPage{First: v.session.Person.Provider != person.Password}
}

// password handles POST /password.
func (s *server) password(v *visit) error {
	in, err := s.Accounts.SignIn.ChangePassword(v.r.Context(), v.session, v.form.Get("old"), v.form.Get("password"), v.client())
	if err != nil {
		return v.again("password", passwordOf(v), err)
	}
	return v.enter(in, home+"?done=password")
}

// machines is the data of the page of devices and browsers.
type machines struct {
	profile.Overview
	Here string // the id of this browser's session
}

// devices handles GET /devices.
func (s *server) devices(v *visit) error {
	o, err := s.Accounts.Profiles.GetOverview(v.r.Context(), v.principal())
	if err != nil {
		return err
	}
	return v.show("devices", machines{o, v.session.ID})
}

// revokeDevice handles POST /devices/revoke.
func (s *server) revokeDevice(v *visit) error {
	if err := s.Accounts.Devices.RevokeDevice(v.r.Context(), v.principal(), v.session.PersonID, v.form.Get("id")); err != nil {
		return err
	}
	return v.to("/devices?done=revoked")
}

// endSession handles POST /devices/signout.
func (s *server) endSession(v *visit) error {
	id := v.form.Get("id")
	if err := s.Accounts.SignIn.SignOut(v.r.Context(), v.principal(), id); err != nil {
		return err
	}
	if id == v.session.ID {
		return v.leave("signed-out")
	}
	return v.to("/devices?done=ended")
}

// signOutEverywhere handles POST /devices/signout-everywhere.
func (s *server) signOutEverywhere(v *visit) error {
	if err := s.Accounts.SignIn.SignOutEverywhere(v.r.Context(), v.principal(), v.session.PersonID); err != nil {
		return err
	}
	return v.leave("everywhere")
}
