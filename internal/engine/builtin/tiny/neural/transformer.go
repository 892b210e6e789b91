package neural

import (
	"fmt"
	"math"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// transformer is the network that predicts the final picture from a noisy
// picture and a prompt: a transformer over words and patches of pixels,
// followed by convolutions that remove the seams between patches.
type transformer struct {
	config                 config
	length, grid, tokens   int // largest number of words, patches per side of the picture, words and patches in total
	patch1, patch2         linearLayer
	time1, time2           linearLayer
	modulate, last, pixels linearLayer
	blocks                 []transformerBlock
	conv1, conv2           convolution
	conv3                  kernel.Dense
	bias3                  []float32
	turn                   rotations
	waves                  []float32 // frequencies of the time embedding

	work struct {
		z, x, other                  []float32 // noisy picture, predicted picture, predicted picture without a prompt
		prompt, empty                encodedPrompt
		time, hidden, condition      []float32
		modulation, block, end       []float32
		patches, narrow              []float32
		rows, y, qkv, gated, keys    []float32
		out, features, first, second []float32
	}
}

type transformerBlock struct {
	attention  attention
	up, down   linearLayer
	modulation []float32
}

// Indices of the modulations of a block: scale, shift and gate of the attention
// layer, then of the feed-forward layer.
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

func openTransformer(s *tensorStore, k kernel.Kernel, c config, length int) transformer {
	grid := c.Res / c.Patch
	d := c.D
	n := transformer{
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
		bias3:    s.readHalf("c3.bias", 3),
	}
	for i := range c.Depth {
		name := fmt.Sprintf("blocks.%d", i)
		n.blocks = append(n.blocks, transformerBlock{
			openAttention(s, name+".att", d, c.Heads),
			openLinear(s, name+".mlp.w12", d, 2*c.Hid, false), openLinear(s, name+".mlp.w3", c.Hid, d, false),
			s.readHalf(name+".mod", modulations, d),
		})
	}
	// The last convolution has only three output channels. It is computed as
	// one product for all nine taps, whose results are added up afterwards.
	w := s.readHalf("c3.weight", 3, 3, c.Cw, 3)
	flat := make([]float32, c.Cw*taps*3)
	for tap := range taps {
		for i := range c.Cw {
			copy(flat[(i*taps+tap)*3:][:3], w[(tap*c.Cw+i)*3:])
		}
	}
	n.conv3 = k.PackDense(c.Cw, taps*3, flat)

	half := d / c.Heads / 2
	n.turn = newRotations(n.tokens, half)
	quarter := half / 2
	for y := range grid {
		for x := range grid {
			cos, sin := n.turn.rotationOf(length + y*grid + x)
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

func (n *transformer) reserveMemory(a *arena) {
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
		{&w.rows, n.tokens * c.D}, {&w.y, n.tokens * c.D}, {&w.qkv, n.tokens * rowDistance(3*c.D)}, {&w.gated, n.tokens * rowDistance(c.Hid)}, {&w.keys, c.D * padToPanel(n.tokens)},
		{&w.out, pixels * c.Ch}, {&w.features, padded * (c.Ch + 3)}, {&w.first, padded * max(c.Cw, padToPanel(taps*3))}, {&w.second, padded * c.Cw},
	} {
		a.reserveSlice(p.to, p.n)
	}
}

// clearEdges clears the edges of the convolution buffers, which an enlargement
// may have overwritten. They stay clear while a picture is drawn.
func (n *transformer) clearEdges() {
	clear(n.work.features)
	clear(n.work.first)
	clear(n.work.second)
	clear(n.work.keys)
}

// predictPicture predicts the final picture from the noisy picture z at time t
// and writes it to x. It must be called by the leading worker.
func (m *Model) predictPicture(z []float32, t float32, text *encodedPrompt, x []float32) {
	n := &m.transformer
	w := &n.work
	d := n.config.D
	m.computeCondition(t, text)
	embedPatches(m, z)
	copy(w.rows[:n.length*d], text.rows)
	m.applyLinear(&n.patch1, n.grid*n.grid, w.patches, w.narrow, n.config.Bott)
	m.applyLinear(&n.patch2, n.grid*n.grid, w.narrow, w.rows[n.length*d:], d)
	for i := range n.blocks {
		m.runBlock(&n.blocks[i])
	}
	toFactors(w.end[:d])
	m.normalizeRows(n.grid*n.grid, d, w.rows[n.length*d:], w.end[:d], w.end[d:], w.y)
	m.applyLinear(&n.pixels, n.grid*n.grid, w.y, w.out, n.pixels.w.N)
	smoothPatches(m, z, x)
}

// computeCondition computes the modulations of the blocks from the time and the
// prompt.
func (m *Model) computeCondition(t float32, text *encodedPrompt) {
	n := &m.transformer
	w := &m.transformer.work
	for i, f := range n.waves {
		a := float64(float32(float32(t*1000) * f))
		w.time[i] = float32(math.Cos(a))
		w.time[timeWaves+i] = float32(math.Sin(a))
	}
	m.applyLinear(&n.time1, 1, w.time, w.hidden, 0)
	m.k.ApplySiLU(w.hidden)
	m.applyLinear(&n.time2, 1, w.hidden, w.condition, 0)
	m.k.AddRow(w.condition, text.all)
	m.k.ApplySiLU(w.condition)
	m.applyLinear(&n.modulate, 1, w.condition, w.modulation, 0)
	m.applyLinear(&n.last, 1, w.condition, w.end, 0)
}

// toFactors adds one to each scale, because the network stores factors minus
// one.
func toFactors(v []float32) {
	for i := range v {
		v[i]++
	}
}

// embedPatches copies the pixels of each patch to a separate row.
func embedPatches(m *Model, z []float32) {
	n := &m.transformer
	size := n.config.Patch * 3
	side := n.config.Res * 3
	for i := range n.grid * n.grid {
		at := i/n.grid*n.config.Patch*side + i%n.grid*size
		for y := range n.config.Patch {
			copy(n.work.patches[(i*n.config.Patch+y)*size:][:size], z[at+y*side:])
		}
	}
}

func (m *Model) runBlock(b *transformerBlock) {
	n := &m.transformer
	w := &n.work
	d := n.config.D
	rows := n.tokens
	copy(w.block, w.modulation)
	m.k.AddRow(w.block, b.modulation)
	of := func(i int) []float32 { return w.block[i*d : (i+1)*d] }
	toFactors(of(scale1))
	toFactors(of(scale2))
	m.normalizeRows(rows, d, w.rows, of(scale1), of(shift1), w.y)
	m.applyLinear(&b.attention.in, rows, w.y, w.qkv, rowDistance(3*d))
	m.applyAttention(&b.attention, rows, d, w.qkv, n.turn, w.keys, w.y)
	m.addLinear(&b.attention.out, rows, w.y, d, of(gate1), w.rows)
	m.normalizeRows(rows, d, w.rows, of(scale2), of(shift2), w.y)
	m.applyGated(&b.up, rows, w.y, w.gated)
	m.addLinear(&b.down, rows, w.gated, rowDistance(n.config.Hid), of(gate2), w.rows)
}

// smoothPatches computes the pixels of the predicted picture. The transformer's
// output for each pixel and the noisy pixel pass through three convolutions,
// and their result is added to the first three channels of the output.
func smoothPatches(m *Model, z, x []float32) {
	n := &m.transformer
	c := n.config
	w := &n.work
	side := c.Res
	channels := c.Ch + 3
	stride := side + 2
	m.pool.runParallel(side, func(_ *worker, y int) {
		for px := range side {
			from := w.out[((y/c.Patch*n.grid+px/c.Patch)*c.Patch*c.Patch+y%c.Patch*c.Patch+px%c.Patch)*c.Ch:]
			to := w.features[((y+1)*stride+px+1)*channels:]
			copy(to[:c.Ch], from)
			copy(to[c.Ch:channels], z[(y*side+px)*3:])
		}
	})
	inside := pixelArea{1, 1, side + 1, side + 1}
	m.applyConvolution(&n.conv1, w.features, channels, w.first, c.Cw, stride, inside, m.k.ApplySiLU)
	m.applyConvolution(&n.conv2, w.first, c.Cw, w.second, c.Cw, stride, inside, m.k.ApplySiLU)
	products := w.first
	ld := padToPanel(taps * 3)
	if ld != c.Cw {
		clear(products)
	}
	m.pool.runParallel(side, func(_ *worker, y int) {
		at := (y + 1) * stride
		for p := range n.conv3.PanelCount() {
			m.k.MultiplyTile(stride, c.Cw, w.second[at*c.Cw:], c.Cw, n.conv3.PanelRows(p, 0, c.Cw), m.k.TileCols(), products[at*ld+p*m.k.TileCols():], ld, m.zeros, 0)
		}
	})
	m.pool.runParallel(side, func(_ *worker, y int) {
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
