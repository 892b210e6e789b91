package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"atelier/client"
	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// The tests in this file make, change and run flows in a browser, without a line
// of YAML.

// savedFlow is a flow as the API returns it.
type savedFlow struct {
	ID      string
	Slug    string
	Name    string
	Version int
	Results []string
	Steps   []struct {
		ID         string
		Tool       string
		Inputs     map[string]any
		NumResults any `json:"num_results"`
	}
}

// flowOf reads the flow that the editor shows.
func flowOf(t *testing.T, n *node, b *browser.Browser) savedFlow {
	t.Helper()
	answer := n.get("/api/v2" + b.Eval(`location.pathname`))
	answer.want(t, 200)
	var f savedFlow
	if err := json.Unmarshal(answer.body, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// wantSaid waits until the head of the editor says something, such as a price.
func wantSaid(t *testing.T, b *browser.Browser, words string) {
	t.Helper()
	b.Until(fmt.Sprintf(`document.querySelector("main header")?.innerText.includes(%q)`, words))
}

// handle is a script that finds an end of a line at a node.
func handle(step, name string) string {
	return fmt.Sprintf(`document.querySelector('.react-flow__handle[data-nodeid=%q][data-handleid=%q]')`, step, name)
}

// drawLine connects two handles with the mouse.
func drawLine(t *testing.T, b *browser.Browser, from, to string) {
	t.Helper()
	start := rectOf(t, b, from)
	end := rectOf(t, b, to)
	fromX, fromY := start.middle()
	toX, toY := end.middle()
	b.Drag(fromX, fromY, toX, toY)
}

// wantNodes waits until the canvas has a number of nodes and lines.
func wantNodes(t *testing.T, b *browser.Browser, nodes, lines int) {
	t.Helper()
	b.Until(fmt.Sprintf(`document.querySelectorAll(".react-flow__node").length === %d && document.querySelectorAll(".react-flow__edge").length === %d`, nodes, lines))
}

// openStep opens the panel of a step by a click on its node.
func openStep(t *testing.T, b *browser.Browser, id string) {
	t.Helper()
	selectNode(t, b, fmt.Sprintf(`document.querySelector('.react-flow__node[data-id=%q]')`, id))
	b.See("complementary", "Step "+id)
}

// TestStudioFlows makes a flow of a result in the library, changes it on the
// canvas and in the panel, saves it and runs it, comes back to it, and deletes
// it.
func TestStudioFlows(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		g := openGallerySite(t, s)
		g.run("gradient", "gradient", map[string]any{"style": "mesh", "size": map[string]any{"width": 512, "height": 512}})
		g.run("resize", "resized", map[string]any{"picture": map[string]any{"kind": "LIBRARY_REF", "id": g.ids["gradient"]}})

		b := signIn(t, g.node, "anna@example.com", "/flows")
		b.See("heading", "No flows yet")
		wantAccessible(t, b, "the empty list of flows")
		b.ClickOn("link", "New flow")
		b.See("heading", "Begin with a step: choose a tool.")
		wantAccessible(t, b, "a new flow")
		keepView(t, b, "flow-new")

		draftFlow(t, g, b)
		changeFlow(t, b)
		keepFlow(t, g, b)
		runFlow(t, b)
		runElsewhere(t, g, flowOf(t, g.node, b))
		runPartOfFlow(t, g, b)
		meetOthers(t, g, b)
		deleteFlow(t, b)

		wantNoComplaints(t, b)
		s.check()
	})
}

// draftFlow makes a flow of the runs that led to a result.
func draftFlow(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	b.Goto(g.node.url + "/library/" + g.ids["resized"])
	b.ClickOn("button", "Save as a flow")
	b.Until(`location.pathname === "/flows/new"`)
	wantNodes(t, b, 3, 1)
	wantSaid(t, b, "Not saved")
	wantSaid(t, b, "No problems")
	wantSaid(t, b, "1 token at most")
	b.TypeInto("textbox", "Name of the flow", "Poster")
}

// changeFlow changes values in the panel, and adds a step on the canvas.
func changeFlow(t *testing.T, b *browser.Browser) {
	t.Helper()
	openStep(t, b, "gradient")
	b.TypeInto("spinbutton", "Number of results", "2")
	wantSaid(t, b, "2 tokens at most")
	openStep(t, b, "resize")
	b.ClickOn("radio", "Stretch")
	b.TypeInto("textbox", "Name of the step", "smaller")
	b.Press("Enter")
	b.See("complementary", "Step smaller")
	wantNodes(t, b, 3, 1)

	// A step whose input nothing feeds is a problem, until a line is drawn.
	b.ClickOn("button", "Add a step")
	b.TypeInto("searchbox", "Search tools", "contact-sheet")
	b.Until(`document.querySelectorAll("dialog li").length === 1`)
	b.Press("Enter")
	b.See("complementary", "Step contact_sheet")
	wantNodes(t, b, 4, 1)
	wantSaid(t, b, "1 problem")
	wantSaid(t, b, "3 tokens at most")
	b.ClickOn("button", "1 problem")
	b.See("button", "Step contact_sheet The field pictures of contact-sheet is required.")
	wantAccessible(t, b, "a flow with a problem")
	keepView(t, b, "flow-problem")
	drawLine(t, b, handle("smaller", "out"), handle("contact_sheet", "in:pictures"))
	wantNodes(t, b, 4, 2)
	wantSaid(t, b, "No problems")

	// A line that would make a circle is refused with a reason.
	drawLine(t, b, handle("contact_sheet", "out"), handle("smaller", "in:picture"))
	b.Until(`document.body.innerText.includes("this would be a circle")`)
	wantNodes(t, b, 4, 2)

	// Lines can be taken away with keys, and that can be undone.
	b.Focus("group", "From results of smaller to pictures of contact_sheet")
	b.Press("Delete")
	wantNodes(t, b, 4, 1)
	b.Press("Ctrl+z")
	wantNodes(t, b, 4, 2)
	b.Press("Ctrl+Shift+z")
	wantNodes(t, b, 4, 1)

	// Without the mouse, the panel makes the same connection.
	b.Focus("group", "Step contact_sheet: Contact sheet…")
	b.Press("Enter")
	b.See("complementary", "Step contact_sheet")
	b.Choose("Where “Pictures” comes from", "smaller")
	wantNodes(t, b, 4, 2)
	b.Choose("Where “Title” comes from", "A new field of the form")
	wantNodes(t, b, 4, 3)
	wantSaid(t, b, "No problems")
	wantAccessible(t, b, "the panel of a step")
	keepView(t, b, "flow-step")
	b.ClickOn("button", "Close the panel")
	b.ClickOn("button", "Form…")
	b.See("complementary", "Form of the flow")
	b.ClickOn("button", "Title…")
	b.TypeInto("textbox", "Label", "Headline")
	b.Until(`document.querySelector(".react-flow__node-form").innerText.includes("Headline")`)
	wantAccessible(t, b, "the form of a flow")
	keepView(t, b, "flow-form")
}

// keepFlow saves the flow, and compares it with that of the API.
func keepFlow(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	b.ClickOn("button", "Save")
	b.Until(`/^\/flows\/(?!new$)./.test(location.pathname)`)
	wantSaid(t, b, "Saved")
	f := flowOf(t, g.node, b)
	if f.Name != "Poster" || len(f.Steps) != 3 || f.Steps[1].ID != "smaller" || fmt.Sprint(f.Steps[0].NumResults) != "2" {
		t.Fatalf("saved: %+v", f)
	}
	inputs := f.Steps[2].Inputs
	if got := fmt.Sprint(inputs["pictures"]); got != "map[result:all step:smaller]" {
		t.Errorf("the pictures come from %s", got)
	}
	if got := fmt.Sprint(f.Steps[1].Inputs["fit"]); got != "stretch" {
		t.Errorf("the fit is %s", got)
	}
	b.Reload()
	wantNodes(t, b, 4, 3)
	wantSaid(t, b, "Saved")
	keepLooks(t, b, "flow")
}

// runFlow runs the flow from its form, and sees the results of its steps in both
// pages.
func runFlow(t *testing.T, b *browser.Browser) {
	t.Helper()
	flow := b.Eval(`location.pathname`)
	b.ClickOn("button", "Run this flow")
	b.Until(`location.pathname.startsWith("/create/")`)
	b.TypeInto("textbox", "Headline", "Spring")
	b.ClickOn("button", "Create…")
	b.Until(`document.querySelector("article")?.innerText.includes("Steps: 3 of 3 done")`)
	b.Until(`document.querySelector("article [data-result] img")?.complete`)
	wantAccessible(t, b, "the run of a flow")
	keepView(t, b, "flow-run")

	b.ClickOn("link", "Flows")
	b.See("heading", "Flows")
	wantAccessible(t, b, "the list of flows")
	keepLooks(t, b, "flows")
	b.ClickOn("link", "Edit “Poster”")
	b.Until(`location.pathname === ` + fmt.Sprintf("%q", flow))
	b.Until(`[...document.querySelectorAll(".react-flow__node-step")].filter(e => e.innerText.includes("Done") && e.querySelector("a img")).length === 3`)
	wantAccessible(t, b, "a flow with results")
	keepView(t, b, "flow-results")
}

// runElsewhere runs the flow that was saved in the browser over plain HTTP and
// with the command line.
func runElsewhere(t *testing.T, g *gallerySite, f savedFlow) {
	t.Helper()
	hash := g.node.json("/api/v2/tools/" + f.ID)["tool_fields_hash"]
	order := fmt.Sprintf(`{"tool_id": %q, "tool_fields_hash": %q, "inputs": {"title": "By hand"}}`, f.ID, hash)
	id := g.node.call("POST", "/api/v2/generate", order).want(t, 202)["request_id"].(string)
	run, err := g.client.Runs.Wait(t.Context(), id, client.Watch{})
	if err != nil || run.Status != "succeeded" || len(run.Outputs) != 1 || len(run.Steps) != 3 {
		t.Errorf("the run over HTTP = %+v, %v", run, err)
	}
	startCommand(t, g.node, "run", f.Slug, "title=By command").end(0, "succeeded")
}

// runPartOfFlow runs a step with what it needs, which leaves no flow behind, also
// if somebody leaves the page instead.
func runPartOfFlow(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	wantFlows := func(count int) {
		t.Helper()
		watch.Until(t, fmt.Sprintf("%d flows", count), func() bool {
			return len(g.node.json("/api/v2/flows")["data"].([]any)) == count
		})
	}
	openStep(t, b, "smaller")
	b.ClickOn("button", "Run up to here")
	b.See("button", "Start…")
	wantFlows(2)
	b.Reload()
	wantFlows(1)

	// The browser keeps the page, to show it again.
	openStep(t, b, "smaller")
	b.ClickOn("button", "Run up to here")
	b.See("button", "Start…")
	b.Eval(`dispatchEvent(new PageTransitionEvent("pagehide", {persisted: true}))`)
	b.Until(`!document.querySelector("dialog[open]")`)
	wantFlows(1)

	b.ClickOn("button", "Run up to here")
	b.ClickOn("button", "Start…")
	b.Until(`document.body.innerText.includes("The run has started.")`)
	b.Until(`[...document.querySelectorAll(".react-flow__node-step")].filter(e => e.innerText.includes("Done")).length === 2`)
	wantFlows(1)
}

// meetOthers changes the flow while somebody else does, and goes back to an older
// version.
func meetOthers(t *testing.T, g *gallerySite, b *browser.Browser) {
	t.Helper()
	f := flowOf(t, g.node, b)
	var change map[string]any
	if err := json.Unmarshal(g.node.get("/api/v2/flows/"+f.ID).body, &change); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"id", "slug", "team_id", "uid", "created", "updated"} {
		delete(change, key)
	}
	change["description"] = "Made elsewhere."
	body, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	g.node.call("PUT", "/api/v2/flows/"+f.ID, string(body)).want(t, 200)

	b.TypeInto("textbox", "Name of the flow", "Poster of mine")
	wantSaid(t, b, "Not saved")
	b.ClickOn("button", "Save")
	b.See("heading", "Somebody else has changed this flow")
	b.ClickOn("button", "Load theirs")
	wantSaid(t, b, "Saved")
	b.ClickOn("button", "Close the panel")
	b.Until(`document.querySelector("aside textarea").value === "Made elsewhere."`)

	b.ClickOn("button", "More")
	b.ClickOn("menuitem", "Versions")
	b.ClickOn("button", "Restore version 1")
	wantSaid(t, b, "Not saved")
	b.ClickOn("link", "Library")
	b.See("heading", "Leave without saving?")
	b.ClickOn("button", "Cancel")
	b.ClickOn("button", "Save")
	wantSaid(t, b, "Saved")
	if got := flowOf(t, g.node, b).Version; got != 3 {
		t.Errorf("the flow has version %d, want 3", got)
	}
}

// deleteFlow deletes the flow in the list.
func deleteFlow(t *testing.T, b *browser.Browser) {
	t.Helper()
	b.Size(390, 844)
	b.See("button", "smaller Resize")
	wantAccessible(t, b, "a flow in a small window")
	b.ClickOn("link", "Flows")
	b.ClickOn("button", "Delete “Poster”")
	b.See("heading", "Delete “Poster”?")
	b.ClickOn("button", "Delete")
	b.See("heading", "No flows yet")
	b.Size(1280, 860)
}
