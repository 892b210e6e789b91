package imageengine

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// extractPalette draws a card with a picture's main colours. Its inputs are
// picture, colours and labels.
func extractPalette(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.fileInput("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	in, err := pixels.ReadHeader(ctx, f)
	if err != nil {
		return pixels.Picture{}, err
	}
	if err := t.reserveMemory(ctx, in.Memory, cardPixels); err != nil {
		return pixels.Picture{}, err
	}
	p, err := pixels.Read(ctx, s.SubSpan(0, 0.4), f)
	if err != nil {
		return pixels.Picture{}, err
	}
	seen, err := countColours(ctx, s.SubSpan(0.4, 0.8), p.NRGBA)
	if err != nil {
		return pixels.Picture{}, err
	}
	if len(seen) == 0 {
		return pixels.Picture{}, engine.Fail(engine.Failed, "The picture has no colours because all of it is transparent.")
	}
	found, err := groupColours(ctx, seen, int(t.NumberInput("colours", 6, 1, 64)))
	if err != nil {
		return pixels.Picture{}, err
	}
	m, err := drawCard(found, t.flagInput("labels", true))
	return pixels.Picture{NRGBA: m, Format: pixels.PNG}, err
}

// weightedColour is a colour and its weight: the sum of the alpha values of its
// pixels.
type weightedColour struct {
	lab
	weight float64
}

// countColours returns the colours of a picture. Colours that agree in the
// upper five bits of each channel are merged.
func countColours(ctx context.Context, s engine.Span, m *image.NRGBA) ([]weightedColour, error) {
	const bits = 5
	type bin struct{ r, g, b, weight uint64 }
	bins := make([]bin, 1<<(3*bits))
	err := pixels.EachRow(ctx, s, m.Rect.Dy(), func(y int) {
		pix := m.Pix[y*m.Stride:][:4*m.Rect.Dx()]
		for i := 0; i < len(pix); i += 4 {
			r := pix[i]
			g := pix[i+1]
			b := pix[i+2]
			a := uint64(pix[i+3])
			to := &bins[int(r>>(8-bits))<<(2*bits)|int(g>>(8-bits))<<bits|int(b>>(8-bits))]
			to.r += uint64(r) * a
			to.g += uint64(g) * a
			to.b += uint64(b) * a
			to.weight += a
		}
	})
	var all []weightedColour
	for _, b := range bins {
		if w := b.weight; w > 0 {
			mean := func(sum uint64) uint8 { return uint8((sum + w/2) / w) }
			all = append(all, weightedColour{labOf(color.NRGBA{mean(b.r), mean(b.g), mean(b.b), 255}), float64(w)})
		}
	}
	return all, err
}

// groupColours finds at most n representative colours by k-means clustering in
// Oklab and returns them by frequency, most frequent first. It starts with
// frequent, clearly different colours instead of random colours, so the result
// is always the same.
func groupColours(ctx context.Context, seen []weightedColour, n int) ([]color.NRGBA, error) {
	const (
		rounds = 24
		// same is the squared Oklab distance below which two colours look
		// equal.
		same = 0.012 * 0.012
	)
	centres := chooseCentres(seen, n, same)
	var weights []float64
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sums := make([]weightedColour, len(centres))
		for _, c := range seen {
			i := nearestCentre(centres, c.lab)
			sums[i].l += c.l * c.weight
			sums[i].a += c.a * c.weight
			sums[i].b += c.b * c.weight
			sums[i].weight += c.weight
		}
		moved := false
		weights = weights[:0]
		for i, sum := range sums {
			weights = append(weights, sum.weight)
			if sum.weight == 0 {
				continue
			}
			mean := lab{sum.l / sum.weight, sum.a / sum.weight, sum.b / sum.weight}
			moved = moved || mean.squaredDistance(centres[i]) > 1e-9
			centres[i] = mean
		}
		if !moved {
			break
		}
	}
	order := make([]weightedColour, len(centres))
	for i := range centres {
		order[i] = weightedColour{centres[i], weights[i]}
	}
	slices.SortStableFunc(order, func(a, b weightedColour) int { return cmp.Compare(b.weight, a.weight) })
	found := make([]color.NRGBA, len(order))
	for i := range order {
		found[i] = order[i].toNRGBA()
	}
	return slices.Compact(found), nil
}

// chooseCentres chooses the initial centres of the clusters: frequent, clearly
// different colours.
func chooseCentres(seen []weightedColour, n int, same float64) []lab {
	first := slices.MaxFunc(seen, func(a, b weightedColour) int { return cmp.Compare(a.weight, b.weight) })
	centres := []lab{first.lab}
	away := make([]float64, len(seen))
	for i := range away {
		away[i] = math.Inf(1)
	}
	for len(centres) < n {
		best := 0.0
		at := -1
		for i, c := range seen {
			away[i] = min(away[i], c.squaredDistance(centres[len(centres)-1]))
			if score := away[i] * math.Sqrt(c.weight); away[i] > same && score > best {
				best = score
				at = i
			}
		}
		if at < 0 {
			break // the picture has fewer distinct colours
		}
		centres = append(centres, seen[at].lab)
	}
	return centres
}

func nearestCentre(centres []lab, c lab) int {
	best := math.Inf(1)
	at := 0
	for i, d := range centres {
		if far := c.squaredDistance(d); far < best {
			best = far
			at = i
		}
	}
	return at
}

// Dimensions of a palette card in pixels.
const (
	cardSwatch = 224
	cardGap    = 32
	cardLabel  = 52 // height of the label below a swatch
	cardRound  = 20
	cardLetter = 30
)

// drawCard draws a card with the colours: up to five colours in one row, more
// colours in about as many rows as columns.
func drawCard(colours []color.NRGBA, labels bool) (*image.NRGBA, error) {
	columns := len(colours)
	if columns > 5 {
		columns = int(math.Ceil(math.Sqrt(float64(len(colours)))))
	}
	lines := (len(colours) + columns - 1) / columns
	height := cardSwatch
	if labels {
		height += cardLabel
	}
	m := image.NewRGBA(image.Rect(0, 0, cardGap+columns*(cardSwatch+cardGap), cardGap+lines*(height+cardGap)))
	draw.Draw(m, m.Rect, image.NewUniform(color.NRGBA{0xfa, 0xfa, 0xf8, 0xff}), image.Point{}, draw.Src)
	face, err := newFontFace(cardLetter)
	if err != nil {
		return nil, err
	}
	defer face.Close()
	writer := font.Drawer{Dst: m, Src: image.NewUniform(color.NRGBA{0x22, 0x22, 0x22, 0xff}), Face: face}
	mask := roundSquare(cardSwatch, cardRound)
	for i, c := range colours {
		at := image.Pt(cardGap+i%columns*(cardSwatch+cardGap), cardGap+i/columns*(height+cardGap))
		draw.DrawMask(m, mask.Rect.Add(at), image.NewUniform(c), image.Point{}, mask, image.Point{}, draw.Over)
		if !labels {
			continue
		}
		text := fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
		left := (fixed.I(cardSwatch) - writer.MeasureString(text)) / 2
		writer.Dot = fixed.Point26_6{X: fixed.I(at.X) + left, Y: fixed.I(at.Y + cardSwatch + cardLabel - 10)}
		writer.DrawString(text)
	}
	return &image.NRGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}, nil
}

// roundSquare returns a mask of a square with rounded corners.
func roundSquare(side int, radius float64) *image.Alpha {
	m := image.NewAlpha(image.Rect(0, 0, side, side))
	half := float64(side) / 2
	for y := range side {
		for x := range side {
			dx := max(math.Abs(float64(x)+0.5-half)-(half-radius), 0)
			dy := max(math.Abs(float64(y)+0.5-half)-(half-radius), 0)
			m.Pix[y*m.Stride+x] = pixels.ClampByte(float32(255 * min(max(radius-math.Hypot(dx, dy)+0.5, 0), 1)))
		}
	}
	return m
}
