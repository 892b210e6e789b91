package pages

import (
	"net/http"
	"net/url"
	"strings"

	"atelier/internal/account/signup"
)

// invited is what the page of an invitation shows.
type invited struct {
	signup.Invitation
	Secret string
	Next   string // this page, for after the sign-in
	Signup bool   // whether they can sign up with it
	Wrong  bool   // it is for another address than theirs
}

// invitationPath is where invitations are shown.
const invitationPath = "/invitation"

// invitationLink is where the invitation with a secret is shown.
func invitationLink(secret string) string {
	return withQuery(invitationPath, url.Values{"token": {secret}})
}

func (s *server) invitationForm(v *visit) error {
	shown, err := s.invited(v, v.query("token"))
	if err != nil {
		return err
	}
	return v.show("invitation", shown)
}

// invited looks an invitation up for whoever is signed in.
func (s *server) invited(v *visit, secret string) (invited, error) {
	inv, err := s.Accounts.SignUp.FindInvitation(v.r.Context(), secret)
	if err != nil {
		return invited{}, err
	}
	return invited{
		Invitation: inv,
		Secret:     secret,
		Next:       invitationLink(secret),
		Signup:     s.Accounts.Settings.Signup != signup.Closed,
		Wrong:      v.signedIn() && inv.Email != "" && !strings.EqualFold(inv.Email, v.session.Person.Email),
	}, nil
}

func (s *server) acceptInvitation(v *visit) error {
	shown, err := s.invited(v, v.form.Get("token"))
	if err != nil {
		return err
	}
	if shown.Wrong { // somebody else has signed in since the page was shown
		return v.answer(http.StatusForbidden, "invitation", shown, nil)
	}
	if err := s.Accounts.SignUp.AcceptInvitation(v.r.Context(), v.principal(), v.form.Get("token")); err != nil {
		return err
	}
	return v.to(home + "?done=joined")
}
