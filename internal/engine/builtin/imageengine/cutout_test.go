package imageengine_test

import (
	stdimage "image"
	"image/color"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"atelier/internal/engine"
)

// scene is a subject before a wall, and how much of each pixel is subject.
type scene struct {
	*stdimage.NRGBA
	alpha []float64
}

// stage sets a subject, a shape that a place lies in or not, before a wall.
// noise is how many levels pixels stray.
func stage(w, h int, wall func(u, v float64) [3]float64, subject func(x, y float64) ([3]float64, bool), noise float64) scene {
	const fine = 6
	r := rand.New(rand.NewPCG(7, 7))
	s := scene{stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h)), make([]float64, w*h)}
	for y := range h {
		for x := range w {
			back := wall(float64(x)/float64(w), float64(y)/float64(h))
			var front [3]float64
			var share float64
			for k := range fine * fine {
				c, in := subject(float64(x)+(float64(k%fine)+0.5)/fine, float64(y)+(float64(k/fine)+0.5)/fine)
				if in {
					share += 1.0 / (fine * fine)
					for i := range front {
						front[i] += c[i] / (fine * fine)
					}
				}
			}
			stray := noise * r.NormFloat64()
			p := s.Pix[y*s.Stride+4*x:][:4]
			for i := range front {
				p[i] = uint8(min(max(front[i]+(1-share)*back[i]+stray+0.5, 0), 255))
			}
			p[3] = 255
			s.alpha[y*w+x] = share
		}
	}
	return s
}

func wallOf(r, g, b float64) func(u, v float64) [3]float64 {
	return func(u, v float64) [3]float64 { return [3]float64{r, g, b} }
}

// figure is a head on shoulders with a lock of hair, in coloured stripes.
func figure(w, h int) func(x, y float64) ([3]float64, bool) {
	return func(x, y float64) ([3]float64, bool) {
		u, v := x/float64(w), y/float64(h)
		c := [3]float64{120 + 40*math.Sin(40*u), 60, 50 + 30*math.Cos(30*v)}
		head := math.Hypot(u-0.5, v-0.35) < 0.17
		body := math.Hypot((u-0.5)/0.3, (v-0.85)/0.32) < 1 && v < 0.9
		hair := math.Abs(u-0.68-0.04*math.Sin(30*v)) < 0.006 && v > 0.3 && v < 0.5
		return c, head || body || hair
	}
}

// off is the mean difference of alpha, over all pixels and over those of the
// edge alone.
func (s scene) off(m *stdimage.NRGBA) (all, edge float64) {
	n := 0.0
	for i, want := range s.alpha {
		d := math.Abs(float64(m.Pix[4*i+3])/255 - want)
		all += d / float64(len(s.alpha))
		if want > 0 && want < 1 {
			edge += d
			n++
		}
	}
	return all, edge / max(n, 1)
}

func TestCutOutFindsTheSubject(t *testing.T) {
	t.Parallel()
	const w, h = 200, 160
	gradient := func(u, v float64) [3]float64 { return [3]float64{200 + 40*u, 210 + 30*u - 20*v, 215 + 25*u - 30*v} }
	vignette := func(u, v float64) [3]float64 {
		d := (u-0.5)*(u-0.5) + (v-0.5)*(v-0.5)
		return [3]float64{70 - 70*d, 140 - 110*d, 90 - 70*d}
	}
	shadow := func(u, v float64) [3]float64 { // on the wall, beside the figure
		d := 45 * math.Exp(-((u-0.8)*(u-0.8)+(v-0.6)*(v-0.6))/0.02)
		return [3]float64{225 - d, 222 - d, 216 - d}
	}
	for name, s := range map[string]scene{
		"white":    stage(w, h, wallOf(255, 255, 255), figure(w, h), 0),
		"green":    stage(w, h, wallOf(40, 190, 70), figure(w, h), 0),
		"black":    stage(w, h, wallOf(8, 8, 10), figure(w, h), 0),
		"noise":    stage(w, h, wallOf(190, 195, 205), figure(w, h), 3),
		"gradient": stage(w, h, gradient, figure(w, h), 1.5),
		"vignette": stage(w, h, vignette, figure(w, h), 1.5),
		"shadow":   stage(w, h, shadow, figure(w, h), 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for soften, bound := range map[float64][2]float64{0: {0.003, 0.06}, 1: {0.007, 0.12}} {
				m := drawn(t, job("cutout", values{"soften": soften}, pngFile(s)))
				wantSize(t, m, w, h)
				all, edge := s.off(m)
				if all > bound[0] || edge > bound[1] {
					t.Errorf("soften %v: alpha is off by %.4f, at the edge by %.3f, want at most %v", soften, all, edge, bound)
				}
			}
		})
	}
}

// TestCutOutLeavesNoRim sets the subject on another background: it has to look
// as if it had always stood there.
func TestCutOutLeavesNoRim(t *testing.T) {
	t.Parallel()
	const w, h = 200, 160
	red := func(x, y float64) ([3]float64, bool) {
		return [3]float64{150, 20, 30}, math.Hypot(x-100, y-80) < 50.3
	}
	before, after := stage(w, h, wallOf(60, 220, 80), red, 0), stage(w, h, wallOf(0, 0, 0), red, 0)
	m := drawn(t, job("cutout", values{"background": "black", "soften": int64(0)}, pngFile(before)))
	var most, sum float64
	for i := 0; i < len(m.Pix); i += 4 {
		d := float64(m.Pix[i+1]) - float64(after.Pix[i+1]) // green of the wall
		most, sum = max(most, d), sum+math.Abs(d)/float64(w*h)
	}
	if most > 16 || sum > 0.05 {
		t.Errorf("green left = %.0f at most, %.3f in the mean", most, sum)
	}
	for i := 3; i < len(m.Pix); i += 4 {
		if m.Pix[i] != 255 {
			t.Fatal("on a colour it is still transparent")
		}
	}
}

func TestCutOutBackgrounds(t *testing.T) {
	t.Parallel()
	s := stage(60, 60, wallOf(250, 250, 250), figure(60, 60), 0)
	for text, want := range map[string]color.NRGBA{
		"transparent": {}, "white": white, "black": {0, 0, 0, 255}, "#1d3557": {0x1d, 0x35, 0x57, 255}, "#f00": {255, 0, 0, 255},
	} {
		if got := drawn(t, job("cutout", values{"background": text}, pngFile(s))).NRGBAAt(2, 2); got != want {
			t.Errorf("%s: corner = %v, want %v", text, got, want)
		}
	}
	for _, bad := range []string{"whitish", "#12", "ffffff"} {
		if e := refusal(t, job("cutout", values{"background": bad}, pngFile(s))); !strings.Contains(e.Message, bad) {
			t.Errorf("%s: %v", bad, e)
		}
	}
}

// ringed is a ring, whose inside shows the wall.
func ringed(x, y float64) ([3]float64, bool) {
	d := math.Hypot(x-60, y-60)
	return [3]float64{30, 40, 120}, d < 45 && d > 25
}

func TestCutOutHoles(t *testing.T) {
	t.Parallel()
	s := stage(120, 120, wallOf(240, 238, 230), ringed, 1)
	for holes, want := range map[bool]uint8{true: 0, false: 255} {
		m := drawn(t, job("cutout", values{"holes": holes}, pngFile(s)))
		if got := m.NRGBAAt(60, 60).A; got != want {
			t.Errorf("holes %v: alpha of the middle = %d, want %d", holes, got, want)
		}
		if m.NRGBAAt(60, 25).A != 255 || m.NRGBAAt(3, 60).A != 0 {
			t.Errorf("holes %v: the ring or what is round it is wrong", holes)
		}
	}
}

func TestCutOutClearsDust(t *testing.T) {
	t.Parallel()
	s := stage(120, 120, wallOf(240, 238, 230), ringed, 0)
	s.SetNRGBA(5, 60, color.NRGBA{90, 90, 90, 255})
	if got := drawn(t, job("cutout", nil, pngFile(s))).NRGBAAt(5, 60).A; got > 0 {
		t.Errorf("a speck has alpha %d", got)
	}
}

func TestCutOutTolerance(t *testing.T) {
	t.Parallel()
	// A subject that is hardly another colour.
	pale := func(x, y float64) ([3]float64, bool) {
		return [3]float64{215, 215, 222}, math.Hypot(x-60, y-60) < 40
	}
	s := stage(120, 120, wallOf(240, 240, 240), pale, 0)
	if got := drawn(t, job("cutout", values{"tolerance": 0.05}, pngFile(s))).NRGBAAt(60, 60).A; got != 255 {
		t.Errorf("little tolerance: alpha = %d, want all", got)
	}
	if e := refusal(t, job("cutout", values{"tolerance": 0.9}, pngFile(s))); !strings.Contains(e.Message, "Nothing stands out") {
		t.Errorf("much tolerance: %v", e)
	}
}

func TestCutOutRefusesWhatIsNotPlain(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for name, m := range map[string]*stdimage.NRGBA{
		"a scene": made(90, 90, func(x, y int) color.NRGBA {
			switch {
			case y > 55:
				return green
			case x > 40:
				return red
			}
			return blue
		}),
		"gravel": made(90, 90, func(int, int) color.NRGBA { return grey(uint8(60 + r.IntN(140))) }),
		"stripes": made(90, 90, func(x, y int) color.NRGBA {
			if (x+y)/6%2 == 0 {
				return white
			}
			return blue
		}),
	} {
		t.Run(name, func(t *testing.T) {
			e := refusal(t, job("cutout", nil, pngFile(m)))
			if e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, "not plain") {
				t.Errorf("failure = %v", e)
			}
		})
	}
	if e := refusal(t, job("cutout", nil, pngFile(flat(40, 40, red)))); !strings.Contains(e.Message, "Nothing stands out") {
		t.Errorf("one colour: %v", e)
	}
	if e := refusal(t, job("cutout", nil, pngFile(flat(40, 40, nothing)))); !strings.Contains(e.Message, "transparent") {
		t.Errorf("no colour: %v", e)
	}
}

// TestCutOutSubjectAtTheBorder has the figure stand on the lower edge.
func TestCutOutSubjectAtTheBorder(t *testing.T) {
	t.Parallel()
	bust := func(x, y float64) ([3]float64, bool) {
		return [3]float64{50, 60, 110}, math.Hypot(x-80, y-50) < 25 || math.Hypot((x-80)/45, (y-125)/55) < 1
	}
	s := stage(160, 120, wallOf(230, 225, 215), bust, 1)
	all, _ := s.off(drawn(t, job("cutout", nil, pngFile(s))))
	if all > 0.012 {
		t.Errorf("alpha is off by %.4f", all)
	}
}

func TestCutOutOfTinyPictures(t *testing.T) {
	t.Parallel()
	for _, s := range [][2]int{{1, 1}, {1, 50}, {50, 1}, {2, 2}, {5, 5}} {
		refusal(t, job("cutout", nil, pngFile(flat(s[0], s[1], red))))
	}
	dot := flat(30, 600, white)
	for y := 280; y < 320; y++ {
		for x := 8; x < 22; x++ {
			dot.SetNRGBA(x, y, red)
		}
	}
	if m := drawn(t, job("cutout", nil, pngFile(dot))); m.NRGBAAt(15, 300) != red || m.NRGBAAt(15, 100) != nothing {
		t.Error("a high picture is not cut out")
	}
}
