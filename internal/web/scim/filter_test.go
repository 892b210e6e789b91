package scim_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// names gives the userNames or displayNames of a list, without the domain.
func names(a answer) string {
	var all []string
	list, _ := a.body["Resources"].([]any)
	for _, r := range list {
		name := at(r, "userName")
		if name == nil {
			name = at(r, "displayName")
		}
		local, _, _ := strings.Cut(fmt.Sprint(name), "@")
		all = append(all, local)
	}
	return strings.Join(all, " ")
}

func TestFiltersOnUsers(t *testing.T) {
	each(t, func(w *fixture) {
		anna := w.do(201, "POST", "/Users", `{"userName":"anna@fox.example","externalId":"E1","displayName":"Anna \"the\" Ax","name":{"givenName":"Anna","familyName":"Ax"},
			"emails":[{"value":"anna@fox.example","type":"work"},{"value":"a@home.example","type":"home"}],
			"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"Film"}}`).id()
		w.clock.Add(time.Hour.Microseconds())
		w.do(201, "POST", "/Users", `{"userName":"bert@fox.example","externalId":"e1","displayName":"Bert","name":{"familyName":"Öl"}}`)
		w.do(201, "POST", "/Users", `{"userName":"carl@fox.example","active":false}`)
		w.site.Person("dora@fox.example")
		for filter, want := range map[string]string{
			`userName eq "ANNA@fox.example"`:                                            "anna",
			`USERNAME Eq "anna@fox.example"`:                                            "anna",
			`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "anna@fox.example"`: "anna",
			`userName eq "nobody@fox.example"`:                                          "",
			`userName eq "'; DROP TABLE person"`:                                        "",
			`userName ne "anna@fox.example"`:                                            "bert carl dora",
			`userName sw "B" or userName sw "c"`:                                        "bert carl",
			`userName co "R"`:                                                           "bert carl dora",
			`userName ew "@fox.example"`:                                                "anna bert carl dora",
			`userName gt "bert@fox.example"`:                                            "carl dora",
			`userName ge "bert@fox.example"`:                                            "bert carl dora",
			`userName lt "bert@fox.example"`:                                            "anna",
			`userName le "bert@fox.example"`:                                            "anna bert",
			`externalId eq "e1"`:                                                        "bert",
			`externalId eq "E1"`:                                                        "anna",
			`externalId pr`:                                                             "anna bert",
			`externalId eq null`:                                                        "carl dora",
			`externalId ne null`:                                                        "anna bert",
			`not (externalId pr)`:                                                       "carl dora",
			`id eq "` + anna + `"`:                                                      "anna",
			`id eq "nonsense"`:                                                          "",
			`id eq "` + anna + `" and active eq false`:                                  "",
			`active eq true`:                                                            "anna bert dora",
			`active eq "False"`:                                                         "carl",
			`active ne true`:                                                            "carl",
			`emails.value eq "a@home.example"`:                                          "anna",
			`emails eq "a@home.example"`:                                                "anna",
			`emails co "dora@"`:                                                         "dora",
			`emails[type eq "home"]`:                                                    "anna",
			`emails[type eq "home" and value sw "x"]`:                                   "",
			`emails[not (type eq "home")]`:                                              "anna dora",
			`emails pr`:                                                                 "anna dora",
			`displayName eq "anna \"the\" ax"`:                                          "anna",
			`name.familyName eq "öL"`:                                                   "bert",
			`name.givenName pr and not (name.familyName eq "x")`:                        "anna",
			`name pr`: "anna bert",
			`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department eq "film"`: "anna",
			`meta.created eq "2026-11-15T09:30:00Z"`:                                          "anna",
			`meta.lastModified gt "2026-11-15T10:00:00+00:00"`:                                "bert carl dora",
			`meta.lastModified lt "2026-11-15T11:00:00+01:00"`:                                "anna",
			`(userName sw "a" or userName sw "b") and externalId eq "e1"`:                     "bert",
			`userName sw "a" or userName sw "b" and externalId eq "nope"`:                     "anna",
		} {
			a := w.do(200, "GET", "/Users?filter="+url.QueryEscape(filter), "")
			if got := names(a); got != want {
				w.Errorf("%s: %q, want %q", filter, got, want)
			}
			text := fmt.Sprintf(`{"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],"filter":%q}`, filter)
			if got := names(w.do(200, "POST", "/Users/.search", text)); got != want {
				w.Errorf("search %s: %q, want %q", filter, got, want)
			}
		}
		for _, filter := range []string{
			`userName`, `userName eq`, `userName eq anna`, `userName eq "anna`, `userName is "anna"`, `nonsense eq "x"`, `name.nonsense eq "x"`, `userName.x eq "y"`, `groups.value eq "x"`,
			`active gt true`, `active eq "maybe"`, `active eq 1`, `userName eq 1`, `userName eq true`, `meta.created eq "yesterday"`, `meta.created co "2026-11-15T09:30:00Z"`,
			`name[givenName eq "x"]`, `emails[nonsense eq "x"]`, `emails[type eq "x"`, `userName eq "\q"`, `and`, `()`, `not`, `urn:other:userName eq "x"`,
			strings.Repeat("(", 17) + `userName pr` + strings.Repeat(")", 17), strings.Repeat(`userName pr or `, 200) + `userName pr`, "\x00", "\xff", `externalId eq "\u0000"`, "externalId eq \"\xff\"", `userName eq "a\u0000"`,
		} {
			w.as(w.token, "GET", "/Users?filter="+url.QueryEscape(filter), "").want(400, "invalidFilter")
		}
		deep := strings.Repeat("(", 16) + `userName pr` + strings.Repeat(")", 16)
		w.do(200, "GET", "/Users?filter="+url.QueryEscape(deep), "").has(map[string]any{"totalResults": 4})
	})
}

func TestFiltersOnGroups(t *testing.T) {
	each(t, func(w *fixture) {
		anna, bert := w.user("anna@fox.example"), w.user("bert@fox.example")
		film := w.do(201, "POST", "/Groups", `{"displayName":"Film","externalId":"g1","members":`+member(anna, bert)+`}`).id()
		w.do(201, "POST", "/Groups", `{"displayName":"Light","members":`+member(bert)+`}`)
		w.site.Team(w.fox, "Sound", "member")
		for filter, want := range map[string]string{
			`displayName eq "Film"`: "Film", `displayName eq "film"`: "", `displayName co "i"`: "Film Light", `externalId eq "g1"`: "Film", `id eq "` + film + `"`: "Film",
			`members.value eq "` + anna + `"`: "Film", `members.value eq "` + bert + `"`: "Film Light", `members eq "` + anna + `"`: "Film", `members[value eq "` + anna + `"]`: "Film",
			`members pr`: "Film Light", `not (members pr)`: "Sound", `displayName eq "Film" and members.value eq "` + bert + `"`: "Film",
			`displayName eq "Light" and members.value eq "` + anna + `"`: "", `externalId pr or displayName eq "Sound"`: "Film Sound",
		} {
			a := w.do(200, "GET", "/Groups?filter="+url.QueryEscape(filter), "")
			if got := names(a); got != want {
				w.Errorf("%s: %q, want %q", filter, got, want)
			}
			without := w.do(200, "GET", "/Groups?excludedAttributes=members&filter="+url.QueryEscape(filter), "")
			if got := names(without); got != want || strings.Contains(without.text, `"members"`) {
				w.Errorf("%s without members: %s", filter, without.text)
			}
		}
		w.do(200, "GET", `/Groups?filter=displayName+eq+"Film"`, "").has(map[string]any{"Resources|0|members|1|value": bert})
		// All resources at once: users, then groups.
		for body, want := range map[string]string{
			`{}`: "anna bert Film Light Sound", `{"startIndex":2,"count":2}`: "bert Film", `{"startIndex":4,"count":5}`: "Light Sound", `{"count":0}`: "",
			`{"filter":"externalId eq \"g1\""}`: "Film", `{"filter":"userName sw \"a\""}`: "anna", `{"filter":"displayName pr"}`: "Film Light Sound",
		} {
			if got := names(w.do(200, "POST", "/.search", body)); got != want {
				w.Errorf("search %s: %q, want %q", body, got, want)
			}
		}
		w.as(w.token, "POST", "/.search", `{"filter":"nonsense eq 1"}`).want(400, "invalidFilter")
	})
}

// TestPages walks 2,000 users.
func TestPages(t *testing.T) {
	each(t, func(w *fixture) {
		for first := 0; first < 2000; first += 100 { // a transaction has seconds, and the machine may be busy
			w.ok(w.site.DB.Write(w.Context(), func(tx *sqldb.Tx) error {
				for i := first; i < first+100; i++ {
					p, err := person.Create(w.Context(), tx, person.Draft{Email: fmt.Sprintf("u%04d@fox.example", (i*7)%2000), EmailVerified: true})
					if err != nil {
						return err
					}
					if _, err := company.SetMember(w.Context(), tx, w.fox, p.ID, company.RoleMember); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		next := 0
		for start := 1; start <= 2000; start += 200 {
			a := w.do(200, "GET", fmt.Sprintf("/Users?startIndex=%d&count=500&attributes=userName", start), "")
			a.has(map[string]any{"totalResults": 2000, "startIndex": start, "itemsPerPage": 200, "Resources|0|active": nil, "Resources|0|meta": nil})
			for name := range strings.FieldsSeq(names(a)) {
				if want := fmt.Sprintf("u%04d", next); name != want {
					w.Fatalf("user %d is %s, want %s", next, name, want)
				}
				next++
			}
		}
		if next != 2000 {
			w.Errorf("%d users", next)
		}
		for query, want := range map[string]map[string]any{
			"startIndex=2001":         {"totalResults": 2000, "itemsPerPage": 0, "startIndex": 2001},
			"startIndex=-5&count=1":   {"totalResults": 2000, "itemsPerPage": 1, "startIndex": 1, "Resources|0|userName": "u0000@fox.example"},
			"count=0":                 {"totalResults": 2000, "itemsPerPage": 0},
			"count=-1":                {"totalResults": 2000, "itemsPerPage": 0},
			"":                        {"totalResults": 2000, "itemsPerPage": 100},
			"count=3&startIndex=1999": {"itemsPerPage": 2, "Resources|1|userName": "u1999@fox.example"},
			`filter=userName+sw+"u1"&startIndex=1000&count=9`:  {"totalResults": 1000, "itemsPerPage": 1, "Resources|0|userName": "u1999@fox.example"},
			`filter=userName+eq+"u0042@fox.example"&count=200`: {"totalResults": 1, "itemsPerPage": 1},
		} {
			w.do(200, "GET", "/Users?"+query, "").has(want)
		}
		for _, query := range []string{"count=x", "startIndex=1.5", "count=99999999999999", "attributes=userName&excludedAttributes=name"} {
			w.as(w.token, "GET", "/Users?"+query, "").want(400, "invalidValue")
		}
	})
}
