package media

import (
	"encoding/binary"
	"fmt"
)

// gifParser goes through a GIF file.
type gifParser struct {
	*cleaner
	largest int64 // pixels of the largest frame
}

func (g *gifParser) parseHeader() error {
	b, err := g.keepBytes(13)
	if err != nil {
		return err
	}
	if v := string(b[:6]); v != "GIF87a" && v != "GIF89a" {
		return damagedError(Image, "no GIF signature")
	}
	g.width = int(binary.LittleEndian.Uint16(b[6:]))
	g.height = int(binary.LittleEndian.Uint16(b[8:]))
	if g.width == 0 || g.height == 0 {
		return damagedError(Image, "a side of no length")
	}
	g.step = g.parseBlock
	return g.keepColourTable(b[10])
}

// keepColourTable takes the table that flags announce.
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
			return damagedError(Image, "no frame")
		}
		g.out = append(g.out, b)
		g.canDecode = true
		g.decodeCost = g.decodeMemory
		g.step = g.expectEnd
		return nil
	}
	return damagedError(Image, fmt.Sprintf("block %#x", b))
}

func (g *gifParser) parseFrame() error {
	b, err := g.keepBytes(9)
	if err != nil {
		return err
	}
	at := func(i int) int { return int(binary.LittleEndian.Uint16(b[i:])) }
	if at(0)+at(4) > g.width || at(2)+at(6) > g.height {
		return damagedError(Image, "a frame outside the picture")
	}
	g.frames++
	g.largest = max(g.largest, int64(at(4))*int64(at(6)))
	if err := g.keepColourTable(b[8]); err != nil {
		return err
	}
	if _, err := g.keepBytes(1); err != nil { // bits of the first codes
		return err
	}
	g.step = g.keepSubBlock
	return nil
}

// keepSubBlock copies one piece of a frame.
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

// parseExtension keeps how a frame is shown and how often the whole is repeated.
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
		return damagedError(Image, "a control extension of the wrong length")
	case label == 0xff && first == "NETSCAPE2.0" && loop != "":
		g.out = append(g.out, "\x21\xff\x0bNETSCAPE2.0\x03"+loop+"\x00"...)
	}
	return nil
}

// decodeMemory is for the first frame and its rows in their right order.
func (g *gifParser) decodeMemory(int64) (int64, string) { return 2*g.largest + 1<<16, "" }
