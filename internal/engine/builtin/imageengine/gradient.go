package imageengine

import (
	"context"
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"strings"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// newRandom returns a random generator with the given seed.
func newRandom(seed uint32) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 0x61746c72)) }

// drawGradient draws a gradient. Its inputs are style, colours, size and grain.
// The seed determines the direction, the centre or the positions of the
// colours, and the colours themselves if the inputs have none.
func drawGradient(ctx context.Context, t task, s engine.Span, seed uint32) (pixels.Picture, error) {
	w, h, err := t.sizeInput("size", 1024, 1024)
	if err != nil {
		return pixels.Picture{}, err
	}
	r := newRandom(seed)
	chosen := chooseHarmony(r, 3) // always computed, so that the generator's later numbers do not depend on whether colours were given
	colours, err := parseColours(t.textInput("colours", ""))
	if err != nil {
		return pixels.Picture{}, err
	}
	if colours == nil {
		colours = chosen
	}
	var blend func(x, y float64) lab
	switch t.textInput("style", "linear") {
	case "linear":
		blend = linearBlend(r, colours, float64(w), float64(h))
	case "radial":
		blend = radialBlend(r, colours, float64(w), float64(h))
	case "mesh":
		blend = meshBlend(r, colours, float64(w), float64(h))
	default:
		return pixels.Picture{}, engine.ErrMisconfigured
	}
	grain := float32(26 * t.NumberInput("grain", 0.1, 0, 1)) // strength of the noise, in steps of an 8-bit channel
	if err := t.reserveMemory(ctx, 0, int64(w)*int64(h)); err != nil {
		return pixels.Picture{}, err
	}
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	err = pixels.EachRow(ctx, s, h, func(y int) {
		pix := m.Pix[y*m.Stride:][:4*w]
		for x := range w {
			c := blend(float64(x)+0.5, float64(y)+0.5).linearRGB()
			noise := float32(0)
			if grain > 0 {
				noise = grain * float32(hashUnit(seed, uint32(x), uint32(y))-hashUnit(^seed, uint32(x), uint32(y)))
			}
			p := pix[4*x:][:4]
			p[0] = encodeWithNoise(c.r, noise)
			p[1] = encodeWithNoise(c.g, noise)
			p[2] = encodeWithNoise(c.b, noise)
			p[3] = 255
		}
	})
	return pixels.Picture{NRGBA: m, Format: pixels.PNG}, err
}

// encodeWithNoise converts linear light to an sRGB byte and adds noise before
// it rounds. Noise added after rounding would not hide the steps between
// colours.
func encodeWithNoise(v, noise float32) uint8 {
	if noise == 0 {
		return linearTables().encodedByte(v)
	}
	return pixels.ClampByte(linearTables().encodedExact(v) + noise)
}

// parseColours parses two to four colours separated by commas. For an empty
// string it returns nil.
func parseColours(text string) ([]lab, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var all []lab
	for part := range strings.SplitSeq(text, ",") {
		c, ok := parseColour(part)
		if !ok || c.A != 255 {
			return nil, engine.Fail(engine.Failed, fmt.Sprintf("%q is not a colour. Write it as #rrggbb.", strings.TrimSpace(part)))
		}
		all = append(all, labOf(c))
	}
	if n := len(all); n < 2 || n > 4 {
		return nil, engine.Fail(engine.Failed, fmt.Sprintf("Two to four colours are required, not %d.", n))
	}
	return all, nil
}

// colourRamp is a list of the colours of a gradient from its start to its end,
// in equal steps.
type colourRamp []lab

// newColourRamp interpolates between the given colours. It smooths the kinks at
// the inner colours, which would be visible as lines. The first and last
// colours are exact.
func newColourRamp(colours []lab) colourRamp {
	const steps, reach = 2048, 80
	sharp := make(colourRamp, steps+1)
	for i := range sharp {
		at := float64(i) / steps * float64(len(colours)-1)
		k := min(int(at), len(colours)-2)
		sharp[i] = colours[k].mixWith(colours[k+1], at-float64(k))
	}
	sums := make(colourRamp, len(sharp)+1)
	for i, c := range sharp {
		sums[i+1] = lab{sums[i].l + c.l, sums[i].a + c.a, sums[i].b + c.b}
	}
	smooth := make(colourRamp, len(sharp))
	for i := range smooth {
		d := min(reach, i, steps-i)
		n := float64(2*d + 1)
		lo := sums[i-d]
		hi := sums[i+d+1]
		smooth[i] = lab{(hi.l - lo.l) / n, (hi.a - lo.a) / n, (hi.b - lo.b) / n}
	}
	return smooth
}

func (r colourRamp) colourAt(t float64) lab {
	f := min(max(t, 0), 1) * float64(len(r)-1)
	i := min(int(f), len(r)-2)
	return r[i].mixWith(r[i+1], f-float64(i))
}

// linearBlend returns the colour at each point of a linear gradient at a random
// angle, which reaches from corner to corner.
func linearBlend(r *rand.Rand, colours []lab, w, h float64) func(x, y float64) lab {
	way := newColourRamp(colours)
	sin, cos := math.Sincos(2 * math.Pi * r.Float64())
	length := w*math.Abs(cos) + h*math.Abs(sin)
	return func(x, y float64) lab {
		return way.colourAt(0.5 + ((x-w/2)*cos+(y-h/2)*sin)/length)
	}
}

// radialBlend returns the colour at each point of a radial gradient, from a
// random point near the centre to the farthest corner.
func radialBlend(r *rand.Rand, colours []lab, w, h float64) func(x, y float64) lab {
	way := newColourRamp(colours)
	cx := w * (0.25 + 0.5*r.Float64())
	cy := h * (0.25 + 0.5*r.Float64())
	far := math.Hypot(max(cx, w-cx), max(cy, h-cy))
	return func(x, y float64) lab { return way.colourAt(math.Hypot(x-cx, y-cy) / far) }
}

// meshBlend returns the colour at each point of a gradient between randomly
// positioned spots of colour, with slightly bent transitions.
func meshBlend(r *rand.Rand, colours []lab, w, h float64) func(x, y float64) lab {
	type blot struct {
		x, y float64
		c    lab
	}
	short := min(w, h)
	columns := max(int(math.Round(2*w/short)), 2)
	lines := max(int(math.Round(2*h/short)), 2)
	columns = min(columns, 6)
	lines = min(lines, 6)
	order := r.Perm(columns * lines)
	blots := make([]blot, 0, columns*lines)
	for i := range columns * lines {
		x := (float64(i%columns) + 0.1 + 0.8*r.Float64()) / float64(columns) * w
		y := (float64(i/columns) + 0.1 + 0.8*r.Float64()) / float64(lines) * h
		blots = append(blots, blot{x / short, y / short, colours[order[i]%len(colours)]})
	}
	phase := [4]float64{}
	for i := range phase {
		phase[i] = 2 * math.Pi * r.Float64()
	}
	const bend, soft = 0.09, 0.06
	return func(px, py float64) lab {
		x := px / short
		y := py / short
		u := x + bend*math.Sin(4.1*y+phase[0]) + bend/2*math.Sin(7.3*x+phase[2])
		v := y + bend*math.Sin(3.7*x+phase[1]) + bend/2*math.Sin(6.7*y+phase[3])
		var sum lab
		var all float64
		for i := range blots {
			b := &blots[i]
			dx := u - b.x
			dy := v - b.y
			weight := 1 / (dx*dx + dy*dy + soft)
			weight *= weight
			sum.l += b.c.l * weight
			sum.a += b.c.a * weight
			sum.b += b.c.b * weight
			all += weight
		}
		return lab{sum.l / all, sum.a / all, sum.b / all}
	}
}
