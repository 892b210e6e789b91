package term

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color/palette"
	stddraw "image/draw"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/draw"
)

// Protocol is a way to show pictures in a terminal.
type Protocol string

// The protocols.
const (
	NoPictures Protocol = "none"
	Kitty      Protocol = "kitty" // kitty, Ghostty, Konsole
	ITerm      Protocol = "iterm" // iTerm2, WezTerm
	Sixel      Protocol = "sixel" // foot, mlterm, xterm with sixel, Windows Terminal
)

// DetectProtocol returns the protocol that the variables of a terminal name, or
// NoPictures. A multiplexer hides the terminal behind it, and is none that shows
// pictures.
func DetectProtocol(getenv func(string) string) Protocol {
	name := getenv("TERM")
	program := getenv("TERM_PROGRAM")
	switch {
	case getenv("TMUX") != "" || strings.HasPrefix(name, "screen") || strings.HasPrefix(name, "tmux"):
		return NoPictures
	case name == "xterm-kitty" || getenv("KITTY_WINDOW_ID") != "" || name == "xterm-ghostty" || program == "ghostty" || getenv("KONSOLE_VERSION") != "":
		return Kitty
	case program == "iTerm.app" || program == "WezTerm" || getenv("LC_TERMINAL") == "iTerm2":
		return ITerm
	case strings.HasPrefix(name, "foot") || strings.HasPrefix(name, "mlterm") || strings.HasPrefix(name, "contour") || program == "mintty" || getenv("WT_SESSION") != "":
		return Sixel
	}
	return NoPictures
}

// The size of a character in pixels, which decides the size of a picture. Few
// terminals say it, and the ratio is nearly the same everywhere.
const (
	cellWidth  = 9
	cellHeight = 18
)

// The largest picture, in characters.
const (
	maxColumns = 40
	maxRows    = 14
)

// WritePicture shows a picture and puts the cursor below it. The picture is
// reduced to at most 40 columns and 14 rows, and to the width of the terminal.
func WritePicture(w io.Writer, protocol Protocol, picture image.Image, width int) error {
	text, rows, err := encodePicture(protocol, picture, width)
	if err != nil || rows == 0 {
		return err
	}
	_, err = io.WriteString(w, text+"\n")
	return err
}

// encodePicture returns the control sequences that show a picture, and the
// number of rows that it takes.
func encodePicture(protocol Protocol, picture image.Image, width int) (text string, rows int, err error) {
	size := picture.Bounds().Size()
	if size.X < 1 || size.Y < 1 || protocol == NoPictures {
		return "", 0, nil
	}
	scale := min(float64(min(maxColumns, width-1)*cellWidth)/float64(size.X), float64(maxRows*cellHeight)/float64(size.Y), 1)
	small := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(size.X)*scale)), max(1, int(float64(size.Y)*scale))))
	draw.ApproxBiLinear.Scale(small, small.Bounds(), picture, picture.Bounds(), draw.Src, nil)

	columns := (small.Rect.Dx() + cellWidth - 1) / cellWidth
	rows = (small.Rect.Dy() + cellHeight - 1) / cellHeight
	var b bytes.Buffer
	switch protocol {
	case Kitty:
		err = encodeKitty(&b, small, columns, rows)
	case ITerm:
		err = encodeITerm(&b, small, columns, rows)
	case Sixel:
		err = encodeSixel(&b, small)
	default:
		err = fmt.Errorf("%q is not a protocol for pictures", protocol)
	}
	return b.String(), rows, err
}

func encodePNG(picture image.Image) (string, error) {
	var b bytes.Buffer
	err := png.Encode(&b, picture)
	return base64.StdEncoding.EncodeToString(b.Bytes()), err
}

// encodeKitty writes a PNG in chunks of 4096 bytes of base64. q=2 asks the
// terminal for no answer, which a shell would take for input.
func encodeKitty(w *bytes.Buffer, picture image.Image, columns, rows int) error {
	text, err := encodePNG(picture)
	if err != nil {
		return err
	}
	keys := fmt.Sprintf("a=T,f=100,q=2,c=%d,r=%d,", columns, rows)
	for len(text) > 0 {
		const chunk = 4096
		n := min(chunk, len(text))
		more := 0
		if n < len(text) {
			more = 1
		}
		fmt.Fprintf(w, "\x1b_G%sm=%d;%s\x1b\\", keys, more, text[:n])
		text = text[n:]
		keys = ""
	}
	return nil
}

func encodeITerm(w *bytes.Buffer, picture image.Image, columns, rows int) error {
	text, err := encodePNG(picture)
	if err != nil {
		return err
	}
	size := base64.StdEncoding.DecodedLen(len(text)) - strings.Count(text, "=")
	fmt.Fprintf(w, "\x1b]1337;File=inline=1;size=%d;width=%d;height=%d:%s\a", size, columns, rows, text)
	return nil
}

// encodeSixel writes a picture of at most 256 colours. Each band of six lines is
// written once for each of its colours; one character is a column of the band.
func encodeSixel(w *bytes.Buffer, picture image.Image) error {
	size := picture.Bounds().Size()
	indexed := image.NewPaletted(image.Rect(0, 0, size.X, size.Y), palette.WebSafe)
	stddraw.FloydSteinberg.Draw(indexed, indexed.Rect, picture, picture.Bounds().Min)
	fmt.Fprintf(w, "\x1bPq\"1;1;%d;%d", size.X, size.Y)
	for i, c := range indexed.Palette {
		r, g, b, _ := c.RGBA()
		const percent = 100
		const full = 0xffff
		fmt.Fprintf(w, "#%d;2;%d;%d;%d", i, r*percent/full, g*percent/full, b*percent/full)
	}
	const band = 6
	for top := 0; top < size.Y; top += band {
		columns := map[uint8][]byte{}
		for y := top; y < min(top+band, size.Y); y++ {
			for x := range size.X {
				colour := indexed.ColorIndexAt(x, y)
				if columns[colour] == nil {
					columns[colour] = make([]byte, size.X)
				}
				columns[colour][x] |= 1 << (y - top)
			}
		}
		for colour := range len(indexed.Palette) {
			bits, used := columns[uint8(colour)]
			if !used {
				continue
			}
			fmt.Fprintf(w, "#%d", colour)
			writeSixelRow(w, bits)
			w.WriteByte('$') // back to the beginning of the band
		}
		w.WriteByte('-')
	}
	w.WriteString("\x1b\\")
	return nil
}

// writeSixelRow writes a row of sixels; runs of equal ones become !COUNT.
func writeSixelRow(w *bytes.Buffer, bits []byte) {
	for i := 0; i < len(bits); {
		n := 1
		for i+n < len(bits) && bits[i+n] == bits[i] {
			n++
		}
		sixel := bits[i] + '?'
		if n > 3 {
			fmt.Fprintf(w, "!%d%c", n, sixel)
		} else {
			w.Write(bytes.Repeat([]byte{sixel}, n))
		}
		i += n
	}
}
