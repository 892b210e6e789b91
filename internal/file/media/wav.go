package media

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"atelier/internal/base/fault"
)

// wavMagic are the signatures of WAV files: the usual one, and two for files
// that can have more than 4 GiB (EBU Tech 3306).
var wavMagic = []string{"RIFF", "RF64", "BW64"}

// planWAV plans how to clean a WAV file. Only the format, the number of samples
// and the samples are kept, with new headers.
func planWAV(s *source) ([]part, error) {
	head, err := s.peekBytes(0, 12)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(wavMagic, string(head[:4])) || string(head[8:]) != "WAVE" {
		return nil, errors.New("the WAV signature is missing")
	}

	var format, fact, data span
	longData := int64(-1) // length of the samples in an RF64 file
	at := int64(12)
	for range maxChunks {
		if data.to > 0 || s.size-at < 8 {
			break
		}

		b, err := s.peekBytes(at, 8)
		if err != nil {
			return nil, err
		}

		name := string(b[:4])
		n := int64(binary.LittleEndian.Uint32(b[4:]))
		at += 8
		if name == "data" && n == unknownLength {
			n = s.size - at
			if longData >= 0 {
				n = longData
			}
		}
		if n > s.size-at {
			return nil, errors.New("a chunk extends past the end of the file")
		}

		body := span{at, at + n}
		switch {
		case name == "ds64" && n >= 16:
			if b, err = s.peekBytes(at, 16); err != nil {
				return nil, err
			}
			longData = int64(min(binary.LittleEndian.Uint64(b[8:]), math.MaxInt64))
		case name == "fmt " && format.to > 0:
			return nil, errors.New("the file has two fmt chunks")
		case name == "fmt ":
			format = body
		case name == "fact" && n >= 4:
			fact = span{at, at + 4}
		case name == "data" && format.to == 0:
			return nil, errors.New("the data chunk precedes the fmt chunk")
		case name == "data":
			data = body
		}
		at += n + n&1
	}
	if data.to == 0 {
		return nil, errors.New("the file has no audio samples, or too many chunks before them")
	}
	return buildWAV(s, format, fact, data)
}

// buildWAV returns the parts of a WAV file with the given chunks.
func buildWAV(s *source, format, fact, data span) ([]part, error) {
	format, err := trimFormat(s, format)
	if err != nil {
		return nil, err
	}

	var parts []part
	size := int64(4)
	addChunk := func(name string, body span) {
		n := body.to - body.from
		head := binary.LittleEndian.AppendUint32([]byte(name), uint32(n))
		parts = append(parts, part{data: head}, part{span: body}, part{data: make([]byte, n&1)})
		size += 8 + n + n&1
	}
	addChunk("fmt ", format)
	if fact.to > 0 {
		addChunk("fact", fact)
	}
	addChunk("data", data)
	if size > math.MaxUint32 {
		return nil, fault.New(fault.Invalid, "The recording has more than 4 GiB. Save it as FLAC, or in several files.")
	}

	head := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(size))
	return append([]part{{data: append(head, "WAVE"...)}}, parts...), nil
}

// trimFormat shortens a fmt chunk to the fields that its format code uses: 16
// or 18 bytes, or 40 for WAVE_FORMAT_EXTENSIBLE.
func trimFormat(s *source, format span) (span, error) {
	n := format.to - format.from
	if n < 16 {
		return span{}, errors.New("the fmt chunk is too short")
	}

	b, err := s.peekBytes(format.from, 2)
	if err != nil {
		return span{}, err
	}

	const extensible = 0xfffe
	switch {
	case binary.LittleEndian.Uint16(b) == extensible && n >= 40:
		n = 40
	case n != 18:
		n = 16
	}
	return span{format.from, format.from + n}, nil
}
