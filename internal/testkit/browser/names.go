package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The methods in this file find elements as a screen reader does: by role and
// accessible name, such as the button "Create".

// axNode is what the tests need of a node in the accessibility tree. The
// library's own type refuses nodes with properties that it does not know, such
// as those of newer browsers.
type axNode struct {
	Ignored bool              `json:"ignored"`
	DOMNode cdp.BackendNodeID `json:"backendDOMNodeId"`
	Name    struct {
		Value string `json:"value"`
	} `json:"name"`
}

// named returns the elements with a role and a name, in the order of the page. A
// name that ends in "…" matches every name that begins with the rest.
func (b *Browser) named(ctx context.Context, role, name string) ([]axNode, error) {
	root, err := dom.GetDocument().Do(ctx)
	if err != nil {
		return nil, err
	}
	prefix, open := strings.CutSuffix(name, "…")
	query := accessibility.QueryAXTree().WithNodeID(root.NodeID).WithRole(role)
	if !open {
		query = query.WithAccessibleName(name)
	}
	var answer struct {
		Nodes []axNode `json:"nodes"`
	}
	if err := cdp.Execute(ctx, accessibility.CommandQueryAXTree, query, &answer); err != nil {
		return nil, err
	}

	var found []axNode
	for _, node := range answer.Nodes {
		if node.Ignored || node.DOMNode == 0 {
			continue
		}
		if open && !strings.HasPrefix(node.Name.Value, prefix) {
			continue
		}
		found = append(found, node)
	}
	return found, nil
}

// list returns the elements with a role and a name. The page may be replaced in
// between, so a query that fails is repeated.
func (b *Browser) list(role, name string) []axNode {
	b.t.Helper()
	for w := newWait(longPatience); ; w.pause() {
		nodes, err := b.query(role, name)
		if err == nil {
			return nodes
		}
		if w.isOver() {
			b.t.Fatalf("browser: list %s %q: %v", role, name, err)
		}
	}
}

// query is named in the window.
func (b *Browser) query(role, name string) (nodes []axNode, err error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	err = chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		nodes, err = b.named(ctx, role, name)
		return err
	}))
	return nodes, err
}

// Names returns the names of the elements with a role.
func (b *Browser) Names(role string) []string {
	b.t.Helper()
	var names []string
	for _, node := range b.list(role, "…") {
		names = append(names, node.Name.Value)
	}
	return names
}

// Count returns the number of elements with a role and a name.
func (b *Browser) Count(role, name string) int {
	b.t.Helper()
	return len(b.list(role, name))
}

// See waits until an element with a role and a name is there.
func (b *Browser) See(role, name string) {
	b.t.Helper()
	b.await(role, name)
}

// await waits for an element and returns its node. The page may be replaced in
// between, so a query that fails is repeated.
func (b *Browser) await(role, name string) cdp.BackendNodeID {
	b.t.Helper()
	for w := newWait(longPatience); ; w.pause() {
		nodes, err := b.query(role, name)
		if err == nil && len(nodes) > 0 {
			return nodes[0].DOMNode
		}
		if w.isOver() {
			b.t.Fatalf("browser: there is no %s %q at %s (%v); there are %q:\n%s", role, name, b.URL(), err, b.Names(role), b.Text())
		}
	}
}

// longPatience limits waiting for an element that appears after work of the
// service.
const longPatience = 4 * time.Minute

// wait is a series of looks at a page. The pauses between them become longer,
// because each look takes the page some of the processor's time, which the page
// and the service need themselves.
type wait struct {
	deadline time.Time
	next     time.Duration
}

func newWait(limit time.Duration) *wait {
	return &wait{deadline: time.Now().Add(limit), next: 20 * time.Millisecond}
}

func (w *wait) pause() {
	time.Sleep(w.next)
	w.next = min(2*w.next, 200*time.Millisecond)
}

func (w *wait) isOver() bool { return time.Now().After(w.deadline) }

// ClickOn clicks on the first element with a role and a name, once it is there,
// and counts the click.
func (b *Browser) ClickOn(role, name string) {
	b.t.Helper()
	b.refuseIfKeysOnly("ClickOn")
	node := b.await(role, name)
	b.run(fmt.Sprintf("click on %s %q", role, name), chromedp.ActionFunc(func(ctx context.Context) error {
		if err := dom.ScrollIntoViewIfNeeded().WithBackendNodeID(node).Do(ctx); err != nil {
			return err
		}
		at, err := awaitRest(ctx, func() (point, error) { return centerOf(ctx, node) })
		if err != nil {
			return err
		}
		return chromedp.MouseClickXY(at.x, at.y).Do(ctx)
	}))
	b.clicks++
}

// Clicks returns the number of clicks of ClickOn.
func (b *Browser) Clicks() int { return b.clicks }

// centerOf returns the center of an element in the window.
func centerOf(ctx context.Context, node cdp.BackendNodeID) (point, error) {
	quads, err := dom.GetContentQuads().WithBackendNodeID(node).Do(ctx)
	if err != nil {
		return point{}, err
	}
	if len(quads) == 0 {
		return point{}, fmt.Errorf("the element cannot be seen")
	}
	q := quads[0]
	return point{(q[0] + q[4]) / 2, (q[1] + q[5]) / 2}, nil
}

// TypeInto replaces the text of the first field with a role and a name, as a
// person does.
func (b *Browser) TypeInto(role, name, text string) {
	b.t.Helper()
	b.refuseIfKeysOnly("TypeInto")
	node := b.await(role, name)
	b.run(fmt.Sprintf("type into %s %q", role, name), chromedp.ActionFunc(func(ctx context.Context) error {
		object, err := dom.ResolveNode().WithBackendNodeID(node).Do(ctx)
		if err != nil {
			return err
		}
		_, failed, err := runtime.CallFunctionOn(`function () { this.focus(); this.select?.() }`).WithObjectID(object.ObjectID).Do(ctx)
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		return input.InsertText(text).Do(ctx)
	}))
}

// Choose chooses the option with a text in the first list with a name, once both
// are there.
func (b *Browser) Choose(name, option string) {
	b.t.Helper()
	b.refuseIfKeysOnly("Choose")
	script := `function () {
		const wanted = [...this.options].find(one => one.label === ` + quote(option) + ` && !one.disabled);
		if (wanted) {
			this.value = wanted.value;
			this.dispatchEvent(new Event("change", {bubbles: true}));
		}
		return wanted !== undefined;
	}`
	for w := newWait(longPatience); ; w.pause() {
		node := b.await("combobox", name)
		chosen := false
		b.run(fmt.Sprintf("choose %q in %q", option, name), chromedp.ActionFunc(func(ctx context.Context) error {
			object, err := dom.ResolveNode().WithBackendNodeID(node).Do(ctx)
			if err != nil {
				return err
			}
			said, failed, err := runtime.CallFunctionOn(script).WithObjectID(object.ObjectID).WithReturnByValue(true).Do(ctx)
			if err != nil {
				return err
			}
			if failed != nil {
				return failed
			}
			return json.Unmarshal(said.Value, &chosen)
		}))
		if chosen {
			return
		}
		if w.isOver() {
			b.t.Fatalf("browser: the list %q at %s has no option %q:\n%s", name, b.URL(), option, b.Text())
		}
	}
}

// Focus gives the focus to the first element with a role and a name.
func (b *Browser) Focus(role, name string) {
	b.t.Helper()
	b.refuseIfKeysOnly("Focus")
	node := b.await(role, name)
	b.run(fmt.Sprintf("focus %s %q", role, name), dom.Focus().WithBackendNodeID(node))
}

// SetFiles chooses files in the first file field that matches the selector.
func (b *Browser) SetFiles(selector string, files ...string) {
	b.t.Helper()
	b.refuseIfKeysOnly("SetFiles")
	b.find(selector)
	b.run("choose files", chromedp.ActionFunc(func(ctx context.Context) error {
		field, failed, err := runtime.Evaluate(`document.querySelector(` + quote(selector) + `)`).Do(ctx)
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		return dom.SetFileInputFiles(files).WithObjectID(field.ObjectID).Do(ctx)
	}))
}

// Until waits until a script says true.
func (b *Browser) Until(script string) {
	b.t.Helper()
	for w := newWait(longPatience); ; w.pause() {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		var said string
		err := chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
			said, err = eval(ctx, script)
			return err
		}))
		cancel()
		if err == nil && said == "true" {
			return
		}
		if w.isOver() {
			b.t.Fatalf("browser: %s is %q (%v) at %s:\n%s", script, said, err, b.URL(), b.Text())
		}
	}
}

// Reload loads the page again.
func (b *Browser) Reload() {
	b.t.Helper()
	b.leave("reload", page.Reload())
}

// Dark makes pages dark or light, as the system's setting does.
func (b *Browser) Dark(on bool) {
	b.t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	b.run("set the colour scheme", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
	}))
}

// Size sets the size of the window in pixels. A window of less than 600 is a
// phone with a touch screen.
func (b *Browser) Size(width, height int) {
	b.t.Helper()
	phone := width < 600
	b.run("resize",
		emulation.SetDeviceMetricsOverride(int64(width), int64(height), 1, phone),
		emulation.SetTouchEmulationEnabled(phone))
}

// View returns a picture of what the window shows as PNG.
func (b *Browser) View() []byte {
	b.t.Helper()
	var png []byte
	b.run("take a picture", chromedp.CaptureScreenshot(&png))
	return png
}
