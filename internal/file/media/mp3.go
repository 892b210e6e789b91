package media

import (
	"encoding/binary"
	"time"
)

const (
	// mp3Search is the maximum distance of the first frame from the tags, in
	// bytes.
	mp3Search = 8 << 10
	// mp3Frames is the number of consecutive frames that identify an MP3 file.
	// A single frame header often occurs in random bytes.
	mp3Frames = 4
	// maxTags is the maximum number of ID3 tags before the first frame.
	maxTags = 8
)

// mp3Frame is the header of an MPEG audio frame, layer III.
type mp3Frame struct {
	rate    int // samples per second
	bitrate int // bits per second
	samples int
	length  int // length of the frame in bytes
	mono    bool
	isMPEG1 bool // false for MPEG-2 and 2.5, which have fewer samples per frame
}

// mp3Bitrates are the bit rates in kbit/s. The first key is true for MPEG-1,
// the second is the value of the four bits in the header.
var mp3Bitrates = map[bool][16]int{
	true:  {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0},
	false: {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0},
}

func parseMP3Header(b []byte) (mp3Frame, bool) {
	if len(b) < 4 || b[0] != 0xff || b[1]&0xe0 != 0xe0 || b[1]>>1&3 != 1 { // no frame sync pattern, or not layer III
		return mp3Frame{}, false
	}

	version := b[1] >> 3 & 3
	index := b[2] >> 2 & 3
	if version == 1 || index == 3 {
		return mp3Frame{}, false
	}

	f := mp3Frame{isMPEG1: version == 3, mono: b[3]>>6 == 3, samples: 576}
	f.rate = []int{44100, 48000, 32000}[index]
	switch version {
	case 0:
		f.rate /= 4
	case 2:
		f.rate /= 2
	case 3:
		f.samples = 1152
	}

	f.bitrate = 1000 * mp3Bitrates[f.isMPEG1][b[2]>>4]
	if f.bitrate == 0 { // free format, which is not supported, or an invalid value
		return mp3Frame{}, false
	}

	f.length = f.samples/8*f.bitrate/f.rate + int(b[2]>>1&1)
	return f, true
}

// startsWithMP3Frames reports whether b begins with consecutive MP3 frames.
// isWholeFile is true if b is the whole file.
func startsWithMP3Frames(b []byte, isWholeFile bool) bool {
	for n := 0; ; n++ {
		f, ok := parseMP3Header(b)
		switch {
		case n == 2 && len(b) < 4:
			return !isWholeFile || len(b) == 0
		case n == 2:
			return ok || string(b[:3]) == "TAG"
		case !ok || len(b) < f.length:
			return false
		}
		b = b[f.length:]
	}
}

// id3Length returns the length in bytes of the ID3 tag at the start of b. It
// returns false if there is none.
func id3Length(b []byte) (int64, bool) {
	if len(b) < 10 || string(b[:3]) != "ID3" || b[3] == 0xff || b[4] == 0xff || (b[6]|b[7]|b[8]|b[9])&0x80 != 0 {
		return 0, false
	}

	n := int64(b[6])<<21 | int64(b[7])<<14 | int64(b[8])<<7 | int64(b[9])
	if b[5]&0x10 != 0 {
		n += 10 // length of the tag's footer
	}
	return n + 10, true
}

// skipID3 returns the offset after the ID3 tags that begin at the offset start.
func skipID3(s *source, start int64) (int64, error) {
	for range maxTags {
		b, err := s.peekBytes(start, 10)
		if err != nil {
			return 0, readError(Audio, err)
		}

		n, ok := id3Length(b)
		if !ok {
			break
		}

		start += n
	}
	return start, nil
}

func mp3Duration(s *source) (time.Duration, error) {
	start, err := skipID3(s, 0)
	if err != nil {
		return 0, err
	}

	first, start, err := findFirstMP3Frame(s, start)
	if err != nil {
		return 0, err
	}
	if frames, ok := readMP3FrameCount(s, first, start); ok {
		return toDuration(float64(frames)*float64(first.samples), float64(first.rate)), nil
	}
	return toDuration(float64(s.size-start)*8, float64(first.bitrate)), nil
}

// findFirstMP3Frame returns the header and the offset of the first of several
// consecutive frames, searching from the offset start.
func findFirstMP3Frame(s *source, start int64) (mp3Frame, int64, error) {
	for at := start; at < start+mp3Search; at++ {
		b, err := s.peekBytes(at, 4)
		if err != nil {
			return mp3Frame{}, 0, readError(Audio, err)
		}

		first, ok := parseMP3Header(b)
		if !ok {
			continue
		}

		ok, err = followMP3Frames(s, first, at)
		if err != nil || ok {
			return first, at, err
		}
	}
	return mp3Frame{}, 0, damagedError(Audio, "the MP3 has no frames")
}

// followMP3Frames reports whether the first frame is followed by enough frames
// of the same kind, or by complete frames up to a tag or the end of the file.
func followMP3Frames(s *source, first mp3Frame, at int64) (bool, error) {
	at += int64(first.length)
	for range mp3Frames - 1 {
		if at == s.size {
			return true, nil
		}
		if at > s.size-4 {
			return false, nil
		}

		b, err := s.peekBytes(at, int(min(32, s.size-at)))
		if err != nil {
			return false, readError(Audio, err)
		}

		f, ok := parseMP3Header(b)
		if !ok {
			return leadingTagLength(b) > 0 || string(b[:3]) == "TAG" && at == s.size-128, nil
		}
		if !f.isSameStream(first) {
			return false, nil
		}

		at += int64(f.length)
	}
	return at <= s.size, nil
}

// readMP3FrameCount returns the number of frames in the file from the Xing or
// VBRI header of the first frame. It returns false if there is no such header.
func readMP3FrameCount(s *source, first mp3Frame, at int64) (uint32, bool) {
	b, err := s.peekBytes(at, first.length)
	if err != nil {
		return 0, false
	}

	side := 32
	switch {
	case first.isMPEG1 && first.mono, !first.isMPEG1 && !first.mono:
		side = 17
	case !first.isMPEG1:
		side = 9
	}
	if x := 4 + side; len(b) >= x+12 && (string(b[x:x+4]) == "Xing" || string(b[x:x+4]) == "Info") && b[x+7]&1 != 0 {
		return binary.BigEndian.Uint32(b[x+8:]), true
	}
	if len(b) >= 36+18 && string(b[36:40]) == "VBRI" {
		return binary.BigEndian.Uint32(b[36+14:]), true
	}
	return 0, false
}
