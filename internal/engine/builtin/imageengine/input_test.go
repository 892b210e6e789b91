package imageengine_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	stdimage "image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

// same gives a picture back as it was read.
func same(t *testing.T, f engine.File) *stdimage.NRGBA {
	t.Helper()
	return drawn(t, job("adjust", values{"format": "png"}, f))
}

func TestLossyWebPKeepsItsColours(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		want color.NRGBA
	}{
		"opaque":     {"UklGRjoAAABXRUJQVlA4IC4AAADwAQCdASoQABAAAUAmJaACdLoB+AAETAAA/vDXA/33oDeT//voB70A96Af18AA", color.NRGBA{208, 32, 32, 255}},
		"with alpha": {"UklGRmQAAABXRUJQVlA4WAoAAAAQAAAADwAADwAAQUxQSBAAAAABB1DAiAgABOH/3EFE/1MDVlA4IC4AAAAQAgCdASoQABAAAUAmJaACdLoB+AH4AAPIAP6k1/9ThLkGPpN//bs0xj9/cmAA", color.NRGBA{32, 208, 32, 128}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := base64.StdEncoding.DecodeString(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			m := same(t, enginetest.FileFromBytes("image/webp", b))
			wantSize(t, m, 16, 16)
			if got := m.NRGBAAt(8, 8); !near(got, tt.want, 6) {
				t.Errorf("colour = %v, want about %v", got, tt.want)
			}
		})
	}
}

func TestFirstFrameOfAGIFLiesOnItsCanvas(t *testing.T) {
	t.Parallel()
	frame := stdimage.NewPaletted(stdimage.Rect(10, 5, 20, 15), append(color.Palette{color.Transparent}, palette.WebSafe...))
	for i := range frame.Pix {
		frame.Pix[i] = uint8(frame.Palette.Index(color.NRGBA{255, 0, 0, 255}))
	}
	second := stdimage.NewPaletted(stdimage.Rect(0, 0, 40, 30), palette.WebSafe)
	var b bytes.Buffer
	err := gif.EncodeAll(&b, &gif.GIF{Image: []*stdimage.Paletted{frame, second}, Delay: []int{1, 1}, Config: stdimage.Config{Width: 40, Height: 30}})
	if err != nil {
		t.Fatal(err)
	}
	m := same(t, enginetest.FileFromBytes("image/gif", b.Bytes()))
	wantSize(t, m, 40, 30)
	if got := m.NRGBAAt(15, 10); got != (color.NRGBA{255, 0, 0, 255}) {
		t.Errorf("within the frame = %v, want red", got)
	}
	if got := m.NRGBAAt(30, 20); got.A != 0 {
		t.Errorf("beside the frame = %v, want nothing", got)
	}
}

func TestAllKindsOfPNG(t *testing.T) {
	t.Parallel()
	bounds := stdimage.Rect(0, 0, 4, 4)
	gray16 := stdimage.NewGray16(bounds)
	gray := stdimage.NewGray(bounds)
	rgba64 := stdimage.NewNRGBA64(bounds)
	for y := range 4 {
		for x := range 4 {
			gray16.Set(x, y, color.Gray16{0x8080})
			gray.Set(x, y, color.Gray{0x80})
			rgba64.Set(x, y, color.NRGBA64{0x4040, 0x8080, 0xc0c0, 0x6060})
		}
	}
	for name, tt := range map[string]struct {
		m    stdimage.Image
		want color.NRGBA
	}{
		"grey":        {gray, color.NRGBA{128, 128, 128, 255}},
		"grey 16":     {gray16, color.NRGBA{128, 128, 128, 255}},
		"colour 64":   {rgba64, color.NRGBA{64, 128, 192, 96}},
		"see-through": {flat(4, 4, color.NRGBA{200, 100, 50, 3}), color.NRGBA{200, 100, 50, 3}},
		"opaque":      {flat(4, 4, red), red},
	} {
		if got := same(t, pngFile(tt.m)).NRGBAAt(2, 2); !near(got, tt.want, 1) {
			t.Errorf("%s = %v, want %v", name, got, tt.want)
		}
	}
}

// exif puts an orientation into a JPEG.
func exif(jpeg []byte, order binary.AppendByteOrder, orientation uint16) []byte {
	mark := "MM"
	if order == binary.AppendByteOrder(binary.LittleEndian) {
		mark = "II"
	}
	tiff := order.AppendUint16([]byte(mark), 42)
	tiff = order.AppendUint32(tiff, 8)
	tiff = order.AppendUint16(tiff, 1)
	tiff = order.AppendUint16(tiff, 0x0112)
	tiff = order.AppendUint16(tiff, 3)
	tiff = order.AppendUint32(tiff, 1)
	tiff = order.AppendUint16(tiff, orientation)
	tiff = append(tiff, 0, 0, 0, 0, 0, 0)
	body := append([]byte("Exif\x00\x00"), tiff...)
	out := append(bytes.Clone(jpeg[:2]), 0xff, 0xe1)
	out = binary.BigEndian.AppendUint16(out, uint16(len(body)+2))
	return append(append(out, body...), jpeg[2:]...)
}

func TestOrientationIsHonoured(t *testing.T) {
	t.Parallel()
	// Red in the upper left corner, green in the upper right one.
	stored := jpegBytes(made(64, 32, func(x, y int) color.NRGBA {
		switch {
		case x < 16 && y < 16:
			return red
		case x >= 48 && y < 16:
			return green
		}
		return white
	}))
	left, right, top, bottom := 4, -4, 4, -4
	for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
		for o, tt := range map[uint16]struct{ w, h, redX, redY, greenX, greenY int }{
			0: {64, 32, left, top, right, top}, // no such thing: as it is
			1: {64, 32, left, top, right, top},
			2: {64, 32, right, top, left, top},
			3: {64, 32, right, bottom, left, bottom},
			4: {64, 32, left, bottom, right, bottom},
			5: {32, 64, left, top, left, bottom},
			6: {32, 64, right, top, right, bottom},
			7: {32, 64, right, bottom, right, top},
			8: {32, 64, left, bottom, left, top},
			9: {64, 32, left, top, right, top},
		} {
			m := same(t, enginetest.FileFromBytes("image/jpeg", exif(stored, order, o)))
			wantSize(t, m, tt.w, tt.h)
			at := func(x, y int) color.NRGBA { return m.NRGBAAt((x+tt.w)%tt.w, (y+tt.h)%tt.h) }
			if got := at(tt.redX, tt.redY); !near(got, red, 40) {
				t.Errorf("%v %d: %v where red belongs", order, o, got)
			}
			if got := at(tt.greenX, tt.greenY); !near(got, green, 40) {
				t.Errorf("%v %d: %v where green belongs", order, o, got)
			}
		}
	}
}

func TestBrokenExifIsNoHarm(t *testing.T) {
	t.Parallel()
	whole := exif(jpegBytes(flat(16, 16, red)), binary.BigEndian, 6)
	for n := range 30 { // the Exif lies in bytes 6 to 38
		b := bytes.Clone(whole)
		b[6+n] = 0xff
		wantSize(t, same(t, enginetest.FileFromBytes("image/jpeg", b)), 16, 16)
	}
}

func TestBadPicturesAreRefused(t *testing.T) {
	t.Parallel()
	good := jpegBytes(photo(64, 64))
	for name, b := range map[string][]byte{
		"empty":      {},
		"short":      []byte("GIF8"),
		"text":       []byte("this is no picture at all"),
		"cut off":    good[:len(good)/2],
		"bad inside": append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{7}, 100)...),
	} {
		t.Run(name, func(t *testing.T) {
			e := refusal(t, job("resize", nil, enginetest.FileFromBytes("image/png", b)))
			if e.Code != engine.Failed || e.Transient || !strings.Contains(e.Message, "could not be read") {
				t.Errorf("failure = %v", e)
			}
		})
	}
}

// header is the start of a PNG of some size, without pixels.
func header(w, h uint32) engine.File {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	b = binary.BigEndian.AppendUint32(b, w)
	b = binary.BigEndian.AppendUint32(b, h)
	b = append(b, 8, 6, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, crc(b[12:]))
	return enginetest.FileFromBytes("image/png", b)
}

func TestHugePicturesAreRefusedByTheirHeader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		w, h uint32
		want string
	}{
		{10_000, 4999, "could not be read"}, // within the limit, but no pixels follow
		{10_000, 5000, "could not be read"},
		{10_000, 5001, "too large"},
		{60_000, 60_000, "too large"},
	} {
		for _, operation := range []string{"crop", "collage", "contact", "cutout"} {
			if e := refusal(t, job(operation, nil, header(tt.w, tt.h))); !strings.Contains(e.Message, tt.want) {
				t.Errorf("%s of %dx%d: %v, want %q", operation, tt.w, tt.h, e, tt.want)
			}
		}
	}
}

func TestMissingPicturesAreRefused(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"adjust", "collage", "contact", "crop", "cutout", "palette", "photo-upscale", "resize", "upscale"} {
		if e := refusal(t, job(operation, nil)); !strings.Contains(e.Message, "picture is required") {
			t.Errorf("%s: %v", operation, e)
		}
	}
}

func TestStorageThatFailsIsWorthAnotherTry(t *testing.T) {
	t.Parallel()
	f := pngFile(photo(64, 64))
	f.Open = failingOpen
	if e := refusal(t, job("crop", nil, f)); !e.Transient {
		t.Errorf("failure = %v, want a transient one", e)
	}
}
