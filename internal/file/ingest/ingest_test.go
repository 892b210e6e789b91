package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/file/ingest"
	"atelier/internal/file/media"
)

func TestTake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		bytes         []byte
		kind          media.Type
		mime, ext     string
		width, height int
		duration      time.Duration
		changed       bool // by cleaning
		thumb         bool
	}{
		{"png", pngBytes(640, 360), media.Image, "image/png", "png", 640, 360, 0, false, true},
		{"jpeg with a place", jpegBytes(300, 400), media.Image, "image/jpeg", "jpg", 300, 400, 0, true, true},
		{"gif", gifBytes(20, 30), media.Image, "image/gif", "gif", 20, 30, 0, false, true},
		{"wav", wavBytes(88200), media.Audio, "audio/wav", "wav", 0, 0, time.Second, false, false},
		{"wav with a prompt", taggedWAV(88200), media.Audio, "audio/wav", "wav", 0, 0, time.Second, true, false},
		{"glb", glbBytes(), media.Model, "model/gltf-binary", "glb", 0, 0, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newFixture(t)
			stored := p.ingestFile(c.bytes, ingest.Options{MaxBytes: int64(len(c.bytes))})
			a := stored.Asset
			if a.Type != string(c.kind) || a.MimeType != c.mime || a.Width != c.width || a.Height != c.height || a.Duration != c.duration || a.AccountID != "" {
				t.Errorf("asset = %+v", a)
			}
			if want := regexp.MustCompile(`^media/(..)/` + a.ID + `\.` + c.ext + `$`); !want.MatchString(a.Blob) || a.Blob[6:8] != a.ID[:2] {
				t.Errorf("key = %q of %q", a.Blob, a.ID)
			}
			if stored.RawSHA256 != sum(c.bytes) || stored.RawSize != int64(len(c.bytes)) {
				t.Errorf("raw = %s, %d bytes, want what was sent", stored.RawSHA256, stored.RawSize)
			}
			content := p.readBlob(a.Blob)
			if a.SHA256 != sum(content) || a.Size != int64(len(content)) {
				t.Errorf("sum and size are not those of the stored bytes")
			}
			if changed := !bytes.Equal(content, c.bytes); changed != c.changed || bytes.Contains(content, []byte("GPS")) || bytes.Contains(content, []byte("SECRET")) {
				t.Errorf("changed = %v, want %v, and no place or prompt", changed, c.changed)
			}
			if (a.Thumb != "") != c.thumb || (a.Blurhash != "") != c.thumb {
				t.Fatalf("thumb = %q, blurhash = %q", a.Thumb, a.Blurhash)
			}
			if c.thumb {
				if f, ok := media.Sniff(p.readBlob(a.Thumb)); !ok || f.Type != media.Image {
					t.Errorf("the thumbnail is no picture")
				}
			}
			want := 1
			if c.thumb {
				want = 2
			}
			if all := p.listFiles(); len(all) != want {
				t.Errorf("files = %v, want %d", all, want)
			}
			p.DiscardFiles(t.Context(), stored)
			if all := p.listFiles(); len(all) != 0 {
				t.Errorf("after Drop there are %v", all)
			}
		})
	}
}

// A file that nobody will look at is measured and not decoded. What its structure
// tells is refused all the same.
func TestBare(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	bare := ingest.Options{MaxBytes: noLimit, NoThumbnail: true}
	for mime, b := range map[string][]byte{"image/png": pngBytes(640, 360), "image/jpeg": jpegBytes(640, 360), "image/gif": gifBytes(640, 360)} {
		stored := p.ingestFile(b, bare)
		a := stored.Asset
		if a.MimeType != mime || a.Width != 640 || a.Height != 360 || a.Thumb != "" || a.Blurhash != "" || a.PictureBytes != 0 {
			t.Errorf("%s: asset = %+v", mime, a)
		}
		if content := p.readBlob(a.Blob); a.SHA256 != sum(content) || bytes.Contains(content, []byte("GPS")) {
			t.Errorf("%s: the stored bytes are others, or tell the place", mime)
		}
		p.DiscardFiles(t.Context(), stored)
	}
	sound := p.ingestFile(wavBytes(88200), bare)
	if sound.Asset.Duration != time.Second {
		t.Errorf("sound = %+v", sound.Asset)
	}
	p.DiscardFiles(t.Context(), sound)

	whole := pngBytes(64, 64)
	for name, b := range map[string][]byte{
		"cut png":            whole[:len(whole)-20],
		"png of other bytes": flip(whole, len(whole)/2),
		"cut jpeg":           jpegBytes(32, 32)[:200],
		"cut gif":            gifBytes(20, 30)[:40],
		"huge claim":         hugePNG(),
		"glb too short":      glbBytes()[:16],
	} {
		_, err := p.IngestFile(t.Context(), bytes.NewReader(b), bare)
		p.wantFault(name, err, fault.Invalid)
	}
}

// TestLargeFilesLeaveNoTemporaryFiles stores a sound that is too long for
// memory, once with success and once with a reader that fails.
func TestLargeFilesLeaveNoTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	p := newFixture(t)
	b := taggedWAV(4 << 20)
	packet := []byte("<x:xmpmeta>ours</x:xmpmeta>")
	stored := p.ingestFile(b, ingest.Options{MaxBytes: noLimit, XMP: packet})
	content := p.readBlob(stored.Asset.Blob)
	if bytes.Contains(content, []byte("SECRET")) || !bytes.Contains(content, packet) || !bytes.Contains(content, make([]byte, 4<<20)) {
		t.Errorf("%d bytes of %d are stored with a foreign tag, without ours or without the sound", len(content), len(b))
	}
	p.DiscardFiles(t.Context(), stored)

	broken := errors.New("the connection is lost")
	_, err := p.IngestFile(t.Context(), io.MultiReader(bytes.NewReader(b), iotest.ErrReader(broken)), ingest.Options{MaxBytes: noLimit})
	if !errors.Is(err, broken) {
		t.Errorf("error = %v, want that of the reader", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || len(p.listFiles()) > 0 {
		t.Errorf("files are left: %v, %v, %v", left, p.listFiles(), err)
	}
}

func TestSizeLimit(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	b := wavBytes(10_000)
	size := int64(len(b))
	for _, most := range []int64{size + 1, size} {
		p.DiscardFiles(t.Context(), p.ingestFile(b, ingest.Options{MaxBytes: most}))
	}
	for _, most := range []int64{size - 1, 4096, 10, 0} {
		_, err := p.IngestFile(t.Context(), bytes.NewReader(b), ingest.Options{MaxBytes: most})
		if f := p.wantFault("too large", err, fault.UploadTooLarge); f.Details["limit_bytes"] != most {
			t.Errorf("limit %d: details = %v", most, f.Details)
		}
	}
	// A reader that gives byte by byte reaches the same limit.
	_, err := p.IngestFile(t.Context(), iotest.OneByteReader(bytes.NewReader(b)), ingest.Options{MaxBytes: size - 1})
	p.wantFault("byte by byte", err, fault.UploadTooLarge)
}

// What never ends is left at the limit, whatever cleaning does with it.
func TestEndlessStreams(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	for name, head := range map[string][]byte{"wav": wavHeader(1 << 30), "png with a tail": pngBytes(8, 8), "jpeg": jpegBytes(8, 8)} {
		tail := &endless{from: []byte("tail")}
		_, err := p.IngestFile(t.Context(), io.MultiReader(bytes.NewReader(head), tail), ingest.Options{MaxBytes: 1 << 20})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.UploadTooLarge && f.Code != fault.Invalid {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
		if tail.n > 1<<20+64<<10 {
			t.Errorf("%s: %d bytes were read", name, tail.n)
		}
		if left := p.listFiles(); len(left) != 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

func TestNotAccepted(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	for name, b := range map[string]string{
		"nothing": "", "one byte": "x", "text": "hello", "svg": `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		"html": "<!doctype html><script>alert(1)</script>", "pdf": "%PDF-1.7\n", "zip": "PK\x03\x04" + strings.Repeat("\x00", 60),
		"program": "\x7fELF" + strings.Repeat("\x00", 60), "half a magic": "\x89PN",
	} {
		_, err := p.IngestFile(t.Context(), strings.NewReader(b), ingest.Options{MaxBytes: noLimit})
		p.wantFault(name, err, fault.UnsupportedMediaType)
	}
	_, err := p.IngestFile(t.Context(), bytes.NewReader(pngBytes(4, 4)), ingest.Options{MaxBytes: noLimit, Types: []media.Type{media.Video, media.Audio}})
	p.wantFault("a picture for a video", err, fault.UnsupportedMediaType)
	_, err = p.IngestFile(t.Context(), strings.NewReader("hello"), ingest.Options{MaxBytes: noLimit, Types: []media.Type{media.Text}})
	p.wantFault("text that nobody wants", err, fault.UnsupportedMediaType)
	p.ingestFile(pngBytes(4, 4), ingest.Options{MaxBytes: noLimit, Types: []media.Type{media.Video, media.Image}})
}

func TestDeclared(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	b := pngBytes(4, 4)
	fine := []string{"", "image/png", "IMAGE/PNG", "image/png; a=b", "image/x-png", "application/octet-stream", "binary/octet-stream", ";;"}
	for _, f := range media.Formats() { // the bytes decide which of them it is
		if f.Type != media.Text {
			fine = append(fine, f.MimeType)
		}
	}
	for _, claim := range fine {
		one := p.ingestFile(b, ingest.Options{MaxBytes: noLimit, DeclaredType: claim})
		if one.Asset.MimeType != "image/png" {
			t.Errorf("a PNG sent as %q is %s", claim, one.Asset.MimeType)
		}
		p.DiscardFiles(t.Context(), one)
	}
	for _, wrong := range []string{"image/svg+xml", "text/html", "text/plain", "application/pdf", "application/json", "application/x-www-form-urlencoded",
		"image/x-unheard-of", "image/tiff", "Image/AVIF; q=1", "nonsense"} {
		_, err := p.IngestFile(t.Context(), bytes.NewReader(b), ingest.Options{MaxBytes: noLimit, DeclaredType: wrong})
		p.wantFault("png as "+wrong, err, fault.UnsupportedMediaType)
	}
}

func TestBrokenFilesLeaveNothing(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	whole := pngBytes(64, 64)
	for name, b := range map[string][]byte{
		"cut png":       whole[:len(whole)/2],
		"png magic":     whole[:8],
		"flipped":       flip(whole, len(whole)/2),
		"cut jpeg":      jpegBytes(32, 32)[:200],
		"huge claim":    hugePNG(),
		"glb too short": glbBytes()[:16],
	} {
		_, err := p.IngestFile(t.Context(), bytes.NewReader(b), ingest.Options{MaxBytes: noLimit})
		f, ok := err.(*fault.Error)
		if !ok || f.Code != fault.Invalid && f.Code != fault.UnsupportedMediaType {
			t.Errorf("%s: %v, want a bare refusal", name, err)
		}
		if left := p.listFiles(); len(left) != 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

func flip(b []byte, at int) []byte {
	c := bytes.Clone(b)
	c[at] ^= 1
	return c
}

// hugePNG claims 60,000 × 60,000 pixels.
func hugePNG() []byte {
	b := pngBytes(4, 4)
	copy(b[16:], "\x00\x00\xea\x60\x00\x00\xea\x60")
	return b
}

// A thousand uploads that end in all sorts of ways leave not one byte.
func TestAbortedUploads(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	whole := [][]byte{pngBytes(40, 40), jpegBytes(40, 40), wavBytes(6000), glbBytes()}
	lost := errors.New("connection lost")
	for i := range 1000 {
		b := whole[i%len(whole)]
		cut := b[:i*len(b)/1000]
		ctx, cancel := context.WithCancel(t.Context())
		var r io.Reader
		want := lost
		switch i % 3 {
		case 0:
			r = io.MultiReader(bytes.NewReader(cut), iotest.ErrReader(lost))
		case 1:
			r, want = io.MultiReader(bytes.NewReader(cut), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF
		case 2:
			r, want = io.MultiReader(bytes.NewReader(cut), calling(cancel), bytes.NewReader(b[len(cut):])), context.Canceled
		}
		_, err := p.IngestFile(ctx, r, ingest.Options{MaxBytes: noLimit})
		cancel()
		if !errors.Is(err, want) {
			t.Fatalf("upload %d: %v, want %v", i, err, want)
		}
	}
	if left := p.listFiles(); len(left) != 0 {
		t.Errorf("%d files were left, like %s", len(left), left[0])
	}
}

// calling is an empty reader that calls when it is read.
type calling func()

func (f calling) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// What the store cannot take is gone, and the caller learns why.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	if err := os.RemoveAll(p.folder + "/tmp"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.IngestFile(t.Context(), bytes.NewReader(pngBytes(4, 4)), ingest.Options{MaxBytes: noLimit}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("take = %v, want the store's failure", err)
	}
}

func TestDropOutlivesTheRequest(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	one, two := p.ingestFile(pngBytes(9, 9), ingest.Options{MaxBytes: noLimit}), p.ingestFile(wavBytes(10), ingest.Options{MaxBytes: noLimit})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.DiscardFiles(ctx, one, ingest.StoredFile{}, two)
	p.DiscardFiles(ctx, one) // again is no harm
	if left := p.listFiles(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	want := ingest.Options{MaxBytes: noLimit, AllowText: true}
	long := strings.Repeat("zwölf Boxkämpfer 😀\n", 2000)
	for name, text := range map[string]string{"short": "a", "lines": "a\r\n\tb\n", "long": long, "markup": "<b>no page</b>"} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			stored, err := p.IngestFile(t.Context(), r, want)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if a := stored.Asset; a.Type != "TEXT" || a.MimeType != "text/plain" || !strings.HasSuffix(a.Blob, ".txt") || string(p.readBlob(a.Blob)) != text || a.SHA256 != sum([]byte(text)) {
				t.Errorf("%s: asset = %+v", name, a)
			}
			p.DiscardFiles(t.Context(), stored)
		}
	}
	for _, c := range []struct {
		name, text string
		code       fault.Code
	}{
		{"nothing", "", fault.UnsupportedMediaType},
		{"a NUL", "a\x00b", fault.UnsupportedMediaType},
		{"a late NUL", long + "\x00", fault.Invalid},
		{"latin-1", "zw\xf6lf", fault.Invalid},
		{"late latin-1", long + "\xf6lf", fault.Invalid},
		{"cut character", long + "\xf0\x9f", fault.Invalid},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text)), iotest.DataErrReader(strings.NewReader(c.text))} {
			_, err := p.IngestFile(t.Context(), r, want)
			p.wantFault(c.name, err, c.code)
		}
	}
	if a := p.ingestFile(pngBytes(3, 3), want).Asset; a.Type != "IMG" {
		t.Errorf("a picture where text may be is %s", a.Type)
	}
}

// TestLongStreamsKeepMemorySmall is not parallel: it looks at the whole heap.
func TestLongStreamsKeepMemorySmall(t *testing.T) {
	p := newFixture(t)
	const size = 64 << 20
	r := io.MultiReader(bytes.NewReader(wavHeader(size)), io.LimitReader(&endless{from: []byte{1, 2, 3, 4, 5}}, size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	stored, err := p.IngestFile(t.Context(), r, ingest.Options{MaxBytes: noLimit})
	if err != nil || stored.Asset.Size != size+44 || stored.RawSize != size+44 {
		t.Fatalf("take = %+v, %v", stored, err)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 16 {
		t.Errorf("64 MiB took %d MiB of memory", got)
	}
}
