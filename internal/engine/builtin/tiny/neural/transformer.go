package neural

import (
	"fmt"
	"math"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// core is the network that looks at a noisy picture and a prompt and tells
// what the picture will be: a transformer over words and patches of pixels,
// then convolutions that remove the seams between patches.
type core struct {
	config                 config
	length, grid, tokens   int // words, patches of a side, rows in all
	patch1, patch2         linear
	time1, time2           linear
	modulate, last, pixels linear
	blocks                 []coreBlock
	conv1, conv2           convolution
	conv3                  kernel.Dense
	bias3                  []float32
	turn                   turns
	waves                  []float32 // frequencies of the time

	work struct {
		z, x, other                  []float32 // noisy, expected, expected without a prompt
		prompt, empty                encoded
		time, hidden, condition      []float32
		modulation, block, end       []float32
		patches, narrow              []float32
		rows, y, qkv, gated, keys    []float32
		out, features, first, second []float32
	}
}

type coreBlock struct {
	attention  attention
	up, down   linear
	modulation []float32
}

// What a block does to its rows, in the order of its modulation: scale, shift
// and gate of attention, then of what comes after.
const (
	scale1 = iota
	shift1
	gate1
	scale2
	shift2
	gate2
	modulations
)

const (
	timeWaves = 128
	taps      = 9
)

func openCore(s *store, k kernel.Kernel, c config, length int) core {
	grid := c.Res / c.Patch
	d := c.D
	n := core{
		config:   c,
		length:   length,
		grid:     grid,
		tokens:   length + grid*grid,
		patch1:   openLinear(s, "pe1", c.Patch*c.Patch*3, c.Bott, false),
		patch2:   openLinear(s, "pe2", c.Bott, d, true),
		time1:    openLinear(s, "t1", 2*timeWaves, d, true),
		time2:    openLinear(s, "t2", d, d, true),
		modulate: openLinear(s, "ada", d, modulations*d, true),
		last:     openLinear(s, "fmod", d, 2*d, true),
		pixels:   openLinear(s, "fo", d, c.Patch*c.Patch*c.Ch, true),
		conv1:    openConvolution(s, k, "c1", c.Ch+3, c.Cw),
		conv2:    openConvolution(s, k, "c2", c.Cw, c.Cw),
		bias3:    s.half("c3.bias", 3),
	}
	for i := range c.Depth {
		name := fmt.Sprintf("blocks.%d", i)
		n.blocks = append(n.blocks, coreBlock{
			openAttention(s, name+".att", d, c.Heads),
			openLinear(s, name+".mlp.w12", d, 2*c.Hid, false), openLinear(s, name+".mlp.w3", c.Hid, d, false),
			s.half(name+".mod", modulations, d),
		})
	}
	// The last convolution has three outputs only. It is done as one product
	// with the outputs of all nine taps, which are then added up in place.
	w := s.half("c3.weight", 3, 3, c.Cw, 3)
	flat := make([]float32, c.Cw*taps*3)
	for tap := range taps {
		for i := range c.Cw {
			copy(flat[(i*taps+tap)*3:][:3], w[(tap*c.Cw+i)*3:])
		}
	}
	n.conv3 = k.Pack(c.Cw, taps*3, flat)

	half := d / c.Heads / 2
	n.turn = newTurns(n.tokens, half)
	quarter := half / 2
	for y := range grid {
		for x := range grid {
			cos, sin := n.turn.of(length + y*grid + x)
			for i := range quarter {
				f := math.Pow(c.Theta, -float64(i)/float64(quarter))
				cos[i] = float32(math.Cos(float64(y) * f))
				sin[i] = float32(math.Sin(float64(y) * f))
				cos[quarter+i] = float32(math.Cos(float64(x) * f))
				sin[quarter+i] = float32(math.Sin(float64(x) * f))
			}
		}
	}
	for i := range timeWaves {
		n.waves = append(n.waves, float32(math.Exp(-math.Log(10000)*float64(i)/timeWaves)))
	}
	return n
}

func (n *core) lay(a *arena) {
	c := n.config
	w := &n.work
	pixels := c.Res * c.Res
	padded := (c.Res + 2) * (c.Res + 2)
	for _, p := range []struct {
		to *[]float32
		n  int
	}{
		{&w.z, pixels * 3}, {&w.x, pixels * 3}, {&w.other, pixels * 3},
		{&w.prompt.rows, n.length * c.D}, {&w.prompt.all, c.D}, {&w.empty.rows, n.length * c.D}, {&w.empty.all, c.D},
		{&w.time, 2 * timeWaves}, {&w.hidden, c.D}, {&w.condition, c.D},
		{&w.modulation, modulations * c.D}, {&w.block, modulations * c.D}, {&w.end, 2 * c.D},
		{&w.patches, pixels * 3}, {&w.narrow, n.grid * n.grid * c.Bott},
		{&w.rows, n.tokens * c.D}, {&w.y, n.tokens * c.D}, {&w.qkv, n.tokens * apart(3*c.D)}, {&w.gated, n.tokens * apart(c.Hid)}, {&w.keys, c.D * wide(n.tokens)},
		{&w.out, pixels * c.Ch}, {&w.features, padded * (c.Ch + 3)}, {&w.first, padded * max(c.Cw, wide(taps*3))}, {&w.second, padded * c.Cw},
	} {
		a.lay(p.to, p.n)
	}
}

// begin clears the edges of what is convolved, where something else may have
// been kept meanwhile. They stay clear while a picture is drawn.
func (n *core) begin() {
	clear(n.work.features)
	clear(n.work.first)
	clear(n.work.second)
	clear(n.work.keys)
}

// pass computes the picture that z, at time t, is expected to become. Only the
// leader of the crew calls it.
func (m *Model) pass(z []float32, t float32, text *encoded, x []float32) {
	n := &m.core
	w := &n.work
	d := n.config.D
	m.condition(t, text)
	m.patches(z)
	copy(w.rows[:n.length*d], text.rows)
	m.apply(&n.patch1, n.grid*n.grid, w.patches, w.narrow, n.config.Bott)
	m.apply(&n.patch2, n.grid*n.grid, w.narrow, w.rows[n.length*d:], d)
	for i := range n.blocks {
		m.block(&n.blocks[i])
	}
	gain(w.end[:d])
	m.normed(n.grid*n.grid, d, w.rows[n.length*d:], w.end[:d], w.end[d:], w.y)
	m.apply(&n.pixels, n.grid*n.grid, w.y, w.out, n.pixels.w.N)
	m.smooth(z, x)
}

// condition computes how time and prompt modulate every block.
func (m *Model) condition(t float32, text *encoded) {
	n := &m.core
	w := &m.core.work
	for i, f := range n.waves {
		a := float64(float32(float32(t*1000) * f))
		w.time[i] = float32(math.Cos(a))
		w.time[timeWaves+i] = float32(math.Sin(a))
	}
	m.apply(&n.time1, 1, w.time, w.hidden, 0)
	m.k.SiLU(w.hidden)
	m.apply(&n.time2, 1, w.hidden, w.condition, 0)
	m.k.Add(w.condition, text.all)
	m.k.SiLU(w.condition)
	m.apply(&n.modulate, 1, w.condition, w.modulation, 0)
	m.apply(&n.last, 1, w.condition, w.end, 0)
}

// gain makes a factor of a scale, which is what is added to one.
func gain(v []float32) {
	for i := range v {
		v[i]++
	}
}

// patches makes a row of each patch of pixels.
func (m *Model) patches(z []float32) {
	n := &m.core
	size := n.config.Patch * 3
	side := n.config.Res * 3
	for i := range n.grid * n.grid {
		at := i/n.grid*n.config.Patch*side + i%n.grid*size
		for y := range n.config.Patch {
			copy(n.work.patches[(i*n.config.Patch+y)*size:][:size], z[at+y*side:])
		}
	}
}

func (m *Model) block(b *coreBlock) {
	n := &m.core
	w := &n.work
	d := n.config.D
	rows := n.tokens
	copy(w.block, w.modulation)
	m.k.Add(w.block, b.modulation)
	of := func(i int) []float32 { return w.block[i*d : (i+1)*d] }
	gain(of(scale1))
	gain(of(scale2))
	m.normed(rows, d, w.rows, of(scale1), of(shift1), w.y)
	m.apply(&b.attention.in, rows, w.y, w.qkv, apart(3*d))
	m.attend(&b.attention, rows, d, w.qkv, n.turn, w.keys, w.y)
	m.residual(&b.attention.out, rows, w.y, d, of(gate1), w.rows)
	m.normed(rows, d, w.rows, of(scale2), of(shift2), w.y)
	m.gated(&b.up, rows, w.y, w.gated)
	m.residual(&b.down, rows, w.gated, apart(n.config.Hid), of(gate2), w.rows)
}

// smooth makes pixels of patches: what the transformer says about each pixel,
// beside the noisy pixel itself, goes through three convolutions, whose result
// is added to the first three channels.
func (m *Model) smooth(z, x []float32) {
	n := &m.core
	c := n.config
	w := &n.work
	side := c.Res
	channels := c.Ch + 3
	stride := side + 2
	m.crew.each(side, func(_ *hand, y int) {
		for px := range side {
			from := w.out[((y/c.Patch*n.grid+px/c.Patch)*c.Patch*c.Patch+y%c.Patch*c.Patch+px%c.Patch)*c.Ch:]
			to := w.features[((y+1)*stride+px+1)*channels:]
			copy(to[:c.Ch], from)
			copy(to[c.Ch:channels], z[(y*side+px)*3:])
		}
	})
	inside := area{1, 1, side + 1, side + 1}
	m.convolve(&n.conv1, w.features, channels, w.first, c.Cw, stride, inside, m.k.SiLU)
	m.convolve(&n.conv2, w.first, c.Cw, w.second, c.Cw, stride, inside, m.k.SiLU)
	products := w.first
	ld := wide(taps * 3)
	if ld != c.Cw {
		clear(products)
	}
	m.crew.each(side, func(_ *hand, y int) {
		at := (y + 1) * stride
		for p := range n.conv3.Panels() {
			m.k.Tile(stride, c.Cw, w.second[at*c.Cw:], c.Cw, n.conv3.Rows(p, 0, c.Cw), m.k.Cols(), products[at*ld+p*m.k.Cols():], ld, m.zeros, 0)
		}
	})
	m.crew.each(side, func(_ *hand, y int) {
		for px := range side {
			f := w.features[((y+1)*stride+px+1)*channels:][:3]
			r := f[0] + n.bias3[0]
			g := f[1] + n.bias3[1]
			b := f[2] + n.bias3[2]
			for tap := range taps {
				p := products[((y+tap/3)*stride+px+tap%3)*ld+tap*3:][:3]
				r = r + p[0]
				g = g + p[1]
				b = b + p[2]
			}
			to := x[(y*side+px)*3:][:3]
			to[0] = r
			to[1] = g
			to[2] = b
		}
	})
}
