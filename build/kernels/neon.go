package main

import (
	"fmt"
	"slices"
	"strings"
)

// scratch is the vector register for temporary values. NEON has 32 registers of
// four lanes, which make eight vectors; scratch is the last of them.
const scratch vec = 7

// tailBytes is the size in bytes of a stack buffer for one vector. NEON has no
// masks, so the last, incomplete vector of a row (its tail) is copied through
// this buffer. No memory beyond the row is read or written.
const tailBytes = 64

// neonRegisters maps the AMD64 registers of the description to ARM64 registers.
// The generated code also overwrites R6, R7, R14, R19 and R20; R15 points at
// the constants.
var neonRegisters = map[string]string{"AX": "R0", "BX": "R1", "CX": "R2", "DX": "R3", "SI": "R4", "DI": "R5"}

func neonRegister(name string) string {
	if r, ok := neonRegisters[name]; ok {
		return r
	}
	return name
}

// neonWords are the machine codes of float instructions on four lanes that Go's
// assembler does not support. The register numbers are added to them: the
// result at bit 0, the operands at bits 5 and 16.
var neonWords = map[string]int{
	"FADD":   0x4e20d400,
	"FSUB":   0x4ea0d400,
	"FMUL":   0x6e20dc00,
	"FDIV":   0x6e20fc00,
	"FMAXNM": 0x4e20c400,
	"FMINNM": 0x4ea0c400,
	"FNEG":   0x6ea0f800,
	"FRINTN": 0x4e218800,
	"FCVTNS": 0x4e21a800,
	"SCVTF":  0x4e21d800,
}

// word generates an instruction of neonWords with two operands: d = n op m, in
// the order of ARM's manual.
func (s *set) word(name string, d, n, m int) {
	s.p("WORD $0x%08x // %s V%d.4S, V%d.4S, V%d.4S", neonWords[name]|m<<16|n<<5|d, name, d, n, m)
}

// word1 generates an instruction of neonWords with one operand: d = op n.
func (s *set) word1(name string, d, n int) {
	s.p("WORD $0x%08x // %s V%d.4S, V%d.4S", neonWords[name]|n<<5|d, name, d, n)
}

// fmlaBy generates an instruction that adds n times one lane of m to d.
func (s *set) fmlaBy(d, n, m, lane int) {
	word := 0x4f801000 | (lane&1)<<21 | (lane>>1)<<11 | m<<16 | n<<5 | d
	s.p("WORD $0x%08x // FMLA V%d.4S, V%d.4S, V%d.S[%d]", word, d, n, m, lane)
}

// endNeon ends a function. If the function uses constants, code that loads
// their address is inserted at its beginning.
func (s *set) endNeon() {
	s.p("RET")
	whole := s.text.String()
	if body := whole[s.body:]; strings.Contains(body, "(R15)") {
		s.text.Reset()
		s.text.WriteString(whole[:s.body])
		s.p("MOVD $const%s<>(SB), R15", s.name)
		s.text.WriteString(body)
	}
}

// constNeon returns the assembly operand of a constant.
func (s *set) constNeon(c float64) string {
	i := slices.Index(s.consts, float32(c))
	if i < 0 {
		i = len(s.consts)
		s.consts = append(s.consts, float32(c))
	}
	return fmt.Sprintf("%d(R15)", i*64)
}

// four returns the four registers of a vector as an assembly operand.
func four(v vec) string {
	r := int(v) * 4
	return fmt.Sprintf("[V%d.S4, V%d.S4, V%d.S4, V%d.S4]", r, r+1, r+2, r+3)
}

// pointer returns a register that points at a memory operand such as "(SI)" or
// "(SI)(DX*1)".
func (s *set) pointer(memory string) string {
	base, index, two := strings.Cut(strings.Trim(memory, "()"), ")(")
	if !two {
		return neonRegister(base)
	}
	s.p("ADD %s, %s, R7", neonRegister(strings.TrimSuffix(index, "*1")), neonRegister(base))
	return "R7"
}

// source returns the registers of an operand: the four registers of a vector,
// or one register four times.
func (s *set) source(o any) [4]int {
	switch o := o.(type) {
	case vec:
		r := int(o) * 4
		return [4]int{r, r + 1, r + 2, r + 3}
	case float64:
		r := int(scratch)*4 + 3
		s.p("FMOVQ %s, F%d", s.constNeon(o), r)
		return [4]int{r, r, r, r}
	case string:
		s.p("VLD1 (%s), %s", s.pointer(o), four(scratch))
		return s.source(scratch)
	}
	panic("not an operand")
}

// opNeon generates the NEON code for an AVX operation. Minimum and maximum
// differ from AVX only in the sign of zero, which does not affect the result of
// any function here. If one operand is NaN, both return the other operand.
func (s *set) opNeon(name string, operands ...any) {
	last := operands[len(operands)-1]
	if to, ok := last.(string); ok {
		s.p("VST1 %s, (%s)", four(operands[0].(vec)), s.pointer(to))
		return
	}
	d := s.source(last)
	if name == "VMOVUPS" {
		switch from := operands[0].(type) {
		case string:
			s.p("VLD1 (%s), %s", s.pointer(from), four(last.(vec)))
		default:
			for q, r := range s.source(from) {
				s.p("VMOV V%d.B16, V%d.B16", r, d[q])
			}
		}
		return
	}
	between := s.source(scratch)
	if c, ok := operands[0].(float64); ok && name == "VFMADD213PS" { // each sum begins with the constant
		for _, r := range between {
			s.p("FMOVQ %s, F%d", s.constNeon(c), r)
		}
		operands[0] = scratch
	}
	a := s.source(operands[0])
	b := d
	if len(operands) == 3 {
		b = s.source(operands[1])
	}
	words := map[string]string{"VADDPS": "FADD", "VSUBPS": "FSUB", "VMULPS": "FMUL", "VDIVPS": "FDIV", "VMAXPS": "FMAXNM", "VMINPS": "FMINNM"}
	for q := range 4 {
		switch name {
		case "VADDPS", "VSUBPS", "VMULPS", "VDIVPS", "VMAXPS", "VMINPS":
			s.word(words[name], d[q], b[q], a[q])
		case "VXORPS":
			s.p("VEOR V%d.B16, V%d.B16, V%d.B16", a[q], b[q], d[q])
		case "VROUNDPS $8,":
			s.word1("FRINTN", d[q], a[q])
		case "VCVTPS2DQ":
			s.word1("FCVTNS", d[q], a[q])
		case "VPSLLD $23,":
			s.p("VSHL $23, V%d.S4, V%d.S4", a[q], d[q])
		case "VPADDD":
			s.p("VADD V%d.S4, V%d.S4, V%d.S4", a[q], b[q], d[q])
		case "VFMADD231PS":
			s.p("VFMLA V%d.S4, V%d.S4, V%d.S4", a[q], b[q], d[q])
		case "VFNMADD231PS":
			s.p("VFMLS V%d.S4, V%d.S4, V%d.S4", a[q], b[q], d[q])
		case "VFMADD213PS", "VFMSUB213PS": // result d = b·d ± a
			if name == "VFMSUB213PS" {
				s.word1("FNEG", between[q], a[q])
			} else if a[q] != between[q] {
				s.p("VMOV V%d.B16, V%d.B16", a[q], between[q])
			}
			s.p("VFMLA V%d.S4, V%d.S4, V%d.S4", d[q], b[q], between[q])
			s.p("VMOV V%d.B16, V%d.B16", between[q], d[q])
		default:
			panic("not an operation: " + name)
		}
	}
}

func (s *set) broadcastNeon(from string, v vec) {
	r := int(v) * 4
	lane := 0
	if from != "X0" {
		lane = r
		s.p("FMOVS %s, F%d", from, r)
	}
	for q := range 4 {
		s.p("VDUP V%d.S[0], V%d.S4", lane, r+q)
	}
}

// copyTail generates code that copies CX%16 numbers from the memory that one
// register points at to that of another. Both registers are advanced.
func (s *set) copyTail(from, to string) {
	for _, n := range []int{8, 4, 2, 1} {
		next := s.label("part")
		s.p("TBZ $%d, R2, %s", map[int]int{8: 3, 4: 2, 2: 1, 1: 0}[n], next)
		for range max(1, n/4) {
			switch n {
			case 1:
				s.p("MOVWU.P 4(%s), R19", from)
				s.p("MOVW.P R19, 4(%s)", to)
			case 2:
				s.p("MOVD.P 8(%s), R19", from)
				s.p("MOVD.P R19, 8(%s)", to)
			default:
				s.p("LDP.P 16(%s), (R19, R20)", from)
				s.p("STP.P (R19, R20), 16(%s)", to)
			}
		}
		s.at(next)
	}
}

// loadTail generates code that reads the last CX numbers of a row into v. The
// remaining lanes are copied from other.
func (s *set) loadTail(from string, v, other vec) {
	s.p("MOVD $tail-%d(SP), R6", tailBytes)
	s.p("VST1 %s, (R6)", four(other))
	s.p("MOVD %s, R14", s.pointer(from))
	s.copyTail("R14", "R6")
	s.p("MOVD $tail-%d(SP), R6", tailBytes)
	s.p("VLD1 (R6), %s", four(v))
}

// storeTail generates code that writes the last CX numbers of a row.
func (s *set) storeTail(v vec, to string) {
	s.p("MOVD $tail-%d(SP), R6", tailBytes)
	s.p("VST1 %s, (R6)", four(v))
	s.p("MOVD %s, R14", s.pointer(to))
	s.copyTail("R6", "R14")
}

func (s *set) clearNeon(v vec) {
	s.p("MOVD $mask%s<>+64(SB), R6", s.name)
	s.p("SUB R2<<2, R6")
	s.p("VLD1 (R6), %s", four(scratch))
	mask := s.source(scratch)
	for q, r := range s.source(v) {
		s.p("VAND V%d.B16, V%d.B16, V%d.B16", mask[q], r, r)
	}
}

// reduceNeon generates code that combines the lanes of vector 0 with op. The
// result is in all lanes of V0.
func (s *set) reduceNeon(op string) {
	word := map[string]string{"VADD": "FADD", "VMAX": "FMAXNM"}[op]
	s.word(word, 0, 0, 2)
	s.word(word, 1, 1, 3)
	s.word(word, 0, 0, 1)
	s.p("VEXT $8, V0.B16, V0.B16, V1.B16")
	s.word(word, 0, 0, 1)
	s.p("VREV64 V0.S4, V1.S4")
	s.word(word, 0, 0, 1)
}

// tileNeon generates the inner loop of the matrix product for NEON. It keeps 24
// registers of sums, four numbers of each of six rows of a, and half a row of
// b, which takes all 32 registers. Each sum is added up in the order of k, as
// in tile.
func (s *set) tileNeon(rows int) {
	const a0, b0 = 26, 24
	f := s.function(fmt.Sprintf("tile%dx", rows), tileArgs...)
	bases := []string{"R4", "R8", "R9", "R10", "R11", "R12"}[:rows]
	s.p("MOVD %s, R2", f["k"])
	s.p("MOVD %s, R4", f["a"])
	s.p("MOVD %s, R0", f["lda"])
	s.p("MOVD %s, R5", f["b"])
	s.p("MOVD %s, R13", f["ldb"])
	s.p("MOVD %s, R3", f["from"])
	s.p("MOVD %s, R1", f["ldf"])
	for _, r := range []string{"R0", "R13", "R1"} {
		s.p("LSL $2, %s", r)
	}
	for r := 1; r < rows; r++ {
		s.p("ADD R0, %s, %s", bases[r-1], bases[r])
	}
	for r := range rows {
		s.p("VLD1 (R3), %s", four(vec(r)))
		if r < rows-1 {
			s.p("ADD R1, R3")
		}
	}
	step := func(lane int) {
		for half := range 2 {
			s.p("FLDPQ %d(R5), (F%d, F%d)", half*32, b0, b0+1)
			for r := range rows {
				for q := range 2 {
					s.fmlaBy(r*4+half*2+q, b0+q, a0+r, lane)
				}
			}
		}
		s.p("ADD R13, R5")
	}
	loop, rest, done := s.label("loop"), s.label("rest"), s.label("done")
	s.at(loop)
	s.jumpIfLess("CX", 4, rest)
	for r, base := range bases {
		s.p("FMOVQ.P 16(%s), F%d", base, a0+r)
	}
	for lane := range 4 {
		step(lane)
	}
	s.add(-4, "CX")
	s.jump(loop)
	s.at(rest)
	s.jumpIfZero("CX", done)
	for r, base := range bases {
		s.p("FMOVS.P 4(%s), F%d", base, a0+r)
	}
	step(0)
	s.add(-1, "CX")
	s.jump(rest)
	s.at(done)
	s.p("MOVD %s, R3", f["c"])
	s.p("MOVD %s, R1", f["ldc"])
	s.p("LSL $2, R1")
	for r := range rows {
		s.p("VST1 %s, (R3)", four(vec(r)))
		if r < rows-1 {
			s.p("ADD R1, R3")
		}
	}
	s.end()
}

func (s *set) widenNeon() {
	f := s.function("widen", widenArgs...)
	s.move(f["k"], "CX")
	s.move(f["dst"], "DI")
	s.move(f["w"], "SI")
	s.move(f["scale"], "DX")
	s.load("(DX)", 1, false)
	loop, done := s.label("loop"), s.label("done")
	s.at(loop)
	s.jumpIfZero("CX", done)
	s.p("FMOVQ (R4), F8")
	s.p("WORD $0x%08x // SXTL V9.8H, V8.8B", 0x0f08a400|8<<5|9)
	s.p("WORD $0x%08x // SXTL2 V10.8H, V8.16B", 0x4f08a400|8<<5|10)
	for half := range 2 {
		s.p("WORD $0x%08x // SXTL V%d.4S, V%d.4H", 0x0f10a400|(9+half)<<5|half*2, half*2, 9+half)
		s.p("WORD $0x%08x // SXTL2 V%d.4S, V%d.8H", 0x4f10a400|(9+half)<<5|(half*2+1), half*2+1, 9+half)
	}
	for q := range 4 {
		s.word1("SCVTF", q, q)
	}
	s.op("VMULPS", vec(1), vec(0), vec(0))
	s.store(0, "(DI)", false)
	s.add(32, "SI")
	s.add(64, "DI")
	s.add(-1, "CX")
	s.jump(loop)
	s.at(done)
	s.end()
}

// peakNeon generates a function that runs n rounds of 24 fused operations on
// registers, to measure the speed of the machine.
func (s *set) peakNeon() {
	f := s.function("peak", arg{"n", "int"})
	s.move(f["n"], "CX")
	for v := range 7 {
		s.zero(vec(v))
	}
	loop := s.label("loop")
	s.at(loop)
	for r := range 24 {
		s.fmlaBy(r, 24, 25, 0)
	}
	s.add(-1, "CX")
	s.p("CBNZ R2, %s", loop)
	s.end()
}

// transposeNeon generates a function that transposes blocks of 4×4 numbers.
func (s *set) transposeNeon() {
	f := s.function("transpose4x", transposeArgs...)
	s.move(f["blocks"], "CX")
	s.move(f["dst"], "DI")
	s.move(f["ldd"], "R8")
	s.move(f["src"], "SI")
	s.move(f["lds"], "R9")
	s.bytes("R8")
	s.bytes("R9")
	loop, done := s.label("loop"), s.label("done")
	s.at(loop)
	s.jumpIfZero("CX", done)
	s.move("SI", "DX")
	for r := range 4 {
		s.p("FMOVQ (R3), F%d", r)
		s.p("ADD R9, R3")
	}
	for r := 0; r < 4; r += 2 { // exchange elements within pairs of rows
		s.p("VTRN1 V%d.S4, V%d.S4, V%d.S4", r+1, r, 4+r)
		s.p("VTRN2 V%d.S4, V%d.S4, V%d.S4", r+1, r, 5+r)
	}
	for r := range 2 { // exchange elements within groups of four rows
		s.p("VTRN1 V%d.D2, V%d.D2, V%d.D2", 6+r, 4+r, r)
		s.p("VTRN2 V%d.D2, V%d.D2, V%d.D2", 6+r, 4+r, 2+r)
	}
	for r := range 4 {
		s.p("FMOVQ F%d, (R5)", r)
		s.p("ADD R8, R5")
	}
	s.add(16, "SI") // the next four columns of the source become the next four rows of the result
	s.add(-1, "CX")
	s.jump(loop)
	s.at(done)
	s.end()
}

// relaxNeon generates a function that waits, in the same way as Go's own locks,
// because the instruction YIELD has no effect on most processors.
func (s *set) relaxNeon() {
	f := s.function("relax", arg{"n", "int"})
	s.move(f["n"], "CX")
	loop := s.label("loop")
	s.at(loop)
	s.p("ISB $15")
	s.add(-1, "CX")
	s.p("CMP $0, R2")
	s.p("BGT %s", loop)
	s.end()
}
