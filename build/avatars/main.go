// Command avatars draws the pictures of the tools that are delivered with the
// service, so that the pictures are maintained as code and have the same style.
// It writes avatars/<slug>.png below the current folder; "go generate ./tools"
// runs it.
//
// Each picture is a tile with rounded corners in a colour of its own, with
// shapes in white and in a light tint of the tile's colour. Shapes are distance
// functions (see shape.go), which give smooth edges.
package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
)

const (
	side  = 256
	round = 58 // radius of the tile's corners in pixels
)

func main() {
	if err := run("avatars"); err != nil {
		fmt.Fprintln(os.Stderr, "avatars:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for slug, icon := range icons {
		var b bytes.Buffer
		e := png.Encoder{CompressionLevel: png.BestCompression}
		if err := e.Encode(&b, drawn(icon)); err != nil {
			return fmt.Errorf("encode %s: %w", slug, err)
		}
		if err := os.WriteFile(filepath.Join(dir, slug+".png"), b.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func drawn(i icon) *image.NRGBA {
	c := newCanvas(i.hue)
	i.draw(c)
	return c.picture()
}

// tone is an opaque colour in linear light.
type tone [3]float64

// canvas is the picture of a tool while it is drawn.
type canvas struct {
	pix [side * side]tone
	// white is the colour of the main shape, light that of the second shape,
	// deep that of details on white. The tile fades from top to bottom.
	white, light, deep, top, bottom tone
}

// newCanvas returns an empty tile in the given hue. Tiles of all hues look
// about equally bright, so that none attracts more attention than the others.
// Orange has a higher lightness, because dark orange looks brown.
func newCanvas(hue float64) *canvas {
	lift := 0.06 * max(1-math.Abs(hue-60)/40, 0)
	c := &canvas{
		white:  oklch(0.985, 0.008, hue),
		light:  oklch(0.84+lift/2, 0.085, hue),
		deep:   oklch(0.50, 0.15, hue),
		top:    oklch(0.655+lift, 0.145, hue),
		bottom: oklch(0.545+lift, 0.155, hue),
	}
	c.clear(func(x, y float64) float64 { return -1 })
	return c
}

// clear restores the colour of the tile inside a shape.
func (c *canvas) clear(s shape) {
	c.shade(s, func(_, y float64) (tone, float64) { return c.top.mix(c.bottom, y/side), 1 })
}

// paint fills a shape with a tone.
func (c *canvas) paint(s shape, t tone) {
	c.shade(s, func(_, _ float64) (tone, float64) { return t, 1 })
}

// glaze fills a shape with a translucent tone.
func (c *canvas) glaze(s shape, t tone, alpha float64) {
	c.shade(s, func(_, _ float64) (tone, float64) { return t, alpha })
}

// shade fills a shape with a colour and opacity that depend on the position.
func (c *canvas) shade(s shape, at func(x, y float64) (tone, float64)) {
	for y := range side {
		for x := range side {
			px, py := float64(x)+0.5, float64(y)+0.5
			if cover := min(max(0.5-s(px, py), 0), 1); cover > 0 {
				t, alpha := at(px, py)
				c.pix[y*side+x] = c.pix[y*side+x].mix(t, cover*alpha)
			}
		}
	}
}

// picture returns the tile as an image with rounded corners.
func (c *canvas) picture() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	tile := box(side/2, side/2, side, side, round)
	for i, t := range c.pix {
		cover := min(max(0.5-tile(float64(i%side)+0.5, float64(i/side)+0.5), 0), 1)
		p := m.Pix[4*i:][:4]
		if cover == 0 {
			continue // leave the pixel transparent black
		}
		p[0], p[1], p[2], p[3] = stored(t[0]), stored(t[1]), stored(t[2]), uint8(255*cover+0.5)
	}
	return m
}

// mix returns the colour at the fraction share between t and u. It interpolates
// cube roots, which gives about evenly perceived steps, as in Oklab.
func (t tone) mix(u tone, share float64) tone {
	var m tone
	for i := range m {
		a, b := math.Cbrt(t[i]), math.Cbrt(u[i])
		v := a + (b-a)*share
		m[i] = v * v * v
	}
	return m
}

// oklch returns the colour with the given lightness, chroma and hue in degrees.
// The chroma is reduced until the colour is within the sRGB gamut.
func oklch(l, chroma, hue float64) tone {
	sin, cos := math.Sincos(hue * math.Pi / 180)
	for ; ; chroma *= 0.97 {
		a, b := chroma*cos, chroma*sin
		x, y, z := l+0.3963377774*a+0.2158037573*b, l-0.1055613458*a-0.0638541728*b, l-0.0894841775*a-1.2914855480*b
		x, y, z = x*x*x, y*y*y, z*z*z
		t := tone{
			4.0767416621*x - 3.3077115913*y + 0.2309699292*z,
			-1.2684380046*x + 2.6097574011*y - 0.3413193965*z,
			-0.0041960863*x - 0.7034186147*y + 1.7076147010*z,
		}
		if chroma < 0.001 || min(t[0], t[1], t[2]) >= 0 && max(t[0], t[1], t[2]) <= 1 {
			for i := range t {
				t[i] = min(max(t[i], 0), 1)
			}
			return t
		}
	}
}

// stored converts linear light to an sRGB byte (IEC 61966-2-1).
func stored(v float64) uint8 {
	if v <= 0.0031308 {
		v *= 12.92
	} else {
		v = 1.055*math.Pow(v, 1/2.4) - 0.055
	}
	return uint8(255*min(max(v, 0), 1) + 0.5)
}
