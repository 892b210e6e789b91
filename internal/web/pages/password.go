package pages

import (
	"atelier/internal/people/person"
)

// passwordPage is the template data of the page to change a password.
type passwordPage struct {
	First bool // the person has no password yet
}

// passwordForm handles GET /password: it shows the form to change the
// password.
func (s accountPages) passwordForm(v *pageRequest) error {
	return v.showPage("password", newPasswordPage(v))
}

func newPasswordPage(v *pageRequest) passwordPage {
	return passwordPage{First: v.session.Person.Provider != person.Password}
}

// changePassword handles POST /password: it changes the password of the
// signed-in person.
func (s accountPages) changePassword(v *pageRequest) error {
	in, err := s.Accounts.SignIn.ChangePassword(v.r.Context(), v.session, v.form.Get("old"), v.form.Get("password"), v.requestClient())
	if err != nil {
		return v.showFormAgain("password", newPasswordPage(v), err)
	}
	return v.startSession(in, accountPath+"?done=password")
}
