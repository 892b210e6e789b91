package e2e

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// TestStudioConnection takes the service away from under the studio, and then
// the session: nothing that was typed is lost, and the studio comes back by
// itself.
func TestStudioConnection(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		giveTools(t, s)
		n := s.serve()
		b := openStudio(t, n)
		address, err := url.Parse(n.url)
		if err != nil {
			t.Fatal(err)
		}

		held := filepath.Join(t.TempDir(), "go on")
		script, err := json.Marshal([]any{map[string]any{"hold": held}, map[string]any{"output": map[string]any{"kind": "png", "width": 64, "height": 48}}})
		if err != nil {
			t.Fatal(err)
		}
		paint(b, "held kite", string(script))
		b.TypeInto("textbox", "Prompt", "kept words")
		n.kill()
		says(b, "No connection.")
		b.TypeInto("textbox", "Prompt", "kept words, and more")
		b.ClickOn("button", "Create…")
		says(b, "There is no connection to the service.")
		wantAccessible(t, b, "the studio without a connection")
		keepLooks(t, b, "no-connection")

		n = s.serve("--listen", address.Host)
		saysNot(b, "No connection.")
		holds(b, "prompt", "kept words, and more")
		write(t, filepath.Dir(held), filepath.Base(held), "")
		b.See("button", "held kite")

		endSessions(t, s)
		b.ClickOn("button", "Create…")
		b.Until(`location.pathname === "/signin"`)
		enter(b, "anna@example.com")
		b.See("navigation", "Main")
		b.Until(`location.pathname === "/welcome"`)
		holds(b, "prompt", "kept words, and more")
		b.ClickOn("button", "Create…")
		b.See("button", "kept words, and more")

		tab := b.OpenTab()
		tab.Goto(n.url + "/library")
		tab.See("navigation", "Main")
		tab.ClickOn("button", "Account:…")
		tab.ClickOn("menuitem", "Sign out")
		tab.Until(`location.pathname === "/signin"`)
		b.Until(`location.pathname === "/signin"`)
		b.Goto(n.url + "/library")
		if want := n.url + "/signin?next=%2Flibrary"; b.URL() != want {
			t.Errorf("after another tab has signed out, the library led to %s, want %s", b.URL(), want)
		}
		wantNoComplaints(t, b)
		wantNoComplaints(t, tab)
		n.stop()
		s.check()
	})
}

// endSessions ends the sessions of all browsers, as if they had expired.
func endSessions(t *testing.T, s *site) {
	t.Helper()
	database := s.database
	if database == "" {
		database = "sqlite://" + filepath.Join(s.data, "atelier.db")
	}
	err := dbtest.Open(t, database).Write(t.Context(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM web_session`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStudioRefusals has the service refuse what the studio asks for: each time
// the studio says why and what to do, and keeps what was typed.
func TestStudioRefusals(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		tools := giveTools(t, s)
		s.env = append(s.env, "ATELIER_LIMITS_CREATE_PER_MINUTE=2", "ATELIER_LIMITS_FILE_BYTES=64KB")
		n := s.serve()
		b := openStudio(t, n)
		n.token = s.do("admin", "token", "create", "--email", "anna@example.com", "--name", "test")["token"].(string)

		changeTool(t, n, b, tools)
		refuseFiles(t, n, b)
		spendElsewhere(t, s, n, b)
		fillRateWindow(t, b)
		wantNoComplaints(t, b)
		n.stop()
		s.check()
	})
}

// settlePrices waits until the form has asked for the price of what was typed: a
// question that comes after a change of the tool would show the change before
// anybody presses Create.
func settlePrices(b *browser.Browser) {
	b.Until(`(() => {
		const asked = performance.getEntriesByType("resource").filter(e => e.name.includes("/preview-cost")).length;
		const seen = window.seenPrices ??= {asked: -1, at: 0};
		if (seen.asked !== asked) {
			Object.assign(seen, {asked, at: performance.now()});
		}
		return performance.now() - seen.at > 3000;
	})()`)
}

// changeTool changes a tool while its form is open: the values that still fit are
// carried over.
func changeTool(t *testing.T, n *node, b *browser.Browser, tools string) {
	t.Helper()
	unfold(b)
	b.TypeInto("textbox", "Prompt", "carried words")
	b.TypeInto("textbox", "Seed", "12")
	says(b, "995 left after it")
	settlePrices(b)
	id := n.tools("", nil)["Painter"]
	before := n.json("/api/v2/tools/" + id)["tool_fields_hash"]
	changed := strings.Replace(painterTool, "  - {key: seed, type: SEED, label: Seed, advanced: true}\n", "  - {key: paper, type: TEXT, label: Paper}\n", 1)
	write(t, tools, "painter.yaml", changed)
	watch.Until(t, "the change of the tool", func() bool { return n.json("/api/v2/tools/" + id)["tool_fields_hash"] != before })

	b.ClickOn("button", "Create…")
	says(b, "Painter was changed by its operator.")
	b.See("textbox", "Paper")
	says(b, "These no longer fit: “Seed”.")
	holds(b, "prompt", "carried words")
	wantAccessible(t, b, "a form whose tool was changed")
	keepLooks(t, b, "changed-tool")
	b.ClickOn("button", "Create…")
	b.See("button", "carried words")
}

// refuseFiles chooses files that are too large for the service, much too large for
// it, and of a wrong type. The service says how large a file may be.
func refuseFiles(t *testing.T, n *node, b *browser.Browser) {
	t.Helper()
	dir := t.TempDir()
	var large bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.NoCompression}
	if err := encoder.Encode(&large, image.NewGray(image.Rect(0, 0, 400, 400))); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "large.png", large.String())
	write(t, dir, "huge.png", large.String())
	if err := os.Truncate(filepath.Join(dir, "huge.png"), 51<<20); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "words.png", "these are words")
	b.Goto(n.url + "/create/" + n.tools("", nil)["Echo"])
	b.TypeInto("textbox", "Prompt", "with a file")
	const field = `input[type=file][aria-label="Picture"]`

	b.SetFiles(field, filepath.Join(dir, "huge.png"))
	says(b, "huge.png was not stored: The file has 53.5 MB, and a file may have at most 65.5 KB.")
	b.SetFiles(field, filepath.Join(dir, "large.png"))
	says(b, "large.png was not stored: The file has 161 KB, and a file may have at most 65.5 KB.")
	b.SetFiles(field, filepath.Join(dir, "words.png"))
	says(b, "words.png was not stored:")
	keepView(t, b, "file-refused")
	wantAccessible(t, b, "a form with a refused file")
	holds(b, "prompt", "with a file")
}

// spendElsewhere spends the balance beside the studio, which then says so, and
// fills it up again.
func spendElsewhere(t *testing.T, s *site, n *node, b *browser.Browser) {
	t.Helper()
	id := n.tools("", nil)["Oil painting"]
	b.Goto(n.url + "/create/" + id)
	b.TypeInto("textbox", "Prompt", "a harbour")
	says(b, "395 left after it")
	order, err := json.Marshal(map[string]any{
		"tool_id":          id,
		"tool_fields_hash": n.json("/api/v2/tools/" + id)["tool_fields_hash"],
		"inputs":           map[string]any{"prompt": "elsewhere"},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.call("POST", "/api/v2/generate", string(order)).want(t, 202)

	b.Until(`(a => a !== null && /token/.test(a.innerText))(document.querySelector("[role=alert]"))`)
	b.ClickOn("button", "Create…")
	holds(b, "prompt", "a harbour")
	s.grant("--email", "anna@example.com", 1000)
	b.Reload()
	says(b, "795 left after it")
	holds(b, "prompt", "a harbour")
}

// fillRateWindow starts more runs than a minute may have: the studio counts down
// to the time when the next one may start.
func fillRateWindow(t *testing.T, b *browser.Browser) {
	t.Helper()
	b.ClickOn("button", "Create…")
	b.See("button", "Try again in…")
	wantAccessible(t, b, "a full rate window")
	keepView(t, b, "rate-window")
	const seconds = `Number(/Try again in (\d+) s/.exec(document.body.innerText)?.[1] ?? 0)`
	first := b.Eval(seconds)
	b.Until(seconds + " < " + first)
	holds(b, "prompt", "a harbour")
}
