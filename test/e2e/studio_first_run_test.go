package e2e

import (
	"fmt"
	"testing"

	"atelier/internal/testkit/browser"
)

// clicksToFirstPicture is how many clicks a new person may need from the printed
// link to the first picture.
const clicksToFirstPicture = 4

// aPictureIsThere says whether the feed shows a picture that the browser has
// loaded.
const aPictureIsThere = `[...document.querySelectorAll("[data-result] img")].some(i => i.complete && i.naturalWidth > 0)`

// TestStudioFirstRun goes from the link that a new installation prints to the
// first picture, with nothing configured: through a suggestion and through a
// prompt, in a window of a computer and of a telephone. It counts the clicks.
func TestStudioFirstRun(t *testing.T) {
	for _, width := range []int{1280, 390} {
		t.Run(fmt.Sprintf("suggestion at %d", width), func(t *testing.T) {
			each(t, func(t *testing.T, s *site) { makeFirstPicture(t, s, width, false) })
		})
		t.Run(fmt.Sprintf("prompt at %d", width), func(t *testing.T) {
			each(t, func(t *testing.T, s *site) { makeFirstPicture(t, s, width, true) })
		})
	}
}

// makeFirstPicture sets a new installation up in a window of a width and makes the first
// picture: of a prompt that is typed, or else with the first suggestion.
func makeFirstPicture(t *testing.T, s *site, width int, typed bool) {
	t.Helper()
	n := s.serve()
	b := browser.Open(t)
	b.Size(width, 850)
	b.Goto(n.setUpLink())
	enter(b, "anna@example.com")
	const setUpClicks = 1 // of the button of the form

	b.Until(`location.pathname === "/welcome"`)
	b.See("heading", "Welcome. What shall we make?")
	name := fmt.Sprintf("first-run-%d", width)
	if typed {
		b.TypeInto("textbox", "Prompt", "owl at night")
		b.ClickOn("button", "Create…")
	} else {
		b.See("button", "Try …")
		keepView(t, b, name+"-welcome")
		if width > 600 {
			wantAccessible(t, b, "the welcome page")
			keepLooks(t, b, "welcome")
		}
		b.ClickOn("button", "Try …")
	}
	b.Until(aPictureIsThere)
	keepView(t, b, fmt.Sprintf("%s-picture-typed-%v", name, typed))
	if clicks := setUpClicks + b.Clicks(); clicks > clicksToFirstPicture {
		t.Errorf("at %d pixels, typed %v: the first picture took %d clicks, want at most %d", width, typed, clicks, clicksToFirstPicture)
	}

	b.Reload()
	b.Until(aPictureIsThere)
	if typed {
		b.See("article", "owl at night")
	}
	wantAccessible(t, b, fmt.Sprintf("the page with the first picture at %d pixels", width))
	wantNoComplaints(t, b)
	n.stop()
	s.check()
}
