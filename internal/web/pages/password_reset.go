package pages

// held is the data of a page that a link in a mail opens.
type held struct{ Secret string }

// verifyForm handles GET /verify.
func (s *server) verifyForm(v *visit) error {
	if v.query("token") == "" {
		return errLink
	}
	return v.show("verify", held{v.query("token")})
}

// verify handles POST /verify.
func (s *server) verify(v *visit) error {
	if err := s.Accounts.Verification.VerifyEmail(v.r.Context(), v.form.Get("token"), v.client()); err != nil {
		return err
	}
	return v.show("message", message{Title: "Your address is verified", Text: "Thank you. You can close this page or continue.", Link: home, Label: "Go to your account"})
}

// forgotForm handles GET /forgot.
func (s *server) forgotForm(v *visit) error { return v.show("forgot", nil) }

// forgot handles POST /forgot. The response does not reveal whether an account has
// the address.
func (s *server) forgot(v *visit) error {
	email := v.form.Get("email")
	if err := s.Accounts.SignIn.RequestPasswordReset(v.r.Context(), email, v.client()); err != nil {
		return v.again("forgot", nil, err)
	}
	if s.Accounts.Settings.NoMail {
		return v.show("message", message{
			Title: "Ask the operator for your link",
			Text: "This installation sends no mail. If an account has the address " + email + ", a link to choose a new password has been written to the service's log. " +
				"Ask the operator of the service for it. The link works for an hour. The operator can also create one with: atelier admin person link --email ADDRESS",
			Link:  "/signin",
			Label: "Back to sign-in",
		})
	}
	return v.show("message", message{
		Title: "Check your mail",
		Text:  "If an account has the address " + email + ", we have sent a link to choose a new password there. It works for an hour. After several requests no further mail is sent for up to 30 minutes: use the newest link.",
		Link:  "/signin",
		Label: "Back to sign-in",
	})
}

// resetForm handles GET /reset.
func (s *server) resetForm(v *visit) error {
	if err := s.Accounts.SignIn.CheckResetLink(v.r.Context(), v.query("token")); err != nil {
		return err
	}
	return v.show("reset", held{v.query("token")})
}

// reset handles POST /reset.
func (s *server) reset(v *visit) error {
	secret := v.form.Get("token")
	browser, err := s.Accounts.SignIn.ResetPassword(v.r.Context(), secret, v.form.Get("password"), v.client())
	if err != nil {
		return v.again("reset", held{secret}, err)
	}
	v.keepKnown(browser)
	return v.leave("reset")
}

// dropForm handles GET /drop.
func (s *server) dropForm(v *visit) error {
	if err := s.Accounts.Devices.CheckEndLink(v.r.Context(), v.query("token")); err != nil {
		return err
	}
	return v.show("drop", held{v.query("token")})
}

// drop handles POST /drop: it signs out the device that a mail was about.
func (s *server) drop(v *visit) error {
	if err := s.Accounts.Devices.EndDeviceByLink(v.r.Context(), v.form.Get("token"), v.client()); err != nil {
		return err
	}
	return v.show("message", message{
		Title: "The device is signed out",
		Text:  "The device can no longer act as you. If you did not sign it in yourself, choose a new password too.",
		Link:  "/forgot",
		Label: "Choose a new password",
	})
}
