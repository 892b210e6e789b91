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

// analyzePicture determines the properties of a picture with the parser that
// Clean also uses. If decodes is true, it also makes a thumbnail.
func (l *Analyzer) analyzePicture(ctx context.Context, t DecodeRequest, facts Facts, s *source, decodes bool) (Facts, error) {
	walk := newCleaner(facts.Format, s.newReader())
	if walk == nil {
		return facts, damagedError(facts.Type, "the content does not match the media type "+facts.MimeType)
	}
	if _, err := io.Copy(io.Discard, walk); err != nil {
		return facts, err
	}

	o := walk.pictureInfo
	facts.Width = o.width
	facts.Height = o.height
	if err := l.checkPixels(Image, o.width, o.height); err != nil {
		return facts, err
	}
	if o.frames > l.limits.Frames {
		return facts, fault.New(fault.Invalid, fmt.Sprintf("The picture has more than %d frames.", l.limits.Frames)).With("limit_frames", l.limits.Frames)
	}
	if o.orientation >= 5 {
		facts.Width = o.height
		facts.Height = o.width
	}
	if !o.canDecode {
		return facts, nil
	}

	need, absurd := o.decodeCost(s.size)
	if absurd != "" {
		return facts, damagedError(Image, absurd)
	}

	canvas := image.Rect(0, 0, o.width, o.height)
	var small *image.RGBA
	need += shrinkMemory(canvas, thumbSide)
	lane := memoryLane(need, int64(o.width)*int64(o.height))
	if !decodes {
		if need > l.limits.Memory.MaxBytes(lane) {
			return facts, l.memoryError(Image, need, lane)
		}
		return facts, nil
	}

	err := l.runWithMemory(ctx, t, Image, need, lane, func() error {
		img, err := decodePicture(facts.Format, s)
		if err != nil {
			return wrapDamaged(Image, err)
		}
		if !img.Bounds().In(canvas) || facts.MimeType != gifFormat.MimeType && img.Bounds() != canvas {
			return damagedError(Image, "the decoded size differs from the header")
		}

		small = shrinkPicture(img, canvas, thumbSide)
		return nil
	})
	if err != nil {
		return facts, err
	}

	err = facts.addThumbnail(applyOrientation(small, o.orientation))
	return facts, err
}

// decodePicture decodes a picture, or the first frame of an animation. A panic
// of the decoder is returned as an error, because it means that the file is
// damaged in a way that the decoder does not check.
func decodePicture(f Format, s *source) (img image.Image, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoder panic: %v", p)
		}
	}()

	r := bufio.NewReaderSize(s.newReader(), inBlock)
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
	return nil, errors.New("there is no decoder for " + f.MimeType)
}

// addThumbnail sets the blurhash and the thumbnail file from a picture that is
// already scaled down.
func (f *Facts) addThumbnail(small *image.RGBA) error {
	var err error
	tiny := shrinkPicture(small, small.Bounds(), hashSide)
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
