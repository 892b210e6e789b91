package browser

import (
	"context"
	"time"

	"github.com/chromedp/chromedp"
)

// Measure runs a script that takes as long as d, and returns what it says as
// Eval does.
func (b *Browser) Measure(script string, d time.Duration) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, d+longPatience)
	defer cancel()
	var said string
	err := chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		said, err = eval(ctx, script)
		return err
	}))
	if err != nil {
		b.t.Fatalf("browser: measure: %v", err)
	}
	return said
}
