package kernel

// Lane is the number of columns in a stored panel of weights. The elements of a
// panel are contiguous in memory.
const Lane = 32

// panelDepth is the number of rows of weights that are converted to float32 at
// a time. A panel of this many rows fits into the first-level cache.
const panelDepth = 384

// Matrix has the weights of a layer as they are embedded in the program: int8
// values in panels of Lane columns ([panel][k][Lane], the last panel padded
// with zeros), with a scale for each column. They are converted to float32 in
// small parts when they are used.
type Matrix struct {
	K, N   int
	Q      string
	Scales []float32 // scale of each column, including padding
}

// PanelCount returns the number of panels into which the columns of m are
// divided. The panels have the kernel's own width.
func (k Kernel) PanelCount(m Matrix) int { return (m.N + Lane - 1) / Lane * (Lane / k.cols) }

// ScratchSize returns the number of floats that MultiplyPanel needs as scratch
// memory.
func (k Kernel) ScratchSize() int { return panelDepth * k.cols }

// MultiplyPanel multiplies m rows of a by panel p of w: c = from + a·w. The
// other parameters are as in MultiplyTile; room is scratch memory of
// ScratchSize floats.
func (k Kernel) MultiplyPanel(w Matrix, p, m int, a []float32, lda int, c []float32, ldc int, from []float32, ldf int, room []float32) {
	room = room[:k.ScratchSize()]
	in := p % (Lane / k.cols) * k.cols // number of columns of the stored panel before this panel
	stored := w.Q[p/(Lane/k.cols)*w.K*Lane:][:w.K*Lane]
	scale := w.Scales[p*k.cols:][:k.cols]
	for k0 := 0; k0 < w.K; k0 += panelDepth {
		n := min(panelDepth, w.K-k0)
		k.ops.widen(n, room, stored[k0*Lane+in:(k0+n-1)*Lane+in+k.cols], scale)
		k.MultiplyTile(m, n, a[k0:], lda, room, k.cols, c, ldc, from, ldf)
		from = c
		ldf = ldc
	}
}

// Dense is a matrix of float32 in panels as wide as a kernel's tile.
type Dense struct {
	depth, cols int
	values      []float32
}

// PackDense returns a matrix of depth×n numbers, which are given row by row.
func (k Kernel) PackDense(depth, n int, v []float32) Dense {
	panels := (n + k.cols - 1) / k.cols
	d := Dense{depth, k.cols, make([]float32, panels*depth*k.cols)}
	for i := range depth {
		for j := range n {
			d.values[(j/k.cols*depth+i)*k.cols+j%k.cols] = v[i*n+j]
		}
	}
	return d
}

// PanelRows returns rows lo to hi-1 of panel p, as MultiplyTile expects them in
// its argument b.
func (d Dense) PanelRows(p, lo, hi int) []float32 {
	return d.values[(p*d.depth+lo)*d.cols : (p*d.depth+hi)*d.cols]
}

// PanelCount returns the number of panels of the matrix.
func (d Dense) PanelCount() int { return len(d.values) / max(1, d.depth*d.cols) }
