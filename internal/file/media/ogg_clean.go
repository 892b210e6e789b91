package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

const (
	// oggBlock is the size of the read buffer for Ogg files. It exceeds the
	// maximum size of a page, 27 + 255 + 255*255 bytes.
	oggBlock = 72 << 10
	// maxOggStreams is the maximum number of simultaneous streams in an Ogg
	// file.
	maxOggStreams = 16
	// maxSetup is the maximum size of the Vorbis setup header, which contains
	// the codebooks, in bytes.
	maxSetup = 1 << 20
	// maxLacing is the maximum number of segments in a page.
	maxLacing = 255
)

// Flags of an Ogg page (RFC 3533, section 6).
const (
	oggContinued = 1
	oggFirst     = 2
	oggLast      = 4
)

const oggMagic = "OggS\x00"

// oggParser is the cleaner of Ogg files. It replaces the comments of Vorbis and
// Opus streams and renumbers the pages. Streams of other codecs, pages with a
// wrong checksum, which players ignore, and bytes between pages are removed.
type oggParser struct {
	*cleaner
	comments []string // comments to write; none when a file is cleaned
	streams  map[uint32]*oggStream
}

// oggStream is a stream of an Ogg file while its pages are read.
type oggStream struct {
	magics      []string // first bytes of the header packets that are still expected
	packet      []byte   // the current header packet, as far as it has been read
	setup       []byte   // setup header of a Vorbis stream, which is its last header
	headerPages uint32   // number of pages of header packets so far
	firstPage   uint32   // number of the first header page
	moved       uint32   // number that is subtracted from the page numbers after the headers
}

func newOggParser(c *cleaner, comments []string) *oggParser {
	return &oggParser{cleaner: c, comments: comments, streams: map[uint32]*oggStream{}}
}

// parsePage is the step that reads one page.
func (o *oggParser) parsePage() error {
	head, err := o.in.Peek(27)
	if len(head) == 0 && errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return readError(o.kind, err)
	}
	if len(head) < 27 || string(head[:5]) != oggMagic {
		return o.skipToPage()
	}

	body := 27 + int(head[26])
	if head, err = o.in.Peek(body); err == nil {
		length := body
		for _, n := range head[27:] {
			length += int(n)
		}
		head, err = o.in.Peek(length)
	}
	if errors.Is(err, io.EOF) {
		return o.skipTrailing() // an incomplete page at the end
	}
	if err != nil {
		return readError(o.kind, err)
	}

	if binary.LittleEndian.Uint32(head[22:]) == oggChecksum(head) {
		if err := o.cleanPage(head, body); err != nil {
			return err
		}
	}
	return o.skipBytes(int64(len(head)))
}

// skipToPage leaves the bytes before the next page out of the output. If the
// buffer contains no page, it leaves out the buffered bytes.
func (o *oggParser) skipToPage() error {
	ready, _ := o.in.Peek(o.in.Buffered())
	at := bytes.Index(ready[1:], []byte("OggS"))
	if at < 0 {
		at = max(0, len(ready)-1-3) // the last three bytes may be the start of a page's signature
	}
	return o.skipBytes(int64(1 + at))
}

// cleanPage writes the page, its replacement, or nothing. body is the offset
// after the lacing values.
func (o *oggParser) cleanPage(page []byte, body int) error {
	flags := page[5]
	serial := binary.LittleEndian.Uint32(page[14:])
	number := binary.LittleEndian.Uint32(page[18:])
	if flags&oggFirst != 0 {
		return o.beginStream(page, body, serial)
	}

	s := o.streams[serial]
	switch {
	case s == nil:
		return nil
	case len(s.magics) > 0:
		if s.headerPages == 0 {
			s.firstPage = number
		}
		s.headerPages++
		return o.readHeaders(s, page, body, serial)
	}

	at := len(o.out)
	o.out = append(o.out, page...)
	if s.moved != 0 {
		binary.LittleEndian.PutUint32(o.out[at+18:], number-s.moved)
		binary.LittleEndian.PutUint32(o.out[at+22:], oggChecksum(o.out[at:]))
	}
	if flags&oggLast != 0 {
		delete(o.streams, serial)
	}
	return nil
}

// beginStream handles the first page of a stream, which has one packet.
func (o *oggParser) beginStream(page []byte, body int, serial uint32) error {
	packet := page[body:]
	s := &oggStream{}
	switch {
	case parseOggCodec(packet) == nil:
		delete(o.streams, serial)
		return nil
	case packet[0] == 1:
		s.magics = []string{vorbisCommentMagic, "\x05vorbis"}
	default:
		s.magics = []string{opusCommentMagic}
	}
	for i, n := range page[27:body] {
		if (n < 255) != (i == body-28) {
			return damagedError(o.kind, "the first page of a stream has several packets")
		}
	}

	o.streams[serial] = s
	if len(o.streams) > maxOggStreams {
		return damagedError(o.kind, "the file has too many streams")
	}
	o.out = append(o.out, page...)
	return nil
}

// readHeaders reads the header packets of a stream. When they are complete, it
// writes them with new comments.
func (o *oggParser) readHeaders(s *oggStream, page []byte, body int, serial uint32) error {
	at := body
	for i, n := range page[27:body] {
		keep := len(s.magics[0]) // only the first bytes of the comments are checked
		if len(s.magics) == 1 && s.magics[0] != opusCommentMagic {
			keep = maxSetup + 1
		}

		part := page[at : at+int(n)]
		s.packet = append(s.packet, part[:min(len(part), max(0, keep-len(s.packet)))]...)
		at += int(n)
		if n == 255 {
			continue
		}
		if !bytes.HasPrefix(s.packet, []byte(s.magics[0])) || len(s.packet) > maxSetup {
			return damagedError(o.kind, "a header packet is missing or too long")
		}

		s.setup = s.packet
		s.packet = nil
		if s.magics = s.magics[1:]; len(s.magics) > 0 {
			continue
		}
		if i != body-28 {
			return damagedError(o.kind, "audio data follows a header packet on the same page")
		}
		o.writeHeaders(s, serial)
	}
	return nil
}

// writeHeaders writes the pages of the header packets of a stream.
func (o *oggParser) writeHeaders(s *oggStream, serial uint32) {
	packets := [][]byte{vorbisComment(opusCommentMagic, o.comments)}
	if s.setup[0] == 5 {
		packets = [][]byte{vorbisComment(vorbisCommentMagic, o.comments), s.setup}
	}

	var lacing, data []byte
	for _, p := range packets {
		lacing = append(lacing, bytes.Repeat([]byte{255}, len(p)/255)...)
		lacing = append(lacing, byte(len(p)%255))
		data = append(data, p...)
	}

	number := s.firstPage
	for continued := byte(0); len(lacing) > 0; number++ {
		n := min(len(lacing), maxLacing)
		length := 0
		granule := uint64(0xffffffffffffffff) // no packet ends on the page
		for _, size := range lacing[:n] {
			length += int(size)
			if size < 255 {
				granule = 0
			}
		}

		at := len(o.out)
		o.out = append(o.out, oggMagic...)
		o.out = append(o.out, continued)
		o.out = binary.LittleEndian.AppendUint64(o.out, granule)
		o.out = binary.LittleEndian.AppendUint32(o.out, serial)
		o.out = binary.LittleEndian.AppendUint32(o.out, number)
		o.out = append(o.out, 0, 0, 0, 0, byte(n))
		o.out = append(o.out, lacing[:n]...)
		o.out = append(o.out, data[:length]...)
		binary.LittleEndian.PutUint32(o.out[at+22:], oggChecksum(o.out[at:]))

		continued = 0
		if lacing[n-1] == 255 {
			continued = oggContinued
		}
		lacing = lacing[n:]
		data = data[length:]
	}

	s.moved = s.firstPage + s.headerPages - number
	s.setup = nil
}

// oggTable is the table of the checksum of Ogg pages: the polynomial 0x04c11db7
// without reflection.
var oggTable = func() (table [256]uint32) {
	for i := range table {
		sum := uint32(i) << 24
		for range 8 {
			if sum&0x80000000 != 0 {
				sum = sum<<1 ^ 0x04c11db7
			} else {
				sum <<= 1
			}
		}
		table[i] = sum
	}
	return table
}()

// oggChecksum returns the checksum of a page, computed with 0 in the page's
// checksum field.
func oggChecksum(page []byte) uint32 {
	var sum uint32
	for i, b := range page {
		if 22 <= i && i < 26 {
			b = 0
		}
		sum = sum<<8 ^ oggTable[byte(sum>>24)^b]
	}
	return sum
}
