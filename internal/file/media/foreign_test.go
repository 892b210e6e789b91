package media_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/file/media"
)

// cleanAs sniffs and cleans a file, and checks that the secrets are gone and
// that other texts are kept.
func cleanAs(t *testing.T, name, file string, kept ...string) string {
	t.Helper()
	f, ok := sniff(file)
	if !ok {
		t.Fatalf("%s: the format is not recognised", name)
	}
	got, err := clean(f, file)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if at := strings.Index(got, "SECRET"); at >= 0 {
		t.Errorf("%s: a secret is left at %d: %q", name, at, got[max(0, at-30):min(len(got), at+30)])
	}
	for _, text := range kept {
		if !strings.Contains(got, text) {
			t.Errorf("%s: %q is gone", name, text)
		}
	}
	if again, err := clean(f, got); err != nil || again != got {
		t.Errorf("%s: cleaning twice changes the file, %v", name, err)
	}
	return got
}

// fullTrack is a track with an ID, a handler and the boxes of its stbl box.
func fullTrack(id int, kind string, tables ...string) string {
	return box("trak",
		box("tkhd", be32(7), be32(1e9), be32(1e9), be32(id), strings.Repeat("\x00", 24), applyOrientation, strings.Repeat("\x00", 16), be16(64), be16(0), be16(48), be16(0)),
		box("mdia",
			box("mdhd", be32(0), be32(1e9), be32(1e9), be32(1000), be32(1000), be32(0)),
			box("hdlr", be32(0), "mhlr", kind, "appl", be32(0), be32(0), "SECRET handler\x00"),
			box("minf", box("hdlr", be32(0), "dhlr", "alis", "appl", be32(0), be32(0), "\x06SECRET"),
				box("dinf", box("dref", be32(0), be32(1), box("alis", be32(1), "SECRET:volume:path"))), box("stbl", tables...))),
		box("udta", box("name", "SECRET")), box("meta", be32(0), "SECRET"))
}

// pictureEntry is the description of a picture track.
func pictureEntry(boxes ...string) string {
	name := "\x0fSECRET encoder "
	return box("stsd", be32(0), be32(1), box("avc1", strings.Repeat("\x00", 6), be16(1), be32(0), "FFMP", be32(0), be32(0), be16(64), be16(48),
		be32(0x480000), be32(0x480000), be32(0), be16(1), name, strings.Repeat("\x00", 32-len(name)), be16(24), "\xff\xff", strings.Join(boxes, "")))
}

func soundEntry(boxes ...string) string {
	return box("stsd", be32(0), be32(1), box("mp4a", strings.Repeat("\x00", 6), be16(1), be32(0), "SECR", be16(2), be16(16), be32(0), be32(44100<<16), strings.Join(boxes, "")))
}

func table(kind string, fields ...int) string {
	s := be32(0)
	for _, n := range fields {
		s += be32(n)
	}
	return box(kind, s)
}

// TestMP4BoxesBecomeZeros has every place of a film that can carry a text, and
// samples in several chunks of two tracks in turn.
func TestMP4BoxesBecomeZeros(t *testing.T) {
	t.Parallel()
	const data = "PIC1PIC2SECRETsnd1PIC3SECRETsnd2snd3SECRET"
	build := func(start int, isLong, dataFirst bool) string {
		at := func(text string) int { return start + strings.Index(data, text) }
		offsets := func(texts ...string) string {
			s := be32(0) + be32(len(texts))
			for _, text := range texts {
				if isLong {
					s += be64(at(text))
				} else {
					s += be32(at(text))
				}
			}
			if isLong {
				return box("co64", s)
			}
			return box("stco", s)
		}
		pictures := fullTrack(1, "vide", pictureEntry(box("avcC", "CONFIG"), box("uuid", "SECRET"), be32(0)),
			table("stsc", 2, 1, 2, 1, 2, 1, 1), table("stsz", 0, 3, 4, 4, 4), offsets("PIC1", "PIC3"))
		sound := fullTrack(2, "soun", soundEntry(box("esds", "SOUNDCONFIG"), box("udta", "SECRET")),
			box("stsc", be32(0), be32(2), be32(1), be32(1), be32(1), be32(2), be32(2), be32(1)), table("stsz", 4, 3), offsets("snd1", "snd2"))
		notes := fullTrack(3, "meta", table("stsc", 1, 1, 1, 1), table("stsz", 6, 2), offsets("SECRETsnd1", "SECRETsnd2"))
		moov := box("moov", mvhd(1000, 1000), pictures, sound, notes, box("udta", box("chpl", "SECRET"), box("meta", be32(0), box("ilst", "SECRET"))),
			box("iods", "SECRET"), box("uuid", "SECRET"))
		head := ftyp("isom", "mp42") + box("skip", "SECRET") + box("wide")
		if dataFirst {
			return head + box("mdat", data) + moov + box("uuid", "SECRET")
		}
		return head + moov + box("free", "SECRET") + box("mdat", data) + box("udta", "SECRET")
	}
	for _, isLong := range []bool{false, true} {
		for _, dataFirst := range []bool{false, true} {
			file := build(0, isLong, dataFirst)
			file = build(strings.Index(file, data), isLong, dataFirst)
			got := cleanAs(t, "film", file, "PIC1PIC2\x00\x00\x00\x00\x00\x00snd1PIC3\x00\x00\x00\x00\x00\x00snd2snd3\x00\x00\x00\x00\x00\x00", "CONFIG", "SOUNDCONFIG")
			if len(got) != len(file) {
				t.Errorf("%d bytes, want %d: offsets have changed", len(got), len(file))
			}
			if strings.Contains(got, be32(1e9)) {
				t.Error("a time is left")
			}
			if strings.Contains(got, "meta") || strings.Contains(got, "FFMP") || strings.Contains(got, "appl") {
				t.Error("a track of data or the name of a vendor is left")
			}
		}
	}
}

// fragment is a moof box and its data. Each track has a mode of addressing.
func fragment(start int, mode string, texts ...string) string {
	build := func(size int) (string, string) {
		data := ""
		trafs := ""
		for i, text := range texts {
			at := size + 8 + len(data)
			flags, extra, offset := 0x20000, "", at
			switch mode {
			case "absolute":
				flags, extra, offset = 1, be64(start), at
			case "implicit":
				flags, extra, offset = 0, "", at
				if i > 0 {
					offset = 0
				}
			}
			run := box("trun", be32(0x000301), be32(2), be32(offset), be32(1), be32(1), be32(1), be32(len(text)-1))
			if mode == "implicit" && i > 0 {
				run = box("trun", be32(0x000300), be32(2), be32(1), be32(1), be32(1), be32(len(text)-1))
			}
			trafs += box("traf", box("tfhd", be32(flags), be32(i+1), extra), run, box("uuid", "SECRET"), box("meta", be32(0), "SECRET"))
			data += text
		}
		return box("moof", box("mfhd", be32(0), be32(1)), trafs, box("udta", "SECRET")), data
	}
	moof, _ := build(0)
	moof, data := build(len(moof))
	return moof + box("mdat", data+"SECRET")
}

func TestMP4Fragments(t *testing.T) {
	t.Parallel()
	empty := []string{table("stsc", 0), table("stsz", 0, 0), table("stco", 0)}
	build := func(mode, third string) string {
		trex := func(id int) string { return table("trex", id, 1, 0, 0, 0) }
		head := ftyp("iso5", "dash") + box("moov", mvhd(1000, 1000), fullTrack(1, "vide", append([]string{pictureEntry()}, empty...)...),
			fullTrack(2, "meta", empty...), fullTrack(3, third, empty...), box("mvex", trex(1), trex(2), trex(3))) + box("emsg", "SECRET")
		first := fragment(len(head), mode, "PICTURE1", "SECRETxyz", "sound one")
		return head + first + fragment(len(head+first), mode, "PICTURE2", "SECRETxyz", "sound two")
	}
	for _, mode := range []string{"relative", "absolute"} {
		file := build(mode, "soun")
		gap := strings.Repeat("\x00", 9)
		got := cleanAs(t, mode, file, "PICTURE1"+gap+"sound one", "PICTURE2"+gap+"sound two")
		if strings.Count(got, "traf") != 4 || strings.Count(got, "trex") != 2 {
			t.Errorf("%s: the data track is left in the fragments", mode)
		}
	}
	f, _ := sniff(build("implicit", "soun"))
	_, err := clean(f, build("implicit", "soun"))
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "cannot be removed") {
		t.Errorf("implicit offsets after a removed track: %v, want a refusal that says so", err)
	}
	cleanAs(t, "implicit offsets before it", build("implicit", "text"), "PICTURE1", "PICTURE2")
}

func TestQuickTimeSoundOfSizeOne(t *testing.T) {
	t.Parallel()
	const data = "SAMPLES OF SOUNDSECRET"
	build := func(at int) string {
		return ftyp("qt  ") + box("moov", mvhd(1000, 1000), fullTrack(2, "soun", soundEntry(),
			table("stsc", 1, 1, 4, 1), table("stsz", 1, 4), table("stco", 1, at))) + box("mdat", data)
	}
	// Four samples of two channels with two bytes each.
	cleanAs(t, "sound", build(strings.Index(build(0), data)), "SAMPLES OF SOUND\x00\x00\x00\x00\x00\x00")
}

// TestWebMElementsBecomeVoid has a track of data, whose blocks go, positions in
// a SeekHead, and tags of all sizes.
func TestWebMElementsBecomeVoid(t *testing.T) {
	t.Parallel()
	seek := func(id string) string {
		return element("\x4d\xbb", element("\x53\xab", id), element("\x53\xac", be32(77)))
	}
	private := "\x02\x1e\x1c" + "\x01vorbis" + strings.Repeat("\x00", 23) + "\x03vorbis" + comments("SECRET", "a=b")[:20] + "\x01" + "\x05vorbis setup"
	track := func(number, kind byte, more ...string) string {
		return element("\xae", element("\xd7", string([]byte{number})), element("\x83", string([]byte{kind})), element("\x53\x6e", "SECRET"), strings.Join(more, ""))
	}
	block := func(number byte, text string) string {
		return element("\xa3", string([]byte{0x80 | number})+"\x00\x00\x80"+text)
	}
	tags := ""
	for n := range 300 {
		tags += "\x12\x54\xc3\x67" + string([]byte{0x40 | byte(n>>8), byte(n)}) + strings.Repeat("SECRET", 60)[:n]
	}
	file := ebml("webm") + element("\x18\x53\x80\x67",
		element("\x11\x4d\x9b\x74", element("\xbf", "SECR"), seek("\x16\x54\xae\x6b"), seek("\x12\x54\xc3\x67")),
		tags,
		element("\x15\x49\xa9\x66", element("\xbf", "SECR"), element("\x2a\xd7\xb1", be32(1e6)), element("\x73\xa4", "SECRET UID"), element("\x4d\x80", "SECRET")),
		element("\x16\x54\xae\x6b",
			track(1, 1, element("\xe0", element("\xb0", be16(64)), element("\xba", be16(48)))),
			track(2, 2, element("\x86", "A_VORBIS"), element("\x63\xa2", private)),
			track(3, 0x21, element("\x63\xa2", "SECRET"))),
		element("\x1f\x43\xb6\x75", element("\xe7", "\x00"), block(1, "PICTURE"), block(3, "SECRET"), block(2, "SOUND"),
			element("\xa0", element("\xa1", "\x83\x00\x00\x00SECRET")), element("\xa0", element("\xa1", "\x81\x00\x00\x00GROUP"))),
		webmSecrets()) + element("\xec", "SECRET")
	got := cleanAs(t, "film", file, block(1, "PICTURE"), block(2, "SOUND"), "GROUP", "\x05vorbis setup", element("\x4d\x80", "-\x00\x00\x00\x00\x00"), seek("\x16\x54\xae\x6b"))
	if len(got) != len(file) || strings.Contains(got, "\x12\x54\xc3\x67") {
		t.Errorf("%d bytes, want %d, and no tags or positions of them", len(got), len(file))
	}
}

// apeTag is an APE tag with a header and a footer.
func apeTag(text string) string {
	head := func(flags int) string {
		return "APETAGEX" + le32(2000) + le32(len(text)+32) + le32(1) + le32(flags) + strings.Repeat("\x00", 8)
	}
	return head(1<<31|1<<29) + text + head(1<<31)
}

func TestMP3TagsAnywhere(t *testing.T) {
	t.Parallel()
	sound := mp3Frame("one") + mp3Frame("two") + mp3Frame("three")
	tag := "ID3\x04\x00\x10\x00\x00\x00\x06SECRET" + "3DI\x04\x00\x10\x00\x00\x00\x06"
	lyrics := "LYRICSBEGIN" + "IND00002 1 SECRET" + "000028LYRICS200"
	v1 := "TAGSECRET" + strings.Repeat("\x00", 119)
	last := strings.Repeat(mp3Frame("four"), 4)
	file := tag + tag + "SECRET" + sound + tag + apeTag("SECRET\xff\xfb\x90\x00") + last + apeTag("SECRET") + lyrics + v1
	if got := cleanAs(t, "mp3", file); got != sound+last {
		t.Errorf("%d bytes, want the %d of the frames", len(got), len(sound+last))
	}
}

// TestMP3OfJoinedFiles has frames of another sample rate in its second half.
func TestMP3OfJoinedFiles(t *testing.T) {
	t.Parallel()
	first := strings.Repeat(mp3Frame("one"), 5)
	second := strings.Repeat("\xff\xfb\x94\x00"+strings.Repeat("\x00", 384-4), 5) // 48 kHz
	for name, file := range map[string]string{"joined": first + second, "with a tag": first + id3(10) + second} {
		if got := cleanAs(t, name, file); got != first+second {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(first+second))
		}
	}
}

func TestFLACTagsAfterTheSound(t *testing.T) {
	t.Parallel()
	plain := flac(44100, 100)
	info := plain[4:42]
	seeks := "\x03\x00\x00\x12" + strings.Repeat("\x01", 18)
	v1 := "TAGSECRET" + strings.Repeat("\x00", 119)
	body := "\xff\xf8frames"
	file := "fLaC" + info + "\x01\x00\x00\x06SECRET" + seeks + "\x02\x00\x00\x06SECRET" + "\x05\x00\x00\x06SECRET" + "\x84\x00\x00\x06SECRET" + body
	want := "fLaC" + info + "\x83" + seeks[1:] + body
	for name, end := range map[string]string{
		"nothing": "", "ID3v1": v1, "APE": apeTag("SECRET"), "both": apeTag("SECRET") + v1,
		"lyrics": "LYRICSBEGINSECRETLYRICSEND" + v1, "lyrics 2": "LYRICSBEGINSECRET000017LYRICS200" + v1,
		"ID3v2": "ID3\x04\x00\x10\x00\x00\x00\x06SECRET" + "3DI\x04\x00\x10\x00\x00\x00\x06",
		"TAG+":  "TAG+SECRET" + strings.Repeat("\x00", 217) + v1,
	} {
		if got := cleanAs(t, name, file+end); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestOggPagesAreNumberedAgain has two streams, one after the other, a stream of
// another codec between their pages, and damage.
func TestOggPagesAreNumberedAgain(t *testing.T) {
	t.Parallel()
	head := "OpusHead\x01\x02" + le16(312) + le32(44100) + "\x00\x00\x00"
	tags := "OpusTags" + comments("SECRET vendor", "prompt="+strings.Repeat("SECRET", 20_000))
	cut := 255 * 255
	bad := []byte(oggPage(0, 500, 7, 9, false, "SECRET"))
	bad[len(bad)-1]++
	file := oggPage(2, 0, 7, 0, false, head) + oggPage(2, 0, 8, 0, false, "fishead\x00SECRET") +
		oggPage(0, -1, 7, 1, true, tags[:cut]) + oggPage(0, 0, 8, 1, false, "SECRET") + oggPage(1, 0, 7, 2, false, tags[cut:]) +
		oggPage(0, 1000, 7, 3, false, "one", "two") + "SECRET between" + string(bad) + oggPage(4, 2000, 7, 4, false, "three") + oggPage(0, 3000, 7, 5, false, "SECRET") +
		vorbis(44100, 100) + "SECRET" + "OggS\x00SECRET"
	empty := le32(0) + le32(0)
	chain := vorbis(44100, 100)
	id := chain[:28+30]
	want := oggPage(2, 0, 7, 0, false, head) + oggPage(0, 0, 7, 1, false, "OpusTags"+empty) + oggPage(0, 1000, 7, 2, false, "one", "two") + oggPage(4, 2000, 7, 3, false, "three") +
		id + oggPage(0, 0, 7, 1, false, "\x03vorbis"+empty+"\x01", vorbisSetup) + oggPage(0, 100, 7, 2, false, "sound", "more sound") + oggPage(4, -1, 7, 3, false, "OggS\x00")
	if got := cleanAs(t, "ogg", file); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// A packet of comments that fills pages exactly, and comments of several pages.
	f, _ := sniff(file)
	for _, n := range []int{255*255 - 20, 255*255 - 16, 60_000} {
		marked, err := mark(f, strings.NewReader(want), strings.Repeat("m", n))
		if n > media.MaxXMP {
			continue
		}
		if err != nil || strings.Count(marked, strings.Repeat("m", 1000)) < 2*(n/1000-1) {
			t.Errorf("a mark of %d bytes: %v", n, err)
		}
		if again, err := clean(f, marked); err != nil || again != want {
			t.Errorf("a mark of %d bytes: cleaning does not remove it, %v", n, err)
		}
	}
}

func TestWAVOfOtherKinds(t *testing.T) {
	t.Parallel()
	format := wavFmt(1, 1, 8000, 8)
	want := riff("WAVE", format+riffChunk("data", "SAMPLES"))
	extensible := riffChunk("fmt ", le16(0xfffe)+le16(1)+le32(8000)+le32(8000)+le16(1)+le16(8)+le16(22)+strings.Repeat("\x01", 22))
	for name, tt := range map[string]struct{ file, want string }{
		"RF64":            {"RF64\xff\xff\xff\xffWAVE" + riffChunk("ds64", le64(1000)+le64(7)+le64(7)+le32(0)) + riffChunk("bext", "SECRET") + format + "data\xff\xff\xff\xffSAMPLES\x00" + riffChunk("_PMX", "SECRET"), want},
		"streamed":        {"RIFF\xff\xff\xff\xffWAVE" + riffChunk("LIST", "SECRET") + format + "data\xff\xff\xff\xffSAMPLES", want},
		"cue":             {riff("WAVE", format+riffChunk("cue ", "SECRET")+riffChunk("data", "SAMPLES")+riffChunk("LIST", "adtlSECRET")+riffChunk("iXML", "SECRET")), want},
		"a long fmt":      {riff("WAVE", "fmt "+le32(30)+format[8:]+"SECRETSECRET12"+riffChunk("data", "SAMPLES")), want},
		"extensible":      {riff("WAVE", strings.Replace(extensible, "fmt "+le32(40), "fmt "+le32(46), 1)+"SECRET"+riffChunk("data", "SAMPLES")), riff("WAVE", extensible+riffChunk("data", "SAMPLES"))},
		"samples of fact": {riff("WAVE", format+riffChunk("fact", le32(7)+"SECRET")+riffChunk("data", "SAMPLES")), riff("WAVE", format+riffChunk("fact", le32(7))+riffChunk("data", "SAMPLES"))},
	} {
		if got := cleanAs(t, name, tt.file); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestGLBMetadataBecomesEmpty(t *testing.T) {
	t.Parallel()
	scene := `{"asset" : { "extras" : {"prompt": {"1": ["SECRET"]}, "b": "}"}, "copyright":"SECRET", "version":"2.0","generator":"SECRET \" made" ,"minVersion":"2.0"},
		"scenes":[{"extras":"SECRET","nodes":[0]},{"nodes":[1],"extras":12345}],"\u0065xtras":[{"a":"SECRET"}],
		"extensions":{"KHR_xmp_json_ld":{"packets":[{"dc:creator":"SECRET"}]},"KHR_lights":{"extras":{"keep":"LIGHT"}}},
		"meshes":[{"name":"generator","extras":{"targetNames":["smile"]}}],"generator":"no asset"}`
	file := glb(scene)
	chunkAt := len(file)
	file += le32(8) + "XTRA" + "SECRET  "
	file = file[:8] + le32(len(file)) + file[12:]
	got := cleanAs(t, "glb", file, `"targetNames":["smile"]`, `"keep":"LIGHT"`, `"name":"generator"`, `"extras":0    `, `"copyright":""`, `"generator":"no asset"`, `"\u0065xtras":[] `)
	if len(got) != len(file) || got[chunkAt+8:] != strings.Repeat("\x00", 8) {
		t.Errorf("the chunks have another size or the last is not empty: %q", got)
	}
	if _, err := examine(media.NewAnalyzer(media.Limits{}), media.Format{Type: media.Model, MimeType: "model/gltf-binary", Ext: "glb"}, got); err != nil {
		t.Errorf("the scene is broken: %v in %s", err, got)
	}
}

func TestGIFLoopOfAnotherProgram(t *testing.T) {
	t.Parallel()
	file := strings.Replace(gifOf(2), "NETSCAPE2.0", "ANIMEXTS1.0", 1)
	if got := cleanAs(t, "gif", file); got != file {
		t.Errorf("%q, want %q", got, file)
	}
}

// TestLargeFilesAreNotHeldInMemory cleans a film of 300 MB whose chapters are
// in its data and described at its end. It leaves no temporary file.
func TestLargeFilesAreNotHeldInMemory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	const size = 300 << 20
	head := ftyp("isom") + be32(1) + "mdat" + be64(size+16)
	note := "SECRET"
	moov := box("moov", mvhd(1000, 1000), fullTrack(1, "vide", pictureEntry(), table("stsc", 1, 1, 1, 1), table("stsz", 0, 1, size-6), table("stco", 1, len(head)+6)),
		fullTrack(2, "text", table("stsc", 1, 1, 1, 1), table("stsz", 0, 1, 6), table("stco", 1, len(head))))
	f := media.Format{Type: media.Video, MimeType: "video/mp4", Ext: "mp4"}
	var seen strings.Builder
	used := allocated(func() {
		r := media.Clean(f, io.MultiReader(strings.NewReader(head+note), io.LimitReader(ones{}, size-6), strings.NewReader(moov)))
		n, err := io.CopyN(&seen, r, int64(len(head))+20)
		if err != nil || n != int64(len(head))+20 {
			t.Fatalf("%d bytes, %v", n, err)
		}
		rest, err := io.Copy(io.Discard, struct{ io.Reader }{r})
		if want := int64(len(head)+size+len(moov)) - n; err != nil || rest != want {
			t.Errorf("%d bytes, want %d, %v", rest, want, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if !strings.HasSuffix(seen.String(), "\x00\x00\x00\x00\x00\x00"+strings.Repeat("1", 14)) {
		t.Errorf("the data begins with %q", seen.String())
	}
	if used > 4<<20 {
		t.Errorf("cleaning %d MiB took %d KiB of memory", size>>20, used>>10)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// ones is an endless reader.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '1'
	}
	return len(p), nil
}

func TestCleanAfterClose(t *testing.T) {
	t.Parallel()
	f := media.Format{Type: media.Video, MimeType: "video/mp4", Ext: "mp4"}
	r := media.Clean(f, strings.NewReader(mp4("isom", 1000, applyOrientation)))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 10)); n > 0 || err == nil {
		t.Errorf("%d bytes, %v after Close", n, err)
	}
}
