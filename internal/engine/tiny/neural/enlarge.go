package neural

import (
	"context"
	"fmt"
	"image"
	"math"

	"atelier/internal/engine/tiny/kernel"
)

// upscaler is convolutions that tell, for each pixel, how the sixteen pixels
// that it becomes differ from it.
type upscaler struct {
	channels int
	convs    []convolution
	slopes   [][]float32

	work struct{ colours, a, b []float32 }
}

const (
	// scale is how many times wider and higher pictures become.
	scale = 4
	// tileSide is how much of a picture is enlarged at a time. Each tile is
	// computed with the pixels round it that its own depend on, so that nobody
	// can tell where tiles were.
	tileSide = 128
)

func openUpscaler(s *store, k kernel.Kernel) upscaler {
	c := s.index.Config
	u := upscaler{channels: c.Channels}
	in := 3
	for i := range c.Layers + 1 {
		u.convs = append(u.convs, openConvolution(s, k, fmt.Sprintf("convs.%d", i), in, c.Channels))
		u.slopes = append(u.slopes, s.half(fmt.Sprintf("slopes.%d", i), c.Channels))
		in = c.Channels
	}
	u.convs = append(u.convs, openConvolution(s, k, fmt.Sprintf("convs.%d", c.Layers+1), in, 3*scale*scale))
	return u
}

// halo is how many pixels round a tile its result depends on.
func (u *upscaler) halo() int { return len(u.convs) }

func (u *upscaler) lay(a *arena) {
	side := tileSide + 2*u.halo()
	a.lay(&u.work.colours, side*side*3)
	a.lay(&u.work.a, side*side*u.channels)
	a.lay(&u.work.b, side*side*u.channels)
}

// Enlarge makes a picture four times as wide and high. tell gets the share
// done. Colours go through the network, also where the picture is transparent,
// where they are carried on from what is visible; how opaque it is comes from
// a cubic curve.
func (m *Model) Enlarge(ctx context.Context, p *image.NRGBA, tell func(share float64)) (*image.NRGBA, error) {
	return m.enlarge(ctx, p, tileSide, tell)
}

func (m *Model) enlarge(ctx context.Context, p *image.NRGBA, side int, tell func(share float64)) (*image.NRGBA, error) {
	width, height := p.Rect.Dx(), p.Rect.Dy()
	out := image.NewNRGBA(image.Rect(0, 0, width*scale, height*scale))
	if width == 0 || height == 0 {
		return out, nil
	}
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.leave()
	opaque := p.Opaque()
	filled := p
	if !opaque {
		filled = fill(p)
	}
	across, down := (width+side-1)/side, (height+side-1)/side
	for i := range across * down {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x, y := i%across*side, i/across*side
		tile := area{x, y, min(width, x+side), min(height, y+side)}
		if err := m.crew.run(func() { m.enlargeTile(ctx, filled, tile, out) }); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil { // then the tile was left half way
			return nil, err
		}
		if tell != nil {
			tell(float64(i+1) / float64(across*down))
		}
	}
	if opaque {
		for i := 3; i < len(out.Pix); i += 4 {
			out.Pix[i] = math.MaxUint8
		}
		return out, nil
	}
	return out, m.crew.run(func() { m.enlargeAlpha(p, out) })
}

// enlargeTile computes one tile. Each layer covers a pixel less round it than
// the one before, as far as there is a picture; beyond are zeros.
func (m *Model) enlargeTile(ctx context.Context, p *image.NRGBA, tile area, out *image.NRGBA) {
	u := &m.up
	width, height := p.Rect.Dx(), p.Rect.Dy()
	halo := u.halo()
	stride := tileSide + 2*halo
	left, top := tile.x0-halo, tile.y0-halo // where the memory begins in the picture
	within := func(round int) area {
		return area{max(0, tile.x0-round) - left, max(0, tile.y0-round) - top, min(width, tile.x1+round) - left, min(height, tile.y1+round) - top}
	}
	colours := u.work.colours
	clear(colours)
	in := within(halo)
	for y := in.y0; y < in.y1; y++ {
		row, to := p.Pix[(y+top)*p.Stride:], colours[y*stride*3:]
		for x := in.x0; x < in.x1; x++ {
			from := row[(x+left)*4:]
			for c := range 3 {
				to[x*3+c] = float32(from[c]) / math.MaxUint8
			}
		}
	}
	from, fromWidth := colours, 3
	to, other := u.work.a, u.work.b
	for i := range u.convs {
		if ctx.Err() != nil {
			return
		}
		var finish func([]float32)
		if i < len(u.slopes) {
			finish = func(row []float32) { m.k.PReLU(row, u.slopes[i]) }
		}
		m.convolve(&u.convs[i], from, fromWidth, to, u.channels, stride, within(len(u.convs)-1-i), finish)
		from, fromWidth = to, u.channels
		to, other = other, to
	}
	m.crew.each(tile.y1-tile.y0, func(_ *hand, i int) {
		y := tile.y0 + i
		for x := tile.x0; x < tile.x1; x++ {
			at := (y-top)*stride + x - left
			base, detail := colours[at*3:][:3], from[at*u.channels:][:3*scale*scale]
			for dy := range scale {
				row := out.Pix[(y*scale+dy)*out.Stride+x*scale*4:][:scale*4]
				for dx := range scale {
					for c, v := range base {
						row[dx*4+c] = level(v + detail[(c*scale+dy)*scale+dx])
					}
				}
			}
		}
	})
}

// level makes eight bits of a number from 0 to 1.
func level(v float32) uint8 {
	return uint8(float32(min(max(v, 0), 1)*math.MaxUint8) + .5)
}

// enlargeAlpha draws a cubic curve (Catmull-Rom) through how opaque pixels are.
func (m *Model) enlargeAlpha(p, out *image.NRGBA) {
	var weights [scale][4]float32
	for i := range weights {
		t := (float64(i)+.5)/scale - .5
		if t < 0 {
			t++ // from the pixel before
		}
		weights[i] = [4]float32{
			float32(-.5*t + t*t - .5*t*t*t), float32(1 - 2.5*t*t + 1.5*t*t*t), float32(.5*t + 2*t*t - 1.5*t*t*t), float32(-.5*t*t + .5*t*t*t),
		}
	}
	width, height := p.Rect.Dx(), p.Rect.Dy()
	first := func(i int) int { // of the four pixels that i lies amid
		if i%scale < scale/2 {
			return i/scale - 2
		}
		return i/scale - 1
	}
	m.crew.each(height*scale, func(_ *hand, y int) {
		for x := range width * scale {
			var sum float32
			for j, wy := range weights[y%scale] {
				row := p.Pix[min(max(first(y)+j, 0), height-1)*p.Stride:]
				var across float32
				for i, wx := range weights[x%scale] {
					across += float32(wx * float32(row[min(max(first(x)+i, 0), width-1)*4+3]))
				}
				sum += float32(wy * across)
			}
			out.Pix[y*out.Stride+x*4+3] = uint8(min(max(sum, 0), math.MaxUint8) + .5)
		}
	})
}

// fill gives transparent pixels the colour of what is visible near them:
// averages of ever larger squares, weighted by how opaque their pixels are,
// until there is something.
func fill(p *image.NRGBA) *image.NRGBA {
	type layer struct {
		width, height int
		v             []float32 // red, green and blue times alpha, and alpha
	}
	width, height := p.Rect.Dx(), p.Rect.Dy()
	base := layer{width, height, make([]float32, width*height*4)}
	for y := range height {
		for x := range width {
			from, to := p.Pix[y*p.Stride+x*4:][:4], base.v[(y*width+x)*4:][:4]
			a := float32(from[3]) / math.MaxUint8
			to[0], to[1], to[2], to[3] = a*float32(from[0]), a*float32(from[1]), a*float32(from[2]), a
		}
	}
	layers := []layer{base}
	for l := base; l.width > 1 || l.height > 1; {
		half := layer{(l.width + 1) / 2, (l.height + 1) / 2, nil}
		half.v = make([]float32, half.width*half.height*4)
		for y := range l.height {
			for x := range l.width {
				for c, v := range l.v[(y*l.width+x)*4:][:4] {
					half.v[((y/2)*half.width+x/2)*4+c] += v
				}
			}
		}
		layers = append(layers, half)
		l = half
	}
	// From coarse to fine, what a layer does not know comes from the one above.
	for i := len(layers) - 2; i >= 0; i-- {
		l, above := layers[i], layers[i+1]
		for y := range l.height {
			for x := range l.width {
				to, from := l.v[(y*l.width+x)*4:][:4], above.v[((y/2)*above.width+x/2)*4:][:4]
				if to[3] == 0 && from[3] > 0 {
					for c := range to {
						to[c] = from[c] / from[3]
					}
				}
			}
		}
	}
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		v := base.v[i*4:][:4]
		for c := range 3 {
			if v[3] > 0 {
				out.Pix[i*4+c] = uint8(min(v[c]/v[3], math.MaxUint8) + .5)
			}
		}
		out.Pix[i*4+3] = math.MaxUint8
	}
	return out
}
