package neural

import "atelier/internal/engine/builtin/tiny/kernel"

// convolution is one of 3×3.
type convolution struct {
	in, out int
	w       kernel.Dense // [ky][kx][in] rows
	bias    []float32
}

func openConvolution(s *store, k kernel.Kernel, name string, in, out int) convolution {
	c := convolution{in: in, out: out, w: k.Pack(taps*in, out, s.half(name+".weight", 3, 3, in, out)), bias: make([]float32, wide(out))}
	copy(c.bias, s.half(name+".bias", out))
	return c
}

// area is a rectangle of pixels; the last row and column lie outside.
type area struct{ x0, y0, x1, y1 int }

// convolve computes an area of to from the same area of from and a pixel round
// it, which must be zero where there is no picture. Both lie with stride
// pixels a row. finish gets rows of the result. The pixels round the area
// become zero, for the next convolution.
//
// The three neighbours of a pixel in a row lie side by side, so that each row
// of the kernel is a product of three times as many channels, without any
// copying; rows of pixels are taken together, with what lies between them.
func (m *Model) convolve(c *convolution, from []float32, fromWidth int, to []float32, toWidth int, stride int, a area, finish func(row []float32)) {
	cols := m.k.Cols()
	width := a.x1 - a.x0
	rows := max(1, min(512/width, (a.y1-a.y0+4*len(m.crew.hands)-1)/(4*len(m.crew.hands))))
	pixel := func(y, x int) int { return (y*stride + x) * toWidth }
	clear(to[pixel(a.y0-1, a.x0-1):pixel(a.y0-1, a.x1+1)])
	clear(to[pixel(a.y1, a.x0-1):pixel(a.y1, a.x1+1)])
	m.crew.each((a.y1-a.y0+rows-1)/rows, func(_ *hand, i int) {
		y0 := a.y0 + i*rows
		y1 := min(a.y1, y0+rows)
		pixels := (y1-1-y0)*stride + width
		for p := range c.w.Panels() {
			out := to[pixel(y0, a.x0)+p*cols:]
			start := c.bias[p*cols:]
			step := 0
			for ky := range 3 {
				in := from[((y0+ky-1)*stride+a.x0-1)*fromWidth:]
				m.k.Tile(pixels, 3*c.in, in, fromWidth, c.w.Rows(p, ky*3*c.in, (ky+1)*3*c.in), cols, out, toWidth, start, step)
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
