package media

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// MaxXMP is the maximum size of an XMP packet in bytes, for all formats. A
// packet of this size just fits into a JPEG segment.
const MaxXMP = 65535 - 2 - len(jpegXMP)

// EmbedXMP returns a reader of a file with an XMP packet embedded, if the
// format supports XMP (XMP specification, part 3). In WebM, FLAC and Ogg, for
// which the specification defines no place, the packet is stored as a tag with
// the name XMP. Clean must have processed the file; other files may become
// invalid. Files with an unknown structure, HEIF, text and 3D models are
// returned unchanged.
func EmbedXMP(f Format, r io.Reader, packet []byte) io.Reader {
	mark := map[Format]func(*xmpWriter) error{
		pngFormat: (*xmpWriter).writePNG, jpegFormat: (*xmpWriter).writeJPEG, gifFormat: (*xmpWriter).writeGIF, webpFormat: (*xmpWriter).writeWebP,
		mp4Format: (*xmpWriter).writeMP4, movFormat: (*xmpWriter).writeMP4, webmFormat: (*xmpWriter).writeWebM,
		mp3Format: (*xmpWriter).writeMP3, wavFormat: (*xmpWriter).writeWAV, flacFormat: (*xmpWriter).writeFLAC,
	}[f]
	if len(packet) == 0 || len(packet) > MaxXMP {
		return r
	}
	if f == oggFormat {
		c := &cleaner{kind: f.Type, in: bufio.NewReaderSize(r, oggBlock)}
		c.step = newOggParser(c, []string{xmpComment + string(packet)}).parsePage
		return c
	}
	if mark == nil {
		return r
	}

	m := &xmpWriter{in: bufio.NewReaderSize(r, 66<<10), packet: packet}
	m.begin = func() error { return mark(m) }
	return m
}

// xmpWriter is a reader of the file with the packet embedded. It returns the
// bytes of head, the remaining bytes of in, and the bytes of tail.
type xmpWriter struct {
	in          *bufio.Reader
	packet      []byte
	begin       func() error
	head        bytes.Buffer
	finish      func() // called when in ends, to fill tail
	tail        bytes.Buffer
	boxes       *boxTracker
	begun, done bool
}

func (m *xmpWriter) Read(p []byte) (int, error) {
	if !m.begun {
		m.begun = true
		// A file that is too short for its format is returned unchanged.
		// AnalyzeFile later reports it as damaged.
		if err := m.begin(); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errNoRoomForXMP) {
			return 0, err
		}
	}
	if m.head.Len() > 0 {
		return m.head.Read(p)
	}
	if !m.done {
		n, err := m.in.Read(p)
		if m.boxes != nil {
			m.boxes.trackBytes(p[:n])
		}
		if !errors.Is(err, io.EOF) {
			return n, err
		}

		m.done = true
		if m.finish != nil {
			m.finish()
		}
		if n > 0 {
			return n, nil
		}
	}
	return m.tail.Read(p)
}

// errNoRoomForXMP means that the file's structure has no room for an XMP
// packet.
var errNoRoomForXMP = errors.New("the file has no room for an XMP packet")

// copyBytes copies the next n bytes of the file to the head and returns them,
// so that the caller can change them.
func (m *xmpWriter) copyBytes(n int) ([]byte, error) {
	b, err := m.in.Peek(n)
	if err != nil {
		return nil, err
	}

	at := m.head.Len()
	m.head.Write(b)
	_, err = m.in.Discard(n)
	return m.head.Bytes()[at:], err
}

// writePNG adds the packet as an iTXt chunk after the IHDR chunk.
func (m *xmpWriter) writePNG() error {
	if _, err := m.copyBytes(len(pngMagic) + 8 + 13 + 4); err != nil {
		return err
	}

	body := append([]byte("iTXtXML:com.adobe.xmp\x00\x00\x00\x00\x00"), m.packet...)
	m.head.Write(binary.BigEndian.AppendUint32(nil, uint32(len(body)-4)))
	m.head.Write(body)
	m.head.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body)))
	return nil
}

const jpegXMP = "http://ns.adobe.com/xap/1.0/\x00"

// writeJPEG adds the packet as an APP1 segment at the start of the file, but
// after APP0, which some readers expect first.
func (m *xmpWriter) writeJPEG() error {
	if _, err := m.copyBytes(2); err != nil {
		return err
	}
	if b, err := m.in.Peek(4); err == nil && b[0] == 0xff && b[1] == 0xe0 {
		if _, err := m.copyBytes(2 + int(binary.BigEndian.Uint16(b[2:]))); err != nil {
			return err
		}
	}

	m.head.Write([]byte{0xff, 0xe1})
	m.head.Write(binary.BigEndian.AppendUint16(nil, uint16(2+len(jpegXMP)+len(m.packet))))
	m.head.WriteString(jpegXMP)
	m.head.Write(m.packet)
	return nil
}

// writeGIF adds the packet as an application extension after the colour table.
// The packet is not divided into sub-blocks; a trailer of descending bytes
// leads a reader that skips sub-blocks to the end of the extension.
func (m *xmpWriter) writeGIF() error {
	b, err := m.copyBytes(13)
	if err != nil {
		return err
	}

	copy(b, "GIF89a") // version 87a has no extensions
	if flags := b[10]; flags&0x80 != 0 {
		if _, err := m.copyBytes(3 << (flags&7 + 1)); err != nil {
			return err
		}
	}

	m.head.WriteString("\x21\xff\x0bXMP DataXMP")
	m.head.Write(m.packet)
	m.head.WriteByte(1)
	for i := 255; i >= 0; i-- {
		m.head.WriteByte(byte(i))
	}

	m.head.WriteByte(0)
	return nil
}

// writeWebP adds the packet as a chunk at the end of the file. It updates the
// file size in the header and sets the XMP flag in the VP8X chunk, which it
// adds if it is missing (RFC 9649, section 2.7).
func (m *xmpWriter) writeWebP() error {
	b, err := m.in.Peek(30)
	if err != nil {
		return err
	}

	size := binary.LittleEndian.Uint32(b[4:])
	var extended []byte
	switch first := string(b[12:16]); first {
	case "VP8X":
	case "VP8 ", "VP8L":
		if extended = webpExtended(b[12:]); extended == nil {
			return errNoRoomForXMP
		}
	default:
		return errNoRoomForXMP
	}

	odd := size & 1 // 1 if the last padding byte is missing; encoders often omit it
	grown := uint64(size) + uint64(odd) + uint64(len(extended)) + 8 + uint64(len(m.packet)+len(m.packet)&1)
	if grown > 1<<32-2 {
		return errNoRoomForXMP
	}
	if b, err = m.copyBytes(12); err != nil {
		return err
	}

	binary.LittleEndian.PutUint32(b[4:], uint32(grown))
	if extended != nil {
		m.head.Write(extended)
	} else if b, err = m.copyBytes(9); err != nil {
		return err
	} else {
		b[8] |= 0x04
	}

	m.finish = func() {
		m.tail.Write(make([]byte, odd))
		m.tail.WriteString("XMP ")
		m.tail.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(m.packet))))
		m.tail.Write(m.packet)
		m.tail.Write(make([]byte, len(m.packet)&1))
	}
	return nil
}

// webpExtended returns a VP8X chunk for a WebP file that has none. chunk is
// the first chunk of the file. It returns nil if chunk is invalid.
func webpExtended(chunk []byte) []byte {
	var width, height uint32
	flags := byte(0x04)
	switch string(chunk[:4]) {
	case "VP8 ": // RFC 6386, section 9.1
		if chunk[11] != 0x9d || chunk[12] != 0x01 || chunk[13] != 0x2a {
			return nil
		}
		width = uint32(binary.LittleEndian.Uint16(chunk[14:]) & 0x3fff)
		height = uint32(binary.LittleEndian.Uint16(chunk[16:]) & 0x3fff)
	case "VP8L":
		if chunk[8] != 0x2f {
			return nil
		}

		bits := binary.LittleEndian.Uint32(chunk[9:])
		width = bits&0x3fff + 1
		height = bits>>14&0x3fff + 1
		if bits>>28&1 != 0 {
			flags |= 0x10
		}
	}
	if width == 0 || height == 0 {
		return nil
	}

	out := append([]byte("VP8X\x0a\x00\x00\x00"), flags, 0, 0, 0)
	for _, n := range []uint32{width - 1, height - 1} {
		out = append(out, byte(n), byte(n>>8), byte(n>>16))
	}
	return out
}

// isoXMP is the UUID that identifies an ISO base media box with an XMP packet.
const isoXMP = "\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac"

// writeMP4 adds the packet as a uuid box at the end of the file, so that no
// offset changes. A file whose last box states no size stays unchanged.
func (m *xmpWriter) writeMP4() error {
	m.boxes = &boxTracker{}
	m.finish = func() {
		if !m.boxes.isAtBoxEnd() {
			return
		}

		m.tail.Write(binary.BigEndian.AppendUint32(nil, uint32(8+len(isoXMP)+len(m.packet))))
		m.tail.WriteString("uuid" + isoXMP)
		m.tail.Write(m.packet)
	}
	return nil
}

// boxTracker determines the boundaries of the top-level boxes while a file is
// read.
type boxTracker struct {
	head []byte
	left uint64 // remaining bytes of the current box
	open bool   // the box extends to the end of the file
}

func (b *boxTracker) trackBytes(p []byte) {
	for len(p) > 0 && !b.open {
		if b.left > 0 {
			n := min(b.left, uint64(len(p)))
			b.left -= n
			p = p[n:]
			continue
		}

		b.head = append(b.head, p[0])
		p = p[1:]
		if len(b.head) < 8 {
			continue
		}

		size := uint64(binary.BigEndian.Uint32(b.head))
		if size == 1 && len(b.head) < 16 {
			continue
		}
		if size == 1 {
			size = binary.BigEndian.Uint64(b.head[8:])
		}
		if size < uint64(len(b.head)) {
			b.open = true // size 0 (to the end of the file) or an invalid size
			return
		}

		b.left = size - uint64(len(b.head))
		b.head = nil
	}
}

// isAtBoxEnd reports whether the bytes read so far end with a complete box.
func (b *boxTracker) isAtBoxEnd() bool { return !b.open && b.left == 0 && len(b.head) == 0 }

// writeWebM adds the packet as a Tags element at the end of the segment (RFC
// 9559, section 5.1.8) and increases the segment's size.
func (m *xmpWriter) writeWebM() error {
	tags := webmTags(m.packet)
	header, err := m.copyElementHeader(0x1a45dfa3)
	if err != nil {
		return err
	}
	if _, err := m.copyBytes(int(header)); err != nil {
		return err
	}

	b, err := m.in.Peek(12)
	if err != nil {
		return err
	}
	if binary.BigEndian.Uint32(b) != 0x18538067 {
		return errNoRoomForXMP
	}

	width, value, unknown := parseVint(b[4:])
	grown := value + uint64(len(tags))
	if width == 0 || !unknown && (value > 1<<50 || grown >= 1<<(7*width)-1) {
		return errNoRoomForXMP
	}
	if b, err = m.copyBytes(4 + width); err != nil {
		return err
	}
	if !unknown {
		for i := range width {
			b[4+width-1-i] = byte(grown >> (8 * i))
		}
		b[4] |= 0x80 >> (width - 1)
	}
	if unknown {
		m.finish = func() { m.tail.Write(tags) }
		return nil
	}

	rest := m.in
	m.in = bufio.NewReader(io.MultiReader(io.LimitReader(rest, int64(value)), bytes.NewReader(tags), rest))
	return nil
}

// copyElementHeader copies the header of an EBML element with the given
// four-byte ID to the head and returns the size of the element's content in
// bytes.
func (m *xmpWriter) copyElementHeader(id uint32) (uint64, error) {
	b, err := m.in.Peek(12)
	if err != nil {
		return 0, err
	}

	width, value, unknown := parseVint(b[4:])
	if binary.BigEndian.Uint32(b) != id || width == 0 || unknown || value > 4096 {
		return 0, errNoRoomForXMP
	}

	_, err = m.copyBytes(4 + width)
	return value, err
}

// parseVint parses a variable-length integer of EBML (RFC 8794, section 4).
// width is its number of bytes, or 0 if it is invalid. unknown is true for the
// reserved value that means an unknown size.
func parseVint(b []byte) (width int, value uint64, unknown bool) {
	for width = 1; width <= 8 && b[0]&(0x80>>(width-1)) == 0; width++ {
	}
	if width > 8 || len(b) < width {
		return 0, 0, false
	}

	value = uint64(b[0]) & (0xff >> width)
	for _, c := range b[1:width] {
		value = value<<8 | uint64(c)
	}
	return width, value, value == 1<<(7*width)-1
}

// webmTags returns a WebM Tags element with one Tag, which contains empty
// Targets and a SimpleTag whose value is the packet.
func webmTags(packet []byte) []byte {
	element := func(id string, body []byte) []byte {
		n := len(body)
		return append([]byte(id+"\x10"+string([]byte{byte(n >> 16), byte(n >> 8), byte(n)})), body...)
	}
	simple := element("\x67\xc8", append(element("\x45\xa3", []byte("XMP")), element("\x44\x87", packet)...))
	return element("\x12\x54\xc3\x67", element("\x73\x73", append(element("\x63\xc0", nil), simple...)))
}
