package browser

import (
	"github.com/chromedp/cdproto/emulation"
)

// ColorScheme sets the color scheme that pages should prefer: light or dark.
func (b *Browser) ColorScheme(name string) {
	b.t.Helper()
	b.run("set the color scheme", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}))
}
