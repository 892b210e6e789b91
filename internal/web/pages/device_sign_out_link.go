package pages

// mailedDeviceForm handles GET /drop: it shows the form to sign out a device,
// which a link in an e-mail opens.
func (s linkPages) mailedDeviceForm(v *pageRequest) error {
	if err := s.Accounts.Devices.CheckEndLink(v.r.Context(), v.queryValue("token")); err != nil {
		return err
	}
	return v.showPage("drop", linkPage{v.queryValue("token")})
}

// signOutMailedDevice handles POST /drop: it signs out the device that an
// e-mail reported to the person.
func (s linkPages) signOutMailedDevice(v *pageRequest) error {
	if err := s.Accounts.Devices.EndDeviceByLink(v.r.Context(), v.form.Get("token"), v.requestClient()); err != nil {
		return err
	}
	return v.showPage("message", messagePage{
		Title: "The device is signed out",
		Text:  "The device can no longer act as you. If you did not sign it in yourself, choose a new password too.",
		Link:  "/forgot",
		Label: "Choose a new password",
	})
}
