package imageengine_test

import (
	stdimage "image"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"
)

// leaves is a heap of discs and boards of all sizes, some of them striped: what
// hides what in it makes edges as photographs have them.
func leaves(side int, seed uint64, stripes float64) *stdimage.NRGBA {
	const fine = 2
	r := rand.New(rand.NewPCG(seed, 1))
	n := side * fine
	heap := make([][3]float64, n*n)
	for range 700 {
		radius := float64(n) * 0.02 / math.Pow(1-0.98*r.Float64(), 0.75)
		cx, cy := r.Float64()*float64(n), r.Float64()*float64(n)
		sin, cos := math.Sincos(r.Float64() * math.Pi)
		tone := 40 + 170*r.Float64()
		colour := [3]float64{tone + 40*r.Float64() - 20, tone + 40*r.Float64() - 20, tone + 40*r.Float64() - 20}
		board, wave, height := r.IntN(2) == 0, 0.15+0.6*r.Float64(), stripes*30*r.Float64()
		for y := max(int(cy-1.5*radius), 0); y < min(int(cy+1.5*radius), n); y++ {
			for x := max(int(cx-1.5*radius), 0); x < min(int(cx+1.5*radius), n); x++ {
				u, v := (float64(x)-cx)*cos+(float64(y)-cy)*sin, (float64(y)-cy)*cos-(float64(x)-cx)*sin
				if board && (math.Abs(u) > radius || math.Abs(v) > 0.6*radius) || !board && math.Hypot(u, v) > radius {
					continue
				}
				for c := range 3 {
					heap[y*n+x][c] = colour[c] + height*math.Sin(u*wave)
				}
			}
		}
	}
	return made(side, side, func(x, y int) color.NRGBA {
		var sum [3]float64
		for k := range fine * fine {
			for c, v := range heap[(y*fine+k/fine)*n+x*fine+k%fine] {
				sum[c] += v / (fine * fine)
			}
		}
		level := func(v float64) uint8 { return uint8(min(max(v+0.5, 0), 255)) }
		return color.NRGBA{level(sum[0]), level(sum[1]), level(sum[2]), 255}
	})
}

// star has edges at all angles.
func star(side int) *stdimage.NRGBA {
	const fine = 4
	return made(side, side, func(x, y int) color.NRGBA {
		within := 0.0
		for k := range fine * fine {
			dx, dy := float64(x-side/2)+(float64(k%fine)+0.5)/fine, float64(y-side/2)+(float64(k/fine)+0.5)/fine
			if math.Sin(14*math.Atan2(dy, dx)) > 0 {
				within += 1.0 / (fine * fine)
			}
		}
		return grey(uint8(40 + 170*within))
	})
}

// smaller takes the mean of squares, of the stored values or of their light.
func smaller(m *stdimage.NRGBA, factor int, inLight bool) *stdimage.NRGBA {
	mean := func(x, y, c int) uint8 {
		var sum float64
		for k := range factor * factor {
			v := float64(m.Pix[(y*factor+k/factor)*m.Stride+4*(x*factor+k%factor)+c])
			if inLight {
				v = linear(v)
			}
			sum += v / float64(factor*factor)
		}
		if inLight {
			sum = 255 * (1.055*math.Pow(sum, 1/2.4) - 0.055)
		}
		return uint8(sum + 0.5)
	}
	return made(m.Rect.Dx()/factor, m.Rect.Dy()/factor, func(x, y int) color.NRGBA {
		return color.NRGBA{mean(x, y, 0), mean(x, y, 1), mean(x, y, 2), 255}
	})
}

// psnr is how near two pictures are, in decibels.
func psnr(a, b *stdimage.NRGBA) float64 {
	var sum float64
	for i := range a.Pix {
		d := float64(a.Pix[i]) - float64(b.Pix[i])
		sum += d * d
	}
	return 10 * math.Log10(255*255*float64(len(a.Pix)*3/4)/sum)
}

// ssim is how alike the structure of two pictures is, of 1 (Wang et al. 2004,
// over squares of 8 pixels).
func ssim(a, b *stdimage.NRGBA) float64 {
	const side, least, spread = 8, 6.5025, 58.5225
	var total, n float64
	for y := 0; y+side <= a.Rect.Dy(); y += side / 2 {
		for x := 0; x+side <= a.Rect.Dx(); x += side / 2 {
			var ma, mb, aa, bb, ab float64
			for k := range side * side {
				p, q := float64(a.NRGBAAt(x+k%side, y+k/side).G), float64(b.NRGBAAt(x+k%side, y+k/side).G)
				ma, mb, aa, bb, ab = ma+p/64, mb+q/64, aa+p*p/64, bb+q*q/64, ab+p*q/64
			}
			total += (2*ma*mb + least) * (2*(ab-ma*mb) + spread) / ((ma*ma + mb*mb + least) * (aa - ma*ma + bb - mb*mb + spread))
			n++
		}
	}
	return total / n
}

// TestPhotoUpscaleIsBetter makes pictures smaller and enlarges them again: the
// result has to be nearer to the original than that of upscale, which has to be
// nearer than large pixels.
func TestPhotoUpscaleIsBetter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		picture *stdimage.NRGBA
		gain    map[int]float64 // decibels over upscale, by factor
	}{
		{"edges", leaves(240, 1, 0), map[int]float64{2: 2, 4: 0.9}},
		{"edges at all angles", star(240), map[int]float64{2: 5, 4: 3}},
		{"texture", leaves(240, 2, 1), map[int]float64{2: 0.8, 4: 0.3}},
	} {
		for _, factor := range []int{2, 4} {
			for _, inLight := range []bool{false, true} {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					small := smaller(tt.picture, factor, inLight)
					large := made(240, 240, func(x, y int) color.NRGBA { return small.NRGBAAt(x/factor, y/factor) })
					v := values{"factor": int64(factor)}
					plain, photo := drawn(t, job("upscale", v, pngFile(small))), drawn(t, job("photo-upscale", v, pngFile(small)))
					p0, p1, p2 := psnr(tt.picture, large), psnr(tt.picture, plain), psnr(tt.picture, photo)
					s0, s1, s2 := ssim(tt.picture, large), ssim(tt.picture, plain), ssim(tt.picture, photo)
					t.Logf("x%d, in light %v: pixels %.2f dB %.4f, upscale %.2f dB %.4f, photo %.2f dB %.4f", factor, inLight, p0, s0, p1, s1, p2, s2)
					if p1 < p0 {
						t.Errorf("upscale is %.2f dB near, large pixels %.2f", p1, p0)
					}
					if p2 < p1+tt.gain[factor] || s2 < s1 {
						t.Errorf("photo = %.2f dB and %.4f, upscale = %.2f dB and %.4f; want %.2f dB more", p2, s2, p1, s1, tt.gain[factor])
					}
				})
			}
		}
	}
}

func TestPhotoUpscaleSizes(t *testing.T) {
	t.Parallel()
	for _, s := range [][2]int{{1, 1}, {1, 9}, {9, 1}, {2, 3}, {31, 17}} {
		for factor, want := range map[any]int{int64(2): 2, 3.0: 3, int64(4): 4, 2.2: 2, int64(99): 4, nil: 2} {
			m := drawn(t, job("photo-upscale", values{"factor": factor}, pngFile(photo(s[0], s[1]))))
			wantSize(t, m, s[0]*want, s[1]*want)
		}
	}
}

func TestPhotoUpscaleDrawsNoHalo(t *testing.T) {
	t.Parallel()
	edge := made(40, 40, func(x, y int) color.NRGBA {
		if 2*x+y < 60 {
			return color.NRGBA{80, 90, 100, 255}
		}
		return color.NRGBA{170, 160, 150, 255}
	})
	for _, factor := range []int64{2, 3, 4} {
		m := drawn(t, job("photo-upscale", values{"factor": factor, "detail": int64(1)}, pngFile(edge)))
		for i := 0; i < len(m.Pix); i += 4 {
			if r, b := m.Pix[i], m.Pix[i+2]; r < 80 || r > 170 || b < 100 || b > 150 {
				t.Fatalf("factor %d: %d and %d at an edge from 80 to 170 and 100 to 150", factor, r, b)
			}
		}
	}
}

func TestPhotoUpscaleKeepsWhatIsFlat(t *testing.T) {
	t.Parallel()
	for _, c := range []color.NRGBA{red, white, {0, 0, 0, 255}, {3, 3, 3, 255}, {10, 200, 90, 77}, nothing} {
		m := drawn(t, job("photo-upscale", values{"detail": int64(1)}, pngFile(flat(20, 20, c))))
		for i := 0; i < len(m.Pix); i += 4 {
			if got := (color.NRGBA{m.Pix[i], m.Pix[i+1], m.Pix[i+2], m.Pix[i+3]}); !near(got, c, 1) {
				t.Fatalf("%v became %v", c, got)
			}
		}
	}
}

// TestPhotoUpscaleHasNoSeams compares a picture with a part of it, whose tiles
// lie elsewhere.
func TestPhotoUpscaleHasNoSeams(t *testing.T) {
	t.Parallel()
	whole := photo(420, 230)
	lines := leaves(420, 3, 0)
	for y := range 230 {
		for x := range 420 {
			if (x/40+y/40)%3 == 0 {
				whole.SetNRGBA(x, y, lines.NRGBAAt(x, y))
			}
		}
	}
	const left, top, edge = 67, 31, 16
	part := made(300, 180, func(x, y int) color.NRGBA { return whole.NRGBAAt(left+x, top+y) })
	a, b := drawn(t, job("photo-upscale", nil, pngFile(whole))), drawn(t, job("photo-upscale", nil, pngFile(part)))
	for y := 2 * edge; y < 2*(180-edge); y++ {
		for x := 2 * edge; x < 2*(300-edge); x++ {
			if p, q := a.NRGBAAt(2*left+x, 2*top+y), b.NRGBAAt(x, y); p != q {
				t.Fatalf("pixel %d,%d = %v in the whole and %v in the part", x, y, p, q)
			}
		}
	}
}

func TestPhotoUpscaleDetail(t *testing.T) {
	t.Parallel()
	f := pngFile(smaller(leaves(160, 2, 1), 2, false))
	last := 0.0
	for _, detail := range []float64{0, 0.4, 1} {
		m := drawn(t, job("photo-upscale", values{"detail": detail}, f))
		var steps float64
		for y := range 160 {
			for x := range 159 {
				steps += math.Abs(float64(m.NRGBAAt(x, y).G) - float64(m.NRGBAAt(x+1, y).G))
			}
		}
		if steps <= last {
			t.Errorf("detail %v: steps = %.0f, want more than %.0f", detail, steps, last)
		}
		last = steps
	}
}

func TestPhotoUpscaleLeavesNoiseAlone(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	noise := pngFile(made(96, 96, func(int, int) color.NRGBA { return grey(uint8(128 + 4*r.NormFloat64())) }))
	soft, sharp := deviation(drawn(t, job("photo-upscale", values{"detail": int64(0)}, noise))), deviation(drawn(t, job("photo-upscale", values{"detail": int64(1)}, noise)))
	if sharp > 1.15*soft {
		t.Errorf("noise grew from %.2f to %.2f", soft, sharp)
	}
}

func TestPhotoUpscaleOfTransparency(t *testing.T) {
	t.Parallel()
	// Invisible green beside visible red.
	m := drawn(t, job("photo-upscale", values{"factor": int64(4), "detail": int64(1)}, pngFile(made(30, 30, func(x, _ int) color.NRGBA {
		if x < 15 {
			return color.NRGBA{0, 255, 0, 0}
		}
		return red
	}))))
	for x := range 120 {
		c := m.NRGBAAt(x, 60)
		if c.A > 30 && !near(color.NRGBA{c.R, c.G, c.B, 255}, red, 5) {
			t.Errorf("pixel %d = %v, want red", x, c)
		}
		if x < 50 && c.A > 0 || x > 70 && c.A < 255 {
			t.Errorf("pixel %d has alpha %d", x, c.A)
		}
	}
}
