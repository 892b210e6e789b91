package media_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
)

// Small encoders for the files of the tests.

func be16(v int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(v))) }
func be32(v int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(v))) }
func be64(v int) string { return string(binary.BigEndian.AppendUint64(nil, uint64(v))) }
func le16(v int) string { return string(binary.LittleEndian.AppendUint16(nil, uint16(v))) }
func le32(v int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(v))) }
func le64(v int) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(v))) }
func le24(v int) string { return le32(v)[:3] }

var (
	red   = color.NRGBA{255, 0, 0, 255}
	green = color.NRGBA{0, 255, 0, 255}
	white = color.NRGBA{255, 255, 255, 255}
)

// flag is a picture whose upper quarters are red and green, the rest white.
func flag(w, h int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := white
			if y < h/2 {
				c = green
				if x < w/2 {
					c = red
				}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

func jpegOf(img image.Image) string {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 95}); err != nil {
		panic(err)
	}
	return b.String()
}

func pngOf(img image.Image) string {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.String()
}

func gifOf(frames int) string {
	g := &gif.GIF{LoopCount: 3}
	for i := range frames {
		img := image.NewPaletted(image.Rect(0, 0, 20, 10), color.Palette{color.Black, red, green})
		img.SetColorIndex(i%20, 0, 1)
		g.Image, g.Delay = append(g.Image, img), append(g.Delay, 5)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		panic(err)
	}
	return b.String()
}

// segment is a segment of a JPEG file.
func segment(marker byte, body string) string {
	return "\xff" + string([]byte{marker}) + be16(len(body)+2) + body
}

// exif is TIFF data with an orientation, a camera's name and a place.
func exif(turn int) string {
	entry := func(tag, kind, count int, value string) string { return be16(tag) + be16(kind) + be32(count) + value }
	return "MM\x00*" + be32(8) + be16(3) +
		entry(0x010f, 2, 4, "Cam\x00") +
		entry(0x0112, 3, 1, be16(turn)+"\x00\x00") +
		entry(0x8825, 4, 1, be32(50)) + be32(0) +
		be16(1) + entry(0x0001, 2, 2, "N\x00\x00\x00") + be32(0) + "SECRET PLACE"
}

// photo is a JPEG file as a phone writes it.
func photo(img image.Image, turn int) string {
	plain := jpegOf(img)
	return plain[:2] +
		segment(0xe0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x01\x01SEC") + // with a thumbnail of a pixel
		segment(0xe1, "Exif\x00\x00"+exif(turn)) +
		segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta>SECRET</x:xmpmeta>") +
		segment(0xe2, "ICC_PROFILE\x00\x01\x01profile") +
		segment(0xe2, "MPF\x00SECRET") +
		segment(0xed, "Photoshop 3.0\x00SECRET") +
		segment(0xfe, "SECRET <script>alert(1)</script>") +
		"\xff\xff" + plain[2:] + "SECRET trailer"
}

// progressive is a grey picture in scans of one bit a block, with restarts.
func progressive(w, h, scans int) string {
	table := func(class int) string {
		return segment(0xc4, string(rune(class))+"\x01"+strings.Repeat("\x00", 15)+"\x00")
	}
	blocks := ((w + 7) / 8) * ((h + 7) / 8)
	data := ""
	for i := 0; i < blocks; i += 8 { // eight blocks to a restart
		if i > 0 {
			data += "\xff" + string([]byte{0xd0 + byte(i/8-1)%8})
		}
		data += string([]byte{0xff >> min(8, blocks-i)})
	}
	f := "\xff\xd8" + segment(0xdb, "\x00"+strings.Repeat("\x01", 64)) +
		segment(0xc2, "\x08"+be16(h)+be16(w)+"\x01\x01\x11\x00") + table(0) + table(0x10) + segment(0xdd, be16(8))
	for i := range scans {
		spectrum := "\x00\x00"
		if i > 0 {
			spectrum = "\x01\x3f"
		}
		f += segment(0xda, "\x01\x01\x00"+spectrum+"\x00") + data
	}
	return f + "\xff\xd9"
}

// chunk is a chunk of a PNG file.
func chunk(name, body string) string {
	return be32(len(body)) + name + body + be32(int(crc32.ChecksumIEEE([]byte(name+body))))
}

const pngStart = 8 + 25 // signature and IHDR

// apng is an animation, or claims to be one.
func apng(frames int) string {
	plain := pngOf(flag(20, 10))
	control := func(n int) string {
		return chunk("fcTL", be32(n)+be32(20)+be32(10)+be32(0)+be32(0)+be16(1)+be16(10)+"\x00\x00")
	}
	var b strings.Builder
	b.WriteString(plain[:pngStart] + chunk("acTL", be32(frames)+be32(0)) + control(0) + plain[pngStart:len(plain)-12])
	for i := 1; i < frames; i++ {
		b.WriteString(control(2*i-1) + chunk("fdAT", be32(2*i)+"x"))
	}
	return b.String() + chunk("IEND", "")
}

// bits writes numbers with their lowest bit first.
type bits struct {
	b []byte
	n int
}

func (w *bits) put(v, n int) *bits {
	for i := range n {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.n/8] |= byte(v>>i&1) << (w.n % 8)
		w.n++
	}
	return w
}

// vp8l is a lossless picture whose pixels are green or black in turn; with
// pixels of false they are missing.
func vp8l(w, h, alpha int, pixels bool) string {
	b := (&bits{}).put(0x2f, 8).put(w-1, 14).put(h-1, 14).put(1, 1).put(0, 3).put(0, 3)
	b.put(1, 1).put(1, 1).put(1, 1).put(0, 8).put(255, 8) // two greens
	for _, v := range []int{0, 0, alpha, 0} {
		b.put(1, 1).put(0, 1).put(1, 1).put(v, 8)
	}
	for i := 0; pixels && i < w*h; i++ {
		b.put(i&1, 1)
	}
	return string(b.b)
}

func riffChunk(name, body string) string {
	if len(body)%2 == 1 {
		return name + le32(len(body)) + body + "\x00"
	}
	return name + le32(len(body)) + body
}

func riff(kind, body string) string { return "RIFF" + le32(len(body)+4) + kind + body }

func vp8x(flags byte, w, h int) string {
	return riffChunk("VP8X", string([]byte{flags, 0, 0, 0})+le24(w-1)+le24(h-1))
}

// webpPhoto is a still picture with all that has to go.
func webpPhoto(w, h int) string {
	return riff("WEBP", vp8x(0x2c, w, h)+riffChunk("ICCP", "profile")+riffChunk("VP8L", vp8l(w, h, 255, true))+
		riffChunk("EXIF", exif(1))+riffChunk("XMP ", "<SECRET/>")+riffChunk("what", "SECRET"))
}

func webpAnimation(frames, w, h int) string {
	frame := le24(0) + le24(0) + le24(w-1) + le24(h-1) + le24(100) + "\x00" +
		riffChunk("VP8L", vp8l(w, h, 255, true)) + riffChunk("XMP ", "SECRET")
	return riff("WEBP", vp8x(0x06, w, h)+riffChunk("ANIM", "\x00\x00\x00\x00\x00\x00")+
		strings.Repeat(riffChunk("ANMF", frame), frames)+riffChunk("XMP ", "<SECRET/>"))
}

// box is a box of an ISO file.
func box(kind string, body ...string) string {
	all := strings.Join(body, "")
	return be32(len(all)+8) + kind + all
}

func ftyp(major string, others ...string) string {
	return box("ftyp", major, be32(0), strings.Join(others, ""))
}

const heifPixels = "THE PIXELS OF THE PICTURE"

// heif is a picture of 40 to 30 pixels that is turned, with Exif and XMP in
// the data and a note in the description.
func heif(major string, others ...string) string {
	return heifWith(0, ftyp(major, others...), false)
}

func heifWith(shift int, head string, dataFirst bool) string {
	exifData, xmp := "\x00\x00\x00\x00"+exif(6), "<x:xmpmeta>SECRET</x:xmpmeta>"
	item := func(id int, kind string) string {
		return box("infe", "\x02\x00\x00\x00", be16(id), be16(0), kind, "name\x00")
	}
	build := func(at int) string {
		place := func(id, from, n int) string { return be16(id) + be16(0) + be16(0) + be16(1) + be32(from) + be32(n) }
		pixels := at
		return box("meta", be32(0),
			box("hdlr", be32(0), be32(0), "pict", strings.Repeat("\x00", 13)),
			box("pitm", be32(0), be16(1)),
			box("iinf", be32(0), be16(4), item(1, "hvc1"), item(2, "Exif"), item(3, "mime"), item(4, "grid")),
			box("iloc", "\x01\x00\x00\x00", "\x44\x00", be16(4),
				place(1, pixels, len(heifPixels)+shift), place(2, pixels+len(heifPixels), len(exifData)),
				place(3, pixels+len(heifPixels)+len(exifData), len(xmp)),
				be16(4)+be16(1)+be16(0)+be16(1)+be32(0)+be32(4)),
			box("iprp",
				box("ipco", box("ispe", be32(0), be32(40), be32(30)), box("irot", "\x01"), box("udes", be32(0), "SECRET\x00")),
				box("ipma", be32(0), be32(1), be16(1), "\x03\x01\x82\x03")),
			box("idat", "GRIDSECRET"),
			box("xml ", be32(0), "<SECRET/>"))
	}
	data := box("mdat", heifPixels, exifData, xmp, "SECRET gap")
	if dataFirst {
		return head + data + build(len(head)+8)
	}
	return head + build(len(head)+len(build(0))+8) + data + box("uuid", "SECRET")
}

const (
	applyOrientation = "\x00\x01\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x01\x00\x00"
	turned           = "\x00\x00\x00\x00" + "\x00\x01\x00\x00" + "\x00\x00\x00\x00" + "\xff\xff\x00\x00" + "\x00\x00\x00\x00"
)

// trak is a track without samples. A video has the ID 1, a sound 2, others 3.
func trak(kind, matrix string, w, h int) string {
	id := cmp.Or(map[string]int{"vide": 1, "soun": 2}[kind], 3)
	return box("trak",
		box("tkhd", strings.Repeat("\x00", 12), be32(id), strings.Repeat("\x00", 24), matrix, strings.Repeat("\x00", 16), be16(w), be16(0), be16(h), be16(0)),
		box("mdia", box("hdlr", be32(0), be32(0), kind, strings.Repeat("\x00", 13))))
}

func mvhd(scale, units int) string {
	return box("mvhd", be32(0), be32(0), be32(0), be32(scale), be32(units), strings.Repeat("\x00", 80))
}

// mp4Samples is the data of the video and of the sound of the sample film.
const (
	mp4Samples = "PICTURES"
	mp4Sound   = "SOUND"
)

// mp4 is a film of 640 to 360 pixels with sound, tags and a track of chapters.
func mp4(major string, units int, matrix string) string {
	data := "SECRET gap" + mp4Samples + "SECRET chapter" + mp4Sound + "SECRET"
	head := ftyp(major, "isom", "mp42") + box("free", "SECRET")
	at := func(text string) int { return len(head) + 8 + strings.Index(data, text) }
	table := func(text string, sizes ...int) string {
		list := ""
		for _, n := range sizes {
			list += be32(n)
		}
		return box("stbl", box("stsc", be32(0), be32(1), be32(1), be32(len(sizes)), be32(1)),
			box("stsz", be32(0), be32(0), be32(len(sizes)), list), box("stco", be32(0), be32(1), be32(at(text))))
	}
	with := func(track string, more ...string) string { return box("trak", track[8:]+strings.Join(more, "")) }
	media := func(track, tables string) string {
		mdia := strings.Index(track, "mdia") - 4
		return box("trak", track[8:mdia]+box("mdia", track[mdia+8:]+box("minf", tables)))
	}
	tags := box("udta", box("meta", be32(0), "SECRET")) + box("uuid", "SECRET")
	return head + box("mdat", data) + box("moov", mvhd(1000, units),
		with(media(trak("soun", applyOrientation, 0, 0), table(mp4Sound, 2, 3)), tags),
		with(media(trak("vide", matrix, 640, 360), table(mp4Samples, 8)), box("tref", box("chap", be32(3)))),
		media(trak("text", applyOrientation, 0, 0), table("SECRET chapter", 14)), tags) + tags
}
