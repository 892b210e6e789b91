package imageengine

import (
	"fmt"
	"image"
	"image/color"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"atelier/internal/engine/builtin/pixels"
)

var monoFont = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(gomono.TTF) })

// newFontFace returns the built-in font at a size in pixels. The caller must
// close it.
func newFontFace(size float64) (font.Face, error) {
	parsed, err := monoFont()
	if err != nil {
		return nil, fmt.Errorf("read font: %w", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, fmt.Errorf("create font face: %w", err)
	}
	return face, nil
}

// drawTextLine draws a line of text in the centre of a box. Text that is too
// wide is shortened with an ellipsis.
func drawTextLine(m *image.NRGBA, face font.Face, c color.NRGBA, box image.Rectangle, text string) {
	// The sheet is opaque, so its pixels are the same with straight and with
	// premultiplied alpha.
	d := font.Drawer{Dst: pixels.AsRGBA(m), Src: image.NewUniform(c), Face: face}
	runes := []rune(text)
	for n := len(runes); n > 0 && d.MeasureString(text) > fixed.I(box.Dx()); {
		n--
		text = string(runes[:n]) + "…"
	}
	metrics := face.Metrics()
	d.Dot = fixed.Point26_6{
		X: fixed.I(box.Min.X) + (fixed.I(box.Dx())-d.MeasureString(text))/2,
		Y: fixed.I(box.Min.Y) + (fixed.I(box.Dy())+metrics.CapHeight)/2,
	}
	d.DrawString(text)
}
