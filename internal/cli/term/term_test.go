package term_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"atelier/internal/cli/term"
)

func TestPlainWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := term.NewPalette(&b, func(string) string { return "" })
	if got := p.Red("x"); got != "x" || term.IsTerminal(&b) || term.Width(&b) != 80 {
		t.Errorf("red = %q", got)
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"abc": 3, "画像": 4, "e\u0301": 1, "🦊": 2, "a\x1bb": 2, "": 0} {
		if got := term.CountColumns(text); got != want {
			t.Errorf("%q has %d columns, want %d", text, got, want)
		}
	}
	for columns, want := range map[int]string{10: "画像画像", 8: "画像画像", 7: "画像画…", 2: "…", 1: "…", 0: ""} {
		if got := term.Shorten("画像画像", columns); got != want {
			t.Errorf("%d columns: %q, want %q", columns, got, want)
		}
	}
}

// screen applies the control sequences that bars use, as a terminal does.
type screen struct {
	lines []string
	row   int
}

var sequence = regexp.MustCompile(`^\x1b\[(\d*)([A-Za-z])`)

func (s *screen) Write(text []byte) (int, error) {
	rest := string(text)
	for rest != "" {
		for len(s.lines) <= s.row {
			s.lines = append(s.lines, "")
		}
		if m := sequence.FindStringSubmatch(rest); m != nil {
			switch m[2] {
			case "A":
				up, _ := strconv.Atoi(m[1])
				s.row -= up
			case "J":
				s.lines = s.lines[:s.row]
			}
			rest = rest[len(m[0]):]
			continue
		}
		end := strings.IndexAny(rest, "\n\x1b")
		switch {
		case rest[0] == '\r':
			rest = rest[1:]
		case end == 0:
			s.row++
			rest = rest[1:]
		default:
			if end < 0 {
				end = len(rest)
			}
			s.lines[s.row] = rest[:end]
			rest = rest[end:]
		}
	}
	return len(text), nil
}

func TestBars(t *testing.T) {
	t.Parallel()
	var s screen
	bars := term.NewBars(&s, term.Palette{})
	bars.Set(1, term.Bar{Name: "one", Fraction: -1, Text: "waiting"})
	bars.Set(2, term.Bar{Name: "second", Fraction: 0.5, Text: strings.Repeat("long ", 30)})
	bars.Set(1, term.Bar{Name: "one", Fraction: 1.5, Text: "running"})
	if len(s.lines) != 2 || !strings.Contains(s.lines[0], "100%  running") || !strings.Contains(s.lines[1], "50%") {
		t.Fatalf("lines = %q", s.lines)
	}
	for _, line := range s.lines {
		if n := utf8.RuneCountInString(line); n > 79 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	bars.Finish(1, "one: done\n")
	if len(s.lines) != 2 || s.lines[0] != "one: done" || !strings.HasPrefix(s.lines[1], "second") {
		t.Errorf("after the first: %q", s.lines)
	}
	bars.Print("a note")
	bars.Finish(2, "second: done")
	bars.Clear()
	if got := strings.Join(s.lines, "|"); got != "one: done|a note|second: done" {
		t.Errorf("at the end: %s", got)
	}
}

// TestBarsPause holds everything back while a person is asked a question.
func TestBarsPause(t *testing.T) {
	t.Parallel()
	var s screen
	bars := term.NewBars(&s, term.Palette{})
	bars.Set(2, term.Bar{Name: "second", Fraction: 0.5})
	bars.Set(1, term.Bar{Name: "one", Fraction: 0.5})
	if len(s.lines) != 2 || !strings.HasPrefix(s.lines[0], "one") {
		t.Errorf("the lines are not in the order of the numbers: %q", s.lines)
	}
	bars.Pause()
	bars.Set(2, term.Bar{Name: "second", Fraction: 0.6})
	bars.Finish(1, "one: done")
	bars.Print("a note")
	if len(s.lines) != 0 {
		t.Errorf("during a pause: %q", s.lines)
	}
	bars.Resume()
	if len(s.lines) != 3 || s.lines[0] != "one: done" || s.lines[1] != "a note" || !strings.Contains(s.lines[2], "60%") {
		t.Errorf("after a pause: %q", s.lines)
	}
}

// TestBarsFitTheTerminal draws no more bars than the terminal has lines: the
// cursor could not go back to the first.
func TestBarsFitTheTerminal(t *testing.T) {
	t.Parallel()
	var s screen
	bars := term.NewBars(&s, term.Palette{})
	for i := range 40 {
		bars.Set(i, term.Bar{Name: "task", Fraction: -1})
	}
	if len(s.lines) != 23 {
		t.Errorf("%d lines in a terminal of 24", len(s.lines))
	}
	bars.Clear()
	if len(s.lines) != 0 {
		t.Errorf("%d lines are left", len(s.lines))
	}
}

func TestDetectProtocol(t *testing.T) {
	t.Parallel()
	for variables, want := range map[string]term.Protocol{
		"TERM=xterm-kitty":                           term.Kitty,
		"TERM=xterm-256color KITTY_WINDOW_ID=1":      term.Kitty,
		"TERM=xterm-256color TERM_PROGRAM=iTerm.app": term.ITerm,
		"TERM=xterm-256color TERM_PROGRAM=WezTerm":   term.ITerm,
		"TERM=foot":                              term.Sixel,
		"TERM=xterm-256color":                    term.NoPictures,
		"TERM=screen-256color KITTY_WINDOW_ID=1": term.NoPictures,
		"TERM=xterm-kitty TMUX=/tmp/x":           term.NoPictures,
	} {
		getenv := func(name string) string {
			for _, one := range strings.Fields(variables) {
				if value, ok := strings.CutPrefix(one, name+"="); ok {
					return value
				}
			}
			return ""
		}
		if got := term.DetectProtocol(getenv); got != want {
			t.Errorf("%s: %s, want %s", variables, got, want)
		}
	}
}

func picture(width, height int) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.RGBA{uint8(x * 7), uint8(y * 5), uint8(x ^ y), 255})
		}
	}
	return m
}

func TestPictures(t *testing.T) {
	t.Parallel()
	t.Run("kitty", func(t *testing.T) {
		t.Parallel()
		var b bytes.Buffer
		if err := term.WritePicture(&b, term.Kitty, picture(1000, 400), 80); err != nil {
			t.Fatal(err)
		}
		var text string
		chunks := regexp.MustCompile(`\x1b_G([^;]*);([^\x1b]*)\x1b\\`).FindAllStringSubmatch(b.String(), -1)
		for i, c := range chunks {
			if len(c[2]) > 4096 || strings.Contains(c[1], "m=1") != (i < len(chunks)-1) {
				t.Errorf("chunk %d of %d: %s, %d bytes", i, len(chunks), c[1], len(c[2]))
			}
			text += c[2]
		}
		if len(chunks) < 2 || !strings.HasPrefix(chunks[0][1], "a=T,f=100,q=2,c=40,r=8,") {
			t.Fatalf("%d chunks, %q", len(chunks), chunks[0][1])
		}
		bytesOfPNG, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		m, err := png.Decode(bytes.NewReader(bytesOfPNG))
		if err != nil || m.Bounds().Dx() != 360 || m.Bounds().Dy() != 144 {
			t.Errorf("%v, %v", m.Bounds(), err)
		}
	})
	t.Run("iTerm", func(t *testing.T) {
		t.Parallel()
		var b bytes.Buffer
		if err := term.WritePicture(&b, term.ITerm, picture(20, 20), 80); err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`^\x1b\]1337;File=inline=1;size=(\d+);width=3;height=2:([^\a]+)\a\n$`).FindStringSubmatch(b.String())
		if m == nil {
			t.Fatalf("%.100q", b.String())
		}
		if text, err := base64.StdEncoding.DecodeString(m[2]); err != nil || strings.TrimLeft(m[1], "0") == "" || len(text) == 0 {
			t.Errorf("%d bytes, %s promised, %v", len(text), m[1], err)
		}
	})
	t.Run("sixel", func(t *testing.T) {
		t.Parallel()
		m := image.NewRGBA(image.Rect(0, 0, 8, 7))
		for y := range 7 {
			for x := range 8 {
				m.Set(x, y, color.RGBA{255, 0, 0, 255})
			}
		}
		var b bytes.Buffer
		if err := term.WritePicture(&b, term.Sixel, m, 80); err != nil {
			t.Fatal(err)
		}
		// Six full lines and one more line, of one colour, in two bands.
		if !regexp.MustCompile(`^\x1bPq"1;1;8;7(#\d+;2;\d+;\d+;\d+)+#(\d+)!8~\$-#\d+!8@\$-\x1b\\\n$`).Match(b.Bytes()) {
			t.Errorf("%q", b.String()[max(0, b.Len()-60):])
		}
	})
	var b bytes.Buffer
	if err := term.WritePicture(&b, term.NoPictures, picture(2, 2), 80); err != nil || b.Len() > 0 {
		t.Errorf("no protocol: %q, %v", b.String(), err)
	}
}
