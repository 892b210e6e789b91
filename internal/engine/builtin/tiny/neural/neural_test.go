package neural_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/engine/builtin/tiny/neural"
)

func openModel(t testing.TB, k kernel.Kernel, workers int) *neural.Model {
	t.Helper()
	m, err := neural.Open(k, workers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func draw(t testing.TB, m *neural.Model, o neural.Order) *image.NRGBA {
	t.Helper()
	p, err := m.DrawPicture(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// differ is how far two pictures are from each other, in levels of 8 bits: in
// the mean, and the share of numbers that are more than four apart.
func differ(a, b *image.NRGBA) (mean, share float64) {
	for i := range a.Pix {
		d := math.Abs(float64(a.Pix[i]) - float64(b.Pix[i]))
		mean += d
		if d > 4 {
			share++
		}
	}
	return mean / float64(len(a.Pix)), share / float64(len(a.Pix))
}

var penguin = neural.Order{Prompt: "penguin in the snow", Seed: 7, Steps: 2}

// The same order gives the same bits: again, in another model, on other
// numbers of threads, and with every kernel of assembly.
func TestSameOrderSamePicture(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 1)
	first := draw(t, m, penguin)
	if first.Rect.Dx() != m.PictureSide() || first.Rect.Dy() != m.PictureSide() || !first.Opaque() {
		t.Fatalf("the picture is %v, opaque: %v", first.Rect, first.Opaque())
	}
	if again := draw(t, m, penguin); !bytes.Equal(again.Pix, first.Pix) {
		t.Error("the second picture is another")
	}
	other := penguin
	other.Seed++
	if p := draw(t, m, other); bytes.Equal(p.Pix, first.Pix) {
		t.Error("another seed gives the same picture")
	}
	for _, k := range kernel.All() {
		if k.String() == "plain" {
			continue
		}
		for _, workers := range []int{2, 3} {
			if p := draw(t, openModel(t, k, workers), penguin); !bytes.Equal(p.Pix, first.Pix) {
				t.Errorf("%v with %d threads draws another picture than %v", k, workers, kernel.Best())
			}
		}
	}
}

// With vectors, of whatever kind, every machine gives these bits.
func TestEveryMachineWithVectorsDrawsTheSame(t *testing.T) {
	t.Parallel()
	guided := neural.Order{Prompt: "a red apple", Seed: 8, Steps: 1, Guidance: 2}
	for _, k := range kernel.All() {
		if k.String() == "plain" {
			continue
		}
		m := openModel(t, k, 2)
		first := draw(t, m, penguin)
		guided.Start, guided.Strength = first, .7
		small := image.NewNRGBA(image.Rect(0, 0, 24, 16))
		for i := range small.Pix {
			small.Pix[i] = uint8(i * i / 7)
		}
		large, err := m.EnlargePicture(t.Context(), small, nil)
		if err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]struct {
			picture *image.NRGBA
			want    string
		}{
			"from noise":     {first, "b98fc76b35ba6e0573a1de4281a170eb69ae66acb65f7b80bbb1fd3394abd2d6"},
			"from a picture": {draw(t, m, guided), "d80322e45f368ae3b179ec4646418d3553407e7e454df1e8bac94ea4958748b6"},
			"enlarged":       {large, "145255e10c1d52dc65610cc5b532e69c6ee1bb5b3ebd97262229618332256a8b"},
		} {
			if got := fmt.Sprintf("%x", sha256.Sum256(c.picture.Pix)); got != c.want {
				t.Errorf("%v, %s: the picture has the sum %s, want %s", k, what, got, c.want)
			}
		}
	}
}

// After a restart the same order gives the same bits as well.
func TestAnotherProcessDrawsTheSame(t *testing.T) {
	t.Parallel()
	o := penguin
	o.Steps = 1
	sum := fmt.Sprintf("%x", sha256.Sum256(draw(t, openModel(t, kernel.Best(), 2), o).Pix))
	if os.Getenv(child) != "" {
		fmt.Println("drawn " + sum)
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAnotherProcessDrawsTheSame$")
	c.Env = append(os.Environ(), child+"=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "drawn "+sum) {
		t.Errorf("%v: %s, want %s", err, out, sum)
	}
}

// child is set where the test has started itself.
const child = "ATELIER_TEST_CHILD"

// Without vectors sums are rounded elsewhere; the picture stays the same to
// the eye.
func TestPlainKernelDrawsTheSameThing(t *testing.T) {
	t.Parallel()
	if testing.Short() || kernel.Best().String() == "plain" {
		t.Skip("slow, or nothing to compare with")
	}
	all := kernel.All()
	plain := all[len(all)-1]
	o := penguin
	o.Steps = 1
	mean, share := differ(draw(t, openModel(t, plain, 2), o), draw(t, openModel(t, kernel.Best(), 1), o))
	t.Logf("%.5f levels in the mean, %.5f of all by more than four", mean, share)
	if mean > .05 || share > .001 {
		t.Errorf("%.5f levels in the mean, %.5f of all by more than four", mean, share)
	}
}

func TestStepsAreTold(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	var told []string
	var last *image.NRGBA
	o := penguin
	o.Steps = 3
	p, err := m.DrawPicture(t.Context(), o, func(done, of int, soFar *image.NRGBA) error {
		told = append(told, fmt.Sprintf("%d/%d", done, of))
		last = soFar
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(told), "[1/3 2/3 3/3]"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	if mean, share := differ(p, last); mean > .01 || share > 0 {
		t.Errorf("what was expected last is %.3f levels from the picture", mean)
	}
}

func TestDrawingStops(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	o := penguin
	o.Steps = 8
	ctx, cancel := context.WithCancel(t.Context())
	steps := 0
	_, err := m.DrawPicture(ctx, o, func(int, int, *image.NRGBA) error {
		steps++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || steps != 1 {
		t.Errorf("after %d steps: %v", steps, err)
	}
	enough := errors.New("enough")
	steps = 0
	_, err = m.DrawPicture(t.Context(), o, func(int, int, *image.NRGBA) error {
		steps++
		return enough
	})
	if !errors.Is(err, enough) || steps != 1 {
		t.Errorf("after %d steps: %v", steps, err)
	}
	if _, err := m.DrawPicture(ctx, o, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if _, err := m.EnlargePicture(ctx, image.NewNRGBA(image.Rect(0, 0, 4, 4)), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	m.Close()
	if _, err := m.DrawPicture(t.Context(), o, nil); err == nil {
		t.Error("a closed model draws")
	}
}

func TestGuidance(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	o := penguin
	plain := draw(t, m, o)
	o.Guidance = 1
	if p := draw(t, m, o); !bytes.Equal(p.Pix, plain.Pix) {
		t.Error("a guidance of 1 changes the picture")
	}
	o.Guidance = 3
	if mean, _ := differ(draw(t, m, o), plain); mean < 1 {
		t.Errorf("a guidance of 3 changes %.3f levels", mean)
	}
	// Away from the empty prompt there is nowhere to go for the empty prompt.
	empty := neural.Order{Seed: 7, Steps: 1}
	want := draw(t, m, empty)
	empty.Guidance = 4
	if mean, _ := differ(draw(t, m, empty), want); mean > .01 {
		t.Errorf("the empty prompt is guided by %.3f levels", mean)
	}
}

func TestStartingFromAPicture(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	start := draw(t, m, neural.Order{Prompt: "red apple", Seed: 3, Steps: 2})
	o := penguin
	noise := draw(t, m, o)
	o.Start = start
	o.Strength = 0
	if p := draw(t, m, o); !bytes.Equal(p.Pix, start.Pix) {
		mean, _ := differ(p, start)
		t.Errorf("a strength of 0 changes %.3f levels", mean)
	}
	o.Strength = 1
	if p := draw(t, m, o); !bytes.Equal(p.Pix, noise.Pix) {
		t.Error("a strength of 1 is not the same as from noise")
	}
	o.Strength = .5
	half := draw(t, m, o)
	toStart, _ := differ(half, start)
	toNoise, _ := differ(noise, start)
	if toStart == 0 || toStart >= toNoise {
		t.Errorf("half way is %.2f levels from the start, from noise %.2f", toStart, toNoise)
	}
}

func TestOrdersAreChecked(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 1)
	small := image.NewNRGBA(image.Rect(0, 0, 4, 4))
	fits := image.NewNRGBA(image.Rect(0, 0, m.PictureSide(), m.PictureSide()))
	for field, o := range map[string]neural.Order{
		"steps":    {Steps: 17},
		"guidance": {Steps: 1, Guidance: -1},
		"start":    {Steps: 1, Start: small},
		"strength": {Steps: 1, Start: fits, Strength: 1.5},
	} {
		_, err := m.DrawPicture(t.Context(), o, nil)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Invalid {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A picture with one colour on nothing keeps that colour up to its edge: what
// is transparent does not shine in.
func TestEnlargingKeepsEdgesClean(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	full, cut := image.NewNRGBA(image.Rect(0, 0, 30, 20)), image.NewNRGBA(image.Rect(0, 0, 30, 20))
	for y := range 20 {
		for x := range 30 {
			full.SetNRGBA(x, y, color.NRGBA{200, 120, 40, 255})
			if x >= 8 && x < 22 && y >= 5 && y < 15 {
				cut.SetNRGBA(x, y, color.NRGBA{200, 120, 40, 255})
			}
		}
	}
	var shares []float64
	whole, err := m.EnlargePicture(t.Context(), full, func(s float64) { shares = append(shares, s) })
	if err != nil {
		t.Fatal(err)
	}
	if whole.Rect != image.Rect(0, 0, 120, 80) || !whole.Opaque() || len(shares) == 0 || shares[len(shares)-1] != 1 {
		t.Errorf("%v, opaque: %v, told %v", whole.Rect, whole.Opaque(), shares)
	}
	part, err := m.EnlargePicture(t.Context(), cut, nil)
	if err != nil {
		t.Fatal(err)
	}
	for y := range 80 {
		for x := range 120 {
			a, b := whole.NRGBAAt(x, y), part.NRGBAAt(x, y)
			if a.R != b.R || a.G != b.G || a.B != b.B {
				t.Fatalf("the colour at %d, %d is %v, want %v", x, y, b, a)
			}
		}
	}
	if a := part.NRGBAAt(60, 40).A; a != 255 {
		t.Errorf("the middle has an alpha of %d", a)
	}
	if a := part.NRGBAAt(4, 4).A; a != 0 {
		t.Errorf("the corner has an alpha of %d", a)
	}
	if a, b := part.NRGBAAt(31, 40).A, part.NRGBAAt(88, 40).A; a != b || a == 0 || a == 255 {
		t.Errorf("the edges have an alpha of %d and %d", a, b)
	}
	if p, err := m.EnlargePicture(t.Context(), image.NewNRGBA(image.Rect(0, 0, 3, 1)), nil); err != nil || p.Rect.Dx() != 12 {
		t.Errorf("nothing but transparent: %v", err)
	}
}

func TestUnknownWords(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 1)
	if u, n := m.UnknownWords("a red cat with zzzunknown Hats"); len(u) != 1 || u[0] != "zzzunknown" || n != 6 {
		t.Errorf("unknown: %q of %d", u, n)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	t.Logf("%.1f MiB", float64(m.MemoryBytes())/(1<<20))
	if m.MemoryBytes() > 20<<20 {
		t.Errorf("the model works in %d bytes", m.MemoryBytes())
	}
}

// measure repeats work, and gives the time of the fastest round as well: what
// is left when nobody else uses the machine.
func measure(b *testing.B, work func()) {
	b.Helper()
	fastest := time.Duration(math.MaxInt64)
	for b.Loop() {
		began := time.Now()
		work()
		fastest = min(fastest, time.Since(began))
	}
	b.ReportMetric(float64(fastest.Microseconds())/1000, "fastest-ms")
}

// BenchmarkDraw gives the seconds of a picture.
func BenchmarkDraw(b *testing.B) {
	for _, k := range kernel.All() {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/%d", k, workers), func(b *testing.B) {
				m := openModel(b, k, workers)
				o := penguin
				o.Steps = m.DefaultSteps()
				measure(b, func() { draw(b, m, o) })
			})
		}
	}
}

// BenchmarkEnlarge gives the seconds from 128 to 512 pixels.
func BenchmarkEnlarge(b *testing.B) {
	for _, k := range kernel.All() {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/%d", k, workers), func(b *testing.B) {
				m := openModel(b, k, workers)
				p := image.NewNRGBA(image.Rect(0, 0, m.PictureSide(), m.PictureSide()))
				for i := range p.Pix {
					p.Pix[i] = uint8(i) | 0xff>>(8*uint(min(1, (i+1)%4)))
				}
				measure(b, func() {
					if _, err := m.EnlargePicture(b.Context(), p, nil); err != nil {
						b.Fatal(err)
					}
				})
			})
		}
	}
}
