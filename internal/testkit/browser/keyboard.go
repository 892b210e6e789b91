package browser

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// KeysOnly lets the test use the keyboard alone from now on: a method that uses
// the mouse, or that sets a focus or a value other than by keys, fails the test.
func (b *Browser) KeysOnly() { b.keysOnly = true }

// refuseIfKeysOnly fails the test if it may use the keyboard alone.
func (b *Browser) refuseIfKeysOnly(method string) {
	b.t.Helper()
	if b.keysOnly {
		b.t.Fatalf("browser: %s needs more than a keyboard", method)
	}
}

// TabTo presses Tab until an element with a role and a name has the focus, as a
// person without a mouse does. It presses nothing if the element has it already.
func (b *Browser) TabTo(role, name string) {
	b.t.Helper()
	b.See(role, name)
	const most = 200
	for range most {
		if b.HasFocus(role, name) {
			return
		}
		b.Strike("Tab")
	}
	b.t.Fatalf("browser: %d presses of Tab do not lead to the %s %q at %s", most, role, name, b.URL())
}

// HasFocus reports whether an element with a role and a name has the focus.
func (b *Browser) HasFocus(role, name string) (found bool) {
	b.t.Helper()
	b.run("look for the focus", chromedp.ActionFunc(func(ctx context.Context) error {
		focus, failed, err := runtime.Evaluate(`document.activeElement`).Do(ctx)
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		element, err := dom.DescribeNode().WithObjectID(focus.ObjectID).Do(ctx)
		if err != nil {
			return err
		}
		nodes, err := b.named(ctx, role, name)
		found = slices.ContainsFunc(nodes, func(node axNode) bool { return node.DOMNode == element.BackendNodeID })
		return err
	}))
	return found
}

// ChooseFiles calls open, which makes the page ask for files, and chooses files
// in the browser's own dialog.
func (b *Browser) ChooseFiles(open func(), files ...string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	asked := make(chan cdp.BackendNodeID, 1)
	chromedp.ListenTarget(ctx, func(event any) {
		if e, ok := event.(*page.EventFileChooserOpened); ok {
			asked <- e.BackendNodeID
		}
	})
	b.run("take over the dialog for files", page.SetInterceptFileChooserDialog(true))
	open()

	select {
	case field := <-asked:
		b.run("choose files", dom.SetFileInputFiles(files).WithBackendNodeID(field), page.SetInterceptFileChooserDialog(false))
	case <-time.After(patience):
		b.t.Fatalf("browser: the page at %s does not ask for files", b.URL())
	}
}
