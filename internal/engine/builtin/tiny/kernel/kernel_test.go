package kernel_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// The kernels are held to the plain one, on odd sizes and awkward numbers, and
// those of assembly to each other, bit for bit. No machine runs all of these, so
// their results have pinned sums as well.

// plainKernel returns the kernel without assembly, which is the last of All.
func plainKernel(t testing.TB) kernel.Kernel {
	t.Helper()
	all := kernel.All()
	return all[len(all)-1]
}

// a field gives slices that lie amid numbers which nobody may touch, or end
// where memory does. They begin at any multiple of four bytes.
type field struct {
	rng    *rand.Rand
	buffer [][]float32
	edges  *edges
}

const sentinel = float32(-123456.75)

func newField(seed uint64) *field {
	return &field{rng: rand.New(rand.NewPCG(seed, 1)), edges: new(edges)}
}

func (f *field) room(n int) []float32 {
	// As many numbers are drawn where edges are not known, so that the ones
	// after them are the same.
	before, edge := 16+f.rng.IntN(16), f.rng.IntN(2) == 0
	if edge {
		if s := f.edges.room(n); s != nil {
			return s
		}
	}
	b := make([]float32, before+n+48)
	for i := range b {
		b[i] = sentinel
	}
	f.buffer = append(f.buffer, b)
	s := b[before : before+n : before+n]
	clear(s)
	return s
}

// numbers draws n of them: mostly ordinary, now and then tiny, huge or zero.
func (f *field) numbers(n int, large float32) []float32 {
	s := f.room(n)
	for i := range s {
		s[i] = float32(f.rng.NormFloat64())
		switch f.rng.IntN(40) {
		case 0:
			s[i] = 1e-41
		case 1:
			s[i] *= large
		case 2:
			s[i] = 0
		}
	}
	return s
}

func (f *field) copy(of []float32) []float32 {
	s := f.room(len(of))
	copy(s, of)
	return s
}

// intact fails when a number outside of the slices has changed.
func (f *field) intact(t *testing.T, what string) {
	t.Helper()
	f.edges.forget()
	for _, b := range f.buffer {
		for i := range 16 {
			if b[i] != sentinel || b[len(b)-1-i] != sentinel {
				t.Fatalf("%s wrote outside of its slices", what)
			}
		}
	}
}

// near fails when got is further from want than share of scale, element by element.
func near(t *testing.T, what string, got, want []float32, share, scale float64) {
	t.Helper()
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		if math.IsNaN(g) || math.Abs(g-w) > share*max(scale, math.Abs(w)) {
			t.Fatalf("%s: [%d] = %g, want %g", what, i, g, w)
		}
	}
}

func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: [%d] = %g (%08x), want the same bits as %g (%08x)", what, i, got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

// against runs a function with every kernel on the same numbers. work gives
// its result; the assembly kernels must agree in all bits, and with the plain
// one within share. sum is pinned: that of what assembly gives, on any machine.
func against(t *testing.T, share float64, sum string, work func(k kernel.Kernel, f *field) []float32) {
	t.Helper()
	sums := sums{}
	for seed := range uint64(200) {
		var first []float32
		var name string
		reference := newField(seed)
		want := slices.Clone(work(plainKernel(t), reference))
		reference.intact(t, "plain")
		for _, k := range kernel.All() {
			f := newField(seed)
			got := slices.Clone(work(k, f))
			what := fmt.Sprintf("%v, seed %d", k, seed)
			f.intact(t, what)
			near(t, what, got, want, share, 1)
			if k.String() == "plain" {
				continue
			}
			if first != nil {
				same(t, what+" and "+name, got, first)
			}
			first, name = got, k.String()
			sums.add(k, got)
		}
	}
	sums.are(t, sum)
}

// sums has a sum for each kernel of assembly.
type sums map[string]hash.Hash

func (s sums) add(k kernel.Kernel, v []float32) {
	if k.String() == "plain" {
		return
	}
	if s[k.String()] == nil {
		s[k.String()] = sha256.New()
	}
	for _, x := range v {
		s[k.String()].Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
	}
}

func (s sums) are(t *testing.T, want string) {
	t.Helper()
	for name, h := range s {
		if got := hex.EncodeToString(h.Sum(nil)[:8]); got != want {
			t.Errorf("%s gives numbers with the sum %s, want %s as with all vectors", name, got, want)
		}
	}
}

// Numbers of all sizes and both signs, the infinite ones, and both zeros.
func TestAllKindsOfNumbers(t *testing.T) {
	t.Parallel()
	x := []float32{0, float32(math.Copysign(0, -1))}
	for bits := uint64(1); bits < 1<<32; bits += 65_521 {
		if v := math.Float32frombits(uint32(bits)); v == v {
			x = append(x, v)
		}
	}
	x = append(x, float32(math.Inf(1)), float32(math.Inf(-1)))
	slope := []float32{.25, -.25, 0, float32(math.Copysign(0, -1)), 3}
	sums := sums{}
	for _, k := range kernel.All() {
		y := slices.Clone(x)
		k.ApplySiLU(y)
		sums.add(k, y)
		for _, by := range slope {
			copy(y, x)
			k.ApplyPReLU(y[:len(y)-2], []float32{by})
			sums.add(k, y[:len(y)-2])
		}
		copy(y, x)
		k.MoveToward(y[:len(y)-2], x, .3, 1.2)
		sums.add(k, y[:len(y)-2])
		copy(y, x)
		k.ApplySoftmax(y[:2]) // of both zeros
		sums.add(k, y[:2])
		k.ApplySoftmax(y[2:2000])
		sums.add(k, y[2:2000])
	}
	sums.are(t, "78611b5bff6d4221")
}

func TestKernelsHaveNames(t *testing.T) {
	t.Parallel()
	all := kernel.All()
	if last := all[len(all)-1]; last.String() != "plain" {
		t.Errorf("the last kernel is %v, want the plain one", last)
	}
	if kernel.Best().String() != all[0].String() {
		t.Errorf("best = %v, want the first of %v", kernel.Best(), all)
	}
	for _, k := range all {
		if kernel.Lane%k.TileCols() != 0 {
			t.Errorf("%v takes %d columns, which do not divide %d", k, k.TileCols(), kernel.Lane)
		}
	}
}

// product is a·b + from in float64.
func product(m, n, depth int, a []float32, lda int, b []float32, ldb int, from []float32, ldf int) (c, size []float64) {
	c, size = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			s := float64(from[i*ldf+j])
			z := math.Abs(s)
			for p := range depth {
				v := float64(a[i*lda+p]) * float64(b[p*ldb+j])
				s, z = s+v, z+math.Abs(v)
			}
			c[i*n+j], size[i*n+j] = s, z
		}
	}
	return c, size
}

func TestTile(t *testing.T) {
	t.Parallel()
	for _, k := range kernel.All() {
		for seed := range uint64(150) {
			f := newField(seed)
			m, depth, n := 1+f.rng.IntN(40), f.rng.IntN(90), k.TileCols()
			lda, ldb, ldc, ldf := depth+f.rng.IntN(9), n+f.rng.IntN(9), n+f.rng.IntN(9), n+f.rng.IntN(9)
			if f.rng.IntN(3) == 0 {
				ldf = 0
			}
			a, b := f.numbers(max(0, (m-1)*lda+depth), 1e4), f.numbers(max(0, (depth-1)*ldb+n), 1e4)
			from, c := f.numbers((m-1)*ldf+n, 1e4), f.room((m-1)*ldc+n)
			for i := range c {
				c[i] = sentinel
			}
			want, size := product(m, n, depth, a, lda, b, ldb, from, ldf)
			k.MultiplyTile(m, depth, a, lda, b, ldb, c, ldc, from, ldf)
			for i := range m {
				row := c[i*ldc:]
				for j := range n {
					if e := math.Abs(float64(row[j]) - want[i*n+j]); !(e <= 1e-5*size[i*n+j]+1e-37) {
						t.Fatalf("%v, %d×%d: [%d][%d] = %g, want %g", k, m, depth, i, j, row[j], want[i*n+j])
					}
				}
				if i < m-1 && ldc > n && row[n] != sentinel {
					t.Fatalf("%v wrote between the rows", k)
				}
			}
			// In two blocks of k the same bits come out.
			first := depth / 3
			again := f.copy(c)
			k.MultiplyTile(m, first, a, lda, b, ldb, again, ldc, from, ldf)
			k.MultiplyTile(m, depth-first, a[min(first, len(a)):], lda, b[min(first*ldb, len(b)):], ldb, again, ldc, again, ldc)
			same(t, fmt.Sprintf("%v in two blocks", k), again, c)
			f.intact(t, k.String())
		}
	}
}

func TestTileRefusesWhatIsTooShort(t *testing.T) {
	t.Parallel()
	for _, k := range kernel.All() {
		n := k.TileCols()
		sizes := [][4]int{{39, 10 * n, 4 * n, 4 * n}, {40, 10*n - 1, 4 * n, 4 * n}, {40, 10 * n, 4*n - 1, 4 * n}, {40, 10 * n, 4 * n, 4*n - 1}}
		for _, s := range sizes {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%v took slices of %v", k, s)
					}
				}()
				k.MultiplyTile(4, 10, make([]float32, s[0]), 10, make([]float32, s[1]), n, make([]float32, s[2]), n, make([]float32, s[3]), n)
			}()
		}
	}
}

// A distance below zero would lead before the slices.
func TestTransposeRefusesDistancesBelowZero(t *testing.T) {
	t.Parallel()
	for _, k := range kernel.All() {
		for _, d := range [][2]int{{-1, 8}, {16, -1}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%v took distances of %v", k, d)
					}
				}()
				room := make([]float32, 600)
				k.TransposeTo(16, 8, room[300:], d[0], room[300:], d[1])
			}()
		}
	}
}

// weights draws a matrix and gives its numbers as [k][n] as well.
func weights(rng *rand.Rand, depth, n int) (kernel.Matrix, []float32) {
	panels := (n + kernel.Lane - 1) / kernel.Lane
	q, scales, wide := make([]byte, panels*depth*kernel.Lane), make([]float32, panels*kernel.Lane), make([]float32, depth*n)
	for j := range n {
		scales[j] = rng.Float32() / 100
		for i := range depth {
			v := int8(rng.IntN(255) - 127)
			q[(j/kernel.Lane*depth+i)*kernel.Lane+j%kernel.Lane] = byte(v)
			wide[i*n+j] = float32(v) * scales[j]
		}
	}
	return kernel.Matrix{K: depth, N: n, Q: string(q), Scales: scales}, wide
}

func TestPanelMultipliesByWeights(t *testing.T) {
	t.Parallel()
	sums := sums{}
	for seed := range uint64(20) {
		var first []float32
		for _, k := range kernel.All() {
			f := newField(seed)
			m, depth, n := 1+f.rng.IntN(30), 1+f.rng.IntN(900), 1+f.rng.IntN(100)
			w, wide := weights(f.rng, depth, n)
			a := f.numbers(m*depth, 1)
			ldc := k.PanelCount(w) * k.TileCols()
			c, room, from := f.room(m*ldc), f.room(k.ScratchSize()), f.room(ldc)
			for p := range k.PanelCount(w) {
				k.MultiplyPanel(w, p, m, a, depth, c[p*k.TileCols():], ldc, from[p*k.TileCols():], 0, room)
			}
			want, size := product(m, n, depth, a, depth, wide, n, make([]float32, n), 0)
			dense := k.PackDense(depth, n, wide)
			other := f.room(m * ldc)
			for p := range dense.PanelCount() {
				k.MultiplyTile(m, depth, a, depth, dense.PanelRows(p, 0, depth), k.TileCols(), other[p*k.TileCols():], ldc, from, 0)
			}
			var flat []float32
			for i := range m {
				for j := range n {
					got := c[i*ldc+j]
					flat = append(flat, got)
					if e := math.Abs(float64(got) - want[i*n+j]); !(e <= 1e-5*size[i*n+j]) {
						t.Fatalf("%v: [%d][%d] = %g, want %g", k, i, j, got, want[i*n+j])
					}
					if got != other[i*ldc+j] {
						t.Fatalf("%v: [%d][%d] = %g, with dense weights %g", k, i, j, got, other[i*ldc+j])
					}
				}
			}
			f.intact(t, k.String())
			if k.String() == "plain" {
				continue
			}
			if first != nil {
				same(t, k.String(), flat, first)
			}
			first = flat
			sums.add(k, flat)
		}
	}
	sums.are(t, "044b3d4cb04d15fb")
}

func TestSoftmax(t *testing.T) {
	t.Parallel()
	against(t, 1e-6, "5b9aebe6e703b322", func(k kernel.Kernel, f *field) []float32 {
		x := f.numbers(1+f.rng.IntN(300), 1e30)
		k.ApplySoftmax(x)
		var sum float64
		for _, v := range x {
			sum += float64(v)
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Fatalf("%v: %d shares add up to %g", k, len(x), sum)
		}
		return x
	})
}

func TestSiLUIsRight(t *testing.T) {
	t.Parallel()
	for _, k := range kernel.All() {
		x := []float32{0, 1, -1, 5, -5, 20, -20, 80, -80, 1e30, -1e30, 1e-40, math.MaxFloat32, -math.MaxFloat32, .001, -87, 88.5, -88.5}
		for range 1000 {
			x = append(x, float32(len(x)-500)/20)
		}
		got := append([]float32(nil), x...)
		k.ApplySiLU(got)
		for i, v := range x {
			want := float64(v) / (1 + math.Exp(-float64(v)))
			if math.IsNaN(float64(got[i])) || math.Abs(float64(got[i])-want) > 3e-7*math.Abs(want)+1e-7 {
				// Far below zero the exponential is cut off, which leaves next to nothing of any sane number.
				if v > -80 {
					t.Errorf("%v: silu(%g) = %g, want %g", k, v, got[i], want)
				}
			}
		}
	}
}

func TestElementwise(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sum  string
		work func(k kernel.Kernel, f *field) []float32
	}{
		"silu": {"e253e49f7c762b84", func(k kernel.Kernel, f *field) []float32 {
			x := f.numbers(f.rng.IntN(70), 1e4)
			k.ApplySiLU(x)
			return x
		}},
		"gate": {"bfbdcb6856621277", func(k kernel.Kernel, f *field) []float32 {
			n := f.rng.IntN(70)
			dst, a, b := f.room(n), f.numbers(n, 1e4), f.numbers(n, 1e4)
			k.ApplyGate(dst, a, b)
			return dst
		}},
		"gate in place": {"74f822f40bd3eac8", func(k kernel.Kernel, f *field) []float32 {
			n := f.rng.IntN(70)
			a, b := f.numbers(n, 1e4), f.numbers(n, 1e4)
			k.ApplyGate(a, a, b)
			return a
		}},
		"add": {"a9d2e8a32b878e4b", func(k kernel.Kernel, f *field) []float32 {
			n := f.rng.IntN(70)
			x, v := f.numbers(n, 1e4), f.numbers(n, 1e4)
			k.AddRow(x, v)
			return x
		}},
		"add gated": {"1f104ffe59aea9c8", func(k kernel.Kernel, f *field) []float32 {
			n := f.rng.IntN(70)
			x, g, v := f.numbers(n, 10), f.numbers(n, 10), f.numbers(n, 10)
			k.AddGated(x, g, v)
			return x
		}},
		"toward": {"2e7661df32036d77", func(k kernel.Kernel, f *field) []float32 {
			n := f.rng.IntN(70)
			z, x := f.numbers(n, 10), f.numbers(n, 1e30)
			k.MoveToward(z, x, f.rng.Float32(), 1.2)
			return z
		}},
		"guide": {"19999d8c9b3803cd", func(k kernel.Kernel, f *field) []float32 {
			n := f.rng.IntN(70)
			x, u := f.numbers(n, 10), f.numbers(n, 10)
			k.ApplyGuidance(x, u, f.rng.Float32()*8)
			return x
		}},
		"norm": {"01ff8ae05a94eec4", func(k kernel.Kernel, f *field) []float32 {
			n := f.rng.IntN(500)
			dst, x, gain, shift := f.room(n), f.numbers(n, 1e4), f.numbers(n, 1), f.numbers(n, 1)
			k.NormalizeRow(dst, x, gain, shift)
			return dst
		}},
		"rope": {"97d484e76103f35b", func(k kernel.Kernel, f *field) []float32 {
			n := f.rng.IntN(70) * 2
			dst, x, gain, cos, sin := f.room(n), f.numbers(n, 1e4), f.numbers(n, 1), f.numbers(n/2, 1), f.numbers(n/2, 1)
			k.RotatePairs(dst, x, gain, cos, sin)
			return dst
		}},
		"prelu": {"3f780987ad857288", func(k kernel.Kernel, f *field) []float32 {
			n := 1 + f.rng.IntN(70)
			x, slope := f.numbers(n*f.rng.IntN(5), 1e4), f.numbers(n, 1)
			k.ApplyPReLU(x, slope)
			return x
		}},
		"transpose": {"dd1e93c02c5f0475", func(k kernel.Kernel, f *field) []float32 {
			rows, cols := 1+f.rng.IntN(30), 1+f.rng.IntN(30)
			ldd, lds := rows+f.rng.IntN(5), cols+f.rng.IntN(5)
			src, dst := f.numbers((rows-1)*lds+cols, 1e4), f.room((cols-1)*ldd+rows)
			k.TransposeTo(rows, cols, dst, ldd, src, lds)
			return dst
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			against(t, 1e-5, c.sum, c.work)
		})
	}
}

// A vector of zeros has no length to divide by; the norm must stay finite.
func TestNormOfNothing(t *testing.T) {
	t.Parallel()
	for _, k := range kernel.All() {
		x, ones, zeros := make([]float32, 64), make([]float32, 64), make([]float32, 64)
		for i := range ones {
			ones[i] = 1
		}
		k.NormalizeRow(x, x, ones, zeros)
		same(t, k.String(), x, zeros)
		k.RotatePairs(x, x, ones, ones[:32], zeros[:32])
		same(t, k.String(), x, zeros)
	}
}

// BenchmarkProduct gives the speed of products of the model's shapes on one
// thread, and its share of what registers alone reach in the same run. Both
// are the best of all rounds: what other programs on the machine do is no
// property of the kernel.
func BenchmarkProduct(b *testing.B) {
	for _, k := range kernel.All() {
		for _, s := range [][3]int{{280, 384, 1152}, {280, 384, 2048}, {280, 1024, 384}, {512, 512, 512}} {
			b.Run(fmt.Sprintf("%v/%dx%dx%d", k, s[0], s[1], s[2]), func(b *testing.B) {
				m, depth, n := s[0], s[1], s[2]
				f := newField(1)
				w, _ := weights(f.rng, depth, n)
				a, c, from, room := f.numbers(m*depth, 1), f.room(m*n), f.room(n), f.room(k.ScratchSize())
				for i := range a {
					a[i] = float32(f.rng.NormFloat64())
				}
				a, c, room = aligned(a), aligned(c), aligned(room)
				var speed, peak float64
				for i := 0; b.Loop(); i++ {
					began := time.Now()
					for p := range k.PanelCount(w) {
						k.MultiplyPanel(w, p, m, a, depth, c[p*k.TileCols():], n, from[p*k.TileCols():], 0, room)
					}
					speed = max(speed, 2*float64(m)*float64(depth)*float64(n)/time.Since(began).Seconds()/1e9)
					if i%8 == 0 {
						began = time.Now()
						operations := kernel.Peak(k, 10_000)
						peak = max(peak, float64(operations)/time.Since(began).Seconds()/1e9)
					}
				}
				b.ReportMetric(speed, "GFLOP/s")
				b.ReportMetric(peak, "peak-GFLOP/s")
				b.ReportMetric(speed/peak, "of-peak")
			})
		}
	}
}

// aligned copies v to where a vector register likes to read from.
func aligned(v []float32) []float32 {
	b := make([]float32, len(v)+16)
	off := int(-uintptr(unsafe.Pointer(&b[0])) & 63 / 4)
	copy(b[off:], v)
	return b[off : off+len(v)]
}

func BenchmarkRow(b *testing.B) {
	for _, k := range kernel.All() {
		f := newField(1)
		x, y, g, s := make([]float32, 280), make([]float32, 384), make([]float32, 1024), make([]float32, 384)
		for i := range g {
			g[i] = float32(f.rng.NormFloat64())
		}
		copy(s, g)
		b.Run(k.String()+"/softmax280", func(b *testing.B) {
			for b.Loop() {
				k.ApplySoftmax(x)
			}
		})
		b.Run(k.String()+"/gate1024", func(b *testing.B) {
			d := make([]float32, 1024)
			for b.Loop() {
				k.ApplyGate(d, g, g)
			}
		})
		b.Run(k.String()+"/norm384", func(b *testing.B) {
			for b.Loop() {
				k.NormalizeRow(y, s, s, s)
			}
		})
		b.Run(k.String()+"/rope64", func(b *testing.B) {
			for b.Loop() {
				k.RotatePairs(y[:64], s[:64], s[:64], s[:32], s[:32])
			}
		})
		b.Run(k.String()+"/widen384", func(b *testing.B) {
			w, _ := weights(f.rng, 384, 32)
			room := make([]float32, k.ScratchSize())
			for b.Loop() {
				k.MultiplyPanel(w, 0, 0, nil, 384, nil, 0, nil, 0, room)
			}
		})
	}
}
