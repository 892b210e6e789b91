package pages

import (
	"net/url"

	"atelier/internal/account/signup"
	"atelier/internal/base/fault"
)

// entrance is what the pages show that lead in.
type entrance struct {
	Next       string
	Invitation string // its secret
	Join       string // the page of the invitation, for those who sign in instead
	Email      string // whom the invitation is for, "" for anybody
	Setup      string // the secret of the first start
	BaseURL    string
	Provider   string // its name, "" for none
	Closed     string // why nobody can sign up, "" where they can
	Signup     bool   // whether people may sign up by themselves
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
		e.Closed = "New accounts are made by the operator here. Ask them for one."
	case s.Accounts.Settings.Signup == signup.ByInvitation && invitation == "":
		e.Closed = "Signing up needs an invitation. Open the link that was sent to you."
	}
	return e
}

func (s *server) signInForm(v *visit) error {
	if v.signedIn() {
		return v.to(destination(v.query("next")))
	}
	e := s.entrance(v.query("next"), "")
	e.Email = s.invitedBy(v, e.Next)
	return v.show("signin", e)
}

// invitedBy gives whom the invitation is for that a browser goes on to after
// the sign-in, "" where it goes elsewhere.
func (s *server) invitedBy(v *visit, next string) string {
	page, err := url.Parse(next)
	if err != nil || page.Path != invitationPath {
		return ""
	}
	inv, err := s.Accounts.SignUp.FindInvitation(v.r.Context(), page.Query().Get("token"))
	if err != nil { // its own page says so
		return ""
	}
	return inv.Email
}

func (s *server) signIn(v *visit) error {
	e := s.entrance(v.form.Get("next"), "")
	in, err := s.Accounts.SignIn.SignIn(v.r.Context(), v.form.Get("email"), v.form.Get("password"), v.client())
	if err != nil {
		return v.again("signin", e, err)
	}
	return v.enter(in, e.Next)
}

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

func (s *server) signUp(v *visit) error {
	e := s.entrance(v.form.Get("next"), v.form.Get("invitation"))
	if err := s.addInvited(v, &e); err != nil {
		return v.again("signup", e, err, fault.NotFound)
	}
	return v.apply("signup", e)
}

// addInvited looks up whom the invitation of an entrance is for.
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

// apply makes a new person of what a form says.
func (v *visit) apply(page string, e entrance) error {
	in, err := v.Accounts.SignUp.SignUp(v.r.Context(), signup.Application{
		Email:      v.form.Get("email"),
		Password:   v.form.Get("password"),
		Invitation: e.Invitation,
		Setup:      e.Setup,
		Client:     v.client(),
	})
	if err != nil { // an invitation may be for another address than the one typed
		return v.again(page, e, err, fault.NotFound)
	}
	if in.Cookie == "" { // the address must be verified first
		return v.show("message", v.verifyFirst(v.form.Get("email")))
	}
	return v.enter(in, e.Next)
}

// verifyFirst is what people are told who can't go on before their address is
// verified.
func (v *visit) verifyFirst(email string) message {
	if v.Accounts.Settings.NoMail {
		return message{
			Title: "Ask for your link",
			Text: "The address " + email + " has to be verified first, and this installation sends no mail. " +
				"Ask whoever runs it for the link: it is printed where the service logs.",
		}
	}
	return message{Title: "Look into your mail", Text: "We sent a link to " + email + ". Open it to go on."}
}

// setupForm shows how to make the first person to whoever has the link that the
// first start printed. Anybody else learns nothing, not even whether there is
// something to set up.
func (s *server) setupForm(v *visit) error {
	e, err := s.mayEnter(v, v.query("token"))
	if err != nil {
		return err
	}
	return v.show("setup", e)
}

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

var errLink = fault.New(fault.NotFound, "This link does not work any more, or it is not complete.")

// message is a page with little to say.
type message struct {
	Title, Text string
	Alert       bool   // it is no good news
	Link, Label string // where to go on; none in the middle of the way
}
