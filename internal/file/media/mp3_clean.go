package media

import (
	"encoding/binary"
	"errors"
)

// maxMP3Gaps is the maximum number of places between the frames of an MP3 file
// where other bytes are removed.
const maxMP3Gaps = 10_000

// planMP3 plans how to clean an MP3 file. Only its frames are kept: all tags
// (ID3, APE, Lyrics3) and other bytes before, between and after them are
// removed. The header with the number of frames, which players need, is a frame
// itself.
func planMP3(s *source) ([]part, error) {
	at, err := skipID3(s, 0)
	if err != nil {
		return nil, err
	}

	first, at, err := findFirstMP3Frame(s, at)
	if err != nil {
		return nil, err
	}

	var parts []part
	for {
		end, err := followAllMP3Frames(s, first, at)
		if err != nil {
			return nil, err
		}
		if len(parts) == maxMP3Gaps {
			return nil, errors.New("there are too many bytes between the frames")
		}

		parts = append(parts, part{span: span{at, end}})
		if first, at, err = resumeMP3(s, end); err != nil || at < 0 {
			return parts, err
		}
	}
}

// isSameStream reports whether a frame can belong to the same file as another.
func (f mp3Frame) isSameStream(other mp3Frame) bool {
	return f.rate == other.rate && f.isMPEG1 == other.isMPEG1
}

// followAllMP3Frames returns the offset after the last of the consecutive
// complete frames that begin at the given offset.
func followAllMP3Frames(s *source, first mp3Frame, at int64) (int64, error) {
	for at <= s.size-4 {
		b, err := s.peekBytes(at, 4)
		if err != nil {
			return 0, err
		}

		f, ok := parseMP3Header(b)
		if !ok || !f.isSameStream(first) || int64(f.length) > s.size-at {
			break
		}
		at += int64(f.length)
	}
	return at, nil
}

// resumeMP3 searches for the next frames after bytes that are not frames, and
// returns the header and the offset of the first frame found. The offset is -1
// if no frame was found. If two files were joined, these frames can have a
// different sample rate from the earlier frames.
func resumeMP3(s *source, at int64) (mp3Frame, int64, error) {
	for at <= s.size-4 {
		b, err := s.peekBytes(at, int(min(32, s.size-at)))
		if err != nil {
			return mp3Frame{}, 0, err
		}
		if n := leadingTagLength(b); n > 0 && n <= s.size-at {
			at += n
			continue
		}

		f, ok := parseMP3Header(b)
		if ok && int64(f.length) <= s.size-at {
			if ok, err = followMP3Frames(s, f, at); err != nil || ok {
				return f, at, err
			}
		}
		at++
	}
	return mp3Frame{}, -1, nil
}

// leadingTagLength returns the length of the ID3 or APE tag at the start of b,
// or 0 if there is none.
func leadingTagLength(b []byte) int64 {
	if n, ok := id3Length(b); ok {
		return n
	}

	const isHeader = 1 << 29
	if len(b) >= 32 && string(b[:8]) == "APETAGEX" && binary.LittleEndian.Uint32(b[20:])&isHeader != 0 {
		return 32 + int64(binary.LittleEndian.Uint32(b[12:]))
	}
	return 0
}
