package pages

// requestResetForm handles GET /forgot: it shows the form to request a link
// for a new password.
func (s linkPages) requestResetForm(v *pageRequest) error { return v.showPage("forgot", nil) }

// requestPasswordReset handles POST /forgot. The response does not reveal
// whether an account with the e-mail address exists.
func (s linkPages) requestPasswordReset(v *pageRequest) error {
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

// resetForm handles GET /reset: it shows the form to choose a new password,
// which a link in an e-mail opens.
func (s linkPages) resetForm(v *pageRequest) error {
	if err := s.Accounts.SignIn.CheckResetLink(v.r.Context(), v.queryValue("token")); err != nil {
		return err
	}
	return v.showPage("reset", linkPage{v.queryValue("token")})
}

// resetPassword handles POST /reset: it sets a new password.
func (s linkPages) resetPassword(v *pageRequest) error {
	secret := v.form.Get("token")
	browser, err := s.Accounts.SignIn.ResetPassword(v.r.Context(), secret, v.form.Get("password"), v.requestClient())
	if err != nil {
		return v.showFormAgain("reset", linkPage{secret}, err)
	}
	v.setKnownCookie(browser)
	return v.redirectSignedOut("reset")
}
