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
	// tileSide is how many pixels of the result are made at once, each way:
	// what is at hand for them fits a core's cache, near enough.
	tileSide = 384
	// tileMemory is about what a core takes for a tile: some dozens of numbers of
	// four bytes for each of its pixels.
	tileMemory = tileSide * tileSide * 4 * 24
	// corrections is how often the result is held against the source.
	corrections = 3
	// rangeReach is how far round a source pixel its result may find its values.
	rangeReach = 2
)

// photoUpscale: picture, factor, detail.
//
// The result is made tile by tile, in these steps:
//
//   - what every pixel is made of goes by how its surroundings run (prior,
//     structure);
//   - the mean of the pixels that a source pixel became is brought back to that
//     pixel's light, which is what a camera measures;
//   - fine contrast is raised, by less where it may be noise;
//   - no pixel leaves the range of the source round it, so that there are no
//     halos.
func photoUpscale(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.file("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	factor := int(math.Round(t.Number("factor", 2, 2, 4)))
	in, err := pixels.Look(ctx, f)
	if err != nil {
		return pixels.Picture{}, err
	}
	w := in.Width * factor
	h := in.Height * factor
	if err := fits(w, h); err != nil {
		return pixels.Picture{}, err
	}
	working := scaleMemory(draw.CatmullRom, in, previewSide, previewSide) + int64(lowpriority.Cores())*tileMemory
	if err := t.reserve(ctx, in.Memory+working, int64(w)*int64(h)); err != nil {
		return pixels.Picture{}, err
	}
	p, err := pixels.Read(ctx, s.Part(0, 0.15), f)
	if err != nil {
		return pixels.Picture{}, err
	}
	if w*h >= bigResult {
		if err := t.preview(ctx, p.NRGBA); err != nil {
			return pixels.Picture{}, err
		}
	}
	noise, err := noiseOf(ctx, p.NRGBA)
	if err != nil {
		return pixels.Picture{}, err
	}
	e := enlarger{
		src:    p.NRGBA,
		dst:    image.NewNRGBA(image.Rect(0, 0, w, h)),
		prior:  priors[factor](),
		factor: factor,
		opaque: p.Opaque(),
		noise:  noise,
		detail: float32(t.Number("detail", 0.4, 0, 1)),
		blur:   gauss(0.3 + 0.45*float64(factor)),
	}
	p.NRGBA = e.dst
	side := tileSide / factor
	across := (e.src.Rect.Dx() + side - 1) / side
	down := (e.src.Rect.Dy() + side - 1) / side
	return p, bands(ctx, s.Part(0.15, 1), across*down, 1, func(from, to int) {
		for i := from; i < to && ctx.Err() == nil; i++ {
			at := image.Pt(i%across*side, i/across*side)
			e.tile(image.Rectangle{at, at.Add(image.Pt(side, side))}.Intersect(e.src.Rect))
		}
	})
}

// enlarger is what all tiles of a picture have in common.
type enlarger struct {
	src, dst      *image.NRGBA
	prior         *prior
	factor        int
	opaque        bool
	noise, detail float32
	blur          []float32 // of the detail
}

// tile is a part of the source, with a margin as wide as the steps reach, and
// what becomes of it. Colours are multiplied by alpha and lie, like alpha,
// between 0 and 1.
type tile struct {
	*enlarger
	core    image.Rectangle // of the source
	margin  int             // source pixels
	small   []block         // channels of the source, with structureReach more than the margin
	low     []block         // least and greatest value near each source pixel,
	high    []block         // without that
	large   []block         // channels of the result
	classes []uint8         // for the pixels of small
}

func (e *enlarger) tile(core image.Rectangle) {
	channels := 4
	if e.opaque {
		channels = 3
	}
	// Each correction looks one pixel farther, the sharpening as far as it blurs.
	margin := corrections + (len(e.blur)/2+e.factor-1)/e.factor
	t := tile{enlarger: e, core: core, margin: margin}
	w := core.Dx() + 2*margin
	h := core.Dy() + 2*margin
	for range channels {
		t.small = append(t.small, newBlock(w+2*structureReach, h+2*structureReach))
		t.low = append(t.low, newBlock(w, h))
		t.high = append(t.high, newBlock(w, h))
		t.large = append(t.large, newBlock(w*e.factor, h*e.factor))
	}
	t.load()
	t.draw()
	correction := newBlock(w, h)
	for c := range t.large {
		t.ranges(c)
		for range corrections {
			t.compare(c, correction)
			t.clamp(c, correction)
		}
	}
	if e.detail > 0 {
		t.sharpen()
	}
	t.store()
}

// load reads the tile. Beyond the edge of the picture its last pixels go on.
func (t *tile) load() {
	sw := t.src.Rect.Dx()
	sh := t.src.Rect.Dy()
	w := t.small[0].w
	h := t.small[0].h
	left := t.core.Min.X - t.margin - structureReach
	top := t.core.Min.Y - t.margin - structureReach
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
				brightness.v[i] = luma(p)
				continue
			}
			a := float32(p[3]) / 255
			for c := range 3 {
				t.small[c].v[i] = float32(p[c]) / 255 * a
			}
			t.small[3].v[i] = a
			brightness.v[i] = luma(p)*a + 255*(1-a) // on white
		}
	}
	t.classes = make([]uint8, w*h)
	structure(brightness, 2+2*t.noise, t.classes)
}

// draw makes each pixel of the result by the kernel for its surroundings.
func (t *tile) draw() {
	f := t.factor
	w := t.low[0].w
	h := t.low[0].h
	for y := range h {
		for x := range w {
			class := int(t.classes[(y+structureReach)*t.small[0].w+x+structureReach])
			kernels := t.prior.kernels[class*f*f:][:f*f]
			for c := range t.small {
				var patch kernel
				for j := range priorSide {
					copy(patch[j*priorSide:][:priorSide], t.small[c].row(y + structureReach - priorReach + j)[x+structureReach-priorReach:])
				}
				to := t.large[c]
				for j := range f {
					row := to.v[(y*f+j)*to.w+x*f:][:f]
					for i := range row {
						row[i] = kernels[j*f+i].of(&patch)
					}
				}
			}
		}
	}
}

// of is the sum of a patch, each pixel with its weight. It is
// written out because a loop takes twice as long.
func (k *kernel) of(p *kernel) float32 {
	a := k[0]*p[0] + k[1]*p[1] + k[2]*p[2] + k[3]*p[3] + k[4]*p[4]
	b := k[5]*p[5] + k[6]*p[6] + k[7]*p[7] + k[8]*p[8] + k[9]*p[9]
	c := k[10]*p[10] + k[11]*p[11] + k[12]*p[12] + k[13]*p[13] + k[14]*p[14]
	d := k[15]*p[15] + k[16]*p[16] + k[17]*p[17] + k[18]*p[18] + k[19]*p[19]
	e := k[20]*p[20] + k[21]*p[21] + k[22]*p[22] + k[23]*p[23] + k[24]*p[24]
	return a + b + (c + d) + e
}

// ranges finds the least and the greatest value near each source pixel.
func (t *tile) ranges(c int) {
	const reach = rangeReach
	from := t.small[c]
	low := t.low[c]
	high := t.high[c]
	lows := newBlock(low.w, from.h)
	highs := newBlock(low.w, from.h)
	for y := range from.h {
		row := from.row(y)
		for x := range low.w {
			near := row[x+structureReach-reach:][:2*reach+1]
			lows.v[y*low.w+x] = min(near[0], near[1], near[2], near[3], near[4])
			highs.v[y*low.w+x] = max(near[0], near[1], near[2], near[3], near[4])
		}
	}
	for y := range low.h {
		for x := range low.w {
			i := (y+structureReach-reach)*low.w + x
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

// lightOf is about the light of a stored value; it needs to be the same here
// and there more than it needs to be exact. slopeOf is its slope.
func lightOf(v float32) float32 { return v * (v*(v*0.305306011+0.682171111) + 0.012522878) }
func slopeOf(v float32) float32 { return v*(v*0.915918033+1.364342222) + 0.012522878 }

// compare finds by how much the result's pixels would have to change, so that
// those of each source pixel together give its light. Where there is alpha,
// light would need the colours without it, and the stored values have to do.
func (t *tile) compare(c int, into block) {
	f := t.factor
	large := t.large[c]
	share := 1 / float32(f*f)
	for y := range into.h {
		want := t.small[c].row(y + structureReach)[structureReach:]
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
				// Near black the slope is next to nothing.
				to[x] = (lightOf(v) - to[x]*share) / max(slopeOf(v), 0.2)
			} else {
				to[x] = v - to[x]*share
			}
		}
	}
}

// clamp adds a correction, which it blends from pixel to pixel, and holds the
// result within its range.
func (t *tile) clamp(c int, add block) {
	f := t.factor
	large := t.large[c]
	w := add.w
	h := add.h
	places := make([]float32, f) // within a source pixel, from its middle
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
				to[i] = within(v, lo, hi)
			}
			before = here
			here = after
		}
	}
}

// within is min and max without their care for what is no number, which takes
// most of their time.
func within(v, low, high float32) float32 {
	if v < low {
		return low
	}
	if v > high {
		return high
	}
	return v
}

// sharpen raises what differs from its surroundings in brightness, so that
// edges get no coloured fringes.
func (t *tile) sharpen() {
	w := t.large[0].w
	h := t.large[0].h
	inner := image.Rect(t.margin, t.margin, t.margin+t.core.Dx(), t.margin+t.core.Dy())
	inner = image.Rectangle{inner.Min.Mul(t.factor), inner.Max.Mul(t.factor)}
	bright := t.brightness()
	soft := newBlock(w, h)
	cover := block{}
	softCover := block{}
	if !t.opaque {
		cover = t.large[3]
		softCover = newBlock(w, h)
		t.smooth(softCover, cover, inner)
	}
	t.smooth(soft, bright, inner)
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
				t.large[c].v[i] = within(t.large[c].v[i]+d, t.low[c].v[small], t.high[c].v[small])
			}
		}
	}
}

func (t *tile) brightness() block {
	b := newBlock(t.large[0].w, t.large[0].h)
	for i := range b.v {
		b.v[i] = 0.2126*t.large[0].v[i] + 0.7152*t.large[1].v[i] + 0.0722*t.large[2].v[i]
	}
	return b
}

// smooth blurs the inner part of a block.
func (t *tile) smooth(into, from block, inner image.Rectangle) {
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

// store writes the tile, without its margin.
func (t *tile) store() {
	f := t.factor
	for y := range t.core.Dy() * f {
		i := (y+t.margin*f)*t.large[0].w + t.margin*f
		pix := t.dst.Pix[t.dst.PixOffset(t.core.Min.X*f, t.core.Min.Y*f+y):]
		for x := range t.core.Dx() * f {
			p := pix[4*x:][:4]
			if t.opaque {
				p[0] = pixels.Byte(t.large[0].v[i] * 255)
				p[1] = pixels.Byte(t.large[1].v[i] * 255)
				p[2] = pixels.Byte(t.large[2].v[i] * 255)
				p[3] = 255
			} else if a := t.large[3].v[i]; a >= 1.0/510 {
				p[0] = pixels.Byte(t.large[0].v[i] / a * 255)
				p[1] = pixels.Byte(t.large[1].v[i] / a * 255)
				p[2] = pixels.Byte(t.large[2].v[i] / a * 255)
				p[3] = pixels.Byte(a * 255)
			}
			i++
		}
	}
}
