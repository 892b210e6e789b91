package browser

import (
	"context"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The methods in this file use the mouse at places of the window, for pages on
// which things lie where people have put them.

// held returns the modifiers with these names together.
func held(keys []string) input.Modifier {
	var all input.Modifier
	for _, key := range keys {
		all |= modifiers[key]
	}
	return all
}

// codes are the keys of the keyboard for modifiers.
var codes = map[string][2]string{
	"Shift": {"Shift", "ShiftLeft"},
	"Ctrl":  {"Control", "ControlLeft"},
	"Alt":   {"Alt", "AltLeft"},
}

// hold presses modifiers or releases them.
func (b *Browser) hold(what input.KeyType, keys []string) {
	b.t.Helper()
	for _, key := range keys {
		event := input.DispatchKeyEvent(what).WithKey(codes[key][0]).WithCode(codes[key][1])
		if what == input.KeyRawDown {
			event = event.WithModifiers(modifiers[key])
		}
		b.run("hold "+key, event)
	}
}

// ClickAt clicks at a place of the window, with keys such as Shift held down.
func (b *Browser) ClickAt(x, y float64, keys ...string) {
	b.t.Helper()
	b.refuseIfKeysOnly("ClickAt")
	b.hold(input.KeyRawDown, keys)
	b.run("click", chromedp.MouseEvent(input.MouseMoved, x, y), chromedp.MouseClickXY(x, y, chromedp.ButtonModifiers(held(keys))))
	b.hold(input.KeyUp, keys)
}

// Drag presses the mouse at one place of the window and releases it at another.
func (b *Browser) Drag(fromX, fromY, toX, toY float64) {
	b.t.Helper()
	b.refuseIfKeysOnly("Drag")
	const steps = 6
	actions := []chromedp.Action{
		chromedp.MouseEvent(input.MouseMoved, fromX, fromY),
		chromedp.MouseEvent(input.MousePressed, fromX, fromY, chromedp.ButtonLeft, chromedp.ClickCount(1)),
	}
	for step := 1; step <= steps; step++ {
		part := float64(step) / steps
		actions = append(actions, chromedp.MouseEvent(input.MouseMoved, fromX+part*(toX-fromX), fromY+part*(toY-fromY), chromedp.ButtonLeft))
	}
	actions = append(actions, chromedp.MouseEvent(input.MouseReleased, toX, toY, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	b.run("drag", actions...)
}

// Wheel turns the wheel of the mouse at a place of the window, with keys such as
// Ctrl held down.
func (b *Browser) Wheel(x, y, dx, dy float64, keys ...string) {
	b.t.Helper()
	b.refuseIfKeysOnly("Wheel")
	b.hold(input.KeyRawDown, keys)
	b.run("turn the wheel", input.DispatchMouseEvent(input.MouseWheel, x, y).WithDeltaX(dx).WithDeltaY(dy).WithModifiers(held(keys)))
	b.hold(input.KeyUp, keys)
}

// Heap returns the bytes that the scripts of the page hold after everything that
// they no longer use was collected.
func (b *Browser) Heap() float64 {
	b.t.Helper()
	var used float64
	b.run("measure the heap", chromedp.ActionFunc(func(ctx context.Context) (err error) {
		if err := heapprofiler.CollectGarbage().Do(ctx); err != nil {
			return err
		}
		used, _, _, _, err = runtime.GetHeapUsage().Do(ctx)
		return err
	}))
	return used
}

// strike returns the action that presses a key as a keyboard does: a page that
// takes the key for itself gets no letter of it.
func strike(key string, held []input.Modifier) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		var all input.Modifier
		for _, one := range held {
			all |= one
		}
		for _, r := range key {
			events := kb.Encode(r)
			for at, event := range events {
				if event.Type == input.KeyChar {
					continue
				}
				next := events[min(at+1, len(events)-1)]
				if event.Type != input.KeyUp && next.Type == input.KeyChar && all&(input.ModifierCtrl|input.ModifierAlt) == 0 {
					event.Text = next.Text
					event.UnmodifiedText = next.UnmodifiedText
				}
				event.Modifiers |= all
				if err := event.Do(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
