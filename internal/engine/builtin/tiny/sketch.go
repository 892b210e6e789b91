package tiny

import (
	"context"
	"image"

	"golang.org/x/image/draw"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
	"atelier/internal/engine/builtin/tiny/neural"
)

// What the engine can do, where a manifest allows more.
const (
	mostSteps    = 16
	mostGuidance = 10
	enlarged     = 4 // how many times as wide and as high the upscaler makes a picture
)

const previewQuality = 80

// sketch draws what the prompt says, from noise or from a picture.
func sketch(ctx context.Context, t *task, s engine.Span, i int) (*image.NRGBA, string, error) {
	large, err := t.large()
	if err != nil {
		return nil, "", err
	}
	prompt, _ := t.Values["prompt"].(string)
	caption, read := t.caption(prompt)
	order := neural.Order{
		Prompt: caption, Seed: uint64(t.SeedOf(i)),
		Steps:    int(t.NumberInput("steps", float64(t.model.Steps()), 1, mostSteps)),
		Guidance: float32(t.NumberInput("guidance", 1, 1, mostGuidance)),
	}
	if t.operation == "sketch-from-picture" {
		if t.start == nil {
			if t.start, err = t.begin(ctx); err != nil {
				return nil, "", err
			}
		}
		order.Start = t.start
		order.Strength = float32(t.NumberInput("strength", 0.9, 0.01, 1))
	}
	drawing := s
	rest := engine.Span{}
	if large {
		drawing = s.SubSpan(0, 0.75)
		rest = s.SubSpan(0.75, 1)
	}
	t.watch.begin()
	m, err := t.model.Draw(ctx, order, func(done, of int, soFar *image.NRGBA) error {
		if done == 1 {
			t.watch.end("first_step") // and reading the prompt
		} else {
			t.watch.end("step")
		}
		drawing.ReportProgress(float64(done) / float64(of))
		if done < of {
			t.preview(ctx, soFar)
			t.watch.begin()
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, "", err
	}
	if large {
		if m, err = t.enlarge(ctx, m, rest); err != nil {
			return nil, "", err
		}
	}
	return m, t.note(prompt, read), nil
}

// large tells whether the result goes through the upscaler.
func (t *task) large() (bool, error) {
	m, ok := t.Values["size"].(map[string]any)
	if !ok {
		return true, nil
	}
	side := func(name string) int { return int(engine.Job{Values: m}.NumberInput(name, 0, 0, 1e6)) }
	switch w, h := side("width"), side("height"); {
	case w == h && w == t.model.Side():
		return false, nil
	case w == h && w == enlarged*t.model.Side():
		return true, nil
	}
	return false, engine.ErrMisconfigured
}

// preview shows what the picture may become. One that cannot be shown is no
// loss.
func (t *task) preview(ctx context.Context, m *image.NRGBA) {
	if b, err := pixels.EncodeJPEG(ctx, m, previewQuality); err == nil {
		t.out.Preview(b.Bytes())
	}
}

func (t *task) enlarge(ctx context.Context, m *image.NRGBA, s engine.Span) (*image.NRGBA, error) {
	t.watch.begin()
	large, err := t.model.Enlarge(ctx, m, s.ReportProgress)
	if err != nil {
		return nil, err
	}
	t.watch.end("upscale")
	return large, nil
}

// begin reads the picture that a sketch starts from and fits it into the
// network's square, on white.
func (t *task) begin(ctx context.Context) (*image.NRGBA, error) {
	f, err := picture(t.Job)
	if err != nil {
		return nil, err
	}
	t.watch.begin()
	p, err := pixels.Read(ctx, engine.Span{}, f)
	if err != nil {
		return nil, err
	}
	m, err := fit(ctx, p.NRGBA, t.model.Side())
	t.watch.end("read")
	return m, err
}

// fit gives a picture as large as a square allows, in its middle, on white. Large
// pictures are averaged down first, row by row, so that ctx can end it.
func fit(ctx context.Context, m *image.NRGBA, side int) (*image.NRGBA, error) {
	small, err := shrunk(ctx, m, max(m.Rect.Dx(), m.Rect.Dy())/(2*side))
	if err != nil {
		return nil, err
	}
	w := m.Rect.Dx()
	h := m.Rect.Dy()
	if w > h {
		w, h = side, max(h*side/w, 1)
	} else {
		w = max(w*side/h, 1)
		h = side
	}
	square := image.NewRGBA(image.Rect(0, 0, side, side))
	draw.Draw(square, square.Rect, image.White, image.Point{}, draw.Src)
	at := image.Pt((side-w)/2, (side-h)/2)
	draw.CatmullRom.Scale(square, image.Rect(at.X, at.Y, at.X+w, at.Y+h), pixels.AsRGBA(small), small.Rect, draw.Src, nil)
	return &image.NRGBA{Pix: square.Pix, Stride: square.Stride, Rect: square.Rect}, nil
}

// shrunk lays a picture on white, and makes blocks of n by n pixels one where n
// is more than 1.
func shrunk(ctx context.Context, m *image.NRGBA, n int) (*image.NRGBA, error) {
	n = max(n, 1)
	w := m.Rect.Dx()
	h := m.Rect.Dy()
	small := image.NewNRGBA(image.Rect(0, 0, (w+n-1)/n, (h+n-1)/n))
	err := pixels.EachRow(ctx, engine.Span{}, small.Rect.Dy(), func(y int) {
		for x := range small.Rect.Dx() {
			var sum [3]float32
			count := float32(0)
			for v := y * n; v < min((y+1)*n, h); v++ {
				for u := x * n; u < min((x+1)*n, w); u++ {
					p := m.Pix[v*m.Stride+4*u:]
					a := float32(p[3]) / 255
					for c := range sum {
						sum[c] += float32(a*float32(p[c])) + float32(255*(1-a)) // rounded, not fused, on all processors
					}
					count++
				}
			}
			to := small.Pix[y*small.Stride+4*x:]
			for c := range sum {
				to[c] = pixels.ClampByte(sum[c] / count)
			}
			to[3] = 255
		}
	})
	return small, err
}
