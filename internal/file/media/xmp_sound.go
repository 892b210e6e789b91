package media

import "encoding/binary"

// writeMP3 adds the packet as a private frame of an ID3 tag, version 2.3,
// before the sound.
func (m *xmpWriter) writeMP3() error {
	if b, err := m.in.Peek(2); err != nil || b[0] != 0xff {
		return errNoRoomForXMP
	}

	const owner = "XMP\x00"
	frame := len(owner) + len(m.packet)
	tag := 10 + frame
	m.head.WriteString("ID3\x03\x00\x00")
	m.head.Write([]byte{byte(tag >> 21 & 0x7f), byte(tag >> 14 & 0x7f), byte(tag >> 7 & 0x7f), byte(tag & 0x7f)})
	m.head.WriteString("PRIV")
	m.head.Write(binary.BigEndian.AppendUint32(nil, uint32(frame)))
	m.head.WriteString("\x00\x00" + owner)
	m.head.Write(m.packet)
	return nil
}

// writeWAV adds the packet as a chunk at the end of the file and updates the
// file size in the header.
func (m *xmpWriter) writeWAV() error {
	b, err := m.in.Peek(12)
	if err != nil {
		return err
	}

	padding := len(m.packet) & 1
	size := uint64(binary.LittleEndian.Uint32(b[4:]))
	grown := size + 8 + uint64(len(m.packet)+padding)
	if string(b[:4]) != "RIFF" || size&1 != 0 || grown > 1<<32-2 {
		return errNoRoomForXMP
	}
	if b, err = m.copyBytes(12); err != nil {
		return err
	}

	binary.LittleEndian.PutUint32(b[4:], uint32(grown))
	m.finish = func() {
		m.tail.WriteString("_PMX")
		m.tail.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(m.packet))))
		m.tail.Write(m.packet)
		m.tail.Write(make([]byte, padding))
	}
	return nil
}

// xmpComment is the prefix of the comment that contains the packet, in a FLAC
// or Ogg file.
const xmpComment = "XMP="

// writeFLAC adds the packet as a comment, in a metadata block after the first
// one.
func (m *xmpWriter) writeFLAC() error {
	b, err := m.in.Peek(8 + 34)
	if err != nil {
		return err
	}
	if string(b[:4]) != "fLaC" || b[4]&^flacLast != flacStreamInfo || b[7] != 34 {
		return errNoRoomForXMP
	}
	if b, err = m.copyBytes(8 + 34); err != nil {
		return err
	}

	last := b[4] & flacLast
	b[4] = flacStreamInfo
	block := vorbisComment("", []string{xmpComment + string(m.packet)})
	m.head.Write([]byte{flacComment | last, byte(len(block) >> 16), byte(len(block) >> 8), byte(len(block))})
	m.head.Write(block)
	return nil
}
