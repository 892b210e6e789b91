package accounttest_test

import (
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/accounttest"
	"atelier/internal/account/profile"
	"atelier/internal/account/signup"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// ids names the teams of a list.
func ids(teams []company.Team) []string {
	all := []string{}
	for _, t := range teams {
		all = append(all, t.ID)
	}
	return all
}

// own makes a domain a company's.
func (w *fixture) own(companyID, domain, teamID string) {
	w.Helper()
	_, err := w.Companies.Domains.AddDomain(w.Context(), principal.Operator(), companyID, domain, teamID, "")
	w.ok(err)
	_, err = w.Companies.Domains.VerifyDomain(w.Context(), principal.Operator(), companyID, domain, true)
	w.ok(err)
}

func TestRecord(t *testing.T) {
	each(t, accounttest.Options{Settings: account.Settings{MonthlyAllowance: 7, TopUp: 50}}, func(w *fixture) {
		anna := w.somebody("anna@example.com", false)
		studio, north := w.Company("Studio", company.EnterprisePlan), w.Company("North", company.TeamPlan)
		w.Admit(studio, anna.Email, company.ManageAPITokens)
		film, light := w.Team(studio, "Film", "member", anna.Email), w.Team(north, "Light", "manager", anna.Email)
		_, err := w.Accounts.Grants.GrantByOperator(w.Context(), anna.Email, "", 100, "")
		w.ok(err)
		_, err = w.Accounts.Grants.GrantByOperator(w.Context(), "", film, 30, "")
		w.ok(err)

		member := []company.Permission{company.Generate, company.UsePlugins}
		want := profile.Profile{
			Person: anna, Provider: person.Password, TopUp: ledger.FreeTopUp{Available: true, Tokens: 50},
			Accounts: []profile.Account{
				{ID: anna.ID, Label: "Personal", Permissions: member, PluginKinds: []string{"*"}, Balance: ledger.Balance{Tokens: 100, FreeAllowanceLeft: 7}},
				{ID: light, Label: "Light", CompanyID: north, Plan: company.TeamPlan, Permissions: []company.Permission{company.Generate, company.ManageTeam, company.UsePlugins},
					PluginKinds: []string{"*"}, Balance: ledger.Balance{FreeAllowanceLeft: 7}},
				{ID: film, Label: "Film", CompanyID: studio, Plan: company.EnterprisePlan, Permissions: member, PluginKinds: []string{"*"},
					Balance: ledger.Balance{Tokens: 30, FreeAllowanceLeft: 7}},
			},
			Permissions: map[string][]company.Permission{studio: {company.ManageAPITokens}, north: {}},
		}
		check := func(name string, got profile.Profile) {
			w.Helper()
			got.NewTeams = slices.Clip(got.NewTeams)
			for id, all := range got.Permissions {
				if len(all) == 0 {
					got.Permissions[id] = []company.Permission{}
				}
			}
			if !reflect.DeepEqual(got, want) {
				w.Errorf("%s = %+v, want %+v", name, got, want)
			}
		}
		got, err := w.Accounts.Profiles.GetProfile(w.Context(), inBrowser(anna.ID, ""))
		w.ok(err)
		check("the record", got)
		check("that of a sign-in", w.Device(anna.ID, "").Profile)
		o, err := w.Accounts.Profiles.GetOverview(w.Context(), inBrowser(anna.ID, ""))
		w.ok(err)
		check("that of the account page", o.Profile)
		if len(o.Devices) != 1 || len(o.Sessions) != 1 || len(o.Notices) != 1 {
			w.Errorf("overview = %+v", o)
		}
		want.Provider = "Studio"
		got, err = w.Accounts.Profiles.GetProfile(w.Context(), inBrowser(anna.ID, "Studio"))
		w.ok(err)
		check("with a provider", got)

		w.ok(w.Companies.Members.RemoveMember(w.Context(), principal.Operator(), studio, anna.ID))
		got, err = w.Accounts.Profiles.GetProfile(w.Context(), inBrowser(anna.ID, ""))
		if err != nil || len(got.Accounts) != 2 || got.Accounts[1].ID != light || len(got.Permissions) != 1 {
			w.Errorf("the record of somebody who left = %+v, %v", got, err)
		}
		_, err = w.Accounts.Profiles.GetProfile(w.Context(), inBrowser("00000000000000000000", ""))
		w.refused("nobody", err, fault.NotFound)
	})
}

// inBrowser is a person who signed in with the provider in a browser.
func inBrowser(personID, provider string) principal.Principal {
	return principal.ForSession(personID, "", provider, "192.0.2.1")
}

// TestRecordsOfCredentials shows each credential what it can act for.
func TestRecordsOfCredentials(t *testing.T) {
	each(t, accounttest.Options{Settings: account.Settings{TopUp: 50}}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		studio, north, foreign := w.Company("Studio", company.TeamPlan), w.Company("North", company.TeamPlan), w.Company("Other", company.TeamPlan)
		film, light := w.Team(studio, "Film", "member"), w.Team(north, "Light", "member")
		for _, secret := range []string{w.invite("", studio, film), w.invite("", north, light)} {
			w.ok(w.Accounts.SignUp.AcceptInvitation(w.Context(), principal.Principal{PersonID: anna.ID}, secret))
		}
		_, err := w.Companies.TeamRoles.SetTeamRole(w.Context(), principal.Operator(), light, company.TeamRole{
			Name: "member", Permissions: []company.Permission{company.Generate, company.UsePlugins}, PluginKinds: []string{"blender"},
		})
		w.ok(err)
		for _, test := range []struct {
			caller    principal.Principal
			accounts  []string
			companies []string
		}{
			{principal.Principal{Credential: principal.Credential{Kind: principal.IDToken}, Plugin: "blender"}, []string{anna.ID, light, film}, []string{studio, north}},
			{principal.Principal{Credential: principal.Credential{Kind: principal.IDToken}, Plugin: "houdini"}, []string{anna.ID, film}, []string{studio, north}},
			{principal.Principal{Credential: principal.Credential{Kind: principal.IDToken}}, []string{anna.ID, film}, []string{studio, north}},
			{principal.Principal{Credential: principal.Credential{Kind: principal.PersonalToken}}, []string{anna.ID}, nil},
			{principal.Principal{Credential: principal.Credential{Kind: principal.CompanyToken, CompanyID: studio}}, []string{film}, []string{studio}},
			{principal.Principal{Credential: principal.Credential{Kind: principal.CompanyToken, CompanyID: north}}, []string{light}, []string{north}},
			{principal.Principal{Credential: principal.Credential{Kind: principal.CompanyToken, CompanyID: foreign}}, nil, nil},
		} {
			c := test.caller
			c.PersonID = anna.ID
			r, err := w.Accounts.Profiles.GetProfile(w.Context(), c)
			w.ok(err)

			var accounts []string
			for _, a := range r.Accounts {
				accounts = append(accounts, a.ID)
			}
			companies := slices.Sorted(maps.Keys(r.Permissions))
			slices.Sort(test.companies)
			teams := slices.DeleteFunc(slices.Clone(test.accounts), func(id string) bool { return id == anna.ID }) // all of them are new
			joined := ids(r.NewTeams)
			slices.Sort(teams)
			slices.Sort(joined)
			if !slices.Equal(accounts, test.accounts) || !slices.Equal(joined, teams) || !slices.Equal(companies, test.companies) {
				w.Errorf("for %+v: accounts %v, new teams %v, companies %v, want %+v", c, accounts, joined, companies, test)
			}
			if own := c.Credential.Kind != principal.CompanyToken; (r.TopUp == ledger.FreeTopUp{Available: true, Tokens: 50}) != own || (r.TopUp != ledger.FreeTopUp{}) != own {
				w.Errorf("for %+v: top-up = %+v", c, r.TopUp)
			}
		}
		if got := w.Device(anna.ID, "houdini").Profile; len(got.Accounts) != 2 || got.Accounts[1].ID != film || len(got.NewTeams) != 1 {
			w.Errorf("a sign-in shows %+v", got)
		}
	})
}

func TestNewTeams(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		c, other := w.Company("Studio", company.TeamPlan), w.Company("North", company.TeamPlan)
		anna := w.somebody("anna@studio.example", true)
		accept := func(teamID string) {
			w.pass(time.Second)
			w.ok(w.Accounts.SignUp.AcceptInvitation(w.Context(), principal.Principal{PersonID: anna.ID}, w.invite("", other, teamID)))
		}
		signIn := func(name string, want ...string) {
			w.Helper()
			w.pass(time.Second)
			if got := ids(w.Device(anna.ID, "").Profile.NewTeams); !slices.Equal(got, append([]string{}, want...)) {
				w.Errorf("%s: new teams = %v, want %v", name, got, want)
			}
			w.pass(time.Second)
			r, err := w.Accounts.Profiles.GetProfile(w.Context(), inBrowser(anna.ID, ""))
			if got := ids(r.NewTeams); err != nil || !slices.Equal(got, append([]string{}, want...)) {
				w.Errorf("%s: new teams later = %v, %v, want %v", name, got, err, want)
			}
		}
		early, invited, late := w.Team(other, "Early", "member"), w.Team(other, "Invited", "member"), w.Team(other, "Late", "member")
		accept(early)
		w.Team(c, "Added", "member", anna.Email)
		signIn("the first", early)

		accept(invited)
		w.pass(time.Second)
		domain := w.Team(c, "Domain", "member")
		w.own(c, "studio.example", domain)
		w.Team(c, "Added later", "member", anna.Email)
		signIn("the second", invited, domain)
		signIn("the third")

		accept(late)
		signIn("the fourth", late)
		signIn("the fifth")
	})
}

// The domain of an address counts from when the address is proven.
func TestDomainOfAVerifiedAddress(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		c := w.Company("Studio", company.TeamPlan)
		team := w.Team(c, "Film", "member")
		w.own(c, "studio.example", team)
		in, err := w.signUp(signup.Application{Email: "anna@Studio.Example"})
		w.ok(err)
		if got := w.Device(in.Person.ID, "").Profile; len(got.NewTeams) != 0 || len(got.Accounts) != 1 {
			w.Errorf("before: %+v", got)
		}
		w.pass(time.Second)
		mark := w.mark()
		w.ok(w.Accounts.Verification.VerifyEmail(w.Context(), w.secret("anna@Studio.Example", "Verify"), w.Client()))
		w.recorded("verified", mark, audit.CompanyMemberSet, audit.PersonVerified)
		if r := w.records(mark)[0]; r.PersonID != in.Person.ID || r.CompanyID != c || r.Details["how"] != "domain" || r.Details["team"] != team {
			w.Errorf("record = %+v", r)
		}
		w.pass(time.Second)
		if got := w.Device(in.Person.ID, "").Profile; !slices.Equal(ids(got.NewTeams), []string{team}) || len(got.Accounts) != 2 {
			w.Errorf("after: %+v", got)
		}
		made, err := w.Accounts.SignUp.CreatePerson(w.Context(), person.Draft{Email: "bert@studio.example", EmailVerified: true, PasswordHash: accounttest.PasswordHash})
		w.ok(err)
		if got := w.Device(made.ID, "").Profile; !slices.Equal(ids(got.NewTeams), []string{team}) {
			w.Errorf("one that the operator made: %+v", got)
		}
	})
}

func TestTopUpOncePerWindow(t *testing.T) {
	each(t, accounttest.Options{Settings: account.Settings{TopUp: 50, TopUpWindow: time.Hour, MonthlyAllowance: 7}}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		for round := range int64(2) {
			var won atomic.Int64
			dbtest.Together(32, func(int) {
				got, balance, err := w.Accounts.Grants.ClaimTopUp(w.Context(), principal.Principal{PersonID: anna.ID})
				if err != nil {
					w.because("top-up", err, "window")
					return
				}
				won.Add(1)
				if want := (ledger.Balance{Tokens: 50 * (round + 1), FreeAllowanceLeft: 7}); got != (ledger.FreeTopUp{Tokens: 50}) || balance != want {
					w.Errorf("top-up = %+v, %+v, want %+v", got, balance, want)
				}
			})
			if got := w.balance(anna.ID); won.Load() != 1 || got != 50*(round+1) || w.times(audit.TokensToppedUp) != int(round+1) {
				w.Errorf("round %d: %d won, balance %d, %d records", round, won.Load(), got, w.times(audit.TokensToppedUp))
			}
			for _, step := range []struct {
				pass      time.Duration
				available bool
			}{{time.Hour - time.Microsecond, false}, {time.Microsecond, true}} {
				w.pass(step.pass)
				if r, err := w.Accounts.Profiles.GetProfile(w.Context(), inBrowser(anna.ID, "")); err != nil || r.TopUp != (ledger.FreeTopUp{Available: step.available, Tokens: 50}) {
					w.Errorf("top-up = %+v, %v, want available %v", r.TopUp, err, step.available)
				}
			}
		}
	})
}

func TestNoTopUp(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		_, _, err := w.Accounts.Grants.ClaimTopUp(w.Context(), principal.Principal{PersonID: anna.ID})
		w.because("top-up", err, "off")
		if r, err := w.Accounts.Profiles.GetProfile(w.Context(), inBrowser(anna.ID, "")); err != nil || r.TopUp != (ledger.FreeTopUp{}) {
			w.Errorf("top-up = %+v, %v, want none", r.TopUp, err)
		}
	})
}
