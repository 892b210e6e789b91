package access

import (
	"slices"
	"strings"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
)

// FuzzParseSelection proves that the accounts which a request selects are ids,
// each once, in the order of the request, and that refusals name their reason.
func FuzzParseSelection(f *testing.F) {
	for _, text := range []string{"", "PagW53lsaa2KiGgg5wR4", "a,b", "a,a,b", ",", "a,", " a", "a'--", "é", strings.Repeat("a,", 101) + "a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		teams, err := parseTeams([]string{text})
		switch {
		case err != nil:
			if !fault.Is(err, fault.AccountSelectionInvalid) || teams != nil {
				t.Errorf("%q = %q, %v", text, teams, err)
			}
		case text == "":
			if !slices.Equal(teams, []string{""}) {
				t.Errorf("nothing = %q", teams)
			}
		default:
			if len(teams) == 0 || len(teams) > maxTeams || len(slices.Compact(slices.Sorted(slices.Values(teams)))) != len(teams) {
				t.Errorf("%q = %q", text, teams)
			}
			again, err := parseTeams([]string{strings.Join(teams, ",")})
			if err != nil || !slices.Equal(again, teams) {
				t.Errorf("%q = %q, which is read as %q, %v", text, teams, again, err)
			}
		}

		one, err := parseTeam([]string{text})
		if err == nil && (one != text || one != "" && !ids.Alphanumeric(one)) {
			t.Errorf("%q = %q", text, one)
		}
		if (err == nil) != (len(teams) == 1 && teams[0] == text) {
			t.Errorf("%q as one team = %v, as several = %q", text, err, teams)
		}
		company, err := parseCompany([]string{text})
		if err == nil && (company != text || company != "" && !ids.Alphanumeric(company)) {
			t.Errorf("%q = %q", text, company)
		}
	})
}
