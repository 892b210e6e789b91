package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/client"
	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// libraryTools are tools whose results a script decides, one for every medium.
// The first is the one that Create opens with.
var libraryTools = map[string]string{
	"painting": `name: Painting
position: 0
tags: [image, tiny]
price: {type: COST, tokens: 2}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
fields:
  - {key: prompt, type: PROMPT, label: Prompt, max_length: 300}
  - {key: picture, type: IMG, label: Picture, accept: [image/png]}
  - {key: script, type: TEXT_AREA, label: Script, max_length: 10000}
  - {key: seed, type: SEED, label: Seed}
`,
	"film": `name: Film
tags: [video]
price: {type: FREE}
output: {type: VID, mime_types: [video/mp4]}
engine: {name: script}
fields:
  - {key: prompt, type: PROMPT, label: Prompt, max_length: 300}
  - {key: script, type: TEXT_AREA, label: Script, max_length: 10000}
`,
	"noise": `name: Noise
tags: [audio]
price: {type: FREE}
output: {type: AUDIO, mime_types: [audio/wav]}
engine: {name: script}
fields:
  - {key: prompt, type: PROMPT, label: Prompt, max_length: 300}
  - {key: script, type: TEXT_AREA, label: Script, max_length: 10000}
`,
}

// gallerySite is an installation whose one person has results of every medium.
type gallerySite struct {
	*site
	node   *node
	client *client.Client
	tools  map[string]*client.ToolDetail
	// files are the bytes of the results, by their prompt.
	files map[string][]byte
	// ids are the ids of the results, by their prompt.
	ids map[string]string
}

// Prompts of the results, the oldest first.
const (
	fox        = "red fox in the snow"
	whale      = "blue whale under the stars"
	lighthouse = "tall lighthouse at dawn"
	boat       = "paper boat on a large lake"
	rain       = "rain on a tin roof"
	waves      = "waves on the shore"
	noPrompt   = "Result without a prompt" // of the shipped tool Gradient
)

// Names of the tiles with sound and video.
const (
	rainTile  = rain + ", sound of 0:02"
	wavesTile = waves + ", video of 0:01"
)

// allTiles are the names of all tiles, the newest first.
var allTiles = []string{noPrompt, wavesTile, rainTile, boat, lighthouse, whale, fox}

// newGallerySite serves a site and makes a result of every medium.
func newGallerySite(t *testing.T, s *site) *gallerySite {
	t.Helper()
	g := openGallerySite(t, s)
	clip, err := os.ReadFile("../../internal/engine/openai/openaitest/testdata/clip.mp4")
	if err != nil {
		t.Fatal(err)
	}
	g.paint(fox, 512, 512)
	g.paint(whale, 1280, 720)
	g.paint(lighthouse, 576, 1024)
	g.paint(boat, 2048, 2048)
	g.make("noise", rain, `[{"output": {"kind": "wav", "seconds": 2}}]`)
	g.make("film", waves, fmt.Sprintf(`[{"output": {"kind": "raw", "base64": %q}}]`, base64.StdEncoding.EncodeToString(clip)))
	g.run("gradient", noPrompt, map[string]any{"style": "mesh", "size": map[string]any{"width": 512, "height": 512}})
	return g
}

// openGallerySite serves a site on which one person has tokens and tools.
func openGallerySite(t *testing.T, s *site) *gallerySite {
	t.Helper()
	dir := t.TempDir()
	for name, manifest := range libraryTools {
		write(t, dir, name+".yaml", manifest)
	}
	s.env = append(s.env, "ATELIER_TOOLS="+dir, "ATELIER_LIMITS_CREATE_PER_MINUTE=1000")
	s.do("migrate")
	s.do("admin", "person", "create", "--email", "anna@example.com", "--password", password, "--verified")
	token := s.do("admin", "token", "create", "--email", "anna@example.com", "--name", "test")["token"].(string)
	s.grant("--email", "anna@example.com", 1000)

	g := &gallerySite{site: s, node: s.serve(), tools: map[string]*client.ToolDetail{}, files: map[string][]byte{}, ids: map[string]string{}}
	g.node.token = token
	g.client = connect(t, g.node.url, token)
	all := listTools(t, g.client)
	var err error
	for _, tool := range all {
		if g.tools[tool.Slug], err = g.client.Tools.Get(t.Context(), tool.ID); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// paint makes a picture of a size.
func (g *gallerySite) paint(prompt string, width, height int) {
	g.t.Helper()
	g.make("painting", prompt, fmt.Sprintf(`[{"output": {"kind": "png", "width": %d, "height": %d}}]`, width, height))
}

// make makes a result as a script says.
func (g *gallerySite) make(tool, prompt, script string) {
	g.t.Helper()
	g.run(tool, prompt, map[string]any{"prompt": prompt, "script": script})
}

// run makes a result and keeps its bytes and its id under a name.
func (g *gallerySite) run(tool, name string, inputs map[string]any) {
	g.t.Helper()
	output := g.runMany(tool, 1, inputs)[0]
	var err error
	if g.files[name], err = readOutput(g.t.Context(), g.client, output); err != nil {
		g.t.Fatal(err)
	}
	g.ids[name] = output.ID
}

// runMany makes some results with one run.
func (g *gallerySite) runMany(tool string, count int, inputs map[string]any) []client.Output {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), 3*time.Minute)
	defer cancel()
	run, err := startRun(ctx, g.client, g.tools[tool], count, inputs)
	if err != nil {
		g.t.Fatal(err)
	}
	if run, err = g.client.Runs.Wait(ctx, run.RequestID, client.Watch{}); err != nil || len(run.Outputs) != count {
		g.t.Fatalf("run = %+v, %v", run, err)
	}
	return run.Outputs
}

// wantTiles waits until the list is read and the grid shows tiles with these
// names, in this order.
func wantTiles(t *testing.T, b *browser.Browser, names ...string) {
	t.Helper()
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("the tiles at %s are %q, want %q", b.URL(), got, names)
		}
	}()
	watch.Until(t, fmt.Sprintf("the tiles %q", names), func() bool {
		got = b.Names("gridcell")
		return slices.Equal(got, names) && b.Eval(`document.querySelector("[role=grid][aria-busy=true]") === null`) == "true"
	})
}

// wantQuery waits until the address has exactly these parameters.
func wantQuery(b *browser.Browser, query string) {
	b.Until(fmt.Sprintf(`location.pathname.startsWith("/library") && location.search === %q`, query))
}

// choose chooses an entry of a menu.
func choose(b *browser.Browser, menu, entry string) {
	b.ClickOn("button", menu)
	b.ClickOn("menuitemradio", entry)
}

// TestStudioLibrary looks through results of every medium as a person does.
func TestStudioLibrary(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		g := newGallerySite(t, s)
		b := signIn(t, g.node, "anna@example.com", "/library")
		wantTiles(t, b, allTiles...)
		b.See("heading", "Library")
		b.Until(`document.body.innerText.includes("7 results")`)

		// The search is in view on a telephone too.
		b.Size(390, 844)
		b.Until(`(box => box !== undefined && box.left >= 0 && box.right <= 390)(document.querySelector("[data-filter]")?.getBoundingClientRect())`)
		b.Size(1280, 860)

		filterResults(t, g, b)
		lookAtDetails(t, g, b)
		downloadResults(t, g, b)
		deleteResults(t, g, b)
		pinResults(t, g, b)
		uploadFiles(t, g, b)
		followLinks(t, g, b)

		wantNoComplaints(t, b)
		s.check()
	})
}

// filterResults sets every filter and takes it back.
func filterResults(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	pictures := []string{noPrompt, boat, lighthouse, whale, fox}

	for _, c := range []struct {
		choose, back func()
		query        string
		tiles        []string
	}{
		{func() { b.ClickOn("button", "Pictures") }, func() { b.ClickOn("button", "All") }, "?type=IMG", pictures},
		{func() { b.ClickOn("button", "Video") }, func() { b.ClickOn("button", "All") }, "?type=VID", []string{wavesTile}},
		{func() { b.ClickOn("button", "Sound") }, func() { b.ClickOn("button", "All") }, "?type=AUDIO", []string{rainTile}},
		{func() { choose(b, "Tool", "Noise") }, func() { choose(b, "Tool: Noise", "Any tool") }, "?tool=" + g.tools["noise"].ID, []string{rainTile}},
		{func() { choose(b, "Shape", "Wide, 16:9") }, func() { choose(b, "Shape: Wide, 16:9", "Any shape") }, "?shape=16%3A9", []string{whale}},
		{func() { choose(b, "Size", "2K") }, func() { choose(b, "Size: 2K", "Any size") }, "?size=2K", []string{boat}},
		{func() { choose(b, "Time: Any time", "Today") }, func() { choose(b, "Time: Today", "Any time") }, "?span=today", allTiles},
		{func() { b.TypeInto("searchbox", "Search prompts", "LAKE boat") }, func() { b.Strike("Escape") }, "?q=LAKE+boat", []string{boat}},
		{func() { choose(b, "Order", "Oldest first") }, func() { choose(b, "Order", "Newest first") }, "?sort=oldest", []string{fox, whale, lighthouse, boat, rainTile, wavesTile, noPrompt}},
	} {
		c.choose()
		wantQuery(b, c.query)
		wantTiles(t, b, c.tiles...)
		c.back()
		wantQuery(b, "")
		wantTiles(t, b, allTiles...)
	}
	b.ClickOn("button", "Model")
	b.ClickOn("menuitemradio", "Atelier's own model")
	b.Until(`new URLSearchParams(location.search).has("family")`)
	wantTiles(t, b, boat, lighthouse, whale, fox)
	choose(b, "Model: Atelier's own model", "Any model")
	wantTiles(t, b, allTiles...)

	// Days are typed in a dialog; the second is before the first, and both are swapped.
	b.ClickOn("button", "Time: Any time")
	b.ClickOn("menuitem", "From day to day…")
	b.See("heading", "Results of some days")
	wantAccessible(t, b, "the dialog for days")
	b.Eval(`(() => {
		const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
		for (const [place, input] of document.querySelectorAll("dialog input[type=date]").entries()) {
			set.call(input, place === 0 ? "2020-03-05" : "2020-03-01");
			input.dispatchEvent(new Event("input", {bubbles: true}));
		}
	})()`)
	b.ClickOn("button", "Show")
	wantQuery(b, "?from=2020-03-01&until=2020-03-05")

	// Nothing fits: the page names the filters, and what is found without each.
	b.See("heading", "No result fits all filters")
	b.ClickOn("button", "3D")
	b.See("button", "Without “3D”: 0 results")
	b.See("button", "Without any filter: 7 results")
	wantAccessible(t, b, "a library in which nothing fits")
	keepLooks(t, b, "library-nothing-fits")
	b.ClickOn("button", "All")
	b.Until(`document.querySelectorAll("[role=gridcell]").length === 0`)
	if got := b.Count("button", "Without “Mar…"); got > 1 {
		t.Errorf("%d buttons drop the days", got)
	}
	b.ClickOn("button", "Without “…")
	wantQuery(b, "")
	wantTiles(t, b, allTiles...)
}

// lookAtDetails opens results with their inputs, plays video and sound, and
// keeps favourites.
func lookAtDetails(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	b.ClickOn("gridcell", whale)
	b.Until(fmt.Sprintf(`decodeURIComponent(location.pathname) === %q`, "/library/"+g.ids[whale]))
	b.See("button", "Copy link")
	for _, want := range []string{"Painting", "1280 × 720 · PNG", "2 tokens", "by you", "XMP: tool, seed, run"} {
		b.Until(fmt.Sprintf(`document.querySelector("aside").innerText.includes(%q)`, want))
	}
	b.Tap("aside summary")
	b.Until(fmt.Sprintf(`document.querySelector("aside details").innerText.includes(%q)`, whale))
	b.Until(`document.querySelector("aside img").complete && document.querySelector("aside img").naturalWidth === 1280`)
	wantAccessible(t, b, "the library with details")
	keepLooks(t, b, "library-details")

	// The details follow the neighbours.
	b.ClickOn("button", "Next")
	b.Until(fmt.Sprintf(`decodeURIComponent(location.pathname) === %q`, "/library/"+g.ids[fox]))

	b.ClickOn("button", "Favourite")
	b.See("gridcell", fox+", favourite")
	b.ClickOn("button", "Close")
	wantQuery(b, "")
	b.ClickOn("button", "Favourites")
	wantQuery(b, "?favourites=1")
	wantTiles(t, b, fox+", favourite")
	b.Strike("f")
	b.Reload()
	b.See("heading", "No result fits all filters")
	b.ClickOn("button", "Without “Favourites”: 7 results")
	wantTiles(t, b, allTiles...)

	for _, c := range []struct{ tile, element string }{{wavesTile, "video"}, {rainTile, "audio"}} {
		b.ClickOn("gridcell", c.tile)
		b.Until(fmt.Sprintf(`document.querySelector("aside %s")?.readyState >= 2`, c.element))
		b.Eval(fmt.Sprintf(`document.querySelector("aside %s").focus()`, c.element))
		b.Strike("Space")
		b.Until(fmt.Sprintf(`document.querySelector("aside %s").currentTime > 0`, c.element))
	}
	wantAccessible(t, b, "the library with a sound")

	// The large viewer goes through the whole list.
	b.ClickOn("gridcell", boat)
	b.ClickOn("button", "Show large")
	b.Until(`document.querySelector("dialog[open] img")?.naturalWidth === 2048`)
	wantAccessible(t, b, "a result in the large viewer")
	b.Strike("ArrowLeft")
	b.Until(`document.querySelector("dialog[open] audio") !== null`)
	b.Strike("Escape")
	b.Until(`document.querySelector("dialog[open]") === null`)

	// A result becomes an input, and the inputs of a run come back.
	b.ClickOn("gridcell", fox)
	b.ClickOn("link", "Use as input")
	b.See("button", "Painting…")
	b.Until(`document.querySelector("dialog[open] [aria-busy]") === null`) // the dialog grows with the tools that it finds
	b.ClickOn("button", "Painting…")
	b.Until(fmt.Sprintf(`location.pathname === "/create/%s"`, g.tools["painting"].ID))
	b.See("button", "Remove…")
	b.Goto(g.node.url + "/library/" + g.ids[lighthouse])
	b.ClickOn("link", "Run again")
	b.Until(fmt.Sprintf(`location.pathname === "/create/%s"`, g.tools["painting"].ID))
	b.Until(fmt.Sprintf(`[...document.querySelectorAll("textarea")].some(area => area.value === %q)`, lighthouse))
	b.Goto(g.node.url + "/library")
	wantTiles(t, b, allTiles...)
}

// saved waits for a file that the browser saves, and returns its bytes.
func saved(t *testing.T, folder, pattern string) []byte {
	t.Helper()
	file, err := os.ReadFile(awaitFile(t, folder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// unpack returns the files of a ZIP file by their names.
func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	packed, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range packed.File {
		reader, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[entry.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// downloadResults saves one result, and several in one ZIP file.
func downloadResults(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	folder := t.TempDir()
	b.SaveTo(folder)
	b.ClickOn("gridcell", whale)
	b.ClickOn("button", "Download")
	if got := saved(t, folder, "blue-whale-under-the-stars.png"); !bytes.Equal(got, g.files[whale]) {
		t.Errorf("the downloaded picture has %d bytes, want %d", len(got), len(g.files[whale]))
	}
	b.ClickOn("button", "Close")

	b.ClickOn("button", "Select")
	b.ClickOn("gridcell", wavesTile)
	b.ClickOn("gridcell", boat)
	b.See("toolbar", "2 selected")
	wantAccessible(t, b, "the library with a selection")
	keepLooks(t, b, "library-selection")
	b.ClickOn("button", "Download")
	b.Until(`document.body.innerText.includes("A ZIP file with 2 files was saved.")`)
	archive := saved(t, folder, "atelier-*-2-files.zip")
	files := unpack(t, archive)
	for name, prompt := range map[string]string{"01-waves-on-the-shore.mp4": waves, "02-paper-boat-on-a-large-lake.png": boat} {
		if !bytes.Equal(files[name], g.files[prompt]) {
			t.Errorf("the ZIP file has %d bytes in %s, want %d", len(files[name]), name, len(g.files[prompt]))
		}
	}
	if len(files) != 2 {
		t.Errorf("the ZIP file has %d files, want 2", len(files))
	}
	b.Strike("Escape")
	b.Until(`document.querySelector("[role=toolbar]") === null`)
}

// deleteResults deletes results, brings them back, and deletes one for good.
func deleteResults(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	left := slices.DeleteFunc(slices.Clone(allTiles), func(name string) bool { return name == whale })
	b.ClickOn("gridcell", whale)
	b.ClickOn("button", "Delete")
	wantTiles(t, b, left...)
	b.See("button", "Undo…")
	b.Strike("z")
	wantTiles(t, b, allTiles...)
	b.Until(`document.body.innerText.includes("1 item is back.")`)

	// A range of three, by a click with Shift.
	b.ClickOn("button", "Close")
	b.ClickOn("button", "Select")
	b.ClickOn("gridcell", boat)
	b.Strike("ArrowRight", "ArrowRight", "Shift+X")
	b.See("toolbar", "3 selected")
	b.ClickOn("button", "Delete")
	wantTiles(t, b, noPrompt, wavesTile, rainTile, fox)
	b.ClickOn("button", "Undo…")
	wantTiles(t, b, allTiles...)
	b.Reload()
	wantTiles(t, b, allTiles...)

	// For good: the toast goes, and so does the result.
	b.ClickOn("gridcell", whale)
	b.Strike("Delete")
	wantTiles(t, b, left...)
	b.ClickOn("button", "Dismiss")
	b.Reload()
	wantTiles(t, b, left...)
	g.node.get("/api/v2/library/"+g.ids[whale]).want(t, 404)
}

// pinResults pins two results to a new board.
func pinResults(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	b.Goto(g.node.url + "/library")
	b.ClickOn("gridcell", fox)
	b.ClickOn("button", "Pin")
	b.See("heading", "Pin to a board")
	b.TypeInto("textbox", "Name of a new board", "Animals")
	wantAccessible(t, b, "the dialog that pins")
	b.ClickOn("button", "Create and pin")
	b.Until(`document.body.innerText.includes("Pinned to Animals.")`)
	b.ClickOn("button", "Pin")
	b.ClickOn("button", "Animals…")
	b.Until(`document.querySelector("dialog[open]") === null`)
	b.ClickOn("button", "Open")
	b.Until(`location.pathname.startsWith("/boards/")`)
	b.Until(`document.querySelectorAll("img").length >= 2`)
	b.Goto(g.node.url + "/library")
}

// uploadFiles uploads a picture and a file that is none, and deletes the picture.
func uploadFiles(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	b.ClickOn("button", "Uploads")
	wantQuery(b, "?view=uploads")
	b.See("heading", "No uploads yet")
	wantAccessible(t, b, "uploads without a file")

	folder := t.TempDir()
	photo := filepath.Join(folder, "Garden in May.png")
	page := filepath.Join(folder, "page.html")
	write(t, folder, "Garden in May.png", string(plainPicture(t, 320, 200, color.NRGBA{40, 120, 60, 255})))
	write(t, folder, "page.html", "<html></html>")
	b.SetFiles("input[type=file]", photo, page)
	wantTiles(t, b, "Garden in May.png")
	b.See("button", "Dismiss page.html")
	b.Until(`document.body.innerText.includes("This kind of file cannot be uploaded.")`)
	wantAccessible(t, b, "uploads with a file that is refused")
	keepLooks(t, b, "library-uploads")
	b.ClickOn("button", "Dismiss page.html")
	b.Until(`!document.body.innerText.includes("page.html")`)

	b.ClickOn("gridcell", "Garden in May.png")
	b.See("link", "Use as input")
	b.Strike("Delete")
	b.See("heading", "No uploads yet")
	b.Strike("z")
	wantTiles(t, b, "Garden in May.png")
	b.Reload()
	wantTiles(t, b, "Garden in May.png")
	b.ClickOn("gridcell", "Garden in May.png")
	b.Strike("Delete")
	b.See("heading", "No uploads yet")
	b.ClickOn("button", "Dismiss")
	watch.Until(t, "the end of the upload", func() bool { return len(g.node.json("/api/v2/uploads")["data"].([]any)) == 0 })
}

// followLinks opens results by their addresses: one that is there, one that was
// deleted, and one that never was.
func followLinks(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	b.Goto(g.node.url + "/library/" + strings.ReplaceAll(g.ids[lighthouse], ":", "%3A") + "?type=IMG")
	b.Until(fmt.Sprintf(`document.querySelector("aside")?.innerText.includes(%q)`, lighthouse))
	b.Until(`document.querySelector("[role=grid]").getAttribute("aria-activedescendant") !== null`)

	for _, id := range []string{g.ids[whale], "no-such-result"} {
		b.Goto(g.node.url + "/library/" + id)
		b.Until(`document.querySelector("aside")?.innerText.includes("This result was deleted, or belongs to another account.")`)
		wantAccessible(t, b, "the address of a result that is not there")
	}
	keepLooks(t, b, "library-gone")
	b.ClickOn("button", "Show the whole library")
	b.Until(`location.pathname === "/library"`)
}

// TestStudioLibraryKeys does everything in the library with the keyboard alone.
func TestStudioLibraryKeys(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		g := newGallerySite(t, s)
		b := signIn(t, g.node, "anna@example.com", "/library")
		wantTiles(t, b, allTiles...)
		b.KeysOnly()

		openByKeys(g, b)
		filterByKeys(t, g, b)
		selectByKeys(t, b)
		pinByKeys(b)
		uploadByKeys(t, g, b)
		scrubByKeys(t, b)
		deleteByKeys(t, g, b)
		reuseByKeys(g, b)

		wantNoComplaints(t, b)
		s.check()
	})
}

// gridHasFocus is a script that says whether the keys go to the grid.
const gridHasFocus = `document.activeElement.getAttribute("role") === "grid"`

// openByKeys opens results: their details, their link, and the large viewer.
func openByKeys(g *gallerySite, b *browser.Browser) {
	// The grid has the focus: arrows move, Enter opens the details, Escape closes them.
	b.Until(gridHasFocus)
	b.Strike("Home", "ArrowRight", "Enter")
	b.Until(fmt.Sprintf(`decodeURIComponent(location.pathname) === %q`, "/library/"+g.ids[waves]))
	b.TabTo("Video", waves)
	b.Strike("Space")
	b.Until(`document.querySelector("aside video").currentTime > 0`)

	// The link is copied, and pasted into the search.
	b.TabTo("button", "Copy link")
	b.Strike("Enter")
	b.Until(`document.body.innerText.includes("The link is copied.")`)
	b.Strike("/", "Ctrl+v")
	b.Until(fmt.Sprintf(`decodeURIComponent(document.activeElement.value) === %q`, g.node.url+"/library/"+g.ids[waves]))
	b.Strike("Escape")
	wantQuery(b, "")
	b.TabTo("grid", "Results")
	b.Strike("Escape")
	b.Until(`location.pathname === "/library" && ` + gridHasFocus)

	// Space shows a result large, and arrows go on to the next: the first one is
	// pressed as soon as the page shows the result.
	showsLarge := func(alt string) {
		b.Until(fmt.Sprintf(`document.querySelector("dialog[open] img")?.alt === %q`, alt))
	}
	b.Eval(`new MutationObserver((_, observer) => {
		if (document.querySelector("dialog[open] img")) {
			observer.disconnect();
			dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft"}));
		}
	}).observe(document.body, {childList: true, subtree: true})`)
	b.Strike("End", "Space")
	showsLarge(whale)
	b.Strike("ArrowRight")
	showsLarge(fox)
	b.Strike("ArrowLeft")
	showsLarge(whale)
	b.Strike("Escape")
	b.Until(`document.querySelector("dialog[open]") === null && ` + gridHasFocus)
}

// filterByKeys sets every filter and takes it back.
func filterByKeys(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	b.Strike("f")
	b.See("gridcell", whale+", favourite")
	b.TabTo("button", "Favourites")
	b.Strike("Space")
	wantTiles(t, b, whale+", favourite")
	b.Strike("f")
	b.See("gridcell", whale)
	b.Strike("Space")
	wantTiles(t, b, allTiles...)

	for _, kind := range []struct {
		name, query string
		tiles       []string
	}{
		{"Pictures", "?type=IMG", []string{noPrompt, boat, lighthouse, whale, fox}},
		{"Video", "?type=VID", []string{wavesTile}},
		{"Sound", "?type=AUDIO", []string{rainTile}},
		{"3D", "?type=ASSET_3D", nil},
	} {
		b.TabTo("button", kind.name)
		b.Strike("Space")
		wantQuery(b, kind.query)
		wantTiles(t, b, kind.tiles...)
	}
	dropFilterByKeys(t, b, "Without “3D”: 7 results")

	for _, menu := range []struct {
		name, entry, chosen, any string
		tiles                    []string
	}{
		{"Tool", "Noise", "Tool: Noise", "Any tool", []string{rainTile}},
		{"Shape", "Square, 1:1", "Shape: Square, 1:1", "Any shape", []string{noPrompt, wavesTile, boat, fox}},
		{"Size", "2K", "Size: 2K", "Any size", []string{boat}},
		{"Time: Any time", "Today", "Time: Today", "Any time", allTiles},
		{"Model", "Atelier's own model", "Model: Atelier's own model", "Any model", []string{boat, lighthouse, whale, fox}},
	} {
		chooseByKeys(t, b, menu.name, menu.entry)
		b.Until(`location.search !== ""`)
		wantTiles(t, b, menu.tiles...)
		chooseByKeys(t, b, menu.chosen, menu.any)
		wantQuery(b, "")
		wantTiles(t, b, allTiles...)
	}
	chooseByKeys(t, b, "Order", "Oldest first")
	wantQuery(b, "?sort=oldest")
	wantTiles(t, b, fox, whale, lighthouse, boat, rainTile, wavesTile, noPrompt)
	chooseByKeys(t, b, "Order", "Newest first")
	wantTiles(t, b, allTiles...)

	// Days are typed: the first alone, then also the last.
	chooseByKeys(t, b, "Time: Any time", "From day to day…")
	b.TabTo("Date", "First day")
	b.Type("03032020")
	b.TabTo("button", "Show")
	b.Strike("Enter")
	wantQuery(b, "?from=2020-03-03")
	wantTiles(t, b, allTiles...)
	chooseByKeys(t, b, "Time: From…", "From day to day…")
	b.TabTo("Date", "Last day")
	b.Type("04042020")
	b.Strike("Enter")
	wantQuery(b, "?from=2020-03-03&until=2020-04-04")
	dropFilterByKeys(t, b, "Without “…")

	// Words; the key that leads to the search is not typed into it.
	b.Strike("/")
	b.Until(`document.activeElement.getAttribute("aria-label") === "Search prompts"`)
	b.Type("lighthouse")
	wantQuery(b, "?q=lighthouse")
	wantTiles(t, b, lighthouse)
	b.Strike("Escape")
	wantTiles(t, b, allTiles...)
	b.Type("submarine")
	dropFilterByKeys(t, b, "Without “words: submarine”: 7 results")
}

// dropFilterByKeys drops a filter on the page that says that nothing fits.
func dropFilterByKeys(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	b.See("heading", "No result fits all filters")
	b.TabTo("button", name)
	b.Strike("Enter")
	wantQuery(b, "")
	wantTiles(t, b, allTiles...)
}

// selectByKeys selects three results and saves them in a ZIP file.
func selectByKeys(t *testing.T, b *browser.Browser) {
	t.Helper()
	folder := t.TempDir()
	b.SaveTo(folder)
	b.TabTo("grid", "Results")
	b.Strike("Home", "x", "ArrowRight", "ArrowRight", "Shift+X")
	b.See("toolbar", "3 selected")
	b.Strike("d")
	if files := unpack(t, saved(t, folder, "atelier-*-3-files.zip")); len(files) != 3 {
		t.Errorf("the ZIP file has %d files, want 3", len(files))
	}
	b.Strike("Escape")
	b.Until(`document.querySelector("[role=toolbar]") === null`)
}

// pinByKeys pins a result to a new board.
func pinByKeys(b *browser.Browser) {
	b.TabTo("grid", "Results")
	b.Strike("End", "p")
	b.See("heading", "Pin to a board")
	b.TabTo("textbox", "Name of a new board")
	b.Type("Keys")
	b.Strike("Enter")
	b.Until(`document.body.innerText.includes("Pinned to Keys.")`)
	b.Until(`document.querySelector("dialog[open]") === null`)
}

// uploadByKeys uploads a picture and a file that is none, and deletes the picture.
func uploadByKeys(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, "Garden.png", string(plainPicture(t, 320, 200, color.NRGBA{40, 120, 60, 255})))
	write(t, folder, "page.html", "<html></html>")
	b.TabTo("button", "Uploads")
	b.Strike("Enter")
	b.See("heading", "No uploads yet")
	b.TabTo("button", "Upload")
	b.ChooseFiles(func() { b.Strike("Enter") }, filepath.Join(folder, "Garden.png"), filepath.Join(folder, "page.html"))
	wantTiles(t, b, "Garden.png")
	b.TabTo("button", "Dismiss page.html")
	b.Strike("Enter")
	b.Until(`!document.body.innerText.includes("page.html")`)

	b.TabTo("grid", "Uploads")
	b.Strike("Home", "Delete")
	b.See("heading", "No uploads yet")
	b.Strike("z")
	wantTiles(t, b, "Garden.png")
	b.TabTo("grid", "Uploads")
	b.Strike("Home", "Delete")
	b.See("heading", "No uploads yet")
	b.TabTo("button", "Dismiss")
	b.Strike("Enter")
	watch.Until(t, "the end of the upload", func() bool { return len(g.node.json("/api/v2/uploads")["data"].([]any)) == 0 })
	b.TabTo("button", "All")
	b.Strike("Enter")
	wantTiles(t, b, allTiles...)
}

// scrubByKeys moves the timeline of a list that is longer than its window, and
// goes on with the results that are then in view.
func scrubByKeys(t *testing.T, b *browser.Browser) {
	t.Helper()
	b.Size(1000, 300) // as with a large zoom
	b.TabTo("grid", "Results")
	b.Strike("Home")
	at := func(part, scrolled string) {
		t.Helper()
		b.Until(fmt.Sprintf(`(slider => slider.ariaValueNow %s && slider.ariaValueText !== "")(document.querySelector("[role=slider]"))`, part))
		b.Until(fmt.Sprintf(`(grid => %s)(document.querySelector("[role=grid]"))`, scrolled))
	}
	b.TabTo("slider", "Timeline")
	b.Strike("End")
	at(`=== "100"`, `Math.abs(grid.scrollTop + grid.clientHeight - grid.scrollHeight) < 2`)
	b.Strike("PageUp")
	at(`=== "90"`, `grid.scrollTop > 0`)
	b.Strike("ArrowUp")
	at(`=== "88"`, `grid.scrollTop > 0`)
	b.Strike("Home")
	at(`=== "0"`, `grid.scrollTop === 0`)
	b.Strike("End")
	at(`=== "100"`, `grid.scrollTop > 0`)

	// The active result is now out of view: an arrow chooses one in view.
	b.Strike("Shift+Tab")
	b.Until(gridHasFocus)
	b.Strike("ArrowDown")
	b.Until(`(tile => tile !== null && tile.dataset.index !== "0" && document.querySelector("[role=grid]").scrollTop > 0)(
		document.getElementById(document.activeElement.getAttribute("aria-activedescendant")))`)
	b.Size(1280, 860)
	b.See("gridcell", fox)
}

// deleteByKeys deletes a result, brings it back, and deletes it for good.
func deleteByKeys(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	left := slices.DeleteFunc(slices.Clone(allTiles), func(name string) bool { return name == whale })
	b.TabTo("grid", "Results")
	b.Strike("End", "ArrowLeft", "Delete")
	wantTiles(t, b, left...)
	b.Strike("z")
	wantTiles(t, b, allTiles...)
	b.Strike("End", "ArrowLeft", "Delete")
	wantTiles(t, b, left...)
	b.TabTo("button", "Undo…")
	b.Strike("Enter")
	wantTiles(t, b, allTiles...)
	b.Until(gridHasFocus)

	// For good: the toast goes, and so does the result. The keys go on in the grid.
	b.Strike("End", "ArrowLeft", "Delete")
	wantTiles(t, b, left...)
	b.See("button", "Undo…")
	b.TabTo("button", "Dismiss")
	b.Strike("Enter")
	b.Until(gridHasFocus)
	b.Reload()
	wantTiles(t, b, left...)
	g.node.get("/api/v2/library/"+g.ids[whale]).want(t, 404)
}

// reuseByKeys runs a result again, and takes one as the input of a tool.
func reuseByKeys(g *gallerySite, b *browser.Browser) {
	b.TabTo("grid", "Results")
	b.Strike("End", "r")
	b.Until(fmt.Sprintf(`location.pathname === "/create/%s"`, g.tools["painting"].ID))
	b.Until(fmt.Sprintf(`[...document.querySelectorAll("textarea")].some(area => area.value === %q)`, fox))
	b.Strike("Ctrl+k")
	b.See("combobox", "Find a tool, a page or an action")
	b.Type("librar")
	b.See("option", "Library")
	b.Strike("Enter")
	b.Until(`location.pathname === "/library"`)
	b.See("gridcell", fox)
	b.TabTo("grid", "Results")
	b.Strike("End", "i")
	b.Until(`!location.pathname.startsWith("/library")`)
	b.See("button", "Remove…")
}

// chooseByKeys opens a menu with the keys and chooses an entry.
func chooseByKeys(t *testing.T, b *browser.Browser, menu, entry string) {
	t.Helper()
	b.TabTo("button", menu)
	b.Strike("Enter")
	b.Until(`document.activeElement.role?.startsWith("menuitem") === true`)
	var seen []string
	for range 50 {
		at := b.Eval(`document.activeElement.innerText.trim()`)
		if at == entry {
			b.Strike("Enter")
			return
		}
		seen = append(seen, at)
		b.Strike("ArrowDown")
	}
	t.Fatalf("the keys do not lead to the entry %q of the menu %q, but to %q", entry, menu, seen)
}
