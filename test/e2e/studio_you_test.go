package e2e

import (
	"archive/zip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// seeText waits until the page shows a text.
func seeText(b *browser.Browser, text string) {
	quoted, _ := json.Marshal(text)
	b.Until(`document.body.innerText.includes(` + string(quoted) + `)`)
}

// seeRow waits until a table of the page has a row with all of the texts.
func seeRow(b *browser.Browser, texts ...string) {
	quoted, _ := json.Marshal(texts)
	b.Until(`[...document.querySelectorAll("tbody tr")].some(row => ` + string(quoted) + `.every(text => row.textContent.includes(text)))`)
}

// missRow waits until no table of the page has a row with the text.
func missRow(b *browser.Browser, text string) {
	quoted, _ := json.Marshal(text)
	b.Until(`![...document.querySelectorAll("tbody tr")].some(row => row.textContent.includes(` + string(quoted) + `))`)
}

// openPart opens a part of a page by its link, and waits for its heading.
func openPart(b *browser.Browser, link, heading string) {
	b.ClickOn("link", link)
	b.See("heading", heading)
}

// lookAt checks a page for accessibility and looks at it in every size.
func lookAt(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	b.Until(`document.querySelector("[aria-busy=true]") === null`)
	wantAccessible(t, b, name)
	keepLooks(t, b, name)
}

// sessionToken asks for a token of the person who is signed in to the window, as
// the studio does. Access tokens may not manage people.
func sessionToken(b *browser.Browser) string {
	return b.Eval(`fetch("/api/v2/auth/session/token", {method: "POST", headers: {"X-Atelier-Studio": "1"}}).then(r => r.json()).then(v => v.id_token)`)
}

// awaitFile waits until the browser has saved a file whose name matches a
// pattern, and returns its path. While it saves, the file is empty, and another
// one beside it has the bytes.
func awaitFile(t *testing.T, folder, pattern string) (path string) {
	t.Helper()
	watch.Until(t, "the saved file "+pattern, func() bool {
		found, _ := filepath.Glob(filepath.Join(folder, pattern))
		unfinished, _ := filepath.Glob(filepath.Join(folder, "*.crdownload"))
		if len(found) != 1 || len(unfinished) > 0 {
			return false
		}
		path = found[0]
		info, err := os.Stat(path)
		return err == nil && info.Size() > 0
	})
	return path
}

// TestStudioYou goes through what belongs to a person: balance, devices, tokens,
// webhooks, invitations, data, looks and keys.
func TestStudioYou(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			hook, roots, came := receiver(t)
			s := newStage(t, engine, "ATELIER_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8", "SSL_CERT_FILE="+roots)
			token := s.token("anna@example.com")
			s.grant("--email", "anna@example.com", 100)
			company := s.do("admin", "company", "create", "--name", "Fox", "--plan", "ENTERPRISE")["id"].(string)
			s.token("boss@example.com")
			s.do("admin", "company", "add", "--company", company, "--email", "boss@example.com", "--role", "admin")
			n := s.serve()
			n.token = token
			b := signIn(t, n, "anna@example.com", "/you")

			// A run changes the balance while the page is open.
			b.See("link", "100 tokens to spend. Open balance and history.")
			o := n.order(1, picture)
			o.WebhookURL = hook
			run, err := n.create(token, "", o, nil)
			if err != nil {
				t.Fatal(err)
			}
			n.follow(run.want(t, 202))
			b.See("link", "95 tokens to spend. Open balance and history.")
			seeRow(b, "Run of Scripted", "-5")
			seeRow(b, "Grant of the operator", "+100")
			lookAt(t, b, "you-balance")
			b.ClickOn("button", "As a table")
			b.ClickOn("button", "Received")
			b.Until(`document.querySelector("figure tbody tr:last-child").textContent.endsWith("100")`)

			// A browser that is signed out is refused at its next action.
			other := signIn(t, n, "anna@example.com", "/boards")
			openPart(b, "Devices", "Devices and browsers")
			lookAt(t, b, "you-devices")
			b.ClickOn("button", "Sign out Chrome…")
			b.ClickOn("button", "Sign out")
			seeText(b, "It is signed out.")
			b.Until(`document.querySelectorAll("tbody tr").length === 1`)
			seeSignedOut(other)

			// Tokens are made on a page without scripts, and deleted here.
			openPart(b, "Access tokens", "Access tokens")
			seeRow(b, "test")
			lookAt(t, b, "you-tokens")
			b.ClickOn("link", "Make or regenerate a token")
			b.Until(`location.pathname === "/tokens"`)
			b.Fill("[name=name]", "nightly")
			b.Click("form[action='/tokens'] button.main")
			made := b.Eval(`document.querySelector("#secret").textContent`)
			n.get("/api/v2/me", bearer(made)...).want(t, 200)
			b.ClickOn("link", "Studio")
			b.ClickOn("link", "95 tokens to spend…")
			b.ClickOn("link", "Access tokens")
			seeRow(b, "nightly", "just now")
			b.ClickOn("button", "Delete the token “nightly”")
			b.ClickOn("button", "Delete")
			missRow(b, "nightly")
			if a := n.get("/api/v2/me", bearer(made)...); a.StatusCode != 401 {
				t.Errorf("a deleted token is answered with %d", a.StatusCode)
			}

			openPart(b, "Webhooks", "Webhook secret")
			secret := n.json("/api/v2/webhook-secret")["secret"].(string)
			if strings.Contains(b.HTML(), secret) {
				t.Error("the page has the secret before anybody asked for it")
			}
			b.ClickOn("button", "Show the secret")
			seeText(b, secret)
			b.ClickOn("button", "Make a new secret")
			b.ClickOn("button", "Make a new secret")
			seeText(b, "There is a new secret.")
			seeText(b, "The secret before it also signs until")
			if rotated := n.json("/api/v2/webhook-secret")["secret"].(string); rotated == secret {
				t.Error("the secret is the same as before")
			} else {
				seeText(b, rotated)
			}
			b.ClickOn("button", "Hide the secret")
			awaitDelivery(t, came)
			b.Reload()
			seeRow(b, "127.0.0.1", "delivered", "204")
			lookAt(t, b, "you-webhooks")
			b.ClickOn("button", "Send again to 127.0.0.1…")
			awaitDelivery(t, came)
			b.Choose("Status", "delivered")
			b.ClickOn("button", "Attempts to deliver…")
			b.Until(`document.querySelectorAll("dialog[open] tbody tr").length === 2`)
			b.Press("Escape")
			b.Choose("Status", "given up")
			b.See("heading", "No delivery has this status")

			openPart(b, "Invitations", "No invitation waits for you")
			boss := sessionToken(signIn(t, n, "boss@example.com", "/you"))
			n.call("POST", "/api/v2/companies/"+company+"/invitations", `{"email":"anna@example.com","company_role":"member"}`, bearer(boss)...).want(t, 201)
			b.Reload()
			lookAt(t, b, "you-invitations")
			b.ClickOn("button", "Accept the invitation of Fox")
			seeText(b, "You are a member of Fox now.")
			b.See("link", "People")

			// Without letter keys, letters do nothing and combinations still work.
			openPart(b, "Look and keys", "Look")
			b.ClickOn("button", "Dark")
			b.Until(`document.documentElement.dataset.theme === "dark"`)
			b.ClickOn("button", "As the system")
			lookAt(t, b, "you-look")
			b.ClickOn("switch", "Single letters are keys")
			b.Eval(`document.activeElement.blur()`)
			b.Press("?")
			b.Press("g")
			b.Press("b")
			b.Press("Ctrl+k")
			b.See("combobox", "Find a tool, a page or an action")
			b.Press("Escape")
			if path := b.Eval("location.pathname"); path != "/you/look" || b.Count("heading", "Keys") != 1 {
				t.Errorf("letters that are no keys led to %s, with the headings %q", path, b.Names("heading"))
			}
			b.ClickOn("switch", "Single letters are keys")
			b.Eval(`document.activeElement.blur()`)
			b.Press("g")
			b.Press("y")
			b.Until(`location.pathname === "/you"`)

			folder := t.TempDir()
			b.SaveTo(folder)
			openPart(b, "Your data", "Download your data")
			seeText(b, "anna@example.com")
			lookAt(t, b, "you-data")
			b.ClickOn("button", "Download")
			archive, err := zip.OpenReader(awaitFile(t, folder, "*"))
			if err != nil {
				t.Fatal(err)
			}
			defer archive.Close()
			if len(archive.File) < 5 {
				t.Errorf("the archive has %d files", len(archive.File))
			}

			openPart(b, "About", "About Atelier")
			seeText(b, "Apache License 2.0")
			lookAt(t, b, "you-about")

			// Signing out everywhere ends all browsers, and no access token.
			other = signIn(t, n, "anna@example.com", "/boards")
			b.ClickOn("link", "Devices")
			b.ClickOn("button", "Sign out everywhere")
			b.ClickOn("button", "Sign out everywhere")
			b.Until(`location.pathname === "/signin"`)
			seeSignedOut(other)
			n.json("/api/v2/me")

			wantNoComplaints(t, b)
			wantNoComplaints(t, other)
			s.check()
		})
	}
}

// seeSignedOut does something in a page whose session has ended, unless the page
// has noticed that by itself, and waits until it asks for a sign-in.
func seeSignedOut(b *browser.Browser) {
	b.Eval(`location.pathname === "/signin" ? "" : String(document.querySelector("nav a[href^='/library']").click())`)
	b.Until(`location.pathname === "/signin"`)
}

// awaitDelivery waits for an event that the service sends to a receiver.
func awaitDelivery(t *testing.T, came <-chan delivery) {
	t.Helper()
	select {
	case <-came:
	case <-time.After(90 * time.Second):
		t.Fatal("no event came")
	}
}
