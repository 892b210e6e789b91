package media

import (
	"encoding/binary"
)

// webpWalk goes through a WebP file (RFC 9649). Its length stands at its
// start, before anybody knows what will be left out, so what goes is replaced
// by as many zeros in a chunk that readers skip.
type webpWalk struct {
	*cleaner
	left     int64 // of the file
	frame    int64 // of the frame that the next chunk lies in
	chunks   int
	extended bool
	animated bool
	pictures int
	lossless bool
	alpha    bool
}

func (w *webpWalk) start() error {
	b, err := w.take(12)
	if err != nil {
		return err
	}
	if string(b[:4]) != "RIFF" || string(b[8:]) != "WEBP" {
		return broken(Image, "no WebP signature")
	}
	if w.left = int64(binary.LittleEndian.Uint32(b[4:])) - 4; w.left < 8 {
		return broken(Image, "nothing in it")
	}
	w.step = w.chunk
	return nil
}

func (w *webpWalk) chunk() error {
	if w.left == 0 {
		if w.pictures == 0 && w.frames == 0 || w.animated != (w.frames > 0) {
			return broken(Image, "no picture, or frames of a still one")
		}
		w.decodes = !w.animated
		w.cost = w.memory
		w.step = w.end
		return nil
	}
	if w.left < 8 {
		return broken(Image, "bytes between the chunks")
	}
	b, err := w.take(8)
	if err != nil {
		return err
	}
	name := string(b[:4])
	n := int64(binary.LittleEndian.Uint32(b[4:]))
	w.left -= 8
	padded := n + n&1
	if padded > w.left && n == w.left {
		padded = n // the last byte of padding is often forgotten
	}
	if padded > w.left {
		return broken(Image, "a chunk longer than the file")
	}
	inside := w.frame > 0
	if inside {
		if w.frame -= 8 + padded; w.frame < 0 {
			return broken(Image, "a chunk longer than its frame")
		}
	}
	w.chunks++
	used := 0
	switch {
	case name == "VP8X" && w.chunks == 1:
		used, err = w.header(n)
	case name == "VP8 ":
		used, err = w.lossy(n, inside)
	case name == "VP8L":
		used, err = w.bits(n, inside)
	case w.chunks == 1:
		return broken(Image, "it starts with no picture")
	case name == "ALPH":
		w.alpha = true
	case name == "ANMF" && !inside:
		w.left -= 16
		return w.animation(n)
	case (name == "ICCP" || name == "ANIM") && !inside:
	default:
		copy(b, "JUNK")
		w.left -= padded
		w.let(padded, true)
		return nil
	}
	w.left -= padded
	w.let(padded-int64(used), false)
	return err
}

// header reads the size of the canvas and unsets the flags of what goes.
func (w *webpWalk) header(n int64) (int, error) {
	if n != 10 {
		return 0, broken(Image, "VP8X of the wrong length")
	}
	b, err := w.take(10)
	if err != nil {
		return 0, err
	}
	b[0] &^= 0x08 | 0x04 // Exif, XMP
	w.extended = true
	w.animated = b[0]&0x02 != 0
	w.width = 1 + uint24(b[4:])
	w.height = 1 + uint24(b[7:])
	return 10, nil
}

// lossy reads the size of a key frame of VP8 (RFC 6386, section 9.1).
func (w *webpWalk) lossy(n int64, inside bool) (int, error) {
	if n < 10 {
		return 0, broken(Image, "VP8 of no length")
	}
	b, err := w.take(10)
	if err != nil {
		return 0, err
	}
	if string(b[3:6]) != "\x9d\x01\x2a" {
		return 0, broken(Image, "no key frame")
	}
	width := int(binary.LittleEndian.Uint16(b[6:]) & 0x3fff)
	height := int(binary.LittleEndian.Uint16(b[8:]) & 0x3fff)
	return 10, w.picture(width, height, inside)
}

// bits reads the size of a lossless picture.
func (w *webpWalk) bits(n int64, inside bool) (int, error) {
	if n < 5 {
		return 0, broken(Image, "VP8L of no length")
	}
	b, err := w.take(5)
	if err != nil {
		return 0, err
	}
	if b[0] != 0x2f {
		return 0, broken(Image, "no VP8L signature")
	}
	size := binary.LittleEndian.Uint32(b[1:])
	w.lossless = true
	return 5, w.picture(1+int(size&0x3fff), 1+int(size>>14&0x3fff), inside)
}

func (w *webpWalk) picture(width, height int, inside bool) error {
	if inside {
		return nil
	}
	if w.pictures++; w.pictures > 1 {
		return broken(Image, "two pictures")
	}
	if !w.extended {
		w.width = width
		w.height = height
	}
	if width != w.width || height != w.height || width == 0 || height == 0 {
		return broken(Image, "two sizes")
	}
	return nil
}

// animation enters a frame. The chunks in it come next, as if they lay beside
// it.
func (w *webpWalk) animation(n int64) error {
	if n < 16+8 || n%2 != 0 || !w.animated {
		return broken(Image, "a frame of the wrong length, or in a still picture")
	}
	b, err := w.take(16)
	if err != nil {
		return err
	}
	if 2*uint24(b)+1+uint24(b[6:]) > w.width || 2*uint24(b[3:])+1+uint24(b[9:]) > w.height {
		return broken(Image, "a frame outside the picture")
	}
	w.frames++
	w.frame = n - 16
	return nil
}

// memory estimates what decoding takes at most. The trees of a lossless
// picture can take far more than their bytes in the file.
func (w *webpWalk) memory(size int64) (int64, string) {
	pixels := int64(w.width+16) * int64(w.height+16)
	total := 2*pixels + size
	if w.lossless || w.alpha {
		total += 9*pixels + min(300*size, 135<<20)
	}
	return total, ""
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
