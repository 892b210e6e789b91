package media

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// maxLyrics is the maximum length of a Lyrics3 version 1 tag in bytes.
const maxLyrics = 5100

// trimTags returns the end offset of the sound between the offsets start and
// end, without the tags (ID3, APE and Lyrics3, in any order) that follow the
// sound.
func trimTags(s *source, start, end int64) (int64, error) {
	for range maxTags {
		n, err := trailingTagLength(s, start, end)
		if err != nil {
			return 0, err
		}
		if n <= 0 || n > end-start {
			break
		}
		end -= n
	}
	return end, nil
}

// trailingTagLength returns the length of the tag that ends at the offset end,
// or 0 if there is none.
func trailingTagLength(s *source, start, end int64) (int64, error) {
	const longest = 227 + 128 // length of an ID3v1 tag with its extension
	tail, err := s.peekBytes(max(start, end-longest), int(min(longest, end-start)))
	if err != nil {
		return 0, err
	}

	at := func(n int, magic string) bool {
		return len(tail) >= n && bytes.HasPrefix(tail[len(tail)-n:], []byte(magic))
	}
	switch {
	case at(128, "TAG") && at(227+128, "TAG+"):
		return 227 + 128, nil
	case at(128, "TAG"):
		return 128, nil
	case at(32, "APETAGEX"):
		footer := tail[len(tail)-32:]
		n := int64(binary.LittleEndian.Uint32(footer[12:]))
		if binary.LittleEndian.Uint32(footer[20:])&(1<<31) != 0 {
			n += 32 // the tag also has a header
		}
		return n, nil
	case at(9, "LYRICS200") && len(tail) >= 15:
		n, err := strconv.ParseUint(string(tail[len(tail)-15:len(tail)-9]), 10, 32)
		if err != nil {
			return 0, nil
		}
		return int64(n) + 15, nil
	case at(9, "LYRICSEND"):
		return lyricsLength(s, start, end)
	case at(10, "3DI"):
		footer := append([]byte("ID3"), tail[len(tail)-7:]...)
		n, _ := id3Length(footer)
		return n, nil
	}
	return 0, nil
}

// lyricsLength returns the length of the Lyrics3 version 1 tag that ends at the
// offset end, or 0 if the start of the tag is not found.
func lyricsLength(s *source, start, end int64) (int64, error) {
	b := make([]byte, min(maxLyrics+20, end-start))
	if n, err := s.ReadAt(b, end-int64(len(b))); n < len(b) {
		return 0, readError(Audio, err)
	}

	at := bytes.LastIndex(b, []byte("LYRICSBEGIN"))
	if at < 0 {
		return 0, nil
	}
	return int64(len(b) - at), nil
}

// vorbisCommentMagic and opusCommentMagic are the first bytes of the comment
// packets of Vorbis and Opus.
const (
	vorbisCommentMagic = "\x03vorbis"
	opusCommentMagic   = "OpusTags"
)

// vorbisComment returns a list of comments without a vendor, in the form that
// Vorbis, Opus and FLAC share. magic is empty for FLAC.
func vorbisComment(magic string, comments []string) []byte {
	b := append([]byte(magic), 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(comments)))
	for _, c := range comments {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(c)))
		b = append(b, c...)
	}
	if magic == vorbisCommentMagic {
		b = append(b, 1) // the framing bit
	}
	return b
}
