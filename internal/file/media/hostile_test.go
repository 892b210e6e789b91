package media_test

import (
	"bytes"
	"compress/zlib"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/file/media"
)

// lossy is the head of a WebP picture without its data.
func lossy(w, h int) string {
	return riff("WEBP", riffChunk("VP8 ", "\x10\x00\x00\x9d\x01\x2a"+le16(w)+le16(h)+"data"))
}

// pngHeader is a picture of a size that has no more than some bytes of data.
func pngHeader(w, h int, depth, colour, data string) string {
	return "\x89PNG\r\n\x1a\n" + chunk("IHDR", be32(w)+be32(h)+depth+colour+"\x00\x00\x00") + chunk("IDAT", data) + chunk("IEND", "")
}

func deflated(s string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

// gifBomb is a GIF file with frames of a pixel.
func gifBomb(w, h, frames int) string {
	return "GIF89a" + le16(w) + le16(h) + "\x80\x00\x00" + "\x00\x00\x00\xff\xff\xff" +
		strings.Repeat("\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00", frames) + "\x3b"
}

func jpegHeader(marker byte, w, h int) string {
	return "\xff\xd8" + segment(0xdb, "\x00"+strings.Repeat("\x01", 64)) +
		segment(marker, "\x08"+be16(h)+be16(w)+"\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00") +
		segment(0xda, "\x03\x01\x00\x02\x00\x03\x00\x00\x3f\x00") + "data\xff\xd9"
}

func nested(kind string, depth int) string {
	s := ""
	for range depth {
		s = box(kind, s)
	}
	return s
}

// manyChunks are the offsets of chunks of a byte that do not touch.
func manyChunks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(be32(2 * i))
	}
	return b.String()
}

func manyStreams(n int) string {
	s := ""
	for i := range n {
		s += parseOggPage(2, 0, i, "OpusHead\x01\x02"+strings.Repeat("\x00", 20))
	}
	return s
}

// endlessSetup is a Vorbis stream with codebooks of several megabytes.
func endlessSetup() string {
	s := vorbis(44100, 1)[:28+30] + oggPage(0, 0, 7, 1, false, "\x03vorbis"+comments("")+"\x01")
	for i := range 60 {
		s += oggPage(byte(min(i, 1)), -1, 7, 2+i, true, "\x05vorbis"+strings.Repeat("x", 255*200-7))
	}
	return s + oggPage(1, 0, 7, 99, false, "end") + oggPage(4, 1, 7, 100, false, "sound")
}

// hostile are files that must be rejected. Tests do not change them.
var hostile = sync.OnceValue(func() map[string]string {
	good := map[string]string{}
	for _, s := range samples() {
		good[s.name] = s.file
	}
	html := "<html><script>alert(1)</script></html>"
	moov := func(parts ...string) string { return ftyp("isom") + box("mdat", "x") + box("moov", parts...) }
	heic := func(parts ...string) string {
		return ftyp("heic") + box("meta", be32(0), strings.Join(parts, "")) + box("mdat", "x")
	}
	patch := func(file, old, new string) string {
		if !strings.Contains(file, old) {
			panic("nothing to patch: " + old)
		}
		return strings.Replace(file, old, new, 1)
	}
	long := be32(1) + "mdat" + be64(1<<62)
	seg := "\x18\x53\x80\x67"
	return map[string]string{
		// pixels
		"png of 2^31 by 2^31":              pngHeader(1<<31-1, 1<<31-1, "\x08", "\x06", "x"),
		"png of 50 megapixels and a row":   pngHeader(10000, 5001, "\x08", "\x06", strings.Repeat("x", 1<<20)),
		"png of 50 megapixels of nothing":  pngHeader(10000, 5000, "\x10", "\x06", "x"),
		"png of a side of none":            pngHeader(0, 5, "\x08", "\x06", "x"),
		"png of an unknown colour":         pngHeader(5, 5, "\x08", "\x05", "x"),
		"png of an odd depth":              pngHeader(5, 5, "\xff", "\x06", "x"),
		"png with too few rows":            pngHeader(1000, 1000, "\x08", "\x00", deflated(strings.Repeat("\x00", 500_000))),
		"jpeg of 65535 by 65535":           jpegHeader(0xc0, 65535, 65535),
		"jpeg of 50 megapixels of nothing": jpegHeader(0xc2, 10000, 5000),
		"jpeg of a side of none":           jpegHeader(0xc0, 0, 100),
		"jpeg without loss":                jpegHeader(0xc3, 10, 10),
		"jpeg of 101 scans":                progressive(1000, 1000, 101),
		"jpeg of two frames":               patch(good["jpeg"], "\xff\xc0", segment(0xc0, "\x08"+be16(9)+be16(9)+"\x01\x01\x11\x00")+"\xff\xc0"),
		"jpeg without a scan":              "\xff\xd8\xff\xd9",
		"jpeg of a short segment":          "\xff\xd8\xff\xe1\x00\x01\xff\xd9",
		"jpeg of fill bytes":               "\xff\xd8" + strings.Repeat("\xff", 1<<20),
		"jpeg of nothing":                  "\xff\xd8\xff" + strings.Repeat("\x00", 1<<20),
		"jpeg of a scan before its frame":  "\xff\xd8" + segment(0xda, "\x01\x01\x00\x00\x3f\x00") + "\xff\xd9",
		"gif of 65535 by 65535":            gifBomb(65535, 65535, 1),
		"gif of a side of none":            gifBomb(0, 10, 1),
		"webp of 16383 by 16383":           lossy(16383, 16383),
		"webp without loss of 16384":       riff("WEBP", riffChunk("VP8L", vp8l(16384, 16384, 0, false))),
		"webp canvas of 2^24":              riff("WEBP", vp8x(0, 1<<24, 1<<24)+riffChunk("VP8L", vp8l(9, 9, 0, false))),
		"webp of two sizes":                riff("WEBP", vp8x(0, 9, 9)+riffChunk("VP8L", vp8l(4000, 4000, 0, false))),
		"webp without pixels":              riff("WEBP", riffChunk("VP8L", vp8l(500, 500, 0, false))),
		"heic of 2^31":                     patch(good["heic"], be32(40)+be32(30), be32(1<<31-1)+be32(1<<31-1)),
		"heic of no size":                  patch(good["heic"], be32(40)+be32(30), be32(0)+be32(30)),
		// frames
		"gif of 100,000 frames":  gifBomb(1, 1, 100_000),
		"png of 100,000 frames":  apng(100_000),
		"webp of 10,000 frames":  webpAnimation(10_000, 4, 4),
		"webp frame outside":     patch(good["animated webp"], le24(29)+le24(19)+le24(100), le24(90)+le24(19)+le24(100)),
		"png frame outside":      patch(good["animated png"], be32(20)+be32(10)+be32(0)+be32(0)+be16(1), be32(20)+be32(10)+be32(1)+be32(0)+be16(1)),
		"webp frames of a still": patch(webpAnimation(1, 9, 9), "\x06\x00\x00\x00", "\x04\x00\x00\x00"),
		"webp frame of no frame": riff("WEBP", vp8x(2, 9, 9)+riffChunk("ANMF", strings.Repeat("\x00", 15))),
		// polyglots
		"png and html":        good["png"] + html,
		"gif and a jar":       good["gif"] + "PK\x03\x04" + html,
		"webp and html":       good["webp"] + html,
		"gif of html":         "GIF89a/*" + html + "*/",
		"jpeg of html":        "\xff\xd8\xff" + html,
		"png of html":         "\x89PNG\r\n\x1a\n" + html,
		"webp of html":        "RIFF\xff\xff\xff\xffWEBPVP8 " + html,
		"mp4 of html":         ftyp("isom") + html,
		"mp3 of html":         id3(10) + html + strings.Repeat(" ", 10_000),
		"wav of html":         "RIFF\x00\x00\x00\x00WAVE" + html,
		"flac of html":        "fLaC" + html,
		"glb of html":         "glTF" + le32(2) + le32(12+len(html)) + html,
		"ogg of html":         parseOggPage(2, 0, 7, "OpusHead\x01\x02"+strings.Repeat("\x00", 20)) + html,
		"webm of html":        ebml("webm") + html,
		"pdf in a png's end":  good["png"] + "%PDF-1.7",
		"gif block of nobody": patch(good["gif"], "\x2c\x00\x00\x00\x00", "\x77\x00\x00\x00\x00"),
		// boxes
		"mp4 with a huge box":          ftyp("isom") + long,
		"mp4 with a box of 2^64":       ftyp("isom") + be32(1) + "mdat" + "\xff\xff\xff\xff\xff\xff\xff\xff",
		"mp4 with a box of 4":          ftyp("isom") + be32(4) + "mdat" + strings.Repeat("\x00", 100),
		"mp4 with a long box of 9":     ftyp("isom") + be32(1) + "mdat" + be64(9) + "xxx",
		"mp4 of empty boxes":           ftyp("isom") + strings.Repeat(box("free"), 200_000),
		"mp4 of boxes in boxes":        moov(nested("trak", 20_000)),
		"mp4 of media in media":        moov(mvhd(1, 1), box("trak", nested("mdia", 20_000))),
		"mp4 of empty tracks":          moov(strings.Repeat(box("trak"), 50_000)),
		"mp4 without a movie":          ftyp("isom") + box("mdat", "x"),
		"mp4 without data":             ftyp("isom") + box("moov", mvhd(1, 1), trak("vide", applyOrientation, 9, 9)),
		"mp4 without video":            moov(mvhd(1, 1), trak("soun", applyOrientation, 0, 0)),
		"mp4 without a time scale":     moov(mvhd(0, 1), trak("vide", applyOrientation, 9, 9)),
		"mp4 of 2^32 seconds":          moov(mvhd(1, 1<<32-2), trak("vide", applyOrientation, 9, 9)),
		"mp4 of a short header":        moov(box("mvhd", be32(0)), trak("vide", applyOrientation, 9, 9)),
		"mp4 of a short track":         moov(mvhd(1, 1), box("trak", box("tkhd", be32(0)))),
		"mp4 of a side of none":        moov(mvhd(1, 1), trak("vide", applyOrientation, 0, 9)),
		"mp4 of two movies":            good["mp4"] + box("moov", mvhd(1, 1)),
		"mp4 of pieces that never end": moov(mvhd(1, 0), box("mvex", box("mehd", "\x01\x00\x00\x00", be64(1<<62))), trak("vide", applyOrientation, 9, 9)),
		"heic with a huge box":         ftyp("heic") + long,
		"heic of boxes in boxes":       heic(nested("iprp", 20_000)),
		"heic of empty boxes":          heic(strings.Repeat(box("free"), 50_000)),
		"heic of a huge description":   ftyp("heic") + box("meta", strings.Repeat("\x00", 1<<20)),
		"heic of 65535 places":         heic(box("iloc", "\x01\x00\x00\x00", "\x00\x00", be16(65535), strings.Repeat(be16(1)+be16(0)+be16(0)+be16(65535), 20_000))),
		"heic of places without end":   heic(box("iloc", "\x02\x00\x00\x00", "\x44\x00", be32(1<<32-1))),
		"heic of links without end":    heic(box("iprp", box("ipma", be32(0), be32(1<<32-1), strings.Repeat(be16(1)+"\xff"+strings.Repeat("\x01", 255), 1000)))),
		"heic of endless boxes":        patch(good["heic"], be32(14)+"uuid", be32(0)+"uuid"),
		"heic of data elsewhere":       patch(good["heic"], be16(1)+be16(0)+be16(0)+be16(1), be16(1)+be16(0)+be16(1)+be16(1)),
		"heic of 2 descriptions":       good["heic"] + box("meta", be32(0)),
		// elements
		"webm of empty elements":  ebml("webm") + seg + endless + strings.Repeat("\xec\x80", 300_000),
		"webm of endless infos":   ebml("webm") + seg + endless + strings.Repeat("\x15\x49\xa9\x66"+endless, 1000),
		"webm in webm":            ebml("webm") + strings.Repeat(seg+endless, 50_000),
		"webm clusters in one":    ebml("webm") + seg + endless + strings.Repeat("\x1f\x43\xb6\x75"+endless, 200_000),
		"webm of a huge element":  ebml("webm") + seg + "\x01\x00\xff\xff\xff\xff\xff\xff",
		"webm of a long number":   ebml("webm") + element(seg, element("\x15\x49\xa9\x66", element("\x2a\xd7\xb1", "123456789"))),
		"webm that lasts forever": webm("webm", 1e300),
		"webm without video":      patch(good["webm"], element("\x83", "\x01"), element("\x83", "\x02")),
		"webm without clusters":   ebml("webm") + element(seg, webmTracks("\x01")),
		"webm of odd headers":     ebml("webm") + element(seg, element("\x16\x54\xae\x6b", element("\xae", element("\xd7", "\x01"), element("\x83", "\x02"), element("\x86", "A_VORBIS"), element("\x63\xa2", "\x02\xff\xff\x05short")))),
		// samples
		"mp4 of 2^32 chunks":      moov(mvhd(1, 1), fullTrack(1, "vide", table("stco", 1<<32-1, 5))),
		"mp4 of 2^32 sizes":       moov(mvhd(1, 1), fullTrack(1, "vide", table("stsc", 1, 1, 1<<32-1, 1), table("stsz", 0, 1<<32-1), table("stco", 1, 5))),
		"mp4 of a million chunks": moov(mvhd(1, 1), fullTrack(1, "vide", table("stsc", 1, 1, 1, 1), table("stsz", 1, 1<<20), box("stco", be32(0), be32(1<<20), manyChunks(1<<20)))) + strings.Repeat("\x00", 1<<20),
		"mp4 of chunks backwards": moov(mvhd(1, 1), fullTrack(1, "vide", table("stsc", 2, 1, 1, 1, 0, 1, 1), table("stsz", 1, 4), table("stco", 2, 5, 6))),
		"mp4 of 2^32 samples":     good["mp4"] + box("moof", box("traf", box("tfhd", be32(0x20000), be32(1)), box("trun", be32(0x201), be32(1<<32-1), be32(0), be32(1)))),
		"mp4 of one ID":           moov(mvhd(1, 1), fullTrack(1, "vide"), fullTrack(1, "soun")),
		"mp4 of a short entry":    moov(mvhd(1, 1), fullTrack(1, "vide", box("stsd", be32(0), be32(1), box("avc1", "short")))),
		"mp4 of samples too soon": good["mp4"] + box("moof", box("traf", box("trun", be32(0), be32(1)))),
		// sounds
		"mp3 of frames and junk":   strings.Repeat(strings.Repeat(mp3Frame(""), 4)+"junk", 10_100),
		"flac of a huge block":     good["flac"][:42] + "\x84\xff\xff\xff" + "\xff\xf8",
		"ogg of many streams":      manyStreams(100),
		"ogg of endless setup":     endlessSetup(),
		"ogg of sound in headers":  oggPage(2, 0, 7, 0, false, "OpusHead\x01\x02"+strings.Repeat("\x00", 20)) + oggPage(0, 0, 7, 1, false, "OpusTags", "sound"),
		"ogg of two first packets": oggPage(2, 0, 7, 0, false, "OpusHead\x01\x02"+strings.Repeat("\x00", 20), "SECRET") + oggPage(0, 0, 7, 1, false, "OpusTags"),
		"ogg without comments":     oggPage(2, 0, 7, 0, false, "OpusHead\x01\x02"+strings.Repeat("\x00", 20)) + oggPage(0, 0, 7, 1, false, "sound"),
		"wav of 4 GiB of data":     riff("WAVE", wavFmt(1, 2, 8000, 16)+"data"+le32(1<<32-2)+"xxxx"),
		"wav of 4 GiB of format":   riff("WAVE", "fmt "+le32(1<<32-2)+strings.Repeat("\x00", 50)),
		"wav of no rate":           riff("WAVE", wavFmt(1, 2, 0, 16)+riffChunk("data", "xxxx")),
		"wav of no channels":       riff("WAVE", wavFmt(1, 0, 8000, 16)+riffChunk("data", "xxxx")),
		"wav of one a second":      riff("WAVE", wavFmt(1, 1, 1, 8)+riffChunk("data", strings.Repeat("x", 1000))),
		"wav of mp3":               riff("WAVE", wavFmt(0x55, 2, 8000, 16)+riffChunk("data", "xxxx")),
		"wav of empty chunks":      riff("WAVE", strings.Repeat(riffChunk("JUNK", ""), 100_000)),
		"wav of no format":         riff("WAVE", riffChunk("data", "xxxx")),
		"wav of two formats":       riff("WAVE", wavFmt(1, 2, 8000, 16)+wavFmt(1, 2, 8000, 16)+riffChunk("data", "xxxx")),
		"mp3 of a huge tag":        "ID3\x04\x00\x00\x7f\x7f\x7f\x7f" + strings.Repeat(mp3Frame(""), 10),
		"mp3 of tags":              strings.Repeat(id3(0), 100_000),
		"mp3 of almost frames":     id3(10) + strings.Repeat("\xff\xfb\x90\x00", 100_000),
		"mp3 of frames apart":      id3(10) + strings.Repeat(mp3Frame("")+"x", 100),
		"mp3 of 2^32 frames":       mp3Counted(1<<32 - 1),
		"flac of no rate":          flac(0, 1),
		"flac of 2^36 samples":     flac(1, 1<<36-1),
		"flac of empty metadata":   good["flac"][:42] + strings.Repeat("\x01\x00\x00\x00", 100_000),
		"flac of no sound":         good["flac"][:42] + "\x84\x00\x00\x00",
		"ogg of 2^62 samples":      opus(1 << 62),
		"ogg of no rate":           vorbis(0, 100),
		"ogg of another stream":    parseOggPage(2, 0, 7, "OpusHead\x01\x02"+strings.Repeat("\x00", 20)) + parseOggPage(4, 9, 8, "x"),
		"ogg of signatures":        parseOggPage(2, 0, 7, "OpusHead\x01\x02"+strings.Repeat("\x00", 20)) + strings.Repeat("OggS\x00", 20_000),
		// models
		"glb of another length":  good["glb"] + "x",
		"glb of no scene":        glb(`{}`),
		"glb of a broken scene":  glb(`{"asset":{"version":"2.0"}`),
		"glb of an odd asset":    glb(`{"asset":["2.0"]}`),
		"glb of names":           glb(`{"asset":{"version":"2.0"},1:2}`),
		"glb of objects":         glb(strings.Repeat(`{"a":`, 1<<18)),
		"glb of brackets":        glb(strings.Repeat("[", 1<<20)),
		"glb of a huge scene":    patch(good["glb"], le32(len(good["glb"])-32), le32(1<<32-1)),
		"glb of 17 MiB of scene": glb(`{"asset":{"version":"2.0"},"x":"` + strings.Repeat("x", 17<<20) + `"}`),
		"glb of empty parts": func() string {
			s := glb(findScene) + strings.Repeat(le32(0)+"BIN\x00", 100_000)
			return s[:8] + le32(len(s)) + s[12:]
		}(),
		"glb without a scene": patch(good["glb"], "JSON", "BIN\x00"),
		// endless parts of nothing
		"gif of empty comments": "GIF89a" + le16(1) + le16(1) + "\x00\x00\x00" + strings.Repeat("\x21\xfe\x00", 300_000),
		"png of empty chunks":   good["png"][:pngStart] + strings.Repeat(chunk("tEXt", ""), 100_000),
		"webp of empty chunks":  riff("WEBP", vp8x(0, 9, 9)+strings.Repeat(riffChunk("what", ""), 100_000)),
		"jpeg of comments":      "\xff\xd8" + strings.Repeat(segment(0xfe, ""), 200_000),
		"webp of a huge chunk":  "RIFF\xff\xff\xff\xffWEBPVP8X" + le32(1<<32-1) + "xxxx",
		"webp chunk of 2^32":    riff("WEBP", vp8x(0, 9, 9)+"EXIF"+le32(1<<32-1)),
		"webp of no chunk":      riff("WEBP", "VP8 "),
		"webp of an odd tail":   riff("WEBP", riffChunk("VP8L", vp8l(9, 9, 0, true))+"xxx"),
	}
})

// spent is the time that the process has used its processors for, which does
// not depend on who else uses them.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// raced tells whether the race detector is in, which makes all slower.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestHostileFilesAreRefused runs alone: it watches the memory and the time of
// the whole process.
func TestHostileFilesAreRefused(t *testing.T) {
	analyzer := media.NewAnalyzer(media.Limits{})
	most := time.Second
	if raced() {
		most *= 10
	}
	for name, file := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := spent(t)
		f, ok := sniff(file)
		var err error
		var copied int
		if ok {
			var cleaned string
			cleaned, err = clean(f, file)
			copied = 6 * len(cleaned) // what the test itself holds
			if err == nil {
				_, err = examine(analyzer, f, cleaned)
			}
		}
		took := spent(t) - start
		runtime.ReadMemStats(&after)
		if ok && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if took > most {
			t.Errorf("%s took %v", name, took)
		}
		if used := int64(after.TotalAlloc-before.TotalAlloc) - int64(copied); used > 64<<20 {
			t.Errorf("%s took %d MiB", name, used>>20)
		}
	}
}

func TestCutFilesAreRefused(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{})
	for _, s := range samples() {
		// Of these the end cannot be told from the structure alone.
		loose := strings.Contains(s.name, "mp3") || s.name == "flac" || s.name == "vorbis" || s.name == "opus" || s.name == "webm stream"
		for n := 0; n < len(s.file); n += 1 + len(s.file)/80 {
			if n == len(s.file)-len(box("uuid", "SECRET")) && s.typ == media.Image || s.name == "photo" && n >= len(s.file)-len("SECRET trailer") {
				continue // a whole file, of which something was cut that goes anyway
			}
			_, _, err := admit(analyzer, s.file[:n])
			if err == nil && !loose || err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("%s cut to %d of %d bytes: %v", s.name, n, len(s.file), err)
			}
		}
	}
}

func TestChangedBytesNeverPanic(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{Pixels: 1e6})
	for i, s := range samples() {
		random := rand.New(rand.NewPCG(7, uint64(i)))
		for range 80 {
			b := []byte(s.file)
			for range 1 + random.IntN(4) {
				b[random.IntN(min(len(b), 600))] = byte(random.IntN(256))
			}
			if _, _, err := admit(analyzer, string(b)); err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	}
}

func TestDamageInsideIsFound(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{})
	file := pngOf(flag(300, 300))
	b := []byte(file)
	b[len(b)/2] ^= 0x55
	check(t, "a bit of a png", analyzer, string(b), "The picture is damaged or incomplete.")
	file = jpegOf(flag(300, 300))
	check(t, "half of a jpeg", analyzer, file[:len(file)/2]+"\xff\xd9", "The picture is damaged or incomplete.")
	check(t, "a jpeg without tables", analyzer, strings.ReplaceAll(file, "\xff\xc4", "\xff\xfe"), "The picture is damaged or incomplete.")
	file = gifOf(1)
	at := strings.Index(file, "\x2c\x00\x00\x00\x00") + 10
	check(t, "a gif with bad codes", analyzer, file[:at]+"\x02\x02\xff\xff\x00\x3b", "The picture is damaged or incomplete.")
}
