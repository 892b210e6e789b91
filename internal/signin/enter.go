package signin

import (
	"atelier/internal/fault"
	"atelier/internal/identity"
)

// entrance is what the pages show that lead in.
type entrance struct {
	Next       string
	Invitation string // its secret
	Setup      string // the secret of the first start
	BaseURL    string
	Provider   string // its name, "" for none
	Closed     string // why nobody can sign up, "" where they can
	Signup     bool   // whether people may sign up by themselves
}

func (s *server) entrance(next, invitation string) entrance {
	e := entrance{Next: destination(next), Invitation: invitation, Signup: s.Desk.Settings.Signup == identity.Anybody}
	if s.Provider != nil {
		e.Provider = s.Provider.Name()
	}
	switch {
	case s.Desk.Settings.Signup == identity.Nobody:
		e.Closed = "New accounts are made by the operator here. Ask them for one."
	case s.Desk.Settings.Signup == identity.Invited && invitation == "":
		e.Closed = "Signing up needs an invitation. Open the link that was sent to you."
	}
	return e
}

func (s *server) signInForm(v *visit) error {
	if v.signedIn() {
		return v.to(destination(v.query("next")))
	}
	return v.show("signin", s.entrance(v.query("next"), ""))
}

func (s *server) signIn(v *visit) error {
	e := s.entrance(v.form.Get("next"), "")
	in, err := s.Desk.SignIn(v.r.Context(), v.form.Get("email"), v.form.Get("password"), v.visitor())
	if err != nil {
		return v.again("signin", e, err)
	}
	return v.enter(in, e.Next)
}

func (s *server) signOut(v *visit) error {
	if err := s.Desk.SignOut(v.r.Context(), v.session.PersonID, v.session.ID, v.visitor()); err != nil {
		return err
	}
	return v.leave("signed-out")
}

func (s *server) signUpForm(v *visit) error {
	if v.signedIn() {
		return v.to(destination(v.query("next")))
	}
	return v.show("signup", s.entrance(v.query("next"), v.query("invitation")))
}

func (s *server) signUp(v *visit) error {
	return v.apply("signup", s.entrance(v.form.Get("next"), v.form.Get("invitation")))
}

// apply makes a new person of what a form says.
func (v *visit) apply(page string, e entrance) error {
	in, err := v.Desk.SignUp(v.r.Context(), identity.Application{
		Email: v.form.Get("email"), Password: v.form.Get("password"), Invitation: e.Invitation, Setup: e.Setup, Visitor: v.visitor(),
	})
	if err != nil { // an invitation may be for another address than the one typed
		return v.again(page, e, err, fault.NotFound)
	}
	if in.Cookie == "" { // the address must be verified first
		return v.show("message", message{Title: "Look into your mail", Text: "We sent a link to " + v.form.Get("email") + ". Open it to go on."})
	}
	return v.enter(in, e.Next)
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
	ok, err := s.Desk.MaySetup(v.r.Context(), token)
	if err == nil && !ok {
		err = errLink
	}
	return entrance{Setup: token, Next: home, BaseURL: s.BaseURL}, err
}

var errLink = fault.New(fault.NotFound, "This link does not work any more, or it is not complete.")

// message is a page with little to say.
type message struct {
	Title, Text string
	Link, Label string // where to go on; none in the middle of the way
}
