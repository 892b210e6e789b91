package pages_test

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
)

// works tells whether a token is good.
func (s *site) works(token string) bool {
	_, err := credential.Check(s.t.Context(), s.db, token)
	return err == nil
}

// minted reads the token on the page that shows it once.
func (a *answer) minted() string {
	a.t.Helper()
	field := a.element("secret")
	if attr(field, "tabindex") != "0" || field.FirstChild == nil {
		a.t.Fatalf("the token's field = %v", field.Attr)
	}
	return field.FirstChild.Data
}

func TestTokens(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		b := s.signedIn(anna)
		b.get("/tokens").want(200, "There are no tokens yet.")
		bad := b.submit("/tokens", "/tokens", "name", strings.Repeat("x", 101)).want(400, "1 to 100 characters")
		if attr(bad.element("name"), "value") != strings.Repeat("x", 101) || attr(bad.element("name"), "aria-invalid") != "true" {
			t.Errorf("page = %s", bad.body)
		}
		a := b.submit("/tokens", "/tokens", "name", "Render farm").want(200, "Render farm", "shown only once")
		secret := a.minted()
		if !s.works(secret) {
			t.Fatalf("token %q does not work", secret)
		}
		list := b.get("/tokens").want(200, "Render farm", "…"+secret[len(secret)-4:], "Never used.", "Created 2026-11-15 09:30 UTC")
		if strings.Contains(list.body, secret) {
			t.Error("the list has the token")
		}
		next := b.send(list, "/tokens/regenerate").want(200, "Render farm").minted()
		if next == secret || s.works(secret) || !s.works(next) {
			t.Error("the old value works or the new one does not")
		}
		b.send(list, "/tokens/delete").leads("/tokens?done=deleted")
		b.get("/tokens?done=deleted").want(200, "The token is deleted.", "There are no tokens yet.")
		if s.works(next) {
			t.Error("the deleted token works")
		}
		b.send(list, "/tokens/delete").want(404, "There is no such access token.")
		b.send(list, "/tokens/regenerate").want(404)

		// Nobody else reaches it.
		b.submit("/tokens", "/tokens", "name", "mine").want(200)
		id := s.only("access_token")
		eve := s.signedIn(s.person("eve@studio.example"))
		for _, path := range []string{"/tokens/delete", "/tokens/regenerate"} {
			eve.post(path, url.Values{"form_token": {signinToken(eve, path)}, "id": {id}}).want(404)
		}
	})
}

func TestCompanyTokens(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna, bert := s.person("anna@studio.example"), s.person("bert@studio.example")
		c, _ := s.company("North Light", "Compositing", company.RoleAdmin, anna)
		s.write(func(ctx context.Context, tx *sqldb.Tx) error {
			_, err := company.SetMember(ctx, tx, c.ID, bert.ID, company.RoleMember)
			return err
		})
		admin, member := s.signedIn(anna), s.signedIn(bert)
		page := "/companies/" + c.ID + "/tokens"
		if a := admin.get("/account").want(200, "Access tokens of North Light"); !strings.Contains(a.body, `href="`+page+`"`) {
			t.Errorf("page = %s", a.body)
		}
		if a := member.get("/account").want(200); strings.Contains(a.body, page) {
			t.Error("a plain member is led to the company's tokens")
		}
		member.get(page).want(403, "does not allow managing access tokens")
		s.signedIn(s.person("eve@studio.example")).get(page).want(404)
		admin.get("/companies/" + ids.New() + "/tokens").want(404)
		admin.get("/companies/x/tokens").want(404)
		s.browser().get(page).leads("/signin?next=" + url.QueryEscape(page))

		admin.get(page).want(200, "Access tokens of North Light", "anna@studio.example", "bert@studio.example", "There are no tokens yet.")
		stranger := s.person("carla@studio.example")
		bad := admin.submit(page, page, "name", "Pipeline", "uid", stranger.ID).want(400, "member of the company")
		if attr(bad.element("uid"), "aria-invalid") != "true" || attr(bad.element("name"), "value") != "Pipeline" {
			t.Errorf("page = %s", bad.body)
		}
		bad = admin.submit(page, page, "name", "", "uid", bert.ID).want(400, "1 to 100 characters")
		if !strings.Contains(bad.body, `value="`+bert.ID+`" selected`) {
			t.Errorf("the form forgot the member: %s", bad.body)
		}
		secret := admin.submit(page, page, "name", "Pipeline", "uid", bert.ID).want(200, "Pipeline").minted()
		if !strings.HasPrefix(secret, "atl_c_") || !s.works(secret) {
			t.Fatalf("token = %q", secret)
		}
		list := admin.get(page).want(200, "Pipeline", "Acts as bert@studio.example.")
		member.get("/account").want(200, `created the access token "Pipeline"`)

		// The member sees it and can delete it, no more.
		own := member.get("/tokens").want(200, "Pipeline", "company", "Created by an admin of North Light.")
		if strings.Contains(own.body, "/tokens/regenerate") {
			t.Error("the member can regenerate the company's token")
		}
		id := own.form("/tokens/delete").Get("id")
		member.post("/tokens/regenerate", url.Values{"form_token": {signinToken(member, "/tokens/regenerate")}, "id": {id}}).want(403, "only its admins can change it")
		for _, path := range []string{"", "/regenerate", "/delete"} {
			member.post(page+path, url.Values{"form_token": {signinToken(member, page+path)}, "id": {id}, "name": {"x"}, "uid": {bert.ID}}).want(403)
		}
		next := admin.send(list, page+"/regenerate").want(200).minted()
		if s.works(secret) || !s.works(next) {
			t.Error("the old value works or the new one does not")
		}
		member.send(own, "/tokens/delete").leads("/tokens?done=deleted")
		if s.works(next) {
			t.Error("the deleted token works")
		}
		admin.submit(page, page, "name", "Again", "uid", anna.ID).want(200)
		admin.submit(page, page+"/delete").leads(page + "?done=deleted")
		if n := s.count("access_token"); n != 0 {
			t.Errorf("tokens = %d", n)
		}
	})
}

func TestOlderTokens(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		b := s.signedIn(anna)
		s.write(func(ctx context.Context, tx *sqldb.Tx) error {
			for i := range 103 {
				if _, _, err := credential.Create(ctx, tx, credential.Draft{PersonID: anna.ID, MintedBy: anna.ID, Name: fmt.Sprintf("token-%03d", i)}); err != nil {
					return err
				}
			}
			return nil
		})
		seen := map[string]int{}
		names := regexp.MustCompile(`<p class="name">(token-\d+)`)
		older := regexp.MustCompile(`href="(/tokens\?after=[^"]+)"`)
		pages := 0
		for path := "/tokens"; path != ""; pages++ {
			a := b.get(path).want(200)
			for _, m := range names.FindAllStringSubmatch(a.body, -1) {
				seen[m[1]]++
			}
			path = ""
			if m := older.FindStringSubmatch(a.body); m != nil {
				path = m[1]
			}
		}
		for name, times := range seen {
			if times != 1 {
				t.Errorf("%s is there %d times", name, times)
			}
		}
		if len(seen) != 103 || pages != 2 {
			t.Errorf("%d tokens on %d pages", len(seen), pages)
		}
		for _, bad := range []string{"x", "-1", ids.New() + "-x", ids.New() + "-99999999999999999999", "%00"} {
			b.get("/tokens?after="+bad).want(200, "Older tokens") // the first page
		}
	})
}

// xss are what attackers call themselves.
var xss = []string{
	`<script>alert(1)</script>`, `"><script>alert(1)</script>`, `'"><img src=x onerror=alert(1)>`, `</title><svg/onload=alert(1)>`, `</textarea><script>x</script>`,
	`" autofocus onfocus=alert(1) x="`, `' onmouseover='alert(1)`, `javascript:alert(1)`, `{{.}}`, `{{template "main"}}`, `<!--`, `]]>`, `&lt;script&gt;`, `<iframe srcdoc="<script>x">`,
	`<a href="javascript:alert(1)">x</a>`, `<style>*{display:none}</style>`, `<base href=//evil.example>`, `<meta http-equiv=refresh content=0>`, "\u202etxet", `%3Cscript%3E`, `\x3cscript\x3e`,
}

func TestNamesAreText(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		b := s.signedIn(anna)
		for i, payload := range xss {
			c, team := s.company(payload, payload, company.RoleAdmin, anna)
			s.write(func(ctx context.Context, tx *sqldb.Tx) error {
				if err := person.Notify(ctx, tx, anna.ID, "x", payload); err != nil {
					return err
				}
				_, _, err := credential.Create(ctx, tx, credential.Draft{PersonID: anna.ID, CompanyID: c.ID, MintedBy: anna.ID, Name: payload})
				return err
			})
			s.clock.pass(time.Hour) // codes are limited by address
			b.agent = payload
			codes := s.start("blender", payload, payload)
			says := strings.Join(strings.Fields(payload), " ")
			b.get("/companies/"+c.ID+"/tokens").want(200, "Access tokens of "+says)
			b.get("/invitation?token="+s.invite(company.Draft{CompanyID: c.ID, TeamID: team.ID})).want(200, "Join "+says)
			b.get("/device?code="+codes.UserCode).want(200, "From address")
			b.get("/device?code=" + url.QueryEscape(payload)).want(404)
			b.submit("/tokens", "/tokens", "name", payload).want(200, "shown only once")
			out := s.browser()
			out.submit("/signin", "/signin", "email", payload, "password", "x").want(403)
			out.get("/signup?invitation=" + url.QueryEscape(payload) + "&next=" + url.QueryEscape(payload)).want(404)
			out.get("/verify?token=" + url.QueryEscape(payload)).want(200)
			if i == len(xss)-1 {
				b.get("/account").want(200, xss...)
				b.get("/tokens").want(200, xss...)
			}
		}
	})
}
