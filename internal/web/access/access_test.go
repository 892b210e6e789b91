package access_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/web/access"
)

const anna = "anna@example.com"

// fixture is an installation with Anna, who is in a team and has a credential of
// every kind.
type fixture struct {
	t     testing.TB
	site  *accounttest.Site
	clock atomic.Int64 // since begin

	anna, company, team string
	device              devicelogin.Login
	tokens              map[principal.Kind]string
	tokenID             string // of the personal token
}

var begin = time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)

func (w *fixture) now() time.Time       { return begin.Add(time.Duration(w.clock.Load())) }
func (w *fixture) pass(d time.Duration) { w.clock.Add(int64(d)) }

// build makes a fixture where Anna's address is verified or not.
func build(t testing.TB, engine string, verified bool, o accounttest.Options) *fixture {
	t.Helper()
	w := &fixture{t: t}
	o.Now = w.now
	w.site = accounttest.New(t, dbtest.OpenAt(t, dbtest.URL(t, engine), w.now), o)
	p, err := w.site.Accounts.SignUp.CreatePerson(t.Context(), person.Draft{Email: anna, EmailVerified: verified, PasswordHash: accounttest.PasswordHash})
	if err != nil {
		t.Fatal(err)
	}
	w.anna = p.ID
	w.company = w.site.Company("X", company.EnterprisePlan)
	w.site.Admit(w.company, anna, company.ViewCompanyReports)
	w.team = w.site.Team(w.company, "Team", "member", anna)
	w.device = w.site.Device(w.anna, "blender")
	w.tokens = map[principal.Kind]string{principal.IDToken: w.device.Tokens.ID}
	w.tokenID, w.tokens[principal.PersonalToken] = w.site.Token(anna, "")
	_, w.tokens[principal.CompanyToken] = w.site.Token(anna, w.company)
	return w
}

func each(t *testing.T, fn func(t *testing.T, w *fixture)) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fn(t, build(t, engine, true, accounttest.Options{}))
		})
	}
}

// admit presents a token, and the teams that team_id names.
func (w *fixture) admit(r access.Rule, token string, team ...string) (principal.Principal, error) {
	return w.site.Gate.Admit(w.t.Context(), r, access.Presented{Authorization: []string{"Bearer " + token}, TeamID: team, Address: "192.0.2.1"})
}

// word is what an error says: its code and reason, "" for none.
func word(err error) string {
	if err == nil {
		return ""
	}
	f, ok := err.(*fault.Error)
	if !ok {
		return "accident"
	}
	reason, _ := f.Details["reason"].(string)
	return strings.TrimSuffix(string(f.Code)+" "+reason, " ")
}

// selectTeam is the rule of routes that act for an account.
var selectTeam = access.Rule{Kinds: []principal.Kind{principal.IDToken, principal.PersonalToken, principal.CompanyToken}, Account: access.OneAccount}

// accountOf is the account alone that a principal acts for.
func accountOf(p principal.Principal) principal.Principal {
	return principal.Principal{AccountID: p.AccountID, TeamID: p.TeamID, CompanyID: p.CompanyID, Others: p.Others}
}

func TestAccounts(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		mine, theirs := principal.Principal{AccountID: w.anna}, principal.Principal{AccountID: w.team, TeamID: w.team, CompanyID: w.company}
		var none principal.Principal
		for _, x := range []struct {
			name    string
			rule    access.Rule
			kind    principal.Kind
			team    []string
			account principal.Principal
			err     string
		}{
			{"an ID token and nothing", selectTeam, principal.IDToken, nil, mine, ""},
			{"an ID token and empty", selectTeam, principal.IDToken, []string{""}, mine, ""},
			{"an ID token and a team", selectTeam, principal.IDToken, []string{w.team}, theirs, ""},
			{"a personal token and nothing", selectTeam, principal.PersonalToken, nil, mine, ""},
			{"a personal token and empty", selectTeam, principal.PersonalToken, []string{""}, mine, ""},
			{"a personal token and a team", selectTeam, principal.PersonalToken, []string{w.team}, none, "ACCOUNT_SELECTION_INVALID team_not_allowed"},
			{"a company token and nothing", selectTeam, principal.CompanyToken, nil, none, "ACCOUNT_SELECTION_INVALID team_required"},
			{"a company token and empty", selectTeam, principal.CompanyToken, []string{""}, none, "ACCOUNT_SELECTION_INVALID team_required"},
			{"a company token and a team", selectTeam, principal.CompanyToken, []string{w.team}, theirs, ""},
			{"a company token and another team", selectTeam, principal.CompanyToken, []string{ids.New()}, none, "FORBIDDEN not_a_member"},
			{"two empty ones", selectTeam, principal.IDToken, []string{"", ""}, none, "ACCOUNT_SELECTION_INVALID several"},
			{"the catalog, a company token and nothing", access.Catalog, principal.CompanyToken, nil, principal.Principal{CompanyID: w.company}, ""},
			{"the catalog, a company token and a team", access.Catalog, principal.CompanyToken, []string{w.team}, theirs, ""},
			{"the catalog and an ID token", access.Catalog, principal.IDToken, nil, mine, ""},
			{"no account and nonsense", access.Identity, principal.IDToken, []string{"a,b", "\x00"}, none, ""},
			{"no account and somebody's team", access.Identity, principal.CompanyToken, []string{ids.New()}, none, ""},
		} {
			c, err := w.admit(x.rule, w.tokens[x.kind], x.team...)
			if x.account.TeamID != "" && (c.Role.Name != "member" || !c.Role.May(company.Generate)) {
				t.Errorf("%s: role = %+v, want member", x.name, c.Role)
			}
			a := accountOf(c)
			if word(err) != x.err || !reflect.DeepEqual(a, x.account) {
				t.Errorf("%s = %+v, %q, want %+v, %q", x.name, a, word(err), x.account, x.err)
			}
			if c.PersonID != w.anna || c.Credential.Kind != x.kind { // so that the request counts as theirs
				t.Errorf("%s: caller = %+v", x.name, c)
			}
		}
	})
}

// TestCompanies holds the rule of reports against credentials and companies. That
// plan and permission come after the company is in the order of the cases.
func TestCompanies(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		foreign := w.site.Company("Foreign", company.EnterprisePlan)
		set := func(plan company.Plan, perms ...company.Permission) {
			w.site.Admit(w.company, anna, perms...)
			if err := w.site.DB.Write(t.Context(), func(tx *sqldb.Tx) error {
				_, err := tx.Exec(t.Context(), `UPDATE company SET plan = $1 WHERE id = $2`, string(plan), w.company)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		teams := []string{ids.New()}
		check := func(what string, strict bool, kind principal.Kind, want string, companies ...string) {
			t.Helper()
			gate := *w.site.Gate
			gate.RefuseOAuthReports = strict
			c, err := gate.Admit(t.Context(), access.Reporting, access.Presented{
				Authorization: []string{"Bearer " + w.tokens[kind]}, CompanyID: companies, TeamID: teams, Address: "192.0.2.1",
			})
			a, account := accountOf(c), principal.Principal{}
			if want == "" {
				account.CompanyID = w.company
			}
			if word(err) != want || !reflect.DeepEqual(a, account) || c.PersonID != w.anna || c.Credential.Kind != kind {
				t.Errorf("%s with %s = %+v, %+v, %q, want %q", what, kind, c, a, word(err), want)
			}
		}
		set(company.TeamPlan)
		for _, kind := range []principal.Kind{principal.IDToken, principal.CompanyToken} {
			check("another company", false, kind, "FORBIDDEN company", foreign)
			check("no company", false, kind, "FORBIDDEN company", ids.New())
			check("an id too long", false, kind, "FORBIDDEN company", w.company+"x")
			check("no id", false, kind, "INVALID_REQUEST", "a-b")
			check("two", false, kind, "INVALID_REQUEST", w.company, w.company)
			check("the plan", false, kind, "FORBIDDEN plan", w.company)
			set(company.EnterprisePlan, company.ManageAPITokens)
			check("the permission", false, kind, "FORBIDDEN permission", w.company)
			set(company.EnterprisePlan, company.ViewCompanyReports)
			check("all of it", false, kind, "", w.company)
			set(company.TeamPlan, company.ViewCompanyReports)
			check("the permission without the plan", false, kind, "FORBIDDEN plan", w.company)
		}
		set(company.EnterprisePlan, company.ViewCompanyReports)
		check("none named", false, principal.CompanyToken, "")
		check("an empty one", false, principal.CompanyToken, "", "")
		check("none named", false, principal.IDToken, "FORBIDDEN company")
		check("an empty one", false, principal.IDToken, "FORBIDDEN company", "")
		check("where it is refused", true, principal.IDToken, "FORBIDDEN credential", w.company)
		check("where it is refused, no id", true, principal.IDToken, "FORBIDDEN credential", "a-b")
		check("where ID tokens are refused", true, principal.CompanyToken, "", w.company)
		check("the company", false, principal.PersonalToken, "FORBIDDEN credential", w.company)
		check("no id", false, principal.PersonalToken, "FORBIDDEN credential", "a-b")

		for _, x := range []struct {
			teams []string
			want  string
		}{
			{nil, ""},
			{[]string{""}, ""},
			{[]string{w.team}, ""},
			{[]string{"a-b"}, "ACCOUNT_SELECTION_INVALID malformed"},
			{[]string{w.team + "x"}, "ACCOUNT_SELECTION_INVALID malformed"},
			{[]string{w.team + "," + w.team}, "ACCOUNT_SELECTION_INVALID several"},
			{[]string{w.team, ids.New()}, "ACCOUNT_SELECTION_INVALID several"},
		} {
			teams = x.teams
			check(fmt.Sprint("teams ", x.teams), false, principal.IDToken, x.want, w.company)
			check(fmt.Sprint("teams ", x.teams), false, principal.CompanyToken, x.want)
			check(fmt.Sprint("teams ", x.teams), false, principal.PersonalToken, "FORBIDDEN credential", w.company)
		}
	})
}

func TestCallers(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		for kind, want := range map[principal.Kind]principal.Principal{
			principal.IDToken:       {Credential: principal.Credential{ID: w.device.DeviceID, Provider: "password"}, Plugin: "blender"},
			principal.PersonalToken: {Credential: principal.Credential{ID: w.tokenID}},
			principal.CompanyToken:  {Credential: principal.Credential{CompanyID: w.company}},
		} {
			c, err := w.admit(access.Identity, w.tokens[kind])
			want.PersonID, want.Credential.Kind, want.Address = w.anna, kind, "192.0.2.1"
			if kind == principal.CompanyToken {
				want.Credential.ID = c.Credential.ID
			}
			if err != nil || !reflect.DeepEqual(c, want) {
				t.Errorf("%s = %+v, %v, want %+v", kind, c, err, want)
			}
			if c, err := w.admit(access.Rule{}, w.tokens[kind]); word(err) != "FORBIDDEN credential" || !reflect.DeepEqual(c, want) {
				t.Errorf("%s at the zero rule = %+v, %v, want refused and known", kind, c, err)
			}
		}
	})
}

func TestDeviceIDs(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		own, other := w.device.DeviceID, w.site.Device(w.anna, "").DeviceID
		for _, x := range []struct {
			name   string
			ids    []string
			proves bool
		}{
			{"none", nil, true}, {"its own", []string{own}, true}, {"its own twice", []string{own, own}, false}, {"empty", []string{""}, false},
			{"another of the person", []string{other}, false}, {"nobody's", []string{ids.New()}, false}, {"lower case", []string{strings.ToLower(own)}, strings.ToLower(own) == own},
		} {
			p := access.Presented{Authorization: []string{"Bearer " + w.tokens[principal.IDToken]}, DeviceID: x.ids}
			want := "UNAUTHENTICATED"
			if x.proves {
				want = ""
			}
			if _, err := w.site.Gate.Admit(t.Context(), access.SignedIn, p); word(err) != want {
				t.Errorf("%s: %q, want %q", x.name, word(err), want)
			}
			if _, err := w.site.Gate.Admit(t.Context(), access.LeavingDevice, p); err != nil {
				t.Errorf("%s, where it names a device: %v", x.name, err)
			}
		}
	})
}

// TestRecordsDecide changes what is known about a person and a device behind
// the back of those who end credentials.
func TestRecordsDecide(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		suspend := func(on bool) {
			if err := w.site.DB.Write(t.Context(), func(tx *sqldb.Tx) error { return person.SetSuspended(t.Context(), tx, w.anna, on) }); err != nil {
				t.Fatal(err)
			}
		}
		for kind, token := range w.tokens {
			suspend(true)
			if c, err := w.admit(access.Identity, token); word(err) != "UNAUTHENTICATED" || !reflect.DeepEqual(c, principal.Principal{}) {
				t.Errorf("%s of somebody suspended = %+v, %v", kind, c, err)
			}
			suspend(false)
			if _, err := w.admit(access.Identity, token); err != nil {
				t.Errorf("%s of somebody restored = %v", kind, err)
			}
		}
		bert := w.site.Person("bert@example.com")
		var token string
		err := w.site.DB.Write(t.Context(), func(tx *sqldb.Tx) (err error) {
			token, _, err = w.site.Tokens.SignToken(t.Context(), tx, idtoken.Claims{PersonID: bert, DeviceID: w.device.DeviceID})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := w.admit(access.Identity, token); word(err) != "UNAUTHENTICATED" || !reflect.DeepEqual(c, principal.Principal{}) {
			t.Errorf("Bert on Anna's device = %+v, %v", c, err)
		}
	})
}

func TestVerifiedAddresses(t *testing.T) {
	t.Parallel()
	all := []principal.Kind{principal.IDToken, principal.PersonalToken, principal.CompanyToken}
	rules := []struct {
		name  string
		rule  access.Rule
		kinds []principal.Kind
		// What waits for the address to be verified.
		reading, writing bool
	}{
		{"catalog", access.Catalog, all, false, true},
		{"one account", selectTeam, all, false, true},
		{"several accounts", access.ForAccounts, all, false, true},
		{"generating", access.Generating, all, false, true},
		{"pricing", access.Pricing, all, false, false},
		{"secrets", access.Managing, all[:2], true, true},
		{"personal", access.Personal, all[:2], false, true},
		{"signed in", access.SignedIn, all[:1], false, true},
		{"reporting", access.Reporting, all[2:], false, true},
		{"identity", access.Identity, all, false, false},
		{"leaving", access.Leaving, all[:1], false, false},
		{"leaving a device", access.LeavingDevice, all[:1], false, false},
	}
	check := func(w *fixture, demanded bool) {
		w.t.Helper()
		for _, r := range rules {
			for _, kind := range r.kinds {
				for _, reads := range []bool{true, false} {
					want := ""
					if demanded && (reads && r.reading || !reads && r.writing) {
						want = "EMAIL_NOT_VERIFIED"
					}
					p := access.Presented{Authorization: []string{"Bearer " + w.tokens[kind]}, Address: "192.0.2.1", Reads: reads}
					if kind == principal.CompanyToken {
						p.TeamID = []string{w.team}
					}
					c, err := w.site.Gate.Admit(w.t.Context(), r.rule, p)
					if word(err) != want || c.PersonID != w.anna || err != nil && c.AccountID != "" || c.Unverified != (demanded && want == "") {
						w.t.Errorf("%s with %s, reads %t = %+v, %q, want %q", r.name, kind, reads, c, word(err), want)
					}
				}
			}
		}
	}
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := build(t, engine, false, accounttest.Options{Verified: true})
			check(w, true)
			err := w.site.DB.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := person.SetVerified(t.Context(), tx, w.anna, anna); return err })
			if err != nil {
				t.Fatal(err)
			}
			check(w, false)
			check(build(t, engine, false, accounttest.Options{}), false) // where the operator does not ask for it
		})
	}
}

func TestLastUsed(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		personal := func() time.Time {
			all, err := w.site.Accounts.AccessTokens.ListTokens(t.Context(), w.anna, nil, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range all {
				if one.ID == w.tokenID {
					return one.LastUsed
				}
			}
			t.Fatal("the token is not listed")
			return time.Time{}
		}
		deviceUse := func() (at time.Time, address string) {
			var all []device.Device
			err := w.site.DB.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
				all, err = w.site.Accounts.Devices.Devices.ListSignedIn(t.Context(), tx, w.anna)
				return err
			})
			if err != nil || len(all) != 1 {
				t.Fatalf("devices = %v, %v", all, err)
			}
			return all[0].LastUsed, all[0].Address
		}
		use := func() {
			for _, kind := range []principal.Kind{principal.PersonalToken, principal.IDToken} {
				if _, err := w.admit(access.Identity, w.tokens[kind]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if at := personal(); !at.IsZero() {
			t.Errorf("before the first use a token was last used at %v", at)
		}
		_, home := deviceUse()
		signedIn := w.now()
		w.pass(time.Second)
		use()
		first := w.now()
		if at := personal(); !at.Equal(first) {
			t.Errorf("after the first use = %v, want %v", at, first)
		}
		if at, address := deviceUse(); !at.Equal(signedIn) || address != home {
			t.Errorf("a second after its sign-in a device was last used %v at %s, want %v at %s", at, address, signedIn, home)
		}
		w.pass(58 * time.Second)
		use()
		if at := personal(); !at.Equal(first) {
			t.Errorf("within a minute = %v, want %v still", at, first)
		}
		w.pass(2 * time.Second)
		use()
		if at := personal(); !at.Equal(w.now()) {
			t.Errorf("after a minute = %v, want %v", at, w.now())
		}
		if at, address := deviceUse(); !at.Equal(w.now()) || address != "192.0.2.1" {
			t.Errorf("after a minute a device was last used %v at %s, want %v at 192.0.2.1", at, address, w.now())
		}
	})
}

func TestFirstUseIsRecordedOnce(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		used := func() (tokens []string) {
			err := w.site.DB.Read(t.Context(), func(tx *sqldb.Tx) error {
				all, err := audit.List(t.Context(), tx, audit.Filter{PersonID: w.anna, Limit: 100})
				for _, r := range all {
					if r.Act == audit.TokenFirstUsed {
						tokens = append(tokens, r.Details["token"]+" "+r.CompanyID)
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return tokens
		}
		var group sync.WaitGroup
		for range 32 {
			group.Go(func() {
				if _, err := w.admit(access.Identity, w.tokens[principal.PersonalToken]); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := used(); len(got) != 1 || got[0] != w.tokenID+" " {
			t.Errorf("first uses = %q, want one of %s", got, w.tokenID)
		}
		w.pass(time.Hour)
		if _, err := w.admit(access.Identity, w.tokens[principal.PersonalToken]); err != nil || len(used()) != 1 {
			t.Errorf("after a later use = %v, %q, want one still", err, used())
		}
		c, err := w.admit(access.Identity, w.tokens[principal.CompanyToken])
		if got := used(); err != nil || len(got) != 2 || got[0] != c.Credential.ID+" "+w.company {
			t.Errorf("after the first use of a company's token = %v, %q, want it with the company", err, got)
		}
	})
}

// TestUncheckedIsRefused takes the database away: what cannot be checked lets
// nobody in.
func TestUncheckedIsRefused(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		for _, token := range w.tokens {
			if _, err := w.admit(access.Identity, token); err != nil {
				t.Fatal(err)
			}
		}
		w.site.DB.Close()
		for kind, token := range w.tokens {
			c, err := w.admit(access.Identity, token)
			if err == nil || word(err) == "UNAUTHENTICATED" || !reflect.DeepEqual(c, principal.Principal{}) {
				t.Errorf("%s without a database = %+v, %v, want an accident", kind, c, err)
			}
		}
	})
}

// FuzzBearer looks for a header that lets somebody in and is none of those that
// we gave out.
func FuzzBearer(f *testing.F) {
	w := build(f, "sqlite", true, accounttest.Options{})
	good := map[string]bool{}
	for kind, token := range w.tokens {
		if _, err := w.admit(access.Identity, token); err != nil {
			f.Fatalf("%s: %v", kind, err)
		}
		good[token] = true
		part := strings.Split(token, ".")
		for _, seed := range []string{"Bearer " + token, "bearer " + token, "Bearer  " + token, "Bearer " + token + " ", token, "Basic " + token, "Bearer " + token + "0", "Bearer " + token[:len(token)-1],
			"Bearer " + part[0] + ".", "Bearer " + strings.ToUpper(token), "Bearer " + token + "\x00", "Bearer " + token + "\n", "Bearer\t" + token, "Bearer " + token + "," + token} {
			f.Add(seed, "")
			f.Add(seed, w.device.DeviceID)
		}
	}
	for _, seed := range []string{"", " ", "Bearer", "Bearer ", "Bearer atl_p_", "Bearer atl_c_" + strings.Repeat("0", 49), "Bearer ..", "Bearer " + w.device.Tokens.Refresh, "Bearer " + w.device.DeviceID} {
		f.Add(seed, "")
	}
	f.Fuzz(func(t *testing.T, header, deviceID string) {
		p := access.Presented{Authorization: []string{header}, Address: "192.0.2.1"}
		if deviceID != "" {
			p.DeviceID = []string{deviceID}
		}
		if scheme, token, _ := strings.Cut(header, " "); strings.EqualFold(scheme, "bearer") && good[token] {
			return
		}
		c, err := w.site.Gate.Admit(context.Background(), access.Identity, p)
		if word(err) != "UNAUTHENTICATED" || !reflect.DeepEqual(c, principal.Principal{}) {
			t.Fatalf("%q = %+v, %s", header, c, fmt.Sprint(err))
		}
	})
}
