package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestStudioPeople manages a company as its admin does, and shows a member
// without permissions what is refused.
func TestStudioPeople(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := openFirm(t, engine)
			s.do("admin", "company", "add", "--company", s.company, "--email", "anna@fox.example", "--role", "admin")
			n := s.nodes[0]
			b := signIn(t, n, "anna@fox.example", "/people/"+s.company)

			anna := bearer(sessionToken(b))
			seeRow(b, "anna@fox.example", "admin")
			seeRow(b, "bert@fox.example", "member")
			lookAt(t, b, "people-members")

			// Invitations.
			openPart(b, "Invitations", "No invitation is open")
			b.ClickOn("button", "Invite")
			b.TypeInto("textbox", "E-mail address", "cleo")
			b.ClickOn("button", "Invite")
			seeText(b, "Give an e-mail address, such as anna@studio.example.")
			b.TypeInto("textbox", "E-mail address", "cleo@fox.example")
			b.Choose("Team", "Look")
			b.See("combobox", "Role in the team")
			lookAt(t, b, "people-invite")
			b.ClickOn("button", "Invite")
			seeRow(b, "cleo@fox.example", "member; Look: member")
			lookAt(t, b, "people-invitations")
			b.ClickOn("button", "Revoke the invitation for cleo@fox.example")
			b.ClickOn("button", "Revoke")
			b.See("heading", "No invitation is open")
			b.ClickOn("button", "Invite")
			b.ClickOn("button", "With a link")
			b.ClickOn("button", "Invite")
			seeText(b, "/invitation?token=")
			b.ClickOn("button", "Close")
			b.ClickOn("button", "Revoke the invitation for Anyone with the link, once")
			b.ClickOn("button", "Revoke")
			b.See("heading", "No invitation is open")
			if list := n.get("/api/v2/companies/"+s.company+"/invitations", anna...).want(t, 200)["data"].([]any); len(list) != 0 {
				t.Errorf("after the revocation the invitations are %v", list)
			}

			// Roles of the company.
			openPart(b, "Roles", "Roles")
			lookAt(t, b, "people-roles")
			b.ClickOn("button", "New role")
			b.TypeInto("textbox", "Name", "accounts")
			b.ClickOn("checkbox", "Manage billing…")
			b.ClickOn("button", "Save")
			seeText(b, "The role “accounts” is saved.")
			b.ClickOn("button", "Change the role “accounts”")
			b.ClickOn("checkbox", "See reports…")
			b.ClickOn("button", "Save")
			b.Until(`document.querySelector("dialog[open]") === null`)
			roles := n.get("/api/v2/companies/"+s.company+"/roles", anna...).want(t, 200)
			if text := fmt.Sprint(roles["data"]); !strings.Contains(text, "accounts") || strings.Count(text, "MANAGE_BILLING") != 2 || strings.Count(text, "VIEW_COMPANY_REPORTS") < 2 {
				t.Errorf("roles = %v", text)
			}

			// Teams: a new one gets another name.
			openPart(b, "Teams", "Teams")
			lookAt(t, b, "people-teams")
			b.ClickOn("button", "New team")
			b.TypeInto("textbox", "Name", "Sound")
			b.ClickOn("button", "New team")
			seeText(b, "The team Sound is made. Add members to it.")
			b.ClickOn("button", "Add a member")
			b.Choose("Person", "bert@fox.example")
			b.ClickOn("button", "Add a member")
			seeRow(b, "bert@fox.example", "member")
			openPart(b, "Settings", "Rename")
			b.TypeInto("textbox", "Name", "Music")
			b.ClickOn("button", "Rename")
			seeText(b, "The team has its new name.")
			b.See("button", "Company or team: Music")
			lookAt(t, b, "people-team-settings")

			// A role of a team allows one tool; its members are refused the others.
			b.Goto(n.url + "/people/" + s.team + "/roles")
			b.ClickOn("button", "Change the role “member”")
			b.ClickOn("button", "Only chosen tools")
			b.ClickOn("button", "Save")
			seeText(b, "Choose at least one tool, or allow all.")
			b.ClickOn("checkbox", "Scripted")
			lookAt(t, b, "people-team-role")
			b.ClickOn("button", "Save")
			seeRow(b, "Tools", "1 tool")
			lookAt(t, b, "people-team-roles")
			b.ClickOn("button", "Change the role “member”")
			b.ClickOn("checkbox", "Start runs…")
			b.ClickOn("button", "Save")
			b.Until(`document.querySelector("dialog[open]") === null`)
			refused, err := s.nodes[1].create(s.tokens[1], "?team_id="+s.team, n.order(1, picture), nil)
			if err != nil {
				t.Fatal(err)
			}
			refused.want(t, 403)
			b.ClickOn("button", "Change the role “member”")
			b.ClickOn("checkbox", "Start runs…")
			b.ClickOn("button", "Save")
			b.Until(`document.querySelector("dialog[open]") === null`)
			allowed, err := s.nodes[1].create(s.tokens[1], "?team_id="+s.team, n.order(1, picture), nil)
			if err != nil {
				t.Fatal(err)
			}
			allowed.want(t, 202)
			n.settled(s.tokens[0], s.team)

			// A budget, of which the run has spent a part.
			b.Goto(n.url + "/people/" + s.company + "/budgets")
			b.ClickOn("button", "Set a budget for Look")
			b.TypeInto("spinbutton", "Tokens for a month", "0")
			b.ClickOn("button", "Save")
			seeText(b, "Give a whole number from 1 on.")
			b.TypeInto("spinbutton", "Tokens for a month", "50")
			b.ClickOn("switch", "Refuse runs that would exceed it")
			b.ClickOn("button", "Save")
			b.See("meter", "Budget of Look")
			seeText(b, "5 of 50")
			lookAt(t, b, "people-budgets")
			if budget := n.get("/api/v2/teams/"+s.team+"/budget", anna...).want(t, 200); budget["tokens"] != 50.0 || budget["hard"] != true {
				t.Errorf("budget = %v", budget)
			}

			openPart(b, "Domains", "Mail domains")
			b.ClickOn("button", "Add a domain")
			b.TypeInto("textbox", "Domain", "fox.example")
			b.ClickOn("button", "Add a domain")
			b.See("heading", "fox.example")
			seeText(b, "_atelier")
			lookAt(t, b, "people-domains")
			b.ClickOn("button", "Remove fox.example")
			b.ClickOn("button", "Remove")
			b.See("heading", "No domain is added")

			openPart(b, "SCIM", "The company has no SCIM token")
			made := s.do("admin", "scim-token", "create", "--company", s.company)["token"].(string)
			b.Reload()
			b.See("heading", "SCIM")
			seeText(b, "…"+made[len(made)-4:])
			lookAt(t, b, "people-scim")
			b.ClickOn("button", "Delete the token")
			b.ClickOn("button", "Delete the token")
			b.See("heading", "The company has no SCIM token")

			// The log has all of it, and its filters stand in the address.
			openPart(b, "Audit log", "Audit log")
			b.Choose("Kind", "Invitations")
			b.Until(`location.search.includes("act=invitation")`)
			seeRow(b, "invitation.revoked", "anna@fox.example")
			missRow(b, "budget.set")
			b.Choose("Kind", "Budgets")
			seeRow(b, "budget.set", "anna@fox.example", "Look")
			b.Choose("Kind", "All acts")
			lookAt(t, b, "people-audit")
			openPart(b, "Settings", "Company")
			lookAt(t, b, "people-settings")
			openPart(b, "Access tokens", "Access tokens of the company")
			lookAt(t, b, "people-tokens")

			// The account that is acted for stands in the address, so that a link means
			// the same to a colleague.
			b.ClickOn("link", "Boards")
			b.ClickOn("button", "Account:…")
			b.ClickOn("menuitemradio", "Look…")
			b.Until(`new URLSearchParams(location.search).get("team") === "` + s.team + `"`)
			b.See("link", "995 tokens to spend. Open balance and history.")
			b.ClickOn("link", "Library")
			b.Until(`location.pathname === "/library" && location.search.includes("team=` + s.team + `")`)
			address := strings.TrimPrefix(b.URL(), n.url)
			member := signIn(t, s.nodes[1], "bert@fox.example", address)
			member.See("link", "995 tokens to spend. Open balance and history.")

			// A member without permissions is told what is missing, and the service
			// refuses the same.
			member.Goto(s.nodes[1].url + "/people/" + s.company + "/invitations")
			seeText(member, "Your role “member” in Fox does not have the permission “Manage members”.")
			lookAt(t, member, "people-refused")
			member.ClickOn("button", "Invite")
			if count := member.Count("dialog", "Invite people to Fox"); count != 0 {
				t.Error("a member without the permission can open the dialog for invitations")
			}
			bert := bearer(sessionToken(member))
			for _, part := range []string{"members", "invitations", "domains", "audit"} {
				if a := n.get("/api/v2/companies/"+s.company+"/"+part, bert...); a.StatusCode != 403 || !strings.Contains(string(a.body), `"permission"`) {
					t.Errorf("%s for a member = %d %s", part, a.StatusCode, a.body)
				}
			}
			n.call("PUT", "/api/v2/teams/"+s.team+"/budget", `{"tokens":1,"hard":false,"webhook_url":null}`, bert...).want(t, 403)
			member.Goto(s.nodes[1].url + "/people/" + s.team + "/budget")
			seeText(member, "does not have the permission “Manage billing”")

			wantNoComplaints(t, b)
			wantNoComplaints(t, member)
			s.check()
		})
	}
}
