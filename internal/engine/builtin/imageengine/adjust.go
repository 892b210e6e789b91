package imageengine

import (
	"context"
	"math"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// adjustPicture changes exposure, contrast and colour of a picture. Its inputs
// are picture, exposure, contrast, saturation, warmth and mono.
func adjustPicture(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.fileInput("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	if err := t.reserveInPlace(ctx, f, 0); err != nil {
		return pixels.Picture{}, err
	}
	p, err := pixels.Read(ctx, s.SubSpan(0, 0.4), f)
	if err != nil {
		return pixels.Picture{}, err
	}
	change := toneCurve{
		gain:     channelGains(t.NumberInput("exposure", 0, -10, 10), t.NumberInput("warmth", 0, -1, 1)),
		contrast: t.NumberInput("contrast", 0, -1, 1),
		colour:   float32(1 + t.NumberInput("saturation", 0, -1, 1)),
		mono:     t.flagInput("mono", false),
	}
	change.fillTables()
	m := p.NRGBA
	err = pixels.EachRow(ctx, s.SubSpan(0.4, 1), m.Rect.Dy(), func(y int) {
		pix := m.Pix[y*m.Stride:][:4*m.Rect.Dx()]
		for i := 0; i < len(pix); i += 4 {
			change.adjustPixel(pix[i:][:3])
		}
	})
	return p, err
}

// channelGains returns the factors for the linear light of red, green and blue.
// An exposure of 1 doubles the light, like one stop of a camera. Warmth shifts
// light from blue to red and keeps the brightness of grey.
func channelGains(exposure, warmth float64) [3]float64 {
	const reach = 0.4 // strongest effect of warmth on red and blue, in camera stops
	r := math.Exp2(reach * warmth)
	g := 1.0
	b := math.Exp2(-reach * warmth)
	all := math.Exp2(exposure) / (0.2126*r + 0.7152*g + 0.0722*b)
	return [3]float64{r * all, g * all, b * all}
}

// toneCurve adjusts the colours of pixels. All steps that affect a single
// channel are lookup tables.
type toneCurve struct {
	gain     [3]float64
	contrast float64
	colour   float32
	mono     bool

	linear [3][256]float32 // linear light of each channel after the gain, by stored byte, for black-and-white pictures
	curve  [3][256]float32 // stored value of each channel after gain and contrast, from 0 to 255, by stored byte
	grey   [4096]uint8     // stored byte after contrast, by the square root of linear light times 4095
}

// fillTables computes the lookup tables from the settings.
func (t *toneCurve) fillTables() {
	for c := range t.curve {
		for i := range t.curve[c] {
			v := decodeSRGB(float64(i)/255) * t.gain[c]
			t.linear[c][i] = float32(v)
			t.curve[c][i] = float32(255 * applyContrast(encodeSRGB(min(v, 1)), t.contrast))
		}
	}
	for i := range t.grey {
		// The table is indexed by the square root of the light, which gives
		// dark greys more entries.
		v := float64(i) / float64(len(t.grey)-1)
		t.grey[i] = pixels.ClampByte(float32(255 * applyContrast(encodeSRGB(v*v), t.contrast)))
	}
}

// applyContrast moves an sRGB value between 0 and 1 away from middle grey, or
// towards it if contrast is negative. Positive contrast follows an S-shaped
// curve, so that no value is clipped.
func applyContrast(v, contrast float64) float64 {
	if contrast <= 0 {
		return 0.5 + (v-0.5)*(1+contrast)
	}
	power := 1 + 1.5*contrast
	if v < 0.5 {
		return 0.5 * math.Pow(2*v, power)
	}
	return 1 - 0.5*math.Pow(2-2*v, power)
}

// adjustPixel adjusts red, green and blue of one pixel in place.
func (t *toneCurve) adjustPixel(p []uint8) {
	if t.mono {
		y := 0.2126*t.linear[0][p[0]] + 0.7152*t.linear[1][p[1]] + 0.0722*t.linear[2][p[2]]
		v := t.grey[int(math.Sqrt(float64(min(y, 1)))*float64(len(t.grey)-1)+0.5)]
		p[0] = v
		p[1] = v
		p[2] = v
		return
	}
	r := t.curve[0][p[0]]
	g := t.curve[1][p[1]]
	b := t.curve[2][p[2]]
	if t.colour != 1 {
		grey := 0.2126*r + 0.7152*g + 0.0722*b
		r = grey + (r-grey)*t.colour
		g = grey + (g-grey)*t.colour
		b = grey + (b-grey)*t.colour
	}
	p[0] = pixels.ClampByte(r)
	p[1] = pixels.ClampByte(g)
	p[2] = pixels.ClampByte(b)
}
