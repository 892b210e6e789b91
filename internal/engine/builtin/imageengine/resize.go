package imageengine

import (
	"context"
	"fmt"
	"image"
	"math"
	"strconv"
	"strings"

	"golang.org/x/image/draw"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// previewFromPixels is the minimum number of pixels of a result for which a
// preview is sent.
const previewFromPixels = 4_000_000

// fitInside returns the largest width and height with the aspect ratio of w to
// h that fit into a box.
func fitInside(w, h, boxW, boxH int) (int, int) {
	f := min(float64(boxW)/float64(w), float64(boxH)/float64(h))
	side := func(n, box int) int { return min(max(int(math.Round(float64(n)*f)), 1), box) }
	return side(w, boxW), side(h, boxH)
}

// cropToShape returns the largest part of a picture with the aspect ratio of w
// to h. focusX and focusY give its position, from 0 (left or top) to 1.
func cropToShape(m *image.NRGBA, w, h, focusX, focusY float64) pictureArea {
	a := wholeArea(m)
	want := w / h
	if a.w/a.h > want {
		a.x = (a.w - a.h*want) * focusX
		a.w = a.h * want
	} else {
		a.y = (a.h - a.w/want) * focusY
		a.h = a.w / want
	}
	return a
}

// resizePicture changes the size of a picture. Its inputs are picture, size and
// fit.
func resizePicture(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.fileInput("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	w, h, err := t.sizeInput("size", 1024, 1024)
	fit := t.textInput("fit", "inside")
	if err != nil && fit != "inside" { // with "inside" the result may be smaller than the given size, so its size is checked below
		return pixels.Picture{}, err
	}
	in, err := pixels.ReadHeader(ctx, f)
	if err != nil {
		return pixels.Picture{}, err
	}
	switch fit {
	case "inside":
		w, h = fitInside(in.Width, in.Height, w, h)
		if err := checkSize(w, h); err != nil {
			return pixels.Picture{}, err
		}
	case "cover", "stretch":
	default:
		return pixels.Picture{}, engine.ErrMisconfigured
	}
	if err := t.reserveMemory(ctx, in.Memory+scaleMemory(draw.CatmullRom, in, w, h), int64(w)*int64(h)); err != nil {
		return pixels.Picture{}, err
	}
	p, err := pixels.Read(ctx, s.SubSpan(0, 0.3), f)
	if err != nil {
		return pixels.Picture{}, err
	}
	part := wholeArea(p.NRGBA)
	if fit == "cover" {
		part = cropToShape(p.NRGBA, float64(w), float64(h), 0.5, 0.5)
	}
	p.NRGBA, err = scaleArea(ctx, s.SubSpan(0.3, 1), draw.CatmullRom, p.NRGBA, part, w, h)
	return p, err
}

// cropPicture cuts out a part of a picture. Its inputs are picture, ratio,
// horizontal and vertical. No pixel is resampled, so the result of a PNG is
// lossless.
func cropPicture(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.fileInput("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	w, h, err := parseRatio(t.textInput("ratio", "1:1"))
	if err != nil {
		return pixels.Picture{}, err
	}
	if err := t.reserveInPlace(ctx, f, 0); err != nil {
		return pixels.Picture{}, err
	}
	p, err := pixels.Read(ctx, s, f)
	if err != nil {
		return pixels.Picture{}, err
	}
	a := cropToShape(p.NRGBA, w, h, t.NumberInput("horizontal", 0.5, 0, 1), t.NumberInput("vertical", 0.5, 0, 1))
	x := int(math.Round(a.x))
	y := int(math.Round(a.y))
	r := image.Rect(x, y, x+max(int(math.Round(a.w)), 1), y+max(int(math.Round(a.h)), 1))
	p.NRGBA = subPicture(p.NRGBA, r.Intersect(p.Rect))
	return p, nil
}

// subPicture returns a part of a picture, with its upper left corner at (0,0).
// The result uses the same pixel memory.
func subPicture(m *image.NRGBA, r image.Rectangle) *image.NRGBA {
	return &image.NRGBA{Pix: m.Pix[m.PixOffset(r.Min.X, r.Min.Y):], Stride: m.Stride, Rect: image.Rect(0, 0, r.Dx(), r.Dy())}
}

// parseRatio parses an aspect ratio such as 16:9.
func parseRatio(s string) (w, h float64, err error) {
	left, right, _ := strings.Cut(s, ":")
	w, errW := strconv.ParseFloat(left, 64)
	h, errH := strconv.ParseFloat(right, 64)
	if errW != nil || errH != nil || !(w > 0 && h > 0 && w/h < 1000 && h/w < 1000) {
		return 0, 0, engine.Fail(engine.Failed, fmt.Sprintf("%q is not an aspect ratio. Write it as 16:9.", s))
	}
	return w, h, nil
}

// upscalePicture enlarges a picture. Its inputs are picture, factor and
// sharpen.
func upscalePicture(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	f, err := t.fileInput("picture")
	if err != nil {
		return pixels.Picture{}, err
	}
	factor := t.NumberInput("factor", 2, 1, 8)
	in, err := pixels.ReadHeader(ctx, f)
	if err != nil {
		return pixels.Picture{}, err
	}
	w := int(math.Round(float64(in.Width) * factor))
	h := int(math.Round(float64(in.Height) * factor))
	if err := checkSize(w, h); err != nil {
		return pixels.Picture{}, err
	}
	working := scaleMemory(lanczos, in, w, h) + stripMemory(w, h)
	if err := t.reserveMemory(ctx, in.Memory+working, int64(w)*int64(h)); err != nil {
		return pixels.Picture{}, err
	}
	p, err := pixels.Read(ctx, s.SubSpan(0, 0.2), f)
	if err != nil {
		return pixels.Picture{}, err
	}
	if w*h >= previewFromPixels {
		if err := t.sendPreview(ctx, p.NRGBA); err != nil {
			return pixels.Picture{}, err
		}
	}
	if p.NRGBA, err = scaleArea(ctx, s.SubSpan(0.2, 0.6), lanczos, p.NRGBA, wholeArea(p.NRGBA), w, h); err != nil {
		return pixels.Picture{}, err
	}
	return p, sharpenPicture(ctx, s.SubSpan(0.6, 1), p.NRGBA, t.NumberInput("sharpen", 0.3, 0, 1), factor)
}
