package neural

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"math"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/engine/builtin/tiny/kernel"
)

// mixed is a picture of every colour, with parts that are transparent.
func mixed(r image.Rectangle) *image.NRGBA {
	p := image.NewNRGBA(r)
	for i := range p.Pix {
		p.Pix[i] = uint8(i*i/7 + i/90)
	}
	return p
}

// A part of a larger picture is enlarged like a picture of its own, whatever
// its sides and wherever it lies.
func TestPartsOfPicturesAreEnlarged(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	large := mixed(image.Rect(-7, 3, 160, 80))
	for _, r := range []image.Rectangle{
		image.Rect(0, 5, 1, 6), image.Rect(-7, 3, 160, 4), image.Rect(159, 3, 160, 80), image.Rect(-3, 70, 140, 72), image.Rect(100, 50, 160, 80),
	} {
		part := large.SubImage(r).(*image.NRGBA)
		own := image.NewNRGBA(image.Rect(0, 0, r.Dx(), r.Dy()))
		draw.Draw(own, own.Rect, part, r.Min, draw.Src)
		for y := range r.Dy() { // draw loses colours that are not seen
			copy(own.Pix[y*own.Stride:][:own.Stride], part.Pix[y*part.Stride:])
		}
		want, err := m.EnlargePicture(t.Context(), own, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.EnlargePicture(t.Context(), part, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Rect != image.Rect(0, 0, 4*r.Dx(), 4*r.Dy()) || !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("%v: %v, another picture than without the rest", r, got.Rect)
		}
	}
}

func TestPicturesWithoutPixelsOrWithTooManyAreRefused(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 1)
	for _, r := range []image.Rectangle{
		{}, image.Rect(0, 0, 0, 5), {Min: image.Pt(5, 5), Max: image.Pt(2, 2)}, image.Rect(0, 0, 1<<14, 1<<14),
		image.Rect(0, 0, math.MaxInt32, math.MaxInt32), image.Rect(0, 0, 1, math.MaxInt), {Min: image.Pt(math.MinInt, 0), Max: image.Pt(math.MaxInt, 1)},
	} {
		p, err := m.EnlargePicture(t.Context(), &image.NRGBA{Rect: r, Stride: 4 * r.Dx()}, nil)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Invalid || p != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
}

// Where somebody gives up there is no picture, and the model goes on.
func TestEnlargingStops(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	in := mixed(image.Rect(0, 0, 140, 9))
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	p, err := m.EnlargePicture(ctx, in, func(float64) {
		told++
		cancel()
	})
	if !errors.Is(err, context.Canceled) || p != nil || told != 1 {
		t.Errorf("after %d stages: %v", told, err)
	}
	if _, err := m.EnlargePicture(t.Context(), in, nil); err != nil {
		t.Error(err)
	}
}

// What a model did before leaves no trace in what it does.
func TestEarlierJobsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	drawn := func(o Order) []byte {
		t.Helper()
		p, err := m.DrawPicture(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p.Pix
	}
	enlarged := func(p *image.NRGBA) []byte {
		t.Helper()
		p, err := m.EnlargePicture(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p.Pix
	}
	orders := []Order{
		{Prompt: "cat", Steps: 1},
		{Prompt: "two red apples on a table in the snow under the moon", Steps: 1, Guidance: 100},
		{Steps: 2, Start: mixed(image.Rect(3, 4, 3+m.PictureSide(), 4+m.PictureSide())), Strength: .3},
	}
	pictures := []*image.NRGBA{mixed(image.Rect(0, 0, 33, 140)), mixed(image.Rect(0, 0, 1, 1))}
	var first [][]byte
	for round := range 2 {
		var all [][]byte
		for i := range orders {
			all = append(all, drawn(orders[(i+round)%len(orders)]))
			if round == 0 {
				enlarged(pictures[1])
			}
		}
		if round == 1 {
			all = [][]byte{all[2], all[0], all[1]}
		}
		for _, p := range pictures {
			all = append(all, enlarged(p))
		}
		for i := range first {
			if !bytes.Equal(all[i], first[i]) {
				t.Errorf("job %d has another result after other jobs", i)
			}
		}
		first = all
	}
}

// Orders at the ends of what is possible are drawn, those beyond refused.
func TestSmallestAndLargestOrders(t *testing.T) {
	t.Parallel()
	m := openModel(t, kernel.Best(), 2)
	start := mixed(image.Rect(0, 0, m.PictureSide(), m.PictureSide()))
	for _, strength := range []float32{0, math.SmallestNonzeroFloat32, 1e-7, 2e-6, 1e-3, 1} {
		told := 0
		p, err := m.DrawPicture(t.Context(), Order{Steps: 1, Start: start, Strength: strength}, func(done, of int, _ *image.NRGBA) error {
			told++
			if done != told || done > of {
				t.Errorf("strength %g: told %d of %d", strength, done, of)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		far := 0
		for i := range p.Pix {
			if i%4 != 3 && strength < 1e-4 {
				far = max(far, int(p.Pix[i])-int(start.Pix[i]), int(start.Pix[i])-int(p.Pix[i]))
			}
		}
		if told == 0 && far > 0 {
			t.Errorf("strength %g: no step, but %d levels", strength, far)
		}
	}
	for _, o := range []Order{
		{}, {Steps: -1}, {Steps: 17}, {Steps: 1, Guidance: float32(math.NaN())}, {Steps: 1, Guidance: float32(math.Inf(1))},
		{Steps: 1, Start: start, Strength: float32(math.NaN())}, {Steps: 1, Start: start, Strength: -1}, {Steps: 1, Start: new(image.NRGBA)},
	} {
		if _, err := m.DrawPicture(t.Context(), o, nil); err == nil {
			t.Errorf("%+v was taken", fmt.Sprint(o.Steps, o.Guidance, o.Strength))
		}
	}
}
