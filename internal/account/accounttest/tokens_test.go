package accounttest_test

import (
	"strings"
	"testing"

	"atelier/internal/account/accounttest"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/web/access"
)

// by is the actor that a person is.
func by(p person.Person) principal.Principal {
	return principal.Principal{PersonID: p.ID, Address: "192.0.2.1"}
}

func TestPersonalTokens(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna, bert := w.somebody("anna@example.com", true), w.somebody("bert@example.com", true)
		mark := w.mark()
		made, secret, err := w.Accounts.AccessTokens.CreateAccessToken(w.Context(), by(anna), anna.ID, "my script")
		w.ok(err)
		_, _, err = w.Accounts.AccessTokens.CreateAccessToken(w.Context(), by(anna), anna.ID, "")
		w.refused("no name", err, fault.Invalid)
		_, _, err = w.Accounts.AccessTokens.RegenerateAccessToken(w.Context(), by(bert), made.ID)
		w.refused("regenerate somebody else's", err, fault.NotFound)
		w.refused("delete somebody else's", w.Accounts.AccessTokens.DeleteAccessToken(w.Context(), by(bert), made.ID), fault.NotFound)
		w.recorded("made", mark, audit.TokenCreated)
		if r := w.records(mark)[0]; r.ActorID != anna.ID || r.PersonID != anna.ID || r.CompanyID != "" || r.Details["token"] != made.ID || r.Details["name"] != "my script" {
			w.Errorf("record = %+v", r)
		}
		if !w.admits(secret) {
			w.Error("the token does not work")
		}

		mark = w.mark()
		again, next, err := w.Accounts.AccessTokens.RegenerateAccessToken(w.Context(), by(anna), made.ID)
		w.ok(err)
		if again.ID != made.ID || w.admits(secret) || !w.admits(next) {
			w.Error("not the new value alone works")
		}
		all, err := w.Accounts.AccessTokens.ListTokens(w.Context(), anna.ID, nil, 10)
		if err != nil || len(all) != 1 || all[0].ID != made.ID || all[0].Hint != next[len(next)-4:] || all[0].MintedBy != anna.ID {
			w.Errorf("tokens = %+v, %v", all, err)
		}
		w.ok(w.Accounts.AccessTokens.DeleteAccessToken(w.Context(), by(anna), made.ID))
		w.refused("a second time", w.Accounts.AccessTokens.DeleteAccessToken(w.Context(), by(anna), made.ID), fault.NotFound)
		if w.admits(next) {
			w.Error("the token outlives its end")
		}
		w.recorded("replaced and ended", mark, audit.TokenRegenerated, audit.TokenFirstUsed, audit.TokenDeleted)
	})
}

func TestTokensOfTheOperator(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		c := w.Company("Studio", company.TeamPlan)
		mark := w.mark()
		made, secret, err := w.Accounts.AccessTokens.CreateTokenForEmail(w.Context(), anna.Email, "", "script")
		w.ok(err)
		_, _, err = w.Accounts.AccessTokens.CreateTokenForEmail(w.Context(), "nobody@example.com", "", "script")
		w.refused("for nobody", err, fault.NotFound)
		_, _, err = w.Accounts.AccessTokens.CreateTokenForEmail(w.Context(), anna.Email, c, "script")
		w.refused("for somebody who is no member", err, fault.Invalid)
		_, _, err = w.Accounts.AccessTokens.CreateTokenForEmail(w.Context(), anna.Email, "00000000000000000000", "script")
		w.refused("of no company", err, fault.NotFound)
		ended, err := w.Accounts.AccessTokens.DeleteTokenValue(w.Context(), secret)
		if err != nil || ended.ID != made.ID || w.admits(secret) {
			w.Errorf("delete by value = %+v, %v", ended, err)
		}
		for _, value := range []string{secret, "x", ""} {
			_, err := w.Accounts.AccessTokens.DeleteTokenValue(w.Context(), value)
			w.refused("delete "+value, err, fault.NotFound)
		}
		w.recorded("the operator", mark, audit.TokenCreated, audit.TokenDeleted)
		if r := w.records(mark)[0]; r.ActorID != "" || r.PersonID != anna.ID {
			w.Errorf("record = %+v", r)
		}
	})
}

func TestCompanyTokens(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		admin, member, outsider := w.somebody("admin@example.com", true), w.somebody("member@example.com", true), w.somebody("outsider@example.com", true)
		c, other := w.Company("Studio", company.TeamPlan), w.Company("Other", company.TeamPlan)
		w.Admit(c, admin.Email, company.ManageAPITokens)
		w.Admit(c, member.Email, company.ManageMembers, company.ManageTeams)
		w.Admit(other, outsider.Email, company.ManageAPITokens)
		create := func(who person.Person, companyID, personID string) (credential.Token, string, error) {
			return w.Accounts.AccessTokens.CreateCompanyToken(w.Context(), by(who), companyID, personID, "farm")
		}

		// Nobody without the permission does anything, and a stranger learns
		// nothing of the company.
		made, secret, err := create(admin, c, member.ID)
		w.ok(err)
		mark := w.mark()
		for _, test := range []struct {
			name      string
			who       person.Person
			companyID string
			want      fault.Code
		}{
			{"a member without the permission", member, c, fault.Forbidden},
			{"a stranger", outsider, c, fault.NotFound},
			{"an admin elsewhere", admin, other, fault.NotFound},
			{"no company at all", admin, "00000000000000000000", fault.NotFound},
			{"nonsense", admin, "x", fault.NotFound},
			{"an actor who is nobody", person.Person{}, c, fault.NotFound},
		} {
			_, _, err := create(test.who, test.companyID, member.ID)
			w.refused(test.name+" creates", err, test.want)
			_, err = w.Accounts.AccessTokens.ListCompanyTokens(w.Context(), by(test.who), test.companyID, nil, 10)
			w.refused(test.name+" lists", err, test.want)
			_, err = w.Accounts.AccessTokens.ListMembers(w.Context(), by(test.who), test.companyID)
			w.refused(test.name+" lists members", err, test.want)
			_, _, err = w.Accounts.AccessTokens.RegenerateCompanyToken(w.Context(), by(test.who), test.companyID, made.ID)
			w.refused(test.name+" regenerates", err, test.want)
			w.refused(test.name+" deletes", w.Accounts.AccessTokens.DeleteCompanyToken(w.Context(), by(test.who), test.companyID, made.ID), test.want)
			if test.want == fault.Forbidden {
				w.because(test.name, err, "permission")
			}
		}
		_, _, err = create(admin, c, outsider.ID)
		w.refused("for somebody who is no member", err, fault.Invalid)
		w.refused("another company's token", w.Accounts.AccessTokens.DeleteCompanyToken(w.Context(), by(outsider), other, made.ID), fault.NotFound)
		w.recorded("refused", mark)
		if !w.admits(secret) {
			w.Error("the token was ended")
		}
		w.recorded("used", mark, audit.TokenFirstUsed)

		// The member knows of it and can end it, but its value is the admin's.
		told := w.notices(member.ID)
		if len(told) != 1 || told[0].Kind != "token" || !strings.Contains(told[0].Text, `An admin of "Studio" created the access token "farm"`) {
			w.Errorf("notices = %+v", told)
		}
		if n := len(w.mailsTo(member.Email, "An access token was created for you")); n != 1 || len(w.mails()) != 1 {
			w.Errorf("%d of %d mails, want 1", n, len(w.mails()))
		}
		all, err := w.Accounts.AccessTokens.ListTokens(w.Context(), member.ID, nil, 10)
		if err != nil || len(all) != 1 || all[0].ID != made.ID || all[0].CompanyID != c || all[0].MintedBy != admin.ID {
			w.Errorf("the member's tokens = %+v, %v", all, err)
		}
		_, _, err = w.Accounts.AccessTokens.RegenerateAccessToken(w.Context(), by(member), made.ID)
		w.because("the member regenerates", err, "company_token")

		mark = w.mark()
		_, next, err := w.Accounts.AccessTokens.RegenerateCompanyToken(w.Context(), by(admin), c, made.ID)
		if err != nil || w.admits(secret) || !w.admits(next) {
			w.Errorf("regenerate = %v", err)
		}
		w.ok(w.Accounts.AccessTokens.DeleteAccessToken(w.Context(), by(member), made.ID))
		if w.admits(next) {
			w.Error("the member could not end the token")
		}
		mine, _, err := create(admin, c, admin.ID)
		w.ok(err)
		if len(w.mails()) != 1 || len(w.notices(admin.ID)) != 0 {
			w.Error("somebody was told what they did themselves")
		}
		w.ok(w.Accounts.AccessTokens.DeleteCompanyToken(w.Context(), by(admin), c, mine.ID))
		w.recorded("managed", mark, audit.TokenRegenerated, audit.TokenFirstUsed, audit.TokenDeleted, audit.TokenCreated, audit.TokenDeleted)
		for _, r := range w.records(mark) {
			if r.CompanyID != c {
				w.Errorf("record = %+v, want it to be the company's", r)
			}
		}
		if members, err := w.Accounts.AccessTokens.ListMembers(w.Context(), by(admin), c); err != nil || len(members) != 2 {
			w.Errorf("members = %+v, %v", members, err)
		}
	})
}

// A company token acts in the teams of its company, for as long as its person
// is in them, and reaches nothing else of theirs.
func TestReachOfACompanyToken(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		c, other := w.Company("Studio", company.TeamPlan), w.Company("Other", company.TeamPlan)
		team, foreign := w.Team(c, "Film", "member", anna.Email), w.Team(other, "Light", "member", anna.Email)
		_, token := w.Token(anna.Email, c)
		reach := func(teams ...string) error {
			rule := access.Rule{Kinds: []principal.Kind{principal.CompanyToken}, Account: access.OneAccount}
			_, err := w.Gate.Admit(w.Context(), rule, access.Presented{Authorization: []string{"Bearer " + token}, TeamID: teams})
			return err
		}
		w.ok(reach(team))
		w.refused("the personal account", reach(), fault.AccountSelectionInvalid)
		w.because("a team of another company", reach(foreign), "not_a_member")
		w.because("no team at all", reach("00000000000000000000"), "not_a_member")

		mark := w.mark()
		w.ok(w.Companies.TeamMembers.RemoveTeamMember(w.Context(), principal.Operator(), team, anna.ID))
		w.because("a team she left", reach(team), "not_a_member")
		w.ok(w.Companies.Members.RemoveMember(w.Context(), principal.Operator(), c, anna.ID))
		w.refused("a company she left", reach(team), fault.Unauthenticated)
		w.recorded("left", mark, audit.TeamMemberRemoved, audit.TokenDeleted, audit.CompanyMemberRemoved)
	})
}

// A company's name may have what no mail can carry.
func TestCompanyWithAnOddName(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		c := w.Company("Stu\u2028dio \u202egnihton", company.TeamPlan)
		w.Admit(c, anna.Email)
		_, _, err := w.Accounts.AccessTokens.CreateCompanyToken(w.Context(), principal.Operator(), c, anna.ID, "na\u202eme")
		w.ok(err)
		if told := w.notices(anna.ID); len(told) != 1 || strings.ContainsAny(told[0].Text, "\u2028\u202e") {
			w.Errorf("notices = %+q", told)
		}
	})
}
