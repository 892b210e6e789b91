package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// The tests in this file use boards in a browser. What they compare is what
// people see: the nodes that the page draws, against those that the API lists.

// readCanvas is a script that lists the nodes that the page draws, one in a line:
// the kind, the text, the place, the size where it is fixed, and the order.
const readCanvas = `[...document.querySelectorAll(".react-flow__node")].filter(e => getComputedStyle(e).visibility === "visible").map(e => {
	const kind = [...e.classList].find(c => /^react-flow__node-/.test(c)).slice(17);
	const [x, y] = e.style.transform.match(/-?[\d.]+/g).map(Number);
	const words = e.querySelector("[class*=words]:not([class*=unwritten])");
	const sized = kind === "text" ? "" : " " + Math.round(parseFloat(e.style.width)) + "x" + Math.round(parseFloat(e.style.height));
	const z = Number(e.style.zIndex) + (kind === "section" ? 1e9 : 0);
	return kind + " " + JSON.stringify(words ? words.textContent : "") + " at " + x + "," + y + sized + " z" + z;
}).sort()`

// canvasOf returns the nodes that a window shows.
func canvasOf(t *testing.T, b *browser.Browser) []string {
	t.Helper()
	var nodes []string
	if err := json.Unmarshal([]byte(b.Eval(`JSON.stringify(`+readCanvas+`)`)), &nodes); err != nil {
		t.Fatal(err)
	}
	return nodes
}

// boardAt is a board as its API shows it.
type boardAt struct {
	node *node
	path string // with team_id
}

// storedNode is a node of the API.
type storedNode struct {
	ID     string
	Kind   string
	Text   string
	X      float64
	Y      float64
	Width  float64
	Height float64
	Z      float64
	Ref    string
	Item   *struct{ Width, Height float64 }
}

// nodes reads all nodes of the board and its revision.
func (at boardAt) nodes() (all []storedNode, revision float64) {
	t := at.node.t
	t.Helper()
	for cursor := ""; ; {
		path := at.path
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		answer := at.node.get(path)
		answer.want(t, 200)
		var page struct {
			Revision   float64
			Nodes      []storedNode
			NextCursor string `json:"next_cursor"`
		}
		if err := json.Unmarshal(answer.body, &page); err != nil {
			t.Fatal(err)
		}
		if cursor == "" {
			revision = page.Revision
		}
		all = append(all, page.Nodes...)
		cursor = page.NextCursor
		if cursor == "" {
			return all, revision
		}
	}
}

// drawn returns the nodes of the board as a page has to show them.
func (at boardAt) drawn() []string {
	at.node.t.Helper()
	lines := []string{}
	nodes, _ := at.nodes()
	for _, one := range nodes {
		kind := map[string]string{"TEXT": "text", "GENERATION": "run"}[one.Kind]
		if kind == "" {
			kind = "media"
		}
		words, heading := strings.CutPrefix(one.Text, "# ")
		if heading && one.Width > 0 && one.Height > 0 {
			kind = "section"
		}
		size := ""
		if kind != "text" {
			size = " " + sizeOfNode(one)
		}
		quoted, err := json.Marshal(words)
		if err != nil {
			at.node.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s at %v,%v%s z%v", kind, quoted, one.X, one.Y, size, one.Z))
	}
	slices.Sort(lines)
	return lines
}

// sizeOfNode returns the size at which a node is shown: its own, or else that of
// its picture with a longest side of 320.
func sizeOfNode(one storedNode) string {
	width := one.Width
	height := one.Height
	if width == 0 && one.Item != nil {
		scale := 320 / max(one.Item.Width, one.Item.Height)
		width = one.Item.Width * scale
		height = one.Item.Height * scale
	}
	return fmt.Sprintf("%vx%v", math.Round(width), math.Round(height))
}

// settle waits until every window says that all is saved and shows the nodes of
// the API, and returns them.
func (at boardAt) settle(windows ...*browser.Browser) []string {
	t := at.node.t
	t.Helper()
	var shown, stored []string
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		same := true
		stored = at.drawn()
		for _, b := range windows {
			shown = canvasOf(t, b)
			if b.Eval(isSaved) != "true" || !slices.Equal(shown, stored) {
				same = false
				break
			}
		}
		if same {
			return stored
		}
		if time.Now().After(deadline) {
			t.Fatalf("a window shows\n%s\nand the API has\n%s\nThe window's status: %s", strings.Join(shown, "\n"), strings.Join(stored, "\n"),
				windows[0].Eval(`JSON.stringify([...document.querySelectorAll("[role=status]")].map(e => e.innerText))`))
		}
	}
}

// isSaved is a script that reports whether the board says that all is stored.
const isSaved = `[...document.querySelectorAll("[role=status]")].some(e => e.innerText === "Saved")`

// newBoard makes a board with the button of the list, and returns it.
func newBoard(t *testing.T, b *browser.Browser, n *node) boardAt {
	t.Helper()
	b.ClickOn("button", "New board")
	b.Until(`/^\/boards\/./.test(location.pathname)`)
	b.See("toolbar", "Tools")
	return boardAt{node: n, path: "/api/v2" + b.Eval(`location.pathname`) + "?limit=500"}
}

// rect is a rectangle of the window.
type rect struct{ X, Y, W, H float64 }

func (r rect) middle() (x, y float64) { return r.X + r.W/2, r.Y + r.H/2 }

// rectOf returns where the element lies that a script finds, once it is there and
// stands still.
func rectOf(t *testing.T, b *browser.Browser, script string) rect {
	t.Helper()
	b.Until(`!!(` + script + `)`)
	const attempts = 100
	place := `(r => JSON.stringify({X: r.x, Y: r.y, W: r.width, H: r.height}))((` + script + `).getBoundingClientRect())`
	said := b.Eval(place)
	for range attempts {
		time.Sleep(20 * time.Millisecond)
		before := said
		said = b.Eval(place)
		if said == before {
			break
		}
	}
	var r rect
	if err := json.Unmarshal([]byte(said), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// nodeWith is a script that finds the drawn node with a text.
func nodeWith(words string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".react-flow__node")].find(e => e.innerText.includes(%q))`, words)
}

// clickNode clicks on a node near its corner, with keys held down.
func clickNode(t *testing.T, b *browser.Browser, script string, keys ...string) {
	t.Helper()
	r := rectOf(t, b, script)
	b.ClickAt(r.X+12, r.Y+10, keys...)
}

// selectNode clicks on a node until it is selected: a page that is still being
// drawn may miss the first click.
func selectNode(t *testing.T, b *browser.Browser, script string) {
	t.Helper()
	selected := `(` + script + `)?.classList.contains("selected") === true`
	for range 10 {
		clickNode(t, b, script)
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if b.Eval(selected) == "true" {
				return
			}
		}
	}
	t.Fatalf("a click does not select %s", script)
}

// dragNode drags a node by a distance.
func dragNode(t *testing.T, b *browser.Browser, script string, dx, dy float64) {
	t.Helper()
	r := rectOf(t, b, script)
	b.Drag(r.X+12, r.Y+10, r.X+12+dx, r.Y+10+dy)
}

// pictureNode is a script that finds the nth picture on the board.
func pictureNode(at int) string {
	return fmt.Sprintf(`document.querySelectorAll(".react-flow__node-media")[%d]`, at)
}

// reversible does something to the board, which is one step or more; it must
// change the board, undoing must bring the board back as it was, and redoing must
// make the change again, on the page and in the API.
func (at boardAt) reversible(b *browser.Browser, what string, steps int, act func()) {
	t := at.node.t
	t.Helper()
	before := at.settle(b)
	act()
	after := at.changed(b, before, what)
	for range steps {
		b.Press("Ctrl+z")
	}
	at.becomes(b, before, "undo of "+what)
	for range steps {
		b.Press("Ctrl+Shift+z")
	}
	at.becomes(b, after, "redo of "+what)
}

// changed waits until the page and the API show the same board, which is another
// one than before.
func (at boardAt) changed(b *browser.Browser, before []string, what string) []string {
	t := at.node.t
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if after := at.settle(b); !slices.Equal(after, before) {
			return after
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s changed nothing: %q", what, before)
		}
	}
}

// becomes waits until the page and the API show these nodes.
func (at boardAt) becomes(b *browser.Browser, want []string, what string) {
	t := at.node.t
	t.Helper()
	var got []string
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if got = at.settle(b); slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the %s the board has\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// testPicture writes a picture file with stripes and returns its path.
func testPicture(t *testing.T, name string, width, height int) string {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			picture.Set(x, y, color.RGBA{R: uint8(x), G: uint8(y), B: uint8(x / 8 * 40), A: 255})
		}
	}
	var data bytes.Buffer
	if err := png.Encode(&data, picture); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// dropOn drops something on the board as a drag does; fill puts it on the drag.
func dropOn(b *browser.Browser, x, y float64, fill string) {
	b.Eval(fmt.Sprintf(`(() => {
		const dataTransfer = new DataTransfer();
		%s;
		for (const kind of ["dragenter", "dragover", "drop"])
			document.elementFromPoint(%v, %v).dispatchEvent(new DragEvent(kind, {dataTransfer, clientX: %v, clientY: %v, bubbles: true, cancelable: true}));
	})()`, fill, x, y, x, y))
}

// copyAndPaste copies the selection and pastes it, with a clipboard of its own: the
// system's is shared by all windows.
const copyAndPaste = `(() => {
	const clipboardData = new DataTransfer();
	document.body.dispatchEvent(new ClipboardEvent("copy", {clipboardData, bubbles: true, cancelable: true}));
	document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true}));
})()`

// tokenOf makes a token of a person for calls of the API beside the browser.
func (s *site) tokenOf(email string) string {
	s.t.Helper()
	return s.do("admin", "token", "create", "--email", email, "--name", "test")["token"].(string)
}

// TestStudioBoard does with the mouse everything that one person does on a board:
// texts, pictures, runs, arranging, undo, export, deletion and restoring.
func TestStudioBoard(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		n := s.serve()
		b := openStudio(t, n)
		n.token = s.tokenOf("anna@example.com")
		b.Goto(n.url + "/boards")
		b.See("heading", "No boards yet")
		wantAccessible(t, b, "the list without boards")
		keepLooks(t, b, "boards-empty")

		at := newBoard(t, b, n)
		b.ClickOn("button", "Untitled board")
		b.TypeInto("textbox", "Name", "Lighthouse")
		b.ClickOn("button", "Save")
		b.See("button", "Lighthouse")
		b.See("heading", "An empty table")
		wantAccessible(t, b, "an empty board")
		keepView(t, b, "board-empty")

		at.writeTexts(b)
		at.makePicture(b, n)
		at.putPictures(t, b, n)
		at.arrange(t, b)
		at.look(t, b)
		wantAccessible(t, b, "a board")
		keepLooks(t, b, "board")
		at.export(t, b)
		at.deleteAndRestore(b)

		wantNoComplaints(t, b)
		s.check()
	})
}

// writeTexts adds a note and a heading.
func (at boardAt) writeTexts(b *browser.Browser) {
	at.node.t.Helper()
	at.reversible(b, "a text", 2, func() {
		b.ClickOn("button", "Text, T")
		b.TypeInto("textbox", "Edit the text", "Waves at dusk")
		b.Press("Escape")
	})
	b.Press("Escape")
	at.reversible(b, "a heading", 2, func() {
		b.ClickAt(700, 200)
		b.Press("t")
		b.TypeInto("textbox", "Edit the text", "# Coast")
		b.Press("Escape")
	})
	b.See("option", "Text: Coast, at …")
	keepView(at.node.t, b, "board-texts")
}

// makePicture starts a run on the board, which appears there and becomes a
// picture by itself.
func (at boardAt) makePicture(b *browser.Browser, n *node) {
	t := at.node.t
	t.Helper()
	b.ClickAt(420, 420)
	b.Press("Escape")
	b.Press("c")
	b.See("heading", "Create on the board")
	b.TypeInto("textbox", "Prompt", "a lighthouse by the sea")
	keepView(t, b, "board-composer")
	wantAccessible(t, b, "the composer of a board")
	b.Until(`[...document.querySelectorAll("button")].some(e => e.innerText.startsWith("Create\n") && !e.disabled)`)
	// The run may end before the list of nodes, which follows changes slowly, has named it.
	b.Eval(`new MutationObserver(() => { window.sawRun ||= document.querySelector(".react-flow__node-run") !== null }).observe(document.body, {childList: true, subtree: true})`)
	b.ClickOn("button", "Create · …")
	b.Until(`window.sawRun === true`)
	keepView(t, b, "board-run")
	b.Until(`document.querySelector(".react-flow__node-media img")?.complete === true`)
	b.Until(`document.querySelector(".react-flow__node-run") === null`)
	at.settle(b)
	b.See("option", "Picture, at …")
}

// putPictures puts pictures on the board in every way there is: from the library
// with the button and by dragging, and files with the button and by dragging.
func (at boardAt) putPictures(t *testing.T, b *browser.Browser, n *node) {
	t.Helper()
	at.reversible(b, "a picture from the library", 1, func() {
		b.ClickOn("button", "From the library, L")
		b.ClickOn("button", "a lighthouse by the sea")
		b.ClickOn("button", "Add 1")
	})
	results := n.json("/api/v2/library")["data"].([]any)
	dragged, err := json.Marshal([]any{map[string]any{"kind": "LIBRARY_REF", "id": results[0].(map[string]any)["id"], "type": "IMG", "thumb": nil}})
	if err != nil {
		t.Fatal(err)
	}
	at.reversible(b, "a picture that was dragged", 1, func() {
		dropOn(b, 980, 560, fmt.Sprintf(`dataTransfer.setData("application/x-atelier-ref", %q)`, dragged))
	})
	at.reversible(b, "an uploaded file", 1, func() {
		b.SetFiles(`input[type=file]`, testPicture(t, "stripes.png", 240, 160))
		b.Until(`document.querySelectorAll(".react-flow__node-media").length === 4`)
	})
	at.reversible(b, "a file that was dragged", 1, func() {
		dropOn(b, 980, 240, `dataTransfer.items.add(new File(["<svg"], "broken.txt", {type: "text/plain"}))`)
		b.Until(`document.body.innerText.includes("broken.txt was not uploaded")`)
		b.Eval(`window.dropped = new Promise(done => {
			const canvas = new OffscreenCanvas(200, 200);
			const context = canvas.getContext("2d");
			context.fillStyle = "teal";
			context.fillRect(20, 20, 120, 120);
			canvas.convertToBlob({type: "image/png"}).then(blob => { window.droppedFile = new File([blob], "square.png", {type: "image/png"}); done(); });
		}).then(() => 0)`)
		dropOn(b, 980, 240, `dataTransfer.items.add(window.droppedFile)`)
		b.Until(`document.querySelectorAll(".react-flow__node-media").length === 5`)
	})
}

// arrange moves, resizes, aligns, spreads, orders, groups, copies and deletes.
func (at boardAt) arrange(t *testing.T, b *browser.Browser) {
	t.Helper()
	showAll(b)
	at.reversible(b, "a drag", 1, func() { dragNode(t, b, pictureNode(0), 33, 47) })
	at.reversible(b, "a new size", 1, func() {
		clickNode(t, b, pictureNode(0))
		grip := rectOf(t, b, `document.querySelector(".react-flow__resize-control.bottom.right")`)
		x, y := grip.middle()
		b.Drag(x, y, x+40, y+40)
	})
	b.Press("Escape")

	at.reversible(b, "aligned tops", 1, func() {
		b.Press("Ctrl+a")
		b.ClickOn("button", "Align")
		b.ClickOn("menuitem", "Align top…")
	})
	at.reversible(b, "an even spread", 1, func() {
		b.Press("Ctrl+a")
		b.ClickOn("button", "Spread evenly")
		b.ClickOn("menuitem", "Spread evenly across")
	})
	showAll(b)
	at.reversible(b, "another order", 1, func() {
		clickNode(t, b, pictureNode(4))
		b.ClickOn("button", "Order")
		b.ClickOn("menuitem", "To the back…")
	})
	at.reversible(b, "a duplicate", 1, func() {
		b.ClickOn("button", "Order")
		b.ClickOn("menuitem", "Duplicate…")
	})
	at.reversible(b, "a copy", 1, func() { b.Eval(copyAndPaste) })
	at.reversible(b, "a deletion", 1, func() { b.ClickOn("button", "Take off the board") })

	at.reversible(b, "a section", 2, func() {
		b.Press("Ctrl+a")
		b.ClickOn("button", "Put a section around")
		b.TypeInto("textbox", "Edit the text", "# Harbour")
		b.Press("Escape")
	})
	showAll(b)
	before := at.settle(b)
	at.reversible(b, "a section that is moved", 1, func() { dragNode(t, b, `document.querySelector("[data-section-head]")`, 20, 70) })
	if moved := differing(before, at.settle(b)); moved != len(before) {
		t.Errorf("%d nodes moved with the section, want it and the %d in it", moved, len(before)-1)
	}
}

// showAll shows all nodes, none of them selected, and waits until the view rests.
func showAll(b *browser.Browser) {
	b.Press("Escape")
	b.Press("1")
	b.Eval(`new Promise(done => {
		let last = "";
		let same = 0;
		const look = () => {
			const now = document.querySelector(".react-flow__viewport").style.transform;
			same = now === last ? same + 1 : 0;
			last = now;
			if (same > 20) return done(0);
			requestAnimationFrame(look);
		};
		look();
	})`)
}

// differing counts the lines of after that are not in before.
func differing(before, after []string) int {
	count := 0
	for _, line := range after {
		if !slices.Contains(before, line) {
			count++
		}
	}
	return count
}

// look changes the view: by the overview, the buttons and the wheel.
func (at boardAt) look(t *testing.T, b *browser.Browser) {
	t.Helper()
	const view = `document.querySelector(".react-flow__viewport").style.transform`
	changes := func(what string, act func()) {
		t.Helper()
		before := b.Eval(view)
		act()
		watch.Until(t, what, func() bool { return b.Eval(view) != before })
	}

	overview := rectOf(t, b, `document.querySelector("[class*=minimap]")`)
	changes("a click in the overview", func() { b.ClickAt(overview.X+20, overview.Y+20) })
	changes("zooming in", func() { b.ClickOn("button", "Zoom in") })
	changes("zooming out", func() { b.ClickOn("button", "Zoom out") })
	changes("the wheel", func() { b.Wheel(640, 430, 40, 60) })
	changes("the wheel with Ctrl", func() { b.Wheel(640, 430, 0, -120, "Ctrl") })
	b.ClickOn("button", "Zoom is …")
	b.See("button", "Zoom is 100 %. Set it to 100 %.")
	b.ClickOn("button", "Show all, 1")
	b.Until(`[...document.querySelectorAll(".react-flow__node")].every(e => { const r = e.getBoundingClientRect(); return r.x >= 0 && r.y >= 0 && r.right <= innerWidth && r.bottom <= innerHeight; })`)
	const near = `((now, kept) => kept.length === 3 && now.every((one, at) => Math.abs(one - kept[at]) <= [1, 1, 0.001][at]))(` + view + `.match(/-?[\d.]+/g).map(Number), (new URLSearchParams(location.search).get("view") ?? "").split(",").map(Number))`
	b.Until(near)
	b.Reload()
	b.See("toolbar", "Tools")
	b.Until(near)
	at.settle(b)
}

// export saves the board as a picture, and looks at the picture.
func (at boardAt) export(t *testing.T, b *browser.Browser) {
	t.Helper()
	folder := t.TempDir()
	b.SaveTo(folder)
	var want struct{ W, H int }
	said := b.Eval(`(() => {
		const boxes = [...document.querySelectorAll(".react-flow__node")].map(e => { const [x, y] = e.style.transform.match(/-?[\d.]+/g).map(Number); return {x, y, r: x + e.offsetWidth, b: y + e.offsetHeight}; });
		const span = (low, high) => Math.max(...boxes.map(b => b[high])) - Math.min(...boxes.map(b => b[low])) + 96;
		const w = span("x", "r");
		const h = span("y", "b");
		const scale = Math.min(2, 8192 / w, 8192 / h, Math.sqrt(4e7 / (w * h)));
		return JSON.stringify({W: Math.ceil(w * scale), H: Math.ceil(h * scale)});
	})()`)
	if err := json.Unmarshal([]byte(said), &want); err != nil {
		t.Fatal(err)
	}

	b.ClickOn("button", "More")
	b.ClickOn("menuitem", "Export as a picture")
	path := filepath.Join(folder, "Lighthouse.png")
	var picture image.Image
	watch.Until(t, "the exported picture", func() bool {
		data, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		picture, err = png.Decode(bytes.NewReader(data))
		return err == nil
	})
	if folder := os.Getenv(screensFolder); folder != "" {
		data, _ := os.ReadFile(path)
		os.WriteFile(filepath.Join(folder, "board-export.png"), data, 0o644)
	}
	size := picture.Bounds().Size()
	if abs(size.X-want.W) > 2 || abs(size.Y-want.H) > 2 {
		t.Errorf("the picture is %v, want %v", size, want)
	}
	colors := map[color.Color]bool{}
	for y := 0; y < size.Y; y += 3 {
		for x := 0; x < size.X; x += 3 {
			colors[picture.At(x, y)] = true
		}
	}
	if len(colors) < 200 {
		t.Errorf("the picture has %d colours", len(colors))
	}
}

func abs(x int) int { return max(x, -x) }

// deleteAndRestore deletes the board in the list, undoes it, and restores it from
// the deleted ones.
func (at boardAt) deleteAndRestore(b *browser.Browser) {
	t := at.node.t
	t.Helper()
	before := at.settle(b)
	b.ClickOn("link", "All boards")
	b.See("link", "Open the board Lighthouse")
	keepLooks(t, b, "boards")
	wantAccessible(t, b, "the list of boards")
	b.ClickOn("button", "Actions for Lighthouse")
	b.ClickOn("menuitem", "Delete")
	b.See("heading", "No boards yet")
	b.ClickOn("button", "Deleted boards")
	b.See("button", "Restore")
	keepView(t, b, "boards-deleted")
	wantAccessible(t, b, "the list of deleted boards")
	b.ClickOn("button", "Restore")
	b.See("heading", "No deleted boards")
	b.ClickOn("button", "All boards")
	b.ClickOn("link", "Open the board Lighthouse")
	b.See("toolbar", "Tools")
	at.becomes(b, before, "restoring of the board")
}

// TestStudioBoardKeys does on a board, without a mouse, what people do there.
func TestStudioBoardKeys(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		n := s.serve()
		b := openStudio(t, n)
		n.token = s.tokenOf("anna@example.com")
		b.KeysOnly()
		b.Strike("g", "b")
		b.Until(`location.pathname === "/boards"`)
		b.See("heading", "No boards yet")
		b.TabTo("button", "New board")
		b.Strike("Enter")
		b.Until(`/^\/boards\/./.test(location.pathname)`)
		b.See("toolbar", "Tools")
		at := boardAt{node: n, path: "/api/v2" + b.Eval(`location.pathname`) + "?limit=500"}

		writeText := func(words string) {
			b.Strike("t")
			b.See("textbox", "Edit the text")
			b.Type(words)
			b.Strike("Escape")
		}
		at.reversible(b, "a text", 2, func() { writeText("Low") })
		at.reversible(b, "a long step", 1, func() { b.Strike("Shift+ArrowDown") })
		at.reversible(b, "a step", 1, func() { b.Strike("ArrowLeft") })
		at.reversible(b, "a heading", 2, func() { writeText("# High") })
		at.reversible(b, "a step up", 1, func() { b.Strike("Shift+ArrowUp") })
		for range 8 {
			b.Strike("Shift+ArrowUp")
		}
		at.settle(b)

		// Tab goes from thing to thing in reading order; Enter edits.
		b.Strike("Escape")
		b.TabTo("listbox", "Things on the board")
		selected := func(words string) {
			t.Helper()
			b.Until(fmt.Sprintf(`document.querySelector(".react-flow__node.selected")?.innerText.includes(%q) === true`, words))
		}
		selected("High")
		b.Strike("Tab")
		selected("Low")
		b.Strike("Shift+Tab")
		selected("High")
		at.reversible(b, "an edited text", 1, func() {
			b.Strike("Enter")
			b.See("textbox", "Edit the text")
			b.Type("er")
			b.Strike("Escape")
		})
		b.See("option", "Text: Higher, at …")
		wantAccessible(t, b, "a board with a selection")

		at.reversible(b, "a left edge", 1, func() { b.Strike("Ctrl+a", "Alt+a") })
		at.reversible(b, "a duplicate", 1, func() { b.Strike("Ctrl+a", "Ctrl+d") })
		at.reversible(b, "an order", 1, func() { b.Strike("[") })
		at.reversible(b, "a right edge", 1, func() { b.Strike("Ctrl+a", "Alt+d") })
		at.reversible(b, "a top edge", 1, func() { b.Strike("Ctrl+a", "Alt+w") })
		at.reversible(b, "a deletion", 1, func() {
			b.Strike("Escape")
			b.TabTo("listbox", "Things on the board")
			b.Strike("Delete")
		})
		at.reversible(b, "a section", 1, func() {
			b.Strike("Ctrl+a", "Ctrl+g")
			b.See("textbox", "Edit the text")
			b.Strike("Escape")
		})

		// A run, its picture, and the same picture from the library.
		b.Strike("Escape", "c")
		b.See("heading", "Create on the board")
		b.Type("a red balloon")
		b.Until(`[...document.querySelectorAll("button")].some(e => e.innerText.startsWith("Create\n") && !e.disabled)`)
		b.Strike("Ctrl+Enter")
		b.Until(`document.querySelector(".react-flow__node-media img")?.complete === true`)
		at.reversible(b, "a picture from the library", 1, func() {
			b.Strike("Escape", "l")
			b.See("button", "a red balloon")
			b.TabTo("button", "a red balloon")
			b.Strike("Enter")
			b.TabTo("button", "Add 1")
			b.Strike("Enter")
		})

		b.Strike("2")
		b.Strike("1")
		b.Strike("h")
		b.Until(`document.querySelector("[aria-pressed=true]").getAttribute("aria-label").startsWith("Move the view")`)
		b.Strike("v", "Escape")

		// Escape lets the next Tab leave the board.
		b.TabTo("listbox", "Things on the board")
		b.Strike("Escape", "Tab")
		b.Until(`document.activeElement.closest("[role=listbox]") === null`)
		chooseByKeys(t, b, "More", "Rename")
		b.See("textbox", "Name")
		b.Until(`document.activeElement.localName === "input"`)
		b.Strike("Ctrl+a")
		b.Type("Balloons")
		b.Strike("Enter")
		b.See("button", "Balloons")
		at.settle(b)
		wantNoComplaints(t, b)
		s.check()
	})
}

// couple is two people of a team, each in a window of their own. With PostgreSQL
// each window is at another node of the program.
type couple struct {
	*site
	team    string
	nodes   [2]*node
	windows [2]*browser.Browser
	board   boardAt
}

// openCouple makes a board of a team with some texts, and opens it for two of its
// members.
func openCouple(t *testing.T, s *site, texts int) *couple {
	t.Helper()
	s.env = append(s.env, "ATELIER_LIMITS_REQUESTS_PER_MINUTE=0")
	c := &couple{site: s}
	company := s.do("admin", "company", "create", "--name", "Fox", "--plan", "ENTERPRISE")["id"].(string)
	c.team = s.do("admin", "team", "create", "--company", company, "--name", "Look")["id"].(string)
	for _, name := range []string{"anna", "bert"} {
		s.do("admin", "person", "create", "--email", name+"@fox.example", "--password", password, "--verified")
		s.do("admin", "team", "add", "--team", c.team, "--email", name+"@fox.example")
	}
	c.nodes[0] = s.serve()
	c.nodes[1] = c.nodes[0]
	if s.database != "" && s.bucket == nil { // else the proxy has two
		c.nodes[1] = s.serve()
	}
	c.nodes[0].token = s.do("admin", "token", "create", "--email", "anna@fox.example", "--name", "test", "--company", company)["token"].(string)

	board := c.nodes[0].call("POST", "/api/v2/boards?team_id="+c.team, `{"name": "Together"}`).want(t, 201)["id"].(string)
	c.board = boardAt{node: c.nodes[0], path: "/api/v2/boards/" + board + "?limit=500&team_id=" + c.team}
	var drafts []string
	for i := range texts {
		drafts = append(drafts, fmt.Sprintf(`{"kind": "TEXT", "text": "note %d", "x": %d, "y": %d, "width": 140}`, i, i%4*240, i/4*150))
	}
	c.nodes[0].call("PATCH", "/api/v2/boards/"+board+"/nodes?team_id="+c.team, `{"create": [`+strings.Join(drafts, ",")+`], "update": [], "delete": []}`).want(t, 200)

	for i, name := range []string{"anna", "bert"} {
		c.windows[i] = signIn(t, c.nodes[i], name+"@fox.example", "/boards/"+board+"?team="+c.team)
		c.windows[i].See("toolbar", "Tools")
	}
	c.board.settle(c.windows[:]...)
	return c
}

// freeNode is a script that picks a node at random that nothing covers, and
// returns the place at which it can be taken, or null.
const freeNode = `(() => {
	const all = [...document.querySelectorAll(".react-flow__node")];
	for (let at = 0; at < 20; at++) {
		const e = all[Math.floor(Math.random() * all.length)];
		const r = e?.getBoundingClientRect();
		if (r && document.elementFromPoint(r.x + 12, r.y + 10)?.closest(".react-flow__node") === e) return JSON.stringify({X: r.x + 12, Y: r.y + 10, W: 0, H: 0});
	}
	return "";
})()`

// grab selects a node with a click, and reports whether one could be reached.
func grab(t *testing.T, b *browser.Browser) bool {
	t.Helper()
	said := b.Eval(freeNode)
	if said == "" {
		return false
	}
	var r rect
	if err := json.Unmarshal([]byte(said), &r); err != nil {
		t.Fatal(err)
	}
	b.ClickAt(r.X, r.Y)
	return b.Eval(`document.querySelector(".react-flow__node.selected") !== null`) == "true"
}

// play moves nodes 200 times with the mouse and the arrow keys, and edits,
// deletes and takes back in between.
func play(t *testing.T, b *browser.Browser, name string, random *rand.Rand) {
	t.Helper()
	arrows := []string{"ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Shift+ArrowLeft", "Shift+ArrowRight", "Shift+ArrowUp", "Shift+ArrowDown"}
	moves := 0
	for turn := 0; moves < 200; turn++ {
		if turn > 3000 {
			t.Errorf("%s made only %d moves", name, moves)
			return
		}
		chosen := b.Eval(`document.querySelector(".react-flow__node.selected") !== null`) == "true"
		if (turn%10 == 0 || !chosen) && !grab(t, b) {
			b.Strike("1", "Escape")
			continue
		}
		switch {
		case turn%25 == 7:
			b.Strike("Enter")
			b.Type(fmt.Sprintf(" %s%d", name, turn))
			b.Strike("Escape", "Escape")
		case turn%40 == 19:
			b.Strike("Delete")
			if turn%80 == 19 {
				b.Strike("Ctrl+z")
			}
		case turn%30 == 29:
			b.Strike("Ctrl+z")
		case turn%50 == 33:
			b.Strike("Ctrl+d")
		case turn%20 == 3:
			if said := b.Eval(freeNode); said != "" {
				var r rect
				if err := json.Unmarshal([]byte(said), &r); err != nil {
					t.Error(err)
					return
				}
				b.Drag(r.X, r.Y, r.X+random.Float64()*80-40, r.Y+random.Float64()*60-30)
				moves++
			}
		default:
			b.Strike(arrows[random.IntN(len(arrows))])
			moves++
		}
	}
	// What is half done ends here: a text that is being edited is no longer.
	b.Strike("Escape", "Escape")
}

// TestStudioBoardTogether lets two people work on one board at the same time. In
// the end both windows show what the API has.
func TestStudioBoardTogether(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		c := openCouple(t, s, 16)
		for i, other := range []string{"bert", "anna"} {
			c.windows[i].Until(fmt.Sprintf(`document.querySelector("[aria-label='People at this board']")?.innerText.includes(%q) === true`, other))
		}
		wantAccessible(t, c.windows[0], "a board with two people")

		// The other sees a move at once, and who made it.
		clickNode(t, c.windows[0], nodeWith("note 5"))
		place := `(` + nodeWith("note 5") + `).style.transform`
		before := c.windows[1].Eval(place)
		start := time.Now()
		c.windows[0].Strike("Shift+ArrowRight")
		for c.windows[1].Eval(place) == before {
			if time.Since(start) > 20*time.Second {
				t.Fatal("the other person did not see a move within 20 seconds")
			}
		}
		t.Logf("a move was seen by the other person after %v", time.Since(start).Round(time.Millisecond))
		c.windows[1].Until(`(` + nodeWith("note 5") + `).innerText.includes("anna")`)
		keepView(t, c.windows[1], "board-two-people")

		// A page collects changes while one of its requests is under way: where
		// the service is slow, 200 moves are few requests, and both go on.
		const fewest, mostRounds = 40, 10
		var last []string
		var revision float64
		for round := 1; revision < fewest && round <= mostRounds; round++ {
			var both sync.WaitGroup
			start = time.Now()
			for i, name := range []string{"a", "b"} {
				both.Go(func() { play(t, c.windows[i], name, rand.New(rand.NewPCG(uint64(18+round), uint64(i)))) })
			}
			both.Wait()
			if t.Failed() {
				return
			}
			last = c.board.settle(c.windows[:]...)
			var nodes []storedNode
			nodes, revision = c.board.nodes()
			t.Logf("two people made 200 moves each in %v: %d nodes, revision %v", time.Since(start).Round(time.Millisecond), len(nodes), revision)
		}
		if revision < fewest {
			t.Errorf("the board has revision %v: too few changes were sent", revision)
		}
		for i, b := range c.windows {
			if got := canvasOf(t, b); !slices.Equal(got, last) {
				t.Errorf("window %d shows\n%s\nwant\n%s", i, strings.Join(got, "\n"), strings.Join(last, "\n"))
			}
			keepView(t, b, fmt.Sprintf("board-together-%d", i))
			b.Reload()
			b.See("toolbar", "Tools")
			c.board.becomes(b, last, "reload")
			wantNoComplaints(t, b)
		}
		s.check()
	})
}

// TestStudioBoardTrouble takes the server and then the right away from people at
// a board: changes made without a server arrive later, and whoever may not see
// the board any more is told so.
func TestStudioBoardTrouble(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		c := openCouple(t, s, 6)
		b := c.windows[0]
		other := c.windows[1]

		for i, n := range c.nodes {
			if i == 0 || n != c.nodes[0] {
				n.kill()
			}
		}
		before := canvasOf(t, b)
		selectNode(t, b, nodeWith("note 2"))
		b.Strike("Shift+ArrowDown", "Shift+ArrowRight", "Enter")
		b.See("textbox", "Edit the text")
		b.Type(", changed without a server")
		b.Strike("Escape", "Escape")
		selectNode(t, b, nodeWith("note 4"))
		b.Strike("Delete")
		selectNode(t, other, nodeWith("note 3"))
		other.Strike("Shift+ArrowUp")
		for _, window := range c.windows {
			window.Until(`[...document.querySelectorAll("[role=status]")].some(e => /changes? waits?/.test(e.innerText))`)
		}
		keepView(t, b, "board-away")
		wantAccessible(t, b, "a board without a server")
		b.Press("l") // opens a part of the studio that was not loaded yet

		for i, n := range c.nodes {
			if i == 0 || n.url != c.nodes[0].url {
				token := n.token
				again := s.serve("--listen", strings.TrimPrefix(n.url, "http://"))
				again.token = token
				*n = *again
			}
		}
		b.See("dialog", "Put something on the board")
		b.Press("Escape")
		after := c.board.settle(c.windows[:]...)
		if len(after) != len(before)-1 || !strings.Contains(strings.Join(after, "\n"), "note 2, changed without a server") || differing(before, after) != 2 {
			t.Errorf("what was done without a server did not arrive: before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}

		s.do("admin", "team", "remove", "--team", c.team, "--email", "bert@fox.example")
		selectNode(t, other, nodeWith("note 1"))
		other.Strike("Shift+ArrowRight")
		other.See("heading", "You can no longer open this board")
		keepView(t, other, "board-refused")
		wantAccessible(t, other, "a board that may not be seen any more")
		b.Until(`!document.querySelector("[aria-label='People at this board']").innerText.includes("bert")`)
		if got := c.board.settle(b); !slices.Equal(got, after) {
			t.Errorf("a person without a right changed the board: %q, want %q", got, after)
		}
		other.ClickOn("link", "All boards")
		other.See("heading", "Boards")

		for _, window := range c.windows {
			wantNoComplaints(t, window)
		}
		s.check()
	})
}
