package company_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
)

func (w fixture) tryInvite(d company.Draft) (inv company.Invitation, secret string, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) { inv, secret, err = company.Invite(w.Context(), tx, d); return err })
	return inv, secret, err
}

func (w fixture) invite(d company.Draft) (company.Invitation, string) {
	w.Helper()
	inv, secret, err := w.tryInvite(d)
	w.OK(err)
	return inv, secret
}

func (w fixture) accept(secret, personID, email string) error {
	return w.Try(func(tx *sqldb.Tx) error {
		_, _, err := company.AcceptSecret(w.Context(), tx, secret, personID, email)
		return err
	})
}

func (w fixture) acceptByID(id, personID, email string, verified bool) error {
	return w.Try(func(tx *sqldb.Tx) error {
		_, _, err := company.AcceptByID(w.Context(), tx, id, personID, email, verified)
		return err
	})
}

func (w fixture) bySecret(secret string) (inv company.Invitation, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) {
		inv, err = company.InvitationBySecret(w.Context(), tx, secret)
		return err
	})
	return inv, err
}

func TestInvite(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c.ID, "Film")
		inv, secret := w.invite(company.Draft{CompanyID: c.ID, TeamID: team.ID, TeamRole: "manager", Email: "Anna@Example.com", InvitedBy: "x", Lifetime: time.Hour})
		want := company.Invitation{ID: inv.ID, CompanyID: c.ID, CompanyRole: "member", TeamID: team.ID, TeamRole: "manager", Email: "Anna@Example.com",
			UsesLeft: 1, InvitedBy: "x", Created: w.Now(), Expires: w.Now().Add(time.Hour)}
		if inv != want || !ids.Valid(inv.ID) || len(secret) != 40 {
			w.Errorf("invitation = %+v, want %+v", inv, want)
		}
		if got, err := w.bySecret(secret); err != nil || got != want {
			w.Errorf("by secret = %+v, %v, want %+v", got, err, want)
		}
		if got := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (company.Invitation, error) { return company.InvitationByID(w.Context(), tx, inv.ID) }); got != want {
			w.Errorf("by id = %+v, want %+v", got, want)
		}
		sum := sha256.Sum256([]byte(secret))
		if n := w.count(`SELECT count(*) FROM invitation WHERE hash = $1`, hex.EncodeToString(sum[:])); n != 1 {
			w.Error("the secret is not kept as its SHA-256")
		}
		plain, _ := w.invite(company.Draft{CompanyID: c.ID, CompanyRole: "admin", Uses: 1000, Lifetime: time.Second})
		if plain.TeamID != "" || plain.TeamRole != "" || plain.CompanyRole != "admin" || plain.UsesLeft != 1000 {
			w.Errorf("invitation = %+v", plain)
		}
		withTeam, _ := w.invite(company.Draft{CompanyID: c.ID, TeamID: team.ID, Lifetime: time.Hour})
		if withTeam.TeamRole != "member" || withTeam.UsesLeft != 1 {
			w.Errorf("invitation = %+v, want the role member and one use", withTeam)
		}
	})
}

func TestInviteRefuses(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		foreign, gone := w.team(other.ID, "Film"), w.team(c.ID, "Old")
		w.OK(w.removeTeam(gone.ID))
		team := w.team(c.ID, "Film")
		for _, test := range []struct {
			name  string
			field string
			draft company.Draft
		}{
			{"a role that is not there", "company_role", company.Draft{CompanyRole: "keeper"}},
			{"a role that cannot be", "company_role", company.Draft{CompanyRole: "\x00"}},
			{"a role in no team", "team_role", company.Draft{TeamRole: "member"}},
			{"a team role that is not there", "team_role", company.Draft{TeamID: team.ID, TeamRole: "keeper"}},
			{"another company's team", "team_id", company.Draft{TeamID: foreign.ID}},
			{"a removed team", "team_id", company.Draft{TeamID: gone.ID}},
			{"no team at all", "team_id", company.Draft{TeamID: "\x00"}},
			{"no address", "email", company.Draft{Email: "anna"}},
			{"a name with the address", "email", company.Draft{Email: "Anna <a@b.c>"}},
			{"a long address", "email", company.Draft{Email: strings.Repeat("a", 251) + "@b.c"}},
			{"an address twice", "uses", company.Draft{Email: "a@b.c", Uses: 2}},
			{"negative uses", "uses", company.Draft{Uses: -1}},
			{"too many uses", "uses", company.Draft{Uses: 1001}},
			{"no time", "lifetime", company.Draft{Lifetime: -time.Hour}},
			{"too long a time", "lifetime", company.Draft{Lifetime: 366 * 24 * time.Hour}},
		} {
			d := test.draft
			d.CompanyID, d.Lifetime = c.ID, d.Lifetime+time.Second
			if _, _, err := w.tryInvite(d); err == nil {
				w.Errorf("%s was accepted", test.name)
			} else {
				w.refused(err, fault.Invalid, test.field)
			}
		}
		_, _, err := w.tryInvite(company.Draft{CompanyID: ids.New(), Lifetime: time.Hour})
		w.refused(err, fault.NotFound, "")
		if n := w.count(`SELECT count(*) FROM invitation`); n != 0 {
			w.Errorf("%d invitations were made", n)
		}
	})
}

func TestAccept(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c.ID, "Film")
		anna := w.person("anna@example.com")
		w.role(c.ID, "keeper", company.ManageTeams)
		_, secret := w.invite(company.Draft{CompanyID: c.ID, CompanyRole: "keeper", TeamID: team.ID, TeamRole: "manager", Email: "Anna@Example.com", Lifetime: time.Hour})
		var fresh bool
		inv := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (inv company.Invitation, err error) {
			inv, fresh, err = company.AcceptSecret(w.Context(), tx, secret, anna, "anna@EXAMPLE.com")
			return inv, err
		})
		if !fresh || inv.UsesLeft != 0 || inv.TeamID != team.ID {
			w.Errorf("accepted %+v, fresh = %v", inv, fresh)
		}
		if got := w.members(c.ID); len(got) != 1 || got[0].Role != "keeper" || got[0].PersonID != anna {
			w.Errorf("members = %+v", got)
		}
		if got := w.teamMembers(team.ID); len(got) != 1 || got[0].Role != "manager" || got[0].How != company.Invited || !got[0].Joined.Equal(w.Now()) {
			w.Errorf("members of the team = %+v", got)
		}
	})
}

func TestMembersLoseNothingByAnInvitation(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c.ID, "Film")
		anna := w.person("anna@example.com")
		w.join(c.ID, anna, "admin")
		_, toCompany := w.invite(company.Draft{CompanyID: c.ID, Lifetime: time.Hour})
		_, toTeam := w.invite(company.Draft{CompanyID: c.ID, TeamID: team.ID, Uses: 5, Lifetime: time.Hour})
		accept := func(secret string) (fresh bool) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) (err error) {
				_, fresh, err = company.AcceptSecret(w.Context(), tx, secret, anna, "anna@example.com")
				return err
			})
			return fresh
		}
		left := func(secret string) int64 {
			inv, err := w.bySecret(secret)
			w.OK(err)
			return inv.UsesLeft
		}
		if accept(toCompany) || left(toCompany) != 1 {
			w.Error("a member used up an invitation to the company")
		}
		if !accept(toTeam) || left(toTeam) != 4 {
			w.Error("a member of the company did not use the invitation to a team")
		}
		w.joinTeam(team.ID, anna, "manager")
		if accept(toTeam) || left(toTeam) != 4 {
			w.Error("a member of the team used the invitation again")
		}
		if m, in := w.members(c.ID), w.teamMembers(team.ID); m[0].Role != "admin" || in[0].Role != "manager" {
			w.Errorf("roles = %s, %s", m[0].Role, in[0].Role)
		}
	})
}

func TestInvitationsThatDoNotCount(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		link := company.Draft{CompanyID: c.ID, Lifetime: 2 * time.Hour}
		bound := link
		bound.Email = "carl@example.com"
		soon := link
		soon.Lifetime = time.Hour

		usedInv, used := w.invite(link)
		w.OK(w.accept(used, bert, "bert@example.com"))
		expiredInv, expired := w.invite(soon)
		revokedInv, revoked := w.invite(link)
		revoke := func(companyID, id string) error {
			return w.Try(func(tx *sqldb.Tx) error { return company.Revoke(w.Context(), tx, companyID, id) })
		}
		w.refused(revoke(other.ID, revokedInv.ID), fault.NotFound, "")
		if _, err := w.bySecret(revoked); err != nil {
			w.Error("another company revoked the invitation")
		}
		w.OK(revoke(c.ID, revokedInv.ID))
		w.refused(revoke(c.ID, revokedInv.ID), fault.NotFound, "")
		w.refused(revoke(c.ID, "\x00"), fault.NotFound, "")
		boundInv, boundSecret := w.invite(bound)
		openInv, open := w.invite(link)
		w.Pass(time.Hour)

		var answers []error
		for _, secret := range []string{used, expired, revoked, boundSecret, ids.Text(40), "", "x", strings.ToLower(open), strings.Repeat("\x00", 40), open + "x"} {
			answers = append(answers, w.accept(secret, anna, "anna@example.com"))
		}
		for _, id := range []string{usedInv.ID, expiredInv.ID, revokedInv.ID, boundInv.ID, openInv.ID, ids.New(), "", "\x00"} {
			answers = append(answers, w.acceptByID(id, anna, "anna@example.com", true))
		}
		for i, err := range answers {
			w.refused(err, fault.NotFound, "")
			if err == nil || err.Error() != answers[0].Error() {
				w.Errorf("answer %d differs: %v and %v", i, err, answers[0])
			}
		}
		for _, secret := range []string{used, expired, revoked} {
			_, err := w.bySecret(secret)
			w.refused(err, fault.NotFound, "")
		}
		if len(w.members(c.ID)) != 1 {
			w.Errorf("members = %+v, want bert only", w.members(c.ID))
		}
		w.OK(w.accept(open, anna, ""))
	})
}

func TestAcceptByIDNeedsAProvenAddress(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		anna := w.person("anna@example.com")
		inv, secret := w.invite(company.Draft{CompanyID: c.ID, Email: "anna@example.com", Lifetime: time.Hour})
		w.refused(w.acceptByID(inv.ID, anna, "anna@example.com", false), fault.NotFound, "")
		w.refused(w.acceptByID(inv.ID, anna, "bert@example.com", true), fault.NotFound, "")
		w.refused(w.accept(secret, anna, "bert@example.com"), fault.NotFound, "")
		w.OK(w.acceptByID(inv.ID, anna, "Anna@example.com", true))
		link, _ := w.invite(company.Draft{CompanyID: c.ID, Lifetime: time.Hour})
		w.refused(w.acceptByID(link.ID, w.person("bert@example.com"), "", true), fault.NotFound, "")
	})
}

func TestMayJoin(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		bound, boundSecret := w.invite(company.Draft{CompanyID: c.ID, Email: "anna@example.com", Lifetime: time.Hour})
		link, linkSecret := w.invite(company.Draft{CompanyID: c.ID, Lifetime: time.Hour})
		for _, test := range []struct {
			secret, email string
			want          company.Invitation
		}{
			{boundSecret, "ANNA@example.com", bound},
			{boundSecret, "bert@example.com", company.Invitation{}},
			{linkSecret, "bert@example.com", link},
			{"", "anna@example.com", company.Invitation{}},
			{ids.Text(40), "anna@example.com", company.Invitation{}},
		} {
			w.Do(func(tx *sqldb.Tx) error {
				inv, may, err := company.MayJoin(w.Context(), tx, test.secret, test.email)
				if inv != test.want || may != (test.want.ID != "") {
					w.Errorf("may %s join = %+v, %v, want %+v", test.email, inv, may, test.want)
				}
				return err
			})
		}
		w.Pass(time.Hour)
		w.Do(func(tx *sqldb.Tx) error {
			_, may, err := company.MayJoin(w.Context(), tx, linkSecret, "bert@example.com")
			if may {
				w.Error("an expired invitation lets people in")
			}
			return err
		})
	})
}

func TestInvitationsPageNewestFirst(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		draft := company.Draft{CompanyID: c.ID, Lifetime: time.Hour}
		w.invite(draft) // will expire
		w.Pass(time.Minute)
		_, used := w.invite(draft)
		w.OK(w.accept(used, w.person("x@example.com"), ""))
		w.invite(company.Draft{CompanyID: other.ID, Lifetime: 2 * time.Hour})
		var want []string
		for i := range 5 {
			if i != 2 { // two are made at the same moment
				w.Pass(time.Minute)
			}
			inv, _ := w.invite(draft)
			want = append(want, inv.ID)
		}
		if want[1] > want[2] {
			want[1], want[2] = want[2], want[1]
		}
		slices.Reverse(want)
		w.Pass(55 * time.Minute)
		var got []string
		for after := (*company.After)(nil); len(got) < 10; {
			page := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Invitation, error) {
				return company.Invitations(w.Context(), tx, c.ID, after, 2)
			})
			if len(page) == 0 {
				break
			}
			for _, inv := range page {
				got, after = append(got, inv.ID), &company.After{Created: inv.Created, ID: inv.ID}
			}
		}
		if !slices.Equal(got, want) {
			w.Errorf("pages = %v, want %v", got, want)
		}
	})
}

func TestInvitationsFor(t *testing.T) {
	each(t, func(w fixture) {
		fox, hound := w.company("Fox"), w.company("Hound")
		w.invite(company.Draft{CompanyID: fox.ID, Email: "anna@example.com", Lifetime: time.Minute})
		first, _ := w.invite(company.Draft{CompanyID: fox.ID, Email: "Anna@example.com", Lifetime: time.Hour})
		w.Pass(time.Minute)
		second, _ := w.invite(company.Draft{CompanyID: hound.ID, Email: "anna@Example.com", Lifetime: time.Hour})
		w.invite(company.Draft{CompanyID: fox.ID, Email: "bert@example.com", Lifetime: time.Hour})
		w.invite(company.Draft{CompanyID: fox.ID, Lifetime: time.Hour})
		of := func(email string) []company.Invitation {
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Invitation, error) {
				return company.InvitationsFor(w.Context(), tx, email)
			})
		}
		if got, want := of("ANNA@example.com"), []company.Invitation{second, first}; !slices.Equal(got, want) {
			w.Errorf("invitations = %+v, want %+v", got, want)
		}
		if got := of(""); len(got) != 0 {
			w.Errorf("invitations for no address = %+v", got)
		}
	})
}

func TestSweepInvitations(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		w.invite(company.Draft{CompanyID: c.ID, Lifetime: time.Hour})
		_, kept := w.invite(company.Draft{CompanyID: c.ID, Lifetime: 2 * time.Hour})
		sweep := func(before time.Time) int64 {
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (int64, error) { return company.DeleteExpiredInvitations(w.Context(), tx, before) })
		}
		if n := sweep(w.Now().Add(time.Hour)); n != 0 {
			w.Errorf("swept %d that have not expired before", n)
		}
		if n := sweep(w.Now().Add(time.Hour + time.Second)); n != 1 {
			w.Errorf("swept %d, want 1", n)
		}
		if _, err := w.bySecret(kept); err != nil {
			w.Error(err)
		}
	})
}

func TestLinkLetsInAsManyAsItSays(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c.ID, "Film")
		_, secret := w.invite(company.Draft{CompanyID: c.ID, TeamID: team.ID, Uses: 5, Lifetime: time.Hour})
		var people [32]string
		for i := range people {
			people[i] = w.person(fmt.Sprintf("p%d@example.com", i))
		}
		var in atomic.Int64
		dbtest.Together(len(people), func(i int) {
			err := w.accept(secret, people[i], "")
			if err == nil {
				in.Add(1)
			} else if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.NotFound {
				w.Error(err)
			}
		})
		if in.Load() != 5 || len(w.members(c.ID)) != 5 || len(w.teamMembers(team.ID)) != 5 {
			w.Errorf("%d came in, the company has %d, the team %d, want 5", in.Load(), len(w.members(c.ID)), len(w.teamMembers(team.ID)))
		}
	})
}

func TestOnePersonUsesALinkOnce(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		anna := w.person("anna@example.com")
		_, secret := w.invite(company.Draft{CompanyID: c.ID, Uses: 5, Lifetime: time.Hour})
		dbtest.Together(16, func(int) {
			if err := w.accept(secret, anna, ""); err != nil {
				w.Error(err)
			}
		})
		if inv, err := w.bySecret(secret); err != nil || inv.UsesLeft != 4 {
			w.Errorf("%d uses are left, %v, want 4", inv.UsesLeft, err)
		}
	})
}
