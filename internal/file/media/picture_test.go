package media_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/memory"
	"atelier/internal/file/media"
)

// thumbnail examines a file and decodes its thumbnail.
func thumbnail(t *testing.T, file string) (media.Facts, image.Image) {
	t.Helper()
	facts, _, err := admit(media.NewAnalyzer(media.Limits{}), file)
	if err != nil {
		t.Fatal(err)
	}
	img, format, err := image.Decode(bytes.NewReader(facts.Thumb))
	if err != nil || !strings.HasPrefix(format, facts.ThumbExt[:1]) {
		t.Fatalf("thumbnail of %s: %s, %v", facts.ThumbExt, format, err)
	}
	return facts, img
}

// near tells whether two colours look the same.
func near(a, b color.Color) bool {
	x, y := color.NRGBAModel.Convert(a).(color.NRGBA), color.NRGBAModel.Convert(b).(color.NRGBA)
	for _, d := range []int{int(x.R) - int(y.R), int(x.G) - int(y.G), int(x.B) - int(y.B), int(x.A) - int(y.A)} {
		if d < -40 || d > 40 {
			return false
		}
	}
	return true
}

func TestThumbnailsStandUpright(t *testing.T) {
	t.Parallel()
	for turn, corners := range map[int][2]string{ // where red and green are seen
		0: {"top left", "top right"}, 1: {"top left", "top right"}, 2: {"top right", "top left"},
		3: {"bottom right", "bottom left"}, 4: {"bottom left", "bottom right"},
		5: {"top left", "bottom left"}, 6: {"top right", "bottom right"},
		7: {"bottom right", "top right"}, 8: {"bottom left", "top left"}, 9: {"top left", "top right"},
	} {
		facts, img := thumbnail(t, photo(flag(80, 40), turn))
		b := img.Bounds()
		if facts.Width != b.Dx() || facts.Height != b.Dy() || (b.Dx() == 40) != (5 <= turn && turn <= 8) {
			t.Errorf("turn %d: %dx%d, thumbnail %v", turn, facts.Width, facts.Height, b)
		}
		at := map[string]color.Color{
			"top left": img.At(4, 4), "top right": img.At(b.Dx()-5, 4),
			"bottom left": img.At(4, b.Dy()-5), "bottom right": img.At(b.Dx()-5, b.Dy()-5),
		}
		if !near(at[corners[0]], red) || !near(at[corners[1]], green) {
			t.Errorf("turn %d: red is not %s or green not %s: %v", turn, corners[0], corners[1], at)
		}
	}
}

func TestThumbnailSizes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ w, h, tw, th int }{
		{1, 1, 1, 1}, {512, 512, 512, 512}, {513, 512, 512, 511}, {512, 513, 511, 512}, {511, 3, 511, 3},
		{1024, 300, 512, 150}, {1025, 400, 512, 199}, {300, 1900, 80, 512}, {20000, 2, 512, 1}, {3, 5000, 1, 512},
	} {
		facts, img := thumbnail(t, pngOf(flag(tt.w, tt.h)))
		if facts.Width != tt.w || facts.Height != tt.h || img.Bounds().Dx() != tt.tw || img.Bounds().Dy() != tt.th {
			t.Errorf("%dx%d: %dx%d, thumbnail %v", tt.w, tt.h, facts.Width, facts.Height, img.Bounds())
		}
		if b := img.Bounds(); b.Dx() >= 80 && b.Dy() >= 80 {
			if !near(img.At(b.Dx()/4, b.Dy()/4), red) || !near(img.At(b.Dx()*3/4, b.Dy()/4), green) || !near(img.At(b.Dx()/2, b.Dy()*3/4), white) {
				t.Errorf("%dx%d: the thumbnail shows something else", tt.w, tt.h)
			}
		}
	}
}

func TestTransparencyStays(t *testing.T) {
	t.Parallel()
	img := flag(750, 500)
	for y := 250; y < 500; y++ {
		for x := range 750 {
			img.SetNRGBA(x, y, color.NRGBA{})
		}
	}
	facts, small := thumbnail(t, pngOf(img))
	if facts.ThumbExt != "png" || !near(small.At(100, 50), red) || !near(small.At(100, 300), color.NRGBA{}) {
		t.Errorf("a thumbnail as %s with %v and %v", facts.ThumbExt, small.At(100, 50), small.At(100, 300))
	}
	facts, small = thumbnail(t, riff("WEBP", riffChunk("VP8L", vp8l(600, 10, 0, true))))
	if facts.ThumbExt != "png" || !near(small.At(100, 5), color.NRGBA{}) {
		t.Errorf("a webp thumbnail as %s with %v", facts.ThumbExt, small.At(100, 5))
	}
}

func TestFirstFrameLiesWhereItBelongs(t *testing.T) {
	t.Parallel()
	frame := image.NewPaletted(image.Rect(300, 0, 600, 300), color.Palette{red})
	var b bytes.Buffer
	err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{0}, Config: image.Config{Width: 600, Height: 600, ColorModel: frame.Palette}})
	if err != nil {
		t.Fatal(err)
	}
	facts, small := thumbnail(t, b.String())
	if facts.Width != 600 || facts.ThumbExt != "png" || !near(small.At(400, 100), red) || !near(small.At(100, 100), color.NRGBA{}) || !near(small.At(400, 400), color.NRGBA{}) {
		t.Errorf("%dx%d as %s: %v %v", facts.Width, facts.Height, facts.ThumbExt, small.At(400, 100), small.At(100, 100))
	}
}

func TestEveryColourModelIsDrawn(t *testing.T) {
	t.Parallel()
	at := image.Rect(0, 0, 600, 20)
	for name, img := range map[string]interface {
		image.Image
		Set(int, int, color.Color)
	}{
		"grey": image.NewGray(at), "grey 16": image.NewGray16(at), "rgba": image.NewRGBA(at), "rgba 64": image.NewRGBA64(at),
		"nrgba 64": image.NewNRGBA64(at), "palette": image.NewPaletted(at, color.Palette{color.Black, white}),
	} {
		for y := range 20 {
			for x := range 600 {
				img.Set(x, y, white)
			}
		}
		if facts, small := thumbnail(t, pngOf(img)); facts.ThumbExt != "jpg" || !near(small.At(300, 10), white) {
			t.Errorf("%s: a thumbnail as %s with %v", name, facts.ThumbExt, small.At(300, 10))
		}
	}
}

// held is a file whose decoder has to wait until the gate opens.
type held struct {
	*strings.Reader
	starts int
	gate   chan struct{}
	inside chan struct{}
}

func (h *held) ReadAt(p []byte, offset int64) (int, error) {
	if offset == 0 {
		if h.starts++; h.starts == 3 { // behind the look at the head and the walk
			h.inside <- struct{}{}
			<-h.gate
		}
	}
	return h.Reader.ReadAt(p, offset)
}

func TestDecodingsShareMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := pngOf(flag(600, 600)) // 1.4 MB of pixels, and more to shrink them
		f, _ := sniff(file)
		analyzer := media.NewAnalyzer(media.Limits{Memory: memory.NewBudget(32 << 20)}) // enough for one
		gate, inside := make(chan struct{}), make(chan struct{}, 3)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 3)
		for range 3 {
			go func() {
				h := &held{Reader: strings.NewReader(file), gate: gate, inside: inside}
				_, err := analyzer.AnalyzeFile(ctx, media.DecodeRequest{}, f, h, int64(len(file)))
				done <- err
			}()
		}
		synctest.Wait()
		if len(inside) != 1 {
			t.Fatalf("%d decode at once, want 1", len(inside))
		}
		cancel() // the two that wait give up
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("a waiting one: %v", err)
			}
		}
		close(gate)
		if err := <-done; err != nil { // it had read the whole file, which is short
			t.Errorf("the decoding one: %v", err)
		}
	})
}

// TestWaitingForMemoryEnds has files that cannot be decoded now, or never.
func TestWaitingForMemoryEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := pngOf(flag(600, 600))
		f, _ := sniff(file)
		budget := memory.NewBudget(32 << 20)
		analyzer := media.NewAnalyzer(media.Limits{Memory: budget})
		if _, err := budget.Acquire(t.Context(), memory.Request{Owner: "anna", Bytes: 16 << 20, Lane: memory.Quick}); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		_, err := analyzer.AnalyzeFile(t.Context(), media.DecodeRequest{Owner: "bea", Timeout: 20 * time.Second}, f, strings.NewReader(file), int64(len(file)))
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.Unavailable || e.RetryAfter <= 0 || time.Since(before) != 20*time.Second {
			t.Errorf("a full budget, after %v: %v", time.Since(before), err)
		}
		small := media.NewAnalyzer(media.Limits{Memory: memory.NewBudget(16 << 20)})
		if _, err := examine(small, f, file); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "this server allows 16 MB") {
			t.Errorf("more than there is: %v", err)
		}
	})
}

func TestCleanGivesSmallReadsToo(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		f, _ := sniff(s.file)
		want, err := clean(f, s.file)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if _, err := io.CopyBuffer(&b, struct{ io.Reader }{media.Clean(f, strings.NewReader(s.file))}, make([]byte, 1)); err != nil || b.String() != want {
			t.Errorf("%s: other bytes, %v", s.name, err)
		}
	}
}
