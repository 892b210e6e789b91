package pixels

import (
	"context"
	"encoding/binary"
	"image/color"

	"atelier/internal/engine"
)

// Header is the dimensions of a picture and the memory that it needs, by the file's header.
type Header struct {
	Width, Height int   // upright
	Memory        int64 // most bytes that Read needs, including its result
}

// Pixels returns the number of pixels.
func (m Header) Pixels() int64 { return int64(m.Width) * int64(m.Height) }

// ReadHeader reads a picture's header.
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

// decodeMemory estimates the most memory that Read needs: the decoder's result, the copy with
// straight alpha if one is made, and the upright copy.
func (s *source) decodeMemory(size int64) int64 {
	// Decoders work on whole blocks.
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
			each += 4 // one more conversion
		}
		each += components + straight
		if isProgressive(s.head) {
			each += 4 * components // 32 bits per coefficient
		}
	case GIF:
		each = 2 + straight // interlaced rows may have to be reordered
	case WebP:
		each = 2 + straight
		more = size
		if string(s.head[12:16]) != "VP8 " { // lossless, or with alpha
			// The Huffman trees can need far more memory than their size in the file.
			each = each + 9
			more = size + min(300*size, 135<<20)
		}
	}
	if s.turn != upright {
		each += straight
	}
	return pixels*each + more
}

// pngBytes returns the decoded bytes per pixel (PNG, third edition, section 11.2.1).
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
	case colour&2 == 0: // grey, possibly with a transparent tone
		straight = 4
	}
	if interlaced {
		decoded *= 2
	}
	return decoded + straight
}

// isProgressive reports whether a JPEG is progressive, by the segments up to its frame header.
func isProgressive(head []byte) bool {
	for b := head[min(2, len(head)):]; len(b) >= 4; {
		if b[0] != 0xff {
			return false
		}
		marker := b[1]
		if marker == 0xff { // fill
			b = b[1:]
			continue
		}
		if marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc {
			return marker == 0xc2
		}
		next := 2 + int(binary.BigEndian.Uint16(b[2:]))
		if next > len(b) {
			return true // unknown: assume the larger need
		}
		b = b[next:]
	}
	return true
}
