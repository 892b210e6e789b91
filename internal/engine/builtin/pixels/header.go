package pixels

import (
	"context"
	"encoding/binary"
	"image/color"

	"atelier/internal/engine"
)

// Measure is what a picture's header says.
type Measure struct {
	Width, Height int   // as people see it
	Memory        int64 // bytes that Read takes at most, the picture that it gives included
}

// Pixels is how many the picture has.
func (m Measure) Pixels() int64 { return int64(m.Width) * int64(m.Height) }

// Look reads a picture's header.
func Look(ctx context.Context, f engine.File) (Measure, error) {
	s, err := open(ctx, f)
	if err != nil {
		return Measure{}, err
	}
	defer s.stored.Close()
	m := Measure{Width: s.width, Height: s.height, Memory: s.memory(f.Size)}
	if s.turn.swaps() {
		m.Width = s.height
		m.Height = s.width
	}
	return m, nil
}

// memory estimates what Read takes at most: what the decoder makes, the picture
// with straight alpha where that is another one, and the one that is upright.
func (s *source) memory(size int64) int64 {
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
			each += 4 // converted once more
		}
		each += components + straight
		if progressive(s.head) {
			each += 4 * components // a coefficient has 32 bits
		}
	case GIF:
		each = 2 + straight // rows may have to be brought into their order
	case WebP:
		each = 2 + straight
		more = size
		if string(s.head[12:16]) != "VP8 " { // lossless, or with alpha
			// The trees can take far more than their bytes in the file.
			each = each + 9
			more = size + min(300*size, 135<<20)
		}
	}
	if s.turn != upright {
		each += straight
	}
	return pixels*each + more
}

// pngBytes is how many bytes a pixel takes (PNG, third edition, section 11.2.1).
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
	case colour&2 == 0: // grey, which may have a transparent tone
		straight = 4
	}
	if interlaced {
		decoded *= 2
	}
	return decoded + straight
}

// progressive tells whether a JPEG comes in several passes, by the segments up
// to its frame header.
func progressive(head []byte) bool {
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
			return true // to be on the safe side
		}
		b = b[next:]
	}
	return true
}
