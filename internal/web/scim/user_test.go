package scim_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"atelier/internal/account/accounttest"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue/mailqueuetest"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/testkit/watch"
)

// mails reads what lies in the queue, oldest first.
func (w *fixture) mails() []mail.Message {
	w.Helper()
	return mailqueuetest.Queued(w, w.site.DB, w.site.Keys.BoxFor("mail"))
}

// lastMail is the newest to an address.
func (w *fixture) lastMail(to string) mail.Message {
	w.Helper()
	for _, m := range slices.Backward(w.mails()) {
		if m.To == to {
			return m
		}
	}
	w.Fatalf("no mail to %s", to)
	return mail.Message{}
}

var secret = regexp.MustCompile(`token=(\w+)`)

// reset chooses a password by the forgot-password link.
func (w *fixture) reset(email, password string) {
	w.Helper()
	w.ok(w.site.Accounts.SignIn.RequestPasswordReset(w.Context(), email, w.site.Client()))
	m := w.lastMail(email)
	found := secret.FindStringSubmatch(m.Text)
	if found == nil {
		w.Fatalf("mail = %+v", m)
	}
	_, err := w.site.Accounts.SignIn.ResetPassword(w.Context(), found[1], password, w.site.Client())
	w.ok(err)
}

func TestANewUser(t *testing.T) {
	each(t, func(w *fixture) {
		before := w.seq()
		a := w.do(201, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
			"UserName":"Anna@fox.example","externalId":"e1","name":{"givenName":"Anna","familyName":"Ax","nonsense":1},"displayName":"Anna Ax","title":"Lead",
			"active":"True","id":"mine","meta":{"created":"x"},"groups":[{"value":"x"}],"unheard":{"of":1},
			"emails":[{"value":"anna@fox.example","type":"work","primary":true},{"value":"a@home.example","type":"home"}],
			"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"Film","manager":{"value":"m1"}}}`)
		id := a.id()
		a.has(map[string]any{
			"userName": "Anna@fox.example", "externalId": "e1", "name|givenName": "Anna", "name|nonsense": nil, "displayName": "Anna Ax", "title": "Lead", "active": true,
			"emails|1|value": "a@home.example", "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User|department": "Film", "groups": nil, "unheard": nil,
			"meta|resourceType": "User", "meta|location": w.url + "/scim/v2/Users/" + id, "meta|created": "2026-11-15T09:30:00Z", "meta|lastModified": "2026-11-15T09:30:00Z",
			"schemas": "[urn:ietf:params:scim:schemas:core:2.0:User urn:ietf:params:scim:schemas:extension:enterprise:2.0:User]",
		})
		if a.header.Get("Location") != w.url+"/scim/v2/Users/"+id || len(id) != 20 {
			w.Errorf("id = %q, Location = %q", id, a.header.Get("Location"))
		}
		if got := w.acts(before); !slices.Equal(got, []string{"person.created", "scim_user.made", "company.member_set"}) {
			w.Errorf("acts = %v", got)
		}
		if w.roles(w.fox)["Anna@fox.example"] != "member" {
			w.Errorf("members = %v", w.roles(w.fox))
		}
		if got := w.do(200, "GET", "/Users/"+id, ""); got.text != a.text {
			w.Errorf("read again: %s, want %s", got.text, a.text)
		}
		if m := w.lastMail("Anna@fox.example"); m.Subject != "You have an account" || !strings.Contains(m.Text, "“Fox”") || !strings.Contains(m.Text, "/forgot") {
			w.Errorf("mail = %+v", m)
		}
		// Nobody knows a password; the link makes one.
		if _, err := w.site.Accounts.SignIn.SignIn(w.Context(), "anna@fox.example", "", w.site.Client()); !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Forbidden) {
			w.Errorf("signing in without a password: %v", err)
		}
		w.reset("Anna@fox.example", "a better horse")
		if in, err := w.site.Accounts.SignIn.SignIn(w.Context(), "anna@fox.example", "a better horse", w.site.Client()); err != nil || in.Person.ID != id || !in.Person.EmailVerified {
			w.Errorf("signing in = %+v, %v", in.Person, err)
		}
		for _, body := range []string{`{"userName":"anna@FOX.example"}`, `{"emails":[{"value":"anna@fox.example"}]}`} {
			w.as(w.token, "POST", "/Users", body).want(409, "uniqueness")
		}
	})
}

func TestExistingAccounts(t *testing.T) {
	each(t, func(w *fixture) {
		// Somebody who joined by the domain is a user that nobody provisioned.
		bert := w.site.Person("bert@fox.example")
		a := w.do(200, "GET", "/Users/"+bert, "")
		a.has(map[string]any{"userName": "bert@fox.example", "active": true, "emails|0|value": "bert@fox.example", "externalId": nil})
		w.as(w.token, "POST", "/Users", `{"userName":"bert@fox.example"}`).want(409, "uniqueness")
		// Somebody whom an admin took out comes back as a member.
		w.ok(w.site.Companies.Members.RemoveMember(w.Context(), principal.Operator(), w.fox, bert))
		w.do(404, "GET", "/Users/"+bert, "")
		before := w.seq()
		if got := w.do(201, "POST", "/Users", `{"userName":"bert@fox.example","externalId":"b"}`); got.id() != bert {
			w.Errorf("id = %s, want %s", got.id(), bert)
		}
		if got := w.acts(before); !slices.Equal(got, []string{"scim_user.made", "company.member_set"}) {
			w.Errorf("acts = %v", got)
		}
		if m := w.lastMail("bert@fox.example"); m.Subject != "You are a member of a company" {
			w.Errorf("mail = %+v", m)
		}
		if _, err := w.site.Accounts.SignIn.SignIn(w.Context(), "bert@fox.example", accounttest.Password, w.site.Client()); err != nil {
			w.Errorf("the password of somebody whose address is theirs: %v", err)
		}
		// Whom the operator shut out stays shut out.
		carl := w.site.Person("carl@fox.example")
		w.ok(w.site.Accounts.SignIn.SetSuspended(w.Context(), "carl@fox.example", true))
		w.patch(200, "/Users/"+carl, `[{"op":"replace","path":"active","value":false}]`)
		w.patch(200, "/Users/"+carl, `[{"op":"replace","path":"active","value":true}]`)
		if _, err := w.site.Accounts.SignIn.SignIn(w.Context(), "carl@fox.example", accounttest.Password, w.site.Client()); err == nil {
			w.Error("the identity provider reactivated a person whom the operator had suspended")
		}
	})
}

// TestASquatterLosesTheAddress: a stranger who signed up with an address and
// never verified it does not get what its owner is given.
func TestASquatterLosesTheAddress(t *testing.T) {
	each(t, func(w *fixture) {
		p, err := w.site.Accounts.SignUp.CreatePerson(w.Context(), person.Draft{Email: "dora@fox.example", PasswordHash: accounttest.PasswordHash})
		w.ok(err)
		_, token := w.site.Token("dora@fox.example", "")
		device := w.site.Device(p.ID, "blender")
		if got := w.user("dora@fox.example"); got != p.ID {
			w.Errorf("id = %s, want %s", got, p.ID)
		}
		if _, err := w.site.Accounts.SignIn.SignIn(w.Context(), "dora@fox.example", accounttest.Password, w.site.Client()); err == nil {
			w.Error("the squatter's password works")
		}
		if _, err := credential.Check(w.Context(), w.site.DB, token); err == nil {
			w.Error("the squatter's token works")
		}
		if _, err := w.site.Devices.CheckDevice(w.Context(), w.site.DB, device.DeviceID); err == nil {
			w.Error("the squatter's device works")
		}
	})
}

// A squatter who came in by a link is found by the identity provider, and not made by it.
func TestASquatterWhoIsAMember(t *testing.T) {
	each(t, func(w *fixture) {
		for _, x := range []struct{ name, change string }{
			{"dora@fox.example", `[{"op":"replace","path":"title","value":"Lead"}]`},
			{"emma@fox.example", `[{"op":"replace","path":"userName","value":"em@fox.example"}]`},
		} {
			p, err := w.site.Accounts.SignUp.CreatePerson(w.Context(), person.Draft{Email: x.name, PasswordHash: accounttest.PasswordHash})
			w.ok(err)
			w.site.Admit(w.fox, x.name)
			_, token := w.site.Token(x.name, "")
			before := w.seq()
			u := w.patch(200, "/Users/"+p.ID, x.change)
			if _, err := w.site.Accounts.SignIn.SignIn(w.Context(), fmt.Sprint(u.at("userName")), accounttest.Password, w.site.Client()); err == nil {
				w.Errorf("%s: the squatter's password works", x.name)
			}
			if _, err := credential.Check(w.Context(), w.site.DB, token); err == nil {
				w.Errorf("%s: the squatter's token works", x.name)
			}
			var verified bool
			w.ok(w.site.DB.QueryRow(w.Context(), `SELECT email_verified FROM person WHERE id = $1`, p.ID).Scan(&verified))
			var acts int
			w.ok(w.site.DB.QueryRow(w.Context(), `SELECT count(*) FROM audit WHERE seq > $1 AND act IN ('person.verified', 'token.deleted')`, before).Scan(&acts))
			if !verified || acts != 2 {
				w.Errorf("%s: verified %v, %d acts", x.name, verified, acts)
			}
		}
		// Outside of the company's domains it can vouch for nobody.
		p, err := w.site.Accounts.SignUp.CreatePerson(w.Context(), person.Draft{Email: "gast@home.example", PasswordHash: accounttest.PasswordHash})
		w.ok(err)
		w.site.Admit(w.fox, "gast@home.example")
		w.patch(200, "/Users/"+p.ID, `[{"op":"replace","path":"title","value":"Guest"}]`)
		if _, err := w.site.Accounts.SignIn.SignIn(w.Context(), "gast@home.example", accounttest.Password, w.site.Client()); err != nil {
			w.Errorf("a guest: %v", err)
		}
	})
}

func TestDomains(t *testing.T) {
	each(t, func(w *fixture) {
		_, err := w.site.Companies.Domains.AddDomain(w.Context(), principal.Operator(), w.fox, "unproven.example", "", "")
		w.ok(err)
		for _, name := range []string{"eve@hound.example", "eve@unproven.example", "eve@sub.fox.example", "eve@fox.example.org", "eve", "eve@", "Eve <eve@fox.example>", "a@b@fox.example"} {
			a := w.as(w.token, "POST", "/Users", `{"userName":"`+name+`"}`)
			a.want(400, "invalidValue")
			if !strings.Contains(a.text, "domain that the company has verified") {
				w.Errorf("%s: %s", name, a.text)
			}
		}
		w.as(w.token, "POST", "/Users", `{"displayName":"nobody"}`).want(400, "invalidValue")
		if n := len(w.roles(w.fox)); n != 0 {
			w.Errorf("%d members", n)
		}
	})
}

func TestDeactivationAndReturn(t *testing.T) {
	each(t, func(w *fixture) {
		boss := w.site.Person("boss@fox.example")
		w.site.Admit(w.fox, "boss@fox.example", company.CompanyPermissions...)
		id := w.user("anna@fox.example")
		w.site.Admit(w.fox, "anna@fox.example", company.ManageBilling)
		film, sound := w.site.Team(w.fox, "Film", "lead", "anna@fox.example"), w.site.Team(w.fox, "Sound", "quiet", "anna@fox.example")
		role := w.roles(w.fox)["anna@fox.example"]
		tokenID, token := w.site.Token("anna@fox.example", w.fox)
		before := w.seq()
		a := w.patch(200, "/Users/"+id, `[{"op":"Replace","path":"active","value":"False"}]`)
		a.has(map[string]any{"active": false, "userName": "anna@fox.example", "groups|0|display": "Film"})
		if got := w.acts(before); !slices.Equal(got, []string{"scim_user.changed", "token.deleted", "company.member_removed"}) {
			w.Errorf("acts = %v", got)
		}
		if _, err := credential.Check(w.Context(), w.site.DB, token); err == nil {
			w.Errorf("company token %s lives", tokenID)
		}
		if _, in := w.roles(w.fox)["anna@fox.example"]; in {
			w.Error("a member who is not active")
		}
		if _, err := company.TeamMembershipOf(w.Context(), w.site.DB, id, film); err == nil {
			w.Error("in a team and not active")
		}
		w.do(200, "GET", "/Users?filter=active+eq+false", "").has(map[string]any{"totalResults": 1, "Resources|0|id": id})
		before = w.seq()
		w.patch(200, "/Users/"+id, `[{"op":"replace","value":{"active":false}}]`)
		if got := w.acts(before); len(got) != 0 {
			w.Errorf("acts of nothing = %v", got)
		}
		// No way leads back but the identity provider's.
		_, link, err := w.site.Companies.Invitations.CreateInvitation(w.Context(), principal.Operator(), company.Draft{CompanyID: w.fox})
		w.ok(err)
		_, _, err = func() (any, any, error) {
			var inv company.Invitation
			var fresh bool
			err := w.site.DB.Write(w.Context(), func(tx *sqldb.Tx) (err error) {
				inv, fresh, err = company.AcceptSecret(w.Context(), tx, secret.FindStringSubmatch(link)[1], id, "anna@fox.example")
				return err
			})
			return inv, fresh, err
		}()
		if !fault.Is(err, fault.Forbidden) {
			w.Errorf("an invitation for somebody who is switched off: %v", err)
		}
		w.ok(w.site.Companies.Domains.RemoveDomain(w.Context(), principal.Operator(), w.fox, "fox.example"))
		_, err = w.site.Companies.Domains.AddDomain(w.Context(), principal.Operator(), w.fox, "fox.example", sound, "")
		w.ok(err)
		_, err = w.site.Companies.Domains.VerifyDomain(w.Context(), principal.Operator(), w.fox, "fox.example", true)
		w.ok(err)
		if _, in := w.roles(w.fox)["anna@fox.example"]; in {
			w.Error("the domain brought somebody back")
		}
		// A role that is gone by then is that of a member.
		w.ok(w.site.Companies.TeamRoles.DeleteTeamRole(w.Context(), principal.Operator(), sound, "quiet"))
		before = w.seq()
		w.patch(200, "/Users/"+id, `[{"op":"replace","value":{"active":true}}]`).has(map[string]any{"active": true, "groups|1|display": "Sound"})
		if got := w.acts(before); !slices.Equal(got, []string{"scim_user.changed", "company.member_set"}) {
			w.Errorf("acts = %v", got)
		}
		if got := w.roles(w.fox)["anna@fox.example"]; got != role {
			w.Errorf("role = %q, want %q", got, role)
		}
		for team, want := range map[string]string{film: "lead", sound: "member"} {
			if s, err := company.TeamMembershipOf(w.Context(), w.site.DB, id, team); err != nil || s.Role.Name != want {
				w.Errorf("role in a team = %q, %v, want %q", s.Role.Name, err, want)
			}
		}
		// The last who can manage members stays.
		for _, a := range []answer{
			w.as(w.token, "DELETE", "/Users/"+boss, ""),
			w.as(w.token, "PATCH", "/Users/"+boss, `{"Operations":[{"op":"replace","path":"active","value":false}]}`),
		} {
			a.want(409, "")
			if !strings.Contains(a.text, "manage its members") {
				w.Errorf("%s = %s", a.what, a.text)
			}
		}
		if w.roles(w.fox)["boss@fox.example"] != "admin" {
			w.Errorf("members = %v", w.roles(w.fox))
		}
		// Somebody can be made who is not active yet.
		later := w.do(201, "POST", "/Users", `{"userName":"late@fox.example","active":false}`)
		later.has(map[string]any{"active": false})
		w.patch(200, "/Users/"+later.id(), `[{"op":"replace","path":"active","value":true}]`).has(map[string]any{"active": true})
	})
}

func TestDeletedUsers(t *testing.T) {
	each(t, func(w *fixture) {
		id := w.user("anna@fox.example")
		w.reset("anna@fox.example", "a better horse")
		before := w.seq()
		w.do(204, "DELETE", "/Users/"+id, "")
		if got := w.acts(before); !slices.Equal(got, []string{"company.member_removed", "scim_user.deleted"}) {
			w.Errorf("acts = %v", got)
		}
		for _, a := range []answer{w.as(w.token, "GET", "/Users/"+id, ""), w.as(w.token, "DELETE", "/Users/"+id, ""), w.as(w.token, "PUT", "/Users/"+id, `{"userName":"anna@fox.example"}`)} {
			a.want(404, "")
		}
		if _, err := w.site.Accounts.SignIn.SignIn(w.Context(), "anna@fox.example", "a better horse", w.site.Client()); err != nil {
			w.Errorf("the account is gone: %v", err)
		}
		if again := w.user("anna@fox.example"); again != id {
			w.Errorf("id = %s, want %s", again, id)
		}
		w.patch(200, "/Users/"+id, `[{"op":"replace","path":"active","value":false}]`)
		w.do(204, "DELETE", "/Users/"+id, "")
		w.do(404, "GET", "/Users/"+id, "")
	})
}

func TestChangedAddresses(t *testing.T) {
	each(t, func(w *fixture) {
		id := w.user("anna@fox.example")
		w.reset("anna@fox.example", "a better horse")
		browser, err := w.site.Accounts.SignIn.SignIn(w.Context(), "anna@fox.example", "a better horse", w.site.Client())
		w.ok(err)
		w.user("bert@fox.example")
		w.ok(w.site.Accounts.SignIn.RequestPasswordReset(w.Context(), "anna@fox.example", w.site.Client()))
		link := secret.FindStringSubmatch(w.lastMail("anna@fox.example").Text)[1]
		put := func(name string) answer { return w.as(w.token, "PUT", "/Users/"+id, `{"userName":"`+name+`"}`) }
		put("bert@FOX.example").want(409, "uniqueness")
		put("anna@hound.example").want(400, "invalidValue")
		put("nonsense").want(400, "invalidValue")
		before := w.seq()
		put("Anna.Ax@fox.example").has(map[string]any{"userName": "Anna.Ax@fox.example", "id": id, "active": true})
		if got := w.acts(before); !slices.Equal(got, []string{"person.email_changed", "scim_user.changed"}) {
			w.Errorf("acts = %v", got)
		}
		if err := w.site.Accounts.SignIn.CheckResetLink(w.Context(), link); !fault.Is(err, fault.NotFound) {
			w.Errorf("the link to the old address works: %v", err)
		}
		if _, err := w.site.Accounts.SignIn.FindSession(w.Context(), browser.Cookie, "10.0.0.1"); err != nil {
			w.Errorf("the session ended: %v", err)
		}
		for _, to := range []string{"anna@fox.example", "Anna.Ax@fox.example"} {
			if m := w.lastMail(to); m.Subject != "Your address was changed" {
				w.Errorf("mail to %s = %+v", to, m)
			}
		}
		w.patch(200, "/Users/"+id, `[{"op":"replace","path":"userName","value":"anna.ax@fox.example"}]`).has(map[string]any{"userName": "anna.ax@fox.example"})
		// A member from another domain keeps the address that is theirs.
		other := w.site.Person("carl@home.example")
		w.site.Admit(w.fox, "carl@home.example")
		a := w.as(w.token, "PUT", "/Users/"+other, `{"userName":"carl@fox.example"}`)
		a.want(400, "invalidValue")
		w.do(200, "PUT", "/Users/"+other, `{"userName":"carl@home.example","title":"Guest"}`).has(map[string]any{"title": "Guest", "emails": nil})
		if err := w.site.DB.Read(w.Context(), func(tx *sqldb.Tx) error {
			p, err := person.ByID(w.Context(), tx, other)
			if err == nil && p.Email != "carl@home.example" {
				err = fmt.Errorf("address = %s", p.Email)
			}
			return err
		}); err != nil {
			w.Error(err)
		}
	})
}

func TestTheAuditLogHasNoAddresses(t *testing.T) {
	each(t, func(w *fixture) {
		before := w.seq()
		id := w.do(201, "POST", "/Users", `{"userName":"anna@fox.example","externalId":"anna.ax"}`).id()
		w.patch(200, "/Users/"+id, `[{"op":"replace","value":{"userName":"ann@fox.example","externalId":"ann.ax"}}]`)
		w.do(204, "DELETE", "/Users/"+id, "")
		if len(w.acts(before)) < 5 {
			w.Errorf("acts = %v", w.acts(before))
		}
		var told string
		w.ok(w.site.DB.QueryRow(w.Context(), `SELECT coalesce(min(details), '') FROM audit WHERE details LIKE '%anna%' OR details LIKE '%ann@%' OR details LIKE '%ann.ax%'`).Scan(&told))
		if told != "" {
			w.Errorf("the log says %s", told)
		}
	})
}

// An identity provider that comes while somebody deletes their account finds nobody, or
// makes somebody new. Only PostgreSQL has two at it at once.
func TestPeopleWhoAreBeingDeleted(t *testing.T) {
	each(t, func(w *fixture) {
		for name, x := range map[string]struct {
			method, body string
			status       int
		}{
			"change": {"PUT", `{"userName":"anna@fox.example","title":"x"}`, 404},
			"delete": {"DELETE", "", 404},
			"create": {"POST", `{"userName":"anna@fox.example"}`, 201},
		} {
			id, path := w.user("anna@fox.example"), "/Users"
			if x.method == "POST" {
				w.ok(w.site.DB.Write(w.Context(), func(tx *sqldb.Tx) error {
					_, err := company.RemoveMember(w.Context(), tx, w.fox, id)
					return errors.Join(err, company.DropProfile(w.Context(), tx, w.fox, id))
				}))
			} else {
				path += "/" + id
			}
			a := w.duringDeletion(id, func() answer { return w.as(w.token, x.method, path, x.body) })
			if a.status != x.status {
				w.Errorf("%s = %d %s, want %d", name, a.status, a.text, x.status)
			} else if a.status == 201 {
				w.do(204, "DELETE", "/Users/"+a.id(), "")
				w.ok(w.site.DB.Write(w.Context(), func(tx *sqldb.Tx) error { return person.Erase(w.Context(), tx, a.id()) }))
			}
		}
	})
}

// duringDeletion sends a request while somebody is being deleted.
func (w *fixture) duringDeletion(id string, send func() answer) answer {
	w.Helper()
	ctx, got := w.Context(), make(chan answer, 1)
	w.ok(w.site.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, id); err != nil {
			return err
		}
		in, err := company.CompanyMemberships(ctx, tx, id)
		for _, m := range in {
			_, lost := company.RemoveMember(ctx, tx, m.Company.ID, id)
			err = errors.Join(err, lost)
		}
		if err != nil {
			return err
		}
		if err := company.DeleteProfiles(ctx, tx, id); err != nil {
			return err
		}
		go func() { got <- send() }()
		if tx.Dialect.Name == "postgres" {
			watch.Until(w, "the identity provider to wait", func() (waits bool) {
				w.ok(w.site.DB.QueryRow(ctx, `SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`).Scan(&waits))
				return waits
			})
		}
		return person.Erase(ctx, tx, id)
	}))
	return <-got
}

func TestNoSeatForPeopleWhoAreBeingDeleted(t *testing.T) {
	each(t, func(w *fixture) {
		team, id := w.do(201, "POST", "/Groups", `{"displayName":"Film"}`).id(), w.user("anna@fox.example")
		w.patch(200, "/Users/"+id, `[{"op":"replace","path":"active","value":false}]`)
		a := w.duringDeletion(id, func() answer {
			return w.as(w.token, "PATCH", "/Groups/"+team, `{"Operations":[{"op":"add","path":"members","value":[{"value":"`+id+`"}]}]}`)
		})
		a.want(400, "invalidValue") // and the checks find no seat
	})
}
