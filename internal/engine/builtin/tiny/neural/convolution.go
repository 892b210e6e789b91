package neural

import "atelier/internal/engine/builtin/tiny/kernel"

// convolution is a 3×3 convolution with the given numbers of input and output
// channels.
type convolution struct {
	in, out int
	w       kernel.Dense // rows in the order [ky][kx][in]
	bias    []float32
}

func openConvolution(s *tensorStore, k kernel.Kernel, name string, in, out int) convolution {
	c := convolution{in: in, out: out, w: k.PackDense(taps*in, out, s.readHalf(name+".weight", 3, 3, in, out)), bias: make([]float32, padToPanel(out))}
	copy(c.bias, s.readHalf(name+".bias", out))
	return c
}

// pixelArea is a rectangle of pixels. x1 and y1 are exclusive.
type pixelArea struct{ x0, y0, x1, y1 int }

// applyConvolution applies a convolution to an area of the source buffer (from)
// and writes the result to the same area of the target buffer (to). It also
// reads a border of one pixel around the area; pixels outside of the picture
// must be zero in the source. Rows of both buffers are stride pixels apart.
// finish is called with the rows of the result. In the target, the border
// around the area is set to zero for the next convolution.
//
// The three neighbours of a pixel in a row are adjacent in memory, so each row
// of the kernel is a product with three times as many channels and nothing has
// to be copied. Several rows of pixels are processed together, including the
// gaps between them.
func (m *Model) applyConvolution(c *convolution, from []float32, fromWidth int, to []float32, toWidth int, stride int, a pixelArea, finish func(row []float32)) {
	cols := m.k.TileCols()
	width := a.x1 - a.x0
	rows := max(1, min(512/width, (a.y1-a.y0+4*len(m.pool.workers)-1)/(4*len(m.pool.workers))))
	pixel := func(y, x int) int { return (y*stride + x) * toWidth }
	clear(to[pixel(a.y0-1, a.x0-1):pixel(a.y0-1, a.x1+1)])
	clear(to[pixel(a.y1, a.x0-1):pixel(a.y1, a.x1+1)])
	m.pool.runParallel((a.y1-a.y0+rows-1)/rows, func(_ *worker, i int) {
		y0 := a.y0 + i*rows
		y1 := min(a.y1, y0+rows)
		pixels := (y1-1-y0)*stride + width
		for p := range c.w.PanelCount() {
			out := to[pixel(y0, a.x0)+p*cols:]
			start := c.bias[p*cols:]
			step := 0
			for ky := range 3 {
				in := from[((y0+ky-1)*stride+a.x0-1)*fromWidth:]
				m.k.MultiplyTile(pixels, 3*c.in, in, fromWidth, c.w.PanelRows(p, ky*3*c.in, (ky+1)*3*c.in), cols, out, toWidth, start, step)
				start = out
				step = toWidth
			}
		}
		for y := y0; y < y1; y++ {
			if finish != nil {
				finish(to[pixel(y, a.x0):pixel(y, a.x1)])
			}
			clear(to[pixel(y, a.x0-1):pixel(y, a.x0)])
			clear(to[pixel(y, a.x1):pixel(y, a.x1+1)])
		}
	})
}
