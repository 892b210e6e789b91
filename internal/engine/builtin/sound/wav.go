// Package sound reads and writes the headers of WAV files. What the samples mean
// is the engines' own matter.
package sound

import (
	"encoding/binary"
	"errors"
	"io"
)

// Format is what the samples of a file are.
type Format struct {
	Floats   bool // they are integers otherwise
	Bits     int  // of each
	Channels int
	Rate     int // samples a second, in each channel
}

// ErrFormat is for what is no WAV file.
var ErrFormat = errors.New("not a recording")

// Open reads a file up to its samples, and tells how many bytes they promise to
// take.
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
		if name == "fmt " && !f.read(body[:n]) {
			return f, 0, ErrFormat
		}
	}
}

// read takes the chunk that tells the format.
func (f *Format) read(b []byte) bool {
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

// Header begins a file of 16-bit integers, channel by channel, with room for so
// many samples behind it.
func Header(rate, channels, samples int) []byte {
	const header = 44
	le := binary.LittleEndian
	n := 2 * samples
	b := make([]byte, 0, header+n)
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, uint32(header-8+n))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, 1) // integers
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(2*channels*rate))
	b = le.AppendUint16(b, uint16(2*channels))
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	return le.AppendUint32(b, uint32(n))
}
