package pages_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"atelier/internal/base/fault"
)

func TestApproveADevice(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		codes := s.start("blender", "atelier-blender/1.4", "198.51.100.7")
		out := s.browser()
		link := "/device?code=" + codes.UserCode
		out.get(link).leads("/signin?next=" + url.QueryEscape(link))
		out.get(link + "&intent=signup").leads("/signup?next=" + url.QueryEscape(link+"&intent=signup"))
		out.submit("/signin?next="+url.QueryEscape(link), "/signin", "email", "anna@studio.example", "password", password).leads(link)

		s.clock.pass(3 * time.Minute)
		page := out.get(link).want(200, "Do you see this code on your device?", codes.UserCode, "blender", "atelier-blender/1.4", "198.51.100.7",
			"3 minutes ago", "anna@studio.example", "Approve only if you started this sign-in yourself just now.")
		var buttons []*html.Node
		for f := range page.all("form") {
			if attr(f, "action") == "/device" {
				for n := range f.Descendants() {
					if n.Data == "button" || n.Data == "input" && attr(n, "type") == "submit" {
						buttons = append(buttons, n)
					}
				}
			}
		}
		if len(buttons) != 2 || attr(buttons[0], "value") != "refuse" || !has(buttons[0], "autofocus") || attr(buttons[1], "value") != "approve" || has(buttons[1], "autofocus") {
			t.Fatalf("buttons = %v", buttons)
		}
		if _, err := s.poll(codes); !fault.Is(err, fault.AuthorizationPending) {
			t.Fatalf("poll of an opened page = %v", err)
		}
		out.send(page, "/device", "verdict", "approve").want(200, "Approved", "You can go back to your device")
		in, err := s.poll(codes)
		if err != nil || in.Profile.Person.ID != anna.ID {
			t.Fatalf("poll = %+v, %v", in, err)
		}
		out.send(page, "/device", "verdict", "approve").want(403, "Approved") // as at a reload
		out.get("/devices").want(200, "atelier-blender/1.4", "blender", "198.51.100.7")
		out.get("/account").want(200, "A new device (blender) was signed in as you from 198.51.100.7")
	})
}

func TestRefuseADevice(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.signedIn(s.person("anna@studio.example"))
		for _, verdict := range []string{"refuse", "", "Approve", "approve "} { // only the one button approves
			codes := s.start("", "", "198.51.100.7")
			b.submit("/device?code="+codes.UserCode, "/device", "verdict", verdict).want(200, "Refused", "was not signed in")
			if _, err := s.poll(codes); !fault.Is(err, fault.DeviceCodeExpired) {
				t.Errorf("poll after %q = %v", verdict, err)
			}
		}

		// Whoever comes back to the code sees what they did, and nobody else does.
		codes := s.start("", "", "198.51.100.7")
		link := "/device?code=" + codes.UserCode
		page := b.get(link)
		refused := b.send(page, "/device", "verdict", "refuse").want(200, "Refused")
		if got := refused.alerts(); len(got) != 1 || !strings.Contains(got[0], "You refused the device") {
			t.Errorf("alerts = %q", got)
		}
		b.get(link).want(403, "Refused", "You refused the device")
		b.send(page, "/device", "verdict", "approve").want(403, "Refused", "You refused the device")
		s.signedIn(s.person("bert@studio.example")).get(link).want(404, "No device is waiting with this code.")
		if n := s.count("device"); n != 0 {
			t.Errorf("devices = %d", n)
		}
	})
}

func TestCodesAsPeopleTypeThem(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.signedIn(s.person("anna@studio.example"))
		b.get("/device").want(200, "The code shown on your device", "anna@studio.example")
		code := s.start("blender", "x", "198.51.100.7").UserCode
		for _, typed := range []string{code, strings.ToLower(code), strings.ReplaceAll(code, "-", ""), " " + strings.ToLower(code[:4]) + " " + code[5:] + " "} {
			b.get("/device?code="+url.QueryEscape(typed)).want(200, code)
		}
		a := b.get("/device?code=BCDF-GHJK").want(404, "No device is waiting with this code.")
		if attr(a.element("code"), "value") != "BCDF-GHJK" || len(a.alerts()) != 1 {
			t.Errorf("page = %s", a.body)
		}
		for _, typed := range []string{"x", "ÄÖÜ", strings.Repeat("B", 300), "\x00", "%", "<b>"} {
			b.get("/device?code=" + url.QueryEscape(typed)).want(404)
		}
		s.clock.pass(10 * time.Minute)
		b.get("/device?code="+code).want(404, "No device is waiting with this code.")
	})
}

func TestTooManyWrongCodes(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.signedIn(s.person("anna@studio.example"))
		right := s.start("", "", "198.51.100.7").UserCode
		for range 10 {
			b.get("/device?code=BCDF-GHJK").want(404)
		}
		a := b.get("/device?code="+right).want(429, "You can try again in 10 minutes.")
		if a.header.Get("Retry-After") != "600" {
			t.Errorf("wait = %q", a.header.Get("Retry-After"))
		}
	})
}

func TestASecondPersonLocksACode(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna, bert := s.signedIn(s.person("anna@studio.example")), s.signedIn(s.person("bert@studio.example"))
		codes := s.start("blender", "x", "198.51.100.7")
		first := anna.get("/device?code="+codes.UserCode).want(200, "Do you see this code")
		second := bert.get("/device?code="+codes.UserCode).want(200, "This code can no longer be approved", "More than one person has opened this code")
		if strings.Contains(second.body, "approve\"") || len(second.alerts()) != 1 {
			t.Errorf("page = %s", second.body)
		}
		for _, page := range []*answer{first, second} {
			b := map[*answer]*browser{first: anna, second: bert}[page]
			b.send(page, "/device", "verdict", "approve").want(403, "it can't be approved")
		}
		if n := s.count("audit WHERE act = 'device.code_seen_by_many'"); n != 1 {
			t.Errorf("audit entries = %d", n)
		}
		bert.send(second, "/device", "verdict", "refuse").want(200, "Refused")
	})
}

func TestAPageApprovesItsOwnCodeOnly(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.signedIn(s.person("anna@studio.example"))
		mine, theirs := s.start("blender", "x", "198.51.100.7"), s.start("blender", "x", "203.0.113.66")
		page := b.get("/device?code=" + mine.UserCode)
		for range 5 {
			b.send(page, "/device", "verdict", "approve", "code", theirs.UserCode).want(404)
		}
		b.send(page, "/device", "verdict", "approve").want(404) // five wrong ones end it
		if n := s.count("device_grant WHERE state = 'approved'"); n != 0 {
			t.Errorf("approved = %d", n)
		}
	})
}

func TestDevicesPage(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		b, other := s.signedIn(anna), s.signedIn(anna)
		b.get("/devices").want(200, "No app is signed in.", "Firefox on Linux", "this browser")
		first, second := s.device(anna, b, "blender", "blender/4.5"), s.device(anna, b, "", "curl/8")
		page := b.get("/devices").want(200, "blender/4.5", "curl/8", "Last used", "Signed in since")
		b.send(page, "/devices/revoke", "id", first).leads("/devices?done=revoked")
		if a := b.get("/devices?done=revoked").want(200, "The device is signed out.", "curl/8"); strings.Contains(a.body, "blender/4.5") {
			t.Error("the revoked device is still listed")
		}
		b.send(page, "/devices/revoke", "id", first).want(404)

		// A stranger reaches nothing of hers.
		eve := s.signedIn(s.person("eve@studio.example"))
		sessions := b.sessions()
		for _, id := range append(sessions, second, "", "x") {
			eve.post("/devices/revoke", url.Values{"form_token": {signinToken(eve, "/devices/revoke")}, "id": {id}}).want(404)
			eve.post("/devices/signout", url.Values{"form_token": {signinToken(eve, "/devices/signout")}, "id": {id}}).leads("/devices?done=ended")
		}
		other.get("/account").want(200)

		// Another browser of hers, then all.
		page = b.get("/devices")
		for _, id := range sessions {
			if id != b.here() {
				b.send(page, "/devices/signout", "id", id).leads("/devices?done=ended")
			}
		}
		other.get("/account").leads("/signin?next=%2Faccount")
		b.get("/devices").want(200)
		s.device(anna, b, "", "curl/9")
		third := s.signedIn(anna)
		b.submit("/devices", "/devices/signout-everywhere").leads("/signin?done=everywhere")
		b.get("/signin?done=everywhere").want(200, "You are signed out everywhere.")
		third.get("/account").leads("/signin?next=%2Faccount")
		if n := s.count("device WHERE revoked IS NULL"); n != 0 || b.cookie(sessionCookie) != "" {
			t.Errorf("devices = %d, cookie = %q", n, b.cookie(sessionCookie))
		}
	})
}

func TestSignOutOfThisBrowserInTheList(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.signedIn(s.person("anna@studio.example"))
		b.submit("/devices", "/devices/signout").leads("/signin?done=signed-out")
		if b.cookie(sessionCookie) != "" {
			t.Error("the cookie is still there")
		}
	})
}

// sessions are the ids of the browsers on the devices page.
func (b *browser) sessions() (ids []string) {
	for f := range b.get("/devices").all("form") {
		for n := range f.Descendants() {
			if attr(f, "action") == "/devices/signout" && attr(n, "name") == "id" {
				ids = append(ids, attr(n, "value"))
			}
		}
	}
	return ids
}

// here is the id of this browser's session.
func (b *browser) here() string {
	b.t.Helper()
	in, err := b.accounts.SignIn.FindSession(b.t.Context(), b.cookie(sessionCookie), "")
	if err != nil {
		b.t.Fatal(err)
	}
	return in.ID
}

func TestDropLink(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		in := s.signedIn(anna)
		s.device(anna, in, "blender", "blender/4.5")
		link := s.link("/drop")
		b := s.browser()
		b.get("/drop?token=x").want(404)
		page := b.get(link).want(200, "Sign out the device?")
		b.get(link).want(200)
		b.send(page, "/drop").want(200, "The device is signed out")
		b.get(link).want(404)
		b.send(page, "/drop").want(404)
		if n := s.count("device WHERE revoked IS NULL"); n != 0 {
			t.Errorf("devices = %d", n)
		}
		s.device(anna, in, "blender", "blender/4.5")
		late := s.link("/drop")
		s.clock.pass(24 * time.Hour)
		b.get(late).want(404)
	})
}
