package video_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	stdgif "image/gif"
	"math"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

// turned is a JPEG whose Exif data say how the camera was held.
func turned(turn int, m image.Image) engine.File {
	b := jpegBytes(m)
	exif := "\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(rune(turn)) + "\x00\x00\x00\x00\x00\x00"
	return enginetest.FileFromBytes("image/jpeg", bytes.Join([][]byte{b[:2], []byte(exif), b[2:]}, nil))
}

func TestPicturesAreSetUpright(t *testing.T) {
	t.Parallel()
	const w, h = 96, 64
	up := quarters(w, h)
	// How the sensor saw the scene, for each way of holding the camera.
	stored := map[int]func(x, y int) (int, int){
		1: func(x, y int) (int, int) { return x, y },
		2: func(x, y int) (int, int) { return w - 1 - x, y },
		3: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y },
		4: func(x, y int) (int, int) { return x, h - 1 - y },
		5: func(x, y int) (int, int) { return y, x },
		6: func(x, y int) (int, int) { return w - 1 - y, x },
		7: func(x, y int) (int, int) { return w - 1 - y, h - 1 - x },
		8: func(x, y int) (int, int) { return y, h - 1 - x },
	}
	for turn, at := range stored {
		t.Run(fmt.Sprint(turn), func(t *testing.T) {
			t.Parallel()
			sw, sh := w, h
			if turn >= 5 {
				sw, sh = h, w
			}
			seen := newPicture(sw, sh, func(x, y int) color.NRGBA { ux, uy := at(x, y); return up.NRGBAAt(ux, uy) })
			j := job("slideshow", values{"seconds": 0.2, "fade": 0.0, "size": size(96, 64)}, pictures(turned(turn, seen), pngFile(up)))
			m := frames(t, result(t, j))[0]
			wantColour(t, m, 10, 10, red)
			wantColour(t, m, 85, 10, green)
			wantColour(t, m, 10, 53, blue)
			wantColour(t, m, 85, 53, yellow)
		})
	}
}

func TestEveryKindOfPicture(t *testing.T) {
	t.Parallel()
	webp := made(t, "webp", "-f", "lavfi", "-i", "color=c=0x1ea028:s=96x64", "-frames:v", "1")
	var gif bytes.Buffer
	still := image.NewPaletted(image.Rect(0, 0, 96, 64), color.Palette{green})
	if err := stdgif.EncodeAll(&gif, &stdgif.GIF{Image: []*image.Paletted{still, still}, Delay: []int{5, 5}}); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]engine.File{
		"png":  pngFile(flat(96, 64, green)),
		"jpeg": enginetest.FileFromBytes("image/jpeg", jpegBytes(flat(96, 64, green))),
		"webp": enginetest.FileFromBytes("image/webp", webp),
		"gif":  enginetest.FileFromBytes("image/gif", gif.Bytes()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := frames(t, result(t, job("pan-zoom", values{"seconds": 0.2, "size": size(96, 64)}, pictures(f))))
			for _, m := range all {
				wantColour(t, m, 1, 1, green)
				wantColour(t, m, 48, 32, green)
				wantColour(t, m, 94, 62, green)
			}
			if len(all) != 5 {
				t.Errorf("frames = %d, want 5", len(all))
			}
		})
	}
}

func TestStripsAndSpecks(t *testing.T) {
	t.Parallel()
	for _, s := range []image.Point{{1, 1}, {3000, 1}, {1, 3000}} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			f := pngFile(flat(s.X, s.Y, blue))
			for _, j := range []engine.Job{
				job("pan-zoom", values{"seconds": 0.2, "motion": "left", "size": size(96, 64)}, pictures(f)),
				job("pan-zoom", values{"seconds": 0.2, "motion": "down", "size": size(96, 64)}, pictures(f)),
				job("slideshow", values{"seconds": 0.2, "size": size(96, 64)}, pictures(f, f)),
			} {
				if got := examined(t, result(t, j)); got.Width != 96 || got.Height != 64 {
					t.Errorf("size = %dx%d", got.Width, got.Height)
				}
			}
		})
	}
}

// framed is white with a black edge.
func framed(w, h, edge int) *image.NRGBA {
	return newPicture(w, h, func(x, y int) color.NRGBA {
		if min(x, y, w-1-x, h-1-y) < edge {
			return black
		}
		return white
	})
}

func TestZoomsGoNearAndAway(t *testing.T) {
	t.Parallel()
	f := pngFile(framed(192, 108, 6))
	for motion, nearFirst := range map[string]bool{"zoom-in": false, "zoom-out": true} {
		all := frames(t, result(t, job("pan-zoom", values{"seconds": 0.6, "motion": motion, "size": size(192, 108)}, pictures(f))))
		first, last := all[0], all[len(all)-1]
		if nearFirst {
			first, last = last, first
		}
		wantColour(t, first, 2, 2, black)
		wantColour(t, first, 189, 105, black)
		wantColour(t, last, 2, 2, white)
		wantColour(t, last, 189, 105, white)
	}
}

// TestPansGoSmoothly follows the middle of the frame over a ramp: it gets
// brighter with each frame, or darker, and never trembles.
func TestPansGoSmoothly(t *testing.T) {
	t.Parallel()
	ramp := func(w, h int, at func(x, y int) float64) engine.File {
		return pngFile(newPicture(w, h, func(x, y int) color.NRGBA {
			v := uint8(20 + 215*at(x, y))
			return color.NRGBA{v, v, v, 255}
		}))
	}
	across := func(x, _ int) float64 { return float64(x) / 300 }
	along := func(_, y int) float64 { return float64(y) / 300 }
	for _, tt := range []struct {
		motion string
		file   engine.File
		sign   float64
	}{
		{"right", ramp(300, 108, across), 1},
		{"left", ramp(300, 108, across), -1},
		{"down", ramp(192, 300, along), 1},
		{"up", ramp(192, 300, along), -1},
	} {
		t.Run(tt.motion, func(t *testing.T) {
			t.Parallel()
			all := frames(t, result(t, job("pan-zoom", values{"seconds": int64(2), "motion": tt.motion, "size": size(192, 108)}, pictures(tt.file))))
			var levels []float64
			for _, m := range all {
				sum := 0.0
				for y := 44; y < 64; y++ {
					for x := 86; x < 106; x++ {
						sum += float64(m.NRGBAAt(x, y).G) / 400
					}
				}
				levels = append(levels, sum)
			}
			for i := 1; i < len(levels); i++ {
				if step := tt.sign * (levels[i] - levels[i-1]); step < -0.6 || step > 4 {
					t.Errorf("brightness from frame %d to %d: %.2f to %.2f", i-1, i, levels[i-1], levels[i])
				}
			}
			if whole := tt.sign * (levels[len(levels)-1] - levels[0]); whole < 20 {
				t.Errorf("brightness went by %.1f, want a way", whole)
			}
		})
	}
}

func TestCrossFadesLieWhereTheyShould(t *testing.T) {
	t.Parallel()
	j := job("slideshow", values{"seconds": 0.8, "fade": 0.4, "size": size(96, 64)},
		pictures(pngFile(flat(96, 64, red)), pngFile(flat(96, 64, green)), pngFile(flat(96, 64, blue))))
	all := frames(t, result(t, j))
	if len(all) != 60 {
		t.Fatalf("frames = %d, want 60", len(all))
	}
	half := func(a, b color.NRGBA) color.NRGBA {
		return color.NRGBA{a.R/2 + b.R/2, a.G/2 + b.G/2, a.B/2 + b.B/2, 255}
	}
	for i, want := range map[int]color.NRGBA{0: red, 19: red, 25: half(red, green), 31: green, 39: green, 45: half(green, blue), 51: blue, 59: blue} {
		wantColour(t, all[i], 48, 32, want)
	}
}

func TestBackgroundsOfSlides(t *testing.T) {
	t.Parallel()
	f := pngFile(flat(64, 64, green))
	for background, want := range map[string]color.NRGBA{"black": black, "white": white, "blur": {24, 128, 32, 255}} {
		j := job("slideshow", values{"seconds": 0.2, "background": background, "size": size(128, 64)}, pictures(f, f))
		m := frames(t, result(t, j))[0]
		wantColour(t, m, 6, 32, want)
		wantColour(t, m, 64, 32, green)
		wantColour(t, m, 121, 32, want)
	}
}

func TestTransparentPartsShowTheBackground(t *testing.T) {
	t.Parallel()
	f := pngFile(flat(96, 64, nothing))
	for background, want := range map[string]color.NRGBA{"black": black, "white": white} {
		j := job("slideshow", values{"seconds": 0.2, "background": background, "size": size(96, 64)}, pictures(f, f))
		wantColour(t, frames(t, result(t, j))[0], 48, 32, want)
	}
	wantColour(t, frames(t, result(t, job("pan-zoom", values{"seconds": 0.2, "size": size(96, 64)}, pictures(f))))[0], 48, 32, white)
}

func TestMusicIsRepeatedAndFades(t *testing.T) {
	t.Parallel()
	f := pngFile(flat(64, 64, green))
	files := pictures(f, f, f)
	files["music"] = []engine.File{tone(t)} // half a second
	b := result(t, job("slideshow", values{"seconds": int64(1), "size": size(64, 64)}, files))
	loud := loudness(t, b, 3)
	if loud[1] < 500 || loud[0] > 0.95*loud[1] || loud[2] > 0.8*loud[1] || loud[2] < 0.2*loud[1] {
		t.Errorf("loudness by second = %v, want it to go on and to fade at both ends", loud)
	}
}

// loudness gives the mean of the sound in each second of a result.
func loudness(t testing.TB, b []byte, seconds int) []float64 {
	t.Helper()
	pcm := decoded(t, b, "-vn", "-ac", "1", "-ar", "8000", "-f", "s16le")
	if len(pcm) < (seconds*8000-800)*2 {
		t.Fatalf("sound = %d bytes, want %d seconds", len(pcm), seconds)
	}
	loud := make([]float64, seconds)
	for i := 0; i+1 < len(pcm) && i/16000 < seconds; i += 2 {
		loud[i/16000] += math.Abs(float64(int16(uint16(pcm[i])|uint16(pcm[i+1])<<8))) / 8000
	}
	return loud
}
