package tiny_test

import (
	"bytes"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"strconv"
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

// TestOddPictures begins with and enlarges pictures of all kinds.
func TestOddPictures(t *testing.T) {
	t.Parallel()
	deep := image.NewNRGBA64(image.Rect(0, 0, 20, 10))
	for i := range deep.Pix {
		deep.Pix[i] = uint8(i * 7)
	}
	frame := image.NewPaletted(image.Rect(0, 0, 20, 10), palette.WebSafe)
	var animated, grey bytes.Buffer
	if err := gif.EncodeAll(&animated, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{1, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&grey, image.NewGray(image.Rect(0, 0, 20, 10)), nil); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		file engine.File
		w, h int
	}{
		"one pixel":       {pngFile(ball(1, 1)), 1, 1},
		"tall":            {pngFile(ball(2, 900)), 2, 900},
		"wide":            {pngFile(ball(900, 1)), 900, 1},
		"16 bits":         {pngFile(deep), 20, 10},
		"an animated GIF": {enginetest.FileFromBytes("image/gif", animated.Bytes()), 20, 10},
		"grey":            {enginetest.FileFromBytes("image/jpeg", grey.Bytes()), 20, 10},
		"CMYK":            {enginetest.FileFromBytes("image/jpeg", cmyk()), 16, 16},
		"paletted":        {pngFile(frame), 20, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := decoded(t, results(t, shared(), job("upscale-art", nil, tt.file)).Outputs()[0])
			if want := image.Rect(0, 0, 4*tt.w, 4*tt.h); m.Bounds() != want {
				t.Errorf("enlarged = %v, want %v", m.Bounds(), want)
			}
			m = decoded(t, results(t, shared(), job("sketch-from-picture", values{"steps": int64(1)}, tt.file)).Outputs()[0])
			if want := image.Rect(0, 0, 128, 128); m.Bounds() != want {
				t.Errorf("drawn = %v, want %v", m.Bounds(), want)
			}
		})
	}
}

// cmyk is a JPEG of 16 by 16 pixels for printing, which nothing here writes: one
// ink each in every block, and no detail.
func cmyk() []byte {
	b := []byte("\xff\xd8\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00\xff\xdb\x00\x43\x00")
	b = append(b, bytes.Repeat([]byte{8}, 64)...)
	b = append(b, "\xff\xc0\x00\x14\x08\x00\x10\x00\x10\x04\x01\x11\x00\x02\x11\x00\x03\x11\x00\x04\x11\x00"...)
	b = append(b, "\xff\xc4\x00\x15\x00\x00\x02"+strings.Repeat("\x00", 14)+"\x00\x06"...) // no change is 00, one of 6 bits 01
	b = append(b, "\xff\xc4\x00\x14\x10\x00\x01"+strings.Repeat("\x00", 14)+"\x00"...)     // the end of a block is 00
	b = append(b, "\xff\xda\x00\x0e\x04\x01\x00\x02\x00\x03\x00\x04\x00\x00\x3f\x00"...)
	bits := ""
	for _, ink := range []string{"100000", "111110", "000001", "110000"} {
		bits += "01" + ink + "00"
	}
	bits += strings.Repeat("0000", 3*4)
	for len(bits)%8 != 0 {
		bits += "1"
	}
	for ; bits != ""; bits = bits[8:] {
		v, err := strconv.ParseUint(bits[:8], 2, 8)
		if err != nil {
			panic(err)
		}
		b = append(b, byte(v))
	}
	return append(b, "\xff\xd9"...)
}

func TestDamagedPictures(t *testing.T) {
	t.Parallel()
	var whole bytes.Buffer
	if err := jpeg.Encode(&whole, made(64, 64, func(x, y int) color.NRGBA { return color.NRGBA{uint8(4 * x), uint8(4 * y), uint8(x * y), 255} }), nil); err != nil {
		t.Fatal(err)
	}
	for _, operation := range []string{"sketch-from-picture", "upscale-art"} {
		for name, b := range map[string][]byte{
			"nothing": nil, "words": []byte("a fox, drawn by hand"), "half of it": whole.Bytes()[:whole.Len()/2],
			"no size": []byte("GIF89a\x00\x00\x00\x00\x00\x00\x00;"),
		} {
			if e := refusal(t, job(operation, nil, enginetest.FileFromBytes("image/jpeg", b))); !strings.Contains(e.Message, "could not be read") {
				t.Errorf("%s of %s: %v", operation, name, e)
			}
		}
	}
}

// TestTooLarge refuses pictures by their header.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	file := pngFile(image.NewGray(image.Rect(0, 0, 2001, 1000)))
	if e := refusal(t, job("upscale-art", nil, file)); !strings.Contains(e.Message, "limit for enlarging is 2 megapixels") {
		t.Errorf("upscale: %v", e)
	}
	results(t, shared(), job("sketch-from-picture", values{"steps": int64(1)}, file))
	// A row takes as long as one of a hundred pixels, whatever it has.
	for _, size := range []image.Rectangle{image.Rect(0, 0, 1, 16_001), image.Rect(0, 0, 16_001, 1)} {
		if e := refusal(t, job("upscale-art", nil, pngFile(image.NewGray(size)))); !strings.Contains(e.Message, "limit is 16000 pixels") {
			t.Errorf("upscale of %v: %v", size, e)
		}
	}
	// Its header says more than there is.
	vast := []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00,")
	if e := refusal(t, job("sketch-from-picture", nil, enginetest.FileFromBytes("image/gif", vast))); !strings.Contains(e.Message, "too large") {
		t.Errorf("sketch: %v", e)
	}
}
