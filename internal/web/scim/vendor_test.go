package scim_test

import (
	"net/url"
	"testing"
)

// TestEntraID replays the requests of Entra ID's provisioning service: it looks
// for each user and group first, and its operations have capitals, booleans as
// strings, and names of attributes as paths.
func TestEntraID(t *testing.T) {
	each(t, func(w *fixture) {
		const enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
		find := func(endpoint, filter string) answer {
			return w.do(200, "GET", endpoint+"?filter="+url.QueryEscape(filter), "")
		}
		// The connection test searches for a user that does not exist.
		find("/Users", `userName eq "non-existent user"`).has(map[string]any{"totalResults": 0, "Resources": "[]"})
		find("/Users", `userName eq "anna@fox.example"`).has(map[string]any{"totalResults": 0})
		anna := w.do(201, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","`+enterprise+`"],"externalId":"0a21f0f2","userName":"anna@fox.example",
			"active":true,"displayName":"Anna Ax","emails":[{"primary":true,"type":"work","value":"anna@fox.example"}],"meta":{"resourceType":"User"},
			"name":{"formatted":"Anna Ax","familyName":"Ax","givenName":"Anna"},"roles":[]}`).id()
		bert := w.user("bert@fox.example")
		find("/Users", `userName eq "Anna@fox.example"`).has(map[string]any{"totalResults": 1, "Resources|0|id": anna})
		w.patch(200, "/Users/"+anna, `[
			{"op":"Replace","path":"emails[type eq \"work\"].value","value":"anna.ax@fox.example"},
			{"op":"Add","path":"phoneNumbers[type eq \"mobile\"].value","value":"+49 1"},
			{"op":"Add","path":"addresses[type eq \"work\"].locality","value":"Ulm"},
			{"op":"Replace","path":"name.familyName","value":"By"},
			{"op":"Add","path":"`+enterprise+`:department","value":"Film"},
			{"op":"Add","path":"`+enterprise+`:manager","value":"`+bert+`"}]`).has(map[string]any{
			"emails|0|value": "anna.ax@fox.example", "phoneNumbers|0|type": "mobile", "phoneNumbers|0|value": "+49 1", "addresses|0|locality": "Ulm", "addresses|0|type": "work",
			"name|familyName": "By", "name|givenName": "Anna", enterprise + "|department": "Film", enterprise + "|manager|value": bert,
		})
		w.patch(200, "/Users/"+anna, `[{"op":"Replace","value":{"displayName":"Anna By","name.givenName":"Ann","`+enterprise+`:department":"Sound","active":"True"}}]`).has(map[string]any{
			"displayName": "Anna By", "name|givenName": "Ann", "name|familyName": "By", enterprise + "|department": "Sound", "active": true,
		})
		w.patch(200, "/Users/"+anna, `[{"op":"Replace","path":"userName","value":"anna.by@fox.example"}]`).has(map[string]any{"userName": "anna.by@fox.example"})
		w.patch(200, "/Users/"+anna, `[{"op":"Replace","path":"active","value":"False"}]`).has(map[string]any{"active": false})
		w.patch(200, "/Users/"+anna, `[{"op":"Replace","path":"active","value":"True"}]`).has(map[string]any{"active": true})

		w.do(200, "GET", "/Groups?excludedAttributes=members&filter="+url.QueryEscape(`displayName eq "Film"`), "").has(map[string]any{"totalResults": 0})
		film := w.do(201, "POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group","http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
			"externalId":"8aa1a0c0","displayName":"Film","meta":{"resourceType":"Group"}}`).id()
		find("/Groups", `externalId eq "8aa1a0c0"`).has(map[string]any{"totalResults": 1, "Resources|0|id": film})
		w.do(200, "GET", "/Groups?attributes=id&filter="+url.QueryEscape(`id eq "`+film+`" and members eq "`+anna+`"`), "").has(map[string]any{"totalResults": 0})
		w.patch(200, "/Groups/"+film, `[{"op":"Add","path":"members","value":[{"$ref":null,"value":"`+anna+`"},{"$ref":null,"value":"`+bert+`"}]}]`).members(anna, bert)
		w.do(200, "GET", "/Groups?attributes=id&filter="+url.QueryEscape(`id eq "`+film+`" and members eq "`+anna+`"`), "").has(map[string]any{"totalResults": 1, "Resources|0|displayName": nil})
		w.patch(200, "/Groups/"+film, `[{"op":"Remove","path":"members","value":[{"$ref":null,"value":"`+anna+`"}]}]`).members(bert)
		w.patch(200, "/Groups/"+film, `[{"op":"Replace","path":"displayName","value":"Film and Sound"}]`).has(map[string]any{"displayName": "Film and Sound"})
		w.do(204, "DELETE", "/Groups/"+film, "")
		w.do(204, "DELETE", "/Users/"+anna, "")
		find("/Users", `userName eq "anna.by@fox.example"`).has(map[string]any{"totalResults": 0})
	})
}

// TestOkta replays the requests of Okta: whole users with PUT, and PATCH
// without paths for the attribute active and for names of groups.
func TestOkta(t *testing.T) {
	each(t, func(w *fixture) {
		w.do(200, "GET", "/Users?startIndex=1&count=2", "").has(map[string]any{"totalResults": 0, "startIndex": 1})
		w.do(200, "GET", "/Users?filter="+url.QueryEscape(`userName eq "anna@fox.example"`)+"&startIndex=1&count=100", "").has(map[string]any{"totalResults": 0})
		a := w.do(201, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"anna@fox.example","name":{"givenName":"Anna","familyName":"Ax"},
			"emails":[{"primary":true,"value":"anna@fox.example","type":"work"}],"displayName":"Anna Ax","locale":"en-US","externalId":"00ujl29u0le5T6Aj10h7","groups":[],"password":"1mz050nq","active":true}`)
		a.has(map[string]any{"password": nil, "locale": "en-US"})
		anna := a.id()
		w.do(200, "PUT", "/Users/"+anna, `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"`+anna+`","userName":"anna@fox.example","name":{"givenName":"Anna","middleName":"M","familyName":"Ax"},
			"emails":[{"primary":true,"value":"anna@fox.example","type":"work","display":"anna@fox.example"}],"active":true,"groups":[],"meta":{"resourceType":"User"}}`).
			has(map[string]any{"name|middleName": "M", "displayName": nil, "active": true})
		w.patch(200, "/Users/"+anna, `[{"op":"replace","value":{"active":false}}]`).has(map[string]any{"active": false, "name|middleName": "M"})
		w.do(200, "GET", "/Users/"+anna, "").has(map[string]any{"active": false})
		w.patch(200, "/Users/"+anna, `[{"op":"replace","value":{"active":true}}]`).has(map[string]any{"active": true})

		film := w.do(201, "POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"Film","members":[]}`).id()
		w.do(200, "GET", "/Groups?startIndex=1&count=100", "").has(map[string]any{"totalResults": 1})
		w.patch(200, "/Groups/"+film, `[{"op":"replace","value":{"id":"`+film+`","displayName":"Film 2"}}]`).has(map[string]any{"displayName": "Film 2"})
		w.patch(200, "/Groups/"+film, `[{"op":"add","path":"members","value":[{"value":"`+anna+`","display":"anna@fox.example"}]}]`).members(anna)
		w.patch(200, "/Groups/"+film, `[{"op":"remove","path":"members[value eq \"`+anna+`\"]"}]`).members()
		w.do(200, "PUT", "/Groups/"+film, `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"id":"`+film+`","displayName":"Film","members":[{"value":"`+anna+`","display":"anna"}]}`).members(anna)
		w.do(204, "DELETE", "/Groups/"+film, "")
		w.patch(200, "/Users/"+anna, `[{"op":"replace","value":{"active":false}}]`)
	})
}
