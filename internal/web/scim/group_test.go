package scim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"atelier/internal/base/ids"
	"atelier/internal/people/company"
)

// members gives the ids of a group's members, sorted.
func members(a answer) (ids []string) {
	list, _ := a.body["members"].([]any)
	for _, m := range list {
		ids = append(ids, fmt.Sprint(at(m, "value")))
	}
	slices.Sort(ids)
	return ids
}

func (a answer) members(want ...string) {
	a.Helper()
	slices.Sort(want)
	if got := members(a); !slices.Equal(got, want) {
		a.Errorf("%s: members = %v, want %v", a.what, got, want)
	}
}

func member(ids ...string) string {
	var all []string
	for _, id := range ids {
		all = append(all, `{"value":"`+id+`"}`)
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestGroups(t *testing.T) {
	each(t, func(w *fixture) {
		anna, bert, carl := w.user("anna@fox.example"), w.user("bert@fox.example"), w.user("carl@fox.example")
		before := w.seq()
		a := w.do(201, "POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"Film","externalId":"g1","members":`+member(anna, bert, anna)+`}`)
		id := a.id()
		a.members(anna, bert)
		a.has(map[string]any{"displayName": "Film", "externalId": "g1", "meta|resourceType": "Group", "meta|location": w.url + "/scim/v2/Groups/" + id,
			"members|0|$ref": w.url + "/scim/v2/Users/" + anna, "members|0|type": "User", "members|0|display": nil})
		if a.header.Get("Location") != w.url+"/scim/v2/Groups/"+id {
			w.Errorf("Location = %s", a.header.Get("Location"))
		}
		if got := w.acts(before); !slices.Equal(got, []string{"team.created", "team.member_set", "team.member_set"}) {
			w.Errorf("acts = %v", got)
		}
		if s, err := company.TeamMembershipOf(w.Context(), w.site.DB, anna, id); err != nil || s.Role.Name != "member" {
			w.Errorf("standing = %+v, %v", s, err)
		}
		w.do(200, "GET", "/Users/"+anna, "").has(map[string]any{"groups|0|value": id, "groups|0|display": "Film", "groups|0|$ref": w.url + "/scim/v2/Groups/" + id})
		w.do(200, "GET", "/Groups/"+id+"?attributes=members.display", "").has(map[string]any{"members|0|display": "anna@fox.example", "members|0|value": nil, "displayName": nil})
		w.do(200, "GET", "/Groups/"+id+"?excludedAttributes=members,meta", "").has(map[string]any{"members": nil, "meta": nil, "displayName": "Film", "id": id})

		w.site.Join(id, "anna@fox.example", "lead")
		before = w.seq()
		w.patch(200, "/Groups/"+id, `[{"op":"add","path":"members","value":`+member(anna, carl)+`},{"op":"remove","path":"members[value eq \"`+bert+`\"]"}]`).members(anna, carl)
		if got := w.acts(before); !slices.Equal(got, []string{"team.member_removed", "team.member_set"}) {
			w.Errorf("acts = %v", got)
		}
		if s, _ := company.TeamMembershipOf(w.Context(), w.site.DB, anna, id); s.Role.Name != "lead" {
			w.Errorf("role = %s, want lead: who is in keeps theirs", s.Role.Name)
		}
		before = w.seq()
		w.patch(200, "/Groups/"+id, `[{"op":"remove","path":"members[value eq \"`+bert+`\"]"}]`).members(anna, carl)
		if got := w.acts(before); len(got) != 0 {
			w.Errorf("acts of nothing = %v", got)
		}
		w.patch(200, "/Groups/"+id, `[{"op":"replace","path":"members","value":`+member(bert)+`},{"op":"replace","path":"displayName","value":"Sound"}]`).members(bert)
		w.patch(200, "/Groups/"+id, `[{"op":"remove","path":"members"}]`).members()
		a = w.do(200, "PUT", "/Groups/"+id, `{"displayName":"Light","members":[{"$ref":"`+w.url+`/scim/v2/Users/`+carl+`"}]}`)
		a.members(carl)
		a.has(map[string]any{"displayName": "Light", "externalId": nil})

		// Who is not active is in the group, and in the team when they are back.
		w.patch(200, "/Users/"+carl, `[{"op":"replace","path":"active","value":false}]`)
		w.patch(200, "/Users/"+bert, `[{"op":"replace","path":"active","value":false}]`)
		w.patch(200, "/Groups/"+id, `[{"op":"add","path":"members","value":`+member(bert)+`}]`).members(bert, carl)
		w.patch(200, "/Groups/"+id, `[{"op":"remove","path":"members","value":`+member(carl)+`}]`).members(bert)
		if _, err := company.TeamMembershipOf(w.Context(), w.site.DB, bert, id); err == nil {
			w.Error("in a team and not active")
		}
		w.patch(200, "/Users/"+bert, `[{"op":"replace","path":"active","value":true}]`)
		if _, err := company.TeamMembershipOf(w.Context(), w.site.DB, bert, id); err != nil {
			w.Errorf("not in the team: %v", err)
		}

		// A team that was made otherwise is a group.
		team := w.site.Team(w.fox, "Old", "lead", "anna@fox.example")
		w.do(200, "GET", "/Groups/"+team, "").members(anna)
		w.do(200, "GET", "/Groups", "").has(map[string]any{"totalResults": 2, "Resources|0|displayName": "Light", "Resources|1|displayName": "Old"})
		before = w.seq()
		w.do(204, "DELETE", "/Groups/"+id, "")
		if got := w.acts(before); !slices.Equal(got, []string{"team.removed"}) {
			w.Errorf("acts = %v", got)
		}
		w.do(404, "GET", "/Groups/"+id, "")
		w.do(404, "DELETE", "/Groups/"+id, "")
		if got := w.do(200, "GET", "/Users/"+bert, ""); got.body["groups"] != nil {
			w.Errorf("groups = %v", got.body["groups"])
		}
	})
}

func TestInvalidGroups(t *testing.T) {
	each(t, func(w *fixture) {
		anna := w.user("anna@fox.example")
		id := w.do(201, "POST", "/Groups", `{"displayName":"Film"}`).id()
		stranger := w.site.Person("eve@home.example")
		before := w.seq()
		for body, want := range map[string]string{
			`{"displayName":""}`:                                                         "invalidValue",
			`{"displayName":" Film"}`:                                                    "invalidValue",
			`{"members":[]}`:                                                             "invalidValue",
			`{"displayName":["a","b"]}`:                                                  "invalidValue",
			`{"displayName":"a","members":7}`:                                            "invalidValue",
			`{"displayName":"a","members":` + member(stranger) + `}`:                     "invalidValue",
			`{"displayName":"a","members":` + member(anna, ids.New()) + `}`:              "invalidValue",
			`{"displayName":"a","members":` + member("anna@fox.example") + `}`:           "invalidValue",
			`{"displayName":"a","members":[{"value":"` + id + `","type":"Group"}]}`:      "invalidValue",
			`{"displayName":"a","members":` + member(strings.Repeat("x,", 10_001)) + `}`: "invalidValue",
		} {
			w.as(w.token, "POST", "/Groups", body).want(400, want)
			w.as(w.token, "PUT", "/Groups/"+id, body).want(400, want)
		}
		many := make([]string, 10_001)
		for i := range many {
			many[i] = ids.New()
		}
		a := w.as(w.token, "PATCH", "/Groups/"+id, `{"Operations":[{"op":"add","path":"members","value":`+member(many...)+`}]}`)
		a.want(400, "invalidValue")
		if !strings.Contains(a.text, "10000 members") {
			w.Errorf("%s", a.text)
		}
		for operations, want := range map[string]string{
			`[{"op":"remove","path":"displayName"}]`:                                       "mutability",
			`[{"op":"replace","path":"members[value eq \"x\"].value","value":"y"}]`:        "mutability",
			`[{"op":"replace","path":"members.display","value":"y"}]`:                      "mutability",
			`[{"op":"replace","path":"members[value eq \"x\"]","value":{"value":"y"}}]`:    "noTarget",
			`[{"op":"replace","path":"members[nonsense eq \"x\"]","value":{"value":"y"}}]`: "invalidFilter",
			`[{"op":"add","path":"members"}]`:                                              "invalidValue",
			`[{"op":"add","path":"members","value":null}]`:                                 "invalidValue",
		} {
			w.as(w.token, "PATCH", "/Groups/"+id, `{"Operations":`+operations+`}`).want(400, want)
		}
		if w.seq() != before {
			w.Errorf("acts = %v", w.acts(before))
		}
		w.do(200, "GET", "/Groups/"+id, "").members()
	})
}

// TestCompaniesDoNotTouchEachOther tries all requests of an identity provider
// on resources of another company, which get the same answers as resources that
// do not exist.
func TestCompaniesDoNotTouchEachOther(t *testing.T) {
	each(t, func(w *fixture) {
		hound, theirs := w.connected("Hound", "hound.example")
		anna := w.user("anna@fox.example")
		group := w.do(201, "POST", "/Groups", `{"displayName":"Film","externalId":"g1","members":`+member(anna)+`}`).id()
		w.patch(200, "/Users/"+anna, `[{"op":"add","path":"externalId","value":"e1"}]`)
		loner := w.site.Person("loner@home.example")
		before := w.seq()
		try := func(path, body string) {
			w.Helper()
			for _, method := range []string{"GET", "PUT", "PATCH", "DELETE"} {
				text := body
				if method == "PATCH" {
					text = `{"Operations":[{"op":"replace","value":` + body + `}]}`
				} else if method != "PUT" {
					text = ""
				}
				got := w.as(theirs, method, path, text)
				never := w.as(theirs, method, path[:strings.LastIndexByte(path, '/')+1]+ids.New(), text)
				got.want(404, "")
				if got.text != never.text {
					w.Errorf("%s %s = %s, want %s", method, path, got.text, never.text)
				}
			}
		}
		try("/Users/"+anna, `{"userName":"anna@hound.example","active":false}`)
		try("/Users/"+loner, `{"userName":"loner@hound.example","active":false}`)
		try("/Groups/"+group, `{"displayName":"Taken"}`)
		w.as(theirs, "POST", "/Users", `{"userName":"anna@fox.example"}`).want(400, "invalidValue")
		mine := w.as(theirs, "POST", "/Groups", `{"displayName":"Film"}`).id()
		w.as(theirs, "PATCH", "/Groups/"+mine, `{"Operations":[{"op":"add","path":"members","value":`+member(anna)+`}]}`).want(400, "invalidValue")
		for _, path := range []string{"/Users", `/Users?filter=userName+eq+"anna@fox.example"`, `/Users?filter=externalId+eq+"e1"`, `/Users?filter=id+eq+"` + anna + `"`,
			`/Groups?filter=externalId+eq+"g1"`, `/Groups?filter=id+eq+"` + group + `"`, `/Groups?filter=members.value+eq+"` + anna + `"`} {
			w.as(theirs, "GET", path, "").has(map[string]any{"totalResults": 0})
		}
		w.as(theirs, "GET", `/Groups?filter=displayName+eq+"Film"`, "").has(map[string]any{"totalResults": 1, "Resources|0|id": mine})
		if got := w.seq() - before; got != 1 { // the group of their own
			w.Errorf("%d records", got)
		}
		w.do(200, "GET", "/Users/"+anna, "").has(map[string]any{"active": true, "userName": "anna@fox.example"})
		w.do(200, "GET", "/Groups/"+group, "").members(anna)

		// Somebody in both is switched off in one.
		w.site.Admit(w.fox, "loner@home.example")
		w.site.Admit(hound, "loner@home.example")
		w.patch(200, "/Users/"+loner, `[{"op":"replace","path":"active","value":false}]`)
		w.as(theirs, "GET", "/Users/"+loner, "").has(map[string]any{"active": true})
		if len(w.roles(hound)) != 1 {
			w.Errorf("members = %v", w.roles(hound))
		}
	})
}
