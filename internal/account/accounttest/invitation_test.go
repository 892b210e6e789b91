package accounttest_test

import (
	"testing"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/signup"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

func TestAcceptInvitation(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		c := w.Company("Studio", company.TeamPlan)
		film, sound := w.Team(c, "Film", "member"), w.Team(c, "Sound", "member")
		anna, bert := w.somebody("anna@example.com", false), w.somebody("bert@example.com", true)

		link, byMail := w.invite("", c, film), w.invite("anna@example.com", c, sound)
		shown, err := w.Accounts.SignUp.FindInvitation(w.Context(), byMail)
		if want := (signup.Invitation{Company: "Studio", Team: "Sound", Email: "anna@example.com"}); err != nil || shown != want {
			w.Errorf("invitation = %+v, %v, want %+v", shown, err, want)
		}
		shown, err = w.Accounts.SignUp.FindInvitation(w.Context(), w.invite("", c, ""))
		if want := (signup.Invitation{Company: "Studio"}); err != nil || shown != want {
			w.Errorf("invitation = %+v, %v, want %+v", shown, err, want)
		}
		w.refused("another's invitation", w.Accounts.SignUp.AcceptInvitation(w.Context(), principal.Principal{PersonID: bert.ID}, byMail), fault.NotFound)

		mark := w.mark()
		w.ok(w.Accounts.SignUp.AcceptInvitation(w.Context(), principal.Principal{PersonID: anna.ID}, link))
		if w.byID(anna.ID).EmailVerified {
			w.Error("a link that anybody can have proved the address")
		}
		w.refused("a link that was used", w.Accounts.SignUp.AcceptInvitation(w.Context(), principal.Principal{PersonID: bert.ID}, link), fault.NotFound)
		w.refused("a look at it", second(w.Accounts.SignUp.FindInvitation(w.Context(), link)), fault.NotFound)
		w.recorded("a link", mark, audit.InvitationAccepted)

		mark = w.mark()
		w.ok(w.Accounts.SignUp.AcceptInvitation(w.Context(), principal.Principal{PersonID: anna.ID}, byMail))
		if !w.byID(anna.ID).EmailVerified {
			w.Error("the mail did not prove the address")
		}
		w.recorded("a mail", mark, audit.InvitationAccepted, audit.PersonVerified)
		if n := w.count(`team_member WHERE person_id = $1`, anna.ID); n != 2 {
			w.Errorf("in %d teams, want 2", n)
		}
	})
}

func TestAcceptInvitationFromTheList(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		c := w.Company("Studio", company.TeamPlan)
		anna, bert := w.somebody("anna@example.com", false), w.somebody("bert@example.com", true)
		offer := func(email string) string {
			inv, _, err := w.Companies.Invitations.CreateInvitation(w.Context(), principal.Operator(), company.Draft{CompanyID: c, Email: email})
			w.ok(err)
			return inv.ID
		}
		hers, anybodys := offer("anna@example.com"), offer("")
		accept := func(id, invitation string) error {
			return w.Accounts.SignUp.AcceptInvitationByID(w.Context(), principal.Principal{PersonID: id}, invitation)
		}
		mark := w.mark()
		w.refused("before the address is proven", accept(anna.ID, hers), fault.NotFound)
		w.refused("somebody else's", accept(bert.ID, hers), fault.NotFound)
		w.refused("one that needs its link", accept(bert.ID, anybodys), fault.NotFound)
		w.recorded("refused", mark)
		w.do(func(tx *sqldb.Tx) error {
			_, err := person.SetVerified(w.Context(), tx, anna.ID, anna.Email)
			return err
		})
		w.ok(accept(anna.ID, hers))
		w.recorded("accepted", mark, audit.InvitationAccepted)
		if r := w.records(mark)[0]; r.ActorID != anna.ID || r.PersonID != anna.ID || r.CompanyID != c {
			w.Errorf("record = %+v", r)
		}
	})
}
