package imageengine

import (
	"context"
	"fmt"
	"image"
	"image/color"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// cutOutSubject removes a plain background. Inputs: picture, tolerance, soften, holes, background.
//
// The colour of the background is learned from the border (learnBackground) and followed inwards
// from there (findBackground). Pixels along the subject's edge are separated into subject and
// background (applyMatte).
func cutOutSubject(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.fileInput("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	under, err := t.parseBackground("background")
	if err != nil {
		return pixels.Picture{}, err
	}
	// Bytes per pixel: its state, its depth, and the stack of pixels to visit.
	const scratch = 10
	if err := t.reserveInPlace(ctx, f, scratch); err != nil {
		return pixels.Picture{}, err
	}
	p, err := pixels.Read(ctx, s.SubSpan(0, 0.2), f)
	if err != nil {
		return pixels.Picture{}, err
	}
	m := p.NRGBA
	wall, err := learnBackground(m)
	if err != nil {
		return pixels.Picture{}, err
	}
	// A distance in Oklab. 0.02 is the smallest difference that people see.
	tolerance := 0.02 + 0.2*t.NumberInput("tolerance", 0.3, 0, 1)
	area, err := findBackground(ctx, s.SubSpan(0.2, 0.6), m, wall, tolerance, t.flagInput("holes", false))
	if err != nil {
		return pixels.Picture{}, err
	}
	if err := applyMatte(ctx, s.SubSpan(0.6, 0.95), m, area, t.NumberInput("soften", 0.5, 0, 8)); err != nil {
		return pixels.Picture{}, err
	}
	if under.A > 0 {
		err = eachBand(ctx, s.SubSpan(0.95, 1), m.Rect.Dy(), 16, func(from, to int) {
			for y := from; y < to; y++ {
				layOnColour(m.Pix[y*m.Stride:][:4*m.Rect.Dx()], under)
			}
		})
	}
	return pixels.Picture{NRGBA: m, Format: pixels.PNG}, err
}

// parseBackground reads the colour that is put behind the subject.
func (t task) parseBackground(key string) (color.NRGBA, error) {
	switch text := t.textInput(key, "transparent"); text {
	case "transparent":
		return color.NRGBA{}, nil
	case "white":
		return color.NRGBA{255, 255, 255, 255}, nil
	case "black":
		return color.NRGBA{0, 0, 0, 255}, nil
	default:
		c, ok := parseColour(text)
		if !ok {
			return c, engine.Fail(engine.Failed, fmt.Sprintf("The background %q is not a colour. Write transparent, white, black, or #rrggbb.", text))
		}
		return c, nil
	}
}

// layOnColour puts a colour behind the pixels of a row.
func layOnColour(pix []uint8, under color.NRGBA) {
	below := [3]float32{float32(under.R), float32(under.G), float32(under.B)}
	share := float32(under.A) / 255
	for i := 0; i < len(pix); i += 4 {
		a := float32(pix[i+3]) / 255
		sum := a + share*(1-a)
		if sum == 0 {
			continue
		}
		for c := range 3 {
			pix[i+c] = pixels.ClampByte((float32(pix[i+c])*a + below[c]*share*(1-a)) / sum)
		}
		pix[i+3] = pixels.ClampByte(sum * 255)
	}
}

// The states of a pixel while the background is searched for.
const (
	unlike uint8 = iota // another colour
	like                // the background's colour, or close to it without an edge between
	exact               // certainly the background's colour
	ground              // background
	kept                // subject, visited
)

// findBackground marks the background: all pixels that are connected to the border through pixels
// like it. If holes is set, enclosed parts of exactly the background's colour count as background
// too. Specks that are too small for a subject always do. In the result, background pixels have
// the state ground.
func findBackground(ctx context.Context, s engine.Span, m *image.NRGBA, w *backgroundModel, tolerance float64, holes bool) ([]uint8, error) {
	width := m.Rect.Dx()
	height := m.Rect.Dy()
	f := floodFill{ctx: ctx, w: width, h: height, state: make([]uint8, width*height)}
	err := eachBand(ctx, s.SubSpan(0, 0.7), height, 16, func(from, to int) {
		for y := from; y < to; y++ {
			w.classifyRow(m, y, tolerance, f.state[y*width:][:width])
		}
	})
	if err != nil {
		return nil, err
	}
	for x := range width {
		f.pushPixel(x, 0)
		f.pushPixel(x, height-1)
	}
	for y := range height {
		f.pushPixel(0, y)
		f.pushPixel(width-1, y)
	}
	if err := f.fillRegion(func(v uint8) bool { return v == like || v == exact }, ground, 0); err != nil {
		return nil, err
	}
	s.ReportProgress(0.8)
	// A hole has at least about a fortieth of the picture's side; a speck of a
	// third of that is dust.
	hole := max(width*height/5000, 12)
	speck := max(width*height/20000, 4)
	left := 0
	for i, v := range f.state {
		if i%(1<<20) == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch {
		case v == exact && holes:
			// Within the subject only the exact colour counts. Otherwise every
			// highlight would be a hole.
			f.stack = append(f.stack, i)
			err = f.fillRegion(func(v uint8) bool { return v == exact }, ground, hole)
		case v != ground && v != kept:
			f.stack = append(f.stack, i)
			err = f.fillRegion(func(v uint8) bool { return v != ground && v != kept && !(holes && v == exact) }, kept, -speck)
		}
		if err != nil {
			return nil, err
		}
		if f.state[i] != ground {
			left++
		}
	}
	s.ReportProgress(1)
	if left == 0 {
		return nil, engine.Fail(engine.Failed, "Nothing stands out from the background. Try less tolerance, or a picture with more contrast.")
	}
	return f.state, nil
}

// floodFill fills connected pixels.
type floodFill struct {
	ctx   context.Context
	w, h  int
	state []uint8
	stack []int
	seen  []int
}

func (f *floodFill) pushPixel(x, y int) { f.stack = append(f.stack, y*f.w+x) }

// fillRegion sets the state of all pixels that are connected to the pixels on the stack.
//
// If minPixels is above 0, a region of fewer pixels becomes kept instead. If it is below 0, a
// region of at most -minPixels pixels becomes ground.
func (f *floodFill) fillRegion(through func(uint8) bool, into uint8, minPixels int) error {
	f.seen = f.seen[:0]
	count := 0
	bound := max(minPixels, -minPixels)
	for len(f.stack) > 0 {
		i := f.stack[len(f.stack)-1]
		f.stack = f.stack[:len(f.stack)-1]
		if !through(f.state[i]) {
			continue
		}
		// To both ends of the row, and from each pixel up and down.
		first := i
		last := i
		for first%f.w > 0 && through(f.state[first-1]) {
			first--
		}
		for last%f.w < f.w-1 && through(f.state[last+1]) {
			last++
		}
		if count += last - first + 1; count%(1<<16) < last-first+1 && f.ctx.Err() != nil {
			return f.ctx.Err()
		}
		for i := first; i <= last; i++ {
			f.state[i] = into
			if len(f.seen) < bound {
				f.seen = append(f.seen, i)
			}
		}
		for _, next := range [2]int{first - f.w, first + f.w} {
			if next < 0 || next >= len(f.state) {
				continue
			}
			open := false // one entry per run of pixels is enough
			for i := next; i <= next+last-first; i++ {
				now := through(f.state[i])
				if now && !open {
					f.stack = append(f.stack, i)
				}
				open = now
			}
		}
	}
	small := kept
	if minPixels < 0 {
		small = ground
	}
	if minPixels != 0 && count <= bound {
		for _, i := range f.seen {
			f.state[i] = small
		}
	}
	return nil
}
