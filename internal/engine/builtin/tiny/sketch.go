package tiny

import (
	"context"
	"image"

	"golang.org/x/image/draw"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
	"atelier/internal/engine/builtin/tiny/neural"
)

// Limits of the engine, which apply even if a manifest allows more.
const (
	maxSteps      = 16
	maxGuidance   = 10
	upscaleFactor = 4 // factor by which the upscaler enlarges width and height
)

const previewQuality = 80

// drawSketch draws a picture for the prompt, starting from noise or from the
// input picture. It returns the picture and a note about the prompt.
func drawSketch(ctx context.Context, t *task, s engine.Span, i int) (*image.NRGBA, string, error) {
	large, err := t.isLarge()
	if err != nil {
		return nil, "", err
	}
	prompt, _ := t.Values["prompt"].(string)
	caption, read := t.buildCaption(prompt)
	order := neural.Order{
		Prompt: caption, Seed: uint64(t.SeedOf(i)),
		Steps:    int(t.NumberInput("steps", float64(t.model.DefaultSteps()), 1, maxSteps)),
		Guidance: float32(t.NumberInput("guidance", 1, 1, maxGuidance)),
	}
	if t.operation == "sketch-from-picture" {
		if t.start == nil {
			if t.start, err = t.readStart(ctx); err != nil {
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
	t.timer.start()
	m, err := t.model.DrawPicture(ctx, order, func(done, of int, soFar *image.NRGBA) error {
		if done == 1 {
			t.timer.endStage("first_step") // the first step includes encoding the prompt
		} else {
			t.timer.endStage("step")
		}
		drawing.ReportProgress(float64(done) / float64(of))
		if done < of {
			t.sendPreview(ctx, soFar)
			t.timer.start()
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, "", err
	}
	if large {
		if m, err = t.enlargeResult(ctx, m, rest); err != nil {
			return nil, "", err
		}
	}
	return m, t.promptNote(prompt, read), nil
}

// isLarge reports whether the requested size requires the upscaler.
func (t *task) isLarge() (bool, error) {
	m, ok := t.Values["size"].(map[string]any)
	if !ok {
		return true, nil
	}
	side := func(name string) int { return int(engine.Job{Values: m}.NumberInput(name, 0, 0, 1e6)) }
	w := side("width")
	h := side("height")
	switch {
	case w == h && w == t.model.PictureSide():
		return false, nil
	case w == h && w == upscaleFactor*t.model.PictureSide():
		return true, nil
	}
	return false, engine.ErrMisconfigured
}

// sendPreview sends an intermediate picture to the sink. Errors are ignored,
// because a missing preview does no harm.
func (t *task) sendPreview(ctx context.Context, m *image.NRGBA) {
	if b, err := pixels.EncodeJPEG(ctx, m, previewQuality); err == nil {
		t.out.Preview(b.Bytes())
	}
}

func (t *task) enlargeResult(ctx context.Context, m *image.NRGBA, s engine.Span) (*image.NRGBA, error) {
	t.timer.start()
	large, err := t.model.EnlargePicture(ctx, m, s.ReportProgress)
	if err != nil {
		return nil, err
	}
	t.timer.endStage("upscale")
	return large, nil
}

// readStart reads the input picture that a sketch starts from and fits it, on
// white, into the square that the network draws.
func (t *task) readStart(ctx context.Context) (*image.NRGBA, error) {
	f, err := pictureInput(t.Job)
	if err != nil {
		return nil, err
	}
	t.timer.start()
	p, err := pixels.Read(ctx, engine.Span{}, f)
	if err != nil {
		return nil, err
	}
	m, err := fitSquare(ctx, p.NRGBA, t.model.PictureSide())
	t.timer.endStage("read")
	return m, err
}

// fitSquare scales a picture to fit into a square and centres it on white.
// Large pictures are first reduced row by row, so that ctx can cancel the work.
func fitSquare(ctx context.Context, m *image.NRGBA, side int) (*image.NRGBA, error) {
	small, err := shrinkOnWhite(ctx, m, max(m.Rect.Dx(), m.Rect.Dy())/(2*side))
	if err != nil {
		return nil, err
	}
	w := m.Rect.Dx()
	h := m.Rect.Dy()
	if w > h {
		h = max(h*side/w, 1)
		w = side
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

// shrinkOnWhite puts a picture on a white background and reduces it by
// averaging blocks of n by n pixels.
func shrinkOnWhite(ctx context.Context, m *image.NRGBA, n int) (*image.NRGBA, error) {
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
						sum[c] += float32(a*float32(p[c])) + float32(255*(1-a)) // the products are rounded before the addition, so that all processors compute the same result
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
