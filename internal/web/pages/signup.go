package pages

import (
	"atelier/internal/account/signup"
	"atelier/internal/base/fault"
)

// signUpForm handles GET /signup: it shows the sign-up form.
func (s signInPages) signUpForm(v *pageRequest) error {
	invitation := v.queryValue("invitation")
	switch {
	case v.signedIn() && invitation != "":
		return v.redirectTo(invitationLink(invitation))
	case v.signedIn():
		return v.redirectTo(safeDestination(v.queryValue("next")))
	}
	e := s.newEntryPage(v.queryValue("next"), invitation)
	if err := s.addInvitationEmail(v, &e); err != nil {
		return v.showFormAgain("signup", e, err, fault.NotFound)
	}
	return v.showPage("signup", e)
}

// signUp handles POST /signup: it creates an account.
func (s signInPages) signUp(v *pageRequest) error {
	e := s.newEntryPage(v.form.Get("next"), v.form.Get("invitation"))
	if err := s.addInvitationEmail(v, &e); err != nil {
		return v.showFormAgain("signup", e, err, fault.NotFound)
	}
	return v.signUpPerson("signup", e)
}

// addInvitationEmail sets the e-mail address that the invitation of the page
// is for.
func (s signInPages) addInvitationEmail(v *pageRequest, e *entryPage) error {
	if e.Invitation == "" || e.Closed != "" {
		return nil
	}
	inv, err := s.Accounts.SignUp.FindInvitation(v.r.Context(), e.Invitation)
	if err != nil {
		return err
	}
	e.Email = inv.Email
	return nil
}

// signUpPerson creates an account from the submitted form. page is the page to
// show again if that fails.
func (v *pageRequest) signUpPerson(page string, e entryPage) error {
	in, err := v.Accounts.SignUp.SignUp(v.r.Context(), signup.Application{
		Email:      v.form.Get("email"),
		Password:   v.form.Get("password"),
		Invitation: e.Invitation,
		Setup:      e.Setup,
		Client:     v.requestClient(),
	})
	if err != nil { // the invitation may be for an e-mail address other than the one entered
		return v.showFormAgain(page, e, err, fault.NotFound)
	}
	if in.Cookie == "" { // the e-mail address must be verified first
		return v.showPage("message", v.verificationMessage(v.form.Get("email")))
	}
	return v.startSession(in, e.Next)
}

// verificationMessage returns the page for a person whose e-mail address must
// be verified before the first sign-in.
func (v *pageRequest) verificationMessage(email string) messagePage {
	if v.Accounts.Settings.NoMail {
		return messagePage{
			Title: "Ask the operator for your link",
			Text: "The address " + email + " must be verified first, and this installation sends no mail. " +
				"The verification link has been written to the service's log. Ask the operator of the service for it.",
		}
	}
	return messagePage{Title: "Check your mail", Text: "We sent a link to " + email + ". Open it to continue."}
}
