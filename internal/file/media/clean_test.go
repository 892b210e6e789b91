package media_test

import (
	"bytes"
	"image"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	_ "golang.org/x/image/webp"

	"atelier/internal/base/fault"
	"atelier/internal/file/media"
)

func TestCleaningTakesTheSecretAndLeavesThePixels(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		f, _ := sniff(s.file)
		got, err := clean(f, s.file)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		for _, secret := range []string{"SECRET", "xmpmeta", "script", "Cam\x00", "\x88\x25", "\x25\x88"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s still has %q", s.name, secret)
			}
		}
		if again, err := clean(f, got); err != nil || again != got {
			t.Errorf("%s: cleaning twice changes it, %v", s.name, err)
		}
		before, _, err1 := image.Decode(strings.NewReader(s.file))
		after, _, err2 := image.Decode(strings.NewReader(got))
		if (err1 == nil) != (err2 == nil) || !reflect.DeepEqual(before, after) {
			t.Errorf("%s shows something else: %v, %v", s.name, err1, err2)
		}
	}
}

func TestPhotosKeepTheirWayUpAndTheirColours(t *testing.T) {
	t.Parallel()
	for turn := range 10 {
		file := photo(flag(40, 20), turn)
		if !strings.Contains(file, "SECRET PLACE") {
			t.Fatal("the photo has no place to lose")
		}
		f, _ := sniff(file)
		got, err := clean(f, file)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if 2 <= turn && turn <= 8 {
			want = 1
		}
		only := "Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(rune(turn)) + "\x00\x00\x00\x00\x00\x00"
		if strings.Count(got, "Exif") != want || strings.Count(got, only) != want {
			t.Errorf("turn %d: %q", turn, got[:120])
		}
		if !strings.Contains(got, "ICC_PROFILE\x00\x01\x01profile") || strings.Contains(got, "MPF") || strings.Contains(got, "Photoshop") {
			t.Errorf("turn %d: the profile is gone, or something else is not", turn)
		}
		if !strings.HasSuffix(got, "\xff\xd9") {
			t.Errorf("turn %d: something is left behind the end", turn)
		}
	}
}

func TestAdobeMarkStays(t *testing.T) {
	t.Parallel()
	plain := jpegOf(flag(16, 16))
	file := plain[:2] + segment(0xee, "Adobe\x00\x64\x00\x00\x00\x00\x01SECRET") + plain[2:]
	f, _ := sniff(file)
	if got, err := clean(f, file); err != nil || got != plain[:2]+segment(0xee, "Adobe\x00\x64\x00\x00\x00\x00\x01")+plain[2:] {
		t.Errorf("%q, %v", got[:40], err)
	}
}

func TestPNGChunks(t *testing.T) {
	t.Parallel()
	plain := pngOf(flag(16, 16))
	put := func(chunks string) string { return plain[:pngStart] + chunks + plain[pngStart:] }
	kept := chunk("gAMA", be32(45455)) + chunk("sRGB", "\x00") + chunk("pHYs", be32(1)+be32(1)+"\x00") + chunk("iCCP", "n\x00\x00profile")
	gone := chunk("tEXt", "Author\x00SECRET") + chunk("zTXt", "SECRET") + chunk("iTXt", "SECRET") + chunk("eXIf", exif(6)) +
		chunk("tIME", "1234567") + chunk("caBX", "SECRET") + chunk("tEXt", "")
	file := put(gone + kept + gone)
	f, _ := sniff(file)
	if got, err := clean(f, file); err != nil || got != put(kept) {
		t.Errorf("%q, %v", got, err)
	}
	for name, bad := range map[string]string{
		"an unknown critical chunk": chunk("SECR", "x"),
		"a gamma of five bytes":     chunk("gAMA", "12345"),
		"a second header":           plain[8:pngStart],
		"a chunk of 2 GiB":          "\x80\x00\x00\x00tEXt",
	} {
		if _, err := clean(f, put(bad)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGIFExtensions(t *testing.T) {
	t.Parallel()
	plain := gifOf(2)
	at := strings.Index(plain, "\x21\xff\x0bNETSCAPE2.0")
	if at < 0 {
		t.Fatal("no loop to keep")
	}
	file := plain[:at] + "\x21\xfe\x06SECRET\x00" + "\x21\xff\x0bXMP DataXMP\x06SECRET\x06SECRET\x00" + "\x21\x01\x0c123456789012\x06SECRET\x00" +
		"\x21\xce\x06SECRET\x00" + "\x21\xff\x0bNETSCAPE2.0\x05\x02SECR\x00" + plain[at:]
	f, _ := sniff(file)
	if got, err := clean(f, file); err != nil || got != plain {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWebPChunksBecomeZeros(t *testing.T) {
	t.Parallel()
	file := webpPhoto(30, 20)
	f, _ := sniff(file)
	got, err := clean(f, file)
	if err != nil || len(got) != len(file) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(file), err)
	}
	if got[20] != 0x20 {
		t.Errorf("flags %#x, want those of the profile only", got[20])
	}
	if strings.Count(got, "JUNK") != 3 || !strings.Contains(got, "ICCP") || strings.Contains(got, "EXIF") {
		t.Errorf("%q", got)
	}
	animated := webpAnimation(3, 30, 20)
	if got, err := clean(f, animated); err != nil || strings.Count(got, "JUNK") != 4 || got[20] != 0x02 {
		t.Errorf("animated: %v", err)
	}
	odd := vp8l(30, 20, 255, true)
	if len(odd)%2 == 0 {
		odd += "\x00"
	}
	odd = riff("WEBP", "VP8L"+le32(len(odd))+odd) // the padding of the last chunk is forgotten
	if _, _, err := admit(media.NewAnalyzer(media.Limits{}), odd); err != nil {
		t.Errorf("without padding: %v", err)
	}
}

func TestHEIFItemsBecomeZeros(t *testing.T) {
	t.Parallel()
	file := heif("heic", "mif1")
	f, _ := sniff(file)
	got, err := clean(f, file)
	if err != nil || len(got) != len(file) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(file), err)
	}
	for _, want := range []string{heifPixels, "GRID\x00\x00\x00\x00\x00\x00", "ispe", "irot"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is gone", want)
		}
	}
	at := strings.Index(got, heifPixels) + len(heifPixels)
	if rest := strings.Trim(got[at:len(got)-14], "\x00"); rest != "" {
		t.Errorf("behind the pixels is %q", rest)
	}
	if !strings.HasSuffix(got, "\x00\x00\x00\x0efree\x00\x00\x00\x00\x00\x00") {
		t.Errorf("the last box is %q", got[len(got)-14:])
	}

	check(t, "data first", media.NewAnalyzer(media.Limits{}), heifWith(0, ftyp("heic"), true),
		"The picture is stored with its metadata after its data, which is not supported. Save it again, or as JPEG.")
	check(t, "data beyond the end", media.NewAnalyzer(media.Limits{}), heifWith(10_000, ftyp("heic"), false), "The picture is damaged or incomplete.")
}

func TestHEIFDataMayEndWithTheFile(t *testing.T) {
	t.Parallel()
	file := heif("heic")
	at := strings.Index(file, "mdat") - 4
	end := strings.Index(file, "SECRET gap") + len("SECRET gap")
	file = file[:at] + be32(0) + file[at+4:end]
	f, _ := sniff(file)
	got, err := clean(f, file)
	if err != nil || len(got) != len(file) || strings.Contains(got, "SECRET") || !strings.Contains(got, heifPixels) {
		t.Errorf("%d bytes of %d, %v", len(got), len(file), err)
	}
	cut := file[:strings.Index(file, heifPixels)+5]
	if _, err := clean(f, cut); !fault.Is(err, fault.Invalid) {
		t.Errorf("cut off: %v", err)
	}
}

func TestNothingFollowsAPicture(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		f, _ := sniff(s.file)
		want, _ := clean(f, s.file)
		got, err := clean(f, s.file+"<script>alert(1)</script>")
		switch {
		case f.MimeType == "image/jpeg":
			if err != nil || got != want {
				t.Errorf("%s: %v", s.name, err)
			}
		case f.Type == media.Image && !fault.Is(err, fault.Invalid):
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// TestCleaningNeedsLittleMemory runs alone: it watches the memory of the whole
// process.
func TestCleaningNeedsLittleMemory(t *testing.T) {
	const parts, length = 50, 1 << 20
	plain := pngOf(flag(16, 16))
	data := chunk("IDAT", strings.Repeat("x", length))
	text := chunk("tEXt", strings.Repeat("x", length))
	readers := []io.Reader{strings.NewReader(plain[:pngStart])}
	for range parts / 2 {
		readers = append(readers, strings.NewReader(data), strings.NewReader(text))
	}
	readers = append(readers, strings.NewReader(plain[len(plain)-12:]))
	r := media.Clean(media.Format{Type: media.Image, MimeType: "image/png", Ext: "png"}, io.MultiReader(readers...))
	buffer := make([]byte, 64<<10)
	var n int64
	var err error
	used := allocated(func() { n, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, buffer) })
	if want := int64(pngStart + parts/2*len(data) + 12); n != want || err != nil {
		t.Fatalf("%d bytes, want %d, %v", n, want, err)
	}
	if used > 1<<20 {
		t.Errorf("cleaning %d MiB took %d bytes of memory", parts, used)
	}
}

// allocated returns the number of bytes that the process allocates during a
// call.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestCleanReadsToTheEnd(t *testing.T) {
	t.Parallel()
	r := bytes.NewReader([]byte(jpegOf(flag(16, 16)) + strings.Repeat("x", 1<<20)))
	f := media.Format{Type: media.Image, MimeType: "image/jpeg", Ext: "jpg"}
	if _, err := io.Copy(io.Discard, media.Clean(f, r)); err != nil || r.Len() != 0 {
		t.Errorf("%d bytes are left, %v", r.Len(), err)
	}
}

func TestHEIFPiecesInAnyOrder(t *testing.T) {
	t.Parallel()
	build := func(at int) string {
		return ftyp("heic") + box("meta", be32(0),
			box("pitm", be32(0), be16(1)),
			box("iinf", be32(0), be16(1), box("infe", "\x02\x00\x00\x00", be16(1), be16(0), "hvc1", "\x00")),
			// base 4 bytes, offsets and lengths 4: the second piece, the first, and the second again
			box("iloc", be32(0), "\x44\x40", be16(1), be16(1), be16(0), be32(at), be16(3), be32(10), be32(4), be32(0), be32(4), be32(12), be32(2)),
			box("iprp", box("ipco", box("ispe", be32(0), be32(4), be32(3))), box("ipma", "\x01\x00\x00\x01", be32(1), be32(1), "\x01", be16(1)))) +
			box("mdat", "AAAASECRETBBBB") + box("mdat", "SECRET")
	}
	file := build(strings.Index(build(0), "AAAA"))
	f, _ := sniff(file)
	got, err := clean(f, file)
	if want := strings.ReplaceAll(file, "SECRET", "\x00\x00\x00\x00\x00\x00"); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if facts, err := examine(media.NewAnalyzer(media.Limits{}), f, got); err != nil || facts.Width != 4 || facts.Height != 3 {
		t.Errorf("%dx%d, %v", facts.Width, facts.Height, err)
	}
}
