package media

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
)

// maxChunks is the maximum number of chunks before the audio data of a WAV
// file.
const maxChunks = 1024

// wavCodings are the supported WAV format codes: integer PCM, float, A-law,
// µ-law, and WAVE_FORMAT_EXTENSIBLE.
var wavCodings = []uint16{1, 3, 6, 7, 0xfffe}

// unknownLength is the data length in the header of a WAV file that was
// streamed.
const unknownLength = 0xffffffff

func wavDuration(s *source) (time.Duration, error) {
	var bytesPerSample, rate int64 // bytes per sample of all channels together, and samples per second
	at := int64(12)
	for range maxChunks {
		b, err := s.peekBytes(at, 8)
		if err != nil {
			return 0, readError(Audio, err)
		}

		name := string(b[:4])
		n := int64(binary.LittleEndian.Uint32(b[4:]))
		at += 8
		if name == "data" && n == unknownLength {
			n = s.size - at
		}
		if n > s.size-at {
			return 0, damagedError(Audio, "a chunk extends past the end of the file")
		}

		switch {
		case name == "fmt " && bytesPerSample != 0:
			return 0, damagedError(Audio, "the file has two fmt chunks")
		case name == "fmt ":
			if b, err = s.peekBytes(at, 16); n < 16 || err != nil {
				return 0, damagedError(Audio, "the fmt chunk is too short")
			}

			coding := binary.LittleEndian.Uint16(b)
			channels := int64(binary.LittleEndian.Uint16(b[2:]))
			rate = int64(binary.LittleEndian.Uint32(b[4:]))
			bytesPerSample = int64(binary.LittleEndian.Uint16(b[12:]))
			bits := int64(binary.LittleEndian.Uint16(b[14:]))
			if !slices.Contains(wavCodings, coding) || channels == 0 || bits == 0 || rate == 0 || bytesPerSample != channels*((bits+7)/8) {
				return 0, damagedError(Audio, "the fmt chunk is unsupported or inconsistent")
			}
		case name == "data" && bytesPerSample == 0:
			return 0, damagedError(Audio, "the data chunk precedes the fmt chunk")
		case name == "data":
			if n < bytesPerSample {
				return 0, damagedError(Audio, "the file has no audio samples")
			}
			return toDuration(float64(n/bytesPerSample), float64(rate)), nil
		}

		at += n + n&1
	}
	return 0, damagedError(Audio, "the file has too many chunks")
}

func flacDuration(s *source) (time.Duration, error) {
	b, err := s.peekBytes(4, 4+34)
	if err != nil {
		return 0, readError(Audio, err)
	}
	if b[0]&0x7f != 0 || b[1] != 0 || b[2] != 0 || b[3] != 34 {
		return 0, damagedError(Audio, "the STREAMINFO block is missing")
	}

	last := b[0]&0x80 != 0
	info := binary.BigEndian.Uint64(b[4+10:])
	rate := info >> 44
	samples := info & (1<<36 - 1)
	if rate == 0 {
		return 0, damagedError(Audio, "the sample rate is 0")
	}

	at := int64(4 + 4 + 34)
	for range maxChunks {
		if last {
			break
		}
		if b, err = s.peekBytes(at, 4); err != nil {
			return 0, readError(Audio, err)
		}

		last = b[0]&0x80 != 0
		at += 4 + int64(b[1])<<16 + int64(b[2])<<8 + int64(b[3])
	}
	if b, err = s.peekBytes(at, 2); err != nil {
		return 0, readError(Audio, err)
	}
	if !last || b[0] != 0xff || b[1]&0xfe != 0xf8 {
		return 0, damagedError(Audio, "there is no audio frame after the metadata")
	}
	return toDuration(float64(samples), float64(rate)), nil
}

// oggPage is a page of an Ogg file (RFC 3533, section 6).
type oggPage struct {
	first   bool
	granule int64
	serial  uint32
	length  int64
	packet  []byte // start of the first packet, as far as it has been read
}

func parseOggPage(b []byte) (oggPage, bool) {
	if len(b) < 27 || string(b[:5]) != "OggS\x00" || len(b) < 27+int(b[26]) {
		return oggPage{}, false
	}

	p := oggPage{first: b[5]&2 != 0, granule: int64(binary.LittleEndian.Uint64(b[6:])), serial: binary.LittleEndian.Uint32(b[14:])}
	body := 27 + int(b[26])
	length := body
	for _, n := range b[27:body] {
		length += int(n)
	}

	p.length = int64(length)
	p.packet = b[body:min(length, len(b))]
	return p, true
}

// oggCodec contains the sample rate and the samples to skip, which are needed
// to convert the granule position of the last page to a duration.
type oggCodec struct {
	rate uint32
	skip uint16
}

// parseOggCodec parses the first packet of an Ogg stream. It returns nil if
// the codec is neither Vorbis nor Opus.
func parseOggCodec(packet []byte) *oggCodec {
	switch {
	case len(packet) >= 30 && string(packet[:7]) == "\x01vorbis":
		return &oggCodec{rate: binary.LittleEndian.Uint32(packet[12:])}
	case len(packet) >= 19 && string(packet[:8]) == "OpusHead": // RFC 7845, section 4
		return &oggCodec{rate: 48000, skip: binary.LittleEndian.Uint16(packet[10:])}
	}
	return nil
}

func oggDuration(s *source) (time.Duration, error) {
	b, err := s.peekBytes(0, int(min(s.size, maxPeek)))
	if err != nil {
		return 0, readError(Audio, err)
	}

	first, ok := parseOggPage(b)
	c := parseOggCodec(first.packet)
	if !ok || !first.first || c == nil || c.rate == 0 {
		return 0, damagedError(Audio, "the file does not begin with a Vorbis or Opus stream")
	}
	if b, err = s.peekBytes(first.length, 5); err != nil || string(b) != "OggS\x00" {
		return 0, damagedError(Audio, "the second Ogg page is missing")
	}

	// A page has at most 27+255+255*255 bytes, so the last page is within that
	// many bytes at the end of the file.
	tail := make([]byte, min(s.size-first.length, 27+255+255*255))
	if n, err := s.ReadAt(tail, s.size-int64(len(tail))); n < len(tail) {
		return 0, readError(Audio, err)
	}

	for end := len(tail); ; {
		at := bytes.LastIndex(tail[:end], []byte("OggS"))
		if at < 0 {
			return 0, damagedError(Audio, "the last Ogg page is missing")
		}

		p, ok := parseOggPage(tail[at:])
		if ok && p.serial == first.serial && p.granule >= 0 && p.length <= int64(len(tail)-at) {
			return toDuration(float64(p.granule-int64(c.skip)), float64(c.rate)), nil
		}

		end = at
	}
}
