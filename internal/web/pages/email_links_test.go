package pages_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"atelier/internal/account"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/web/pages"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.browser()
		b.submit("/signup", "/signup", "email", "anna@studio.example", "password", password).leads("/")
		b.submit("/account", "/account/verification").leads("/account?done=sent")
		b.get("/account?done=sent").want(200, "The link has been sent to you.")
		link := s.link("/verify")
		elsewhere := s.browser() // the mail may be read on another machine
		before := s.state()
		page := elsewhere.get(link).want(200, "Verify")
		b.get(link).want(200)
		if s.state() != before {
			t.Error("opening the link did something")
		}
		elsewhere.send(page, "/verify").want(200, "Your address is verified")
		b.get("/account").want(200, "Your address is verified.")
		elsewhere.send(page, "/verify").want(404, "This link is no longer valid.")
		elsewhere.send(page, "/verify", "token", "x").want(404)
		b.get("/verify").want(404)
	})
}

func TestMailsAreLimited(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.browser()
		b.submit("/signup", "/signup", "email", "anna@studio.example", "password", password).leads("/")
		page := b.get("/account")
		for range 5 {
			b.send(page, "/account/verification").leads("/account?done=sent")
		}
		b.send(page, "/account/verification").want(429, "You can try again in 60 minutes.")
	})
}

func TestReset(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		thief := s.signedIn(anna)
		b := s.browser()
		known := b.submit("/forgot", "/forgot", "email", "anna@studio.example").want(200, "Check your mail")
		unknown := b.submit("/forgot", "/forgot", "email", "nobody@studio.example").want(200)
		if strings.ReplaceAll(unknown.body, "nobody@", "anna@") != known.body {
			t.Errorf("the answers tell who is here:\n%s\n%s", known.body, unknown.body)
		}
		b.submit("/forgot", "/forgot", "email", "not an address").want(400, "This is not an e-mail address.")
		if mails := s.mails(); strings.Contains(mails, "nobody@") {
			t.Errorf("mail = %s", mails)
		}
		link := s.link("/reset")
		before := s.state()
		page := b.get(link).want(200, "Choose a new password")
		if s.state() != before {
			t.Error("opening the link did something")
		}
		b.get("/reset?token=x").want(404, "This link is no longer valid.")
		b.send(page, "/reset", "password", "short").want(400, "at least 8 characters")
		thief.get("/account").want(200)
		b.send(page, "/reset", "password", "another fine password").leads("/signin?done=reset")
		b.get("/signin?done=reset").want(200, "Your password was changed.")
		thief.get("/account").leads("/signin?next=%2Faccount")
		b.send(page, "/reset", "password", "a third fine password").want(404)
		b.get(link).want(404)
		b.signIn("anna@studio.example", password).want(403)
		b.signIn("anna@studio.example", "another fine password").leads("/")
		b.get("/account").want(200, "Your password was changed and you were signed out everywhere.")
	})
}

func TestResetLinksExpire(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		s.person("anna@studio.example")
		b := s.browser()
		b.submit("/forgot", "/forgot", "email", "anna@studio.example").want(200)
		link := s.link("/reset")
		page := b.get(link).want(200)
		s.clock.pass(time.Hour)
		b.get(link).want(404)
		b.send(page, "/reset", "password", "another fine password").want(404)
	})
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		b, other := s.signedIn(anna), s.signedIn(anna)
		first := b.cookie(sessionCookie)
		a := b.submit("/password", "/password", "old", "wrong password", "password", "another fine password").want(400, "The current password is wrong.")
		if attr(a.element("old"), "aria-invalid") != "true" || attr(a.element("password"), "aria-invalid") != "" {
			t.Errorf("page = %s", a.body)
		}
		b.submit("/password", "/password", "old", password, "password", "short").want(400, "at least 8 characters")
		b.submit("/password", "/password", "old", password, "password", "another fine password").leads("/account?done=password")
		b.get("/account?done=password").want(200, "You are signed out everywhere else.")
		if b.cookie(sessionCookie) == first {
			t.Error("the session goes on under its old cookie")
		}
		other.get("/account").leads("/signin?next=%2Faccount")
		s.browser().signIn("anna@studio.example", "another fine password").leads("/")
	})
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		c, team := s.company("North Light", "Compositing", company.RoleAdmin, anna)
		bert := s.person("bert@studio.example")
		link := "/invitation?token=" + s.invite(company.Draft{CompanyID: c.ID, TeamID: team.ID, Uses: 5})

		out := s.browser()
		page := out.get(link).want(200, "Join Compositing at North Light")
		if !strings.Contains(page.body, `href="/signin?next=%2finvitation%3ftoken%3d`) || strings.Contains(page.body, "<form") {
			t.Errorf("page = %s", page.body)
		}
		in := s.signedIn(bert)
		before := s.state()
		shown := in.get(link).want(200, "You are signed in as bert@studio.example.")
		if s.state() != before {
			t.Error("opening the invitation did something")
		}
		in.send(shown, "/invitation").leads("/account?done=joined")
		in.get("/account?done=joined").want(200, "You have joined.", "Compositing")
		in.send(shown, "/invitation", "token", "x").want(404)
		in.get("/invitation?token=x").want(404)

		// Somebody new signs up with one that went to their address.
		secret := s.invite(company.Draft{CompanyID: c.ID, Email: "carla@studio.example"})
		page = out.get("/invitation?token="+secret).want(200, "Join North Light", "carla@studio.example")
		if !strings.Contains(page.body, `href="/signup?invitation=`+secret) {
			t.Errorf("page = %s", page.body)
		}
		wrong := in.get("/invitation?token="+secret).want(200, "This invitation is for carla@studio.example, and you are signed in as bert@studio.example.")
		if strings.Contains(wrong.body, `action="/invitation"`) {
			t.Error("somebody else can accept it")
		}
		in.post("/invitation", url.Values{"form_token": {signinToken(in, "/invitation")}, "token": {secret}}).
			want(403, "This invitation is for carla@studio.example, and you are signed in as bert@studio.example.")
		in.get("/signup?invitation=" + secret).leads("/invitation?token=" + secret)
		form := out.get("/signup?invitation=" + secret)
		if field := form.element("email"); attr(field, "value") != "carla@studio.example" || !has(field, "readonly") {
			t.Errorf("the address is not filled in: %v", field.Attr)
		}
		if !strings.Contains(form.body, `href="/signin?next=%2finvitation%3ftoken%3d`) {
			t.Errorf("signing in loses the invitation: %s", form.body)
		}
		if field := out.get("/signin?next=" + url.QueryEscape("/invitation?token="+secret)).element("email"); attr(field, "value") != "carla@studio.example" {
			t.Errorf("the address of the sign-in is not filled in: %v", field.Attr)
		}
		out.send(form, "/signup", "email", "carl@studio.example", "password", password).want(400, "Sign up", "This invitation is for carla@studio.example only.")
		out.send(form, "/signup", "email", "carla@studio.example", "password", password).leads("/")
		out.get("/account").want(200, "Your address is verified.")
		if n := s.count("company_member"); n != 3 {
			t.Errorf("members = %d", n)
		}
		other := s.browser()
		other.get("/invitation?token=" + secret).want(404)
		other.get("/signup?invitation="+secret).want(404, "Sign up", "This invitation does not exist or is no longer valid.")

		// Whoever is signed in with another address gets to the invitation by signing out.
		third := s.invite(company.Draft{CompanyID: c.ID, Email: "dora@studio.example"})
		wrong = in.get("/invitation?token=" + third)
		if next := formWith(wrong, "/signout", "next"); next.Get("next") != "/invitation?token="+third {
			t.Errorf("form = %v", next)
		}
		in.post("/signout", formWith(wrong, "/signout", "next")).leads("/invitation?token=" + third)
		in.get("/account").leads("/signin?next=%2Faccount")
	})
}

func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		c, team := s.company("North Light", "Compositing", company.RoleAdmin, anna)
		in := s.signedIn(anna)
		s.device(anna, in, "blender", "blender/4.5")
		var reset, verify string
		s.write(func(ctx context.Context, tx *sqldb.Tx) (err error) {
			if verify, err = person.CreateLink(ctx, tx, person.VerifyLink, person.Link{PersonID: anna.ID, Target: anna.Email}, time.Hour); err != nil {
				return err
			}
			reset, err = person.CreateLink(ctx, tx, person.ResetLink, person.Link{PersonID: anna.ID}, time.Hour)
			return err
		})
		codes := s.start("blender", "blender/4.5", "198.51.100.7")
		queries := map[string]string{
			"/verify": "?token=" + verify, "/reset": "?token=" + reset, "/drop": strings.TrimPrefix(s.link("/drop"), "/drop"),
			"/device":     "?verdict=approve&code=" + codes.UserCode,
			"/invitation": "?token=" + s.invite(company.Draft{CompanyID: c.ID, TeamID: team.ID}),
			"/signup":     "?email=eve@studio.example&password=" + password[:7],
			"/signin":     "?email=anna@studio.example",
		}
		before := s.state()
		gets := 0
		for _, rt := range pages.Table() {
			if rt.Method != "GET" {
				continue
			}
			path := fill(rt.Path, c.ID)
			for _, b := range []*browser{in, s.browser()} {
				for _, method := range []string{"GET", "HEAD"} {
					gets++
					if a := b.do(method, path+strings.ReplaceAll(queries[path], " ", "+"), "", ""); a.status >= 500 {
						t.Errorf("%s %s = %d", method, path, a.status)
					}
				}
			}
		}
		if now := s.state(); now != before || gets < 60 {
			t.Errorf("%d times GET did something:\n%s\n%s", gets, before, now)
		}
	})
}

// formWith gives what the form to action would send that has a field.
func formWith(a *answer, action, name string) url.Values {
	a.t.Helper()
	for f := range a.all("form") {
		values := url.Values{}
		for n := range f.Descendants() {
			if n.Data == "input" {
				values.Set(attr(n, "name"), attr(n, "value"))
			}
		}
		if attr(f, "action") == action && values.Has(name) {
			return values
		}
	}
	a.t.Fatalf("no form to %s has %s: %s", action, name, a.body)
	return nil
}

// TestNoMailServer holds the pages to what happens where no mail goes out.
func TestNoMailServer(t *testing.T) {
	t.Parallel()
	each(t, func(settings *account.Settings) { settings.NoMail = true }, func(t *testing.T, s *site) {
		b := s.browser()
		b.get("/forgot").want(200, "This installation sends no mail.", "atelier admin person link", "Create the link")
		known := b.submit("/forgot", "/forgot", "email", "anna@studio.example").want(200, "Ask the operator for your link", "written to the service's log")
		if strings.Contains(known.body, "Check your mail") || strings.Contains(known.body, "we have sent") {
			t.Errorf("page = %s", known.body)
		}
		b.submit("/signup", "/signup", "email", "anna@studio.example", "password", password).leads("/")
		b.get("/account").want(200, "This installation sends no mail", "Create a new link")
		b.submit("/account", "/account/verification").leads("/account?done=sent")
		b.get("/account?done=sent").want(200, "this installation sends no mail")
		if strings.Contains(b.get("/account?done=sent").body, "we have sent") {
			t.Error("the page says that mail was sent")
		}
	})
}

// TestNoMailServerVerifies is the same where addresses have to be verified.
func TestNoMailServerVerifies(t *testing.T) {
	t.Parallel()
	verified := func(settings *account.Settings) {
		settings.NoMail = true
		settings.RequireVerified = true
	}
	each(t, verified, func(t *testing.T, s *site) {
		s.browser().submit("/signup", "/signup", "email", "anna@studio.example", "password", password).want(200, "Ask the operator for your link", "sends no mail")
	})
}
