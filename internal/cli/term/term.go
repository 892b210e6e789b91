// Package term draws on terminals: colours, progress bars of several tasks, and
// pictures.
//
// Nothing here is written to an output that is not a terminal; callers ask with
// IsTerminal and print plain lines instead.
package term

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// The size of terminals that do not say it.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// Width returns the number of columns of a terminal.
func Width(w io.Writer) int {
	width, _ := size(w)
	return width
}

// Height returns the number of lines of a terminal.
func Height(w io.Writer) int {
	_, height := size(w)
	return height
}

func size(w io.Writer) (width, height int) {
	f, ok := w.(*os.File)
	if !ok {
		return defaultWidth, defaultHeight
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 1 || height < 1 {
		return defaultWidth, defaultHeight
	}
	return width, height
}

// Palette colours text. The zero value leaves text as it is.
type Palette struct{ enabled bool }

// NewPalette returns a palette for an output. Text stays plain if the output is
// not a terminal, if the variable NO_COLOR is not empty (https://no-color.org),
// or if TERM is "dumb".
func NewPalette(w io.Writer, getenv func(string) string) Palette {
	return Palette{IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Bold returns text in bold.
func (p Palette) Bold(text string) string { return p.paint("1", text) }

// Dim returns text that stands back.
func (p Palette) Dim(text string) string { return p.paint("2", text) }

// Red returns text that reports a failure.
func (p Palette) Red(text string) string { return p.paint("31", text) }

// Green returns text that reports a success.
func (p Palette) Green(text string) string { return p.paint("32", text) }

// Yellow returns text that reports work or a warning.
func (p Palette) Yellow(text string) string { return p.paint("33", text) }

func (p Palette) paint(code, text string) string {
	if !p.enabled || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// CountColumns returns the number of columns that a text without control
// sequences takes: two for the wide characters of East Asia and pictograms, none
// for marks that combine with the character before.
func CountColumns(text string) int {
	columns := 0
	for _, r := range text {
		columns += runeColumns(r)
	}
	return columns
}

func runeColumns(r rune) int {
	switch {
	case r < ' ' || r == 0x7f:
		return 0
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) ||
		r >= 0xff01 && r <= 0xff60 || r >= 0x3000 && r <= 0x303e || r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}

// Shorten cuts a text to a number of columns. A cut text ends with "…".
func Shorten(text string, columns int) string {
	if CountColumns(text) <= columns {
		return text
	}
	var b strings.Builder
	left := columns - 1
	for _, r := range text {
		left -= runeColumns(r)
		if left < 0 {
			break
		}
		b.WriteRune(r)
	}
	if columns > 0 {
		b.WriteRune('…')
	}
	return b.String()
}
