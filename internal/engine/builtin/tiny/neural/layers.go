package neural

import (
	"math"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// linear is weights and what is added after them.
type linear struct {
	w    kernel.Matrix
	bias []float32
}

// openLinear reads a layer; without a bias it adds zeros.
func openLinear(s *store, name string, k, n int, bias bool) linear {
	l := linear{w: s.matrix(name+".weight", k, n), bias: make([]float32, wide(n))}
	if bias {
		copy(l.bias, s.half(name+".bias", n))
	}
	return l
}

// split cuts rows up so that panels times pieces is enough for all hands to
// end at about the same time. It gives the rows of a piece.
func (m *Model) split(rows, panels int) (piece int) {
	pieces := max(1, 4*len(m.crew.hands)/max(1, panels))
	piece = (rows + pieces - 1) / pieces
	return (piece + m.k.Rows() - 1) / m.k.Rows() * m.k.Rows()
}

// product goes over all panels and pieces of rows of a product.
func (m *Model) product(panels, rows int, work func(h *hand, panel, row, rows int)) {
	piece := m.split(rows, panels)
	pieces := (rows + piece - 1) / piece
	m.crew.each(panels*pieces, func(h *hand, i int) {
		row := i % pieces * piece
		work(h, i/pieces, row, min(piece, rows-row))
	})
}

// apply sets c to a·w + bias, row by row; rows of c lie ldc apart.
func (m *Model) apply(l *linear, rows int, a, c []float32, ldc int) {
	k := l.w.K
	m.product(m.k.Panels(l.w), rows, func(h *hand, p, row, rows int) {
		at := p * m.k.Cols()
		m.k.Panel(l.w, p, rows, a[row*k:], k, c[row*ldc+at:], ldc, l.bias[at:], 0, h.room)
	})
}

// residual adds a·w, times a gate for each column, to x. Without a gate it
// adds the product as it is. Rows of a lie lda apart.
func (m *Model) residual(l *linear, rows int, a []float32, lda int, gate, x []float32) {
	n := l.w.N
	cols := m.k.Cols()
	m.product(m.k.Panels(l.w), rows, func(h *hand, p, row, rows int) {
		at := p * cols
		m.k.Panel(l.w, p, rows, a[row*lda:], lda, h.tile, cols, l.bias[at:], 0, h.room)
		for r := range rows {
			to := x[(row+r)*n+at:][:cols]
			v := h.tile[r*cols:]
			if gate == nil {
				m.k.Add(to, v)
			} else {
				m.k.AddGated(to, gate[at:], v)
			}
		}
	})
}

// gated sets c to SiLU(a·w1)·(a·w2), where the columns of w1 and w2 lie side
// by side in one matrix. Rows of c lie apart(n) apart.
func (m *Model) gated(l *linear, rows int, a, c []float32) {
	k := l.w.K
	n := l.w.N / 2
	cols := m.k.Cols()
	half := n / cols
	m.product(half, rows, func(h *hand, p, row, rows int) {
		at := p * cols
		second := h.tile[rows*cols:]
		m.k.Panel(l.w, p, rows, a[row*k:], k, h.tile, cols, l.bias[at:], 0, h.room)
		m.k.Panel(l.w, half+p, rows, a[row*k:], k, second, cols, l.bias[n+at:], 0, h.room)
		m.k.Gate(h.tile[:rows*cols], h.tile, second)
		for r := range rows {
			copy(c[(row+r)*apart(n)+at:][:cols], h.tile[r*cols:])
		}
	})
}

// apart is how far rows of n numbers should lie apart. Rows that are a multiple
// of a page apart would drive each other out of the nearest cache.
func apart(n int) int { return n + lineNumbers }

// chunk is how many rows are taken at once where rows are independent.
const chunk = 40

// eachRow goes over rows in chunks.
func (m *Model) eachRow(rows int, work func(h *hand, row int)) {
	m.crew.each((rows+chunk-1)/chunk, func(h *hand, i int) {
		for r := i * chunk; r < min(rows, (i+1)*chunk); r++ {
			work(h, r)
		}
	})
}

// normed norms rows of x into y.
func (m *Model) normed(rows, width int, x, gain, shift, y []float32) {
	m.eachRow(rows, func(_ *hand, r int) {
		m.k.Norm(y[r*width:][:width], x[r*width:], gain, shift)
	})
}

// attention is the weights of one.
type attention struct {
	in, out      linear
	qGain, kGain []float32
	heads        int
}

func openAttention(s *store, name string, width, heads int) attention {
	a := attention{
		in:    openLinear(s, name+".qkv", width, 3*width, false),
		out:   openLinear(s, name+".o", width, width, false),
		qGain: s.half(name+".qn.w", width/heads),
		kGain: s.half(name+".kn.w", width/heads),
		heads: heads,
	}
	// The scale of attention belongs to one of the factors.
	scale := float32(1 / math.Sqrt(float64(width/heads)))
	for i := range a.qGain {
		a.qGain[i] *= scale
	}
	return a
}

// attentionRows is how many rows of attention one hand computes at a time.
func attentionRows(k kernel.Kernel) int { return (70 + k.Rows() - 1) / k.Rows() * k.Rows() }

// attend lets rows look at each other: qkv is rows of three widths, apart of
// that apart, y gets rows of one. turn tells how far each row is turned, keys
// is room.
func (m *Model) attend(a *attention, rows, width int, qkv []float32, turn turns, keys, y []float32) {
	size := width / a.heads
	ld := wide(rows)
	ldq := apart(3 * width)
	chunks := (rows + chunk - 1) / chunk
	m.crew.each(a.heads*chunks, func(h *hand, i int) {
		head := i / chunks
		first := i % chunks * chunk
		n := min(chunk, rows-first)
		for r := range n {
			row := qkv[(first+r)*ldq+head*size:]
			cos, sin := turn.of(first + r)
			m.k.Rope(row[:size], row, a.qGain, cos, sin)
			m.k.Rope(h.rows[r*size:][:size], row[width:], a.kGain, cos, sin)
		}
		// Keys lie as columns, so that they are panels of a product as they are.
		m.k.Transpose(n, size, keys[head*size*ld+first:], ld, h.rows, size)
	})
	piece := attentionRows(m.k)
	cols := m.k.Cols()
	pieces := (rows + piece - 1) / piece
	m.crew.each(a.heads*pieces, func(h *hand, i int) {
		head := i / pieces
		first := i % pieces * piece
		n := min(piece, rows-first)
		q := qkv[first*ldq+head*size:]
		k := keys[head*size*ld:][:size*ld]
		for at := 0; at < ld; at += cols {
			m.k.Tile(n, size, q, ldq, k[at:], ld, h.rows[at:], ld, m.zeros, 0)
		}
		for r := range n {
			m.k.Softmax(h.rows[r*ld:][:rows])
		}
		v := qkv[2*width+head*size:]
		for at := 0; at < size; at += cols {
			m.k.Tile(n, rows, h.rows, ld, v[at:], ldq, y[first*width+head*size+at:], width, m.zeros, 0)
		}
	})
}

// turns is cosine and sine for each row and pair of a head.
type turns struct {
	cos, sin []float32
	half     int
}

// newTurns turns nothing.
func newTurns(rows, half int) turns {
	t := turns{make([]float32, rows*half), make([]float32, rows*half), half}
	for i := range t.cos {
		t.cos[i] = 1
	}
	return t
}

func (t turns) of(row int) (cos, sin []float32) {
	return t.cos[row*t.half:][:t.half], t.sin[row*t.half:][:t.half]
}
