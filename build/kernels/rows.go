package main

import "math"

func (s *set) softmax() {
	f := s.function("softmax", arg{"n", "int"}, arg{"x", "*float32"})
	s.move(f["n"], "DX")
	s.move(f["x"], "DI")
	s.mask("DX")

	s.move("DX", "CX")
	s.move("DI", "SI")
	s.op("VMOVUPS", -math.MaxFloat32, vec(0))
	// Two maxima are computed alternately, so that one instruction need not
	// wait for the previous one. The order does not affect a maximum.
	s.op("VMOVUPS", vec(0), vec(3))
	pairs, rest := s.label("pairs"), s.label("rest")
	s.at(pairs)
	s.jumpIfLess("CX", 32, rest)
	s.op("VMAXPS", "(SI)", vec(0), vec(0))
	s.add(64, "SI")
	s.op("VMAXPS", "(SI)", vec(3), vec(3))
	s.add(64, "SI")
	s.add(-32, "CX")
	s.jump(pairs)
	s.at(rest)
	s.op("VMAXPS", vec(3), vec(0), vec(0))
	s.each([]string{"SI"}, func(masked bool) {
		if masked {
			s.loadOver("(SI)", 1, 0)
		} else {
			s.load("(SI)", 1, false)
		}
		s.op("VMAXPS", vec(1), vec(0), vec(0))
	})
	s.reduce("VMAX")
	s.broadcast("X0", 4)

	s.move("DX", "CX")
	s.move("DI", "SI")
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
	s.reciprocal()
	s.broadcast("X0", 4)

	s.move("DX", "CX")
	s.move("DI", "SI")
	s.each([]string{"SI"}, func(masked bool) {
		s.load("(SI)", 1, masked)
		s.op("VMULPS", vec(4), vec(1), vec(1))
		s.store(1, "(SI)", masked)
	})
	s.end()
}

// elementwise generates the functions that process n numbers one by one,
// independently of each other.
func (s *set) elementwise() {
	n := arg{"n", "int"}
	begin := func(name string, args ...arg) map[string]string {
		f := s.function(name, append([]arg{n}, args...)...)
		s.move(f["n"], "CX")
		return f
	}

	f := begin("silu", arg{"x", "*float32"})
	s.move(f["x"], "SI")
	s.mask("CX")
	s.each([]string{"SI"}, func(masked bool) {
		s.load("(SI)", 0, masked)
		s.silu(0, 1, 2, 3)
		s.store(2, "(SI)", masked)
	})
	s.end()

	f = begin("gate", arg{"dst", "*float32"}, arg{"a", "*float32"}, arg{"b", "*float32"})
	s.move(f["dst"], "DI")
	s.move(f["a"], "SI")
	s.move(f["b"], "DX")
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
	s.move(f["x"], "DI")
	s.move(f["v"], "SI")
	s.mask("CX")
	s.each([]string{"SI", "DI"}, func(masked bool) {
		s.load("(DI)", 0, masked)
		s.load("(SI)", 1, masked)
		s.op("VADDPS", vec(1), vec(0), vec(0))
		s.store(0, "(DI)", masked)
	})
	s.end()

	f = begin("addGated", arg{"x", "*float32"}, arg{"by", "*float32"}, arg{"v", "*float32"})
	s.move(f["x"], "DI")
	s.move(f["by"], "DX")
	s.move(f["v"], "SI")
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
	s.move(f["z"], "DI")
	s.move(f["x"], "SI")
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
	s.move(f["x"], "DI")
	s.move(f["u"], "SI")
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

// reciprocal generates code that replaces X0 by 1/X0. X1 is overwritten.
func (s *set) reciprocal() {
	if s.neon {
		s.p("FMOVS $1.0, F1")
		s.p("FDIVS F0, F1, F0")
		return
	}
	s.p("VMOVSS %s, X1", s.operand(1.0, 0))
	s.p("VDIVSS X0, X1, X0")
}

// inverse generates code that sets all lanes of v to 1/sqrt(X0/n + epsilon),
// where X0 is a sum of squares.
func (s *set) inverse(n string, v vec) {
	if s.neon {
		s.p("FMOVS %s, F1", n)
		s.p("FDIVS F1, F0, F0")
		s.p("FMOVS %s, F1", s.constNeon(1e-6))
		s.p("FADDS F1, F0, F0")
		s.p("FSQRTS F0, F0")
	} else {
		s.p("VDIVSS %s, X0, X0", n)
		s.p("VADDSS %s, X0, X0", s.operand(1e-6, 0))
		s.p("VSQRTSS X0, X0, X0")
	}
	s.reciprocal()
	s.broadcast("X0", v)
}

func (s *set) norm() {
	f := s.function("norm", arg{"n", "int"}, arg{"dst", "*float32"}, arg{"x", "*float32"}, arg{"gain", "*float32"}, arg{"shift", "*float32"}, arg{"count", "float32"})
	s.move(f["n"], "DX")
	s.move(f["x"], "SI")
	s.mask("DX")
	s.move("DX", "CX")
	s.zero(0)
	s.each([]string{"SI"}, func(masked bool) {
		s.load("(SI)", 1, masked)
		s.op("VFMADD231PS", vec(1), vec(1), vec(0))
	})
	s.reduce("VADD")
	s.inverse(f["count"], 0)
	s.move("DX", "CX")
	s.move(f["x"], "SI")
	s.move(f["dst"], "DI")
	s.move(f["gain"], "R8")
	s.move(f["shift"], "R9")
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

// rope generates a function that normalizes a vector and rotates each pair of
// an element of its first half and the corresponding element of its second
// half.
func (s *set) rope() {
	f := s.function("rope", arg{"half", "int"}, arg{"dst", "*float32"}, arg{"x", "*float32"}, arg{"gain", "*float32"}, arg{"cos", "*float32"}, arg{"sin", "*float32"}, arg{"count", "float32"})
	s.move(f["half"], "DX")
	s.move(f["x"], "SI")
	s.mask("DX")
	s.zero(0)
	for range 2 {
		s.move("DX", "CX")
		s.move("SI", "DI")
		s.each([]string{"DI"}, func(masked bool) {
			s.load("(DI)", 1, masked)
			s.op("VFMADD231PS", vec(1), vec(1), vec(0))
		})
		s.pass("DX", "SI")
	}
	s.reduce("VADD")
	s.inverse(f["count"], 0)
	s.move("DX", "CX")
	s.bytes("DX")
	s.move(f["x"], "SI")
	s.move(f["dst"], "DI")
	s.move(f["gain"], "R8")
	s.move(f["cos"], "R9")
	s.move(f["sin"], "R10")
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
		s.op("VMULPS", vec(4), vec(2), vec(5)) // the element of the second half times the sine
		s.op("VMULPS", vec(4), vec(1), vec(6))
		s.op("VFMSUB213PS", vec(5), vec(3), vec(1))
		s.op("VFMADD213PS", vec(6), vec(3), vec(2))
		s.store(1, "(DI)", masked)
		s.store(2, "(DI)(DX*1)", masked)
	})
	s.end()
}

// prelu generates a function that multiplies negative numbers by the slope of
// their channel.
func (s *set) prelu() {
	f := s.function("prelu", arg{"rows", "int"}, arg{"n", "int"}, arg{"x", "*float32"}, arg{"slope", "*float32"})
	s.move(f["rows"], "R8")
	s.move(f["n"], "DX")
	s.move(f["x"], "SI")
	s.mask("DX")
	s.zero(3)
	loop, done := s.label("rows"), s.label("end")
	s.at(loop)
	s.jumpIfZero("R8", done)
	s.move("DX", "CX")
	s.move("SI", "DI")
	s.move(f["slope"], "R9")
	s.each([]string{"DI", "R9"}, func(masked bool) {
		s.load("(DI)", 0, masked)
		s.load("(R9)", 1, masked)
		s.op("VMINPS", vec(3), vec(0), vec(2))
		s.op("VMAXPS", vec(3), vec(0), vec(0))
		s.op("VFMADD231PS", vec(1), vec(2), vec(0))
		s.store(0, "(DI)", masked)
	})
	s.pass("DX", "SI")
	s.add(-1, "R8")
	s.jump(loop)
	s.at(done)
	s.end()
}
