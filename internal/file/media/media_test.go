package media_test

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/memory"
	"atelier/internal/file/media"
)

// sniff looks at a file as a caller does.
func sniff(file string) (media.Format, bool) {
	return media.Sniff([]byte(file[:min(len(file), media.HeadLength)]))
}

func clean(f media.Format, file string) (string, error) {
	b, err := io.ReadAll(media.Clean(f, strings.NewReader(file)))
	return string(b), err
}

func examine(l *media.Analyzer, f media.Format, file string) (media.Facts, error) {
	return l.AnalyzeFile(context.Background(), media.DecodeRequest{}, f, strings.NewReader(file), int64(len(file)))
}

// admit takes a file the whole way: recognised, cleaned, examined.
func admit(l *media.Analyzer, file string) (media.Facts, string, error) {
	f, ok := sniff(file)
	if !ok {
		return media.Facts{}, "", fault.New(fault.Invalid, "not recognised")
	}
	cleaned, err := clean(f, file)
	if err != nil {
		return media.Facts{}, "", err
	}
	facts, err := examine(l, f, cleaned)
	return facts, cleaned, err
}

func TestGoodFilesAreRecognised(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		f, ok := sniff(s.file)
		if !ok || f.MimeType != s.mime || f.Type != s.typ || f.Ext == "" || strings.Contains(f.Ext, ".") {
			t.Errorf("%s: %+v, %v", s.name, f, ok)
		}
		if !slices.Contains(media.Formats(), f) {
			t.Errorf("%s: %+v is not listed", s.name, f)
		}
	}
}

func TestOtherFilesAreNot(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"nothing":               "",
		"text":                  "Hello there, this is text.",
		"svg":                   `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		"xml":                   `<?xml version="1.0"?><svg/>`,
		"html":                  "<!doctype html><script>alert(1)</script>",
		"pdf":                   "%PDF-1.7\n",
		"zip":                   "PK\x03\x04" + strings.Repeat("\x00", 40),
		"gzip":                  "\x1f\x8b\x08\x00",
		"tiff":                  "II*\x00\x08\x00\x00\x00",
		"bmp":                   "BM\x00\x00\x00\x00",
		"ico":                   "\x00\x00\x01\x00\x01\x00",
		"elf":                   "\x7fELF\x02\x01\x01",
		"exe":                   "MZ\x90\x00",
		"avif":                  heif("avif", "mif1", "miaf"),
		"avif as mif1":          heif("mif1", "mif1", "avif"),
		"a sound as M4A":        mp4("M4A ", 1, applyOrientation),
		"3gp":                   mp4("3gp5", 1, applyOrientation),
		"a raw picture":         ftyp("crx ", "isom"),
		"an odd ftyp":           "\x00\x00\x00\x11ftypisom\x00\x00\x00\x00x",
		"an ftyp cut off":       "\x00\x00\x00\x20ftypisom",
		"an ftyp of 16 MiB":     "\x01\x00\x00\x00ftypisom" + strings.Repeat("isom", 2000),
		"matroska":              webm("matroska", 1),
		"no doctype":            element("\x1a\x45\xdf\xa3", element("\x42\x86", "\x01")),
		"a doctype cut off":     ebml("webm")[:30],
		"theora":                parseOggPage(2, 0, 7, "\x80theora"+strings.Repeat("\x00", 30)),
		"an ogg without start":  parseOggPage(0, 0, 7, "OpusHead\x01\x02"+strings.Repeat("\x00", 20)),
		"old glTF":              "glTF" + le32(1) + le32(12),
		"one frame of mp3":      mp3Frame(""),
		"frames, then no frame": mp3Frame("") + mp3Frame("") + strings.Repeat("x", 500),
		"aac":                   strings.Repeat("\xff\xf1\x50\x80\x01\x7f\xfc", 100),
		"utf-16":                "\xff\xfeH\x00e\x00l\x00l\x00o\x00",
		"a tag of no length":    "ID3\xff\xff\xff\xff\xff\xff\xff",
		"riff of another kind":  riff("AVI ", riffChunk("LIST", "x")),
	} {
		if f, ok := sniff(head); ok {
			t.Errorf("%s was detected as %s", name, f.MimeType)
		}
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{})
	for _, tt := range []struct {
		sample        string
		width, height int
		duration      time.Duration
		thumb         string
	}{
		{"jpeg", 40, 20, 0, "jpg"},
		{"photo", 20, 40, 0, "jpg"},
		{"progressive jpeg", 100, 50, 0, "jpg"},
		{"png", 40, 20, 0, "jpg"},
		{"animated png", 20, 10, 0, "jpg"},
		{"gif", 20, 10, 0, "jpg"},
		{"animated gif", 20, 10, 0, "jpg"},
		{"webp", 30, 20, 0, "jpg"},
		{"webp photo", 30, 20, 0, "jpg"},
		{"animated webp", 30, 20, 0, ""},
		{"heic", 30, 40, 0, ""},
		{"heic as mif1", 30, 40, 0, ""},
		{"heif", 30, 40, 0, ""},
		{"mp4", 640, 360, 2500 * time.Millisecond, ""},
		{"quicktime", 360, 640, 2500 * time.Millisecond, ""},
		{"webm", 320, 240, 2500 * time.Millisecond, ""},
		{"webm stream", 320, 240, 2500 * time.Millisecond, ""},
		{"mp3", 0, 0, 2606250 * time.Microsecond, ""}, // 41,700 bytes at 128 kbit/s
		{"mp3 without a tag", 0, 0, 2606250 * time.Microsecond, ""},
		{"short mp3", 0, 0, 52125 * time.Microsecond, ""},
		{"mp3 with a tag at its end", 0, 0, 78187500 * time.Nanosecond, ""},
		{"mp3 with Xing", 0, 0, 2612244897 * time.Nanosecond, ""}, // 115,200 samples
		{"mp3 with VBRI", 0, 0, 2612244897 * time.Nanosecond, ""},
		{"wav", 0, 0, 2500 * time.Millisecond, ""},
		{"flac", 0, 0, 2500 * time.Millisecond, ""},
		{"vorbis", 0, 0, 2500 * time.Millisecond, ""},
		{"opus", 0, 0, 2500 * time.Millisecond, ""},
		{"glb", 0, 0, 0, ""},
	} {
		all := samples()
		s := all[slices.IndexFunc(all, func(s sample) bool { return s.name == tt.sample })]
		facts, _, err := admit(analyzer, s.file)
		if err != nil {
			t.Errorf("%s: %v", tt.sample, err)
			continue
		}
		if facts.Width != tt.width || facts.Height != tt.height || facts.Duration != tt.duration || facts.ThumbExt != tt.thumb || facts.MimeType != s.mime {
			t.Errorf("%s: %dx%d, %v, thumbnail %q, %s; want %+v", tt.sample, facts.Width, facts.Height, facts.Duration, facts.ThumbExt, facts.MimeType, tt)
		}
		if (len(facts.Thumb) > 0) != (tt.thumb != "") || (len(facts.Blurhash) == 28) != (tt.thumb != "") {
			t.Errorf("%s: a thumbnail of %d bytes, blurhash %q", tt.sample, len(facts.Thumb), facts.Blurhash)
		}
	}
	if got := len(samples()); got != 28 {
		t.Errorf("%d samples, of which 28 are looked at", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{Pixels: 800, Frames: 3, Duration: 2 * time.Second})
	for _, tt := range []struct {
		name, file, want string
	}{
		{"pixels at the limit", pngOf(flag(40, 20)), ""},
		{"pixels above", pngOf(flag(89, 9)), "The picture has more than 0.0008 megapixels."},
		{"pixels below", jpegOf(flag(17, 47)), ""},
		{"frames at the limit", gifOf(3), ""},
		{"frames below", apng(2), ""},
		{"png frames at the limit", apng(3), ""},
		{"png frames above", apng(4), "The picture has more than 3 frames."},
		{"frames above", gifOf(4), "The picture has more than 3 frames."},
		{"webp frames at the limit", webpAnimation(3, 30, 20), ""},
		{"webp frames above", webpAnimation(4, 30, 20), "The picture has more than 3 frames."},
		{"sound at the limit", wav(16000), ""},
		{"sound below", wav(15999), ""},
		{"sound above", wav(16001), "The recording is longer than 2s."},
		{"pixels of a video", mp4("isom", 1000, applyOrientation), "The video has more than 0.0008 megapixels."},
		{"pixels of a heic above", heif("heic"), "The picture has more than 0.0008 megapixels."},
	} {
		check(t, tt.name, analyzer, tt.file, tt.want)
	}
	analyzer = media.NewAnalyzer(media.Limits{})
	check(t, "ten minutes", analyzer, mp4("isom", 600_000, applyOrientation), "")
	check(t, "ten minutes and a bit", analyzer, mp4("isom", 600_001, applyOrientation), "The video is longer than 10 minutes.")
	check(t, "a sound of many frames", analyzer, mp3Counted(1<<31), "The recording is longer than 10 minutes.")
	check(t, "600 frames", analyzer, gifOf(600), "")
	check(t, "601 frames", analyzer, gifOf(601), "The picture has more than 600 frames.")
}

// TestLimitsAreTold reads the limits from what refuses a file.
func TestLimitsAreTold(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{Pixels: 800, Frames: 3, Duration: 2500 * time.Millisecond, Memory: memory.NewBudget(1000)})
	scene := `{"asset":{"version":"2.0"}}` + strings.Repeat(" ", 16<<20)
	for _, tt := range []struct {
		file, detail string
		want         any
	}{
		{pngOf(flag(89, 9)), "limit_pixels", int64(800)},
		{mp4("isom", 1000, applyOrientation), "limit_pixels", int64(800)},
		{gifOf(4), "limit_frames", 3},
		{wav(24000), "limit_seconds", 2.5},
		{pngOf(flag(40, 20)), "limit_memory_bytes", int64(1000)},
		{"glTF" + le32(2) + le32(20+len(scene)) + le32(len(scene)) + "JSON" + scene, "limit_scene_bytes", 16 << 20},
	} {
		_, _, err := admit(analyzer, tt.file)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.Invalid || f.Details[tt.detail] != tt.want {
			t.Errorf("%s: %v with %v, want %v", tt.detail, err, f.Details, tt.want)
		}
	}
}

// check holds what becomes of a file against a message, "" for none.
func check(t *testing.T, name string, analyzer *media.Analyzer, file, want string) {
	t.Helper()
	_, _, err := admit(analyzer, file)
	got := ""
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Code == fault.Invalid {
		got = e.Message
	} else if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s: %q (%v), want %q", name, got, err, want)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{})
	text := media.Formats()[len(media.Formats())-1]
	if text.Type != media.Text {
		t.Fatalf("the last format is %+v", text)
	}
	for _, tt := range []struct {
		name, file string
		ok         bool
	}{
		{"nothing", "", true},
		{"words", "Grüße, 世界\n", true},
		{"the sign for what cannot be read", "\ufffd", true},
		{"a NUL", "a\x00b", false},
		{"latin-1", "Gr\xfc\xdfe", false},
		{"half a character", "\xe4\xb8", false},
		{"1 MiB", strings.Repeat("x", 1<<20), true},
		{"1 MiB and a byte", strings.Repeat("x", 1<<20+1), false},
	} {
		_, err := examine(analyzer, text, tt.file)
		if (err == nil) != tt.ok || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestTheBytesDecideAndNotTheFormat(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{})
	for _, f := range media.Formats() {
		if f.Type == media.Text {
			continue
		}
		for _, s := range samples() {
			if _, err := examine(analyzer, f, s.file); f.MimeType != s.mime && !fault.Is(err, fault.Invalid) {
				t.Errorf("%s as %s: %v", s.name, f.MimeType, err)
			}
		}
	}
}

// broken is a disk that fails after some bytes.
type brokenDisk struct {
	file string
	at   int64
}

var errDisk = errors.New("the disk is broken")

func (b brokenDisk) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > b.at {
		return 0, errDisk
	}
	return strings.NewReader(b.file).ReadAt(p, offset)
}

func TestFailingStorageIsNoDamage(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{})
	for _, s := range samples() {
		f, _ := sniff(s.file)
		_, err := analyzer.AnalyzeFile(t.Context(), media.DecodeRequest{}, f, brokenDisk{s.file, 0}, int64(len(s.file)))
		if !errors.Is(err, errDisk) || fault.Is(err, fault.Invalid) {
			t.Errorf("examine %s: %v", s.name, err)
		}
		r := io.MultiReader(strings.NewReader(s.file[:len(s.file)/2]), iotest.ErrReader(errDisk))
		if _, err := io.Copy(io.Discard, media.Clean(f, r)); !errors.Is(err, errDisk) || fault.Is(err, fault.Invalid) {
			t.Errorf("clean %s: %v", s.name, err)
		}
	}
	file := pngOf(flag(600, 600))
	f, _ := sniff(file)
	if _, err := analyzer.AnalyzeFile(t.Context(), media.DecodeRequest{}, f, brokenDisk{file, int64(len(file)) - 100}, int64(len(file))); !errors.Is(err, errDisk) {
		t.Errorf("a disk that breaks late: %v", err)
	}
}

func TestExamineEndsWithItsContext(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, s := range samples() {
		f, _ := sniff(s.file)
		if _, err := analyzer.AnalyzeFile(ctx, media.DecodeRequest{}, f, strings.NewReader(s.file), int64(len(s.file))); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestOtherWaysToSayTheSame(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{})
	film := func(parts ...string) string { return ftyp("mp42") + box("moov", parts...) + box("mdat", "x") }
	video := trak("vide", applyOrientation, 640, 360)
	wide := box("mvhd", "\x01\x00\x00\x00", be64(0), be64(0), be32(1000), be64(2500), strings.Repeat("\x00", 80))
	wideTrack := box("trak", box("tkhd", "\x01", strings.Repeat("\x00", 51), turned, strings.Repeat("\x00", 16), be16(640), be16(0), be16(360), be16(0)),
		box("mdia", box("hdlr", be32(0), be32(0), "vide", strings.Repeat("\x00", 13))))
	unknown := strings.Repeat("\xff", 8)
	info := func(duration string) string {
		return element("\x15\x49\xa9\x66", element("\x44\x89", duration)) // a tick is a millisecond where nothing is said
	}
	segment := func(parts ...string) string { return ebml("webm") + element("\x18\x53\x80\x67", parts...) }
	for _, tt := range []struct {
		name, file    string
		width, height int
		duration      time.Duration
	}{
		{"long numbers", film(wide, video), 640, 360, 2500 * time.Millisecond},
		{"long numbers of a track", film(mvhd(1000, 2500), wideTrack), 360, 640, 2500 * time.Millisecond},
		{"unknown", film(mvhd(1000, 1<<32-1), video), 640, 360, 0},
		{"unknown as a long number", film(strings.Replace(wide, be64(2500), unknown, 1), video), 640, 360, 0},
		{"in pieces", film(mvhd(1000, 0), box("mvex", box("mehd", be32(0), be32(2500))), video), 640, 360, 2500 * time.Millisecond},
		{"in pieces, long", film(mvhd(1000, 0), box("mvex", box("mehd", "\x01\x00\x00\x00", be64(2500))), video), 640, 360, 2500 * time.Millisecond},
		{"a long box", ftyp("mp42") + box("moov", mvhd(1000, 2500), video) + be32(1) + "mdat" + be64(20) + "data", 640, 360, 2500 * time.Millisecond},
		{"a box to the end", ftyp("mp42") + box("moov", mvhd(1000, 2500), video) + be32(0) + "mdat" + "data", 640, 360, 2500 * time.Millisecond},
		{"webm with a short number", segment(info(be32(int(math.Float32bits(2500)))), webmTracks("\x01"), cluster(0)), 320, 240, 2500 * time.Millisecond},
		{"webm with no number", segment(info(""), webmTracks("\x01"), cluster(7)), 320, 240, 7 * time.Millisecond},
		{"webm of no time at all", segment(info(be64(int(math.Float64bits(-5)))), webmTracks("\x01"), cluster(0)), 320, 240, 0},
		{"wav from a pipe", "RIFF\xff\xff\xff\xffWAVE" + wavFmt(1, 1, 8000, 8) + "data\xff\xff\xff\xff" + strings.Repeat("x", 20000), 0, 0, 2500 * time.Millisecond},
		{"flac of unknown length", flac(44100, 0), 0, 0, 0},
		{"mono mp3 of 22 kHz", strings.Repeat("\xff\xf3\x90\xc0"+strings.Repeat("\x00", 261-4), 4), 0, 0, 104400 * time.Microsecond},
	} {
		facts, _, err := admit(analyzer, tt.file)
		if err != nil || facts.Width != tt.width || facts.Height != tt.height || facts.Duration != tt.duration {
			t.Errorf("%s: %dx%d, %v, %v; want %dx%d, %v", tt.name, facts.Width, facts.Height, facts.Duration, err, tt.width, tt.height, tt.duration)
		}
	}
}
