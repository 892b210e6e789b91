package media

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// pngChunks are the chunks that stay, with the most bytes one may have. They
// say what the pixels are and how their colours are meant. Any other chunk
// that can be left out is.
var pngChunks = map[string]int64{
	"IHDR": 13, "PLTE": 768, "IDAT": 1<<31 - 1, "IEND": 0,
	"tRNS": 256, "gAMA": 4, "cHRM": 32, "sRGB": 1, "iCCP": 4 << 20, "cICP": 4, "sBIT": 4, "bKGD": 6, "pHYs": 9,
	"acTL": 8, "fcTL": 26, "fdAT": 1<<31 - 1,
}

// pngWalk goes through a PNG file, animated or not. It checks the checksums of
// the chunks that stay.
type pngWalk struct {
	*cleaner
	last          bool // the chunk is the last one
	depth, colour byte
	bits          int64 // of a pixel
	interlace     bool
	clear         bool  // one colour is transparent
	data          int64 // bytes of the still picture
}

func (w *pngWalk) start() error {
	b, err := w.take(len(pngMagic))
	if err != nil {
		return err
	}
	if string(b) != pngMagic {
		return broken(Image, "no PNG signature")
	}
	w.step = w.chunk
	return nil
}

func (w *pngWalk) chunk() error {
	head, err := w.next(8)
	if err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(head))
	name := string(head[4:])
	if n > 1<<31-1 {
		return broken(Image, "a chunk above 2 GiB")
	}
	most, kept := pngChunks[name]
	switch {
	case (name == "IHDR") != (w.width == 0):
		return broken(Image, "IHDR is not the first chunk, or not the only one")
	case !kept && head[4]&0x20 != 0:
		return w.drop(n + 4)
	case !kept:
		return broken(Image, fmt.Sprintf("critical chunk %q", name))
	case n > most:
		return broken(Image, fmt.Sprintf("%s of %d bytes", name, n))
	}
	w.out = append(w.out, head...)
	w.crc = crc32.ChecksumIEEE(head[4:])
	switch name {
	case "IHDR":
		return w.header(n)
	case "fcTL":
		return w.frame(n)
	case "tRNS":
		w.clear = true
	case "IDAT":
		w.data += n
	case "IEND":
		if w.data == 0 {
			return broken(Image, "no pixels")
		}
		w.decodes = true
		w.cost = w.memory
		w.last = true
	}
	w.let(n, false)
	w.step = w.checksum
	return nil
}

// checksum follows the content of a chunk.
func (w *pngWalk) checksum() error {
	sum := w.crc
	b, err := w.take(4)
	if err != nil {
		return err
	}
	if binary.BigEndian.Uint32(b) != sum {
		return broken(Image, "a chunk with a wrong checksum")
	}
	w.step = w.chunk
	if w.last {
		w.step = w.end
	}
	return nil
}

// content takes what is in a short chunk, whose checksum follows.
func (w *pngWalk) content(n int64) ([]byte, error) {
	b, err := w.take(int(n))
	if err != nil {
		return nil, err
	}
	w.crc = crc32.Update(w.crc, crc32.IEEETable, b)
	w.step = w.checksum
	return b, nil
}

func (w *pngWalk) header(n int64) error {
	b, err := w.content(n)
	if err != nil {
		return err
	}
	if n != 13 {
		return broken(Image, "IHDR of the wrong length")
	}
	width := binary.BigEndian.Uint32(b)
	height := binary.BigEndian.Uint32(b[4:])
	if width == 0 || height == 0 || width > 1<<31-1 || height > 1<<31-1 {
		return broken(Image, "a side of no length")
	}
	w.width = int(width)
	w.height = int(height)
	samples, ok := map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[b[9]]
	if !ok || b[8] > 16 {
		return broken(Image, "an unknown colour type")
	}
	w.depth = b[8]
	w.colour = b[9]
	w.interlace = b[12] != 0
	w.bits = samples * int64(w.depth)
	return nil
}

// frame counts a frame of an animation and holds it inside the picture.
func (w *pngWalk) frame(n int64) error {
	b, err := w.content(n)
	if err != nil {
		return err
	}
	if n != 26 {
		return broken(Image, "fcTL of the wrong length")
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint32(b[i:])) }
	if at(4)+at(12) > int64(w.width) || at(8)+at(16) > int64(w.height) {
		return broken(Image, "a frame outside the picture")
	}
	w.frames++
	return nil
}

// memory estimates what decoding takes at most. It also tells a file that is
// far too short for its size: deflate gives 1032 bytes for one at best. The
// caller has bounded the pixels before.
func (w *pngWalk) memory(int64) (int64, string) {
	row := (int64(w.width)*w.bits + 7) / 8
	if row*int64(w.height)/1100 > w.data {
		return 0, "too few bytes for so many pixels"
	}
	each := int64(4)
	switch {
	case w.depth == 16:
		each = 8
	case w.colour == 3, w.colour == 0 && !w.clear:
		each = 1
	}
	total := int64(w.width)*int64(w.height)*each + 2*row
	if w.interlace {
		total *= 2
	}
	return total, ""
}
