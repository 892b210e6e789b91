package scim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"atelier/internal/base/ids"
)

func TestInvalidBodies(t *testing.T) {
	each(t, func(w *fixture) {
		id := w.user("anna@fox.example")
		before := w.seq()
		for body, want := range map[string]string{
			``: "invalidSyntax", `nonsense`: "invalidSyntax", `[]`: "invalidSyntax", `null`: "invalidSyntax", `"x"`: "invalidSyntax", `{} {}`: "invalidSyntax",
			`{"userName":"a@fox.example","userName":"b@fox.example"}`: "invalidSyntax", `{"userName":"a@fox.example","USERNAME":"b@fox.example"}`: "invalidSyntax",
			"{\"userName\":\"a\xff@fox.example\"}": "invalidSyntax", `{"userName":"a\u0000@fox.example"}`: "invalidSyntax",
			strings.Repeat(`{"a":`, 33) + `1` + strings.Repeat(`}`, 33): "invalidSyntax",
			`{"userName":7}`: "invalidValue", `{"userName":{"value":"x"}}`: "invalidValue", `{"userName":"a@fox.example","active":"yes"}`: "invalidValue",
			`{"userName":"a@fox.example","active":1}`: "invalidValue", `{"userName":"a@fox.example","name":"Anna"}`: "invalidValue", `{"userName":"a@fox.example","emails":[7]}`: "invalidValue",
			`{"userName":"a@fox.example","emails":[{"value":"x","primary":true},{"value":"y","primary":true}]}`:                            "invalidValue",
			`{"userName":"a@fox.example","title":"` + strings.Repeat("x", 4097) + `"}`:                                                     "invalidValue",
			`{"userName":"a@fox.example","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":"x"}`:                                "invalidValue",
			`{"userName":"a@fox.example","roles":[` + strings.Repeat(`{"value":"x"},`, 1000) + `{"value":"x"}]}`:                           "invalidValue",
			`{"userName":"a@fox.example","roles":[` + strings.Repeat(`{"value":"`+strings.Repeat("x", 100)+`"},`, 700) + `{"value":"x"}]}`: "invalidValue",
		} {
			for _, a := range []answer{w.raw("POST", "/Users", body), w.raw("PUT", "/Users/"+id, body)} {
				a.want(400, want)
			}
		}
		w.raw("POST", "/Users", `{"userName":"`+strings.Repeat("x", 1<<20)+`"}`).want(413, "")
		for operations, want := range map[string]string{
			`[]`: "invalidSyntax", `7`: "invalidSyntax", `[7]`: "invalidSyntax", `[{}]`: "invalidSyntax", `[{"op":"move","path":"title"}]`: "invalidSyntax",
			`[{"op":"add","OP":"add","path":"title","value":"x"}]`: "invalidSyntax", `[{"op":"add","path":7,"value":"x"}]`: "invalidPath",
			`[{"op":"add","path":"nonsense","value":"x"}]`: "invalidPath", `[{"op":"add","path":"name.nonsense","value":"x"}]`: "invalidPath",
			`[{"op":"add","path":"emails[type eq","value":"x"}]`: "invalidPath", `[{"op":"add","path":"urn:other:title","value":"x"}]`: "invalidPath",
			`[{"op":"add","path":"` + strings.Repeat("x", 2001) + `","value":"x"}]`: "invalidPath",
			`[{"op":"remove"}]`: "noTarget", `[{"op":"remove","path":"userName"}]`: "mutability", `[{"op":"remove","path":"active"}]`: "mutability",
			`[{"op":"replace","path":"userName","value":null}]`: "mutability", `[{"op":"replace","path":"id","value":"x"}]`: "mutability",
			`[{"op":"add","path":"groups","value":[{"value":"x"}]}]`: "mutability", `[{"op":"replace","path":"meta.created","value":"x"}]`: "mutability",
			`[{"op":"replace","path":"title"}]`: "invalidValue", `[{"op":"add","value":"x"}]`: "invalidValue", `[{"op":"replace","path":"active","value":"perhaps"}]`: "invalidValue",
			`[{"op":"replace","path":"name[givenName eq \"x\"]","value":{"givenName":"y"}}]`:                                    "invalidPath",
			`[{"op":"replace","path":"emails[type eq \"none\"].value","value":"y"}]`:                                            "noTarget",
			`[{"op":"add","path":"emails[type ne \"none\"].value","value":"y"}]`:                                                "noTarget",
			`[{"op":"add","path":"emails[type eq 7].value","value":"y"}]`:                                                       "invalidFilter",
			`[{"op":"add","path":"emails[type eq \"x\"]","value":{}}]`:                                                          "invalidValue",
			`[` + strings.Repeat(`{"op":"add","path":"title","value":"x"},`, 1000) + `{"op":"add","path":"title","value":"x"}]`: "invalidSyntax",
			// What comes before a broken one is not done either.
			`[{"op":"add","path":"title","value":"x"},{"op":"add","path":"nonsense","value":"x"}]`: "invalidPath",
		} {
			w.as(w.token, "PATCH", "/Users/"+id, `{"Operations":`+operations+`}`).want(400, want)
		}
		w.as(w.token, "PATCH", "/Users/"+id, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],"Operations":[{"op":"add","path":"title","value":"x"}]}`).want(400, "invalidSyntax")
		if w.seq() != before {
			w.Errorf("acts = %v", w.acts(before))
		}
		w.do(200, "GET", "/Users/"+id, "").has(map[string]any{"title": nil})
	})
}

// raw sends a body even where it is empty.
func (w *fixture) raw(method, path, body string) answer {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.url+"/scim/v2"+path, strings.NewReader(body))
	w.ok(err)
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return w.send(r)
}

func TestInvalidRequests(t *testing.T) {
	each(t, func(w *fixture) {
		r, err := http.NewRequestWithContext(w.Context(), "POST", w.url+"/scim/v2/Users", strings.NewReader(`{"userName":"a@fox.example"}`))
		w.ok(err)
		r.Header.Set("Authorization", "Bearer "+w.token)
		r.Header.Set("Content-Type", "text/plain")
		w.send(r).want(415, "")
		for _, x := range []struct {
			method, path string
			status       int
		}{
			{"GET", "/nowhere", 404}, {"GET", "", 404}, {"GET", "/Users/", 404}, {"GET", "/Users/nonsense", 404}, {"GET", "/Users/%00", 404}, {"GET", "/Users/a/b", 404},
			{"DELETE", "/Users", 405}, {"POST", "/Schemas", 405}, {"GET", "/Users/.search", 405}, {"PUT", "/Groups", 405}, {"POST", "/Bulk", 501}, {"GET", "/Me", 501},
			{"GET", "/Schemas/nonsense", 404}, {"GET", "/ResourceTypes/Nonsense", 404}, {"GET", `/Schemas?filter=id+eq+"x"`, 403},
		} {
			if x.path == "/Users/" || x.path == "" { // the mux may lead elsewhere
				continue
			}
			a := w.as(w.token, x.method, x.path, "")
			a.want(x.status, "")
			if x.status == 405 && a.header.Get("Allow") == "" {
				w.Errorf("%s says not what it takes", a.what)
			}
		}
		c := w.do(200, "GET", "/ServiceProviderConfig", "")
		c.has(map[string]any{"patch|supported": true, "bulk|supported": false, "sort|supported": false, "changePassword|supported": false, "etag|supported": false,
			"filter|supported": true, "filter|maxResults": 200, "authenticationSchemes|0|type": "oauthbearertoken"})
		w.do(200, "GET", "/ResourceTypes", "").has(map[string]any{"totalResults": 2, "Resources|0|endpoint": "/Users", "Resources|1|endpoint": "/Groups"})
		w.do(200, "GET", "/Schemas/urn:ietf:params:scim:schemas:core:2.0:Group", "").has(map[string]any{"name": "Group"})
		if n := fmt.Sprint(w.do(200, "GET", "/Schemas", "").at("totalResults")); n != "3" {
			w.Errorf("%s schemas", n)
		}
	})
}

func TestPatches(t *testing.T) {
	each(t, func(w *fixture) {
		const enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
		id := w.do(201, "POST", "/Users", `{"userName":"anna@fox.example","title":"Lead","name":{"givenName":"Anna","familyName":"Ax"},
			"emails":[{"value":"a@fox.example","type":"work","primary":true}],"`+enterprise+`":{"department":"Film"}}`).id()
		for _, x := range []struct {
			operations string
			want       map[string]any
		}{
			{`[{"op":"ADD","path":"NAME.givenname","value":"Ann"}]`, map[string]any{"name|givenName": "Ann", "name|familyName": "Ax"}},
			{`[{"op":"replace","path":"name","value":{"familyName":"By"}}]`, map[string]any{"name|givenName": "Ann", "name|familyName": "By"}},
			{`[{"op":"remove","path":"name.givenName"}]`, map[string]any{"name|givenName": nil, "name|familyName": "By"}},
			{`[{"op":"remove","path":"name.familyName"}]`, map[string]any{"name": nil}},
			{`[{"op":"replace","path":"title","value":null}]`, map[string]any{"title": nil}},
			{`[{"op":"add","path":"emails","value":[{"value":"b@fox.example","type":"home","primary":true}]}]`,
				map[string]any{"emails|0|primary": false, "emails|1|primary": true, "emails|1|value": "b@fox.example"}},
			{`[{"op":"add","path":"emails","value":{"value":"b@fox.example","type":"home","primary":true}}]`, map[string]any{"emails|2": nil}},
			{`[{"op":"replace","path":"emails[type eq \"home\"].value","value":"c@fox.example"}]`, map[string]any{"emails|0|value": "a@fox.example", "emails|1|value": "c@fox.example"}},
			{`[{"op":"replace","path":"emails[type eq \"home\"]","value":{"value":"d@fox.example"}}]`, map[string]any{"emails|1|value": "d@fox.example", "emails|1|type": nil}},
			{`[{"op":"remove","path":"emails[value eq \"d@fox.example\"]"}]`, map[string]any{"emails|1": nil}},
			{`[{"op":"remove","path":"emails.type"}]`, map[string]any{"emails|0|type": nil, "emails|0|value": "a@fox.example"}},
			{`[{"op":"remove","path":"emails"}]`, map[string]any{"emails": nil}},
			{`[{"op":"replace","path":"` + enterprise + `:department","value":"Sound"}]`, map[string]any{enterprise + "|department": "Sound"}},
			{`[{"op":"add","path":"` + enterprise + `","value":{"costCenter":"7","nonsense":1}}]`, map[string]any{enterprise + "|department": "Sound", enterprise + "|costCenter": "7"}},
			{`[{"op":"remove","path":"` + enterprise + `"}]`, map[string]any{enterprise: nil, "schemas": "[urn:ietf:params:scim:schemas:core:2.0:User]"}},
			{`[{"op":"add","value":{"nickName":"A","nonsense":1,"id":"x","name.givenName":"Anna","` + enterprise + `:division":"D","` + enterprise + `":{"costCenter":"8"}}}]`,
				map[string]any{"nickName": "A", "name|givenName": "Anna", "id": id, enterprise + "|division": "D", enterprise + "|costCenter": "8"}},
			{`[{"op":"add","path":"phoneNumbers.value","value":"1"},{"op":"replace","path":"phoneNumbers.type","value":"work"}]`, map[string]any{"phoneNumbers|0|value": "1", "phoneNumbers|0|type": "work"}},
			{`[{"op":"replace","path":"phoneNumbers.type","value":[null]}]`, map[string]any{"phoneNumbers|0|value": "1", "phoneNumbers|0|type": nil}},
			{`[{"op":"replace","path":"externalId","value":"e7"}]`, map[string]any{"externalId": "e7"}},
			{`[{"op":"add","path":"addresses","value":[{"locality":"Kiel","type":"work"},{"locality":"Bern","type":"home"}]}]`,
				map[string]any{"addresses|0|locality": "Kiel", "addresses|1|locality": "Bern"}},
			{`[{"op":"add","path":"addresses","value":{"locality":"Kiel","type":"work"}}]`, map[string]any{"addresses|2": nil}},
			{`[{"op":"remove","path":"addresses","value":[{"locality":"Kiel","type":"work"}]}]`, map[string]any{"addresses|0|locality": "Bern", "addresses|1": nil}},
		} {
			w.patch(200, "/Users/"+id, x.operations).has(x.want)
		}
	})
}

func TestExpensiveRequestsAreRefused(t *testing.T) {
	each(t, func(w *fixture) {
		id := w.user("anna@fox.example")
		long := strings.Repeat("a:", 240) + "b"
		path := `{"op":"add","path":"urn:` + long + `","value":"x"}`
		w.patch(400, "/Users/"+id, `[`+strings.Repeat(path+`,`, 400)+path+`]`).want(400, "invalidPath")
		w.patch(400, "/Users/"+id, `[{"op":"add","path":"urn:`+long+`:c:c:c:c:c:c:c:c:c","value":"x"}]`).want(400, "invalidPath")
		var names []string
		for i := range 2000 {
			names = append(names, fmt.Sprintf(`"urn:%s%d":1`, long, i))
		}
		w.patch(400, "/Users/"+id, `[{"op":"add","value":{`+strings.Join(names, ",")+`}}]`).want(400, "invalidValue")
		many := strings.Repeat(`"userName",`, 101)
		w.do(400, "POST", "/Users/.search", `{"attributes":[`+many+`"id"]}`).want(400, "invalidValue")
		w.do(400, "GET", "/Users?excludedAttributes="+strings.Repeat("title,", 101), "").want(400, "invalidValue")
		// Text that does not compress is too much for an index.
		var text strings.Builder
		for i := range 100 {
			text.WriteString(ids.Hash(fmt.Sprint(i))[:40])
		}
		w.do(400, "POST", "/Users", `{"userName":"bert@fox.example","externalId":"`+text.String()+`"}`).want(400, "invalidValue")
		w.do(400, "POST", "/Groups", `{"displayName":"Film","externalId":"`+text.String()+`"}`).want(400, "invalidValue")
		w.do(200, "GET", "/Users/"+id, "")
	})
}
