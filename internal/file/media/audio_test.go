package media_test

import (
	"bytes"
	"math"
	"strings"
	"sync"

	"atelier/internal/file/media"
)

// element is an element of EBML with a size of eight bytes.
func element(id string, body ...string) string {
	all := strings.Join(body, "")
	return id + string([]byte{1}) + be64(len(all))[1:] + all
}

const endless = "\x01\xff\xff\xff\xff\xff\xff\xff"

func ebml(docType string) string {
	return element("\x1a\x45\xdf\xa3", element("\x42\x86", "\x01"), element("\x42\x82", docType))
}

func webmTracks(kind string) string {
	return element("\x16\x54\xae\x6b", element("\xae", element("\xd7", "\x01"), element("\x83", kind), element("\x53\x6e", "SECRET name"),
		element("\xe0", element("\xb0", be16(320)), element("\xba", be16(240)))))
}

func cluster(at int) string {
	return element("\x1f\x43\xb6\x75", element("\xe7", be32(at)), element("\xa3", "\x81\x00\x00\x80frame"))
}

// webmSecrets are tags, chapters and attachments.
func webmSecrets() string {
	return element("\x12\x54\xc3\x67", "SECRET tags") + element("\x10\x43\xa7\x70", "SECRET chapters") + element("\x19\x41\xa4\x69", "SECRET files")
}

// webm is a film of 320 to 240 pixels that lasts for ticks milliseconds.
func webm(docType string, ticks float64) string {
	return ebml(docType) + element("\x18\x53\x80\x67",
		element("\x15\x49\xa9\x66", element("\x2a\xd7\xb1", be32(1e6)), element("\x44\x89", be64(int(math.Float64bits(ticks)))),
			element("\x7b\xa9", "SECRET title"), element("\x4d\x80", "SECRET"), element("\x57\x41", "SECRET")),
		element("\xec", "SECRET rest"), webmTracks("\x01"), cluster(0), cluster(1000), webmSecrets())
}

// webmStream is one that nobody finished: no sizes, no duration.
func webmStream(last int) string {
	open := "\x1f\x43\xb6\x75" + endless
	block := element("\xa3", "\x81\x00\x00\x80frame")
	return ebml("webm") + "\x18\x53\x80\x67" + endless + element("\x15\x49\xa9\x66", element("\x2a\xd7\xb1", be32(1e6))) +
		webmTracks("\x01") + open + element("\xe7", be32(0)) + block + block + open + element("\xe7", be32(last)) + block + webmSecrets()
}

// mp3Frame is a silent frame of 128 kbit/s at 44.1 kHz, with a text in it.
func mp3Frame(text string) string {
	return "\xff\xfb\x90\x00" + text + strings.Repeat("\x00", 417-4-len(text))
}

func id3(n int) string {
	return "ID3\x04\x00\x00" + string([]byte{byte(n >> 21 & 127), byte(n >> 14 & 127), byte(n >> 7 & 127), byte(n & 127)}) + strings.Repeat("\x00", n)
}

// mp3 has a tag, and frames of 26.1 ms.
func mp3(frames int) string {
	return strings.Replace(id3(5000), "\x00\x00\x00\x00\x00\x00", "SECRET", 1) + strings.Repeat(mp3Frame(""), frames)
}

// mp3Counted says in its first frame how many there are.
func mp3Counted(frames int) string {
	return mp3Frame(strings.Repeat("\x00", 32)+"Xing\x00\x00\x00\x01"+be32(frames)) + strings.Repeat(mp3Frame(""), 4)
}

func mp3VBRI(frames int) string {
	return mp3Frame(strings.Repeat("\x00", 32)+"VBRI"+strings.Repeat("\x00", 10)+be32(frames)) + strings.Repeat(mp3Frame(""), 4)
}

func wavFmt(coding, channels, rate, bits int) string {
	each := channels * bits / 8
	return riffChunk("fmt ", le16(coding)+le16(channels)+le32(rate)+le32(rate*each)+le16(each)+le16(bits))
}

// wav has samples of 16 bits in stereo, 8000 a second.
func wav(samples int) string {
	return riff("WAVE", riffChunk("LIST", "INFO SECRET")+wavFmt(1, 2, 8000, 16)+riffChunk("bext", "SECRET")+
		riffChunk("data", strings.Repeat("\x00", 4*samples))+riffChunk("id3 ", "SECRET"))
}

func flac(rate, samples int) string {
	info := strings.Repeat("\x00", 10) + be64(rate<<44|1<<41|15<<36|samples) + strings.Repeat("\x00", 16)
	return "fLaC\x00\x00\x00\x22" + info + "\x06\x00\x00\x06SECRET" + "\x84\x00\x00\x06SECRET" + "\xff\xf8frame"
}

// oggPage is a page of an Ogg file. Its last packet is not complete if open is
// true.
func oggPage(flags byte, granule, serial, number int, open bool, packets ...string) string {
	var lacing []byte
	for i, p := range packets {
		lacing = append(lacing, bytes.Repeat([]byte{255}, len(p)/255)...)
		if !open || i < len(packets)-1 {
			lacing = append(lacing, byte(len(p)%255))
		}
	}
	page := []byte("OggS\x00" + string([]byte{flags}) + le64(granule) + le32(serial) + le32(number) + le32(0) + string([]byte{byte(len(lacing))}) +
		string(lacing) + strings.Join(packets, ""))
	var sum uint32
	for _, b := range page {
		sum ^= uint32(b) << 24
		for range 8 {
			carry := sum>>31 == 1
			if sum <<= 1; carry {
				sum ^= 0x04c11db7
			}
		}
	}
	copy(page[22:], le32(int(sum)))
	return string(page)
}

// parseOggPage is a page with one packet.
func parseOggPage(flags byte, granule, serial int, body string) string {
	return oggPage(flags, granule, serial, 0, false, body)
}

// comments is a list of comments as Vorbis, Opus and FLAC have it.
func comments(vendor string, all ...string) string {
	s := le32(len(vendor)) + vendor + le32(len(all))
	for _, c := range all {
		s += le32(len(c)) + c
	}
	return s
}

const vorbisSetup = "\x05vorbis the codebooks"

// vorbis has comments that begin on one page and end on the next, together with
// the codebooks.
func vorbis(rate, samples int) string {
	head := "\x01vorbis" + le32(0) + "\x02" + le32(rate) + strings.Repeat("\x00", 14)
	text := "\x03vorbis" + comments("SECRET vendor", "prompt="+strings.Repeat("SECRET", 1000)) + "\x01"
	return oggPage(2, 0, 7, 0, false, head) + oggPage(0, -1, 7, 1, true, text[:5100]) + oggPage(1, 0, 7, 2, false, text[5100:], vorbisSetup) +
		oggPage(0, samples, 7, 3, false, "sound", "more sound") + oggPage(4, -1, 7, 4, false, "OggS\x00")
}

func opus(samples int) string {
	return oggPage(2, 0, 7, 0, false, "OpusHead\x01\x02"+le16(312)+le32(44100)+"\x00\x00\x00") +
		oggPage(0, 0, 7, 1, false, "OpusTags"+comments("SECRET vendor", "prompt=SECRET")) + oggPage(4, samples+312, 7, 2, false, "sound")
}

func glb(scene string) string {
	for len(scene)%4 != 0 {
		scene += " "
	}
	body := le32(len(scene)) + "JSON" + scene + le32(4) + "BIN\x00data"
	return "glTF" + le32(2) + le32(len(body)+12) + body
}

const findScene = `{"asset":{"extras":{"prompt":"SECRET {\"a\":[]}"},"version":"2.0","generator":"SECRET"},"extras":["SECRET"],"buffers":[{"uri":"http://127.0.0.1:1/x.bin","byteLength":4}]}`

// sample is a good file and what it is.
type sample struct {
	name, file string
	mime       string
	typ        media.Type
}

// samples are files that must be accepted. Tests do not change them.
var samples = sync.OnceValue(func() []sample {
	return []sample{
		{"jpeg", jpegOf(flag(40, 20)), "image/jpeg", media.Image},
		{"photo", photo(flag(40, 20), 6), "image/jpeg", media.Image},
		{"progressive jpeg", progressive(100, 50, 2), "image/jpeg", media.Image},
		{"png", pngOf(flag(40, 20)), "image/png", media.Image},
		{"animated png", apng(3), "image/png", media.Image},
		{"gif", gifOf(1), "image/gif", media.Image},
		{"animated gif", gifOf(5), "image/gif", media.Image},
		{"webp", riff("WEBP", riffChunk("VP8L", vp8l(30, 20, 255, true))), "image/webp", media.Image},
		{"webp photo", webpPhoto(30, 20), "image/webp", media.Image},
		{"animated webp", webpAnimation(3, 30, 20), "image/webp", media.Image},
		{"heic", heif("heic", "mif1", "heic"), "image/heic", media.Image},
		{"heic as mif1", heif("mif1", "mif1", "heic"), "image/heic", media.Image},
		{"heif", heif("mif1", "mif1"), "image/heif", media.Image},
		{"mp4", mp4("isom", 2500, applyOrientation), "video/mp4", media.Video},
		{"quicktime", mp4("qt  ", 2500, turned), "video/quicktime", media.Video},
		{"webm", webm("webm", 2500), "video/webm", media.Video},
		{"webm stream", webmStream(2500), "video/webm", media.Video},
		{"mp3", mp3(100), "audio/mpeg", media.Audio},
		{"mp3 without a tag", mp3(100)[5010:], "audio/mpeg", media.Audio},
		{"short mp3", strings.Repeat(mp3Frame(""), 2), "audio/mpeg", media.Audio},
		{"mp3 with a tag at its end", strings.Repeat(mp3Frame(""), 3) + "TAGSECRET" + strings.Repeat("\x00", 119), "audio/mpeg", media.Audio},
		{"mp3 with Xing", mp3Counted(100), "audio/mpeg", media.Audio},
		{"mp3 with VBRI", mp3VBRI(100), "audio/mpeg", media.Audio},
		{"wav", wav(20000), "audio/wav", media.Audio},
		{"flac", flac(44100, 110250), "audio/flac", media.Audio},
		{"vorbis", vorbis(44100, 110250), "audio/ogg", media.Audio},
		{"opus", opus(120000), "audio/ogg", media.Audio},
		{"glb", glb(findScene), "model/gltf-binary", media.Model},
	}
})
