package media

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/bbrks/go-blurhash"
	"golang.org/x/image/webp"

	"atelier/internal/base/fault"
)

const (
	thumbSide    = 512
	thumbQuality = 82
	hashSide     = 32
	hashAcross   = 4
	hashDown     = 3
)

// picture examines a picture. The walk that cleans it finds out what it is.
func (l *Lab) picture(ctx context.Context, t Turn, facts Facts, s *source, decodes bool) (Facts, error) {
	walk := newCleaner(facts.Format, s.reader())
	if walk == nil {
		return facts, broken(facts.Type, "it is no "+facts.MimeType)
	}
	if _, err := io.Copy(io.Discard, walk); err != nil {
		return facts, err
	}
	o := walk.outline
	facts.Width = o.width
	facts.Height = o.height
	if err := l.checkPixels(Image, o.width, o.height); err != nil {
		return facts, err
	}
	if o.frames > l.limits.Frames {
		return facts, fault.New(fault.Invalid, fmt.Sprintf("The picture has more than %d frames.", l.limits.Frames)).With("limit_frames", l.limits.Frames)
	}
	if o.turn >= 5 {
		facts.Width = o.height
		facts.Height = o.width
	}
	if !o.decodes {
		return facts, nil
	}
	need, absurd := o.cost(s.size)
	if absurd != "" {
		return facts, broken(Image, absurd)
	}
	canvas := image.Rect(0, 0, o.width, o.height)
	var small *image.RGBA
	need += shrinkMemory(canvas, thumbSide)
	lane := laneOf(need, int64(o.width)*int64(o.height))
	if !decodes {
		if need > l.limits.Memory.Most(lane) {
			return facts, l.neverFits(Image, need, lane)
		}
		return facts, nil
	}
	err := l.within(ctx, t, Image, need, lane, func() error {
		img, err := decode(facts.Format, s)
		if err != nil {
			return spoilt(Image, err)
		}
		if !img.Bounds().In(canvas) || facts.MimeType != gifFormat.MimeType && img.Bounds() != canvas {
			return broken(Image, "another size than its header says")
		}
		small = shrink(img, canvas, thumbSide)
		return nil
	})
	if err != nil {
		return facts, err
	}
	err = facts.draw(upright(small, o.turn))
	return facts, err
}

// decode decodes a picture, the first frame of an animation. A decoder that
// panics has met a file which is damaged in a way that nobody thought of.
func decode(f Format, s *source) (img image.Image, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoder: %v", p)
		}
	}()
	r := bufio.NewReaderSize(s.reader(), inBlock)
	switch f.MimeType {
	case jpegFormat.MimeType:
		return jpeg.Decode(r)
	case pngFormat.MimeType:
		return png.Decode(r)
	case gifFormat.MimeType:
		return gif.Decode(r)
	case webpFormat.MimeType:
		return webp.Decode(r)
	}
	return nil, errors.New("no decoder for " + f.MimeType)
}

// draw fills in what is made from the small picture.
func (f *Facts) draw(small *image.RGBA) error {
	var err error
	tiny := shrink(small, small.Bounds(), hashSide)
	if f.Blurhash, err = blurhash.Encode(hashAcross, hashDown, tiny); err != nil {
		return fmt.Errorf("blurhash: %w", err)
	}
	var b bytes.Buffer
	if small.Opaque() {
		f.ThumbExt = "jpg"
		err = jpeg.Encode(&b, small, &jpeg.Options{Quality: thumbQuality})
	} else {
		f.ThumbExt = "png"
		err = png.Encode(&b, small)
	}
	if err != nil {
		return fmt.Errorf("thumbnail: %w", err)
	}
	f.Thumb = b.Bytes()
	return nil
}
