package term

import (
	"fmt"
	"image"
	"io"
	"slices"
	"strings"
	"sync"
)

// Bar is the state of one task.
type Bar struct {
	// Name is the beginning of the line.
	Name string
	// Fraction is the finished part, from 0 to 1. A negative number means that
	// nobody knows it yet.
	Fraction float64
	// Text follows the bar: the stage, an estimate.
	Text string
}

// Bars draws a bar for each running task, one below the other, as the last lines
// of a terminal. If the terminal has too few lines, the last bars are not drawn.
// It is safe for concurrent use.
type Bars struct {
	out     io.Writer
	size    func() (width, height int)
	palette Palette

	mu     sync.Mutex
	order  []int // tasks that have a bar, in the order of the lines
	bars   map[int]Bar
	drawn  int // lines of bars that are on the terminal now
	paused bool
	held   string // lines that were to be printed during a pause

	picture     string // control sequences of a picture above the bars
	pictureRows int    // its height
	pictureSeen bool   // it is on the terminal now
}

// NewBars returns bars at the end of a terminal.
func NewBars(out io.Writer, palette Palette) *Bars {
	return &Bars{
		out:     out,
		size:    func() (int, int) { return Width(out), Height(out) },
		palette: palette,
		bars:    map[int]Bar{},
	}
}

// Set draws the bar of a task. The lines are in the order of the tasks' numbers.
func (b *Bars) Set(task int, bar Bar) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.bars[task]; !known {
		b.order = append(b.order, task)
		slices.Sort(b.order)
	}
	b.bars[task] = bar
	b.redraw("")
}

// Finish removes the bar of a task, and prints lines above the other bars. They
// stay on the terminal.
func (b *Bars) Finish(task int, lines string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.bars, task)
	b.order = slices.DeleteFunc(b.order, func(other int) bool { return other == task })
	b.redraw(lines)
}

// Print prints lines above the bars.
func (b *Bars) Print(lines string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.redraw(lines)
}

// SetPicture shows a picture above the bars, in place of the one before. It
// disappears with the next line that is printed above the bars.
func (b *Bars) SetPicture(protocol Protocol, picture image.Image) {
	b.mu.Lock()
	defer b.mu.Unlock()
	width, _ := b.size()
	text, rows, err := encodePicture(protocol, picture, width)
	if err != nil || rows == 0 {
		return
	}
	b.clear()
	b.picture = text
	b.pictureRows = rows
	b.redraw("")
}

// Pause removes all bars from the terminal, for a question. Until Resume nothing
// is drawn or printed.
func (b *Bars) Pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	io.WriteString(b.out, "\r\x1b[J") //nolint:errcheck // the "^C" of the terminal, if there is one
	b.paused = true
}

// Resume prints the lines that came during the pause, and draws the bars again.
func (b *Bars) Resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = false
	held := b.held
	b.held = ""
	b.redraw(held)
}

// Clear removes all bars from the terminal at the end.
func (b *Bars) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	b.picture = ""
}

func (b *Bars) clear() {
	lines := b.drawn
	if b.pictureSeen {
		lines += b.pictureRows
	}
	if lines > 0 {
		fmt.Fprintf(b.out, "\x1b[%dA\r\x1b[J", lines)
	}
	b.drawn = 0
	b.pictureSeen = false
}

// redraw prints text and then all bars over the old ones, in one write, so that
// nothing flickers.
func (b *Bars) redraw(text string) {
	if b.paused {
		if text != "" {
			b.held += strings.TrimSuffix(text, "\n") + "\n"
		}
		return
	}
	var s strings.Builder
	if text != "" {
		b.clear()
		b.picture = ""
		s.WriteString(strings.TrimSuffix(text, "\n") + "\n")
	}
	if b.drawn > 0 {
		fmt.Fprintf(&s, "\x1b[%dA\r", b.drawn)
	}
	if b.picture != "" && !b.pictureSeen {
		// The rows are reserved first, and the cursor is put back: terminals
		// differ in where a picture leaves it.
		fmt.Fprintf(&s, "%s\x1b[%dA\x1b7%s\x1b8\x1b[%dB", strings.Repeat("\n", b.pictureRows), b.pictureRows, b.picture, b.pictureRows)
		b.pictureSeen = true
	}
	width, height := b.size()
	shown := b.order[:max(0, min(len(b.order), height-1))]
	names := 0
	for _, task := range shown {
		names = max(names, CountColumns(b.bars[task].Name))
	}
	names = min(names, width/3)
	for _, task := range shown {
		s.WriteString(b.formatBar(b.bars[task], names, width) + "\x1b[K\n")
	}
	s.WriteString("\x1b[J")
	io.WriteString(b.out, s.String()) //nolint:errcheck // a terminal that is gone shows nothing
	b.drawn = len(shown)
}

// formatBar returns one line, a column shorter than the terminal, because some
// terminals wrap a full line.
func (b *Bars) formatBar(bar Bar, names, width int) string {
	name := Shorten(bar.Name, names)
	name += strings.Repeat(" ", names-CountColumns(name))
	const barWidth = 24
	left := width - 1 - names - 2 - (barWidth + 2) - 1 - len("100%") - 2
	gauge := b.palette.Dim(strings.Repeat("·", barWidth))
	percent := "    "
	if bar.Fraction >= 0 {
		fraction := min(bar.Fraction, 1)
		done := int(fraction * barWidth)
		gauge = b.palette.Green(strings.Repeat("━", done)) + b.palette.Dim(strings.Repeat("·", barWidth-done))
		percent = fmt.Sprintf("%3.0f%%", fraction*100)
	}
	if left < 8 { // a narrow terminal: no gauge
		return Shorten(name+"  "+percent+"  "+bar.Text, width-1)
	}
	return name + "  [" + gauge + "] " + percent + "  " + Shorten(bar.Text, left)
}
