package api_test

import (
	"slices"
	"strings"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/web/api"
	"atelier/internal/web/api/wire"
)

// TestMeShowsWhatACredentialReaches holds the accounts of GET /me against what
// the same credential is answered when it acts for each of them.
func TestMeShowsWhatACredentialReaches(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		const email = "anna@example.com"
		anna := getJSON[wire.Identity](s, "/api/v2/me").User.UID
		studio, north := s.site.Company("Studio", company.EnterprisePlan), s.site.Company("North", company.TeamPlan)
		open, appless, houdini := s.site.Team(studio, "Open", "member", email), s.site.Team(studio, "Appless", "member", email), s.site.Team(north, "Houdini", "member", email)
		for team, role := range map[string]company.TeamRole{
			appless: {Permissions: []company.Permission{company.Generate}, PluginKinds: []string{company.AnyKind}},
			houdini: {Permissions: []company.Permission{company.Generate, company.UsePlugins}, PluginKinds: []string{"houdini"}},
		} {
			role.Name = "member"
			if _, err := s.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), team, role); err != nil {
				t.Fatal(err)
			}
		}
		_, ofStudio := s.site.Token(email, studio)
		for _, c := range []struct {
			name, token string
			accounts    []string
			companies   []string
		}{
			{"an app", s.site.Device(anna, "blender").Tokens.ID, []string{anna, open}, []string{studio, north}},
			{"an app of another kind", s.site.Device(anna, "houdini").Tokens.ID, []string{anna, open, houdini}, []string{studio, north}},
			{"a personal token", s.token, []string{anna}, nil},
			{"a company token", ofStudio, []string{open, appless}, []string{studio}},
		} {
			who := s.by(c.token)
			me := getJSON[wire.Identity](who, "/api/v2/me")
			var accounts []string
			for _, a := range me.Accounts {
				accounts = append(accounts, a.ID)
			}
			for _, id := range []string{anna, open, appless, houdini} {
				query := "?team_id=" + id
				if id == anna {
					query = ""
				}
				acts := who.sendRequest("GET", "/api/v2/generations"+query).StatusCode == 200
				if listed := slices.Contains(accounts, id); listed != acts || listed != slices.Contains(c.accounts, id) {
					t.Errorf("%s: lists %v, acts for %s: %t, want %v", c.name, accounts, id, acts, c.accounts)
				}
			}
			if len(me.CompanyPermissions) != len(c.companies) {
				t.Errorf("%s: companies %v, want %v", c.name, me.CompanyPermissions, c.companies)
			}
			for _, id := range c.companies {
				if _, ok := me.CompanyPermissions[id]; !ok {
					t.Errorf("%s: companies %v, want %v", c.name, me.CompanyPermissions, c.companies)
				}
			}
		}
	})
}

func TestDevices(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		anna := getJSON[wire.Identity](s, "/api/v2/me").User.UID
		var ids []string
		for _, kind := range []string{"", "blender", "houdini"} {
			in := s.site.Device(anna, kind)
			ids = append(ids, in.DeviceID)
			s.token = in.Tokens.ID
		}
		slices.Reverse(ids) // newest first, which is the one that asks
		s.site.Person("bert@example.com")
		bert := s.by(s.site.Device(s.site.Session("bert@example.com").PersonID, "nuke").Tokens.ID)

		// Each device was approved in a browser of its own, which is listed too.
		all := getJSON[wire.DeviceList](s, "/api/v2/devices")
		devices := ofKind(all, "DEVICE")
		browsers := ofKind(all, "BROWSER")
		if len(devices) != 3 || len(browsers) != 3 || all.HasMore || all.NextCursor != nil {
			t.Fatalf("devices = %+v", all)
		}
		for i, d := range devices {
			kind := "none"
			if d.PluginKind != nil {
				kind = *d.PluginKind
			}
			if d.ID != ids[i] || kind != []string{"houdini", "blender", "none"}[i] || d.Current != (i == 0) || d.Kind != "DEVICE" ||
				d.Name == "" || d.Address == "" || d.SignInProvider != "password" || d.Created.IsZero() || d.LastUsed.Before(d.Created) {
				t.Errorf("device %d = %+v", i, d)
			}
		}

		var paged []string
		for path := "/api/v2/devices?limit=1"; ; {
			page := getJSON[wire.DeviceList](s, path)
			paged = append(paged, page.Data[0].ID)
			if !page.HasMore {
				break
			}
			bert.sendRequest("GET", "/api/v2/devices?cursor="+*page.NextCursor).checkStatus(t, "somebody else's cursor", 400, "INVALID_REQUEST")
			path = "/api/v2/devices?limit=1&cursor=" + *page.NextCursor
		}
		var listed []string
		for _, d := range all.Data {
			listed = append(listed, d.ID)
		}
		if !slices.Equal(paged, listed) {
			t.Errorf("pages gave %v, want %v", paged, listed)
		}

		// What the list names can be ended, and only by its person.
		bert.sendRequest("POST", "/api/v2/auth/device/revoke", "X-Device-Id", ids[1]).checkStatus(t, "somebody else's device", 404, "NOT_FOUND")
		s.sendRequest("POST", "/api/v2/auth/device/revoke", "X-Device-Id", ids[1]).checkStatus(t, "one of mine", 204, "")
		if left := ofKind(getJSON[wire.DeviceList](s, "/api/v2/devices"), "DEVICE"); len(left) != 2 || left[0].ID != ids[0] || left[1].ID != ids[2] {
			t.Errorf("devices = %+v", left)
		}
		if theirs := ofKind(getJSON[wire.DeviceList](bert, "/api/v2/devices"), "DEVICE"); len(theirs) != 1 || *theirs[0].PluginKind != "nuke" {
			t.Errorf("devices of another person = %+v", theirs)
		}
		bert.sendRequest("DELETE", "/api/v2/sessions/"+browsers[0].ID).checkStatus(t, "somebody else's browser", 404, "NOT_FOUND")
		s.sendRequest("DELETE", "/api/v2/sessions/"+browsers[0].ID).checkStatus(t, "one of my browsers", 204, "")
		if left := ofKind(getJSON[wire.DeviceList](s, "/api/v2/devices"), "BROWSER"); len(left) != 2 || left[0].ID != browsers[1].ID {
			t.Errorf("browsers = %+v", left)
		}
	})
}

// ofKind returns the entries of a list of devices that have a kind.
func ofKind(list wire.DeviceList, kind string) []wire.Device {
	return slices.DeleteFunc(slices.Clone(list.Data), func(d wire.Device) bool { return d.Kind != kind })
}

// TestUnverifiedPeopleBrowse walks all routes as somebody whose address the
// operator wants verified: whatever reads is open, whatever changes is not.
func TestUnverifiedPeopleBrowse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, setHighLimits)
		m.exec(`UPDATE person SET email_verified = FALSE`)
		gate := *m.parts.Gate
		gate.RequireVerified = true
		s := m.with(func(p *api.Parts) { p.Gate = &gate }, nil)
		s.token = m.site.Device(getJSON[wire.Identity](m.service, "/api/v2/me").User.UID, "blender").Tokens.ID

		leaving := []string{"POST /api/v2/auth/device/revoke", "POST /api/v2/auth/sign-out-everywhere", "DELETE /api/v2/sessions/{session_id}"}
		secret := []string{"GET /api/v2/webhook-secret"}
		for _, e := range endpoints {
			if e.class == toAll || slices.Contains(leaving, e.route) || e.route == "POST /api/v2/generate/preview-cost" {
				continue
			}
			method, path, _ := strings.Cut(e.route, " ")
			path += "?" + queries[e.route]
			for _, name := range []string{"company_id", "team_id", "tool_id", "upload_id", "resumable_id", "board_id", "node_id", "token_id", "invitation_id", "uid"} {
				path = strings.ReplaceAll(path, "{"+name+"}", "aB3aB3aB3aB3aB3aB3aB")
			}
			path = strings.NewReplacer("{request_id}", "0198c0de-aaaa-7bbb-8ccc-0123456789ab", "{role}", "member", "{domain}", "example.com",
				"{library_id}", "aB3aB3aB3aB3aB3aB3aB:0198c0de-aaaa-7bbb-8ccc-0123456789ab").Replace(path)
			a := s.send(method, path, "application/json", strings.NewReader(e.body))
			refused := a.StatusCode == 403 && a.readError(t).Code == "EMAIL_NOT_VERIFIED"
			if want := method != "GET" && method != "HEAD" || slices.Contains(secret, e.route); refused != want {
				t.Errorf("%s = %d %.200s, want it refused: %t", e.route, a.StatusCode, a.body, want)
			}
		}

		body := m.body("one", "")
		s.send("POST", "/api/v2/generate", "application/json", strings.NewReader(body)).checkStatus(t, "a create", 403, "EMAIL_NOT_VERIFIED")
		price := decodeAnswer[wire.CostPreview](t, s.send("POST", "/api/v2/generate/preview-cost", "application/json", strings.NewReader(body)))
		if price.CanRun || price.BlockingReason == nil || !strings.Contains(*price.BlockingReason, "Verify your e-mail address") || price.TotalTokens != 3 {
			t.Errorf("price = %+v", price)
		}
		if len(getJSON[wire.ToolList](s, "/api/v2/tools").Data) == 0 {
			t.Error("the catalog is empty")
		}
		s.sendRequest("POST", "/api/v2/auth/device/revoke").checkStatus(t, "leaving", 204, "")
	})
}
