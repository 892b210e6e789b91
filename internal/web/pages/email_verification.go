package pages

// verifyForm handles GET /verify: it shows the form to verify an e-mail
// address, which a link in an e-mail opens.
func (s linkPages) verifyForm(v *pageRequest) error {
	if v.queryValue("token") == "" {
		return errInvalidLink
	}
	return v.showPage("verify", linkPage{v.queryValue("token")})
}

// verifyEmail handles POST /verify: it marks an e-mail address as verified.
func (s linkPages) verifyEmail(v *pageRequest) error {
	if err := s.Accounts.Verification.VerifyEmail(v.r.Context(), v.form.Get("token"), v.requestClient()); err != nil {
		return err
	}
	return v.showPage("message", messagePage{
		Title: "Your address is verified",
		Text:  "Thank you. You can close this page or continue.",
		Link:  homePath,
		Label: "Open the studio",
	})
}
