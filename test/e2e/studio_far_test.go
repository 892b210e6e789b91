package e2e

import (
	"fmt"
	"os"
	"testing"

	"atelier/internal/testkit/browser"
)

// farCanvas is a script that finds the canvas that shows a large board from afar.
const farCanvas = `document.querySelector("canvas[data-stage=far]")`

// isPainted is a script that reports whether the canvas shows something solid at
// a point of the window.
func isPainted(x, y float64) string {
	return fmt.Sprintf(`(() => {
		const canvas = %s;
		if (!canvas) return false;
		const box = canvas.getBoundingClientRect();
		const probe = new OffscreenCanvas(1, 1).getContext("2d");
		const scale = canvas.width / box.width;
		probe.drawImage(canvas, (%v - box.x) * scale, (%v - box.y) * scale, 1, 1, 0, 0, 1, 1);
		return probe.getImageData(0, 0, 1, 1).data[3] > 250;
	})()`, farCanvas, x, y)
}

// TestStudioBoardFar uses a board of 1,000 pictures that is seen as a whole: its
// nodes are drawn on one canvas, and are selected, moved, written and reached by
// keys like others.
func TestStudioBoardFar(t *testing.T) {
	needOneProcess(t, "it writes rows into SQLite")
	s := newSite(t)
	b, at := openLargeBoard(t, s)
	at.node.call("PATCH", "/api/v2"+b.Eval(`location.pathname`)+"/nodes", `{"create": [
		{"kind": "TEXT", "text": "# Mood", "x": -1300, "y": 400, "width": 900, "height": 1400},
		{"kind": "TEXT", "text": "A note with some words about the light in the morning, and what it does to the colours of the room.", "x": -1200, "y": 600, "width": 700, "height": 500},
		{"kind": "TEXT", "text": "# A heading", "x": -1200, "y": 1300}
	]}`).want(t, 200)
	b.Until(`document.querySelectorAll("[role=option]").length === 1003`)
	b.Strike("1")
	b.Until(`document.querySelectorAll(".react-flow__node").length === 1003 && ` + farCanvas + ` !== null`)
	b.Until(`document.querySelectorAll(".react-flow__node img").length === 0`)
	keepFar(t, b, "board-far-whole")

	// A picture is dragged out of the rows, and back by undoing.
	picture := rectOf(t, b, pictureNode(0))
	x, y := picture.middle()
	const up = 60
	b.Until(isPainted(x, y))
	if b.Eval(isPainted(x, y-up)) != "false" {
		t.Error("the canvas is not empty above the board")
	}
	b.ClickAt(x, y)
	b.Until(`document.querySelectorAll(".react-flow__node.selected").length === 1`)
	b.Drag(x, y, x, y-up)
	b.Until(isPainted(x, y-up))
	b.Until(`!` + isPainted(x, y))
	keepView(t, b, "board-far-moved")
	b.Strike("Ctrl+z")
	b.Until(isPainted(x, y))
	b.Until(`!` + isPainted(x, y-up))

	// A note is written in place, by its element alone.
	note := rectOf(t, b, nodeWith("some words"))
	x, y = note.middle()
	b.Until(isPainted(x, y))
	b.ClickAt(x, y)
	b.Strike("Enter")
	b.Until(`document.activeElement.tagName === "TEXTAREA"`)
	b.Until(`!` + isPainted(x, y))
	b.Type(" And more.")
	keepView(t, b, "board-far-written")
	b.Strike("Escape")
	b.Until(isPainted(x, y))
	b.Until(`!!` + nodeWith("And more."))

	// Keys reach the nodes, and those that read to people name them.
	b.Strike("Escape")
	b.Focus("listbox", "Things on the board")
	b.Strike("Tab")
	b.Until(`document.querySelectorAll(".react-flow__node.selected").length === 1`)
	if count := b.Count("option", "…"); count != 1003 {
		t.Errorf("the list of the board names %d nodes, want 1003", count)
	}
	wantAccessible(t, b, "a board from afar")

	// Near, the elements show themselves.
	b.ClickOn("button", "Zoom is…")
	b.Until(farCanvas + ` === null && document.querySelector(".react-flow__node img")?.complete === true`)
	b.Until(`getComputedStyle(document.querySelector("canvas[data-stage]")).display === "none"`)

	// Both sides of the limit look alike.
	for _, zoom := range []string{"0.34", "0.29"} {
		b.Goto(b.Eval(`location.origin + location.pathname`) + "?view=420,60," + zoom)
		b.Until(`document.querySelectorAll(".react-flow__node").length > 100`)
		keepFar(t, b, "board-far-zoom-"+zoom)
	}
	wantNoComplaints(t, b)
}

// keepFar keeps pictures of a board, light and dark, once its pictures have had time to come.
func keepFar(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	if os.Getenv("ATELIER_TEST_SCREENS") == "" {
		return
	}
	for _, dark := range []bool{true, false} {
		b.Dark(dark)
		b.Eval(`new Promise(done => setTimeout(done, 3000))`)
		keepView(t, b, fmt.Sprintf("%s-%s", name, map[bool]string{false: "light", true: "dark"}[dark]))
	}
}
