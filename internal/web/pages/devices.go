package pages

import (
	"atelier/internal/account/profile"
)

// devicesPage is the template data of the page that lists devices and
// browsers.
type devicesPage struct {
	profile.Overview
	Here string // the id of this browser's session
}

// showDevices handles GET /devices: it lists the person's signed-in devices
// and browsers.
func (s accountPages) showDevices(v *pageRequest) error {
	o, err := s.Accounts.Profiles.GetOverview(v.r.Context(), v.currentPrincipal())
	if err != nil {
		return err
	}
	return v.showPage("devices", devicesPage{o, v.session.ID})
}

// revokeDevice handles POST /devices/revoke: it signs out a device.
func (s accountPages) revokeDevice(v *pageRequest) error {
	if err := s.Accounts.Devices.RevokeDevice(v.r.Context(), v.currentPrincipal(), v.session.PersonID, v.form.Get("id")); err != nil {
		return err
	}
	return v.redirectTo("/devices?done=revoked")
}

// endSession handles POST /devices/signout: it signs out a browser.
func (s accountPages) endSession(v *pageRequest) error {
	id := v.form.Get("id")
	if err := s.Accounts.SignIn.SignOut(v.r.Context(), v.currentPrincipal(), id); err != nil {
		return err
	}
	if id == v.session.ID {
		return v.redirectSignedOut("signed-out")
	}
	return v.redirectTo("/devices?done=ended")
}

// signOutEverywhere handles POST /devices/signout-everywhere: it signs out all
// devices and browsers of the person.
func (s accountPages) signOutEverywhere(v *pageRequest) error {
	if err := s.Accounts.SignIn.SignOutEverywhere(v.r.Context(), v.currentPrincipal(), v.session.PersonID); err != nil {
		return err
	}
	return v.redirectSignedOut("everywhere")
}
