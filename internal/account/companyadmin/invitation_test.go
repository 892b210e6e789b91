package companyadmin_test

import (
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// invitation finds what a link stands for.
func (w fixture) invitation(link string) company.Invitation {
	w.Helper()
	secret, ok := strings.CutPrefix(link, appURL+"/invitation?token=")
	if !ok {
		w.Fatalf("link = %q", link)
	}
	return get(w, func(tx *sqldb.Tx) (company.Invitation, error) { return company.InvitationBySecret(w.ctx(), tx, secret) })
}

func TestTheCreatorOfAnInvitationGetsItsLink(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		inv, link, err := w.companies.Invitations.CreateInvitation(w.ctx(), admin, company.Draft{CompanyID: c, TeamID: team, Uses: 3, InvitedBy: "somebody else"})
		w.ok(err)
		if got := w.invitation(link); got != inv || got.InvitedBy != admin.PersonID || got.UsesLeft != 3 || got.TeamRole != "member" {
			w.Errorf("invitation = %+v, want %+v", got, inv)
		}
		if life := inv.Expires.Sub(inv.Created); life != 7*24*time.Hour {
			w.Errorf("it lasts %v, want a week", life)
		}
		if sent := w.mails(); len(sent) != 0 {
			w.Errorf("mails = %v", sent)
		}
		for _, r := range w.log(0) {
			for key, value := range r.Details {
				if strings.Contains(value, strings.TrimPrefix(link, appURL+"/invitation?token=")) {
					w.Errorf("the log has the secret under %s", key)
				}
			}
		}
	})
}

func TestAnInvitationGoesToItsAddressOnly(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox\u2028\u202eeliF")
		admin := w.role(c, w.person("anna@example.com"), company.CompanyPermissions...)
		for i, a := range []principal.Principal{admin, operator} {
			inv, link, err := w.companies.Invitations.CreateInvitation(w.ctx(), a, company.Draft{CompanyID: c, Email: "bert@example.com", Lifetime: time.Hour})
			w.ok(err)
			if link != "" {
				w.Errorf("the inviter has the link %s", link)
			}
			sent := w.mails()
			if len(sent) != i+1 {
				w.Fatalf("%d mails, want %d", len(sent), i+1)
			}
			m := sent[i]
			if m.To != "bert@example.com" || strings.Contains(m.Text, "anna@example.com") != (i == 0) || !strings.Contains(m.Text, "“Fox  eliF”") || !strings.Contains(m.Text, "2026-11-15 10:30 UTC") {
				w.Errorf("mail = %+v", m)
			}
			at := strings.Index(m.Text, appURL)
			if got := w.invitation(strings.Fields(m.Text[at:])[0]); got != inv {
				w.Errorf("the link leads to %+v, want %+v", got, inv)
			}
		}
	})
}

// TestInvitationsAndDomainsForATeamNeedItsManager: invitations and domains that
// lead into a team need a manager of the team, who may grant the role.
func TestInvitationsAndDomainsForATeamNeedItsManager(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		mate, chief, boss := w.role(c, w.fresh(), company.ManageMembers), w.role(c, w.fresh(), company.ManageMembers), w.role(c, w.fresh(), company.ManageMembers, company.ManageTeams)
		w.joinTeam(team, mate, "member")
		w.teamRole(team, chief, "chief", company.ManageTeam, company.UsePlugins) // who may not generate
		w.makeTeamRole(team, "guest")
		for _, test := range []struct {
			who  principal.Principal
			role string
			may  bool
		}{
			{mate, "", false}, {mate, "member", false}, {mate, "guest", false},
			{chief, "", false}, {chief, "member", false}, {chief, "guest", true}, {chief, "chief", true},
			{boss, "", true}, {boss, "manager", true},
		} {
			_, _, invited := w.companies.Invitations.CreateInvitation(w.ctx(), test.who, company.Draft{CompanyID: c, TeamID: team, TeamRole: test.role})
			_, opened := w.companies.Domains.AddDomain(w.ctx(), test.who, c, "fox.example", team, test.role)
			for _, err := range []error{invited, opened} {
				if !test.may {
					w.refused(err, fault.Forbidden, "permission")
				} else if err != nil {
					w.Errorf("%s: %v", test.role, err)
				}
			}
			if opened == nil {
				w.ok(w.companies.Domains.RemoveDomain(w.ctx(), test.who, c, "fox.example"))
			}
		}
	})
}

func TestARefusedInvitationSendsNothing(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		foreign := w.team(other)
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		w.role(other, admin)
		before := w.seq()
		for field, d := range map[string]company.Draft{
			"email":        {Email: "a\u2028b@example.com"},
			"company_role": {Email: "bert@example.com", CompanyRole: "king"},
			"team_id":      {Email: "bert@example.com", TeamID: foreign},
			"uses":         {Email: "bert@example.com", Uses: 2},
			"lifetime":     {Email: "bert@example.com", Lifetime: -1},
			"team_role":    {Email: "bert@example.com", TeamRole: "member"},
		} {
			d.CompanyID = c
			_, _, err := w.companies.Invitations.CreateInvitation(w.ctx(), admin, d)
			w.refused(err, fault.Invalid, field)
		}
		if sent := w.mails(); len(sent) != 0 || w.seq() != before {
			w.Errorf("mails = %v, %d records", sent, w.seq()-before)
		}
		if all, err := w.companies.Invitations.ListInvitations(w.ctx(), admin, c, nil, 10); err != nil || len(all) != 0 {
			w.Errorf("invitations = %v, %v", all, err)
		}
	})
}

func TestMailIsLimited(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		w.role(other, admin, company.CompanyPermissions...)
		invite := func(a principal.Principal, companyID, email string) error {
			_, _, err := w.companies.Invitations.CreateInvitation(w.ctx(), a, company.Draft{CompanyID: companyID, Email: email})
			return err
		}
		for range 5 {
			w.ok(invite(admin, c, "bert@example.com"))
		}
		w.refused(invite(admin, c, "BERT@example.com"), fault.RateLimited, "")
		w.ok(invite(admin, c, "carl@example.com"))
		w.ok(invite(admin, other, "bert@example.com")) // who knows nothing of the first
		w.ok(invite(operator, c, "bert@example.com"))
		w.clock.Add(time.Hour.Microseconds())
		w.ok(invite(admin, c, "bert@example.com"))
		if got := len(w.mails()); got != 9 {
			w.Errorf("%d mails, want 9", got)
		}

		// One person has 200 in an hour, to whomever.
		get(w, func(tx *sqldb.Tx) (id string, err error) {
			for range 198 {
				if id, _, err = ratelimit.Take(w.ctx(), tx, ratelimit.Key{Name: "invitation/person/" + admin.PersonID, Subject: admin.PersonID}, ratelimit.Window{Max: 1000, Span: time.Hour}); err != nil {
					return "", err
				}
			}
			return id, nil
		})
		w.ok(invite(admin, c, "dora@example.com"))
		w.refused(invite(admin, other, "emil@example.com"), fault.RateLimited, "")
	})
}

func TestRevokedInvitationsAreNotFound(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		admin := w.role(c, w.fresh(), company.CompanyPermissions...)
		inv, _, err := w.companies.Invitations.CreateInvitation(w.ctx(), admin, company.Draft{CompanyID: c})
		w.ok(err)
		stranger := w.companies.Invitations.RevokeInvitation(w.ctx(), w.fresh(), inv.ID)
		w.ok(w.companies.Invitations.RevokeInvitation(w.ctx(), admin, inv.ID))
		again := w.companies.Invitations.RevokeInvitation(w.ctx(), admin, inv.ID)
		w.refused(again, fault.NotFound, "")
		if stranger == nil || stranger.Error() != again.Error() {
			w.Errorf("a stranger is told %v, and of one that is gone %v", stranger, again)
		}
	})
}

func TestOffersAreForVerifiedAddresses(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		bert := w.person("Bert@example.com")
		for _, d := range []company.Draft{{Email: "bert@example.com"}, {Email: "BERT@example.com", TeamID: team}, {Email: "carl@example.com"}, {}} {
			d.CompanyID = c
			_, _, err := w.companies.Invitations.CreateInvitation(w.ctx(), operator, d)
			w.ok(err)
			w.clock.Add(time.Second.Microseconds())
		}
		offers, err := w.companies.Invitations.ListOffers(w.ctx(), bert)
		w.ok(err)
		if len(offers) != 2 || offers[0].Company != "Fox" || offers[0].Team != "Film" || offers[1].Team != "" {
			w.Errorf("offers = %+v", offers)
		}
		doubtful := get(w, func(tx *sqldb.Tx) (person.Person, error) {
			return person.Create(w.ctx(), tx, person.Draft{Email: "carl@example.com", PasswordHash: "x"})
		})
		if offers, err := w.companies.Invitations.ListOffers(w.ctx(), principal.Principal{PersonID: doubtful.ID}); err != nil || len(offers) != 0 {
			w.Errorf("offers for an address that nobody has proven = %+v, %v", offers, err)
		}
	})
}
