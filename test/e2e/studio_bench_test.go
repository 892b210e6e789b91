package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/browser"
)

// The long forms of the studio's measurements, for "make studio-bench".
var (
	benchItems  = flag.Int("studio-items", 5000, "how many results the library has whose scrolling is measured")
	benchStrict = flag.Bool("studio-strict", false, "whether the figures of the studio must be those of an idle machine")
	benchUse    = flag.Duration("studio-use", 5*time.Second, "how long a board is used while its memory is measured")
)

// benchPictures is how many pictures the results of a long library share.
const benchPictures = 24

// fillLibrary adds results that share the pictures of those that are there. The
// first is as old as they are, and each is 10 minutes older than the one before
// it.
func fillLibrary(t *testing.T, s *site, count int) {
	t.Helper()
	db := dbtest.OpenAt(t, "sqlite://"+s.data+"/atelier.db", time.Now)
	const batch = 10_000
	for from := 0; from < count; from += batch {
		fill := strings.NewReplacer("{from}", fmt.Sprint(from), "{until}", fmt.Sprint(min(from+batch, count)), "{pictures}", fmt.Sprint(benchPictures))
		for _, statement := range libraryRows {
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				_, err := tx.Exec(t.Context(), fill.Replace(statement))
				return err
			})
			if err != nil {
				t.Fatalf("%.60s: %v", statement, err)
			}
		}
	}
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec(t.Context(), `ANALYZE`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// libraryRows are the statements that add the results with the numbers from
// {from} to {until}.
var libraryRows = []string{
	`INSERT INTO run (id, library_id, person_id, account_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed, num_results,
		metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used, status, attempt, worker, cancel,
		preview, revision, error_code, error_message, created, started, finished)
	WITH RECURSIVE n (i) AS (SELECT CAST({from} AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {until})
	SELECT '00000000-0000-7000-8000-' || substr(CAST(1000000000000 + n.i AS TEXT), 2), 'Bench' || substr(CAST(1000000000000000 + n.i AS TEXT), 2),
		b.person_id, b.account_id, b.credential, b.credential_id, '', b.tool_id, b.tool_hash, b.engine, b.inputs, 'Colours, number ' || n.i, n.i, 1,
		'', '', 2, 1, 1, 0, '', 1, 0, 'succeeded', 1, 'bench', FALSE, '', 4, '', '',
		b.created - 600000000 * n.i, b.created - 600000000 * n.i, b.created - 600000000 * n.i
	FROM n JOIN (SELECT * FROM run WHERE worker <> 'bench' ORDER BY id LIMIT 1) b ON TRUE`,
	`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob, thumb, preview, created, stored_bytes)
	SELECT n.library_id, a.account_id, a.type, a.mime_type, a.size_bytes, a.sha256, a.width, a.height, a.blurhash, a.blob || n.seed, a.thumb, '', n.created, a.stored_bytes
	FROM run n JOIN (SELECT *, row_number() OVER (ORDER BY id) - 1 AS place FROM asset WHERE id NOT LIKE 'Bench%') a ON a.place = n.seed % {pictures}
	WHERE n.worker = 'bench' AND n.seed >= {from}`,
	`INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, created, search_text)
	SELECT '11111111-1111-4111-8111-' || substr(CAST(1000000000000 + n.seed AS TEXT), 2), n.id, 0, n.library_id, n.account_id, n.tool_id, 'IMG', '1:1', '1K', n.created, lower(n.prompt)
	FROM run n WHERE n.worker = 'bench' AND n.seed >= {from}`,
}

// openLongLibrary serves a library with many results and opens it.
func openLongLibrary(t *testing.T, s *site, count int) (*gallerySite, *browser.Browser) {
	t.Helper()
	g := openGallerySite(t, s)
	for range benchPictures / 8 {
		g.runMany("gradient", 8, map[string]any{"style": "mesh", "size": map[string]any{"width": 512, "height": 512}})
	}
	fillLibrary(t, s, count-benchPictures)
	b := signIn(t, g.node, "anna@example.com", "/library")
	b.Until(`(() => {` + watchTiles + `; return tilesInView().missing === 0 && grid.querySelector("img") !== null })()`)
	return g, b
}

// watchTiles is a script that looks at the tiles in view: which have nothing to
// show, and which lack their picture.
const watchTiles = `
	const grid = document.querySelector("[role=grid]");
	const tilesInView = () => {
		const view = grid.getBoundingClientRect();
		const found = {blank: [], waiting: [], missing: 0, top: Infinity, bottom: -Infinity};
		for (const tile of grid.querySelectorAll("[data-index]")) {
			const box = tile.getBoundingClientRect();
			if (box.bottom <= view.top || box.top >= view.bottom) continue;
			found.top = Math.min(found.top, box.top);
			found.bottom = Math.max(found.bottom, box.bottom);
			const picture = tile.querySelector("img");
			const loaded = picture?.complete && picture.naturalWidth > 0;
			const placeholder = tile.querySelector("canvas") ?? tile.querySelector("[style*=background]");
			if (!loaded && !placeholder) found.blank.push(tile.dataset.index);
			if (!loaded) found.waiting.push(tile.dataset.index);
		}
		// A row that is not drawn at all is blank too; between rows there is a gap.
		const atTop = grid.scrollTop < 40;
		const atBottom = grid.scrollTop + grid.clientHeight > grid.scrollHeight - 120;
		if ((found.top > view.top + 40 && !atTop) || (found.bottom < view.bottom - 40 && !atBottom)) found.blank.push("row");
		found.missing = found.waiting.length + found.blank.length;
		return found;
	}`

// scrolled are the figures of some seconds of scrolling.
type scrolled struct {
	Frames      int     `json:"frames"`
	Seconds     float64 `json:"seconds"`
	LongestMs   float64 `json:"longest_ms"`   // the longest frame
	BlankMs     float64 `json:"blank_ms"`     // the longest time that a tile in view showed nothing
	PictureMs   float64 `json:"picture_ms"`   // the longest time that a tile in view had no picture
	BlankTiles  int     `json:"blank_tiles"`  // tiles that ever showed nothing in view
	WaitedTiles int     `json:"waited_tiles"` // tiles that ever lacked their picture in view
	SeenTiles   int     `json:"seen_tiles"`   // tiles that came into view
}

// scrollBy is a script that scrolls some pixels at each sixtieth of a second and says what a
// person sees meanwhile.
const scrollBy = `(async () => {` + watchTiles + `
	const since = {blank: new Map(), waiting: new Map()};
	const ever = {blank: new Set(), waiting: new Set()};
	const longest = {blank: 0, waiting: 0};
	let frames = 0, longestFrame = 0, seen = new Set();
	const start = performance.now();
	let last = start, step = 0;
	while (last - start < %[1]d) {
		// A machine that draws fewer frames scrolls as fast as one with 60 frames a second.
		grid.scrollTop += Math.max(%[2]d, step * %[2]d * 60 / 1000);
		const now = await new Promise(requestAnimationFrame);
		frames += 1;
		step = now - last;
		longestFrame = Math.max(longestFrame, step);
		last = now;
		const found = tilesInView();
		for (const kind of ["blank", "waiting"]) {
			const current = new Set(found[kind]);
			for (const index of current) {
				if (!since[kind].has(index)) since[kind].set(index, now);
				ever[kind].add(index);
				longest[kind] = Math.max(longest[kind], now - since[kind].get(index));
			}
			// A tile that has got its picture waited until this frame.
			for (const [index, from] of since[kind]) {
				if (!current.has(index)) {
					longest[kind] = Math.max(longest[kind], now - from);
					since[kind].delete(index);
				}
			}
		}
		for (const tile of grid.querySelectorAll("[data-index]")) seen.add(tile.dataset.index);
	}
	return JSON.stringify({frames, seconds: (last - start) / 1000, longest_ms: longestFrame, blank_ms: longest.blank, picture_ms: longest.waiting,
		blank_tiles: ever.blank.size, waited_tiles: ever.waiting.size, seen_tiles: seen.size});
})()`

// jump is a script that waits until all tiles in view have their pictures after
// a jump, and says how many milliseconds that took from the last key or click.
const jump = `(async () => {` + watchTiles + `
	while (tilesInView().missing > 0) await new Promise(requestAnimationFrame);
	return Math.round(performance.now() - window.jumpedAt);
})()`

// loadAverage returns how busy the machine is, for the log of a measurement.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// TestStudioLibraryScroll scrolls through a long library and jumps in it. Figures
// of time are held only on an idle machine, with -studio-strict; that nothing is
// lost and the memory does not grow is always held.
func TestStudioLibraryScroll(t *testing.T) {
	needOneProcess(t, "it writes rows into SQLite")
	s := newSite(t)
	_, b := openLongLibrary(t, s, *benchItems)
	b.Eval(`for (const kind of ["keydown", "pointerdown"]) addEventListener(kind, () => { window.jumpedAt = performance.now(); }, true)`)

	const seconds = 6
	var figures scrolled
	said := b.Measure(fmt.Sprintf(scrollBy, seconds*1000, 40), seconds*time.Second)
	if err := json.Unmarshal([]byte(said), &figures); err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	t.Logf("%d results, load average %s: 40 px a frame for %.1f s: %.1f frames a second, longest frame %.0f ms; %d tiles came near; without anything to show: %d tiles, the longest %.0f ms; without the picture: %d tiles, the longest %.0f ms",
		*benchItems, loadAverage(), figures.Seconds, float64(figures.Frames)/figures.Seconds, figures.LongestMs, figures.SeenTiles, figures.BlankTiles, figures.BlankMs, figures.WaitedTiles, figures.PictureMs)
	if figures.SeenTiles < 100 {
		t.Errorf("only %d tiles came into view", figures.SeenTiles)
	}
	if *benchStrict && figures.BlankMs > 100 {
		t.Errorf("a tile was blank for %.0f ms, want at most 100", figures.BlankMs)
	}

	b.ClickOn("slider", "Timeline")
	t.Logf("a jump to the middle by the timeline: all pictures after %s ms", b.Measure(jump, time.Minute))
	if middle := b.Eval(`Math.round(100 * document.querySelector("[role=grid]").scrollTop / document.querySelector("[role=grid]").scrollHeight)`); middle < "45" || middle > "55" {
		t.Errorf("a click on the middle of the timeline led to %s %% of the list", middle)
	}

	b.Eval(`document.querySelector("[role=slider]").focus()`)
	goTo := func(keys ...string) []string {
		var took []string
		for _, key := range keys {
			b.Strike(key)
			took = append(took, b.Measure(jump, time.Minute))
		}
		return took
	}
	jumps := []string{"Home", "PageDown", "PageDown", "PageDown", "End", "PageUp", "PageUp", "PageUp", "PageUp", "Home"}
	goTo(jumps...)
	before := b.Heap()
	took := goTo(jumps...)
	after := b.Heap()
	t.Logf("ten jumps: all pictures after %s ms; scripts hold %.1f MB before and %.1f MB after", strings.Join(took, ", "), before/1e6, after/1e6)
	if after > before+before/4+2_000_000 {
		t.Errorf("ten jumps left %.0f bytes more in the page", after-before)
	}
	wantNoComplaints(t, b)
}

// boardNodes is how many pictures the measured board has.
const boardNodes = 1000

// openLargeBoard serves a board of many pictures, each of another result, and
// opens it.
func openLargeBoard(t *testing.T, s *site) (*browser.Browser, boardAt) {
	t.Helper()
	g := openGallerySite(t, s)
	for range benchPictures / 8 {
		g.runMany("gradient", 8, map[string]any{"style": "mesh", "size": map[string]any{"width": 512, "height": 512}})
	}
	fillLibrary(t, s, boardNodes)
	board := g.node.call("POST", "/api/v2/boards", `{"name":"A thousand pictures"}`).want(t, 201)["id"].(string)
	var nodes []map[string]any
	for i := range boardNodes {
		ref := fmt.Sprintf("Bench%015d:11111111-1111-4111-8111-%012d", i, i)
		nodes = append(nodes, map[string]any{"kind": "LIBRARY_REF", "ref": ref, "x": i % 40 * 240, "y": i / 40 * 240, "width": 220, "height": 220})
	}
	body, err := json.Marshal(map[string]any{"create": nodes})
	if err != nil {
		t.Fatal(err)
	}
	g.node.call("PATCH", "/api/v2/boards/"+board+"/nodes", string(body)).want(t, 200)
	b := signIn(t, g.node, "anna@example.com", "/boards/"+board)
	b.Until(`document.querySelectorAll(".react-flow__node").length > 20`)
	return b, boardAt{node: g.node, path: "/api/v2/boards/" + board + "?limit=500"}
}

// panBoard is a script that turns the wheel over a board at each frame for some
// milliseconds, so that the view goes around a circle with a radius of some pixels, and says
// how many frames there were in a second. A board of many nodes has elements only
// for those in view.
const panBoard = `(async () => {
	const pane = document.querySelector(".react-flow__pane");
	const viewport = document.querySelector(".react-flow__viewport");
	const inView = document.querySelector(".react-flow__nodes").children;
	const length = %[1]d, radius = %[2]d, speed = 1800;
	const start = performance.now();
	let last = start, frames = 0, longest = 0, fewest = Infinity, most = 0, x = radius, y = 0;
	const places = new Set();
	while (last - start < length) {
		const turn = (last - start) / 1000 * speed / radius;
		const deltaX = radius * Math.cos(turn) - x, deltaY = radius * Math.sin(turn) - y;
		x += deltaX;
		y += deltaY;
		pane.dispatchEvent(new WheelEvent("wheel", {deltaX, deltaY, clientX: 500, clientY: 400, bubbles: true, cancelable: true}));
		const now = await new Promise(requestAnimationFrame);
		frames += 1;
		longest = Math.max(longest, now - last);
		last = now;
		fewest = Math.min(fewest, inView.length);
		most = Math.max(most, inView.length);
		places.add(viewport.style.transform);
	}
	return JSON.stringify({frames, rate: frames / (last - start) * 1000, longest, fewest, most, places: places.size});
})()`

// TestStudioBoardPan moves a board of 1,000 pictures under the wheel, seen as a
// whole and in part, and uses it for a while. Figures of time are held only on an
// idle machine, with -studio-strict; that its memory does not grow is always held.
func TestStudioBoardPan(t *testing.T) {
	needOneProcess(t, "it writes rows into SQLite")
	s := newSite(t)
	b, _ := openLargeBoard(t, s)
	pan := func(what string, radius, inView int) (rate float64) {
		const seconds = 2
		var figures struct {
			Frames, Fewest, Most, Places int
			Rate, Longest                float64
		}
		said := b.Measure(fmt.Sprintf(panBoard, seconds*1000, radius), seconds*time.Second)
		if err := json.Unmarshal([]byte(said), &figures); err != nil {
			t.Fatalf("%s: %v", said, err)
		}
		if figures.Places < figures.Frames/2 {
			t.Errorf("%s: the board was at %d places in %d frames", what, figures.Places, figures.Frames)
		}
		if figures.Fewest < inView {
			t.Errorf("%s: only %d nodes were in view, want at least %d", what, figures.Fewest, inView)
		}
		t.Logf("load average %s: %s: %.1f frames a second while panning, longest frame %.0f ms, %d to %d nodes in view", loadAverage(), what, figures.Rate, figures.Longest, figures.Fewest, figures.Most)
		return figures.Rate
	}

	seeWhole := func() {
		b.Strike("1")
		b.Until(`document.querySelectorAll(".react-flow__node").length === 1000 && document.querySelector("canvas[data-stage=far]") !== null`)
	}
	seePart := func() {
		b.ClickOn("button", "Zoom is…")
		b.Until(`document.querySelectorAll(".react-flow__node").length < 200 && document.querySelector("canvas[data-stage=near]") !== null`)
	}
	use := func() (slowest float64) {
		seeWhole()
		whole := pan("seen as a whole", 50, boardNodes)
		wide := pan("seen as a whole, in wide circles", 300, boardNodes/4)
		seePart()
		part := pan("seen in part", 300, 1)
		b.Strike("Ctrl+a", "ArrowRight", "Ctrl+z", "Escape")
		return min(whole, wide, part)
	}

	if slowest := use(); *benchStrict && slowest < 50 {
		t.Errorf("the board has %.1f frames a second, want 50", slowest)
	}
	before := b.Heap()
	for end := time.Now().Add(*benchUse); time.Now().Before(end); {
		use()
		t.Logf("scripts hold %.1f MB", b.Heap()/1e6)
	}
	after := b.Heap()
	t.Logf("after %v of use scripts hold %.1f MB, before %.1f MB", *benchUse, after/1e6, before/1e6)
	if after > before*1.25+3e6 {
		t.Errorf("using the board left %.0f bytes more in the page", after-before)
	}
	wantNoComplaints(t, b)
}
