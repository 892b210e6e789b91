package pages

import (
	"net/url"

	"atelier/internal/account/signup"
	"atelier/internal/base/fault"
)

// entryPage is the data of the sign-in, sign-up and set-up pages.
type entryPage struct {
	Next       string
	Invitation string // the secret of an invitation, or ""
	Join       string // the page of the invitation, for people who sign in instead
	Email      string // the address that the invitation is for, "" for any
	Setup      string // the secret of the set-up link
	BaseURL    string
	Provider   string // the name of the OpenID provider, or ""
	Closed     string // the reason why signing up is not possible, or ""
	Signup     bool   // signing up needs no invitation
}

func (s *server) newEntryPage(next, invitation string) entryPage {
	e := entryPage{Next: safeDestination(next), Invitation: invitation, Signup: s.Accounts.Settings.Signup == signup.Open}
	if invitation != "" {
		e.Join = invitationLink(invitation)
	}
	if s.Provider != nil {
		e.Provider = s.Provider.Name()
	}
	switch {
	case s.Accounts.Settings.Signup == signup.Closed:
		e.Closed = "Only the operator of this service creates accounts. Ask the operator for one."
	case s.Accounts.Settings.Signup == signup.ByInvitation && invitation == "":
		e.Closed = "Signing up requires an invitation. Open the link in your invitation."
	}
	return e
}

// signInForm handles GET /signin.
func (s *server) signInForm(v *pageRequest) error {
	if v.signedIn() {
		return v.redirectTo(safeDestination(v.queryValue("next")))
	}
	e := s.newEntryPage(v.queryValue("next"), "")
	e.Email = s.invitationEmail(v, e.Next)
	return v.showPage("signin", e)
}

// invitationEmail returns the address that an invitation is for where next is the page of
// an invitation, else "".
func (s *server) invitationEmail(v *pageRequest, next string) string {
	page, err := url.Parse(next)
	if err != nil || page.Path != invitationPath {
		return ""
	}
	inv, err := s.Accounts.SignUp.FindInvitation(v.r.Context(), page.Query().Get("token"))
	if err != nil { // the page of the invitation shows the error
		return ""
	}
	return inv.Email
}

// signIn handles POST /signin.
func (s *server) signIn(v *pageRequest) error {
	e := s.newEntryPage(v.form.Get("next"), "")
	in, err := s.Accounts.SignIn.SignIn(v.r.Context(), v.form.Get("email"), v.form.Get("password"), v.requestClient())
	if err != nil {
		return v.showFormAgain("signin", e, err)
	}
	return v.startSession(in, e.Next)
}

// signOut handles POST /signout.
func (s *server) signOut(v *pageRequest) error {
	if err := s.Accounts.SignIn.SignOut(v.r.Context(), v.currentPrincipal(), v.session.ID); err != nil {
		return err
	}
	if next := safeDestination(v.form.Get("next")); next != homePath {
		v.deleteCookie(v.cookies.session, "/")
		return v.redirectTo(next)
	}
	return v.redirectSignedOut("signed-out")
}

// signUpForm handles GET /signup.
func (s *server) signUpForm(v *pageRequest) error {
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

// signUp handles POST /signup.
func (s *server) signUp(v *pageRequest) error {
	e := s.newEntryPage(v.form.Get("next"), v.form.Get("invitation"))
	if err := s.addInvitationEmail(v, &e); err != nil {
		return v.showFormAgain("signup", e, err, fault.NotFound)
	}
	return v.signUpPerson("signup", e)
}

// addInvitationEmail sets the address that the invitation of an entrance is for.
func (s *server) addInvitationEmail(v *pageRequest, e *entryPage) error {
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

// signUpPerson signs up the person of the submitted form.
func (v *pageRequest) signUpPerson(page string, e entryPage) error {
	in, err := v.Accounts.SignUp.SignUp(v.r.Context(), signup.Application{
		Email:      v.form.Get("email"),
		Password:   v.form.Get("password"),
		Invitation: e.Invitation,
		Setup:      e.Setup,
		Client:     v.requestClient(),
	})
	if err != nil { // the invitation may be for another address than the entered one
		return v.showFormAgain(page, e, err, fault.NotFound)
	}
	if in.Cookie == "" { // the address must be verified first
		return v.showPage("message", v.verificationMessage(v.form.Get("email")))
	}
	return v.startSession(in, e.Next)
}

// verificationMessage returns the page for a person whose address must be verified before the
// first sign-in.
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

// setupForm handles GET /setup: it shows the form for the first account. It requires
// the secret of the link that the first start printed; without it the response does
// not reveal whether there is something to set up.
func (s *server) setupForm(v *pageRequest) error {
	e, err := s.checkSetup(v, v.queryValue("token"))
	if err != nil {
		return err
	}
	return v.showPage("setup", e)
}

// createFirstAccount handles POST /setup.
func (s *server) createFirstAccount(v *pageRequest) error {
	e, err := s.checkSetup(v, v.form.Get("token"))
	if err != nil {
		return err
	}
	return v.signUpPerson("setup", e)
}

func (s *server) checkSetup(v *pageRequest, token string) (entryPage, error) {
	ok, err := s.Accounts.SignUp.IsSetupToken(v.r.Context(), token)
	if err == nil && !ok {
		err = errInvalidLink
	}
	return entryPage{Setup: token, Next: homePath, BaseURL: s.BaseURL}, err
}

var errInvalidLink = fault.New(fault.NotFound, "This link is no longer valid or is incomplete.")

// messagePage is the data of a page with a short text and a link.
type messagePage struct {
	Title, Text string
	Alert       bool   // the text is a warning
	Link, Label string // the next page; may be empty
}
