package pages

import (
	"atelier/internal/account/profile"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// overview is what the account page shows.
type overview struct {
	profile.Overview
	Companies []company.Company // whose tokens the person manages
}

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

func (s *server) resendVerification(v *visit) error {
	if err := s.Accounts.Verification.ResendLink(v.r.Context(), v.principal()); err != nil {
		return err
	}
	return v.to(home + "?done=sent")
}

// passwordPage is what the page to change a password shows.
type passwordPage struct {
	First bool // the person has none yet
}

func (s *server) passwordForm(v *visit) error { return v.show("password", passwordOf(v)) }

func passwordOf(v *visit) passwordPage {
	return passwordPage{First: v.session.Person.Provider != person.Password}
}

func (s *server) password(v *visit) error {
	in, err := s.Accounts.SignIn.ChangePassword(v.r.Context(), v.session, v.form.Get("old"), v.form.Get("password"), v.client())
	if err != nil {
		return v.again("password", passwordOf(v), err)
	}
	return v.enter(in, home+"?done=password")
}

// machines is what the page of devices and browsers shows.
type machines struct {
	profile.Overview
	Here string // the session of this browser
}

func (s *server) devices(v *visit) error {
	o, err := s.Accounts.Profiles.GetOverview(v.r.Context(), v.principal())
	if err != nil {
		return err
	}
	return v.show("devices", machines{o, v.session.ID})
}

func (s *server) revokeDevice(v *visit) error {
	if err := s.Accounts.Devices.RevokeDevice(v.r.Context(), v.principal(), v.session.PersonID, v.form.Get("id")); err != nil {
		return err
	}
	return v.to("/devices?done=revoked")
}

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

func (s *server) signOutEverywhere(v *visit) error {
	if err := s.Accounts.SignIn.SignOutEverywhere(v.r.Context(), v.principal(), v.session.PersonID); err != nil {
		return err
	}
	return v.leave("everywhere")
}
