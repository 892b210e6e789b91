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
	for deadline := time.Now().Add(patience); b.Eval(with(selector, `e !== null`)) != "true"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("browser: there is no %s at %s:\n%s", selector, b.URL(), b.Text())
		}
	}
}

// Fill replaces the value of a field by typing, as a person does. In a list it
// chooses the option with that value.
func (b *Browser) Fill(selector, value string) {
	b.t.Helper()
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
	b.find(selector)
	b.run("tap "+selector, b.click(selector))
}

// click moves the mouse over an element and presses the mouse button.
func (b *Browser) click(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		said, err := eval(ctx, with(selector, `(e.scrollIntoView({block: "center", behavior: "instant"}), (r => r ? [r.left + r.width / 2, r.top + r.height / 2] : [])(e.getClientRects()[0]))`))
		if err != nil {
			return err
		}
		var at []float64
		if err := json.Unmarshal([]byte(said), &at); err != nil {
			return err
		}
		if len(at) == 0 {
			return fmt.Errorf("%s cannot be seen", selector)
		}
		return chromedp.MouseClickXY(at[0], at[1]).Do(ctx)
	})
}

// keys are the keys that Press accepts by name.
var keys = map[string]string{
	"Enter": kb.Enter, "Tab": kb.Tab, "Escape": kb.Escape, "Backspace": kb.Backspace, "Space": " ",
	"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
}

// Press presses a key: Tab, Shift+Tab, Enter, Escape, Space, an arrow or a
// letter. If Enter follows a link or submits a form, Press waits for the next
// page.
func (b *Browser) Press(key string) {
	b.t.Helper()
	name, shift := strings.CutPrefix(key, "Shift+")
	code, known := keys[name]
	if !known {
		code = name
	}
	var options []chromedp.KeyOption
	if shift {
		options = append(options, chromedp.KeyModifiers(input.ModifierShift))
	}
	press := chromedp.KeyEvent(code, options...)
	if key == "Enter" && b.Eval(`(e => `+goes(true)+`)(document.activeElement)`) == "true" {
		b.leave("press "+key, press)
	} else {
		b.run("press "+key, press)
	}
}

// Submit presses Enter in a field and waits for the next page.
func (b *Browser) Submit(selector string) {
	b.t.Helper()
	b.find(selector)
	b.Eval(with(selector, `e.focus()`))
	b.leave("submit "+selector, chromedp.KeyEvent(kb.Enter))
}
