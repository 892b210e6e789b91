package principal_test

import (
	"testing"

	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

func TestMay(t *testing.T) {
	t.Parallel()
	role := company.TeamRole{Permissions: []company.Permission{company.Generate}}
	for _, test := range []struct {
		name string
		p    principal.Principal
		perm company.Permission
		want bool
	}{
		{"the personal account", principal.Principal{PersonID: "anna", AccountID: "anna"}, company.ManageTeam, true},
		{"a team whose role allows it", principal.Principal{AccountID: "t", TeamID: "t", Role: role}, company.Generate, true},
		{"a team whose role does not", principal.Principal{AccountID: "t", TeamID: "t", Role: role}, company.ManageTeam, false},
		{"the operator", principal.Operator(), company.ManageTeam, true},
	} {
		if got := test.p.May(test.perm); got != test.want {
			t.Errorf("%s: May(%s) = %t, want %t", test.name, test.perm, got, test.want)
		}
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	role := company.TeamRole{Permissions: []company.Permission{company.UsePlugins}, PluginKinds: []string{"blender"}}
	for _, test := range []struct {
		name                    string
		credential              principal.Credential
		plugin                  string
		personal, team, company bool
	}{
		{"a plugin that the role allows", principal.Credential{Kind: principal.IDToken}, "blender", true, true, true},
		{"a plugin that the role does not allow", principal.Credential{Kind: principal.IDToken}, "houdini", true, false, true},
		{"a plugin that did not report its kind", principal.Credential{Kind: principal.IDToken}, "", true, false, true},
		{"a browser", principal.Credential{Kind: principal.BrowserSession}, "", true, true, true},
		{"a personal token", principal.Credential{Kind: principal.PersonalToken}, "", true, false, false},
		{"a token of the company", principal.Credential{Kind: principal.CompanyToken, CompanyID: "fox"}, "", false, true, true},
		{"a token of another company", principal.Credential{Kind: principal.CompanyToken, CompanyID: "owl"}, "", false, false, false},
	} {
		p := principal.Principal{PersonID: "anna", Credential: test.credential, Plugin: test.plugin}
		if got := p.ReachesPersonal(); got != test.personal {
			t.Errorf("%s reaches the personal account: %t, want %t", test.name, got, test.personal)
		}
		if got := p.ReachesTeam("fox", role); got != test.team {
			t.Errorf("%s reaches the team: %t, want %t", test.name, got, test.team)
		}
		if got := p.ReachesCompany("fox"); got != test.company {
			t.Errorf("%s reaches the company: %t, want %t", test.name, got, test.company)
		}
	}
}

func TestOperators(t *testing.T) {
	t.Parallel()
	operators := principal.NewOperators([]string{"Olga@example.com"})
	for _, test := range []struct {
		name     string
		of       principal.Operators
		kind     principal.Kind
		web      bool
		email    string
		verified bool
		want     bool
	}{
		{"an app", operators, principal.IDToken, false, "olga@example.com", true, true},
		{"the studio", operators, principal.IDToken, true, "OLGA@example.com", true, true},
		{"an address that is not verified", operators, principal.IDToken, true, "olga@example.com", false, false},
		{"another address", operators, principal.IDToken, true, "olga@example.com.evil.example", true, false},
		{"no address", operators, principal.IDToken, true, "", true, false},
		{"a personal token", operators, principal.PersonalToken, false, "olga@example.com", true, false},
		{"a company token", operators, principal.CompanyToken, false, "olga@example.com", true, false},
		{"a browser session", operators, principal.BrowserSession, false, "olga@example.com", true, false},
		{"nobody named", principal.NewOperators(nil), principal.IDToken, true, "olga@example.com", true, false},
		{"no setting", nil, principal.IDToken, true, "olga@example.com", true, false},
	} {
		c := principal.Credential{Kind: test.kind, Web: test.web}
		if got := test.of.Admits(c, test.email, test.verified); got != test.want {
			t.Errorf("%s: Admits = %t, want %t", test.name, got, test.want)
		}
	}
}
