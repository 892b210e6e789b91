package imageengine

import (
	"image/color"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"atelier/internal/engine/builtin/pixels"
)

// colourTables are lookup tables for conversions between stored sRGB bytes and
// linear light (IEC 61966-2-1).
type colourTables struct {
	linear  [256]float32     // linear light, indexed by stored byte
	encoded [1 << 16]uint8   // stored byte, indexed by linear light times 65535
	exact   [1 << 12]float32 // stored value from 0 to 255 before rounding, indexed by the square root of linear light times 4095
	plain   [256]float32     // stored byte divided by 255, indexed by stored byte
}

// linearTables returns the lookup tables. The first call computes them.
var linearTables = sync.OnceValue(func() *colourTables {
	var t colourTables
	for i := range t.linear {
		t.plain[i] = float32(i) / 255
		t.linear[i] = float32(decodeSRGB(float64(i) / 255))
	}
	for i := range t.encoded {
		t.encoded[i] = pixels.ClampByte(float32(encodeSRGB(float64(i)/65535) * 255))
	}
	for i := range t.exact {
		root := float64(i) / float64(len(t.exact)-1)
		t.exact[i] = float32(encodeSRGB(root*root) * 255)
	}
	return &t
})

// encodedByte converts linear light from 0 to 1 to a stored sRGB byte.
func (t *colourTables) encodedByte(v float32) uint8 {
	return t.encoded[int(min(max(v, 0), 1)*65535+0.5)]
}

// encodedExact converts linear light from 0 to 1 to a stored sRGB value from 0
// to 255, without rounding.
func (t *colourTables) encodedExact(v float32) float32 {
	at := float32(math.Sqrt(float64(min(max(v, 0), 1)))) * float32(len(t.exact)-1)
	i := min(int(at), len(t.exact)-2)
	return t.exact[i] + (t.exact[i+1]-t.exact[i])*(at-float32(i))
}

// decodeSRGB converts a stored sRGB value from 0 to 1 to linear light.
func decodeSRGB(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

// encodeSRGB converts linear light to a stored sRGB value from 0 to 1.
func encodeSRGB(v float64) float64 {
	if v <= 0.0031308 {
		return v * 12.92
	}
	return 1.055*math.Pow(v, 1/2.4) - 0.055
}

// lab is a colour in the Oklab colour space, in which equal distances look like
// equal differences, and blends of colours keep their brightness.
type lab struct{ l, a, b float64 }

func labOf(c color.NRGBA) lab {
	t := linearTables()
	r := float64(t.linear[c.R])
	g := float64(t.linear[c.G])
	b := float64(t.linear[c.B])
	l := math.Cbrt(0.4122214708*r + 0.5363325363*g + 0.0514459929*b)
	m := math.Cbrt(0.2119034982*r + 0.6806995451*g + 0.1073969566*b)
	s := math.Cbrt(0.0883024619*r + 0.2817188376*g + 0.6299787005*b)
	return lab{
		0.2104542553*l + 0.7936177850*m - 0.0040720468*s,
		1.9779984951*l - 2.4285922050*m + 0.4505937099*s,
		0.0259040371*l + 0.7827717662*m - 0.8086757660*s,
	}
}

// rgb is a colour in linear light. Values below 0 or above 1 are outside of the
// sRGB gamut.
type rgb struct{ r, g, b float32 }

func (c lab) linearRGB() rgb {
	l := c.l + 0.3963377774*c.a + 0.2158037573*c.b
	m := c.l - 0.1055613458*c.a - 0.0638541728*c.b
	s := c.l - 0.0894841775*c.a - 1.2914855480*c.b
	l = l * l * l
	m = m * m * m
	s = s * s * s
	return rgb{
		float32(4.0767416621*l - 3.3077115913*m + 0.2309699292*s),
		float32(-1.2684380046*l + 2.6097574011*m - 0.3413193965*s),
		float32(-0.0041960863*l - 0.7034186147*m + 1.7076147010*s),
	}
}

func (c lab) mixWith(d lab, t float64) lab {
	return lab{c.l + (d.l-c.l)*t, c.a + (d.a-c.a)*t, c.b + (d.b-c.b)*t}
}

func (c lab) squaredDistance(d lab) float64 {
	l := c.l - d.l
	a := c.a - d.a
	b := c.b - d.b
	return l*l + a*a + b*b
}

func (c lab) toNRGBA() color.NRGBA {
	t := linearTables()
	v := c.linearRGB()
	return color.NRGBA{t.encodedByte(v.r), t.encodedByte(v.g), t.encodedByte(v.b), 255}
}

func (c rgb) mixWith(d rgb, t float32) rgb {
	return rgb{c.r + (d.r-c.r)*t, c.g + (d.g-c.g)*t, c.b + (d.b-c.b)*t}
}

func (c rgb) inGamut() bool {
	const slack = 1e-4
	return min(c.r, c.g, c.b) >= -slack && max(c.r, c.g, c.b) <= 1+slack
}

// labFromPolar returns the colour with the given lightness, chroma and hue. The
// chroma is reduced until the colour is within the sRGB gamut. The hue is an
// angle, where 1 is a full circle.
func labFromPolar(l, chroma, hue float64) lab {
	sin, cos := math.Sincos(2 * math.Pi * hue)
	for ; chroma > 0.001; chroma *= 0.95 {
		if c := (lab{l, chroma * cos, chroma * sin}); c.linearRGB().inGamut() {
			return c
		}
	}
	return lab{l: l}
}

// chooseHarmony chooses n harmonious colours at random, from dark to bright.
func chooseHarmony(r *rand.Rand, n int) []lab {
	hue := r.Float64()
	// The hues are next to each other on the colour wheel, or roughly opposite
	// each other.
	step := 0.06 + 0.08*r.Float64()
	if r.IntN(3) == 0 {
		step = 0.3 + 0.2*r.Float64()
	}
	if r.IntN(2) == 0 {
		step = -step
	}
	dark := 0.32 + 0.14*r.Float64()
	bright := 0.82 + 0.12*r.Float64()
	colours := make([]lab, n)
	for i := range colours {
		t := float64(i) / float64(max(n-1, 1))
		colours[i] = labFromPolar(dark+(bright-dark)*t, 0.10+0.08*r.Float64(), hue+step*float64(i))
	}
	return colours
}

// parseColour parses a colour written as #rgb, #rgba, #rrggbb or #rrggbbaa.
func parseColour(s string) (color.NRGBA, bool) {
	digits, marked := strings.CutPrefix(strings.TrimSpace(s), "#")
	if n := len(digits); n == 3 || n == 4 {
		var wide strings.Builder
		for _, d := range []byte(digits) {
			wide.Write([]byte{d, d})
		}
		digits = wide.String()
	}
	if len(digits) == 6 {
		digits += "ff"
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) != 8 || !marked {
		return color.NRGBA{}, false
	}
	return color.NRGBA{uint8(v >> 24), uint8(v >> 16), uint8(v >> 8), uint8(v)}, true
}
