package imageengine

import (
	"context"
	"image"
	"math"

	"golang.org/x/image/draw"

	"atelier/internal/base/lowpriority"
	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

const (
	// tileSide is the side length of a tile of the result in pixels. The data
	// of one tile barely fits into a core's cache.
	tileSide = 384
	// tileMemory is the approximate number of bytes that a core needs to
	// compute a tile: some dozens of four-byte numbers per pixel.
	tileMemory = tileSide * tileSide * 4 * 24
	// corrections is the number of passes that adjust the result to the source.
	corrections = 3
	// rangeReach is the maximum distance, in source pixels, of the pixels that
	// determine the least and the greatest allowed value of a result pixel.
	rangeReach = 2
)

// upscalePhoto enlarges a photograph. Inputs: picture, factor, detail.
//
// The result is made tile by tile, in these steps:
//
//   - Every pixel is a weighted sum of source pixels; the kernel depends on
//     the edges around it (kernelSet, classifyEdges).
//   - The result pixels that replace a source pixel are corrected so that
//     their mean is the light of the source pixel, as the camera measured it.
//   - Fine contrast is raised, but less where it may be noise.
//   - Every pixel is clamped to the range of values of the source pixels
//     around it, so that there are no halos.
func upscalePhoto(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.fileInput("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	factor := int(math.Round(t.NumberInput("factor", 2, 2, 4)))
	in, err := pixels.ReadHeader(ctx, f)
	if err != nil {
		return pixels.Picture{}, err
	}
	w := in.Width * factor
	h := in.Height * factor
	if err := checkSize(w, h); err != nil {
		return pixels.Picture{}, err
	}
	working := scaleMemory(draw.CatmullRom, in, previewSide, previewSide) + int64(lowpriority.Cores())*tileMemory
	if err := t.reserveMemory(ctx, in.Memory+working, int64(w)*int64(h)); err != nil {
		return pixels.Picture{}, err
	}
	p, err := pixels.Read(ctx, s.SubSpan(0, 0.15), f)
	if err != nil {
		return pixels.Picture{}, err
	}
	if w*h >= previewFromPixels {
		if err := t.sendPreview(ctx, p.NRGBA); err != nil {
			return pixels.Picture{}, err
		}
	}
	noise, err := estimateNoise(ctx, p.NRGBA)
	if err != nil {
		return pixels.Picture{}, err
	}
	e := photoUpscaler{
		src:    p.NRGBA,
		dst:    image.NewNRGBA(image.Rect(0, 0, w, h)),
		prior:  kernelSets[factor](),
		factor: factor,
		opaque: p.Opaque(),
		noise:  noise,
		detail: float32(t.NumberInput("detail", 0.4, 0, 1)),
		blur:   gaussKernel(0.3 + 0.45*float64(factor)),
	}
	p.NRGBA = e.dst
	side := tileSide / factor
	across := (e.src.Rect.Dx() + side - 1) / side
	down := (e.src.Rect.Dy() + side - 1) / side
	return p, eachBand(ctx, s.SubSpan(0.15, 1), across*down, 1, func(from, to int) {
		for i := from; i < to && ctx.Err() == nil; i++ {
			at := image.Pt(i%across*side, i/across*side)
			e.renderTile(image.Rectangle{at, at.Add(image.Pt(side, side))}.Intersect(e.src.Rect))
		}
	})
}

// photoUpscaler is the data that is common to all tiles of a picture.
type photoUpscaler struct {
	src, dst      *image.NRGBA
	prior         *kernelSet
	factor        int
	opaque        bool
	noise, detail float32
	blur          []float32 // blur kernel with which fine detail is separated
}

// upscaleTile is a part of the source, with a margin that the computation
// reads, and the enlarged result. Colours are premultiplied by alpha; colours
// and alpha range from 0 to 1.
type upscaleTile struct {
	*photoUpscaler
	core    image.Rectangle // the tile's rectangle in the source, without margin
	margin  int             // width of the margin in source pixels
	small   []block         // channels of the source, with a margin that is wider by edgeReach
	low     []block         // least value near each source pixel of core and margin
	high    []block         // greatest value near each source pixel of core and margin
	large   []block         // channels of the result
	classes []uint8         // edge classes of the pixels of small
}

func (e *photoUpscaler) renderTile(core image.Rectangle) {
	channels := 4
	if e.opaque {
		channels = 3
	}
	// Each correction reads one more source pixel in every direction. Raising
	// the detail reads as many source pixels as the blur covers.
	margin := corrections + (len(e.blur)/2+e.factor-1)/e.factor
	t := upscaleTile{photoUpscaler: e, core: core, margin: margin}
	w := core.Dx() + 2*margin
	h := core.Dy() + 2*margin
	for range channels {
		t.small = append(t.small, newBlock(w+2*edgeReach, h+2*edgeReach))
		t.low = append(t.low, newBlock(w, h))
		t.high = append(t.high, newBlock(w, h))
		t.large = append(t.large, newBlock(w*e.factor, h*e.factor))
	}
	t.loadSource()
	t.applyKernels()
	correction := newBlock(w, h)
	for c := range t.large {
		t.findRanges(c)
		for range corrections {
			t.findCorrection(c, correction)
			t.applyCorrection(c, correction)
		}
	}
	if e.detail > 0 {
		t.raiseDetail()
	}
	t.storeResult()
}

// loadSource reads the source pixels of the tile. Positions outside the picture
// get the nearest pixel of its border.
func (t *upscaleTile) loadSource() {
	sw := t.src.Rect.Dx()
	sh := t.src.Rect.Dy()
	w := t.small[0].w
	h := t.small[0].h
	left := t.core.Min.X - t.margin - edgeReach
	top := t.core.Min.Y - t.margin - edgeReach
	brightness := newBlock(w, h)
	for y := range h {
		line := t.src.Pix[min(max(top+y, 0), sh-1)*t.src.Stride:]
		for x := range w {
			p := line[4*min(max(left+x, 0), sw-1):][:4]
			i := y*w + x
			if t.opaque {
				t.small[0].v[i] = float32(p[0]) / 255
				t.small[1].v[i] = float32(p[1]) / 255
				t.small[2].v[i] = float32(p[2]) / 255
				brightness.v[i] = lumaOf(p)
				continue
			}
			a := float32(p[3]) / 255
			for c := range 3 {
				t.small[c].v[i] = float32(p[c]) / 255 * a
			}
			t.small[3].v[i] = a
			brightness.v[i] = lumaOf(p)*a + 255*(1-a) // as seen on a white background
		}
	}
	t.classes = make([]uint8, w*h)
	classifyEdges(brightness, 2+2*t.noise, t.classes)
}

// applyKernels computes each pixel of the result with the kernel for the edge
// at its source pixel.
func (t *upscaleTile) applyKernels() {
	f := t.factor
	w := t.low[0].w
	h := t.low[0].h
	for y := range h {
		for x := range w {
			class := int(t.classes[(y+edgeReach)*t.small[0].w+x+edgeReach])
			kernels := t.prior.kernels[class*f*f:][:f*f]
			for c := range t.small {
				var patch upscaleKernel
				for j := range kernelSide {
					copy(patch[j*kernelSide:][:kernelSide], t.small[c].row(y + edgeReach - kernelReach + j)[x+edgeReach-kernelReach:])
				}
				to := t.large[c]
				for j := range f {
					row := to.v[(y*f+j)*to.w+x*f:][:f]
					for i := range row {
						row[i] = kernels[j*f+i].weightedSum(&patch)
					}
				}
			}
		}
	}
}

// weightedSum returns the sum of the pixels of a patch, each multiplied by its
// weight. It is unrolled because a loop takes twice as long.
func (k *upscaleKernel) weightedSum(p *upscaleKernel) float32 {
	a := k[0]*p[0] + k[1]*p[1] + k[2]*p[2] + k[3]*p[3] + k[4]*p[4]
	b := k[5]*p[5] + k[6]*p[6] + k[7]*p[7] + k[8]*p[8] + k[9]*p[9]
	c := k[10]*p[10] + k[11]*p[11] + k[12]*p[12] + k[13]*p[13] + k[14]*p[14]
	d := k[15]*p[15] + k[16]*p[16] + k[17]*p[17] + k[18]*p[18] + k[19]*p[19]
	e := k[20]*p[20] + k[21]*p[21] + k[22]*p[22] + k[23]*p[23] + k[24]*p[24]
	return a + b + (c + d) + e
}

// findRanges finds the least and the greatest value of a channel near each
// source pixel.
func (t *upscaleTile) findRanges(c int) {
	const reach = rangeReach
	from := t.small[c]
	low := t.low[c]
	high := t.high[c]
	lows := newBlock(low.w, from.h)
	highs := newBlock(low.w, from.h)
	for y := range from.h {
		row := from.row(y)
		for x := range low.w {
			near := row[x+edgeReach-reach:][:2*reach+1]
			lows.v[y*low.w+x] = min(near[0], near[1], near[2], near[3], near[4])
			highs.v[y*low.w+x] = max(near[0], near[1], near[2], near[3], near[4])
		}
	}
	for y := range low.h {
		for x := range low.w {
			i := (y+edgeReach-reach)*low.w + x
			lo := lows.v[i]
			hi := highs.v[i]
			for range 2 * reach {
				i += low.w
				lo = min(lo, lows.v[i])
				hi = max(hi, highs.v[i])
			}
			low.v[y*low.w+x] = lo
			high.v[y*low.w+x] = hi
		}
	}
}

// lightOf approximates the linear light of a stored value; slopeOf is the
// derivative of lightOf. It matters more that both functions are consistent
// than that they are exact.
func lightOf(v float32) float32 { return v * (v*(v*0.305306011+0.682171111) + 0.012522878) }
func slopeOf(v float32) float32 { return v*(v*0.915918033+1.364342222) + 0.012522878 }

// findCorrection computes the amount by which the result's pixels must change
// so that their mean equals the light of their source pixel. For pictures with
// alpha it compares stored values, because linear light cannot be computed from
// premultiplied colours.
func (t *upscaleTile) findCorrection(c int, into block) {
	f := t.factor
	large := t.large[c]
	share := 1 / float32(f*f)
	for y := range into.h {
		want := t.small[c].row(y + edgeReach)[edgeReach:]
		to := into.row(y)
		clear(to)
		for j := range f {
			row := large.row(y*f + j)
			for x := range to {
				for _, v := range row[x*f:][:f] {
					if t.opaque {
						v = lightOf(v)
					}
					to[x] += v
				}
			}
		}
		for x, v := range want[:len(to)] {
			if t.opaque {
				// Near black the slope is almost 0, so at least 0.2 is used.
				to[x] = (lightOf(v) - to[x]*share) / max(slopeOf(v), 0.2)
			} else {
				to[x] = v - to[x]*share
			}
		}
	}
}

// applyCorrection adds the interpolated correction to a channel of the result
// and clamps each pixel to the range of the source around it.
func (t *upscaleTile) applyCorrection(c int, add block) {
	f := t.factor
	large := t.large[c]
	w := add.w
	h := add.h
	places := make([]float32, f) // offsets of result pixels from the centre of their source pixel, in source pixels
	for i := range places {
		places[i] = (float32(i)+0.5)/float32(f) - 0.5
	}
	for y := range large.h {
		sy := y / f
		part := places[y%f]
		other := sy + 1
		if part < 0 {
			other = sy - 1
			part = -part
		}
		near := add.row(sy)
		far := add.row(min(max(other, 0), h-1))
		low := t.low[c].row(sy)
		high := t.high[c].row(sy)
		row := large.row(y)
		blend := func(x int) float32 { return near[x] + part*(far[x]-near[x]) }
		before := blend(0)
		here := blend(0)
		for x := range w {
			after := blend(min(x+1, w-1))
			lo := low[x]
			hi := high[x]
			to := row[x*f:][:f]
			for i, at := range places {
				v := to[i] + here
				if at < 0 {
					v += at * (here - before)
				} else {
					v += at * (after - here)
				}
				to[i] = clampTo(v, lo, hi)
			}
			before = here
			here = after
		}
	}
}

// clampTo limits v to the range from low to high. It is faster than the
// built-in min and max, which also check for NaN.
func clampTo(v, low, high float32) float32 {
	if v < low {
		return low
	}
	if v > high {
		return high
	}
	return v
}

// raiseDetail amplifies differences in brightness from the surroundings. It
// changes all colour channels equally, so that edges get no coloured fringes.
func (t *upscaleTile) raiseDetail() {
	w := t.large[0].w
	h := t.large[0].h
	inner := image.Rect(t.margin, t.margin, t.margin+t.core.Dx(), t.margin+t.core.Dy())
	inner = image.Rectangle{inner.Min.Mul(t.factor), inner.Max.Mul(t.factor)}
	bright := t.resultBrightness()
	soft := newBlock(w, h)
	cover := block{}
	softCover := block{}
	if !t.opaque {
		cover = t.large[3]
		softCover = newBlock(w, h)
		t.blurBlock(softCover, cover, inner)
	}
	t.blurBlock(soft, bright, inner)
	core := t.noise*2.0/255 + 1.0/255
	amount := 0.8 * t.detail
	for y := inner.Min.Y; y < inner.Max.Y; y++ {
		for x := inner.Min.X; x < inner.Max.X; x++ {
			i := y*w + x
			d := bright.v[i] - soft.v[i]
			if !t.opaque {
				a := cover.v[i]
				if a < 1.0/510 || softCover.v[i] < 1.0/510 {
					continue
				}
				d = (bright.v[i]/a - soft.v[i]/softCover.v[i]) * a
			}
			d *= amount * d * d / (d*d + core*core)
			small := y/t.factor*t.low[0].w + x/t.factor
			for c := range 3 {
				t.large[c].v[i] = clampTo(t.large[c].v[i]+d, t.low[c].v[small], t.high[c].v[small])
			}
		}
	}
}

func (t *upscaleTile) resultBrightness() block {
	b := newBlock(t.large[0].w, t.large[0].h)
	for i := range b.v {
		b.v[i] = 0.2126*t.large[0].v[i] + 0.7152*t.large[1].v[i] + 0.0722*t.large[2].v[i]
	}
	return b
}

// blurBlock blurs the inner part of a block with the blur kernel.
func (t *upscaleTile) blurBlock(into, from block, inner image.Rectangle) {
	reach := len(t.blur) / 2
	var whole float32
	for _, v := range t.blur {
		whole += v
	}
	across := newBlock(from.w, from.h)
	for y := inner.Min.Y - reach; y < inner.Max.Y+reach; y++ {
		row := from.row(y)
		to := across.row(y)
		for x := inner.Min.X; x < inner.Max.X; x++ {
			var sum float32
			near := row[x-reach:][:len(t.blur)]
			for k, share := range t.blur {
				sum += share * near[k]
			}
			to[x] = sum
		}
	}
	for y := inner.Min.Y; y < inner.Max.Y; y++ {
		to := into.row(y)
		for k, share := range t.blur {
			share /= whole * whole
			near := across.row(y + k - reach)
			for x := inner.Min.X; x < inner.Max.X; x++ {
				to[x] += share * near[x]
			}
		}
	}
}

// storeResult writes the pixels of the tile, without its margin, to the result.
func (t *upscaleTile) storeResult() {
	f := t.factor
	for y := range t.core.Dy() * f {
		i := (y+t.margin*f)*t.large[0].w + t.margin*f
		pix := t.dst.Pix[t.dst.PixOffset(t.core.Min.X*f, t.core.Min.Y*f+y):]
		for x := range t.core.Dx() * f {
			p := pix[4*x:][:4]
			if t.opaque {
				p[0] = pixels.ClampByte(t.large[0].v[i] * 255)
				p[1] = pixels.ClampByte(t.large[1].v[i] * 255)
				p[2] = pixels.ClampByte(t.large[2].v[i] * 255)
				p[3] = 255
			} else if a := t.large[3].v[i]; a >= 1.0/510 {
				p[0] = pixels.ClampByte(t.large[0].v[i] / a * 255)
				p[1] = pixels.ClampByte(t.large[1].v[i] / a * 255)
				p[2] = pixels.ClampByte(t.large[2].v[i] / a * 255)
				p[3] = pixels.ClampByte(a * 255)
			}
			i++
		}
	}
}
