package media

import (
	"encoding/binary"
)

// webpParser is the parser of WebP files (RFC 9649). The header states the
// file size before the parser knows which chunks it will remove, so removed
// chunks are replaced by JUNK chunks of zeros with the same size.
type webpParser struct {
	*cleaner
	fileLeft  int64 // number of bytes of the file not parsed yet
	frameLeft int64 // number of bytes of the current frame not parsed yet; 0 outside a frame
	chunks    int
	extended  bool
	animated  bool
	pictures  int
	lossless  bool
	alpha     bool
}

func (w *webpParser) parseHeader() error {
	b, err := w.keepBytes(12)
	if err != nil {
		return err
	}
	if string(b[:4]) != "RIFF" || string(b[8:]) != "WEBP" {
		return damagedError(Image, "the WebP signature is missing")
	}
	if w.fileLeft = int64(binary.LittleEndian.Uint32(b[4:])) - 4; w.fileLeft < 8 {
		return damagedError(Image, "the file is empty")
	}

	w.step = w.parseChunk
	return nil
}

func (w *webpParser) parseChunk() error {
	if w.fileLeft == 0 {
		if w.pictures == 0 && w.frames == 0 || w.animated != (w.frames > 0) {
			return damagedError(Image, "the file has no picture, or has frames without being an animation")
		}

		w.canDecode = !w.animated
		w.decodeCost = w.decodeMemory
		w.step = w.expectEnd
		return nil
	}
	if w.fileLeft < 8 {
		return damagedError(Image, "the file has extra bytes after its last chunk")
	}

	b, err := w.keepBytes(8)
	if err != nil {
		return err
	}

	name := string(b[:4])
	n := int64(binary.LittleEndian.Uint32(b[4:]))
	w.fileLeft -= 8
	padded := n + n&1
	if padded > w.fileLeft && n == w.fileLeft {
		padded = n // encoders often omit the last padding byte
	}
	if padded > w.fileLeft {
		return damagedError(Image, "a chunk extends past the end of the file")
	}

	inside := w.frameLeft > 0
	if inside {
		if w.frameLeft -= 8 + padded; w.frameLeft < 0 {
			return damagedError(Image, "a chunk extends past the end of its frame")
		}
	}
	w.chunks++
	used := 0
	switch {
	case name == "VP8X" && w.chunks == 1:
		used, err = w.parseVP8X(n)
	case name == "VP8 ":
		used, err = w.parseVP8(n, inside)
	case name == "VP8L":
		used, err = w.parseVP8L(n, inside)
	case w.chunks == 1:
		return damagedError(Image, "the first chunk is not a picture")
	case name == "ALPH":
		w.alpha = true
	case name == "ANMF" && !inside:
		w.fileLeft -= 16
		return w.parseFrame(n)
	case (name == "ICCP" || name == "ANIM") && !inside:
	default:
		copy(b, "JUNK")
		w.fileLeft -= padded
		w.copyBytes(padded, true)
		return nil
	}

	w.fileLeft -= padded
	w.copyBytes(padded-int64(used), false)
	return err
}

// parseVP8X reads the size of the canvas from a VP8X chunk and clears the
// flags of removed metadata.
func (w *webpParser) parseVP8X(n int64) (int, error) {
	if n != 10 {
		return 0, damagedError(Image, "the VP8X chunk has the wrong length")
	}

	b, err := w.keepBytes(10)
	if err != nil {
		return 0, err
	}

	b[0] &^= 0x08 | 0x04 // flags for Exif and XMP
	w.extended = true
	w.animated = b[0]&0x02 != 0
	w.width = 1 + readUint24(b[4:])
	w.height = 1 + readUint24(b[7:])
	return 10, nil
}

// parseVP8 reads the size of a picture from a VP8 key frame (RFC 6386, section
// 9.1).
func (w *webpParser) parseVP8(n int64, inside bool) (int, error) {
	if n < 10 {
		return 0, damagedError(Image, "the VP8 chunk is too short")
	}

	b, err := w.keepBytes(10)
	if err != nil {
		return 0, err
	}
	if string(b[3:6]) != "\x9d\x01\x2a" {
		return 0, damagedError(Image, "the VP8 chunk does not contain a key frame")
	}

	width := int(binary.LittleEndian.Uint16(b[6:]) & 0x3fff)
	height := int(binary.LittleEndian.Uint16(b[8:]) & 0x3fff)
	return 10, w.checkPictureSize(width, height, inside)
}

// parseVP8L reads the size of a picture from a VP8L chunk, which is lossless.
func (w *webpParser) parseVP8L(n int64, inside bool) (int, error) {
	if n < 5 {
		return 0, damagedError(Image, "the VP8L chunk is too short")
	}

	b, err := w.keepBytes(5)
	if err != nil {
		return 0, err
	}
	if b[0] != 0x2f {
		return 0, damagedError(Image, "the VP8L signature is missing")
	}

	size := binary.LittleEndian.Uint32(b[1:])
	w.lossless = true
	return 5, w.checkPictureSize(1+int(size&0x3fff), 1+int(size>>14&0x3fff), inside)
}

func (w *webpParser) checkPictureSize(width, height int, inside bool) error {
	if inside {
		return nil
	}
	if w.pictures++; w.pictures > 1 {
		return damagedError(Image, "the file has two pictures")
	}
	if !w.extended {
		w.width = width
		w.height = height
	}
	if width != w.width || height != w.height || width == 0 || height == 0 {
		return damagedError(Image, "the picture sizes in the file are inconsistent")
	}
	return nil
}

// parseFrame parses the header of an ANMF chunk, which is a frame of an
// animation. The chunks in it are parsed next.
func (w *webpParser) parseFrame(n int64) error {
	if n < 16+8 || n%2 != 0 || !w.animated {
		return damagedError(Image, "a frame has the wrong length, or the picture is not an animation")
	}

	b, err := w.keepBytes(16)
	if err != nil {
		return err
	}
	if 2*readUint24(b)+1+readUint24(b[6:]) > w.width || 2*readUint24(b[3:])+1+readUint24(b[9:]) > w.height {
		return damagedError(Image, "a frame extends past the edges of the picture")
	}
	w.frames++
	w.frameLeft = n - 16
	return nil
}

// decodeMemory returns an upper bound of the memory for decoding, in bytes.
// The Huffman trees of a lossless picture can take far more memory than their
// bytes in the file.
func (w *webpParser) decodeMemory(size int64) (int64, string) {
	pixels := int64(w.width+16) * int64(w.height+16)
	total := 2*pixels + size
	if w.lossless || w.alpha {
		total += 9*pixels + min(300*size, 135<<20)
	}
	return total, ""
}

func readUint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
