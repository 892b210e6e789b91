package pages

import (
	"net/url"

	"atelier/internal/account/signup"
	"atelier/internal/base/fault"
)

// entrance is the data of the sign-in, sign-up and set-up pages.
type entrance struct {
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

func (s *server) entrance(next, invitation string) entrance {
	e := entrance{Next: destination(next), Invitation: invitation, Signup: s.Accounts.Settings.Signup == signup.Open}
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
func (s *server) signInForm(v *visit) error {
	if v.signedIn() {
		return v.to(destination(v.query("next")))
	}
	e := s.entrance(v.query("next"), "")
	e.Email = s.invitedBy(v, e.Next)
	return v.show("signin", e)
}

// invitedBy returns the address that an invitation is for where next is the page of
// an invitation, else "".
func (s *server) invitedBy(v *visit, next string) string {
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
func (s *server) signIn(v *visit) error {
	e := s.entrance(v.form.Get("next"), "")
	in, err := s.Accounts.SignIn.SignIn(v.r.Context(), v.form.Get("email"), v.form.Get("password"), v.client())
	if err != nil {
		return v.again("signin", e, err)
	}
	return v.enter(in, e.Next)
}

// signOut handles POST /signout.
func (s *server) signOut(v *visit) error {
	if err := s.Accounts.SignIn.SignOut(v.r.Context(), v.principal(), v.session.ID); err != nil {
		return err
	}
	if next := destination(v.form.Get("next")); next != home {
		v.drop(v.cookies.session, "/")
		return v.to(next)
	}
	return v.leave("signed-out")
}

// signUpForm handles GET /signup.
func (s *server) signUpForm(v *visit) error {
	invitation := v.query("invitation")
	switch {
	case v.signedIn() && invitation != "":
		return v.to(invitationLink(invitation))
	case v.signedIn():
		return v.to(destination(v.query("next")))
	}
	e := s.entrance(v.query("next"), invitation)
	if err := s.addInvited(v, &e); err != nil {
		return v.again("signup", e, err, fault.NotFound)
	}
	return v.show("signup", e)
}

// signUp handles POST /signup.
func (s *server) signUp(v *visit) error {
	e := s.entrance(v.form.Get("next"), v.form.Get("invitation"))
	if err := s.addInvited(v, &e); err != nil {
		return v.again("signup", e, err, fault.NotFound)
	}
	return v.apply("signup", e)
}

// addInvited sets the address that the invitation of an entrance is for.
func (s *server) addInvited(v *visit, e *entrance) error {
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

// apply signs up the person of the submitted form.
func (v *visit) apply(page string, e entrance) error {
	in, err := v.Accounts.SignUp.SignUp(v.r.Context(), signup.Application{
		Email:      v.form.Get("email"),
		Password:   v.form.Get("password"),
		Invitation: e.Invitation,
		Setup:      e.Setup,
		Client:     v.client(),
	})
	if err != nil { // the invitation may be for another address than the entered one
		return v.again(page, e, err, fault.NotFound)
	}
	if in.Cookie == "" { // the address must be verified first
		return v.show("message", v.verifyFirst(v.form.Get("email")))
	}
	return v.enter(in, e.Next)
}

// verifyFirst returns the page for a person whose address must be verified before the
// first sign-in.
func (v *visit) verifyFirst(email string) message {
	if v.Accounts.Settings.NoMail {
		return message{
			Title: "Ask the operator for your link",
			Text: "The address " + email + " must be verified first, and this installation sends no mail. " +
				"The verification link has been written to the service's log. Ask the operator of the service for it.",
		}
	}
	return message{Title: "Check your mail", Text: "We sent a link to " + email + ". Open it to continue."}
}

// setupForm handles GET /setup: it shows the form for the first account. It requires
// the secret of the link that the first start printed; without it the response does
// not reveal whether there is something to set up.
func (s *server) setupForm(v *visit) error {
	e, err := s.mayEnter(v, v.query("token"))
	if err != nil {
		return err
	}
	return v.show("setup", e)
}

// setup handles POST /setup.
func (s *server) setup(v *visit) error {
	e, err := s.mayEnter(v, v.form.Get("token"))
	if err != nil {
		return err
	}
	return v.apply("setup", e)
}

func (s *server) mayEnter(v *visit, token string) (entrance, error) {
	ok, err := s.Accounts.SignUp.IsSetupToken(v.r.Context(), token)
	if err == nil && !ok {
		err = errLink
	}
	return entrance{Setup: token, Next: home, BaseURL: s.BaseURL}, err
}

var errLink = fault.New(fault.NotFound, "This link is no longer valid or is incomplete.")

// message is the data of a page with a short text and a link.
type message struct {
	Title, Text string
	Alert       bool   // the text is a warning
	Link, Label string // the next page; may be empty
}
