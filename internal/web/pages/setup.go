package pages

import "atelier/internal/web/studio"

// setupForm handles GET /setup: it shows the form for the first account. It
// requires the secret from the link that the service printed at its first
// start. Without the secret the response does not reveal whether an account
// already exists.
func (s signInPages) setupForm(v *pageRequest) error {
	e, err := s.checkSetup(v, v.queryValue("token"))
	if err != nil {
		return err
	}
	return v.showPage("setup", e)
}

// createFirstAccount handles POST /setup: it creates the first account of the
// installation.
func (s signInPages) createFirstAccount(v *pageRequest) error {
	e, err := s.checkSetup(v, v.form.Get("token"))
	if err != nil {
		return err
	}
	return v.signUpPerson("setup", e)
}

func (s signInPages) checkSetup(v *pageRequest, token string) (entryPage, error) {
	ok, err := s.Accounts.SignUp.IsSetupToken(v.r.Context(), token)
	if err == nil && !ok {
		err = errInvalidLink
	}
	return entryPage{Setup: token, Next: studio.WelcomePath, BaseURL: s.BaseURL}, err
}
