package media

import (
	"encoding/binary"
	"fmt"
)

// gifParser is the parser of GIF files.
type gifParser struct {
	*cleaner
	largest int64 // number of pixels of the largest frame
}

func (g *gifParser) parseHeader() error {
	b, err := g.keepBytes(13)
	if err != nil {
		return err
	}
	if v := string(b[:6]); v != "GIF87a" && v != "GIF89a" {
		return damagedError(Image, "the GIF signature is missing")
	}

	g.width = int(binary.LittleEndian.Uint16(b[6:]))
	g.height = int(binary.LittleEndian.Uint16(b[8:]))
	if g.width == 0 || g.height == 0 {
		return damagedError(Image, "width or height is 0")
	}

	g.step = g.parseBlock
	return g.keepColourTable(b[10])
}

// keepColourTable copies the colour table to the output, if the bits in flags
// indicate that there is one.
func (g *gifParser) keepColourTable(flags byte) error {
	if flags&0x80 == 0 {
		return nil
	}
	_, err := g.keepBytes(3 << (flags&7 + 1))
	return err
}

func (g *gifParser) parseBlock() error {
	b, err := g.readByte()
	if err != nil {
		return err
	}

	switch b {
	case 0x2c:
		g.out = append(g.out, b)
		return g.parseFrame()
	case 0x21:
		return g.parseExtension()
	case 0x3b:
		if g.frames == 0 {
			return damagedError(Image, "the GIF has no frames")
		}

		g.out = append(g.out, b)
		g.canDecode = true
		g.decodeCost = g.decodeMemory
		g.step = g.expectEnd
		return nil
	}
	return damagedError(Image, fmt.Sprintf("the GIF has an unknown block %#x", b))
}

func (g *gifParser) parseFrame() error {
	b, err := g.keepBytes(9)
	if err != nil {
		return err
	}

	at := func(i int) int { return int(binary.LittleEndian.Uint16(b[i:])) }
	if at(0)+at(4) > g.width || at(2)+at(6) > g.height {
		return damagedError(Image, "a frame extends past the edges of the picture")
	}
	g.frames++
	g.largest = max(g.largest, int64(at(4))*int64(at(6)))
	if err := g.keepColourTable(b[8]); err != nil {
		return err
	}
	if _, err := g.keepBytes(1); err != nil { // the LZW minimum code size
		return err
	}

	g.step = g.keepSubBlock
	return nil
}

// keepSubBlock copies one sub-block of a frame to the output.
func (g *gifParser) keepSubBlock() error {
	b, err := g.keepBytes(1)
	if err != nil {
		return err
	}
	if b[0] == 0 {
		g.step = g.parseBlock
		return nil
	}

	_, err = g.keepBytes(int(b[0]))
	return err
}

// parseExtension keeps graphic control extensions and the loop count of
// animations, and drops all other extensions.
func (g *gifParser) parseExtension() error {
	label, err := g.readByte()
	if err != nil {
		return err
	}

	var first, loop string
	for i := 0; ; i++ {
		n, err := g.readByte()
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}

		b, err := g.readBytes(int(n))
		if err != nil {
			return err
		}
		if i == 0 {
			first = string(b)
		} else if n == 3 && b[0] == 1 {
			loop = string(b)
		}
	}

	switch {
	case label == 0xf9 && len(first) == 4:
		g.out = append(append(append(g.out, 0x21, 0xf9, 4), first...), 0)
	case label == 0xf9:
		return damagedError(Image, "a graphic control extension has the wrong length")
	case label == 0xff && (first == "NETSCAPE2.0" || first == "ANIMEXTS1.0") && loop != "":
		g.out = append(g.out, "\x21\xff\x0b"+first+"\x03"+loop+"\x00"...)
	}
	return nil
}

// decodeMemory returns the memory for decoding the first frame and for
// reordering its interlaced rows, in bytes.
func (g *gifParser) decodeMemory(int64) (int64, string) { return 2*g.largest + 1<<16, "" }
