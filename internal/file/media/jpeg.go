package media

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"atelier/internal/base/fault"
)

// maxScans is the maximum number of scans of a progressive JPEG. The decoder
// visits all blocks in each scan, even if the scan has only a few bytes.
// Encoders write about ten scans.
const maxScans = 100

// jpegParser is the parser of JPEG files (ITU T.81, annex B).
type jpegParser struct {
	*cleaner
	scans       int
	components  int
	progressive bool
	jfif, adobe bool
	rgb         bool
}

func (j *jpegParser) parseSOI() error {
	b, err := j.keepBytes(2)
	if err != nil {
		return err
	}
	if b[0] != 0xff || b[1] != 0xd8 {
		return damagedError(Image, "the SOI marker is missing")
	}

	j.step = j.parseSegment
	return nil
}

// parseSegment parses one marker and its segment. It drops bytes between
// segments, which decoders skip too.
func (j *jpegParser) parseSegment() error {
	if _, err := j.in.Peek(1); err != nil {
		return readError(Image, err)
	}

	ready, _ := j.in.Peek(j.in.Buffered())
	stray := bytes.IndexByte(ready, 0xff)
	if stray < 0 {
		return j.skipBytes(int64(len(ready)))
	}

	err := j.skipBytes(int64(stray))
	if err != nil {
		return err
	}

	b := byte(0xff)
	for b == 0xff { // fill bytes may precede the marker code
		if b, err = j.readByte(); err != nil {
			return err
		}
	}

	switch {
	case b == 0x00, 0xd0 <= b && b <= 0xd7: // a stuffed byte or restart marker outside a scan
		return nil
	case b == 0xd9:
		if j.scans == 0 {
			return damagedError(Image, "the JPEG has no scan")
		}

		j.canDecode = true
		j.decodeCost = j.decodeMemory
		j.out = append(j.out, 0xff, 0xd9)
		j.step = j.skipTrailing
		return nil
	}

	length, err := j.readBytes(2)
	if err != nil {
		return err
	}

	head := [4]byte{0xff, b, length[0], length[1]}
	n := int64(binary.BigEndian.Uint16(length)) - 2
	if n < 0 {
		return damagedError(Image, "a segment is shorter than its length field")
	}

	switch {
	case b == 0xc0, b == 0xc1, b == 0xc2:
		j.out = append(j.out, head[:]...)
		return j.parseFrameHeader(b, int(n))
	case b == 0xc4, b == 0xdb, b == 0xdd: // tables and the restart interval
		j.out = append(j.out, head[:]...)
		j.copyBytes(n, false)
		return nil
	case b == 0xda:
		if j.scans++; j.scans > maxScans {
			return fault.New(fault.Invalid, "The picture has too many progressive scans.")
		}
		if j.components == 0 {
			return damagedError(Image, "a scan precedes the frame header")
		}

		j.out = append(j.out, head[:]...)
		j.step = j.copyScan
		_, err := j.keepBytes(int(n))
		return err
	case 0xe0 <= b && b <= 0xef, b == 0xfe:
		return j.parseAppSegment(b, head, n)
	case 0xc3 <= b && b <= 0xcf:
		return fault.New(fault.Invalid, "This kind of JPEG file is not supported.")
	}
	return damagedError(Image, fmt.Sprintf("the JPEG has an unknown marker %#x", b))
}

// parseFrameHeader parses the frame header, which contains the size of the
// picture.
func (j *jpegParser) parseFrameHeader(marker byte, n int) error {
	if j.components != 0 {
		return damagedError(Image, "the JPEG has two frame headers")
	}

	b, err := j.keepBytes(n)
	if err != nil {
		return err
	}
	if n < 6 || n != 6+3*int(b[5]) || b[5] == 0 || b[5] > 4 {
		return damagedError(Image, "the frame header has the wrong length")
	}

	j.height = int(binary.BigEndian.Uint16(b[1:]))
	j.width = int(binary.BigEndian.Uint16(b[3:]))
	j.components = int(b[5])
	j.progressive = marker == 0xc2
	j.rgb = b[5] == 3 && b[6] == 'R'
	return nil
}

// parseAppSegment drops application segments and comments, except data about
// colours and orientation.
func (j *jpegParser) parseAppSegment(marker byte, head [4]byte, n int64) error {
	start, err := j.in.Peek(int(min(n, 14)))
	if err != nil {
		return readError(Image, err)
	}

	is := func(name string, least int) bool { return len(start) >= least && string(start[:len(name)]) == name }
	switch {
	case marker == 0xe0 && !j.jfif && is("JFIF\x00", 14):
		j.jfif = true
		j.out = append(append(append(j.out, 0xff, 0xe0, 0, 16), start[:12]...), 0, 0) // without the JFIF thumbnail
	case marker == 0xe1 && j.orientation == 0 && j.scans == 0 && is("Exif\x00\x00", 6):
		b := make([]byte, n)
		if err := j.readFull(b); err != nil {
			return err
		}
		if j.orientation = readOrientation(b[6:]); j.orientation > 1 {
			j.out = append(j.out, exifOrientation(j.orientation)...)
		}
		return nil
	case marker == 0xe2 && is("ICC_PROFILE\x00", 12):
		j.out = append(j.out, head[:]...)
		j.copyBytes(n, false)
		return nil
	case marker == 0xee && !j.adobe && is("Adobe", 12):
		j.adobe = true
		j.out = append(append(j.out, 0xff, 0xee, 0, 14), start[:12]...)
	}
	return j.skipBytes(n)
}

// copyScan copies entropy-coded data up to the next marker that is not a
// restart marker.
func (j *jpegParser) copyScan() error {
	if _, err := j.in.Peek(1); err != nil {
		return readError(Image, err)
	}

	ready, _ := j.in.Peek(j.in.Buffered())
	i := bytes.IndexByte(ready, 0xff)
	if i < 0 {
		i = len(ready)
	}

	j.out = append(j.out, ready[:i]...)
	if err := j.skipBytes(int64(i)); err != nil || i == len(ready) {
		return err
	}

	two, err := j.in.Peek(2)
	if err != nil {
		return readError(Image, err)
	}

	switch m := two[1]; {
	case m == 0xff:
		return j.skipBytes(1)
	case m == 0x00, 0xd0 <= m && m <= 0xd7:
		j.out = append(j.out, two...)
		return j.skipBytes(2)
	}

	j.step = j.parseSegment
	return nil
}

// decodeMemory returns an upper bound of the memory for decoding, in bytes. It
// also refuses a file that has too few bytes for its number of pixels: each
// block of 64 pixels needs at least one bit.
func (j *jpegParser) decodeMemory(size int64) (int64, string) {
	pixels := int64(j.width+32) * int64(j.height+32) // rounded up to whole blocks
	if blocks := int64(j.width) * int64(j.height) / 64; size*8 < blocks {
		return 0, "the file has too few bytes for its number of pixels"
	}

	bytesPerPixel := int64(j.components)
	if j.progressive {
		bytesPerPixel += 4 * int64(j.components) // a coefficient has 32 bits
	}
	if j.components == 4 || j.adobe || j.rgb {
		bytesPerPixel += 4 // for the conversion to RGB
	}
	return pixels * bytesPerPixel, ""
}

// readOrientation returns the Exif orientation from the first directory of TIFF
// data. It returns 1, which means upright, if the data contains none.
func readOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return 1
	}

	var order binary.ByteOrder = binary.BigEndian
	switch string(tiff[:4]) {
	case "MM\x00*":
	case "II*\x00":
		order = binary.LittleEndian
	default:
		return 1
	}

	at := int64(order.Uint32(tiff[4:]))
	if at > int64(len(tiff))-2 {
		return 1
	}

	count := int(order.Uint16(tiff[at:]))
	entries := tiff[at+2:]
	for ; count > 0 && len(entries) >= 12; count-- {
		if order.Uint16(entries) == 0x0112 && order.Uint16(entries[2:]) == 3 && order.Uint32(entries[4:]) == 1 {
			if value := int(order.Uint16(entries[8:])); 1 <= value && value <= 8 {
				return value
			}
			return 1
		}
		entries = entries[12:]
	}
	return 1
}

// exifOrientation returns an Exif segment that contains only the orientation.
func exifOrientation(turn int) string {
	return "\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08" +
		"\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(rune(turn)) + "\x00\x00\x00\x00\x00\x00"
}
