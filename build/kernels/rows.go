package main

import "math"

func (s *set) softmax() {
	f := s.function("softmax", arg{"n", "int"}, arg{"x", "*float32"})
	s.p("MOVQ %s, DX", f["n"])
	s.p("MOVQ %s, DI", f["x"])
	s.mask("DX")

	s.p("MOVQ DX, CX")
	s.p("MOVQ DI, SI")
	s.op("VMOVUPS", -math.MaxFloat32, vec(0))
	// Two maxima at a time, so that one need not wait for the other; their
	// order does not matter.
	s.op("VMOVUPS", vec(0), vec(3))
	pairs, rest := s.label("pairs"), s.label("rest")
	s.at(pairs)
	s.p("CMPQ CX, $32")
	s.p("JLT %s", rest)
	s.op("VMAXPS", "(SI)", vec(0), vec(0))
	s.p("ADDQ $64, SI")
	s.op("VMAXPS", "(SI)", vec(3), vec(3))
	s.p("ADDQ $64, SI")
	s.p("SUBQ $32, CX")
	s.p("JMP %s", pairs)
	s.at(rest)
	s.op("VMAXPS", vec(3), vec(0), vec(0))
	s.each([]string{"SI"}, func(masked bool) {
		switch {
		case !masked:
			s.load("(SI)", 1, false)
		case s.wide:
			s.p("VMOVAPS Z0, Z1")
			s.p("VMOVUPS (SI), K1, Z1")
		default:
			s.load("(SI)", 1, true)
			for h := range 2 {
				s.p("VBLENDVPS Y%d, %s, %s, %s", 14+h, s.operand(vec(1), h), s.operand(vec(0), h), s.operand(vec(1), h))
			}
		}
		s.op("VMAXPS", vec(1), vec(0), vec(0))
	})
	s.reduce("VMAX")
	s.broadcast("X0", 4)

	s.p("MOVQ DX, CX")
	s.p("MOVQ DI, SI")
	s.zero(0)
	s.each([]string{"SI"}, func(masked bool) {
		s.load("(SI)", 1, masked)
		s.op("VSUBPS", vec(4), vec(1), vec(1))
		s.expBelow(1, 2, 3)
		s.store(3, "(SI)", masked)
		if masked {
			s.clear(3)
		}
		s.op("VADDPS", vec(3), vec(0), vec(0))
	})
	s.reduce("VADD")
	s.p("VMOVSS %s, X1", s.operand(1.0, 0))
	s.p("VDIVSS X0, X1, X0")
	s.broadcast("X0", 4)

	s.p("MOVQ DX, CX")
	s.p("MOVQ DI, SI")
	s.each([]string{"SI"}, func(masked bool) {
		s.load("(SI)", 1, masked)
		s.op("VMULPS", vec(4), vec(1), vec(1))
		s.store(1, "(SI)", masked)
	})
	s.end()
}

// elementwise writes the functions that go over n numbers once.
func (s *set) elementwise() {
	n := arg{"n", "int"}
	begin := func(name string, args ...arg) map[string]string {
		f := s.function(name, append([]arg{n}, args...)...)
		s.p("MOVQ %s, CX", f["n"])
		return f
	}

	f := begin("silu", arg{"x", "*float32"})
	s.p("MOVQ %s, SI", f["x"])
	s.mask("CX")
	s.each([]string{"SI"}, func(masked bool) {
		s.load("(SI)", 0, masked)
		s.silu(0, 1, 2, 3)
		s.store(2, "(SI)", masked)
	})
	s.end()

	f = begin("gate", arg{"dst", "*float32"}, arg{"a", "*float32"}, arg{"b", "*float32"})
	s.p("MOVQ %s, DI", f["dst"])
	s.p("MOVQ %s, SI", f["a"])
	s.p("MOVQ %s, DX", f["b"])
	s.mask("CX")
	s.each([]string{"SI", "DI", "DX"}, func(masked bool) {
		s.load("(SI)", 0, masked)
		s.load("(DX)", 4, masked)
		s.silu(0, 1, 2, 3)
		s.op("VMULPS", vec(4), vec(2), vec(2))
		s.store(2, "(DI)", masked)
	})
	s.end()

	f = begin("add", arg{"x", "*float32"}, arg{"v", "*float32"})
	s.p("MOVQ %s, DI", f["x"])
	s.p("MOVQ %s, SI", f["v"])
	s.mask("CX")
	s.each([]string{"SI", "DI"}, func(masked bool) {
		s.load("(DI)", 0, masked)
		s.load("(SI)", 1, masked)
		s.op("VADDPS", vec(1), vec(0), vec(0))
		s.store(0, "(DI)", masked)
	})
	s.end()

	f = begin("addGated", arg{"x", "*float32"}, arg{"by", "*float32"}, arg{"v", "*float32"})
	s.p("MOVQ %s, DI", f["x"])
	s.p("MOVQ %s, DX", f["by"])
	s.p("MOVQ %s, SI", f["v"])
	s.mask("CX")
	s.each([]string{"SI", "DI", "DX"}, func(masked bool) {
		s.load("(DI)", 0, masked)
		s.load("(SI)", 1, masked)
		s.load("(DX)", 2, masked)
		s.op("VFMADD231PS", vec(1), vec(2), vec(0))
		s.store(0, "(DI)", masked)
	})
	s.end()

	f = begin("toward", arg{"z", "*float32"}, arg{"x", "*float32"}, arg{"share", "float32"}, arg{"limit", "float32"})
	s.p("MOVQ %s, DI", f["z"])
	s.p("MOVQ %s, SI", f["x"])
	s.broadcast(f["share"], 2)
	s.broadcast(f["limit"], 3)
	s.zero(4)
	s.op("VSUBPS", vec(3), vec(4), vec(4))
	s.mask("CX")
	s.each([]string{"SI", "DI"}, func(masked bool) {
		s.load("(DI)", 0, masked)
		s.load("(SI)", 1, masked)
		s.op("VMINPS", vec(3), vec(1), vec(1))
		s.op("VMAXPS", vec(4), vec(1), vec(1))
		s.op("VSUBPS", vec(0), vec(1), vec(1))
		s.op("VFMADD231PS", vec(2), vec(1), vec(0))
		s.store(0, "(DI)", masked)
	})
	s.end()

	f = begin("guide", arg{"x", "*float32"}, arg{"u", "*float32"}, arg{"by", "float32"})
	s.p("MOVQ %s, DI", f["x"])
	s.p("MOVQ %s, SI", f["u"])
	s.broadcast(f["by"], 2)
	s.mask("CX")
	s.each([]string{"SI", "DI"}, func(masked bool) {
		s.load("(DI)", 0, masked)
		s.load("(SI)", 1, masked)
		s.op("VSUBPS", vec(1), vec(0), vec(0))
		s.op("VFMADD231PS", vec(2), vec(0), vec(1))
		s.store(1, "(DI)", masked)
	})
	s.end()
}

// inverse makes 1/sqrt(X0/n + epsilon) of the sum in X0, in all lanes of v.
func (s *set) inverse(n string, v vec) {
	s.p("VDIVSS %s, X0, X0", n)
	s.p("VADDSS %s, X0, X0", s.operand(1e-6, 0))
	s.p("VSQRTSS X0, X0, X0")
	s.p("VMOVSS %s, X1", s.operand(1.0, 0))
	s.p("VDIVSS X0, X1, X0")
	s.broadcast("X0", v)
}

func (s *set) norm() {
	f := s.function("norm", arg{"n", "int"}, arg{"dst", "*float32"}, arg{"x", "*float32"}, arg{"gain", "*float32"}, arg{"shift", "*float32"}, arg{"count", "float32"})
	s.p("MOVQ %s, DX", f["n"])
	s.p("MOVQ %s, SI", f["x"])
	s.mask("DX")
	s.p("MOVQ DX, CX")
	s.zero(0)
	s.each([]string{"SI"}, func(masked bool) {
		s.load("(SI)", 1, masked)
		s.op("VFMADD231PS", vec(1), vec(1), vec(0))
	})
	s.reduce("VADD")
	s.inverse(f["count"], 0)
	s.p("MOVQ DX, CX")
	s.p("MOVQ %s, SI", f["x"])
	s.p("MOVQ %s, DI", f["dst"])
	s.p("MOVQ %s, R8", f["gain"])
	s.p("MOVQ %s, R9", f["shift"])
	s.each([]string{"SI", "DI", "R8", "R9"}, func(masked bool) {
		s.load("(SI)", 1, masked)
		s.load("(R8)", 2, masked)
		s.load("(R9)", 3, masked)
		s.op("VMULPS", vec(0), vec(1), vec(1))
		s.op("VFMADD213PS", vec(3), vec(2), vec(1))
		s.store(1, "(DI)", masked)
	})
	s.end()
}

// rope norms a vector of two halves and turns each pair of an element of the
// first half and one of the second.
func (s *set) rope() {
	f := s.function("rope", arg{"half", "int"}, arg{"dst", "*float32"}, arg{"x", "*float32"}, arg{"gain", "*float32"}, arg{"cos", "*float32"}, arg{"sin", "*float32"}, arg{"count", "float32"})
	s.p("MOVQ %s, DX", f["half"])
	s.p("MOVQ %s, SI", f["x"])
	s.mask("DX")
	s.zero(0)
	for range 2 {
		s.p("MOVQ DX, CX")
		s.p("MOVQ SI, DI")
		s.each([]string{"DI"}, func(masked bool) {
			s.load("(DI)", 1, masked)
			s.op("VFMADD231PS", vec(1), vec(1), vec(0))
		})
		s.p("LEAQ (SI)(DX*4), SI")
	}
	s.reduce("VADD")
	s.inverse(f["count"], 0)
	s.p("MOVQ DX, CX")
	s.p("SHLQ $2, DX")
	s.p("MOVQ %s, SI", f["x"])
	s.p("MOVQ %s, DI", f["dst"])
	s.p("MOVQ %s, R8", f["gain"])
	s.p("MOVQ %s, R9", f["cos"])
	s.p("MOVQ %s, R10", f["sin"])
	s.each([]string{"SI", "DI", "R8", "R9", "R10"}, func(masked bool) {
		s.load("(SI)", 1, masked)
		s.load("(SI)(DX*1)", 2, masked)
		s.load("(R8)", 3, masked)
		s.load("(R8)(DX*1)", 4, masked)
		s.op("VMULPS", vec(0), vec(1), vec(1))
		s.op("VMULPS", vec(0), vec(2), vec(2))
		s.op("VMULPS", vec(3), vec(1), vec(1))
		s.op("VMULPS", vec(4), vec(2), vec(2))
		s.load("(R9)", 3, masked)
		s.load("(R10)", 4, masked)
		s.op("VMULPS", vec(4), vec(2), vec(5)) // second half times sine
		s.op("VMULPS", vec(4), vec(1), vec(6))
		s.op("VFMSUB213PS", vec(5), vec(3), vec(1))
		s.op("VFMADD213PS", vec(6), vec(3), vec(2))
		s.store(1, "(DI)", masked)
		s.store(2, "(DI)(DX*1)", masked)
	})
	s.end()
}

// prelu scales what is below zero, by a slope per channel.
func (s *set) prelu() {
	f := s.function("prelu", arg{"rows", "int"}, arg{"n", "int"}, arg{"x", "*float32"}, arg{"slope", "*float32"})
	s.p("MOVQ %s, R8", f["rows"])
	s.p("MOVQ %s, DX", f["n"])
	s.p("MOVQ %s, SI", f["x"])
	s.mask("DX")
	s.zero(3)
	loop, done := s.label("rows"), s.label("end")
	s.at(loop)
	s.p("TESTQ R8, R8")
	s.p("JE %s", done)
	s.p("MOVQ DX, CX")
	s.p("MOVQ SI, DI")
	s.p("MOVQ %s, R9", f["slope"])
	s.each([]string{"DI", "R9"}, func(masked bool) {
		s.load("(DI)", 0, masked)
		s.load("(R9)", 1, masked)
		s.op("VMINPS", vec(3), vec(0), vec(2))
		s.op("VMAXPS", vec(3), vec(0), vec(0))
		s.op("VFMADD231PS", vec(1), vec(2), vec(0))
		s.store(0, "(DI)", masked)
	})
	s.p("LEAQ (SI)(DX*4), SI")
	s.p("DECQ R8")
	s.p("JMP %s", loop)
	s.at(done)
	s.end()
}
