package media

import (
	"encoding/binary"
	"fmt"
)

// gifWalk goes through a GIF file.
type gifWalk struct {
	*cleaner
	largest int64 // pixels of the largest frame
}

func (g *gifWalk) start() error {
	b, err := g.take(13)
	if err != nil {
		return err
	}
	if v := string(b[:6]); v != "GIF87a" && v != "GIF89a" {
		return broken(Image, "no GIF signature")
	}
	g.width = int(binary.LittleEndian.Uint16(b[6:]))
	g.height = int(binary.LittleEndian.Uint16(b[8:]))
	if g.width == 0 || g.height == 0 {
		return broken(Image, "a side of no length")
	}
	g.step = g.block
	return g.colours(b[10])
}

// colours takes the table that flags announce.
func (g *gifWalk) colours(flags byte) error {
	if flags&0x80 == 0 {
		return nil
	}
	_, err := g.take(3 << (flags&7 + 1))
	return err
}

func (g *gifWalk) block() error {
	b, err := g.byte()
	if err != nil {
		return err
	}
	switch b {
	case 0x2c:
		g.out = append(g.out, b)
		return g.frame()
	case 0x21:
		return g.extension()
	case 0x3b:
		if g.frames == 0 {
			return broken(Image, "no frame")
		}
		g.out = append(g.out, b)
		g.decodes = true
		g.cost = g.memory
		g.step = g.end
		return nil
	}
	return broken(Image, fmt.Sprintf("block %#x", b))
}

func (g *gifWalk) frame() error {
	b, err := g.take(9)
	if err != nil {
		return err
	}
	at := func(i int) int { return int(binary.LittleEndian.Uint16(b[i:])) }
	if at(0)+at(4) > g.width || at(2)+at(6) > g.height {
		return broken(Image, "a frame outside the picture")
	}
	g.frames++
	g.largest = max(g.largest, int64(at(4))*int64(at(6)))
	if err := g.colours(b[8]); err != nil {
		return err
	}
	if _, err := g.take(1); err != nil { // bits of the first codes
		return err
	}
	g.step = g.data
	return nil
}

// data copies one piece of a frame.
func (g *gifWalk) data() error {
	b, err := g.take(1)
	if err != nil {
		return err
	}
	if b[0] == 0 {
		g.step = g.block
		return nil
	}
	_, err = g.take(int(b[0]))
	return err
}

// extension keeps how a frame is shown and how often the whole is repeated.
func (g *gifWalk) extension() error {
	label, err := g.byte()
	if err != nil {
		return err
	}
	var first, loop string
	for i := 0; ; i++ {
		n, err := g.byte()
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		b, err := g.next(int(n))
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
		return broken(Image, "a control extension of the wrong length")
	case label == 0xff && first == "NETSCAPE2.0" && loop != "":
		g.out = append(g.out, "\x21\xff\x0bNETSCAPE2.0\x03"+loop+"\x00"...)
	}
	return nil
}

// memory is for the first frame and its rows in their right order.
func (g *gifWalk) memory(int64) (int64, string) { return 2*g.largest + 1<<16, "" }
