package main

import "fmt"

var tileArgs = []arg{
	{"k", "int"}, {"a", "*float32"}, {"lda", "int"}, {"b", "*float32"}, {"ldb", "int"},
	{"c", "*float32"}, {"ldc", "int"}, {"from", "*float32"}, {"ldf", "int"},
}

// tile generates the inner loop of the matrix product: rows of c are rows of
// from plus rows of a times a panel of b. Each element is computed by one chain
// of fused operations in the order of k, so the division into tiles and blocks
// does not change the result.
func (s *set) tile(rows int) {
	f := s.function(fmt.Sprintf("tile%dx", rows), tileArgs...)
	reg, size, b0, t0 := "Z", 64, 28, 30
	if !s.wide {
		reg, size, b0, t0 = "Y", 32, 12, 14
	}
	s.p("MOVQ %s, CX", f["k"])
	s.p("MOVQ %s, SI", f["a"])
	s.p("MOVQ %s, R8", f["lda"])
	s.p("MOVQ %s, DI", f["b"])
	s.p("MOVQ %s, R13", f["ldb"])
	s.p("MOVQ %s, DX", f["from"])
	s.p("MOVQ %s, AX", f["ldf"])
	s.p("SHLQ $2, R8")
	s.p("SHLQ $2, R13")
	s.p("SHLQ $2, AX")
	s.p("LEAQ (R8)(R8*2), R12")
	s.p("LEAQ (R13)(R13*2), BX")
	bases := []string{"SI", "R9", "R10", "R11"}[:(rows+3)/4]
	for i := 1; i < len(bases); i++ {
		s.p("LEAQ (%s)(R8*4), %s", bases[i-1], bases[i])
	}
	for r := range rows {
		for h := range 2 {
			s.p("VMOVUPS %d(DX), %s%d", h*size, reg, r*2+h)
		}
		if r < rows-1 {
			s.p("ADDQ AX, DX")
		}
	}
	step := func(i int) {
		b := []string{"(DI)", "(DI)(R13*1)", "(DI)(R13*2)", "(DI)(BX*1)"}[i]
		for h := range 2 {
			s.p("VMOVUPS %d%s, %s%d", h*size, b, reg, b0+h)
		}
		for r := range rows {
			a := []string{"(%s)", "(%s)(R8*1)", "(%s)(R8*2)", "(%s)(R12*1)"}[r%4]
			t := t0 + r%2
			s.p("VBROADCASTSS %d"+a+", %s%d", i*4, bases[r/4], reg, t)
			for h := range 2 {
				s.p("VFMADD231PS %s%d, %s%d, %s%d", reg, b0+h, reg, t, reg, r*2+h)
			}
		}
	}
	on := func(n int) {
		for _, b := range bases {
			s.p("ADDQ $%d, %s", n*4, b)
		}
		if n == 4 {
			s.p("LEAQ (DI)(R13*4), DI")
		} else {
			s.p("ADDQ R13, DI")
		}
		s.p("SUBQ $%d, CX", n)
	}
	loop, rest, done := s.label("loop"), s.label("rest"), s.label("done")
	s.at(loop)
	s.p("CMPQ CX, $4")
	s.p("JLT %s", rest)
	for i := range 4 {
		step(i)
	}
	on(4)
	s.p("JMP %s", loop)
	s.at(rest)
	s.p("TESTQ CX, CX")
	s.p("JE %s", done)
	step(0)
	on(1)
	s.p("JMP %s", rest)
	s.at(done)
	s.p("MOVQ %s, DX", f["c"])
	s.p("MOVQ %s, AX", f["ldc"])
	s.p("SHLQ $2, AX")
	for r := range rows {
		for h := range 2 {
			s.p("VMOVUPS %s%d, %d(DX)", reg, r*2+h, h*size)
		}
		if r < rows-1 {
			s.p("ADDQ AX, DX")
		}
	}
	s.end()
}

var widenArgs = []arg{{"k", "int"}, {"dst", "*float32"}, {"w", "*byte"}, {"scale", "*float32"}}

// widen generates a function that converts k rows of int8 numbers to float32
// and multiplies each column by its scale. Rows are 32 bytes apart and have as
// many columns as a tile.
func (s *set) widen() {
	f := s.function("widen", widenArgs...)
	s.p("MOVQ %s, CX", f["k"])
	s.p("MOVQ %s, DI", f["dst"])
	s.p("MOVQ %s, SI", f["w"])
	s.p("MOVQ %s, DX", f["scale"])
	reg, size := "Z", 64
	if !s.wide {
		reg, size = "Y", 32
	}
	for h := range 2 {
		s.p("VMOVUPS %d(DX), %s%d", h*size, reg, 4+h)
	}
	loop, done := s.label("loop"), s.label("done")
	s.p("TESTQ CX, CX")
	s.p("JE %s", done)
	s.at(loop)
	for h := range 2 {
		s.p("VPMOVSXBD %d(SI), %s%d", h*size/4, reg, h)
	}
	for h := range 2 {
		s.p("VCVTDQ2PS %s%d, %s%d", reg, h, reg, h)
	}
	for h := range 2 {
		s.p("VMULPS %s%d, %s%d, %s%d", reg, 4+h, reg, h, reg, h)
	}
	for h := range 2 {
		s.p("VMOVUPS %s%d, %d(DI)", reg, h, h*size)
	}
	s.p("ADDQ $32, SI")
	s.p("ADDQ $%d, DI", 2*size)
	s.p("DECQ CX")
	s.p("JNE %s", loop)
	s.at(done)
	s.end()
}

// peak generates a function that runs n rounds of fused operations on
// registers, 24 with AVX-512 and 12 with AVX2, to measure the speed of the
// machine.
func (s *set) peak() {
	f := s.function("peak", arg{"n", "int"})
	reg, regs := "Z", 24
	if !s.wide {
		reg, regs = "Y", 12
	}
	s.p("MOVQ %s, CX", f["n"])
	for r := range (regs + 2) / s.halves() {
		s.zero(vec(r))
	}
	loop := s.label("loop")
	s.at(loop)
	for r := range regs {
		s.p("VFMADD231PS %s%d, %s%d, %s%d", reg, regs, reg, regs+1, reg, r)
	}
	s.p("DECQ CX")
	s.p("JNE %s", loop)
	s.end()
}

var transposeArgs = []arg{{"blocks", "int"}, {"dst", "*float32"}, {"ldd", "int"}, {"src", "*float32"}, {"lds", "int"}}

// transpose generates a function that transposes blocks of 8×8 numbers. Both
// AVX kernels use it.
func (s *set) transpose() {
	f := s.function("transpose8x", transposeArgs...)
	s.p("MOVQ %s, CX", f["blocks"])
	s.p("MOVQ %s, DI", f["dst"])
	s.p("MOVQ %s, R8", f["ldd"])
	s.p("MOVQ %s, SI", f["src"])
	s.p("MOVQ %s, R9", f["lds"])
	s.p("SHLQ $2, R8")
	s.p("SHLQ $2, R9")
	loop, done := s.label("loop"), s.label("done")
	s.at(loop)
	s.p("TESTQ CX, CX")
	s.p("JE %s", done)
	s.p("MOVQ SI, DX")
	for r := range 8 {
		s.p("VMOVUPS (DX), Y%d", r)
		s.p("ADDQ R9, DX")
	}
	for r := 0; r < 8; r += 2 { // interleave pairs of rows
		s.p("VUNPCKLPS Y%d, Y%d, Y%d", r+1, r, 8+r)
		s.p("VUNPCKHPS Y%d, Y%d, Y%d", r+1, r, 9+r)
	}
	for q := 0; q < 8; q += 4 { // interleave groups of four rows
		s.p("VUNPCKLPD Y%d, Y%d, Y%d", 10+q, 8+q, q)
		s.p("VUNPCKHPD Y%d, Y%d, Y%d", 10+q, 8+q, q+1)
		s.p("VUNPCKLPD Y%d, Y%d, Y%d", 11+q, 9+q, q+2)
		s.p("VUNPCKHPD Y%d, Y%d, Y%d", 11+q, 9+q, q+3)
	}
	s.p("MOVQ DI, DX")
	for r := range 4 {
		s.p("VPERM2F128 $0x20, Y%d, Y%d, Y%d", r+4, r, 8+r)
		s.p("VPERM2F128 $0x31, Y%d, Y%d, Y%d", r+4, r, 12+r)
	}
	for r := range 8 {
		s.p("VMOVUPS Y%d, (DX)", 8+r)
		s.p("ADDQ R8, DX")
	}
	s.p("ADDQ $32, SI") // the next eight columns of the source become the next eight rows of the result
	s.p("LEAQ (DI)(R8*8), DI")
	s.p("DECQ CX")
	s.p("JMP %s", loop)
	s.at(done)
	s.end()
}

// relax generates a function that waits without slowing down the other hardware
// thread of the core.
func (s *set) relax() {
	f := s.function("relax", arg{"n", "int"})
	s.p("MOVQ %s, CX", f["n"])
	loop := s.label("loop")
	s.at(loop)
	s.p("PAUSE")
	s.p("DECQ CX")
	s.p("JGT %s", loop)
	s.p("RET")
}
