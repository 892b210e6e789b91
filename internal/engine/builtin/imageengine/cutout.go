package imageengine

import (
	"context"
	"fmt"
	"image"
	"image/color"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// cutOutSubject removes a plain background. Its inputs are picture, tolerance,
// soften, holes and background.
//
// It learns the background's colour from the border of the picture
// (learnBackground), marks connected pixels of that colour from the border
// inwards (findBackground), and separates the pixels along the subject's edge
// into subject and background (applyMatte).
func cutOutSubject(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.fileInput("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	under, err := t.parseBackground("background")
	if err != nil {
		return pixels.Picture{}, err
	}
	// Bytes per pixel for its state, its depth, and the stack of pixels to
	// visit.
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
	// The tolerance is a distance in Oklab. 0.02 is about the smallest visible
	// difference.
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

// parseBackground returns the colour to put behind the subject. It is
// transparent by default.
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

// layOnColour puts a colour behind the pixels of a row, in place.
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

// The states of a pixel during the search for the background.
const (
	unlike uint8 = iota // differs from the background's colour
	like                // close to the background's colour, or a soft shadow on it
	exact               // certainly the background's colour
	ground              // part of the background
	kept                // visited, and part of the subject
)

// findBackground returns the state of each pixel; background pixels have the
// state ground. The background is all pixels that are connected to the border
// through pixels of a similar colour, and specks that are too small for a
// subject. If holes is set, enclosed regions of exactly the background's colour
// are background too.
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
	// A hole has more than 1/5000 of the picture's pixels. A region of at most
	// 1/20000 of the pixels is a speck of dust.
	hole := max(width*height/5000, 12)
	speck := max(width*height/20000, 4)
	left := 0
	for i, v := range f.state {
		if i%(1<<20) == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch {
		case v == exact && holes:
			// Enclosed regions must have exactly the background's colour.
			// Otherwise every highlight would be a hole.
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

// floodFill changes the state of connected pixels.
type floodFill struct {
	ctx   context.Context
	w, h  int
	state []uint8
	stack []int
	seen  []int
}

func (f *floodFill) pushPixel(x, y int) { f.stack = append(f.stack, y*f.w+x) }

// fillRegion sets all pixels that are connected to the pixels on the stack to a
// new state (into). through reports whether a pixel with a given state belongs
// to the region.
//
// If minPixels is above 0, a region of at most minPixels pixels gets the state
// kept instead. If minPixels is below 0, a region of at most -minPixels pixels
// gets the state ground.
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
		// Extend the run to both ends in its row, then search for connected
		// pixels above and below it.
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
			open := false // one stack entry per run of pixels is enough
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
