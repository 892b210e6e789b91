package pages

import (
	"net/http"
	"net/url"
	"strings"

	"atelier/internal/account/signup"
)

// invitationPage is the template data of the invitation page.
type invitationPage struct {
	signup.Invitation
	Secret string
	Next   string // the URL of this page, to return to after signing in
	Signup bool   // signing up with the invitation is possible
	Wrong  bool   // the invitation is for another e-mail address than that of the signed-in person
}

// invitationPath is the URL path of the invitation page.
const invitationPath = "/invitation"

// invitationLink returns the URL of the invitation page for the invitation
// with this secret.
func invitationLink(secret string) string {
	return withQuery(invitationPath, url.Values{"token": {secret}})
}

// invitationForm handles GET /invitation: it shows the invitation of a link.
func (s linkPages) invitationForm(v *pageRequest) error {
	shown, err := s.loadInvitation(v, v.queryValue("token"))
	if err != nil {
		return err
	}
	return v.showPage("invitation", shown)
}

// loadInvitation looks up the invitation with this secret and returns the data
// of its page.
func (s linkPages) loadInvitation(v *pageRequest, secret string) (invitationPage, error) {
	inv, err := s.Accounts.SignUp.FindInvitation(v.r.Context(), secret)
	if err != nil {
		return invitationPage{}, err
	}
	return invitationPage{
		Invitation: inv,
		Secret:     secret,
		Next:       invitationLink(secret),
		Signup:     s.Accounts.Settings.Signup != signup.Closed,
		Wrong:      v.signedIn() && inv.Email != "" && !strings.EqualFold(inv.Email, v.session.Person.Email),
	}, nil
}

// acceptInvitation handles POST /invitation: it makes the signed-in person a
// member of the company that invited them.
func (s linkPages) acceptInvitation(v *pageRequest) error {
	shown, err := s.loadInvitation(v, v.form.Get("token"))
	if err != nil {
		return err
	}
	if shown.Wrong { // another person has signed in since the page was shown
		return v.renderPage(http.StatusForbidden, "invitation", shown, nil)
	}
	if err := s.Accounts.SignUp.AcceptInvitation(v.r.Context(), v.currentPrincipal(), v.form.Get("token")); err != nil {
		return err
	}
	return v.redirectTo(accountPath + "?done=joined")
}
