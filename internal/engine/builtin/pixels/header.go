package pixels

import (
	"context"
	"encoding/binary"
	"image/color"

	"atelier/internal/engine"
)

// Header has the dimensions of a picture, read from the file's header, and the
// memory needed to decode it.
type Header struct {
	Width, Height int   // in pixels, after applying the orientation
	Memory        int64 // largest number of bytes that Read needs, including its result
}

// Pixels returns the number of pixels of the picture.
func (m Header) Pixels() int64 { return int64(m.Width) * int64(m.Height) }

// ReadHeader reads the header of a picture file.
func ReadHeader(ctx context.Context, f engine.File) (Header, error) {
	s, err := openSource(ctx, f)
	if err != nil {
		return Header{}, err
	}
	defer func() { _ = s.reader.Close() }()
	m := Header{Width: s.width, Height: s.height, Memory: s.decodeMemory(f.Size)}
	if s.turn.swapsSides() {
		m.Width = s.height
		m.Height = s.width
	}
	return m, nil
}

// decodeMemory estimates the largest number of bytes that Read needs: for the
// decoder's result, a copy with straight alpha if one is made, and the upright
// copy. size is the size of the file.
func (s *source) decodeMemory(size int64) int64 {
	// Decoders allocate whole blocks of pixels.
	pixels := int64(s.width+32) * int64(s.height+32)
	const straight = 4
	each := int64(0)
	more := int64(0)
	switch s.format {
	case PNG:
		each = s.pngBytes()
	case JPEG:
		components := int64(3)
		switch s.model {
		case color.GrayModel:
			components = 1
		case color.CMYKModel:
			components = 4
			each += 4 // the decoder makes another copy of four bytes per pixel
		}
		each += components + straight
		if isProgressive(s.head) {
			each += 4 * components // the decoder stores coefficients of 32 bits
		}
	case GIF:
		each = 2 + straight // interlaced rows may have to be reordered
	case WebP:
		each = 2 + straight
		more = size
		if string(s.head[12:16]) != "VP8 " { // the file is lossless or has alpha
			// The decoder's Huffman trees can need far more memory than their
			// size in the file.
			each = each + 9
			more = size + min(300*size, 135<<20)
		}
	}
	if s.turn != upright {
		each += straight
	}
	return pixels*each + more
}

// pngBytes returns the number of bytes per pixel that decoding a PNG needs
// (PNG, third edition, section 11.2.1).
func (s *source) pngBytes() int64 {
	const palette = 3
	depth := s.head[24]
	colour := s.head[25]
	interlaced := s.head[28] != 0
	decoded := int64(4)
	straight := int64(0)
	switch {
	case depth == 16:
		decoded = 8
		straight = 4
	case colour == palette:
		decoded = 1
		straight = 4
	case colour&2 == 0: // the picture is grey and may have a transparent grey level
		straight = 4
	}
	if interlaced {
		decoded *= 2
	}
	return decoded + straight
}

// isProgressive reports whether a JPEG is progressive. It reads the segments up
// to the frame header.
func isProgressive(head []byte) bool {
	for b := head[min(2, len(head)):]; len(b) >= 4; {
		if b[0] != 0xff {
			return false
		}
		marker := b[1]
		if marker == 0xff { // fill byte before a marker
			b = b[1:]
			continue
		}
		if marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc {
			return marker == 0xc2
		}
		next := 2 + int(binary.BigEndian.Uint16(b[2:]))
		if next > len(b) {
			return true // the kind is unknown, so assume a progressive file, which needs more memory
		}
		b = b[next:]
	}
	return true
}
