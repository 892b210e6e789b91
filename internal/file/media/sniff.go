package media

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// HeadLength is the number of bytes at the start of a file that Sniff needs. A
// shorter file is passed as a whole.
const HeadLength = 4096

// Sniff detects the format of a file from its first bytes. It does not check
// that the rest of the file is valid. It returns false if the format is
// unknown.
func Sniff(head []byte) (Format, bool) {
	head = head[:min(len(head), HeadLength)]
	has := func(at int, magic string) bool {
		return len(head) >= at+len(magic) && string(head[at:at+len(magic)]) == magic
	}
	switch {
	case has(0, "\xff\xd8\xff"):
		return jpegFormat, true
	case has(0, pngMagic):
		return pngFormat, true
	case has(0, "GIF87a"), has(0, "GIF89a"):
		return gifFormat, true
	case has(0, "RIFF") && has(8, "WEBPVP8"):
		return webpFormat, true
	case slices.ContainsFunc(wavMagic, func(magic string) bool { return has(0, magic) }) && has(8, "WAVE"):
		return wavFormat, true
	case has(4, "ftyp"):
		return sniffISO(head)
	case has(0, "\x1a\x45\xdf\xa3"):
		return webmFormat, readDocType(head) == "webm"
	case has(0, "fLaC"):
		return flacFormat, true
	case has(0, "OggS"):
		p, ok := parseOggPage(head)
		return oggFormat, ok && p.first && parseOggCodec(p.packet) != nil
	case has(0, "glTF"):
		return glbFormat, len(head) >= 12 && binary.LittleEndian.Uint32(head[4:]) == 2
	case has(0, "ID3"):
		_, ok := id3Length(head)
		return mp3Format, ok
	case has(0, "\xff"):
		return mp3Format, startsWithMP3Frames(head, len(head) < HeadLength)
	}
	return Format{}, false
}

// The supported brands (sub-formats) of the ISO base media format. Other
// brands (M4A, 3gp, raw pictures of cameras) are other formats in the same
// container, and avif is listed only to be refused.
var (
	heicBrands = []string{"heic", "heix", "heim", "heis"}
	avifBrands = []string{"avif", "avis"}
	mp4Brands  = []string{
		"isom", "iso2", "iso3", "iso4", "iso5", "iso6", "iso7", "iso8", "iso9",
		"mp41", "mp42", "avc1", "M4V ", "M4VH", "M4VP", "MSNV", "dash",
	}
)

// sniffISO detects the formats that use the boxes of ISO 14496-12, by the
// brands in the first box.
func sniffISO(head []byte) (Format, bool) {
	size := binary.BigEndian.Uint32(head)
	if size < 16 || size%4 != 0 || size > HeadLength || len(head) < int(size) {
		return Format{}, false
	}

	major := string(head[8:12])
	var others []string
	for b := range slices.Chunk(head[16:size], 4) {
		others = append(others, string(b))
	}

	any := func(brands []string) bool {
		return slices.ContainsFunc(others, func(b string) bool { return slices.Contains(brands, b) })
	}
	switch {
	case slices.Contains(heicBrands, major):
		return heicFormat, true
	case major == "mif1" && any(avifBrands):
		return Format{}, false
	case major == "mif1" && any(heicBrands):
		return heicFormat, true
	case major == "mif1":
		return heifFormat, true
	case major == "qt  ":
		return movFormat, true
	case slices.Contains(mp4Brands, major):
		return mp4Format, true
	}
	return Format{}, false
}

// readDocType returns the DocType of an EBML header. It returns "" if there is
// none.
func readDocType(head []byte) string {
	id, size, n := parseEBMLHeader(head)
	if id != ebmlHeader || size < 0 || size > int64(len(head)-n) {
		return ""
	}

	body := head[n : n+int(size)]
	for len(body) > 0 {
		id, size, n := parseEBMLHeader(body)
		if n == 0 || size < 0 || size > int64(len(body)-n) {
			return ""
		}
		if id == ebmlDocType {
			return string(bytes.TrimRight(body[n:n+int(size)], "\x00"))
		}

		body = body[n+int(size):]
	}
	return ""
}
