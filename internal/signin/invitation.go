package signin

import (
	"net/url"
	"strings"

	"atelier/internal/identity"
)

// invited is what the page of an invitation shows.
type invited struct {
	identity.Invitation
	Secret string
	Next   string // this page, for after the sign-in
	Signup bool   // whether they can sign up with it
	Wrong  bool   // it is for another address than theirs
}

func (s *server) invitationForm(v *visit) error {
	secret := v.query("token")
	inv, err := s.Desk.Invitation(v.r.Context(), secret)
	if err != nil {
		return err
	}
	return v.show("invitation", invited{
		Invitation: inv, Secret: secret, Next: withQuery("/invitation", url.Values{"token": {secret}}), Signup: s.Desk.Settings.Signup != identity.Nobody,
		Wrong: v.signedIn() && inv.Email != "" && !strings.EqualFold(inv.Email, v.session.Person.Email),
	})
}

func (s *server) acceptInvitation(v *visit) error {
	if err := s.Desk.AcceptInvitation(v.r.Context(), v.session.PersonID, v.form.Get("token"), v.visitor()); err != nil {
		return err
	}
	return v.to(home + "?done=joined")
}
