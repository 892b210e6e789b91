package pages

// linkPage is the data of a page that a link in a mail opens.
type linkPage struct{ Secret string }

// verifyForm handles GET /verify.
func (s *server) verifyForm(v *pageRequest) error {
	if v.queryValue("token") == "" {
		return errInvalidLink
	}
	return v.showPage("verify", linkPage{v.queryValue("token")})
}

// verifyEmail handles POST /verify.
func (s *server) verifyEmail(v *pageRequest) error {
	if err := s.Accounts.Verification.VerifyEmail(v.r.Context(), v.form.Get("token"), v.requestClient()); err != nil {
		return err
	}
	return v.showPage("message", messagePage{Title: "Your address is verified", Text: "Thank you. You can close this page or continue.", Link: homePath, Label: "Go to your account"})
}

// requestResetForm handles GET /forgot.
func (s *server) requestResetForm(v *pageRequest) error { return v.showPage("forgot", nil) }

// requestPasswordReset handles POST /forgot. The response does not reveal whether an account has
// the address.
func (s *server) requestPasswordReset(v *pageRequest) error {
	email := v.form.Get("email")
	if err := s.Accounts.SignIn.RequestPasswordReset(v.r.Context(), email, v.requestClient()); err != nil {
		return v.showFormAgain("forgot", nil, err)
	}
	if s.Accounts.Settings.NoMail {
		return v.showPage("message", messagePage{
			Title: "Ask the operator for your link",
			Text: "This installation sends no mail. If an account has the address " + email + ", a link to choose a new password has been written to the service's log. " +
				"Ask the operator of the service for it. The link works for an hour. The operator can also create one with: atelier admin person link --email ADDRESS",
			Link:  "/signin",
			Label: "Back to sign-in",
		})
	}
	return v.showPage("message", messagePage{
		Title: "Check your mail",
		Text:  "If an account has the address " + email + ", we have sent a link to choose a new password there. It works for an hour. After several requests no further mail is sent for up to 30 minutes: use the newest link.",
		Link:  "/signin",
		Label: "Back to sign-in",
	})
}

// resetForm handles GET /reset.
func (s *server) resetForm(v *pageRequest) error {
	if err := s.Accounts.SignIn.CheckResetLink(v.r.Context(), v.queryValue("token")); err != nil {
		return err
	}
	return v.showPage("reset", linkPage{v.queryValue("token")})
}

// resetPassword handles POST /reset.
func (s *server) resetPassword(v *pageRequest) error {
	secret := v.form.Get("token")
	browser, err := s.Accounts.SignIn.ResetPassword(v.r.Context(), secret, v.form.Get("password"), v.requestClient())
	if err != nil {
		return v.showFormAgain("reset", linkPage{secret}, err)
	}
	v.setKnownCookie(browser)
	return v.redirectSignedOut("reset")
}

// mailedDeviceForm handles GET /drop.
func (s *server) mailedDeviceForm(v *pageRequest) error {
	if err := s.Accounts.Devices.CheckEndLink(v.r.Context(), v.queryValue("token")); err != nil {
		return err
	}
	return v.showPage("drop", linkPage{v.queryValue("token")})
}

// signOutMailedDevice handles POST /drop: it signs out the device that a mail was about.
func (s *server) signOutMailedDevice(v *pageRequest) error {
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
