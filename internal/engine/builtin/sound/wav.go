// Package sound reads and writes the headers of WAV files. The engines read and
// write the samples themselves.
package sound

import (
	"encoding/binary"
	"errors"
	"io"
)

// Format is the format of the samples in a WAV file.
type Format struct {
	Floats   bool // whether samples are floats; otherwise they are integers
	Bits     int  // bits per sample
	Channels int
	Rate     int // samples per second in each channel
}

// ErrFormat is returned for data that is not a WAV file.
var ErrFormat = errors.New("not a WAV file")

// Open reads the header of a WAV file, up to the samples. size is the number of
// bytes of samples according to the header.
func Open(r io.Reader) (f Format, size int64, err error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:4]) != "RIFF" || string(head[8:]) != "WAVE" {
		return f, 0, ErrFormat
	}
	for {
		if _, err := io.ReadFull(r, head[:8]); err != nil {
			return f, 0, ErrFormat
		}
		name := string(head[:4])
		n := int64(binary.LittleEndian.Uint32(head[4:]))
		switch {
		case name == "data" && f.Channels > 0:
			return f, n, nil
		case n > 1<<10 || name == "data":
			return f, 0, ErrFormat
		}
		body := make([]byte, n+n&1)
		if _, err := io.ReadFull(r, body); err != nil {
			return f, 0, ErrFormat
		}
		if name == "fmt " && !f.parseChunk(body[:n]) {
			return f, 0, ErrFormat
		}
	}
}

// parseChunk parses the body of the format chunk. It reports whether the format
// is supported.
func (f *Format) parseChunk(b []byte) bool {
	const integers, floats, extensible = 1, 3, 0xfffe
	if len(b) < 16 {
		return false
	}
	le := binary.LittleEndian
	kind := le.Uint16(b)
	if kind == extensible && len(b) >= 26 {
		kind = le.Uint16(b[24:])
	}
	*f = Format{Floats: kind == floats, Bits: int(le.Uint16(b[14:])), Channels: int(le.Uint16(b[2:])), Rate: int(le.Uint32(b[4:]))}
	return kind == integers || kind == floats
}

// Header returns the header of a WAV file of 16-bit integers, with capacity for
// the samples. samples is the number of samples in all channels together.
func Header(rate, channels, samples int) []byte {
	const header = 44
	le := binary.LittleEndian
	n := 2 * samples
	b := make([]byte, 0, header+n)
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, uint32(header-8+n))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, 1) // integer samples
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(2*channels*rate))
	b = le.AppendUint16(b, uint16(2*channels))
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	return le.AppendUint32(b, uint32(n))
}
