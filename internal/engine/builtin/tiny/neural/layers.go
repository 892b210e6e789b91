package neural

import (
	"math"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// linearLayer has the weights and the bias of a linear layer.
type linearLayer struct {
	w    kernel.Matrix
	bias []float32
}

// openLinear reads the weights of a linear layer from k to n channels. If bias
// is false, the bias is zero.
func openLinear(s *tensorStore, name string, k, n int, bias bool) linearLayer {
	l := linearLayer{w: s.readMatrix(name+".weight", k, n), bias: make([]float32, padToPanel(n))}
	if bias {
		copy(l.bias, s.readHalf(name+".bias", n))
	}
	return l
}

// splitRows returns the number of rows of a product that one worker computes at
// a time. It is chosen so that all workers finish at about the same time.
func splitRows(m *Model, rows, panels int) (piece int) {
	pieces := max(1, 4*len(m.pool.workers)/max(1, panels))
	piece = (rows + pieces - 1) / pieces
	return (piece + m.k.TileRows() - 1) / m.k.TileRows() * m.k.TileRows()
}

// eachPanel calls work in parallel for all panels of a product, each in several
// ranges of rows.
func (m *Model) eachPanel(panels, rows int, work func(h *worker, panel, row, rows int)) {
	piece := splitRows(m, rows, panels)
	pieces := (rows + piece - 1) / piece
	m.pool.runParallel(panels*pieces, func(h *worker, i int) {
		row := i % pieces * piece
		work(h, i/pieces, row, min(piece, rows-row))
	})
}

// applyLinear sets c to a·w + bias for a number of rows. Rows of c are ldc
// floats apart.
func (m *Model) applyLinear(l *linearLayer, rows int, a, c []float32, ldc int) {
	k := l.w.K
	m.eachPanel(m.k.PanelCount(l.w), rows, func(h *worker, p, row, rows int) {
		at := p * m.k.TileCols()
		m.k.MultiplyPanel(l.w, p, rows, a[row*k:], k, c[row*ldc+at:], ldc, l.bias[at:], 0, h.scratch)
	})
}

// addLinear adds a·w + bias to x, each column multiplied by its gate. If gate
// is nil, it adds the plain result. Rows of a are lda floats apart.
func (m *Model) addLinear(l *linearLayer, rows int, a []float32, lda int, gate, x []float32) {
	n := l.w.N
	cols := m.k.TileCols()
	m.eachPanel(m.k.PanelCount(l.w), rows, func(h *worker, p, row, rows int) {
		at := p * cols
		m.k.MultiplyPanel(l.w, p, rows, a[row*lda:], lda, h.tile, cols, l.bias[at:], 0, h.scratch)
		for r := range rows {
			to := x[(row+r)*n+at:][:cols]
			v := h.tile[r*cols:]
			if gate == nil {
				m.k.AddRow(to, v)
			} else {
				m.k.AddGated(to, gate[at:], v)
			}
		}
	})
}

// applyGated sets c to SiLU(a·w1)·(a·w2). w1 and w2 are the left and the right
// half of the layer's matrix, with n columns each. Rows of c are rowDistance(n)
// floats apart.
func (m *Model) applyGated(l *linearLayer, rows int, a, c []float32) {
	k := l.w.K
	n := l.w.N / 2
	cols := m.k.TileCols()
	half := n / cols
	m.eachPanel(half, rows, func(h *worker, p, row, rows int) {
		at := p * cols
		second := h.tile[rows*cols:]
		m.k.MultiplyPanel(l.w, p, rows, a[row*k:], k, h.tile, cols, l.bias[at:], 0, h.scratch)
		m.k.MultiplyPanel(l.w, half+p, rows, a[row*k:], k, second, cols, l.bias[n+at:], 0, h.scratch)
		m.k.ApplyGate(h.tile[:rows*cols], h.tile, second)
		for r := range rows {
			copy(c[(row+r)*rowDistance(n)+at:][:cols], h.tile[r*cols:])
		}
	})
}

// rowDistance returns the distance in floats between the starts of rows of n
// floats. Rows at multiples of the page size would evict each other from the
// first-level cache.
func rowDistance(n int) int { return n + lineNumbers }

// chunkRows is the number of rows that a worker processes at a time if rows are
// independent of each other.
const chunkRows = 40

// eachRow calls work for each row, in parallel.
func (m *Model) eachRow(rows int, work func(h *worker, row int)) {
	m.pool.runParallel((rows+chunkRows-1)/chunkRows, func(h *worker, i int) {
		for r := i * chunkRows; r < min(rows, (i+1)*chunkRows); r++ {
			work(h, r)
		}
	})
}

// normalizeRows writes the rows of x to y, normalized by NormalizeRow.
func (m *Model) normalizeRows(rows, width int, x, gain, shift, y []float32) {
	m.eachRow(rows, func(_ *worker, r int) {
		m.k.NormalizeRow(y[r*width:][:width], x[r*width:], gain, shift)
	})
}

// attention has the weights of an attention layer.
type attention struct {
	in, out      linearLayer
	qGain, kGain []float32
	heads        int
}

func openAttention(s *tensorStore, name string, width, heads int) attention {
	a := attention{
		in:    openLinear(s, name+".qkv", width, 3*width, false),
		out:   openLinear(s, name+".o", width, width, false),
		qGain: s.readHalf(name+".qn.w", width/heads),
		kGain: s.readHalf(name+".kn.w", width/heads),
		heads: heads,
	}
	// The scale of the attention scores is included in the gain of the queries.
	scale := float32(1 / math.Sqrt(float64(width/heads)))
	for i := range a.qGain {
		a.qGain[i] *= scale
	}
	return a
}

// attentionRows returns the number of rows of an attention layer that one
// worker computes at a time.
func attentionRows(k kernel.Kernel) int { return (70 + k.TileRows() - 1) / k.TileRows() * k.TileRows() }

// applyAttention computes self-attention and writes its rows to y. Rows of qkv
// contain query, key and value, each of the given width, and are
// rowDistance(3*width) floats apart. turn contains the rotation of each row,
// and keys is scratch memory.
func (m *Model) applyAttention(a *attention, rows, width int, qkv []float32, turn rotations, keys, y []float32) {
	size := width / a.heads
	ld := padToPanel(rows)
	ldq := rowDistance(3 * width)
	chunks := (rows + chunkRows - 1) / chunkRows
	m.pool.runParallel(a.heads*chunks, func(h *worker, i int) {
		head := i / chunks
		first := i % chunks * chunkRows
		n := min(chunkRows, rows-first)
		for r := range n {
			row := qkv[(first+r)*ldq+head*size:]
			cos, sin := turn.rotationOf(first + r)
			m.k.RotatePairs(row[:size], row, a.qGain, cos, sin)
			m.k.RotatePairs(h.rows[r*size:][:size], row[width:], a.kGain, cos, sin)
		}
		// Keys are stored as columns, as MultiplyTile requires.
		m.k.TransposeTo(n, size, keys[head*size*ld+first:], ld, h.rows, size)
	})
	piece := attentionRows(m.k)
	cols := m.k.TileCols()
	pieces := (rows + piece - 1) / piece
	m.pool.runParallel(a.heads*pieces, func(h *worker, i int) {
		head := i / pieces
		first := i % pieces * piece
		n := min(piece, rows-first)
		q := qkv[first*ldq+head*size:]
		k := keys[head*size*ld:][:size*ld]
		for at := 0; at < ld; at += cols {
			m.k.MultiplyTile(n, size, q, ldq, k[at:], ld, h.rows[at:], ld, m.zeros, 0)
		}
		for r := range n {
			m.k.ApplySoftmax(h.rows[r*ld:][:rows])
		}
		v := qkv[2*width+head*size:]
		for at := 0; at < size; at += cols {
			m.k.MultiplyTile(n, rows, h.rows, ld, v[at:], ldq, y[first*width+head*size+at:], width, m.zeros, 0)
		}
	})
}

// rotations has the cosine and sine of the angle by which each pair of elements
// is rotated, for each row.
type rotations struct {
	cos, sin []float32
	half     int
}

// newRotations returns rotations by zero for the given number of rows and of
// pairs per row.
func newRotations(rows, half int) rotations {
	t := rotations{make([]float32, rows*half), make([]float32, rows*half), half}
	for i := range t.cos {
		t.cos[i] = 1
	}
	return t
}

func (t rotations) rotationOf(row int) (cos, sin []float32) {
	return t.cos[row*t.half:][:t.half], t.sin[row*t.half:][:t.half]
}
