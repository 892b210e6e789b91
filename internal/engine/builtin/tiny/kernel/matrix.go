package kernel

// Lane is the width in which weights are stored: columns lie in panels of
// this many, so that one panel is one stretch of memory.
const Lane = 32

// depth is how many rows of weights are widened at a time: a panel of them
// stays in the nearest cache while rows of the other factor go by.
const depth = 384

// A Matrix is weights as they lie in the program: int8, in panels of Lane
// columns ([panel][k][Lane], the last one filled with zeros), with a scale per
// column. They are widened when they are used, a little at a time.
type Matrix struct {
	K, N   int
	Q      string
	Scales []float32 // as many as columns with the filling
}

// Panels tells in how many panels k takes m.
func (k Kernel) Panels(m Matrix) int { return (m.N + Lane - 1) / Lane * (Lane / k.cols) }

// Room is how many numbers Panel needs to widen into.
func (k Kernel) Room() int { return depth * k.cols }

// Panel multiplies rows of a by panel p of w: c = from + a·w, as Tile.
func (k Kernel) Panel(w Matrix, p, m int, a []float32, lda int, c []float32, ldc int, from []float32, ldf int, room []float32) {
	room = room[:k.Room()]
	in := p % (Lane / k.cols) * k.cols // columns of the stored panel that lie before this one
	stored := w.Q[p/(Lane/k.cols)*w.K*Lane:][:w.K*Lane]
	scale := w.Scales[p*k.cols:][:k.cols]
	for k0 := 0; k0 < w.K; k0 += depth {
		n := min(depth, w.K-k0)
		k.ops.widen(n, room, stored[k0*Lane+in:(k0+n-1)*Lane+in+k.cols], scale)
		k.Tile(m, n, a[k0:], lda, room, k.cols, c, ldc, from, ldf)
		from = c
		ldf = ldc
	}
}

// A Dense is a matrix of float32, in panels of a kernel's own width.
type Dense struct {
	depth, cols int
	values      []float32
}

// Pack makes panels of depth×n numbers, [depth][n].
func (k Kernel) Pack(depth, n int, v []float32) Dense {
	panels := (n + k.cols - 1) / k.cols
	d := Dense{depth, k.cols, make([]float32, panels*depth*k.cols)}
	for i := range depth {
		for j := range n {
			d.values[(j/k.cols*depth+i)*k.cols+j%k.cols] = v[i*n+j]
		}
	}
	return d
}

// Rows gives rows [lo, hi) of panel p, as b for Tile.
func (d Dense) Rows(p, lo, hi int) []float32 {
	return d.values[(p*d.depth+lo)*d.cols : (p*d.depth+hi)*d.cols]
}

// Panels is how many panels there are.
func (d Dense) Panels() int { return len(d.values) / max(1, d.depth*d.cols) }
