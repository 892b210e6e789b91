// Package browser drives a real Chromium in tests.
//
// All tests of a binary share one Chromium, which ends with the binary; each
// window of Open has its own cookies and storage. Chromium can reach only this
// machine: host names that end in .test resolve to 127.0.0.1, so a test can have
// any number of sites, and all other names are unknown.
//
// If Chromium is not installed, its tests are skipped with a line that names the
// package; with CI set they fail instead. ATELIER_TEST_BROWSER=skip always skips
// them.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"atelier/internal/testkit/servers"
)

// patience limits the duration of every action.
const patience = time.Minute

// Browser is one window. Its methods fail the test if they do not succeed within
// patience.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu      sync.Mutex
	status  int64
	headers network.Headers
	dialogs []string
	errors  []string

	clicks   int // of ClickOn
	keysOnly bool
}

// Open opens a window that closes with the test.
func Open(t testing.TB) *Browser {
	t.Helper()
	chromium := servers.Need(t, "browser", "ATELIER_TEST_BROWSER", start)
	return open(t, chromium, chromedp.WithNewBrowserContext())
}

// OpenTab opens another tab, with the same cookies and storage. It closes with
// the test.
func (b *Browser) OpenTab() *Browser {
	b.t.Helper()
	return open(b.t, b.ctx)
}

// open opens a window or a tab.
func open(t testing.TB, parent context.Context, options ...chromedp.ContextOption) *Browser {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, options...)
	t.Cleanup(cancel)
	b := &Browser{t: t, ctx: ctx}
	// The window closes when the context of its first run ends.
	if err := chromedp.Run(ctx, network.Enable()); err != nil {
		t.Fatalf("open browser: %v", err)
	}
	main := cdp.FrameID(chromedp.FromContext(ctx).Target.TargetID)
	chromedp.ListenTarget(ctx, func(event any) { b.note(main, event) })
	return b
}

// note records the events of the window.
func (b *Browser) note(main cdp.FrameID, event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument && e.FrameID == main {
			b.status = e.Response.Status
			b.headers = e.Response.Headers
		}
	case *page.EventJavascriptDialogOpening:
		if e.Type != page.DialogTypeBeforeunload {
			b.dialogs = append(b.dialogs, e.Message)
		}
		go chromedp.Run(b.ctx, page.HandleJavaScriptDialog(e.Type == page.DialogTypeBeforeunload))
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError {
			b.errors = append(b.errors, arguments(e.Args))
		}
	case *log.EventEntryAdded:
		// A page with status 404 logs a network error, which is not an error of
		// the page.
		if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork {
			b.errors = append(b.errors, e.Entry.Text)
		}
	}
}

func arguments(args []*runtime.RemoteObject) string {
	var words []string
	for _, a := range args {
		if a.Type == runtime.TypeString {
			var s string
			json.Unmarshal(a.Value, &s)
			words = append(words, s)
		} else {
			words = append(words, a.Description+string(a.Value))
		}
	}
	return strings.Join(words, " ")
}

// run runs actions and fails the test if they fail.
func (b *Browser) run(doing string, actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatalf("browser: %s: %v", doing, err)
	}
}

// leave runs actions that open another page, and waits until the page has
// loaded.
func (b *Browser) leave(doing string, actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, actions...); err != nil {
		b.t.Fatalf("browser: %s, at %s: %v", doing, b.URL(), err)
	}
}

// Goto opens an address and waits until the page has loaded, whatever its
// status.
func (b *Browser) Goto(address string) {
	b.t.Helper()
	b.run("go to "+address, chromedp.Navigate(address))
}

// NoScript turns JavaScript off for the pages that are opened after it.
func (b *Browser) NoScript() {
	b.t.Helper()
	b.run("turn scripts off", emulation.SetScriptExecutionDisabled(true))
}

// TimeZone sets the time zone of the pages that are opened after it, such as
// Europe/Paris.
func (b *Browser) TimeZone(name string) {
	b.t.Helper()
	b.run("set the time zone", emulation.SetTimezoneOverride(name))
}

// Width sets the width of the window in pixels. Below 600 the window is a phone.
func (b *Browser) Width(px int) {
	b.t.Helper()
	b.run("resize", emulation.SetDeviceMetricsOverride(int64(px), 800, 1, px < 600))
}

// URL returns the address of the page.
func (b *Browser) URL() string {
	b.t.Helper()
	return b.Eval(`location.href`)
}

// Text returns the visible text of the page.
func (b *Browser) Text() string {
	b.t.Helper()
	return b.Eval(`document.body ? document.body.innerText : ""`)
}

// HTML returns the current HTML of the page.
func (b *Browser) HTML() string {
	b.t.Helper()
	return b.Eval(`document.documentElement.outerHTML`)
}

// Focused describes the element that has the focus, such as
// input#email[name=address].
func (b *Browser) Focused() string {
	b.t.Helper()
	return b.Eval(`(e => e.localName + (e.id && "#" + e.id) + (e.getAttribute("name") ? "[name=" + e.getAttribute("name") + "]" : ""))(document.activeElement)`)
}

// Status returns the HTTP status of the page.
func (b *Browser) Status() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(b.status)
}

// Header returns a header of the page's response. Several values of one header
// are joined by line feeds.
func (b *Browser) Header(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, value := range b.headers {
		if strings.EqualFold(key, name) {
			return fmt.Sprint(value)
		}
	}
	return ""
}

// Dialogs returns the texts of the dialogs that scripts have opened. The dialogs
// were dismissed.
func (b *Browser) Dialogs() []string {
	b.t.Helper()
	b.Eval(`0`) // events before the reply to this script have been recorded
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.dialogs...)
}

// Errors returns the errors of the window: scripts that failed, and violations
// of the page's content security policy.
func (b *Browser) Errors() []string {
	b.t.Helper()
	b.Eval(`0`)
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.errors...)
}

// FrameURLs returns the addresses of the frames in the page. A frame that
// refused to be embedded has the address chrome-error://chromewebdata/.
func (b *Browser) FrameURLs() []string {
	b.t.Helper()
	var all []string
	b.run("list frames", chromedp.ActionFunc(func(ctx context.Context) error {
		tree, err := page.GetFrameTree().Do(ctx)
		if err != nil {
			return err
		}
		all = nil
		var walk func(*page.FrameTree)
		walk = func(t *page.FrameTree) {
			for _, child := range t.ChildFrames {
				all = append(all, child.Frame.URL)
				walk(child)
			}
		}
		walk(tree)
		return nil
	}))
	return all
}

// Screenshot returns a picture of the whole page as PNG.
func (b *Browser) Screenshot() []byte {
	b.t.Helper()
	var png []byte
	b.run("take a picture", chromedp.FullScreenshot(&png, 100))
	return png
}

// Eval runs a script in the page, even if the page may run no scripts. It
// returns a string unchanged, and any other value as JSON.
func (b *Browser) Eval(script string) string {
	b.t.Helper()
	var result string
	b.run("run "+script, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		result, err = eval(ctx, script)
		return err
	}))
	return result
}

func eval(ctx context.Context, script string) (string, error) {
	value, failed, err := runtime.Evaluate(script).WithReturnByValue(true).WithAwaitPromise(true).Do(ctx)
	if err != nil {
		return "", err
	}
	if failed != nil {
		return "", failed
	}
	var s string
	if value.Type == runtime.TypeString {
		err := json.Unmarshal(value.Value, &s)
		return s, err
	}
	return string(value.Value), nil
}
