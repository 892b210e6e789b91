package main

import (
	"fmt"
	"slices"
	"strings"
)

// vec is the number of a vector of sixteen lanes, which takes one register or
// several. With AVX2 there are seven vectors; the last pair of registers
// contains the mask for incomplete vectors.
type vec int

// operand returns the assembly text of an operand for one half of a vector.
// With AVX-512 a vector has only one half.
func (s *set) operand(o any, half int) string {
	switch o := o.(type) {
	case vec:
		if s.wide {
			return fmt.Sprintf("Z%d", o)
		}
		return fmt.Sprintf("Y%d", int(o)*2+half)
	case float64: // a constant, which is read from memory
		c := float32(o)
		i := slices.Index(s.consts, c)
		if i < 0 {
			i = len(s.consts)
			s.consts = append(s.consts, c)
		}
		return fmt.Sprintf("const%s<>+%d(SB)", s.name, i*64+half*32)
	case string: // memory operand such as "(SI)" or "(SI)(BX*1)"
		if half == 0 {
			return o
		}
		return "32" + o
	}
	panic("not an operand")
}

func (s *set) halves() int {
	if s.wide {
		return 1
	}
	return 2
}

// op generates an operation on vectors. The operands are in the order of Go's
// assembler, with the result last.
func (s *set) op(name string, operands ...any) {
	if s.neon {
		s.opNeon(name, operands...)
		return
	}
	for h := range s.halves() {
		var texts []string
		for _, o := range operands {
			texts = append(texts, s.operand(o, h))
		}
		s.p("%s %s", name, strings.Join(texts, ", "))
	}
}

func (s *set) zero(v vec) {
	if s.wide {
		s.p("VPXORQ Z%d, Z%d, Z%d", v, v, v)
		return
	}
	s.op("VXORPS", v, v, v)
}

// broadcast generates code that fills all lanes of a vector with a float32 from
// memory or from the lowest lane of an X register.
func (s *set) broadcast(from string, v vec) {
	if s.neon {
		s.broadcastNeon(from, v)
		return
	}
	for h := range s.halves() {
		s.p("VBROADCASTSS %s, %s", from, s.operand(v, h))
	}
}

// mask generates code that computes the mask for the first n%16 lanes, where n
// is a register. AX and BX are overwritten.
func (s *set) mask(n string) {
	if s.neon { // NEON has no masks, see tailBytes
		return
	}
	s.p("MOVQ %s, BX", n)
	s.p("ANDQ $15, BX")
	if s.wide {
		s.p("XCHGQ BX, CX")
		s.p("MOVL $1, AX")
		s.p("SHLL CX, AX")
		s.p("DECL AX")
		s.p("XCHGQ BX, CX")
		s.p("KMOVW AX, K1")
		return
	}
	s.p("SHLQ $2, BX")
	s.p("LEAQ mask%s<>+64(SB), AX", s.name)
	s.p("SUBQ BX, AX")
	s.p("VMOVUPS (AX), Y14")
	s.p("VMOVUPS 32(AX), Y15")
}

// load generates code that reads a vector from memory. If masked is set, lanes
// outside the mask become zero.
func (s *set) load(from string, v vec, masked bool) {
	switch {
	case !masked:
		s.op("VMOVUPS", from, v)
	case s.neon:
		s.zero(scratch)
		s.loadTail(from, v, scratch)
	case s.wide:
		s.p("VMOVUPS.Z %s, K1, Z%d", from, v)
	default:
		for h := range 2 {
			s.p("VMASKMOVPS %s, Y%d, %s", s.operand(from, h), 14+h, s.operand(v, h))
		}
	}
}

// loadOver generates code that reads the lanes within the mask from memory and
// copies the others from the vector other.
func (s *set) loadOver(from string, v, other vec) {
	switch {
	case s.neon:
		s.loadTail(from, v, other)
	case s.wide:
		s.p("VMOVAPS Z%d, Z%d", other, v)
		s.p("VMOVUPS %s, K1, Z%d", from, v)
	default:
		s.load(from, v, true)
		for h := range 2 {
			s.p("VBLENDVPS Y%d, %s, %s, %s", 14+h, s.operand(v, h), s.operand(other, h), s.operand(v, h))
		}
	}
}

func (s *set) store(v vec, to string, masked bool) {
	switch {
	case !masked:
		s.op("VMOVUPS", v, to)
	case s.neon:
		s.storeTail(v, to)
	case s.wide:
		s.p("VMOVUPS Z%d, K1, %s", v, to)
	default:
		for h := range 2 {
			s.p("VMASKMOVPS %s, Y%d, %s", s.operand(v, h), 14+h, s.operand(to, h))
		}
	}
}

// clear generates code that sets the lanes outside the mask to zero.
func (s *set) clear(v vec) {
	if s.neon {
		s.clearNeon(v)
		return
	}
	if s.wide {
		s.p("VMOVAPS.Z Z%d, K1, Z%d", v, v)
		return
	}
	for h := range 2 {
		s.p("VANDPS Y%d, %s, %s", 14+h, s.operand(v, h), s.operand(v, h))
	}
}

// each generates a loop over CX elements: body is called for code that
// processes sixteen at a time, and again for the rest, with the mask. The
// pointer registers are advanced.
func (s *set) each(pointers []string, body func(masked bool)) {
	loop, tail, done := s.label("loop"), s.label("tail"), s.label("done")
	s.at(loop)
	s.jumpIfLess("CX", 16, tail)
	body(false)
	for _, p := range pointers {
		s.add(64, p)
	}
	s.add(-16, "CX")
	s.jump(loop)
	s.at(tail)
	s.jumpIfZero("CX", done)
	body(true)
	s.at(done)
}

// reduce generates code that combines the sixteen lanes of vector 0 with op in
// a fixed order, by repeatedly combining the two halves. The result is in X0;
// vector 1 is overwritten.
func (s *set) reduce(op string) {
	if s.neon {
		s.reduceNeon(op)
		return
	}
	if s.wide {
		s.p("VEXTRACTF64X4 $1, Z0, Y1")
	}
	s.p("%sPS Y1, Y0, Y0", op)
	s.p("VEXTRACTF128 $1, Y0, X1")
	s.p("%sPS X1, X0, X0", op)
	s.p("VPERMILPS $0x4e, X0, X1")
	s.p("%sPS X1, X0, X0", op)
	s.p("VPERMILPS $0xb1, X0, X1")
	s.p("%sPS X1, X0, X0", op)
}

// exp generates code that computes e to the power of v: 2 to the nearest whole
// power, times a polynomial of the rest. The result is in r and never below the
// smallest normal number; v and t are overwritten.
func (s *set) exp(v, t, r vec) {
	s.op("VMINPS", expHigh, v, v)
	s.expBelow(v, t, r)
}

// expBelow is exp for numbers that are known to be at most expHigh.
func (s *set) expBelow(v, t, r vec) {
	s.op("VMAXPS", expLow, v, v)
	s.op("VMULPS", log2e, v, t)
	if s.wide {
		s.op("VRNDSCALEPS $8,", t, t)
	} else {
		s.op("VROUNDPS $8,", t, t)
	}
	s.op("VFNMADD231PS", ln2High, t, v)
	s.op("VFNMADD231PS", ln2Low, t, v)
	s.op("VMOVUPS", expPoly[0], r)
	for _, c := range expPoly[1:] {
		s.op("VFMADD213PS", c, v, r)
	}
	s.op("VCVTPS2DQ", t, t)
	s.op("VPSLLD $23,", t, t)
	s.op("VPADDD", t, r, r)
}

// Constants for the exponential function. The plain kernel in Go contains the
// same numbers.
const (
	expLow, expHigh = -86.5, 88.0
	log2e           = 1.44269504088896341
	ln2High, ln2Low = 0.693359375, -2.12194440e-4
)

var expPoly = []float64{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1, 1}

// silu generates code that computes v / (1 + e^-v) into r; t and u are
// overwritten.
func (s *set) silu(v, t, r, u vec) {
	s.zero(u)
	s.op("VSUBPS", v, u, u)
	s.exp(u, t, r)
	s.op("VADDPS", 1.0, r, r)
	s.op("VDIVPS", r, v, r)
}
