package neural

import (
	"context"
	"fmt"
	"image"
	"math"

	"atelier/internal/base/fault"
	"atelier/internal/engine/builtin/tiny/kernel"
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
	// mostPixels is how many pixels can be enlarged. The result takes 64 bytes
	// for each, and half as much is needed on the way where it is transparent.
	mostPixels = 1 << 23
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
	width := p.Rect.Dx()
	height := p.Rect.Dy()
	if width < 1 || height < 1 || width > mostPixels/height {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("a picture of 1 to %d pixels can be enlarged", mostPixels)).On("picture")
	}
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.leave()
	out := image.NewNRGBA(image.Rect(0, 0, width*scale, height*scale))
	colours := p
	opaque := p.Opaque()
	if !opaque {
		colours = fill(p)
	}
	across := (width + side - 1) / side
	down := (height + side - 1) / side
	stages := len(m.up.convs) + 1
	for i := range across * down * stages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x := i / stages % across * side
		y := i / stages / across * side
		t := m.up.tile(colours, area{x, y, min(width, x+side), min(height, y+side)})
		if err := m.crew.run(func() {
			switch stage := i % stages; {
			case stage == 0:
				m.read(t)
				m.layer(t, 0)
			case stage < len(m.up.convs):
				m.layer(t, stage)
			default:
				m.show(t, out)
				if !opaque {
					m.fade(p, t.own, out)
				}
			}
		}); err != nil {
			return nil, err
		}
		if tell != nil {
			tell(float64(i+1) / float64(across*down*stages))
		}
	}
	return out, nil
}

// tile is a part of a picture on its way through the layers. Each layer covers
// a pixel less round it than the one before, as far as there is a picture;
// beyond are zeros.
type tile struct {
	picture   *image.NRGBA
	own       area
	left, top int // where memory begins in the picture
	halo      int
	stride    int
}

func (u *upscaler) tile(p *image.NRGBA, own area) tile {
	halo := u.halo()
	return tile{p, own, own.x0 - halo, own.y0 - halo, halo, tileSide + 2*halo}
}

// within is the tile and some pixels round it, as it lies in memory.
func (t tile) within(round int) area {
	width := t.picture.Rect.Dx()
	height := t.picture.Rect.Dy()
	return area{
		max(0, t.own.x0-round) - t.left, max(0, t.own.y0-round) - t.top,
		min(width, t.own.x1+round) - t.left, min(height, t.own.y1+round) - t.top,
	}
}

// read makes numbers from 0 to 1 of colours.
func (m *Model) read(t tile) {
	colours := m.up.work.colours
	clear(colours)
	in := t.within(t.halo)
	for y := in.y0; y < in.y1; y++ {
		row := t.picture.Pix[(y+t.top)*t.picture.Stride:]
		to := colours[y*t.stride*3:]
		for x := in.x0; x < in.x1; x++ {
			from := row[(x+t.left)*4:]
			for c := range 3 {
				to[x*3+c] = float32(from[c]) / math.MaxUint8
			}
		}
	}
}

// layer computes convolution i. Layers go from one half of memory to the
// other and back.
func (m *Model) layer(t tile, i int) {
	u := &m.up
	from := u.work.colours
	width := 3
	if i > 0 {
		from = u.result(i - 1)
		width = u.channels
	}
	var finish func([]float32)
	if i < len(u.slopes) {
		finish = func(row []float32) { m.k.PReLU(row, u.slopes[i]) }
	}
	m.convolve(&u.convs[i], from, width, u.result(i), u.channels, t.stride, t.within(len(u.convs)-1-i), finish)
}

func (u *upscaler) result(layer int) []float32 {
	if layer%2 == 0 {
		return u.work.a
	}
	return u.work.b
}

// show adds what the last layer says to the colours there were, opaque.
func (m *Model) show(t tile, out *image.NRGBA) {
	u := &m.up
	result := u.result(len(u.convs) - 1)
	m.crew.each(t.own.y1-t.own.y0, func(_ *hand, i int) {
		y := t.own.y0 + i
		for x := t.own.x0; x < t.own.x1; x++ {
			at := (y-t.top)*t.stride + x - t.left
			base := u.work.colours[at*3:][:3]
			detail := result[at*u.channels:][:3*scale*scale]
			for dy := range scale {
				row := out.Pix[(y*scale+dy)*out.Stride+x*scale*4:][:scale*4]
				for dx := range scale {
					for c, v := range base {
						row[dx*4+c] = level(v + detail[(c*scale+dy)*scale+dx])
					}
					row[dx*4+3] = math.MaxUint8
				}
			}
		}
	})
}

// level makes eight bits of a number from 0 to 1.
func level(v float32) uint8 {
	return uint8(float32(min(max(v, 0), 1)*math.MaxUint8) + .5)
}

// fade makes an area of the result as opaque as a cubic curve (Catmull-Rom)
// through the picture's pixels is.
func (m *Model) fade(p *image.NRGBA, a area, out *image.NRGBA) {
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
	width := p.Rect.Dx()
	height := p.Rect.Dy()
	first := func(i int) int { // of the four pixels that i lies amid
		if i%scale < scale/2 {
			return i/scale - 2
		}
		return i/scale - 1
	}
	m.crew.each((a.y1-a.y0)*scale, func(_ *hand, i int) {
		y := a.y0*scale + i
		for x := a.x0 * scale; x < a.x1*scale; x++ {
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
	width := p.Rect.Dx()
	height := p.Rect.Dy()
	base := layer{width, height, make([]float32, width*height*4)}
	for y := range height {
		for x := range width {
			from := p.Pix[y*p.Stride+x*4:][:4]
			to := base.v[(y*width+x)*4:][:4]
			a := float32(from[3]) / math.MaxUint8
			to[0] = a * float32(from[0])
			to[1] = a * float32(from[1])
			to[2] = a * float32(from[2])
			to[3] = a
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
		l := layers[i]
		above := layers[i+1]
		for y := range l.height {
			for x := range l.width {
				to := l.v[(y*l.width+x)*4:][:4]
				from := above.v[((y/2)*above.width+x/2)*4:][:4]
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
