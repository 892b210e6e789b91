package pages

// held is what a page shows whose address carries the secret of a link.
type held struct{ Secret string }

func (s *server) verifyForm(v *visit) error {
	if v.query("token") == "" {
		return errLink
	}
	return v.show("verify", held{v.query("token")})
}

func (s *server) verify(v *visit) error {
	if err := s.Accounts.Verification.VerifyEmail(v.r.Context(), v.form.Get("token"), v.client()); err != nil {
		return err
	}
	return v.show("message", message{Title: "Your address is verified", Text: "Thank you. You can close this page, or go on.", Link: home, Label: "Go to your account"})
}

func (s *server) forgotForm(v *visit) error { return v.show("forgot", nil) }

// forgot answers the same whoever has the address.
func (s *server) forgot(v *visit) error {
	email := v.form.Get("email")
	if err := s.Accounts.SignIn.RequestPasswordReset(v.r.Context(), email, v.client()); err != nil {
		return v.again("forgot", nil, err)
	}
	if s.Accounts.Settings.NoMail {
		return v.show("message", message{
			Title: "Ask for your link",
			Text: "This installation sends no mail. If somebody here has the address " + email + ", a link to choose a new password is printed where the service logs. " +
				"Ask whoever runs the service for it. It works for an hour. They can also make one with: atelier admin person link --email ADDRESS",
			Link:  "/signin",
			Label: "Back to sign-in",
		})
	}
	return v.show("message", message{Title: "Look into your mail",
		Text: "If somebody here has the address " + email + ", a link to choose a new password is on its way there. It works for an hour. If several were asked for lately, no other is sent for up to 30 minutes: use the one that came last.",
		Link: "/signin", Label: "Back to sign-in"})
}

func (s *server) resetForm(v *visit) error {
	if err := s.Accounts.SignIn.CheckResetLink(v.r.Context(), v.query("token")); err != nil {
		return err
	}
	return v.show("reset", held{v.query("token")})
}

func (s *server) reset(v *visit) error {
	secret := v.form.Get("token")
	browser, err := s.Accounts.SignIn.ResetPassword(v.r.Context(), secret, v.form.Get("password"), v.client())
	if err != nil {
		return v.again("reset", held{secret}, err)
	}
	v.keepKnown(browser)
	return v.leave("reset")
}

func (s *server) dropForm(v *visit) error {
	if err := s.Accounts.Devices.CheckEndLink(v.r.Context(), v.query("token")); err != nil {
		return err
	}
	return v.show("drop", held{v.query("token")})
}

func (s *server) drop(v *visit) error {
	if err := s.Accounts.Devices.EndDeviceByLink(v.r.Context(), v.form.Get("token"), v.client()); err != nil {
		return err
	}
	return v.show("message", message{Title: "The device is signed out",
		Text: "It can't do anything in your name any more. If you did not sign it in yourself, choose a new password too.",
		Link: "/forgot", Label: "Choose a new password"})
}
