package neural

import (
	"context"
	"fmt"
	"image"
	"math"

	"atelier/internal/base/fault"
	"atelier/internal/engine/builtin/tiny/kernel"
)

// upscaler is a network of convolutions. For each pixel it predicts how the
// sixteen pixels that replace it differ from its colour.
type upscaler struct {
	channels int
	convs    []convolution
	slopes   [][]float32

	work struct{ colours, a, b []float32 }
}

const (
	// upscaleFactor is the factor by which width and height are enlarged.
	upscaleFactor = 4
	// tileSide is the side length in pixels of the tiles in which a picture is
	// enlarged. Each tile is computed with all surrounding pixels that it
	// depends on, so that the borders of tiles are invisible.
	tileSide = 128
	// maxPixels is the largest number of pixels of a picture that can be
	// enlarged. For each of these pixels the result needs 64 bytes, and a
	// transparent picture needs half of that in addition while it is enlarged.
	maxPixels = 1 << 23
)

func openUpscaler(s *tensorStore, k kernel.Kernel) upscaler {
	c := s.index.Config
	u := upscaler{channels: c.Channels}
	in := 3
	for i := range c.Layers + 1 {
		u.convs = append(u.convs, openConvolution(s, k, fmt.Sprintf("convs.%d", i), in, c.Channels))
		u.slopes = append(u.slopes, s.readHalf(fmt.Sprintf("slopes.%d", i), c.Channels))
		in = c.Channels
	}
	u.convs = append(u.convs, openConvolution(s, k, fmt.Sprintf("convs.%d", c.Layers+1), in, 3*upscaleFactor*upscaleFactor))
	return u
}

// haloWidth returns the number of pixels around a tile on which its result
// depends.
func (u *upscaler) haloWidth() int { return len(u.convs) }

func (u *upscaler) reserveMemory(a *arena) {
	side := tileSide + 2*u.haloWidth()
	a.reserveSlice(&u.work.colours, side*side*3)
	a.reserveSlice(&u.work.a, side*side*u.channels)
	a.reserveSlice(&u.work.b, side*side*u.channels)
}

// EnlargePicture returns a picture four times as wide and high. It calls report
// with the completed fraction of the work. The network computes the colours.
// Transparent pixels first get the colours of visible pixels nearby. The alpha
// channel is interpolated with a cubic curve.
func (m *Model) EnlargePicture(ctx context.Context, p *image.NRGBA, report func(share float64)) (*image.NRGBA, error) {
	return m.enlargeTiles(ctx, p, tileSide, report)
}

func (m *Model) enlargeTiles(ctx context.Context, p *image.NRGBA, side int, report func(share float64)) (*image.NRGBA, error) {
	width := p.Rect.Dx()
	height := p.Rect.Dy()
	if width < 1 || height < 1 || width > maxPixels/height {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("The picture must have 1 to %d pixels.", maxPixels)).On("picture")
	}
	if err := m.acquireTurn(ctx); err != nil {
		return nil, err
	}
	defer m.releaseTurn()
	out := image.NewNRGBA(image.Rect(0, 0, width*upscaleFactor, height*upscaleFactor))
	colours := p
	opaque := p.Opaque()
	if !opaque {
		colours = fillTransparent(p)
	}
	across := (width + side - 1) / side
	down := (height + side - 1) / side
	stages := len(m.upscaler.convs) + 1
	for i := range across * down * stages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x := i / stages % across * side
		y := i / stages / across * side
		t := m.upscaler.newTile(colours, pixelArea{x, y, min(width, x+side), min(height, y+side)})
		if err := m.pool.runTask(func() {
			switch stage := i % stages; {
			case stage == 0:
				readColours(m, t)
				applyLayer(m, t, 0)
			case stage < len(m.upscaler.convs):
				applyLayer(m, t, stage)
			default:
				writeColours(m, t, out)
				if !opaque {
					writeAlpha(m, p, t.own, out)
				}
			}
		}); err != nil {
			return nil, err
		}
		if report != nil {
			report(float64(i+1) / float64(across*down*stages))
		}
	}
	return out, nil
}

// upscaleTile is a part of a picture that is processed by the layers. Each
// layer computes the tile and a margin that is one pixel narrower than the
// margin of the previous layer. Pixels outside of the picture are zero.
type upscaleTile struct {
	picture   *image.NRGBA
	own       pixelArea
	left, top int // position of the buffer's first pixel in the picture
	halo      int
	stride    int
}

func (u *upscaler) newTile(p *image.NRGBA, own pixelArea) upscaleTile {
	halo := u.haloWidth()
	return upscaleTile{p, own, own.x0 - halo, own.y0 - halo, halo, tileSide + 2*halo}
}

// areaWithin returns the tile and a margin of the given width, clipped to the
// picture, in coordinates of the buffer.
func (t upscaleTile) areaWithin(round int) pixelArea {
	width := t.picture.Rect.Dx()
	height := t.picture.Rect.Dy()
	return pixelArea{
		max(0, t.own.x0-round) - t.left, max(0, t.own.y0-round) - t.top,
		min(width, t.own.x1+round) - t.left, min(height, t.own.y1+round) - t.top,
	}
}

// readColours reads the pixels of a tile and its margin as numbers from 0 to 1.
func readColours(m *Model, t upscaleTile) {
	colours := m.upscaler.work.colours
	clear(colours)
	in := t.areaWithin(t.halo)
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

// applyLayer computes the convolution with index i. The layers alternate
// between two buffers.
func applyLayer(m *Model, t upscaleTile, i int) {
	u := &m.upscaler
	from := u.work.colours
	width := 3
	if i > 0 {
		from = u.layerResult(i - 1)
		width = u.channels
	}
	var finish func([]float32)
	if i < len(u.slopes) {
		finish = func(row []float32) { m.k.ApplyPReLU(row, u.slopes[i]) }
	}
	m.applyConvolution(&u.convs[i], from, width, u.layerResult(i), u.channels, t.stride, t.areaWithin(len(u.convs)-1-i), finish)
}

func (u *upscaler) layerResult(layer int) []float32 {
	if layer%2 == 0 {
		return u.work.a
	}
	return u.work.b
}

// writeColours adds the output of the last layer to the original colours and
// writes the result as opaque pixels.
func writeColours(m *Model, t upscaleTile, out *image.NRGBA) {
	u := &m.upscaler
	result := u.layerResult(len(u.convs) - 1)
	m.pool.runParallel(t.own.y1-t.own.y0, func(_ *worker, i int) {
		y := t.own.y0 + i
		for x := t.own.x0; x < t.own.x1; x++ {
			at := (y-t.top)*t.stride + x - t.left
			base := u.work.colours[at*3:][:3]
			detail := result[at*u.channels:][:3*upscaleFactor*upscaleFactor]
			for dy := range upscaleFactor {
				row := out.Pix[(y*upscaleFactor+dy)*out.Stride+x*upscaleFactor*4:][:upscaleFactor*4]
				for dx := range upscaleFactor {
					for c, v := range base {
						row[dx*4+c] = toByte(v + detail[(c*upscaleFactor+dy)*upscaleFactor+dx])
					}
					row[dx*4+3] = math.MaxUint8
				}
			}
		}
	})
}

// toByte converts a number from 0 to 1 to a number from 0 to 255.
func toByte(v float32) uint8 {
	return uint8(float32(min(max(v, 0), 1)*math.MaxUint8) + .5)
}

// writeAlpha computes the alpha channel of the result for an area of the
// picture. It interpolates with a cubic curve (Catmull-Rom).
func writeAlpha(m *Model, p *image.NRGBA, a pixelArea, out *image.NRGBA) {
	var weights [upscaleFactor][4]float32
	for i := range weights {
		t := (float64(i)+.5)/upscaleFactor - .5
		if t < 0 {
			t++ // make the position relative to the previous pixel
		}
		weights[i] = [4]float32{
			float32(-.5*t + t*t - .5*t*t*t), float32(1 - 2.5*t*t + 1.5*t*t*t), float32(.5*t + 2*t*t - 1.5*t*t*t), float32(-.5*t*t + .5*t*t*t),
		}
	}
	width := p.Rect.Dx()
	height := p.Rect.Dy()
	first := func(i int) int { // index of the first of the four source pixels around i
		if i%upscaleFactor < upscaleFactor/2 {
			return i/upscaleFactor - 2
		}
		return i/upscaleFactor - 1
	}
	m.pool.runParallel((a.y1-a.y0)*upscaleFactor, func(_ *worker, i int) {
		y := a.y0*upscaleFactor + i
		for x := a.x0 * upscaleFactor; x < a.x1*upscaleFactor; x++ {
			var sum float32
			for j, wy := range weights[y%upscaleFactor] {
				row := p.Pix[min(max(first(y)+j, 0), height-1)*p.Stride:]
				var across float32
				for i, wx := range weights[x%upscaleFactor] {
					across += float32(wx * float32(row[min(max(first(x)+i, 0), width-1)*4+3]))
				}
				sum += float32(wy * across)
			}
			out.Pix[y*out.Stride+x*4+3] = uint8(min(max(sum, 0), math.MaxUint8) + .5)
		}
	})
}

// fillTransparent returns an opaque copy of a picture. Transparent pixels get
// the mean colour, weighted by alpha, of the smallest surrounding square that
// contains visible pixels.
func fillTransparent(p *image.NRGBA) *image.NRGBA {
	type layer struct {
		width, height int
		v             []float32 // for each pixel, red, green and blue times alpha, and alpha
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
	// From coarse to fine, fill the transparent parts of each layer from the
	// next coarser layer.
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
