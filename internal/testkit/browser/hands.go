package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// with returns a script about e, the first element that matches the selector.
func with(selector, script string) string {
	return `(e => ` + script + `)(document.querySelector(` + quote(selector) + `))`
}

// quote returns s as a JavaScript string literal.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // every string can be encoded
	}
	return string(b)
}

// find waits until an element matches the selector.
func (b *Browser) find(selector string) {
	b.t.Helper()
	for w := newWait(patience); b.Eval(with(selector, `e !== null`)) != "true"; w.pause() {
		if w.isOver() {
			b.t.Fatalf("browser: there is no %s at %s:\n%s", selector, b.URL(), b.Text())
		}
	}
}

// Fill replaces the value of a field by typing, as a person does. In a list it
// chooses the option with that value.
func (b *Browser) Fill(selector, value string) {
	b.t.Helper()
	b.refuseIfKeysOnly("Fill")
	b.find(selector)
	if b.Eval(with(selector, `e.localName`)) == "select" {
		b.Eval(with(selector, `(e.value = `+quote(value)+`, e.dispatchEvent(new Event("change", {bubbles: true})))`))
		return
	}
	b.Eval(with(selector, `(e.focus(), e.select())`))
	if value == "" {
		b.run("empty "+selector, chromedp.KeyEvent(kb.Backspace))
	} else {
		b.run("fill "+selector, input.InsertText(value))
	}
}

// goes returns a script that reports whether clicking on e, or pressing Enter in
// e, opens another page.
func goes(entered bool) string {
	buttons := `["submit", "image"].includes(c.type)`
	if entered {
		buttons = `c.localName !== "textarea" && !["button", "reset"].includes(c.type)`
	}
	return `(() => {
		const link = e.closest("a[href]");
		if (link) return link.target !== "_blank" && !link.hasAttribute("download");
		const c = e.closest("button, input, select, textarea");
		return !!c && !!c.form && !c.disabled && ` + buttons + ` && (c.form.noValidate || c.formNoValidate || c.form.checkValidity());
	})()`
}

// Click clicks on an element. If the element is a link, or submits a form that
// the browser finds valid, Click waits for the next page.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	b.refuseIfKeysOnly("Click")
	b.find(selector)
	if b.Eval(with(selector, goes(false))) == "true" {
		b.leave("click "+selector, b.click(selector))
	} else {
		b.run("click "+selector, b.click(selector))
	}
}

// Tap clicks on an element without waiting for a page: for links and buttons
// whose click is handled by a script.
func (b *Browser) Tap(selector string) {
	b.t.Helper()
	b.refuseIfKeysOnly("Tap")
	b.find(selector)
	b.run("tap "+selector, b.click(selector))
}

// click moves the mouse over an element and presses the mouse button.
func (b *Browser) click(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		if _, err := eval(ctx, with(selector, `(e.scrollIntoView({block: "center", behavior: "instant"}), true)`)); err != nil {
			return err
		}
		at, err := awaitRest(ctx, func() (point, error) {
			said, err := eval(ctx, with(selector, `(r => r ? [r.left + r.width / 2, r.top + r.height / 2] : [])(e.getClientRects()[0])`))
			if err != nil {
				return point{}, err
			}
			var at []float64
			if err := json.Unmarshal([]byte(said), &at); err != nil {
				return point{}, err
			}
			if len(at) == 0 {
				return point{}, fmt.Errorf("%s cannot be seen", selector)
			}
			return point{at[0], at[1]}, nil
		})
		if err != nil {
			return err
		}
		return chromedp.MouseClickXY(at.x, at.y).Do(ctx)
	})
}

// point is a place in the window.
type point struct{ x, y float64 }

// hasStyles is a script that reports whether a page has its styles and fonts.
const hasStyles = `document.readyState !== "loading" && document.fonts.status === "loaded" &&
	[...document.querySelectorAll("link[rel=stylesheet]")].every(link => link.sheet)`

// awaitRest returns the place of an element once it stays where it is: a page
// that still loads its styles and fonts moves it away from under the mouse. Some
// elements always move; their last place is returned after a second.
func awaitRest(ctx context.Context, measure func() (point, error)) (point, error) {
	const pause = 20 * time.Millisecond
	for {
		ready, err := eval(ctx, hasStyles)
		if err != nil {
			return point{}, err
		}
		if ready == "true" {
			break
		}
		if err := chromedp.Sleep(pause).Do(ctx); err != nil {
			return point{}, err
		}
	}
	at, err := measure()
	for deadline := time.Now().Add(time.Second); err == nil && time.Now().Before(deadline); {
		if err := chromedp.Sleep(pause).Do(ctx); err != nil {
			return point{}, err
		}
		before := at
		if at, err = measure(); at == before {
			break
		}
	}
	return at, err
}

// keys are the keys that Press accepts by name.
var keys = map[string]string{
	"Enter": kb.Enter, "Tab": kb.Tab, "Escape": kb.Escape, "Backspace": kb.Backspace, "Space": " ",
	"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
	"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown, "Delete": kb.Delete,
}

// modifiers are the keys that Press holds down while it presses another.
var modifiers = map[string]input.Modifier{
	"Shift": input.ModifierShift,
	"Ctrl":  input.ModifierCtrl,
	"Alt":   input.ModifierAlt,
}

// Press presses a key: Tab, Shift+Tab, Enter, Escape, Space, an arrow, Ctrl+k or
// a letter. If Enter follows a link or submits a form, Press waits for the next
// page.
func (b *Browser) Press(key string) {
	b.t.Helper()
	if key == "Enter" && b.Eval(`(e => `+goes(true)+`)(document.activeElement)`) == "true" {
		b.leave("press "+key, press(key))
	} else {
		b.Strike(key)
	}
}

// Strike presses keys one after the other without waiting for a page: for links
// and forms that are handled by a script.
func (b *Browser) Strike(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.run("press "+key, press(key))
	}
}

// press returns the action that presses a key.
func press(key string) chromedp.Action {
	parts := strings.Split(key, "+")
	name := parts[len(parts)-1]
	var held []input.Modifier
	for _, part := range parts[:len(parts)-1] {
		held = append(held, modifiers[part])
	}
	code, known := keys[name]
	if !known {
		code = name
	}
	return strike(code, held)
}

// Type types a text into whatever has the focus, key by key.
func (b *Browser) Type(text string) {
	b.t.Helper()
	b.run("type "+text, chromedp.KeyEvent(text))
}

// Submit presses Enter in a field and waits for the next page.
func (b *Browser) Submit(selector string) {
	b.t.Helper()
	b.refuseIfKeysOnly("Submit")
	b.find(selector)
	b.Eval(with(selector, `e.focus()`))
	b.leave("submit "+selector, chromedp.KeyEvent(kb.Enter))
}
