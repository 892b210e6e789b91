package pages

// deleteForm handles GET /account/delete: it shows the form to delete the
// account.
func (s accountPages) deleteForm(v *pageRequest) error { return v.showPage("delete", nil) }

// deleteAccount handles POST /account/delete: it deletes the account of the
// signed-in person.
func (s accountPages) deleteAccount(v *pageRequest) error {
	if err := s.PersonalData.DeletePerson(v.r.Context(), v.currentPrincipal(), v.session.PersonID, v.form.Get("email")); err != nil {
		return v.showFormAgain("delete", nil, err)
	}
	return v.redirectSignedOut("farewell")
}
