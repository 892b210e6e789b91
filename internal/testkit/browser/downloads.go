package browser

import (
	"context"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// SaveTo makes the window save what is downloaded in a folder, without asking.
func (b *Browser) SaveTo(folder string) {
	b.t.Helper()
	b.run("set the folder for downloads", chromedp.ActionFunc(func(ctx context.Context) error {
		window := chromedp.FromContext(ctx)
		return browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).
			WithBrowserContextID(window.BrowserContextID).
			WithDownloadPath(folder).
			Do(cdp.WithExecutor(ctx, window.Browser))
	}))
}
