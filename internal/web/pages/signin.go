package pages

import (
	"net/url"

	"atelier/internal/account/signup"
)

// entryPage is the template data of the sign-in, sign-up and set-up pages.
type entryPage struct {
	Next       string
	Invitation string // the secret of an invitation, or ""
	Join       string // the URL of the invitation page, for people who sign in instead
	Email      string // the e-mail address that the invitation is for; "" if it is for any address
	Setup      string // the secret from the set-up link
	BaseURL    string
	Provider   string // the name of the OpenID provider, or ""
	Closed     string // the reason why signing up is not possible, or ""
	Signup     bool   // signing up requires no invitation
}

func (s signInPages) newEntryPage(next, invitation string) entryPage {
	e := entryPage{Next: safeDestination(next), Invitation: invitation, Signup: s.Accounts.Settings.Signup == signup.Open}
	if invitation != "" {
		e.Join = invitationLink(invitation)
	}
	if s.Provider != nil {
		e.Provider = s.Provider.DisplayName()
	}
	switch {
	case s.Accounts.Settings.Signup == signup.Closed:
		e.Closed = "Only the operator of this service creates accounts. Ask the operator for one."
	case s.Accounts.Settings.Signup == signup.ByInvitation && invitation == "":
		e.Closed = "Signing up requires an invitation. Open the link in your invitation."
	}
	return e
}

// signInForm handles GET /signin: it shows the sign-in form.
func (s signInPages) signInForm(v *pageRequest) error {
	if v.signedIn() {
		return v.redirectTo(safeDestination(v.queryValue("next")))
	}
	e := s.newEntryPage(v.queryValue("next"), "")
	e.Email = s.invitationEmail(v, e.Next)
	return v.showPage("signin", e)
}

// invitationEmail returns the e-mail address that an invitation is for if next
// is the URL of an invitation page. Otherwise it returns "".
func (s signInPages) invitationEmail(v *pageRequest, next string) string {
	page, err := url.Parse(next)
	if err != nil || page.Path != invitationPath {
		return ""
	}
	inv, err := s.Accounts.SignUp.FindInvitation(v.r.Context(), page.Query().Get("token"))
	if err != nil { // the invitation page will show the error
		return ""
	}
	return inv.Email
}

// signIn handles POST /signin: it signs a person in with a password.
func (s signInPages) signIn(v *pageRequest) error {
	e := s.newEntryPage(v.form.Get("next"), "")
	in, err := s.Accounts.SignIn.SignIn(v.r.Context(), v.form.Get("email"), v.form.Get("password"), v.requestClient())
	if err != nil {
		return v.showFormAgain("signin", e, err)
	}
	return v.startSession(in, e.Next)
}

// signOutPath is the address to which the form for signing out is sent.
const signOutPath = "/signout"

// signOut handles POST /signout: it signs this browser out.
func (s signInPages) signOut(v *pageRequest) error {
	if err := s.Accounts.SignIn.SignOut(v.r.Context(), v.currentPrincipal(), v.session.ID); err != nil {
		return err
	}
	if next := safeDestination(v.form.Get("next")); next != homePath {
		v.forgetSession()
		return v.redirectTo(next)
	}
	return v.redirectSignedOut("signed-out")
}
