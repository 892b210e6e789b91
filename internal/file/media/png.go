package media

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// pngChunks are the PNG chunks that are kept, with their maximum sizes in
// bytes. They describe pixels and colours. All other ancillary chunks are
// removed.
var pngChunks = map[string]int64{
	"IHDR": 13, "PLTE": 768, "IDAT": 1<<31 - 1, "IEND": 0,
	"tRNS": 256, "gAMA": 4, "cHRM": 32, "sRGB": 1, "iCCP": 4 << 20, "cICP": 4, "sBIT": 4, "bKGD": 6, "pHYs": 9,
	"acTL": 8, "fcTL": 26, "fdAT": 1<<31 - 1,
}

// pngParser is the parser of PNG files, animated or not. It verifies the
// checksums of the chunks that are kept.
type pngParser struct {
	*cleaner
	isLast               bool // the current chunk is IEND
	depth, colour        byte
	bitsPerPixel         int64
	interlace            bool
	hasTransparentColour bool
	dataBytes            int64 // total size of the IDAT chunks, in bytes
}

func (w *pngParser) parseSignature() error {
	b, err := w.keepBytes(len(pngMagic))
	if err != nil {
		return err
	}
	if string(b) != pngMagic {
		return damagedError(Image, "the PNG signature is missing")
	}

	w.step = w.parseChunk
	return nil
}

func (w *pngParser) parseChunk() error {
	head, err := w.readBytes(8)
	if err != nil {
		return err
	}

	n := int64(binary.BigEndian.Uint32(head))
	name := string(head[4:])
	if n > 1<<31-1 {
		return damagedError(Image, "a chunk is larger than 2 GiB")
	}

	maxBytes, kept := pngChunks[name]
	switch {
	case (name == "IHDR") != (w.width == 0):
		return damagedError(Image, "the first chunk is not IHDR, or there are several IHDR chunks")
	case !kept && head[4]&0x20 != 0:
		return w.skipBytes(n + 4)
	case !kept:
		return damagedError(Image, fmt.Sprintf("the PNG has an unknown critical chunk %q", name))
	case n > maxBytes:
		return damagedError(Image, fmt.Sprintf("a %s chunk has an invalid size of %d bytes", name, n))
	}

	w.out = append(w.out, head...)
	w.crc = crc32.ChecksumIEEE(head[4:])
	switch name {
	case "IHDR":
		return w.parseIHDR(n)
	case "fcTL":
		return w.parseFrameControl(n)
	case "tRNS":
		w.hasTransparentColour = true
	case "IDAT":
		w.dataBytes += n
	case "IEND":
		if w.dataBytes == 0 {
			return damagedError(Image, "the IDAT data is missing")
		}

		w.canDecode = true
		w.decodeCost = w.decodeMemory
		w.isLast = true
	}

	w.copyBytes(n, false)
	w.step = w.verifyChecksum
	return nil
}

// verifyChecksum is the step after the data of a chunk. It verifies the chunk's
// checksum.
func (w *pngParser) verifyChecksum() error {
	sum := w.crc
	b, err := w.keepBytes(4)
	if err != nil {
		return err
	}
	if binary.BigEndian.Uint32(b) != sum {
		return damagedError(Image, "a chunk has a wrong checksum")
	}

	w.step = w.parseChunk
	if w.isLast {
		w.step = w.expectEnd
	}
	return nil
}

// keepChunkData copies the data of a short chunk to the output and returns it.
func (w *pngParser) keepChunkData(n int64) ([]byte, error) {
	b, err := w.keepBytes(int(n))
	if err != nil {
		return nil, err
	}

	w.crc = crc32.Update(w.crc, crc32.IEEETable, b)
	w.step = w.verifyChecksum
	return b, nil
}

func (w *pngParser) parseIHDR(n int64) error {
	b, err := w.keepChunkData(n)
	if err != nil {
		return err
	}
	if n != 13 {
		return damagedError(Image, "the IHDR chunk has the wrong length")
	}

	width := binary.BigEndian.Uint32(b)
	height := binary.BigEndian.Uint32(b[4:])
	if width == 0 || height == 0 || width > 1<<31-1 || height > 1<<31-1 {
		return damagedError(Image, "width or height is 0")
	}

	w.width = int(width)
	w.height = int(height)
	samples, ok := map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[b[9]]
	if !ok || b[8] > 16 {
		return damagedError(Image, "the colour type is unknown")
	}

	w.depth = b[8]
	w.colour = b[9]
	w.interlace = b[12] != 0
	w.bitsPerPixel = samples * int64(w.depth)
	return nil
}

// parseFrameControl counts a frame of an animation and checks that the frame
// is within the picture.
func (w *pngParser) parseFrameControl(n int64) error {
	b, err := w.keepChunkData(n)
	if err != nil {
		return err
	}
	if n != 26 {
		return damagedError(Image, "an fcTL chunk has the wrong length")
	}

	at := func(i int) int64 { return int64(binary.BigEndian.Uint32(b[i:])) }
	if at(4)+at(12) > int64(w.width) || at(8)+at(16) > int64(w.height) {
		return damagedError(Image, "a frame extends past the edges of the picture")
	}
	w.frames++
	return nil
}

// decodeMemory returns an upper bound of the memory for decoding, in bytes. It
// also refuses a file that has too few bytes for its number of pixels: deflate
// compresses by a factor of at most 1032. The caller must have checked the
// number of pixels.
func (w *pngParser) decodeMemory(int64) (int64, string) {
	row := (int64(w.width)*w.bitsPerPixel + 7) / 8
	if row*int64(w.height)/1100 > w.dataBytes {
		return 0, "the file has too few bytes for its number of pixels"
	}

	bytesPerPixel := int64(4)
	switch {
	case w.depth == 16:
		bytesPerPixel = 8
	case w.colour == 3, w.colour == 0 && !w.hasTransparentColour:
		bytesPerPixel = 1
	}

	total := int64(w.width)*int64(w.height)*bytesPerPixel + 2*row
	if w.interlace {
		total *= 2
	}
	return total, ""
}
