package media_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"atelier/internal/file/media"
)

const packet = `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">` +
	`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/">` +
	`<xmp:CreatorTool>Marker</xmp:CreatorTool></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="r"?>`

func mark(f media.Format, r io.Reader, with string) (string, error) {
	b, err := io.ReadAll(media.EmbedXMP(f, r, []byte(with)))
	return string(b), err
}

// TestMarkedFilesAreWhole marks every sample: the facts stay as they were, the
// packet is there once, and cleaning takes it away again.
func TestMarkedFilesAreWhole(t *testing.T) {
	t.Parallel()
	analyzer := media.NewAnalyzer(media.Limits{})
	for _, s := range samples() {
		f, _ := sniff(s.file)
		plain, err := clean(f, s.file)
		if err != nil {
			continue // which other tests are about
		}
		before, err := examine(analyzer, f, plain)
		if err != nil {
			continue
		}
		marked, err := mark(f, strings.NewReader(plain), packet)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		slow, err := mark(f, iotest.OneByteReader(strings.NewReader(plain)), packet)
		if err != nil || slow != marked {
			t.Errorf("%s: byte by byte it is another file: %v", s.name, err)
		}
		has := strings.Count(marked, "<xmp:CreatorTool>Marker<")
		switch {
		case f.Ext == "heic" || f.Ext == "heif" || f.Type == media.Model:
			if marked != plain {
				t.Errorf("%s: changed, although it has no place for a mark", s.name)
			}
			continue
		case has != 1:
			t.Errorf("%s: the packet is there %d times", s.name, has)
		}
		if again, ok := sniff(marked); !ok || again != f {
			t.Errorf("%s: is no %s any more", s.name, f.Ext)
		}
		after, err := examine(analyzer, f, marked)
		if err != nil {
			t.Errorf("%s: marked, it is broken: %v", s.name, err)
		}
		if after.Width != before.Width || after.Height != before.Height || after.Duration != before.Duration || after.Blurhash != before.Blurhash ||
			!bytes.Equal(after.Thumb, before.Thumb) {
			t.Errorf("%s: facts = %v, were %v", s.name, after, before)
		}
		if unmarked, err := clean(f, marked); err != nil || strings.Contains(unmarked, "Marker") {
			t.Errorf("%s: cleaning leaves the mark there: %v", s.name, err)
		}
	}
}

// TestMarkingWhatItIsNot lets everything through that it does not understand.
func TestMarkingWhatItIsNot(t *testing.T) {
	t.Parallel()
	for _, f := range media.Formats() {
		for _, text := range []string{"", "x", "RIFF", "RIFF\xff\xff\xff\xffWEBPVP8L", "GIF87a", "\x89PNG\r\n\x1a\n", "\xff\xd8", "\xff\xd8\xff\xe0\xff\xff",
			"\x1a\x45\xdf\xa3\x81\x00\x18\x53\x80\x67\xff", strings.Repeat("\x00", 100), strings.Repeat("\xff", 100)} {
			got, err := mark(f, strings.NewReader(text), packet)
			if err != nil {
				t.Errorf("%s of %q: %v", f.Ext, text, err)
			}
			if len(got) < len(text) && f.Ext != "ogg" { // of which only whole pages are kept
				t.Errorf("%s of %q: bytes are lost", f.Ext, text)
			}
		}
	}
	if _, err := mark(media.Formats()[1], iotest.ErrReader(io.ErrClosedPipe), packet); err == nil {
		t.Error("an error of the reader is lost")
	}
}

// TestMarksStayInTheirSegment has something behind the segment, which stays
// there.
func TestMarksStayInTheirSegment(t *testing.T) {
	t.Parallel()
	file, gap := webm("webm", 1), element("\xec", "gap")
	f, _ := sniff(file)
	marked, err := mark(f, strings.NewReader(file+gap), packet)
	if err != nil || !strings.HasSuffix(marked, gap) {
		t.Errorf("the file ends with %q, %v", marked[len(marked)-20:], err)
	}
	if plain, _ := mark(f, strings.NewReader(file), packet); plain+gap != marked {
		t.Error("what comes behind the segment changes the segment")
	}
}

func TestPacketsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		f, _ := sniff(s.file)
		for _, with := range []string{"", strings.Repeat("x", media.MaxXMP+1)} {
			if got, err := mark(f, strings.NewReader(s.file), with); err != nil || got != s.file {
				t.Errorf("%s with a packet of %d bytes is changed: %v", s.name, len(with), err)
			}
		}
	}
}

// TestMarksAsOthersReadThem asks a program that reads all of these formats.
func TestMarksAsOthersReadThem(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("exiftool")
	if err != nil {
		t.Skip("exiftool is not here (apt-get install libimage-exiftool-perl)")
	}
	dir := t.TempDir()
	seen := map[string]bool{}
	for _, s := range samples() {
		f, _ := sniff(s.file)
		plain, err := clean(f, s.file)
		if err != nil || seen[f.Ext] || !strings.Contains("png jpg gif webp mp4 mov mp3 wav", f.Ext) {
			continue
		}
		seen[f.Ext] = true
		marked, err := mark(f, strings.NewReader(plain), packet)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "x."+f.Ext)
		if err := os.WriteFile(file, []byte(marked), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(tool, "-s3", "-XMP:CreatorTool", file).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != "Marker" {
			t.Errorf("%s (%s): creator tool = %q, %v", s.name, f.Ext, got, err)
		}
	}
	if len(seen) < 8 {
		t.Errorf("tried only %v", seen)
	}
}

// TestPicturesAsOthersReadThem checks that exiftool shows nothing foreign in a
// clean picture.
func TestPicturesAsOthersReadThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	animation := gifOf(2)
	at := strings.Index(animation, "\x21\xff\x0bNETSCAPE2.0")
	for name, file := range map[string]string{
		"photo.jpg":  photo(flag(40, 20), 6),
		"text.png":   withText(pngOf(flag(40, 20))),
		"photo.webp": webpPhoto(30, 20),
		"note.gif":   animation[:at] + "\x21\xfe\x06SECRET\x00" + animation[at:],
	} {
		got := cleanAs(t, name, file)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		checkExif(t, path)
	}
}
