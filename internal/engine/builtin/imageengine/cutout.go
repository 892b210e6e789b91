package imageengine

import (
	"context"
	"fmt"
	"image"
	"image/color"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// cutout: picture, tolerance, soften, holes, background.
//
// The colour of the background is learned from the border. From there it is
// followed inwards as far as it goes (ground), and along the edge of what is
// left, pixels are taken apart into subject and background (matte).
func cutout(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.file("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	under, err := t.ground("background")
	if err != nil {
		return pixels.Picture{}, err
	}
	// What state each pixel is in, how deep it lies, and those still to be looked at.
	const scratch = 10
	if err := t.reserveInPlace(ctx, f, scratch); err != nil {
		return pixels.Picture{}, err
	}
	p, err := pixels.Read(ctx, s.Part(0, 0.2), f)
	if err != nil {
		return pixels.Picture{}, err
	}
	m := p.NRGBA
	wall, err := learn(m)
	if err != nil {
		return pixels.Picture{}, err
	}
	// A distance in Oklab: 0.02 is what people just tell apart.
	tolerance := 0.02 + 0.2*t.Number("tolerance", 0.3, 0, 1)
	area, err := follow(ctx, s.Part(0.2, 0.6), m, wall, tolerance, t.flag("holes", false))
	if err != nil {
		return pixels.Picture{}, err
	}
	if err := matte(ctx, s.Part(0.6, 0.95), m, area, t.Number("soften", 0.5, 0, 8)); err != nil {
		return pixels.Picture{}, err
	}
	if under.A > 0 {
		err = bands(ctx, s.Part(0.95, 1), m.Rect.Dy(), 16, func(from, to int) {
			for y := from; y < to; y++ {
				lay(m.Pix[y*m.Stride:][:4*m.Rect.Dx()], under)
			}
		})
	}
	return pixels.Picture{NRGBA: m, Format: pixels.PNG}, err
}

// ground reads what the subject is set on.
func (t task) ground(key string) (color.NRGBA, error) {
	switch text := t.text(key, "transparent"); text {
	case "transparent":
		return color.NRGBA{}, nil
	case "white":
		return color.NRGBA{255, 255, 255, 255}, nil
	case "black":
		return color.NRGBA{0, 0, 0, 255}, nil
	default:
		c, ok := parseColour(text)
		if !ok {
			return c, engine.Fail(engine.Failed, fmt.Sprintf("The background %q is not a colour: write transparent, white, black, or #rrggbb.", text))
		}
		return c, nil
	}
}

// lay puts a colour under pixels.
func lay(pix []uint8, under color.NRGBA) {
	below := [3]float32{float32(under.R), float32(under.G), float32(under.B)}
	share := float32(under.A) / 255
	for i := 0; i < len(pix); i += 4 {
		a := float32(pix[i+3]) / 255
		sum := a + share*(1-a)
		if sum == 0 {
			continue
		}
		for c := range 3 {
			pix[i+c] = pixels.Byte((float32(pix[i+c])*a + below[c]*share*(1-a)) / sum)
		}
		pix[i+3] = pixels.Byte(sum * 255)
	}
}

// The states of a pixel while the background is followed.
const (
	unlike uint8 = iota // another colour
	like                // the background's colour, or nearly so and without an edge
	exact               // the background's colour for sure
	ground              // background
	kept                // subject, looked at
)

// follow finds the background: all that can be reached from the border through
// pixels like it. Enclosed parts of exactly its colour are background with
// holes, and specks that are too small for a subject always are. The result
// has ground where background is, something else elsewhere.
func follow(ctx context.Context, s engine.Span, m *image.NRGBA, w *wall, tolerance float64, holes bool) ([]uint8, error) {
	width := m.Rect.Dx()
	height := m.Rect.Dy()
	f := flood{ctx: ctx, w: width, h: height, state: make([]uint8, width*height)}
	err := bands(ctx, s.Part(0, 0.7), height, 16, func(from, to int) {
		for y := from; y < to; y++ {
			w.compare(m, y, tolerance, f.state[y*width:][:width])
		}
	})
	if err != nil {
		return nil, err
	}
	for x := range width {
		f.add(x, 0)
		f.add(x, height-1)
	}
	for y := range height {
		f.add(0, y)
		f.add(width-1, y)
	}
	if err := f.spread(func(v uint8) bool { return v == like || v == exact }, ground, 0); err != nil {
		return nil, err
	}
	s.At(0.8)
	// A hole is seen from about a fortieth of the picture's side on, a speck of
	// a third of that is dust.
	hole := max(width*height/5000, 12)
	speck := max(width*height/20000, 4)
	left := 0
	for i, v := range f.state {
		if i%(1<<20) == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch {
		case v == exact && holes:
			// Only its exact colour counts within the subject, or every
			// highlight would be a hole.
			f.stack = append(f.stack, i)
			err = f.spread(func(v uint8) bool { return v == exact }, ground, hole)
		case v != ground && v != kept:
			f.stack = append(f.stack, i)
			err = f.spread(func(v uint8) bool { return v != ground && v != kept && !(holes && v == exact) }, kept, -speck)
		}
		if err != nil {
			return nil, err
		}
		if f.state[i] != ground {
			left++
		}
	}
	s.At(1)
	if left == 0 {
		return nil, engine.Fail(engine.Failed, "Nothing stands out from the background. Try less tolerance, or a picture with more contrast.")
	}
	return f.state, nil
}

// flood fills connected pixels.
type flood struct {
	ctx   context.Context
	w, h  int
	state []uint8
	stack []int
	seen  []int
}

func (f *flood) add(x, y int) { f.stack = append(f.stack, y*f.w+x) }

// spread turns what is connected to the stack into a state.
//
// With least above 0, a part of fewer pixels becomes kept instead; below 0, one
// of at most as many becomes ground.
func (f *flood) spread(through func(uint8) bool, into uint8, least int) error {
	f.seen = f.seen[:0]
	count := 0
	bound := max(least, -least)
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
			open := false // one entry for each run is enough
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
	if least < 0 {
		small = ground
	}
	if least != 0 && count <= bound {
		for _, i := range f.seen {
			f.state[i] = small
		}
	}
	return nil
}
